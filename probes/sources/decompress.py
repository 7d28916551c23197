"""The bytes of a file, decompressed by what it holds (gzip, bzip2, xz, zstd or plain), forward only and bounded."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from probes.host.files import open_regular
from probes.host.interface import BadSource, ReadError

INFLATED_LIMIT_BYTES = 1 << 30  # a bomb ends here; the largest real archive of ours is 2% of it
WINDOW_LIMIT_BYTES = 1 << 27  # what a decompressor may keep in memory: zstd --long=27, twice xz -9
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
        magic = self._file.read(6)
        self._file.seek(0)
        self.compressed = True
        self._errors: tuple[type[Exception], ...] = (OSError, EOFError)
        self._source: _Source = self._decompressor(magic)

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
            return self._source.read(size)
        except self._errors as error:
            text = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise self.bad(f"is damaged or cut short: {text}") from None

    def _decompressor(self, magic: bytes) -> _Source:
        if magic.startswith(b"\x1f\x8b"):
            import gzip
            import zlib

            self._errors += (zlib.error,)
            return gzip.GzipFile(fileobj=self._file)
        if magic.startswith(b"BZh"):
            import bz2

            return _Blocks(self._file, bz2.BZ2Decompressor)
        if magic.startswith(b"\xfd7zXZ\x00"):
            import lzma

            self._errors += (lzma.LZMAError,)
            return _Blocks(self._file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=WINDOW_LIMIT_BYTES))
        if magic.startswith(b"\x28\xb5\x2f\xfd"):
            return self._zstandard()
        self.compressed = False
        return self._file

    def _zstandard(self) -> _Source:
        try:
            import zstandard
        except ImportError:
            raise self.bad("is compressed with zstd, which needs the Python package zstandard") from None
        self._errors += (zstandard.ZstdError,)
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT_BYTES)
        source: _Source = decompressor.stream_reader(self._file, read_across_frames=True, closefd=False)
        return source


class _Source(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _Blocks:
    """bzip2 and xz: streams one after the other, each by a decompressor of its own that bounds its memory."""

    def __init__(self, file: BinaryIO, new: Any) -> None:
        self._file = file
        self._new = new
        self._now = new()

    def read(self, size: int = -1, /) -> bytes:
        while True:
            if self._now.eof:
                following = (self._now.unused_data or self._file.read(CHUNK_BYTES)).lstrip(b"\0")
                if not following:
                    return b""
                self._now = self._new()
            elif self._now.needs_input:
                following = self._file.read(CHUNK_BYTES)
                if not following:
                    raise EOFError("the compressed data ends too early")
            else:
                following = b""
            data: bytes = self._now.decompress(following, size)
            if data:
                return data
