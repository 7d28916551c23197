"""Where a command's result goes: stdout or a whole file; text in colours where somebody can see them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.cli.refused import Refused

if TYPE_CHECKING:
    from agent.outputs.text.lines import Line

FILE_WIDTH = 100  # a text in a file or a pipe has no terminal to fit


def deliver(data: bytes, output: str | None) -> None:
    """Write to stdout, or a file whole or not at all. Raises Refused."""
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    from agent.reports import write_atomically

    try:
        write_atomically(output, data)
    except OSError as error:
        raise Refused(f"{output}: {error.strerror}") from error


def show(page: Callable[[int], list[Line]], output: str | None, no_color: bool) -> None:
    """Print a page that is made for a width."""
    from agent.outputs.text.lines import ascii_only, plain

    terminal = output is None and sys.stdout.isatty()
    lines = page(shutil.get_terminal_size((FILE_WIDTH, 24)).columns if terminal else FILE_WIDTH)
    if output is None and not _lines_can_be_shown(sys.stdout.encoding):
        lines = ascii_only(lines)
    if terminal and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        from agent.outputs.terminal import show as in_colours

        in_colours(lines, sys.stdout)
    else:
        deliver(plain(lines).encode("utf-8", "replace"), output)


def _lines_can_be_shown(encoding: str | None) -> bool:
    """Whether what reads stdout can show the lines of a tree."""
    try:
        "├└─│·…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return os.environ.get("LC_ALL") not in ("C", "POSIX")  # Python speaks UTF-8 there all the same


def form_of(output: str | None) -> str:
    """The format that a file's suffix asks for. Raises Refused."""
    if output is None:
        return "text"
    suffix = os.path.splitext(output)[1].lower()
    forms = {".json": "json", ".html": "html", ".htm": "html", ".txt": "text", "": "text"}
    if suffix not in forms:
        raise Refused(f"{output}: no format has the suffix {suffix}; say --format text, json or html")
    return forms[suffix]
