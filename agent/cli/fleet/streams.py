"""Where a large result goes, piece by piece: stdout, or a file that takes its name when it is whole."""

from __future__ import annotations

import contextlib
import os
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
    if os.path.exists(output) and not os.path.isfile(output) and not os.path.isdir(output):
        with open(output, "wb") as device:
            yield device
        return
    place = os.path.realpath(output)
    folder, name = os.path.split(place)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise Refused(f"{output}: {error.strerror or error}") from error
        raise
