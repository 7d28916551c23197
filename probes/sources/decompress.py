"""The bytes of a file of a source, without compression, forward only and bounded."""

from __future__ import annotations

import os
from types import TracebackType
from typing import BinaryIO

from probes.compression import MAGIC_BYTES, DamagedData, DecompressedReader, find_compression
from probes.host.files import open_regular
from probes.host.interface import BadSource, ReadError

INFLATED_LIMIT_BYTES = 1 << 30  # a bomb ends here; the largest real archive of ours is 2% of it
CHUNK_BYTES = 1 << 16


class DecompressedStream:
    """A context manager over one open file. Every error of the file or of its compression is a BadSource."""

    def __init__(self, path: str, limit: int | None = None) -> None:
        self.path = path
        self._limit = INFLATED_LIMIT_BYTES if limit is None else limit
        self._ahead = b""
        self._taken = 0
        try:
            self._file: BinaryIO = os.fdopen(open_regular(path), "rb")
        except ReadError:
            raise self.bad("is neither a folder nor a regular file") from None
        except OSError as error:
            raise self.bad(error.strerror or "cannot be read") from None
        kind = find_compression(self._file.read(MAGIC_BYTES))
        self._file.seek(0)
        self.compressed = kind is not None
        self._read = self._file.read if kind is None else DecompressedReader(self._file.read, kind).read

    def __enter__(self) -> DecompressedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def bad(self, what: str) -> BadSource:
        """What is wrong with this file."""
        return BadSource(f"{self.path}: {what}")

    def peek(self, size: int) -> bytes:
        """The next bytes, without taking them."""
        self._ahead = self.read(size)
        self._taken -= len(self._ahead)
        return self._ahead

    def read(self, size: int) -> bytes:
        """`size` bytes; fewer only at the end of the file."""
        parts = [self._ahead[:size]]
        self._ahead = self._ahead[size:]
        left = size - len(parts[0])
        while left > 0 and (chunk := self._next(min(left, CHUNK_BYTES))):
            parts.append(chunk)
            left -= len(chunk)
        data = b"".join(parts)
        self._taken += len(data)
        if self.compressed and self._taken > self._limit:
            raise self.bad(f"decompresses to more than {self._limit >> 20} MiB")
        return data

    def skip(self, size: int) -> None:
        """Leave bytes out. Past the end of a plain file nothing follows: the next read shows it."""
        ahead = min(size, len(self._ahead))
        self._ahead = self._ahead[ahead:]
        size -= ahead
        if not self.compressed:
            try:
                self._file.seek(size, os.SEEK_CUR)
            except (OSError, OverflowError, ValueError):
                raise self.bad("is damaged: it names sizes that no file has") from None
            return
        while size > 0 and (chunk := self.read(min(size, CHUNK_BYTES))):
            size -= len(chunk)

    def drain(self) -> None:
        """Decompress what is left, so that the check sum at the end is looked at."""
        while self.compressed and self.read(CHUNK_BYTES):
            pass

    def _next(self, size: int) -> bytes:
        try:
            return self._read(size)
        except (DamagedData, OSError) as error:
            raise self.bad(f"is damaged or cut short: {str(error)[:120]}") from None
