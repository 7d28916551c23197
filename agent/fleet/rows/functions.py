"""PCI functions of a report -> rows of tables pci and link, and their counters.

On most nodes of a kind they differ in serial numbers alone. A list is compared with lists that were read, piece by
piece between serial numbers; else a function with functions that stood at its place. Only what is new is decoded.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from agent.fleet.rows import device_fields, devices
from agent.fleet.rows.counters import CounterRows, ReportCounters
from agent.fleet.rows.recent import DamagedPart, Lists, Members, decode_part, following, serial_place
from agent.fleet.rows.unique_rows import Functions, Shared

DigestGroups = dict[str, tuple[str | None, str | None]]


class FunctionRows(NamedTuple):
    """What a list of functions came to."""

    rows: array[int]  # of table pci
    links: array[int]
    kinds: DigestGroups  # vendor and device of every function
    counters: ReportCounters
    alike: bytes  # numbers of their rows without serial numbers


class KnownFunctions(NamedTuple):
    """A list that was read before, and the serial numbers of its functions at some places."""

    rows: FunctionRows
    places: list[int]
    serials: list[str]


class _Function(NamedTuple):
    """What is known of a function that was read."""

    id: str
    kind: tuple[str | None, str | None]
    row: int
    link: int | None
    counters: ReportCounters
    hole: tuple[int, int]  # where in its text its serial number is; (0, 0): nowhere


class FunctionReader:
    """Holds what was read until a new one takes its place."""

    def __init__(self, pci: Functions, links: Shared, counters: CounterRows) -> None:
        self._pci, self._links, self._counters = pci, links, counters
        self._lists, self._members = Lists(), Members()
        self.cost = 0  # bytes that are remembered, about

    def find(self, product: object, text: bytes, at: int) -> tuple[KnownFunctions, int] | None:
        """A list that begins at `at` and differs in serial numbers alone from one that was read; where it ends."""
        hit = self._lists.find(product, text, at)
        return None if hit is None else (KnownFunctions(*hit[:3]), hit[3])

    def read(self, whole: Raw | bytes, product: str | None) -> tuple[FunctionRows, bool]:
        """And whether such a list was read before. Raises DamagedPart."""
        text = bytes(whole)
        hit = self.find(product, text, 0)
        if hit is None or hit[1] != len(text):
            return self._one_by_one(text, product), False
        return self.repeat(hit[0]), True

    def repeat(self, hit: KnownFunctions) -> FunctionRows:
        """The rows of a list that was found."""
        known, places, serials = hit
        rows, like = known.rows[:], self._pci.like
        for place, serial in zip(places, serials, strict=True):
            rows[place] = like(rows[place], serial)
        return known._replace(rows=rows)

    def _one_by_one(self, text: bytes, product: str | None) -> FunctionRows:
        rows, links, kinds, counters = array("I"), array("I"), DigestGroups(), ReportCounters(self._counters)
        holes: list[tuple[int, int, int]] = []
        raws: list[Raw] | None = None
        place, at = 0, following(text, 1)
        while text[at : at + 1] == b"{":
            start, hit = at, self._members.find((product, place), text, at)
            if hit is not None:
                part, at, serial = hit
                rows.append(part.row if serial is None else self._pci.like(part.row, serial))
            else:
                raws = decode_part(_RAWS, text, "topology.pci") if raws is None else raws
                part = self._function(product, bytes(raws[place]), place)
                at += len(raws[place])
                serial = None
                rows.append(part.row)
            kinds[part.id] = part.kind
            if part.hole[1]:
                first = start + part.hole[0]
                holes.append((place, first, first + len(serial) if serial is not None else start + part.hole[1]))
            if part.link is not None:
                links.append(part.link)
            counters.include(part.counters)
            counters.add_part_shape(part.counters)
            place += 1
            at = following(text, at)
        if text[:1] != b"[" or text[at:] != b"]":  # no list, or one of something else
            decode_part(_FUNCTION, bytes(decode_part(_RAWS, text, "topology.pci")[place]), "topology.pci", place)
        if len(kinds) != place:
            raise DamagedPart("an id appears twice - in topology.pci")
        read = FunctionRows(rows, links, kinds, counters, self._pci.kinds_of(rows))
        if place and not counters.numbers:  # errors are of one node
            self._lists.add(product, text, holes, read)
            self.cost += len(text)
        return read

    def _function(self, product: str | None, member: bytes, place: int) -> _Function:
        f = decode_part(_FUNCTION, member, "topology.pci", place)
        counts = devices.aer(decode_part(_AER, f.aer, "topology.pci", place))
        link, row = devices.link_row(f), self._pci.add(devices.function_row(f))
        linked = None if link is None else self._links.number(link)
        counters = ReportCounters(self._counters)
        counters.add_shape(f.id, None, tuple(counts))
        counters.add_rows(f"pci:{f.id}", counts)
        hole = serial_place(member, f.serial)
        part = _Function(f.id, (f.vendor, f.device), row, linked, counters, hole)
        if not counters.numbers:
            self._members.add((product, place), member, part, part.hole)
            self.cost += len(member)
        return part


_FUNCTION, _RAWS = Decoder(device_fields.FunctionFields), Decoder(list[Raw])
_AER = msgspec.json.Decoder(dict[str, dict[str, int]] | None)
