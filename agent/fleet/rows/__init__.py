"""A report -> the rows of every table.

Most of what a node has, its neighbours have, too: the same switches at the same addresses, the same checks passed.
A `Reader` makes such rows once and gives numbers of them (`Made.ids`), which are all that is kept of a report until
its bucket is written. Where reports have nothing in common this costs one look into a dictionary more.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from agent.fleet.rows import device_fields, devices, identity, network, report_fields, verdicts
from agent.fleet.rows.counters import CounterDigests, CounterRows, ReportCounters, rate_rows
from agent.fleet.rows.devices import Row
from agent.fleet.rows.functions import FunctionReader
from agent.fleet.rows.part_settings import format_part_settings
from agent.fleet.rows.recent import Cut, Cutter, Lists, Recent, decode_part, is_hole, once
from agent.fleet.rows.recent import DamagedPart as DamagedPart
from agent.fleet.rows.unique_rows import ComparedColumns, Functions, Rows, Shared
from agent.fleet.rows.verdicts import HostTotals, Label
from agent.fleet.tables import COMPARED, COUNTER, EVENT, HOST, PCI, PORT_COUNTER, PROBE, RATE, TABLES
from agent.model.finding import UNDATED_RULE
from agent.model.reasons import needs_sample

NAMES = tuple(TABLES)
NodeIndex = dict[str, "array[int]"]
Counts = tuple[str, dict[str, int]]  # subject, values by name
_T = TypeVar("_T")
_EVENT_BYTES = 400
_FINDING_BYTES = 1_000  # of its texts, without the evidence


class ReportRows(NamedTuple):
    """The rows of one report: numbers of rows of the reader, and a digest of them, a table each in the order of NAMES.

    A digest has 16 hex digits and leaves out what is volatile, of port_counter it is the day; "": no rows, or a table
    without history. Every row gets
    the hardware class beside the node when its bucket is written.
    """

    ids: list[array[int]]  # unsigned, 32 bits
    digests: list[str]
    hardware_class: str
    counted: CounterDigests = CounterDigests(0, 0, False)
    pending: bytes = b""  # of checks that need an earlier sample a digest; none: nothing needs one


class SwitchRecord(msgspec.Struct, frozen=True):
    """What a dataset stores of one switch. `rows`: by table, in the order of its columns."""

    node: str
    observed_at: datetime
    hardware_class: str
    rows: dict[str, list[Row]]
    counters: list[Counts]


class Reader:
    """Reads reports one after the other; `unique` and `counters` hold their rows until `clear`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all rows: numbers that were given are void."""
        self._pci = Functions(PCI)
        self._shared = {name: Shared(TABLES[name]) for name in _SHARED}
        self._own = {
            name: Rows(table, lasting_alike=table is PROBE) for name, table in TABLES.items() if name not in _NOT_OWN
        }
        self.unique: dict[str, Rows | Functions] = {PCI.name: self._pci, **self._shared, **self._own}
        self.counters = CounterRows()
        self._cost = 0
        self._alike: dict[tuple[str, bytes], int] = {}
        self._recent = Recent()
        self._functions = FunctionReader(self._pci, self._shared["link"], self.counters)
        self._lists = Lists()
        finders = {"pci": self._functions.find, "links": self._find_list}
        self._cutter = Cutter({**finders, "paths": self._find_list, "checks": self._find_list}, series="links")

    @property
    def size(self) -> int:
        """Rows that are held, of all tables."""
        return sum(len(functions.rows) for functions in self.unique.values()) + len(self.counters) // 8

    @property
    def cost(self) -> int:
        """Bytes of findings and of parts that are remembered, about."""
        lists = sum(shared.cost for shared in self._shared.values())
        return self._cost + lists + self.counters.cost + self._functions.cost

    def cut(self, text: bytes) -> Cut:
        """A report without the lists that earlier ones had."""
        return self._cutter.cut(text)

    def read(
        self, report: report_fields.ReportFields, label: Label, text: bytes, known: Mapping[str, Any]
    ) -> ReportRows:
        """The rows of one report. `known`: lists that were cut out of its text. Raises DamagedPart; then no row of it
        counts."""
        topology, node = report.topology, report.node
        if "pci" in known:
            functions = self._functions.repeat(known["pci"])
        else:
            functions, is_known = self._functions.read(topology.pci, node.product)
            if is_known:
                self._cutter.learn("pci", node.product, text, bytes(topology.pci))
        counters = ReportCounters(self.counters)
        counters.include(functions.counters)
        counters.add_shape("pci", None, more=str(functions.counters.shape))
        gpus, nics, netdevs = topology.gpus, topology.nics, topology.netdevs
        ends = once([gpu.id for gpu in gpus], "topology.gpus"), once([nic.id for nic in nics], "topology.nics")
        once([netdev.id for netdev in netdevs], "topology.netdevs")
        once([probe.name for probe in report.probes], "probes", "a name")
        # which ports of NPUs a report has depends on the right to read /etc/hccn.conf, not on hardware
        own = [nic for nic in nics if nic.accelerator is None]
        boards = [nic for nic in own if nic.role == "rail"]
        rails = {nic.id: place for place, nic in enumerate(boards)}
        gpu_kinds = [functions.kinds.get(gpu.pci or gpu.id) or (None, gpu.name) for gpu in gpus]
        alike = devices.hardware_class(node.vendor, node.product, gpu_kinds, boards)
        gpu_rows, nvlinks = self._gpus(gpus, counters, known.get("links", ()))
        for place, nic in enumerate(nics):
            if len(nic.ports) > 1:
                once([port.port for port in nic.ports], f"topology.nics[{place}].ports", "a number")
            for port in nic.ports:
                first, second = port.counters, port.hw_counters
                if not first.keys().isdisjoint(second):
                    first, second = {**first, **second}, {}
                names, values = (*first, *second), [*first.values(), *second.values()]
                counters.add_device(f"port:{nic.id}/{port.port}", nic.node_guid, names, values)
        for netdev in netdevs:
            _count_netdev(netdev, counters)
        paths, checks = known.get("paths", topology.paths), known.get("checks", report.checks)
        path_numbers, (check_numbers, pending) = self._paths(paths, ends, text), self._checks(checks, text)
        self._cost += sum(_FINDING_BYTES + len(finding.evidence) for finding in report.findings)
        self._cost += sum(_EVENT_BYTES + len(event.text) for event in report.events)
        holders = [*netdevs, *_list_npu_ports(topology.ascend)] if topology.ascend else netdevs
        own_numbers = [(number,) for number in identity.numbers(node, gpus, nics, holders)]
        tables = {
            "gpu": gpu_rows,
            "nic": [network.nic_row(nic, rails.get(nic.id)) for nic in nics],
            "port": [network.port_row(nic, port, rails.get(nic.id)) for nic in nics for port in nic.ports],
            "netdev": [_netdev_row(netdev, place, rails) for place, netdev in enumerate(netdevs)],
            "address": [
                (holder.id, holder.label, address)
                for holder in holders
                for address in _select_different(holder.addresses)
            ],
            "finding": verdicts.finding_rows(report.findings),
            "probe": [verdicts.probe_row(probe) for probe in report.probes],
            "identity": own_numbers,
            PORT_COUNTER.name: network.port_counter_rows(nics, rails),
            EVENT.name: verdicts.event_rows(report.events),
            RATE.name: rate_rows(report.counters_window, topology, rails),
        }
        numbers = {"link": functions.links, "nvlink": nvlinks, "path": path_numbers, "check": check_numbers}
        compared = [
            _COMPARED[name].digest(tables[name])
            if name in tables
            else self._compared_digest(name, functions.rows if name == PCI.name else numbers[name], functions.alike)
            for name in COMPARED
        ]
        of_rails = [netdev for netdev in netdevs if netdev.nic in rails]
        totals = HostTotals(
            len(gpus),
            len(rails),
            len(own),
            alike,
            len(own_numbers),
            compared,
            devices.list_models(tuple(gpu_kinds)),
            format_part_settings(report, of_rails),
        )
        tables[HOST.name] = [verdicts.host_row(report, label, totals)]
        day = label.observed_at.date().isoformat()  # all of it the same: history has the first report of each
        ids, digests = self._add_own(tables, {PORT_COUNTER.name: day})
        ids[COUNTER.name] = counters.numbers
        ids[PCI.name], digests[PCI.name] = functions.rows, self._pci.join_digests(functions.rows)
        for name, of_table in numbers.items():
            ids[name], digests[name] = of_table, self._shared[name].join_digests(of_table)
        window = report.counters_window
        if window is not None and window.seconds:  # the node judged it
            pending = b""
        counted = counters.digests()
        if any(finding.rule == UNDATED_RULE for finding in report.findings):
            counted = counted._replace(needs_judging=True)
        return ReportRows(list(ids.values()), list(digests.values()), alike, counted, pending)

    def read_switch(self, switch: SwitchRecord) -> ReportRows:
        """The rows of a switch's saved outputs."""
        ids, digests = self._add_own(switch.rows)
        counted = ReportCounters(self.counters)
        for subject, counts in switch.counters:
            counted.add_rows(subject, counts)
        ids[COUNTER.name] = counted.numbers
        return ReportRows(list(ids.values()), list(digests.values()), switch.hardware_class)

    def number_checks(self, rows: Iterable[Row]) -> array[int]:
        """Numbers of rows of table check."""
        return array("I", map(self._shared["check"].number, rows))

    def _add_own(
        self, tables: Mapping[str, list[Row]], given: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[NodeIndex, dict[str, str]]:
        """Numbers and digests of all tables, as yet those of these rows. `given`: digests that are not of rows."""
        ids: NodeIndex = dict.fromkeys(NAMES, _NO_NUMBERS)
        digests = dict.fromkeys(NAMES, "")
        for name, rows in tables.items():
            if rows:
                ids[name] = self._own[name].extend(rows)
                digests[name] = given.get(name) or self._own[name].digest(rows)
        return ids, digests

    def _gpus(
        self, gpus: list[device_fields.GpuFields], counters: ReportCounters, known: Iterable[bytes]
    ) -> tuple[list[Row], array[int]]:
        """Rows of GPUs, and numbers of rows of their links. `known`: lists of links that were cut out."""
        rows, numbers, cut = [], array("I"), iter(known)
        for place, gpu in enumerate(gpus):
            links = self._gpu_links(gpu, place, next(cut) if is_hole(gpu.links) else gpu.links)
            numbers += links.numbers
            counters.include(links.counters)
            rows.append(devices.gpu_row(gpu, len(links.numbers), links.active))
            subject, c2c = f"gpu:{gpu.id}", gpu.c2c.errors if gpu.c2c is not None else {}
            names = (*gpu.pcie_counters, *gpu.error_counts, *c2c)
            counters.add_shape(gpu.id, gpu.uuid or gpu.serial, names, str(links.counters.shape))
            counters.add_rows(subject, gpu.pcie_counters)
            counters.add_rows(subject, gpu.error_counts)
            if c2c:
                counters.add_rows(subject, {f"c2c_{name}": count for name, count in c2c.items()})
        return rows, numbers

    def _gpu_links(self, gpu: device_fields.GpuFields, place: int, whole: Raw | bytes) -> _Links:
        def made() -> _Links:
            where = f"topology.gpus[{place}].links"
            links = decode_part(_GPU_LINKS, whole, where)
            once([link.link for link in links], where, "a number")
            numbers = [self._shared["nvlink"].number(devices.nvlink_row(gpu.id, link)) for link in links]
            counters = ReportCounters(self.counters)
            for link in links:
                counters.add_shape(str(link.link), None, tuple(link.errors))
                counters.add_rows(f"link:{gpu.id}/{link.link}", link.errors)
            return _Links(array("I", numbers), counters, sum(link.state in devices.UP for link in links))

        return self._whole(("links", gpu.id), whole, made, ("links", place))

    def _find_list(self, kind: object, text: bytes, at: int) -> tuple[bytes, int] | None:
        hit = self._lists.find(kind, text, at)
        return None if hit is None else (hit[0], hit[3])

    def _paths(self, whole: Raw | bytes, ends: tuple[frozenset[str], frozenset[str]], text: bytes) -> array[int]:
        """All of them are the same on every node of a kind."""

        def made() -> array[int]:
            paths = decode_part(_PATHS, whole, "topology.paths")
            once([(path.a, path.b) for path in paths], "topology.paths", "a pair")
            return array("I", [self._shared["path"].number(devices.path_row(path, *ends)) for path in paths])

        return self._whole(("paths", ends), whole, made, "paths", text)

    def _checks(self, whole: Raw | bytes, text: bytes) -> tuple[array[int], bytes]:
        """And their digest, where one needs an earlier sample."""

        def made() -> tuple[array[int], bytes]:
            checks = decode_part(_CHECKS, whole, "checks")
            once([check.rule for check in checks], "checks", "a rule")
            pending = any(map(needs_sample, checks))
            digest = blake2b(bytes(whole), digest_size=8).digest() if pending else b""
            return self.number_checks(map(verdicts.check_row, checks)), digest

        return self._whole("checks", whole, made, "checks", text)

    def _whole(
        self, place: object, raw: Raw | bytes, make: Callable[[], _T], kind: object, text: bytes | None = None
    ) -> _T:
        """What was made of an equal list at that place before, or is made now. Lists of that kind are from now on cut
        out of reports; `text`: the report, where the kind is the list's name and its place in it is learned."""
        key = bytes(raw)
        part: _T | None = self._recent.find(place, key)
        if part is None:
            part = make()
            self._recent.add(place, key, part)
            self._cost += len(key)
        elif raw is not key:
            self._lists.add(kind, key, (), key)
            if text is not None:
                self._cutter.learn(str(kind), kind, text, key)
        return part

    def _compared_digest(self, table: str, numbers: array[int], functions: bytes) -> int:
        """Of rows that many nodes have, once for all of these. `functions`: numbers without serial numbers."""
        key = (table, functions if table == PCI.name else numbers.tobytes())
        digest = self._alike.get(key)
        if digest is None:
            row = self.unique[table].row
            digest = self._alike[key] = _COMPARED[table].digest([row(number) for number in numbers])
            self._cost += 300 + len(key[1])
        return digest


class _Links(NamedTuple):
    """What a GPU's list of links came to."""

    numbers: array[int]  # of rows of table nvlink
    counters: ReportCounters
    active: int  # how many are up


_NO_NUMBERS = array("I")
_GPU_LINKS = Decoder(list[device_fields.GpuLinkFields])
_PATHS, _CHECKS = Decoder(list[device_fields.PathFields]), Decoder(list[report_fields.CheckFields])
_SHARED = ("link", "nvlink", "path", "check")  # tables whose rows are mostly those of other nodes
_NOT_OWN = (*_SHARED, PCI.name, COUNTER.name)
_COMPARED = {name: ComparedColumns(TABLES[name]) for name in COMPARED}


def _count_netdev(netdev: device_fields.NetdevFields, counters: ReportCounters) -> None:
    subject, qos = f"netdev:{netdev.id}", netdev.qos
    lengths = f"{len(qos.pfc_frames_sent)} {len(qos.pfc_frames_received)}" if qos is not None else ""
    counts = netdev.counters or {}
    counters.add_device(subject, netdev.mac, tuple(counts), counts.values(), lengths)
    if qos is not None:
        for way, frames in (("sent", qos.pfc_frames_sent), ("received", qos.pfc_frames_received)):
            if any(frames):
                counters.add_rows(subject, dict(zip(network.pfc_names(way, len(frames)), frames, strict=True)))


def _list_npu_ports(ascend: report_fields.AscendFields) -> Iterable[device_fields.NetdevFields]:
    """The ports inside of NPUs that have an address, as interfaces, which they are not: for the addresses alone."""
    for port in ascend.ports:
        if port.address:
            name = port.nic or f"npu-{port.npu}"
            yield device_fields.NetdevFields(id=name, label=f"NPU {port.npu}", addresses=[port.address])


def _select_different(addresses: list[str]) -> Iterable[str]:
    """An interface has an address once for each peer."""
    return dict.fromkeys(addresses) if len(addresses) > 1 else addresses


def _netdev_row(netdev: device_fields.NetdevFields, place: int, rails: dict[str, int]) -> Row:
    try:
        return network.netdev_row(netdev, rails.get(netdev.nic or ""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPart(f"{error} - in topology.netdevs[{place}].qos") from error
