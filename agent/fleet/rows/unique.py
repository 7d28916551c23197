"""Rows that many reports share, and counters, which none do: kept so that a row costs little."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import msgspec

from agent.fleet.rows.devices import Row
from agent.fleet.tables import Table

_MOST, _LEAST = 2**63 - 1, -(2**63)  # of a column; counters are 64 bits without sign
_NOTHING: range = range(0)


class Unique:
    """Distinct rows of one table, with what tells whether two are alike."""

    def __init__(self, table: Table) -> None:
        self.rows: list[Row] = []
        self.digests: list[bytes] = []
        lasting = [place for place, column in enumerate(table.columns[1:]) if not column.volatile]
        self._lasting = itemgetter(*lasting) if table.history and len(lasting) > 1 else None
        self._known: dict[Any, bytes] = {}

    def row(self, number: int) -> Row:
        """A whole row."""
        return self.rows[number]

    def add(self, row: Row) -> int:
        """The row's number."""
        if self._lasting is not None:
            lasting = self._lasting(row)
            digest = self._known.get(lasting)
            if digest is None:
                digest = self._known[lasting] = _digest(lasting)
            self.digests.append(digest)
        self.rows.append(row)
        return len(self.rows) - 1


class Functions:
    """Rows of table pci: most differ from another node's in their serial number alone, which is kept apart."""

    def __init__(self, table: Table) -> None:
        self._alike = Unique(table)
        self._at = [column.name for column in table.columns].index("serial") - 1
        self.kinds: list[Row] = self._alike.rows  # with no serial number
        self.kind, self.serials = array("I"), list[str | None]()
        self.digests: list[bytes] = []
        self._known: dict[Row, int] = {}

    @property
    def rows(self) -> Sequence[int]:
        """As many as there are."""
        return self.kind

    def row(self, number: int) -> Row:
        """A whole row."""
        kind = self.kinds[self.kind[number]]
        return (*kind[: self._at], self.serials[number], *kind[self._at + 1 :])

    def add(self, row: Row) -> int:
        """The row's number."""
        kind = (*row[: self._at], None, *row[self._at + 1 :])
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = self._alike.add(kind)
        return self._another(known, row[self._at])

    def like(self, number: int, serial: str) -> int:
        """Another row, that differs from one in its serial number."""
        return self._another(self.kind[number], serial)

    def _another(self, kind: int, serial: str | None) -> int:
        digest = self._alike.digests[kind]
        if serial is not None:
            digest = blake2b(digest + serial.encode(), digest_size=8).digest()
        self.kind.append(kind)
        self.serials.append(serial)
        self.digests.append(digest)
        return len(self.serials) - 1


class Counters:
    """Rows of table counter, by column."""

    def __init__(self) -> None:
        self.subjects: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.subject, self.name, self.value = array("i"), array("i"), array("q")

    def __len__(self) -> int:
        return len(self.value)

    def add(self, subject: str, counts: Mapping[str, int]) -> Sequence[int]:
        """Those that are not zero; the numbers of their rows."""
        values = [count for count in counts.values() if count]
        if not values:
            return _NOTHING
        start, names = len(self.value), self.names
        code = self.subjects.setdefault(subject, len(self.subjects))
        self.subject.extend([code] * len(values))
        self.name.extend([names.setdefault(name, len(names)) for name, count in counts.items() if count])
        try:
            self.value.extend(values)
        except OverflowError:
            del self.value[start:]
            self.value.extend([max(min(count, _MOST), _LEAST) for count in values])
        return range(start, start + len(values))


def _digest(lasting: Any) -> bytes:
    """Null columns at the end count for nothing: a later version may add some."""
    text = msgspec.json.encode(lasting)[1:-1].rstrip(b",nul")
    return blake2b(text, digest_size=8).digest()
