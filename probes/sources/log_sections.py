"""A log cut at its rules (lines of 44 underscores), streamed: of each section as much as somebody wants of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from probes.host.interface import OUTPUT_LIMIT_BYTES
from probes.sources.decompress import Inflated

HEAD_BYTES = 4096  # of every section: enough to see what it is
SECTIONS_LIMIT = 200_000
CHUNK_BYTES = 1 << 20
RULE = b"\n" + b"_" * 44 + b"\n"


class Section(NamedTuple):
    """What stands between two rules. `cut`: it goes on behind `text`."""

    text: bytes
    cut: bool


def sections(stream: Inflated, is_wanted: Callable[[bytes], bool]) -> Iterator[Section]:
    """Every section in order; whole (up to OUTPUT_LIMIT_BYTES) where its head is wanted, else only its head.
    Raises BadSource."""
    ahead = b"\n"
    count, section = 0, _Open(is_wanted)
    while chunk := _chunk(stream):
        ahead += chunk
        start = 0
        while (at := ahead.find(RULE, start)) >= 0:
            section.add(ahead[start : at + 1])
            yield section.closed()
            count, section = count + 1, _Open(is_wanted)
            if count > SECTIONS_LIMIT:
                raise stream.bad(f"is refused: it holds more than {SECTIONS_LIMIT:,} sections")
            start = at + len(RULE) - 1  # its last byte may begin the next rule
        rest = max(start, len(ahead) - len(RULE))
        section.add(ahead[start:rest])
        ahead = ahead[rest:]
    section.add(ahead)
    yield section.closed()


class _Open:
    def __init__(self, is_wanted: Callable[[bytes], bool]) -> None:
        self._is_wanted = is_wanted
        self._limit: int | None = None
        self._data = bytearray()
        self._cut = False

    def add(self, part: bytes) -> None:
        if self._limit is None:
            self._data += part
            if len(self._data) < HEAD_BYTES:
                return
            self._limit = OUTPUT_LIMIT_BYTES if self._is_wanted(bytes(self._data[:HEAD_BYTES])) else HEAD_BYTES
        elif len(self._data) < self._limit:
            self._data += part
        elif part:
            self._cut = True
        if len(self._data) > self._limit:
            del self._data[self._limit :]
            self._cut = True

    def closed(self) -> Section:
        return Section(bytes(self._data), self._cut)


def _chunk(stream: Inflated) -> bytes:
    """With the line ends of Unix: logs come back from Windows."""
    chunk = stream.read(CHUNK_BYTES)
    if chunk.endswith(b"\r"):
        chunk += stream.read(1)
    return chunk.replace(b"\r\n", b"\n")
