"""What comes by stdin: "-" in place of a file."""

from __future__ import annotations

import os
import sys

from agent.cli.errors import CliError

STDIN = "-"
_LIMIT_BYTES = 2 << 30  # what is larger is a file already
_CHUNK_BYTES = 1 << 20


def copy_stdin(folder: str) -> str:
    """Copy it into a file of the folder, as readers seek and read again; its path. Raises CliError."""
    path, taken = os.path.join(folder, "stdin"), 0
    try:
        with open(path, "wb") as file:
            while chunk := sys.stdin.buffer.read(_CHUNK_BYTES):
                taken += len(chunk)
                if taken > _LIMIT_BYTES:
                    raise CliError(f"stdin: more than {_LIMIT_BYTES >> 30} GiB", "save it to a file, and give that")
                file.write(chunk)
    except OSError as error:
        raise CliError(f"stdin: {error.strerror or error}") from error
    return path
