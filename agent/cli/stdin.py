"""What comes by stdin: "-" in place of a file."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

from agent.cli.errors import CliError, ErrorTranslation
from probes.time_limit import TimeIsUp, TimeLimit

if TYPE_CHECKING:
    import io

STDIN = "-"
_LIMIT_BYTES = 2 << 30  # what is larger is a file already
_CHUNK_BYTES = 1 << 20


def copy_stdin(folder: str) -> str:
    """Copy it into a file of the folder, as readers seek and read again; its path. Raises CliError."""
    return copy_stdin_until(folder, None)[0]


def copy_stdin_until(folder: str, until: float | None) -> tuple[str, bool]:
    """The same, of what comes by then (time.monotonic()), and whether more may have come. Raises CliError."""
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
