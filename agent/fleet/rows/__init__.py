"""A report -> the rows of every table.

Most of what a node has, its neighbours have, too: the same switches at the same addresses, the same checks passed.
A `Reader` makes such rows once and gives numbers of them (`Made.ids`), which are all that is kept of a report until
its bucket is written. Where reports have nothing in common this costs one look into a dictionary more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from agent.fleet.rows import device_shapes, devices, network, shapes, verdicts
from agent.fleet.rows.devices import Row
from agent.fleet.rows.recent import Recent
from agent.fleet.rows.unique import Counters, Functions, Unique
from agent.fleet.rows.verdicts import Counted, Label
from agent.fleet.tables import COUNTER, PCI, TABLES

NAMES = tuple(TABLES)
Numbers = dict[str, list[int]]
_T = TypeVar("_T")


class DamagedPart(Exception):
    """A part of a report that is not what the schema says; the message says where and what."""


class Made(NamedTuple):
    """The rows of one report: numbers of rows of the reader, and a digest of them, a table each in the order of NAMES.

    A digest has 16 hex digits and leaves out what is volatile; "": no rows, or a table without history.
    """

    ids: list[list[int]]
    digests: list[str]


class Reader:
    """Reads reports one after the other; `unique` and `counters` hold their rows until `clear`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all rows: numbers that were given are void."""
        self._pci = Functions(PCI)
        self.unique: dict[str, Unique | Functions] = {PCI.name: self._pci}
        for name, table in TABLES.items():
            if name not in (PCI.name, COUNTER.name):
                self.unique[name] = Unique(table)
        self.counters = Counters()
        self.cost = 0  # bytes of parts that are remembered, about
        self._parts: dict[object, Any] = {}
        self._recent = Recent()

    @property
    def size(self) -> int:
        """Rows that are held, of all tables."""
        return sum(len(each.rows) for each in self.unique.values()) + len(self.counters) // 8

    def read(self, report: shapes.Report, label: Label) -> Made:
        """The rows of one report. Raises DamagedPart; then no row of it counts."""
        ids: Numbers = {name: [] for name in NAMES}
        topology, node = report.topology, report.node
        kinds = self._functions(topology.pci, ids)
        gpus, nics = topology.gpus, topology.nics
        ends = _once(gpus, "topology.gpus"), _once(nics, "topology.nics")
        for place, gpu in enumerate(gpus):
            self._gpu(gpu, place, ids)
        rails = {nic.id: place for place, nic in enumerate(nic for nic in nics if nic.role == "rail")}
        for nic in nics:
            self._nic(nic, rails.get(nic.id), ids)
        for netdev in topology.netdevs:
            self._netdev(netdev, rails.get(netdev.nic or ""), ids)
        ids["path"] = self._paths(topology.paths, ends)
        ids["check"] = self._checks(report.checks)
        ids["finding"] = [self._add("finding", verdicts.finding_row(each)) for each in report.findings]
        ids["probe"] = [self._add("probe", verdicts.probe_row(each)) for each in report.probes]
        found = [kinds.get(each.pci or each.id) or (None, each.name) for each in gpus]
        boards = [each for each in nics if each.id in rails]
        alike = devices.hardware_class(node.vendor, node.product, found, boards)
        counted = Counted(len(gpus), len(rails), len(nics), alike)
        ids["host"].append(self._add("host", verdicts.host_row(report, label, counted)))
        return Made(list(ids.values()), [self._digest(name, numbers) for name, numbers in ids.items()])

    def _functions(self, raws: list[Raw], ids: Numbers) -> dict[str, tuple[str | None, str | None]]:
        """Vendor and device of every function."""
        kinds = {}
        recent, pci, link, counter = self._recent, ids["pci"], ids["link"], ids["counter"]
        for place, raw in enumerate(raws):
            key = bytes(raw)
            found = recent.find(place, key)
            if found is None:
                part = self._function(key, place)
                pci.append(part[2])
            else:
                part, serial = found
                pci.append(part[2] if serial is None else self._pci.like(part[2], serial))
            kinds[part[0]] = part[1]
            if part[3] is not None:
                link.append(part[3])
            if part[4]:
                counter += part[4]
        if len(kinds) != len(raws):
            raise DamagedPart(f"{_TWICE} - in topology.pci")
        return kinds

    def _function(self, key: bytes, place: int) -> tuple[Any, ...]:
        f = _read(_FUNCTION, key, "topology.pci", place)
        counts = self._part(("aer", bytes(f.aer)), lambda: devices.aer(_read(_AER, f.aer, "topology.pci", place)))
        link, row = devices.link_row(f), devices.function_row(f)
        linked = None if link is None else self._one("link", link)
        counted = self.counters.add(f"pci:{f.id}", counts)
        part = (f.id, (f.vendor, f.device), self._pci.add(row), linked, counted, f.serial)
        if not counted:  # errors are of one node
            start, end = _serial(key)
            own = end and key[start:end].decode() == f.serial
            self._recent.add(place, key, part, (start, end) if own else (0, 0))
            self.cost += len(key)
        return part

    def _gpu(self, gpu: device_shapes.Gpu, place: int, ids: Numbers) -> None:
        rows, counts, active = self._whole(("links", gpu.id), gpu.links, lambda: self._gpu_links(gpu, place))
        ids["nvlink"] += rows
        ids["counter"] += counts
        ids["gpu"].append(self._add("gpu", devices.gpu_row(gpu, len(rows), active)))
        ids["counter"] += self.counters.add(f"gpu:{gpu.id}", gpu.pcie_counters)
        if gpu.c2c is not None:
            errors = {f"c2c_{name}": count for name, count in gpu.c2c.errors.items()}
            ids["counter"] += self.counters.add(f"gpu:{gpu.id}", errors)

    def _gpu_links(self, gpu: device_shapes.Gpu, place: int) -> tuple[list[int], list[int], int]:
        """Numbers of rows of its links and their counters, and how many are up."""
        links = _read(_GPU_LINKS, gpu.links, f"topology.gpus[{place}].links")
        rows = [devices.nvlink_row(gpu.id, link) for link in links]
        counts = [self.counters.add(f"link:{gpu.id}/{link.link}", link.errors) for link in links if link.errors]
        numbers = [self._one("nvlink", row) for row in rows]
        return numbers, [each for some in counts for each in some], sum(link.state in devices.UP for link in links)

    def _nic(self, nic: device_shapes.Nic, rail: int | None, ids: Numbers) -> None:
        ids["nic"].append(self._add("nic", network.nic_row(nic, rail)))
        for port in nic.ports:
            ids["port"].append(self._add("port", network.port_row(nic, port, rail)))
            apart = port.counters.keys().isdisjoint(port.hw_counters)
            for counts in (port.counters, port.hw_counters) if apart else ({**port.counters, **port.hw_counters},):
                ids["counter"] += self.counters.add(f"port:{nic.id}/{port.port}", counts)

    def _netdev(self, netdev: device_shapes.Netdev, rail: int | None, ids: Numbers) -> None:
        ids["netdev"].append(self._add("netdev", network.netdev_row(netdev, rail)))
        for address in netdev.addresses:
            ids["address"].append(self._add("address", (netdev.id, netdev.label, address)))
        if netdev.counters:
            ids["counter"] += self.counters.add(f"netdev:{netdev.id}", netdev.counters)
        if netdev.qos is not None:
            ids["counter"] += self.counters.add(f"netdev:{netdev.id}", network.pfc_counters(netdev.qos))

    def _paths(self, whole: Raw, ends: tuple[frozenset[str], frozenset[str]]) -> list[int]:
        """All of them are the same on every node of a kind."""

        def made() -> list[int]:
            rows = [devices.path_row(path, *ends) for path in _read(_PATHS, whole, "topology.paths")]
            return [self._one("path", row) for row in rows]

        return self._whole(("paths", ends), whole, made)

    def _checks(self, whole: Raw) -> list[int]:
        def made() -> list[int]:
            rows = [verdicts.check_row(check) for check in _read(_CHECKS, whole, "checks")]
            return [self._one("check", row) for row in rows]

        return self._whole("checks", whole, made)

    def _add(self, table: str, row: Row) -> int:
        return self.unique[table].add(row)

    def _one(self, table: str, row: Row) -> int:
        """The number of an equal row of the table, or of a new one."""
        return self._part((table, row), lambda: self._add(table, row))

    def _whole(self, place: object, raw: Raw, make: Callable[[], _T]) -> _T:
        """What was made of an equal list at that place before, or is made now."""
        key = bytes(raw)
        found = self._recent.find(place, key)
        if found is not None:
            part: _T = found[0]
            return part
        made = make()
        self._recent.add(place, key, made)
        self.cost += len(key)
        return made

    def _part(self, key: object, make: Callable[[], _T], size: int = 300) -> _T:
        """What was made of an equal part before, or is made now."""
        part: _T | None = self._parts.get(key)
        return self._kept(key, make(), size) if part is None else part

    def _kept(self, key: object, part: _T, size: int) -> _T:
        self.cost += 200 + size
        self._parts[key] = part
        return part

    def _digest(self, table: str, numbers: list[int]) -> str:
        if not numbers or not TABLES[table].history:
            return ""
        key = None
        if table in _SHARED:
            key = (table, *numbers)
            known: str | None = self._parts.get(key)
            if known is not None:
                return known
        digests = self.unique[table].digests
        made = blake2b(b"".join(sorted([digests[number] for number in numbers])), digest_size=8).hexdigest()
        return made if key is None else self._kept(key, made, 36 * len(numbers))


_FUNCTION, _GPU_LINKS = Decoder(device_shapes.Function), Decoder(list[device_shapes.GpuLink])
_PATHS, _CHECKS = Decoder(list[device_shapes.Path]), Decoder(list[shapes.Check])
_AER = Decoder(dict[str, dict[str, int]] | None)
_SHARED = ("link", "nvlink", "path")  # tables whose rows are mostly those of other nodes
_TWICE = "an id stands there twice"


def _read(decoder: Decoder[_T], raw: Raw | bytes, where: str, place: int | None = None) -> _T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPart(f"{error} - in {where}{'' if place is None else f'[{place}]'}") from error


def _serial(key: bytes) -> tuple[int, int]:
    """Where the serial number of a function stands, as `scan` writes it; the end is 0 where it has none like that."""
    for words in (b'"serial": "', b'"serial":"'):
        start = key.find(words) + len(words)
        if start >= len(words):
            end = key.find(b'"', start)
            return (start, end) if end > start and b"\\" not in key[start:end] else (0, 0)
    return 0, 0


def _once(rows: Sequence[device_shapes.Gpu | device_shapes.Nic], where: str) -> frozenset[str]:
    """Everything refers to rows by id. Raises DamagedPart where two have the same."""
    found = frozenset(each.id for each in rows)
    if len(found) != len(rows):
        raise DamagedPart(f"{_TWICE} - in {where}")
    return found
