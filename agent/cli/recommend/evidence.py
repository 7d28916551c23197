"""Files that a user gives `recommend`: logs and tables of benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from agent.cli.errors import CliError

LIMIT_BYTES = 1 << 30


def read_lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin for "-". Raises CliError."""
    try:
        if path == "-":
            yield from _decode(sys.stdin.buffer)
        else:
            with open(path, "rb") as file:
                yield from _decode(file)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}") from error


def _decode(file: object) -> Iterator[str]:
    size = 0
    while line := file.readline(1 << 16):  # type: ignore[attr-defined]  # a binary file
        size += len(line)
        if size > LIMIT_BYTES:
            raise CliError(f"larger than {LIMIT_BYTES >> 30} GiB")
        yield line.decode("utf-8", "replace")
