"""Where a large result goes, piece by piece: stdout, or a file that takes its name when it is whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from agent.cli.refused import Refused


@contextmanager
def written(output: str | None) -> Iterator[BinaryIO]:
    """A binary stream; a file is there whole or not at all. Raises Refused."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from agent import reports

    try:
        with reports.open_atomically(output) as file:
            yield file
    except OSError as error:
        raise Refused(f"{output}: {error.strerror or error}") from error
