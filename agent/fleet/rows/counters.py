"""Counters of reports: rows of table counter by column, two digests of each report's, and rows of table rate.

The digests show whether counters of two reports can be compared, and whether one moved; they hold no counter.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from itertools import compress
from struct import error, pack
from typing import NamedTuple
from zlib import crc32

from msgspec.json import Decoder

from agent.fleet.rows.devices import Row
from agent.fleet.rows.recent import decode_part
from agent.fleet.rows.report_fields import TopologyFields, WindowFields
from agent.fleet.rows.row_columns import LEAST, MOST
from agent.fleet.rows.unique_rows import list_numbers
from agent.fleet.rows.verdicts import window_seconds
from agent.model.counters import LINK, MAXIMUM_VALUE, NETDEV, PORT
from agent.model.error_counters import find_error_family
from agent.model.finding import list_devices

# Traffic moves on every node that works; rates and bit error rates are no counters.
_TRAFFIC = re.compile(
    r"(?:^lifespan|_(?:bytes|packets|octets|data|pkts|cqes|wqe|requests|stalled_[rw][rd])(?:_phy|_nic)?|_ber_packed)$"
    r"|^ch\d*_|^[rt]x\d+_|^[rt]x_(?:csum|tso|lro|queue|xmit_more|nop|cache)"
    r"|^(?:uni|multi|broad)cast_|_(?:uni|multi|broad)cast(?:_phy)?$"
)
_MOST_LAYOUTS = 64  # that are remembered: some 100 KiB each
_ALL_ONES = frozenset({(1 << 32) - 1, (1 << 63) - 1})


class CounterDigests(NamedTuple):
    """Digests of a report's counters."""

    shape: int  # which counters which devices have; of equal ones, what is not listed is zero in both
    standing: int  # what counts errors and events, and where each is; 0: all at zero
    needs_judging: bool  # also where none moved: one is at its maximum, or the node reported a count without a date


class NameList:
    """Names of a device's counters; equal ones are the same object."""

    __slots__ = ("codes", "joined", "watched")

    def __init__(self, names: tuple[str, ...], codes: tuple[int, ...]) -> None:
        self.codes, self.joined = codes, " ".join(names)
        # what counts errors and events, with the value at which it stops
        self.watched = [None if _TRAFFIC.search(name) else (name, MAXIMUM_VALUE.get(name)) for name in names]


class _Layout(NamedTuple):
    """All counters of several devices, one after the other."""

    places: list[int]  # a range would make an object of each, every time
    subjects: list[str]
    codes: list[int]  # of the subjects
    names: list[int]
    watched: list[tuple[str, int | None] | None]


class CounterRows:
    """Rows of table counter, by column."""

    def __init__(self) -> None:
        self.subjects: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self._lists: dict[tuple[str, ...], NameList] = {}
        self._layouts: dict[tuple[tuple[str, ...], tuple[NameList, ...]], _Layout] = {}
        self.cost = 0  # bytes of lists of names that are remembered, about
        self.subject, self.name, self.value = (
            array("I"),
            array("I"),
            array("q"),
        )  # signed 32 bits are several times slower

    def __len__(self) -> int:
        return len(self.value)

    def list_of(self, names: tuple[str, ...]) -> NameList:
        """Most devices have the list of names of others: it is gone through once."""
        known = self._lists.get(names)
        if known is None:
            codes = tuple([self.names.setdefault(name, len(self.names)) for name in names])
            known = self._lists[names] = NameList(names, codes)
            self.cost += 200 + 20 * len(names) + len(known.joined)
        return known

    def add(
        self, subjects: Sequence[str], lists: Sequence[NameList], values: list[int]
    ) -> tuple[array[int], list[str], bool]:
        """Those that are not zero, of several devices at once: numbers of their rows; those that count errors and
        events, as texts; and whether one of these is at its maximum."""
        key = tuple(subjects), tuple(lists)
        layout = self._layouts.get(key) or self._lay_out(*key)
        places = list(compress(layout.places, values))
        counts = list(map(values.__getitem__, places))
        start = len(self.value)
        try:
            packed = pack(f"{len(counts)}q", *counts)
        except error:  # counters are 64 bits without sign
            counts = [max(min(count, MOST), LEAST) for count in counts]
            packed = pack(f"{len(counts)}q", *counts)
        self.value.frombytes(packed)
        self.subject.extend(map(layout.codes.__getitem__, places))
        self.name.extend(map(layout.names.__getitem__, places))
        watched = map(layout.watched.__getitem__, places)
        standing, is_at_end = [], False
        for of, place, count in zip(watched, places, counts, strict=True):
            if of is not None:
                standing.append(f"{layout.subjects[place]} {of[0]} {count}")
                is_at_end = is_at_end or count in _ALL_ONES or count == of[1]
        return list_numbers(start, len(self.value)), standing, is_at_end

    def _lay_out(self, subjects: tuple[str, ...], lists: tuple[NameList, ...]) -> _Layout:
        layout = _Layout([*range(sum(len(known.codes) for known in lists))], [], [], [], [])
        for subject, known in zip(subjects, lists, strict=True):
            count = len(known.codes)
            layout.subjects.extend([subject] * count)
            layout.codes.extend([self.subjects.setdefault(subject, len(self.subjects))] * count)
            layout.names.extend(known.codes)
            layout.watched.extend(known.watched)
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        self._layouts[subjects, lists] = layout
        return layout


class ReportCounters:
    """Counters of one report, or of a part that other reports have, too. They become rows all at once, when the first
    result is asked for; rows of parts are before them."""

    def __init__(self, rows: CounterRows) -> None:
        self._rows = rows
        self._subjects: list[str] = []
        self._lists: list[NameList] = []
        self._values: list[int] = []
        self._shapes: list[str] = []
        self._shape = 0
        self._numbers = array("I")
        self._standing: list[str] = []
        self._needs_judging = False

    def add_device(
        self, subject: str, identity: str | None, names: tuple[str, ...], values: Collection[int], more: str = ""
    ) -> None:
        """A device that lasts by its identity; `more`: what else shows which counters it has."""
        known = self._rows.list_of(names)
        self._add_shape(subject, identity, known.joined, more)
        self._add_rows(subject, known, values)

    def add_shape(self, subject: str, identity: str | None, names: tuple[str, ...] = (), more: str = "") -> None:
        """Which counters a device has, without their rows."""
        self._add_shape(subject, identity, self._rows.list_of(names).joined, more)

    def add_rows(self, subject: str, counts: Mapping[str, int]) -> None:
        """Counters of a device whose shape is added elsewhere."""
        if counts:
            self._add_rows(subject, self._rows.list_of(tuple(counts)), counts.values())

    def include(self, part: ReportCounters) -> None:
        """Rows of a part; its shape is that of a device."""
        self._numbers += part.numbers
        self._standing += part._standing
        self._needs_judging = self._needs_judging or part._needs_judging

    def add_part_shape(self, part: ReportCounters) -> None:
        """The shape of a part whose rows are included."""
        self._shape = crc32(part.shape.to_bytes(4, "big"), self.shape)

    @property
    def numbers(self) -> array[int]:
        """Of rows of table counter."""
        if self._subjects:
            numbers, standing, is_at_end = self._rows.add(self._subjects, self._lists, self._values)
            self._subjects, self._lists, self._values = [], [], []
            self._numbers += numbers
            self._standing += standing
            self._needs_judging = self._needs_judging or is_at_end
        return self._numbers

    @property
    def shape(self) -> int:
        """Which counters which devices have."""
        if self._shapes:
            self._shape = crc32("".join(self._shapes).encode("utf-8", "replace"), self._shape)
            self._shapes = []
        return self._shape

    def digests(self) -> CounterDigests:
        """Of all that was added."""
        if not self.numbers or not self._standing:
            return CounterDigests(self.shape, 0, False)
        digest = blake2b("\n".join(sorted(self._standing)).encode("utf-8", "replace"), digest_size=7).digest()
        return CounterDigests(self.shape, int.from_bytes(digest, "big") | 1, self._needs_judging)

    def _add_shape(self, subject: str, identity: str | None, names: str, more: str) -> None:
        self._shapes += (f"{subject} {identity} ", names, f" {more}\n" if names and more else f"{more}\n")

    def _add_rows(self, subject: str, names: NameList, values: Collection[int]) -> None:
        if names.codes:
            self._subjects.append(subject)
            self._lists.append(names)
            self._values += values


_MOVED = Decoder(dict[str, dict[str, int]])


def rate_rows(window: WindowFields | None, topology: TopologyFields, rails: Mapping[str, int]) -> list[Row]:
    """`rails`: by NIC. Raises DamagedPart."""
    seconds = window_seconds(window)
    if window is None or seconds is None or bytes(window.moved) in (b"", b"{}"):
        return []
    moved = decode_part(_MOVED, window.moved, "counters_window.moved")
    rows = [(subject, name, grown) for subject, counts in moved.items() for name, grown in counts.items()]
    errors = [row for row in rows if find_error_family(row[1]) is not None and 0 < row[2] <= MOST]
    if not errors:
        return []
    labels = {
        **{gpu.pci: gpu.label for gpu in topology.gpus if gpu.pci},
        **{netdev.id: netdev.label for netdev in topology.netdevs},
        **{nic.id: nic.label for nic in topology.nics},
        **{gpu.id: gpu.label for gpu in topology.gpus},
    }
    interfaces = {netdev.id: netdev.label for netdev in topology.netdevs}
    rail_of = {
        **rails,
        **{dev.id: rails[dev.nic] for dev in topology.netdevs if dev.nic is not None and dev.nic in rails},
    }

    def make_row(subject: str, name: str, grown: int) -> Row:
        label = _find_label(subject, interfaces if subject.startswith(NETDEV) else labels)
        return subject, name, label, _find_place(subject, rail_of), grown, seconds

    return [make_row(*row) for row in errors]


def _find_label(subject: str, labels: Mapping[str, str | None]) -> str | None:
    """Of the device, with the number of a link or port."""
    kind, _, rest = subject.partition(":")
    (device,) = list_devices(subject)[:1] or [rest]
    label = labels.get(device) or device
    number = rest.rpartition("/")[2] if "/" in rest else ""
    return f"{label}/{number}" if kind in (LINK, PORT) and number else label


def _find_place(subject: str, rails: Mapping[str, int]) -> str:
    kind = subject.partition(":")[0]
    device = next(iter(list_devices(subject)), "")
    return f"rail {rails[device]}" if kind in (PORT, NETDEV) and device in rails else subject
