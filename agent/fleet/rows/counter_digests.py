"""What shows whether counters of two reports can be compared, and whether one moved: two digests, no counter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from agent.fleet.rows.unique_rows import CounterRows
from agent.model.counters import MAXIMUM_VALUE

# Traffic moves on every node that works; rates and bit error rates are no counters.
_TRAFFIC = re.compile(
    r"(?:^lifespan|_(?:bytes|packets|octets|data|pkts|cqes|wqe|requests|stalled_[rw][rd])(?:_phy|_nic)?|_ber_packed)$"
    r"|^ch\d*_|^[rt]x\d+_|^[rt]x_(?:csum|tso|lro|queue|xmit_more|nop|cache)"
    r"|^(?:uni|multi|broad)cast_|_(?:uni|multi|broad)cast(?:_phy)?$"
)
_ALL_ONES = frozenset({(1 << 32) - 1, (1 << 63) - 1})


class CounterDigests(NamedTuple):
    """Digests of a report's counters."""

    shape: int  # which counters which devices have; of equal ones, what is not listed is zero in both
    standing: int  # what counts errors and events, and where each is; 0: all at zero
    saturated: bool  # one of them is at its maximum


class CounterShape:
    """Which counters which devices of one report have."""

    def __init__(self) -> None:
        self.value = 0

    def add(self, subject: str, identity: str | None, names: bytes, more: str = "") -> None:
        """A device that lasts by its identity. `names`: those of its counters (`CounterRows.join`)."""
        after = f" {more}\n" if names and more else f"{more}\n"
        start = crc32(f"{subject} {identity} ".encode("utf-8", "replace"), self.value)
        self.value = crc32(names + after.encode(), start)


class CounterStandings:
    """Where counters of reports are, of the rows that a reader holds."""

    def __init__(self, counters: CounterRows) -> None:
        self._counters = counters
        self._names: list[str] = []
        self._watched = bytearray()
        self._subjects: list[str] = []

    def read(self, shape: int, numbers: Sequence[int]) -> CounterDigests:
        """Of the rows of one report."""
        counters = self._counters
        if len(self._names) < len(counters.names):
            self._names = list(counters.names)
            self._watched += bytes(not _TRAFFIC.search(name) for name in self._names[len(self._watched) :])
        if len(self._subjects) < len(counters.subjects):
            self._subjects = list(counters.subjects)
        lines, saturated = [], False
        names, subjects, watched = self._names, self._subjects, self._watched
        for number in numbers:
            code = counters.name[number]
            if watched[code]:
                name, value = names[code], counters.value[number]
                lines.append(f"{subjects[counters.subject[number]]} {name} {value}")
                saturated = saturated or value in _ALL_ONES or value == MAXIMUM_VALUE.get(name)
        if not lines:
            return CounterDigests(shape, 0, False)
        digest = blake2b("\n".join(sorted(lines)).encode("utf-8", "replace"), digest_size=7).digest()
        return CounterDigests(shape, int.from_bytes(digest, "big") | 1, saturated)
