"""Rows of one table, with what shows whether two nodes' are alike."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from hashlib import blake2b
from operator import itemgetter

import msgspec

from agent.fleet.rows.devices import Row
from agent.fleet.tables import COMPARED, Table

_MOST_ALIKE = 256  # lists of rows whose digest is remembered
_ENDS = b",nul]"  # null columns at the end count for nothing: a later version may add some
_encode, _encode_lines = msgspec.json.Encoder().encode, msgspec.json.Encoder().encode_lines


class ComparedColumns:
    """Digests of a node's rows, of the columns that questions compare."""

    def __init__(self, table: Table) -> None:
        names = [column.name for column in table.own]
        self._compared = itemgetter(*(names.index(name) for name in COMPARED[table.name]))
        self._known: dict[tuple[Row, ...], int] = {}  # most nodes of a kind are alike in these

    def digest(self, rows: Sequence[Row]) -> int:
        """64 bits with a sign; 0: there are no rows."""
        if not rows:
            return 0
        compared = tuple(map(self._compared, rows))
        digest = self._known.get(compared)
        if digest is None:
            if len(self._known) >= _MOST_ALIKE:
                self._known.clear()
            data = blake2b(_encode(compared), digest_size=8).digest()
            digest = self._known[compared] = int.from_bytes(data, "big", signed=True)
        return digest


_NUMBERS = array("I", range(1024))


def list_numbers(start: int, end: int) -> array[int]:
    """All from `start` to before `end`: copied, where a range would make an object of each."""
    while len(_NUMBERS) < end:
        _NUMBERS.extend(range(len(_NUMBERS), 2 * len(_NUMBERS)))
    return _NUMBERS[start:end]


class Rows:
    """Rows that are mostly a node's own. `lasting_alike`: without what is volatile they are mostly those of others."""

    def __init__(self, table: Table, lasting_alike: bool = False) -> None:
        self.rows: list[Row] = []
        lasting = [place for place, column in enumerate(table.own) if not column.volatile]
        self._lasting = itemgetter(*lasting) if table.history and len(lasting) > 1 else None
        self._digests: dict[tuple[Row, ...], str] | None = {} if lasting_alike else None

    def row(self, number: int) -> Row:
        """A whole row."""
        return self.rows[number]

    def extend(self, rows: list[Row]) -> array[int]:
        """Their numbers."""
        start = len(self.rows)
        self.rows += rows
        return list_numbers(start, len(self.rows))

    def digest(self, rows: list[Row]) -> str:
        """Of these rows without what is volatile, in any order, 16 hex digits; "": none, or a table without history."""
        if not rows or self._lasting is None:
            return ""
        lasting = tuple(map(self._lasting, rows))
        if self._digests is None:
            return _digest_lines(lasting)
        if lasting not in self._digests:
            if len(self._digests) >= _MOST_ALIKE:
                self._digests.clear()
            self._digests[lasting] = _digest_lines(lasting)
        return self._digests[lasting]


class Shared(Rows):
    """Rows that many nodes have: each has its own digest, and a list of them is gone through once."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.digests: list[bytes] = []
        self._known: dict[Row, int] = {}
        self._of_lists: dict[bytes, str] = {}
        self.cost = 0  # bytes of lists that are remembered, about

    def number(self, row: Row) -> int:
        """Of an equal row, or of a new one."""
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = len(self.rows)
            self.rows.append(row)
            if self._lasting is not None:
                self.digests.append(blake2b(_encode(self._lasting(row)).rstrip(_ENDS), digest_size=8).digest())
        return known

    def join_digests(self, numbers: array[int]) -> str:
        """Of these rows without what is volatile, in any order."""
        if self._lasting is None:
            return ""
        key = numbers.tobytes()
        digest = self._of_lists.get(key)
        if digest is None:
            digest = self._of_lists[key] = _join_digests(self.digests, numbers)
            self.cost += 300 + len(key)
        return digest


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

    def kinds_of(self, numbers: array[int]) -> bytes:
        """Numbers of these rows without their serial numbers, 32 bits each."""
        return array("I", map(self.kind.__getitem__, numbers)).tobytes()

    def add(self, row: Row) -> int:
        """The row's number."""
        kind = (*row[: self.serial_at], None, *row[self.serial_at + 1 :])
        return self._another(self._alike.number(kind), row[self.serial_at])

    def like(self, number: int, serial: str) -> int:
        """Another row, that differs from one in its serial number."""
        return self._another(self.kind[number], serial)

    def join_digests(self, numbers: array[int]) -> str:
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


def _digest_lines(rows: Sequence[Row]) -> str:
    lines = _encode_lines(rows).split(b"\n")[:-1]
    return blake2b(b"\n".join(sorted([line.rstrip(_ENDS) for line in lines])), digest_size=8).hexdigest()


def _join_digests(digests: list[bytes], numbers: array[int]) -> str:
    if not numbers:
        return ""
    return blake2b(b"".join(sorted(map(digests.__getitem__, numbers))), digest_size=8).hexdigest()
