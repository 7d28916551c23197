"""What comes by a pipe: "-" in place of a file, and one that is named as a file and has no writer yet."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, cast

from agent.cli.errors import CliError, ErrorTranslation, print_warning

if TYPE_CHECKING:
    import io

STDIN = "-"
NOTICE_SECONDS = 2.0  # before a notice
_LIMIT_BYTES = 2 << 30  # what is larger is a file already
_CHUNK_BYTES = 1 << 20


@contextmanager
def notice_pipe(*paths: str | None) -> Iterator[Callable[[], object]]:
    """Within it a line on stderr, if a file that is read is a pipe and the run waits for it; to call once it came."""
    path = next(filter(_is_pipe, paths), None)
    if path is None:
        yield lambda: None
        return
    from threading import Timer  # lazy: files are the rule

    timer = Timer(NOTICE_SECONDS, print_warning, (f"{path}: waiting for what is written to this pipe",))
    timer.daemon = True
    timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()


def _is_pipe(path: str | None) -> bool:
    with suppress(OSError, ValueError):
        return path is not None and stat.S_ISFIFO(os.stat(path).st_mode)
    return False


def copy_stdin(folder: str) -> str:
    """Copy it into a file of the folder, as readers seek and read again; its path. Raises CliError."""
    return copy_stdin_until(folder, None)[0]


def copy_stdin_until(folder: str, until: float | None) -> tuple[str, bool]:
    """The same, of what comes by then (time.monotonic()), and whether more may have come. Raises CliError."""
    from probes.time_limit import TimeIsUp, TimeLimit

    path = os.path.join(folder, "stdin")
    try:
        with nullcontext() if until is None else TimeLimit(until):
            _copy(path)
    except TimeIsUp:
        if until is None:
            raise  # the limit of a caller
        return path, True
    return path, False


def _copy(path: str) -> None:
    taken, stdin = 0, cast("io.BufferedReader", sys.stdin.buffer)
    with ErrorTranslation(OSError, about="stdin"), open(path, "wb") as file:
        while chunk := stdin.read1(_CHUNK_BYTES):  # what is there: a limit loses none of it
            taken += len(chunk)
            if taken > _LIMIT_BYTES:
                raise CliError(f"stdin: more than {_LIMIT_BYTES >> 30} GiB", "save it to a file, and give that")
            file.write(chunk)
