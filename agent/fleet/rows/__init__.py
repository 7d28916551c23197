"""A report -> the rows of every table.

Most of what a node has, its neighbours have, too: the same switches at the same addresses, the same checks passed.
A `Reader` makes such rows once and gives numbers of them (`Made.ids`), which are all that is kept of a report until
its bucket is written. Where reports have nothing in common this costs one look into a dictionary more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from agent.fleet.row_digests import COMPARED
from agent.fleet.rows import device_fields, devices, identity, network, rates, report_fields, verdicts
from agent.fleet.rows.counter_digests import CounterDigests, CounterShape, CounterStandings
from agent.fleet.rows.devices import Row
from agent.fleet.rows.functions import FunctionReader
from agent.fleet.rows.recent import Cut, Cutter, Lists, Recent, decode_part, once
from agent.fleet.rows.recent import DamagedPart as DamagedPart
from agent.fleet.rows.unique_rows import ComparedColumns, CounterRows, Functions, Rows, Shared
from agent.fleet.rows.verdicts import HostTotals, Label
from agent.fleet.tables import COUNTER, EVENT, PCI, PORT_COUNTER, RATE, TABLES
from agent.model.reasons import needs_sample

NAMES = tuple(TABLES)
NodeIndex = dict[str, Sequence[int]]
Counts = tuple[str, Mapping[str, int]]  # subject, values by name
_T = TypeVar("_T")
_EVENT_BYTES = 400
_FINDING_BYTES = 1_000  # of its texts, without the evidence


class ReportRows(NamedTuple):
    """The rows of one report: numbers of rows of the reader, and a digest of them, a table each in the order of NAMES.

    A digest has 16 hex digits and leaves out what is volatile, of port_counter it is the day; "": no rows, or a table
    without history. Every row gets
    the hardware class beside the node when its bucket is written.
    """

    ids: list[Sequence[int]]
    digests: list[str]
    hardware_class: str
    counted: CounterDigests = CounterDigests(0, 0, False)
    pending: bytes = b""  # of checks that need an earlier sample a digest; none: nothing needs one


class Reader:
    """Reads reports one after the other; `unique` and `counters` hold their rows until `clear`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all rows: numbers that were given are void."""
        self._pci = Functions(PCI)
        self._shared = {name: Shared(TABLES[name]) for name in _SHARED}
        self._own = {name: Rows(table) for name, table in TABLES.items() if name not in _NOT_OWN}
        self.unique: dict[str, Rows | Functions] = {PCI.name: self._pci, **self._shared, **self._own}
        self.counters = CounterRows()
        self._cost = 0
        self._digests: dict[object, str] = {}
        self._alike: dict[object, int] = {}
        self._recent = Recent()
        self._standing = CounterStandings(self.counters)
        self._functions = FunctionReader(self._pci, self._shared["link"], self.counters)
        self._lists = Lists()
        self._cutter = Cutter({"pci": self._functions.find, "paths": self._find_list, "checks": self._find_list})

    @property
    def size(self) -> int:
        """Rows that are held, of all tables."""
        return sum(len(functions.rows) for functions in self.unique.values()) + len(self.counters) // 8

    @property
    def cost(self) -> int:
        """Bytes of findings and of parts that are remembered, about."""
        return self._cost + self.counters.cost + self._functions.cost

    def cut(self, text: bytes) -> Cut:
        """A report without the lists that earlier ones had."""
        return self._cutter.cut(text)

    def read(
        self, report: report_fields.ReportFields, label: Label, text: bytes, known: Mapping[str, Any]
    ) -> ReportRows:
        """The rows of one report. `known`: lists that were cut out of its text. Raises DamagedPart; then no row of it
        counts."""
        topology, node = report.topology, report.node
        ids: NodeIndex = dict.fromkeys(NAMES, ())
        if "pci" in known:
            functions = self._functions.repeat(known["pci"])
        else:
            functions, is_known = self._functions.read(topology.pci, node.product)
            if is_known:
                self._cutter.learn("pci", node.product, text, bytes(topology.pci))
        ids["pci"], ids["link"], kinds, counted, shape_of_functions = functions
        counted, shape = [*counted], CounterShape()
        shape.add("pci", None, b"", str(shape_of_functions))
        gpus, nics, netdevs = topology.gpus, topology.nics, topology.netdevs
        ends = once([gpu.id for gpu in gpus], "topology.gpus"), once([nic.id for nic in nics], "topology.nics")
        once([netdev.id for netdev in netdevs], "topology.netdevs")
        once([probe.name for probe in report.probes], "probes", "a name")
        # which ports of NPUs a report has depends on who read /etc/hccn.conf: they are no matter of hardware
        own = [nic for nic in nics if nic.accelerator is None]
        boards = [nic for nic in own if nic.role == "rail"]
        rails = {nic.id: place for place, nic in enumerate(boards)}
        gpu_kinds = [kinds.get(gpu.pci or gpu.id) or (None, gpu.name) for gpu in gpus]
        alike = devices.hardware_class(node.vendor, node.product, gpu_kinds, boards)
        ids["gpu"], ids["nvlink"] = self._gpus(gpus, counted, shape)
        for place, nic in enumerate(nics):
            if len(nic.ports) > 1:
                once([port.port for port in nic.ports], f"topology.nics[{place}].ports", "a number")
            for port in nic.ports:
                self._count_port(nic, port, counted, shape)
        for netdev in netdevs:
            self._count_netdev(netdev, counted, shape)
        ids["counter"] = counted
        paths, checks = known.get("paths", topology.paths), known.get("checks", report.checks)
        ids["path"], (ids["check"], pending) = self._paths(paths, ends, text), self._checks(checks, text)
        self._cost += sum(_FINDING_BYTES + len(finding.evidence) for finding in report.findings)
        self._cost += sum(_EVENT_BYTES + len(event.text) for event in report.events)
        own_numbers = [(number,) for number in identity.numbers(node, gpus, nics, netdevs)]
        tables = {
            "nic": [network.nic_row(nic, rails.get(nic.id)) for nic in nics],
            "port": [network.port_row(nic, port, rails.get(nic.id)) for nic in nics for port in nic.ports],
            "netdev": [_netdev_row(netdev, place, rails) for place, netdev in enumerate(netdevs)],
            "address": [
                (netdev.id, netdev.label, address)
                for netdev in netdevs
                for address in _select_different(netdev.addresses)
            ],
            "finding": verdicts.finding_rows(report.findings),
            "probe": [verdicts.probe_row(probe) for probe in report.probes],
            "identity": own_numbers,
            PORT_COUNTER.name: network.port_counter_rows(nics, rails),
            EVENT.name: verdicts.event_rows(report.events),
            RATE.name: rates.rate_rows(report.counters_window, topology, rails),
        }
        for name, rows in tables.items():
            ids[name] = self._own[name].extend(rows)
        compared = [self._compared_digest(name, ids[name]) for name in COMPARED]
        totals = HostTotals(
            len(gpus), len(rails), len(own), alike, len(own_numbers), compared, devices.list_models(tuple(gpu_kinds))
        )
        ids["host"] = self._own["host"].extend([verdicts.host_row(report, label, totals)])
        digests = {name: self._digest(name, numbers) for name, numbers in ids.items()}
        if ids[PORT_COUNTER.name]:  # the same all day: history has the first report of each
            digests[PORT_COUNTER.name] = label.observed_at.date().isoformat()
        window = report.counters_window
        if window is not None and window.seconds:  # the node judged it
            pending = b""
        standing = self._standing.read(shape.value, counted)
        return ReportRows(list(ids.values()), list(digests.values()), alike, standing, pending)

    def read_switch(self, rows: Mapping[str, list[Row]], counters: Iterable[Counts], peers: str) -> ReportRows:
        """The rows of a switch's saved outputs, by table. `peers`: what it is compared with."""
        ids: NodeIndex = dict.fromkeys(NAMES, ())
        for name, of_table in rows.items():
            ids[name] = self._own[name].extend(of_table)
        counted = (self.counters.add(subject, tuple(counts), counts.values()) for subject, counts in counters)
        ids["counter"] = [number for numbers in counted for number in numbers]
        digests = [self._digest(name, numbers) for name, numbers in ids.items()]
        return ReportRows(list(ids.values()), digests, peers)

    def number_checks(self, rows: Iterable[Row]) -> list[int]:
        """Numbers of rows of table check."""
        return [self._shared["check"].number(row) for row in rows]

    def _gpus(
        self, gpus: list[device_fields.GpuFields], counted: list[int], shape: CounterShape
    ) -> tuple[Sequence[int], list[int]]:
        """Numbers of rows of GPUs and of their links."""
        rows, links = [], list[int]()
        for place, gpu in enumerate(gpus):
            mine, counters, active, link_names = self._gpu_links(gpu, place)
            links += mine
            counted += counters
            rows.append(devices.gpu_row(gpu, len(mine), active))
            c2c = gpu.c2c.errors if gpu.c2c is not None else {}
            names = (*gpu.pcie_counters, *gpu.error_counts, *c2c)
            shape.add(gpu.id, gpu.uuid or gpu.serial, self.counters.join(names), str(link_names))
            for counts in (gpu.pcie_counters, gpu.error_counts):
                counted += self.counters.add(f"gpu:{gpu.id}", tuple(counts), counts.values())
            if gpu.c2c is not None:
                errors = gpu.c2c.errors
                names = tuple([f"c2c_{name}" for name in errors])
                counted += self.counters.add(f"gpu:{gpu.id}", names, errors.values())
        return self._own["gpu"].extend(rows), links

    def _gpu_links(self, gpu: device_fields.GpuFields, place: int) -> tuple[list[int], list[int], int, int]:
        """Numbers of rows of its links and their counters, and how many are up."""

        def made() -> tuple[list[int], list[int], int, int]:
            where = f"topology.gpus[{place}].links"
            links = decode_part(_GPU_LINKS, gpu.links, where)
            once([link.link for link in links], where, "a number")
            numbers = [self._shared["nvlink"].number(devices.nvlink_row(gpu.id, link)) for link in links]
            counters: list[int] = []
            shape = CounterShape()
            for link in links:
                names = tuple(link.errors)
                shape.add(str(link.link), None, self.counters.join(names))
                counters += self.counters.add(f"link:{gpu.id}/{link.link}", names, link.errors.values())
            return numbers, counters, sum(link.state in devices.UP for link in links), shape.value

        return self._whole(("links", gpu.id), gpu.links, made)

    def _count_port(
        self, nic: device_fields.NicFields, port: device_fields.PortFields, counted: list[int], shape: CounterShape
    ) -> None:
        subject, first, second = f"port:{nic.id}/{port.port}", port.counters, port.hw_counters
        names = (*first, *second)
        shape.add(subject, nic.node_guid, self.counters.join(names))
        counts = {**first, **second}
        counted += self.counters.add(subject, names if len(names) == len(counts) else tuple(counts), counts.values())

    def _count_netdev(self, netdev: device_fields.NetdevFields, counted: list[int], shape: CounterShape) -> None:
        subject, counts, qos = f"netdev:{netdev.id}", netdev.counters, netdev.qos
        names = tuple(counts or ())
        lengths = f"{len(qos.pfc_frames_sent)} {len(qos.pfc_frames_received)}" if qos is not None else ""
        shape.add(subject, netdev.mac, self.counters.join(names), lengths)
        if counts:
            counted += self.counters.add(subject, names, counts.values())
        if qos is not None:
            for name, frames in (("sent", qos.pfc_frames_sent), ("received", qos.pfc_frames_received)):
                if any(frames):
                    counted += self.counters.add(subject, network.pfc_names(name, len(frames)), frames)

    def _find_list(self, kind: object, text: bytes, at: int) -> tuple[bytes, int] | None:
        hit = self._lists.find(kind, text, at)
        return None if hit is None else (hit[0], hit[3])

    def _paths(self, whole: Raw | bytes, ends: tuple[frozenset[str], frozenset[str]], text: bytes) -> list[int]:
        """All of them are the same on every node of a kind."""

        def made() -> list[int]:
            paths = decode_part(_PATHS, whole, "topology.paths")
            once([(path.a, path.b) for path in paths], "topology.paths", "a pair")
            return [self._shared["path"].number(devices.path_row(path, *ends)) for path in paths]

        return self._whole(("paths", ends), whole, made, ("paths", text))

    def _checks(self, whole: Raw | bytes, text: bytes) -> tuple[list[int], bytes]:
        """And their digest, where one needs an earlier sample."""

        def made() -> tuple[list[int], bytes]:
            checks = decode_part(_CHECKS, whole, "checks")
            once([check.rule for check in checks], "checks", "a rule")
            pending = any(map(needs_sample, checks))
            digest = blake2b(bytes(whole), digest_size=8).digest() if pending else b""
            return self.number_checks(map(verdicts.check_row, checks)), digest

        return self._whole("checks", whole, made, ("checks", text))

    def _whole(
        self, place: object, raw: Raw | bytes, make: Callable[[], _T], within: tuple[str, bytes] | None = None
    ) -> _T:
        """What was made of an equal list at that place before, or is made now. `within`: its name, and the report that
        it is from now on cut out of."""
        key = bytes(raw)
        part: _T | None = self._recent.find(place, key)
        if part is None:
            part = make()
            self._recent.add(place, key, part)
            self._cost += len(key)
        elif within is not None and raw is not key:
            name, text = within
            self._lists.add(name, key, (), key)
            self._cutter.learn(name, name, text, key)
        return part

    def _compared_digest(self, table: str, numbers: Sequence[int]) -> int:
        """Of rows that many nodes have, once for all of these."""
        held = self.unique[table]
        if table in self._own:
            return _COMPARED[table].digest([held.row(number) for number in numbers])
        key = (table, *(self._pci.kinds_of(numbers) if table == PCI.name else numbers))
        digest = self._alike.get(key)
        if digest is None:
            digest = self._alike[key] = _COMPARED[table].digest([held.row(number) for number in numbers])
            self._cost += 300 + 36 * len(numbers)
        return digest

    def _digest(self, table: str, numbers: Sequence[int]) -> str:
        """Of rows that many nodes have, once for all of these."""
        if not TABLES[table].history:
            return ""
        if table not in self._shared:
            return self.unique[table].digest(numbers)
        key = (table, *numbers)
        digest = self._digests.get(key)
        if digest is None:
            digest = self._digests[key] = self.unique[table].digest(numbers)
            self._cost += 300 + 36 * len(numbers)
        return digest


_GPU_LINKS = Decoder(list[device_fields.GpuLinkFields])
_PATHS, _CHECKS = Decoder(list[device_fields.PathFields]), Decoder(list[report_fields.CheckFields])
_SHARED = ("link", "nvlink", "path", "check")  # tables whose rows are mostly those of other nodes
_NOT_OWN = (*_SHARED, PCI.name, COUNTER.name)
_COMPARED = {name: ComparedColumns(TABLES[name]) for name in COMPARED}


def _select_different(addresses: list[str]) -> Iterable[str]:
    """An interface has an address once for each peer."""
    return dict.fromkeys(addresses) if len(addresses) > 1 else addresses


def _netdev_row(netdev: device_fields.NetdevFields, place: int, rails: dict[str, int]) -> Row:
    try:
        return network.netdev_row(netdev, rails.get(netdev.nic or ""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPart(f"{error} - in topology.netdevs[{place}].qos") from error
