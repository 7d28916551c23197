"""Bytes of files as lines: gzip, lines of any length, lines that a log collector wrapped in JSON."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import msgspec

_LINE_BYTES = 1 << 16
LARGEST = 64 << 30  # bytes of one file


def inflate(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Gzip as a stream: a bomb is read piece by piece, and ends at the limit."""
    inflate = zlib.decompressobj(wbits=31)
    size = 0
    for chunk in chunks:
        data = chunk
        while data:
            try:
                out = inflate.decompress(data, 1 << 20)
            except zlib.error:
                return
            size += len(out)
            if size > LARGEST:
                return
            if out:
                yield out
            if inflate.eof:
                data = inflate.unused_data
                inflate = zlib.decompressobj(wbits=31)
                if data[:2] != b"\x1f\x8b":
                    return
                continue
            data = inflate.unconsumed_tail
            if not out and not data:
                break


def split_lines(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Lines of at most 64 KiB, each with its end."""
    pending = head
    for chunk in rest:
        lines = pending.split(b"\n")
        pending = lines.pop()
        for line in lines:
            yield line + b"\n"
        pending += chunk
        while len(pending) > _LINE_BYTES and b"\n" not in pending[:_LINE_BYTES]:
            yield pending[:_LINE_BYTES]
            end = pending.find(b"\n", _LINE_BYTES)
            pending = pending[end:] if end >= 0 else b""  # the rest of so long a line is left out
            if end < 0:
                break
    lines = pending.split(b"\n")
    last = lines.pop()
    for line in lines:
        yield line + b"\n"
    if last:
        yield last


class _WrappedLine(msgspec.Struct, frozen=True):
    """A line of a log collector: of Docker's json-file driver, Fluent Bit, journalctl -o json, and the like."""

    log: str | None = None
    message: str | None = None
    msg: str | None = None
    journal: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    time: str | float | None = None
    timestamp: str | float | None = None

    def write(self) -> str | None:
        """As a plain line, with its time in front."""
        journal = self.journal if isinstance(self.journal, str) else None
        text = next((text for text in (self.log, self.message, self.msg, journal) if text is not None), None)
        time = next((time for time in (self.time, self.timestamp) if isinstance(time, str)), None)
        return f"{time} {text}" if time and text and _ISO.fullmatch(time) else text


_ISO = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d)")


def is_wrapped(head: bytes) -> bool:
    """Whether each line is a JSON object that has a line of a log."""
    try:
        return msgspec.json.decode(head.partition(b"\n")[0], type=_WrappedLine).write() is not None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def unwrap(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines themselves; one that is no object stays as it is."""
    decode = msgspec.json.Decoder(_WrappedLine).decode
    for line in lines:
        try:
            text = decode(line).write()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = None
        yield line if text is None else text.rstrip("\n").replace("\n", " ").encode("utf-8", "replace") + b"\n"


def gather(head: bytes, rest: Iterator[bytes], limit: int) -> bytes | None:
    """The whole file; None: it is larger than the limit."""
    parts, size = [head], len(head)
    for chunk in rest:
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            return None
    return b"".join(parts)
