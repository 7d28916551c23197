"""Rows of one table, with what shows whether two nodes' are alike; and counters, by column."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import compress, repeat
from operator import itemgetter

import msgspec

from agent.fleet.row_digests import COMPARED
from agent.fleet.rows.devices import Row
from agent.fleet.rows.row_columns import LEAST, MOST
from agent.fleet.tables import Table

_NOTHING: range = range(0)
_ENDS = b",nul]"  # null columns at the end count for nothing: a later version may add some
_encode = msgspec.json.Encoder().encode


class ComparedColumns:
    """Digests of a node's rows, of the columns that questions compare."""

    def __init__(self, table: Table) -> None:
        names = [column.name for column in table.own]
        self._compared = itemgetter(*(names.index(name) for name in COMPARED[table.name]))

    def digest(self, rows: Sequence[Row]) -> int:
        """64 bits with a sign; 0: there are no rows."""
        if not rows:
            return 0
        digest = blake2b(_encode(list(map(self._compared, rows))), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)


class Rows:
    """Rows that are mostly a node's own."""

    def __init__(self, table: Table) -> None:
        self.rows: list[Row] = []
        lasting = [place for place, column in enumerate(table.own) if not column.volatile]
        self._lasting = itemgetter(*lasting) if table.history and len(lasting) > 1 else None

    def row(self, number: int) -> Row:
        """A whole row."""
        return self.rows[number]

    def extend(self, rows: list[Row]) -> range:
        """Their numbers."""
        start = len(self.rows)
        self.rows += rows
        return range(start, start + len(rows))

    def digest(self, numbers: Sequence[int]) -> str:
        """Of these rows without what is volatile, in any order, 16 hex digits; "": none, or a table without history."""
        if not numbers or self._lasting is None:
            return ""
        rows, lasting = self.rows, self._lasting
        return blake2b(
            b"\n".join(sorted([_encode(lasting(rows[n])).rstrip(_ENDS) for n in numbers])), digest_size=8
        ).hexdigest()


class Shared(Rows):
    """Rows that many nodes have: each has its own digest."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.digests: list[bytes] = []
        self._known: dict[Row, int] = {}

    def number(self, row: Row) -> int:
        """Of an equal row, or of a new one."""
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = len(self.rows)
            self.rows.append(row)
            if self._lasting is not None:
                self.digests.append(blake2b(_encode(self._lasting(row)).rstrip(_ENDS), digest_size=8).digest())
        return known

    def digest(self, numbers: Sequence[int]) -> str:
        """Of these rows without what is volatile, in any order."""
        return _join_digests(self.digests, numbers) if self._lasting is not None else ""


class Functions:
    """Rows of table pci: most differ from another node's in their serial number alone, which is kept apart."""

    def __init__(self, table: Table) -> None:
        self._alike = Shared(table)
        self.serial_at = [column.name for column in table.own].index("serial")
        self.kinds: list[Row] = self._alike.rows  # with no serial number
        self.kind, self.serials = array("I"), list[str | None]()
        self.digests: list[bytes] = []

    @property
    def rows(self) -> Sequence[int]:
        """As many as there are."""
        return self.kind

    def row(self, number: int) -> Row:
        """A whole row."""
        kind = self.kinds[self.kind[number]]
        return (*kind[: self.serial_at], self.serials[number], *kind[self.serial_at + 1 :])

    def kinds_of(self, numbers: Sequence[int]) -> Sequence[int]:
        """Numbers of these rows without their serial numbers."""
        return [self.kind[number] for number in numbers]

    def add(self, row: Row) -> int:
        """The row's number."""
        kind = (*row[: self.serial_at], None, *row[self.serial_at + 1 :])
        return self._another(self._alike.number(kind), row[self.serial_at])

    def like(self, number: int, serial: str) -> int:
        """Another row, that differs from one in its serial number."""
        return self._another(self.kind[number], serial)

    def digest(self, numbers: Sequence[int]) -> str:
        """Of these rows without what is volatile, in any order."""
        return _join_digests(self.digests, numbers)

    def _another(self, kind: int, serial: str | None) -> int:
        digest = self._alike.digests[kind]
        if serial is not None:
            digest = blake2b(digest + serial.encode(), digest_size=8).digest()
        self.kind.append(kind)
        self.serials.append(serial)
        self.digests.append(digest)
        return len(self.serials) - 1


class CounterRows:
    """Rows of table counter, by column."""

    def __init__(self) -> None:
        self.subjects: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self._lists: dict[tuple[str, ...], tuple[array[int], bytes]] = {}
        self.cost = 0  # bytes of lists of names that are remembered, about
        self.subject, self.name, self.value = array("i"), array("i"), array("q")

    def __len__(self) -> int:
        return len(self.value)

    def add(self, subject: str, names: tuple[str, ...], values: Iterable[int]) -> Sequence[int]:
        """Those that are not zero; the numbers of their rows. `values` is gone through several times."""
        if not any(values):
            return _NOTHING
        codes = self._list(names)[0]
        start = len(self.value)
        try:
            self.value.extend(compress(values, values))
        except OverflowError:
            del self.value[start:]
            self.value.extend([max(min(count, MOST), LEAST) for count in values if count])
        self.name.extend(compress(codes, values))
        end = len(self.value)
        code = self.subjects.setdefault(subject, len(self.subjects))
        self.subject.extend(repeat(code, end - start))
        return range(start, end)

    def join(self, names: tuple[str, ...]) -> bytes:
        """Names of counters as one text."""
        return self._list(names)[1]

    def _list(self, names: tuple[str, ...]) -> tuple[array[int], bytes]:
        """Most devices have the list of names of others: it is gone through once."""
        known = self._lists.get(names)
        if known is None:
            codes = array("i", [self.names.setdefault(name, len(self.names)) for name in names])
            known = self._lists[names] = codes, " ".join(names).encode("utf-8", "replace")
            self.cost += 200 + 12 * len(names) + len(known[1])
        return known


def _join_digests(digests: list[bytes], numbers: Sequence[int]) -> str:
    if not numbers:
        return ""
    return blake2b(b"".join(sorted([digests[number] for number in numbers])), digest_size=8).hexdigest()
