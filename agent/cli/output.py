"""Where a command's result goes: stdout or a file written atomically; coloured text on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, BinaryIO

from agent.cli.errors import CliError, ErrorTranslation, printable

if TYPE_CHECKING:
    from agent.outputs.text.lines import Line


DEBUG: ContextVar[bool] = ContextVar("debug", default=False)  # --debug, of any command
FILE_WIDTH = 100  # a text in a file or a pipe has no terminal to fit


def deliver(data: bytes, output: str | None, public: bool = False, end: bytes = b"") -> None:
    """Write to stdout, or atomically to a file. `public`: what another program reads; all else is not for all users.
    `end`: written after the data.

    Raises CliError.
    """
    if output is None:
        with ignore_closed_pipe():
            sys.stdout.flush()
            sys.stdout.buffer.write(escape_controls(data) if sys.stdout.isatty() else data)
            sys.stdout.buffer.write(end)
            sys.stdout.buffer.flush()
        return
    from agent.reports import PRIVATE, PUBLIC, open_atomically

    with ErrorTranslation(OSError, about=output), open_atomically(output, PUBLIC if public else PRIVATE) as file:
        file.write(data)
        file.write(end)
    print_written(output)


def deliver_text(text: str, output: str | None, public: bool = False) -> None:
    """Write a text; names from outside may hold what UTF-8 has not. Raises CliError."""
    deliver(text.encode("utf-8", "replace"), output, public)


def deliver_json(value: object, output: str | None, indent: int = 2, sort_keys: bool = False) -> None:
    """Write a value as JSON. Raises CliError."""
    import msgspec

    data = msgspec.json.encode(value, order="deterministic" if sort_keys else None)
    deliver(msgspec.json.format(data, indent=indent), output, end=b"\n")


def escape_controls(data: bytes) -> bytes:
    r"""What a terminal would obey, or show in another direction, as JSON escapes it: the same JSON, safe to look at.

    >>> escape_controls('{"name": "\x9b31m\u202e"}'.encode())
    b'{"name": "\\u009b31m\\u202e"}'
    """
    text = data.decode("utf-8", "replace")
    if text.replace("\n", "").isprintable():
        return data
    import json

    return "".join(c if c.isprintable() or c in "\n\t" else json.dumps(c)[1:-1] for c in text).encode()


@contextmanager
def ignore_closed_pipe() -> Iterator[None]:
    """A reader that has enough ends the output, and the command ends as it would have: `scan | head`."""
    try:
        yield
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """No one reads stdout any more: what is still buffered, and what follows, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_written(output: str) -> None:
    """State on stderr which file was written; not for a device or pipe."""
    if os.path.isfile(output) or os.path.isdir(output):
        print(printable(f"wrote {output}"), file=sys.stderr)


class ProgressLine:
    """How far a command is, on stderr where that is a terminal; erased at the end."""

    def __init__(self, wanted: bool) -> None:
        self.enabled = wanted and sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> ProgressLine:
        return self

    def show(self, text: str) -> None:
        """Replace the line."""
        if self.enabled:
            print(f"\r\x1b[K{printable(text[:78])}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def erase(self) -> None:
        """Remove it."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False

    def __exit__(self, *_: object) -> None:
        self.erase()


def show(page: Callable[[int], list[Line]], output: str | None, no_color: bool) -> None:
    """Print a page that is rendered for a width."""
    from agent.outputs.text.lines import to_ascii, to_plain_text

    terminal = output is None and sys.stdout.isatty()
    width = FILE_WIDTH
    if terminal:
        import shutil

        width = shutil.get_terminal_size((FILE_WIDTH, 24)).columns
    lines = page(width)
    if output is None and not can_encode_lines(sys.stdout.encoding):
        lines = to_ascii(lines)
    if terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        from agent.outputs.terminal import print_styled as in_colours

        in_colours(lines, sys.stdout)
    else:
        deliver_text(to_plain_text(lines), output)


def write_answer(
    answer: Any,
    form: str,
    page: Callable[[Any, int], list[Line]],
    output: str | None,
    no_color: bool,
    indent: int = 2,
    **others: Callable[[], str],
) -> None:
    """Print an answer as text or JSON, or in another form by its name. Raises CliError."""
    if form == "text":
        show(lambda width: page(answer, width), output, no_color)
    elif form == "json":
        deliver_json(answer, output, indent)
    else:
        deliver_text(others[form](), output)


def can_encode_lines(encoding: str | None) -> bool:
    """Whether stdout's encoding has the line-drawing characters of a tree."""
    try:
        "├└─│·…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return os.environ.get("LC_ALL") not in ("C", "POSIX")  # Python speaks UTF-8 there all the same


_FORMS = {
    "": "text", ".txt": "text", ".json": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".html": "html",
    ".htm": "html",
}  # fmt: skip


def choose_format(output: str | None, forms: Mapping[str, str] = _FORMS) -> str:
    """The format for a file's suffix; stdout is a file without one. Raises CliError."""
    suffix = os.path.splitext(output or "")[1].lower()
    if suffix not in forms:
        *others, last = dict.fromkeys(forms.values())
        raise CliError(f"{output}: unknown suffix {suffix}; use --format {', '.join(others)} or {last}")
    return forms[suffix]


@contextmanager
def open_output(output: str | None) -> Iterator[BinaryIO]:
    """Open stdout or a file, written atomically, as a binary stream. Raises CliError."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from agent.reports import open_atomically

    with ErrorTranslation(OSError, about=output), open_atomically(output) as file:
        yield file
    print_written(output)


def open_streams() -> None:
    """Open the standard streams that the caller closed: the next opened file would become one of them.

    A closed stdout cannot be written to: writing to it is an error, not writing is none.
    """
    for number, mode in enumerate("rww"):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            stream = open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  # until the end
            setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    if type(sys.stderr) is io.TextIOWrapper and sys.stderr.fileno() == 2:
        messages = io.BufferedWriter(_Messages(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(messages, sys.stderr.encoding, sys.stderr.errors, line_buffering=True)


class _Messages(io.FileIO):
    """Standard error. Where it is full or closed messages are lost, and neither results nor exit codes."""

    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(data) or 0
        return len(data)
