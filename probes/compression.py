"""Bytes without their compression (gzip, bzip2, xz, zstd), by what they begin with, forward only and in bounded memory.

Several streams one after the other are one; zeros behind the last are padding.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

WINDOW_LIMIT_BYTES = 1 << 27  # what a decompressor may keep in memory: zstd --long=27, twice xz -9
MOST_PARTS = 10_000  # of bytes in memory: an empty one has a few bytes
STEP_BYTES = 1 << 16  # that are read at once, and at most come of them
ZSTD_STEP_BYTES = 1 << 8  # it takes no limit, and a block of 4 bytes may be 128 KiB of one byte
_BEGINS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"))
MAGIC_BYTES = 6  # that `find_compression` needs


class DamagedData(Exception):
    """Compressed bytes that are wrong, or end too early; the message states which, without their name."""


def find_compression(head: bytes) -> str | None:
    """How bytes are compressed that begin so.

    >>> find_compression(b"BZh91AY"), find_compression(b"BZ")
    ('bzip2', None)
    """
    return next((kind for begin, kind in _BEGINS if head.startswith(begin)), None)


def decompress(data: bytes, limit: int) -> bytes:
    """At most `limit` bytes of what is in them; plain bytes as they are. Raises DamagedData.

    >>> import gzip
    >>> decompress(gzip.compress(b"a line"), 100), decompress(gzip.compress(b"a line"), 3), decompress(b"plain", 3)
    (b'a line', b'a l', b'plain')
    """
    kind = find_compression(data)
    if kind is None:
        return data
    reader = DecompressedReader(BytesIO(data).read, kind, MOST_PARTS)
    parts: list[bytes] = []
    while limit > 0 and (part := reader.read(limit)):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


class DecompressedReader:
    """Reads what is in compressed bytes. `read`: the next of these bytes, at most so many; none at their end."""

    def __init__(self, read: Callable[[int], bytes], kind: str, most_parts: int | None = None) -> None:
        self._read, self._kind, self._most_parts = read, kind, most_parts
        self._step = ZSTD_STEP_BYTES if kind == "zstd" else STEP_BYTES
        self._parts = 0
        self._codec: Any = None
        self._errors: tuple[type[Exception], ...] = ()
        self._waiting = b""  # that was read, and not decompressed
        self._needs_input = True
        self._out = b""
        self._taken = 0  # bytes of `_out`

    def read(self, size: int) -> bytes:
        """At least one byte, at most `size`; none at the end. Raises DamagedData, and what `read` raises."""
        while self._taken == len(self._out):
            if not self._fill():
                return b""
        out = self._out[self._taken : self._taken + size]
        self._taken += len(out)
        return out

    def _fill(self) -> bool:
        """Decompress some more; whether there may be more."""
        if self._codec is None:
            self._waiting = (self._waiting or self._read(self._step)).lstrip(b"\0")
            if not self._waiting:
                return False
            self._parts += 1
            if self._most_parts is not None and self._parts > self._most_parts:
                raise DamagedData(f"damaged {self._kind}: more than {self._most_parts} parts")
            self._codec, self._errors = _make_codec(self._kind)
        data = self._waiting if self._waiting or not self._needs_input else self._read(self._step)
        is_end = not data and self._needs_input
        try:
            self._out, self._taken = self._decompress(data), 0
        except self._errors as error:
            where = f" in part {self._parts}, or no {self._kind} behind the one before" if self._parts > 1 else ""
            raise DamagedData(f"damaged {self._kind}: {error or type(error).__name__}{where}") from error
        if self._codec.eof:
            self._waiting, self._codec, self._needs_input = self._codec.unused_data, None, True
        elif is_end and not self._out:
            raise DamagedData(f"truncated {self._kind}")
        return True

    def _decompress(self, data: bytes) -> bytes:
        if self._kind == "zstd":
            self._waiting = b""
            out: bytes = self._codec.decompress(data)
            return out
        out = self._codec.decompress(data, STEP_BYTES)
        if self._kind == "gzip":
            self._waiting = self._codec.unconsumed_tail
        else:
            self._waiting, self._needs_input = b"", self._codec.needs_input
        return out


def _make_codec(kind: str) -> tuple[Any, tuple[type[Exception], ...]]:
    """What decompresses one part, and the errors that it raises. Its module is imported here: few sources need one."""
    if kind == "gzip":
        import zlib

        return zlib.decompressobj(wbits=31), (zlib.error,)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2Decompressor(), (OSError, EOFError)
    if kind == "xz":
        import lzma

        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=WINDOW_LIMIT_BYTES), (lzma.LZMAError, EOFError)
    try:
        import zstandard
    except ImportError:
        raise DamagedData("compressed with zstd, which needs the Python package zstandard") from None
    codec = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT_BYTES).decompressobj()
    return codec, (zstandard.ZstdError,)
