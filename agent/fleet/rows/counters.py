"""Counters of reports: rows of table counter by column, two digests of each report's, and rows of table rate.

The digests show whether counters of two reports can be compared, and whether one moved; they hold no counter.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Mapping
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
_ALL_ONES = frozenset({(1 << 32) - 1, (1 << 63) - 1})


class CounterDigests(NamedTuple):
    """Digests of a report's counters."""

    shape: int  # which counters which devices have; of equal ones, what is not listed is zero in both
    standing: int  # what counts errors and events, and where each is; 0: all at zero
    needs_judging: bool  # also where none moved: one is at its maximum, or the node reported a count without a date


class NameList(NamedTuple):
    """Names of a device's counters."""

    names: tuple[str, ...]
    codes: tuple[int, ...]
    joined: bytes


class CounterRows:
    """Rows of table counter, by column."""

    def __init__(self) -> None:
        self.subjects: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self._lists: dict[tuple[str, ...], NameList] = {}
        self._watched: set[int] = set()  # codes of names that count no traffic
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
            self._watched.update(code for name, code in zip(names, codes, strict=True) if not _TRAFFIC.search(name))
            known = self._lists[names] = NameList(names, codes, " ".join(names).encode("utf-8", "replace"))
            self.cost += 200 + 20 * len(names) + len(known.joined)
        return known

    def add(self, subject: str, names: NameList, values: Collection[int]) -> tuple[array[int], list[tuple[str, int]]]:
        """Those that are not zero: numbers of their rows; and name and value of those that count errors and events."""
        codes = list(compress(names.codes, values))
        if not codes:
            return array("I"), []
        counts = list(filter(None, values))
        start = len(self.value)
        try:
            packed = pack(f"{len(counts)}q", *counts)
        except error:  # counters are 64 bits without sign
            packed = pack(f"{len(counts)}q", *[max(min(count, MOST), LEAST) for count in counts])
        self.value.frombytes(packed)
        self.name.extend(codes)
        self.subject += array("I", [self.subjects.setdefault(subject, len(self.subjects))]) * len(codes)
        numbers = list_numbers(start, len(self.value))
        if self._watched.isdisjoint(codes):
            return numbers, []
        rows = zip(compress(names.names, values), codes, self.value[start:], strict=True)
        return numbers, [(name, value) for name, code, value in rows if code in self._watched]


class ReportCounters:
    """Counters of one report, or of a part that other reports have, too."""

    def __init__(self, rows: CounterRows) -> None:
        self._rows = rows
        self.numbers = array("I")  # of rows of table counter
        self.shape = 0  # which counters which devices have
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
        self.numbers += part.numbers
        self._standing += part._standing
        self._needs_judging = self._needs_judging or part._needs_judging

    def digests(self) -> CounterDigests:
        """Of all that was added."""
        if not self._standing:
            return CounterDigests(self.shape, 0, False)
        digest = blake2b("\n".join(sorted(self._standing)).encode("utf-8", "replace"), digest_size=7).digest()
        return CounterDigests(self.shape, int.from_bytes(digest, "big") | 1, self._needs_judging)

    def _add_shape(self, subject: str, identity: str | None, names: bytes, more: str) -> None:
        device = crc32(f"{subject} {identity} ".encode("utf-8", "replace"), self.shape)
        after = f" {more}\n" if names and more else f"{more}\n"
        self.shape = crc32(after.encode(), crc32(names, device))

    def _add_rows(self, subject: str, names: NameList, values: Collection[int]) -> None:
        numbers, watched = self._rows.add(subject, names, values)
        self.numbers += numbers
        for name, value in watched:
            self._standing.append(f"{subject} {name} {value}")
            self._needs_judging = self._needs_judging or value in _ALL_ONES or value == MAXIMUM_VALUE.get(name)


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
