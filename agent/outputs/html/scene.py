"""The content of the picture before layout: nested boxes, and the link of each to its parent.

A link has its current bandwidth and its capability: the picture draws the second behind the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.model.finding import SEVERITIES
from agent.model.gpu import Gpu
from agent.model.link_rate import bandwidth_gbyte_s
from agent.model.nic import Nic, Port
from agent.model.pci import Link, PciFunction
from agent.model.report import Report
from agent.outputs.bus_tree import BusTree
from agent.outputs.names import DisplayNames, short_model
from agent.outputs.text.link import QUALITY_TEXTS, format_generation
from agent.outputs.text.rows import DRIVER_STATES, NIC_STATES

MIN_GROUP = 3  # sibling NVSwitches from this number on share one box
UNPLACED = "loose"  # the frame of devices without a known bus
GPUDIRECT_KINDS = ("PIX", "PXB", "PHB", "NODE")  # pairs that GPUDirect can use: their limiting link is marked


class LinkBar(NamedTuple):
    """A PCIe link as drawn. GB/s in one direction."""

    place: str  # the function whose link to the port above this is
    text: str  # "Gen5 x8 of x16"
    now: float | None
    could: float | None
    state: str  # ok | lacks | idle | untrusted | unknown
    note: str = ""  # why its numbers are unreliable
    limits: tuple[str, ...] = ()  # pairs whose slowest link this is: "GPU2-mlx5_4"


class DevicePort(NamedTuple):
    """A connection that leaves the machine or the bus at a device: its port or its NVLinks."""

    kind: str  # nvlink | port
    text: str
    state: str  # ok | lacks | unknown
    up: int = 0  # NVLinks
    all: int = 0
    far: tuple[str, ...] = ()  # ids of GPUs at the far end; "switch"; empty: unknown


class Box(NamedTuple):
    """One named box; `key` is its id, by which findings and paths refer to it."""

    key: str
    kind: str  # node | bus | switch | gpu | nic | nvswitch
    title: str
    words: tuple[str, ...]
    severity: str | None  # of the worst finding on it
    wire: LinkBar | None = None
    plugs: tuple[DevicePort, ...] = ()
    children: tuple[Box, ...] = ()
    numa: int | None = None

    def walk(self) -> Iterator[Box]:
        """This box and all boxes in it, top down."""
        yield self
        for child in self.children:
            yield from child.walk()


class Scene(NamedTuple):
    """The boxes of one machine and its direct NVLinks."""

    boxes: list[Box]
    direct: dict[tuple[str, str], int]  # GPU pairs with direct NVLinks -> their number


def build_scene(report: Report) -> Scene:
    """Build the scene; without boxes if there is neither GPU nor NIC."""
    return _SceneBuilder(report).scene()


def severity_by_box(report: Report) -> dict[str, str]:
    """Key of a box -> severity of its worst finding, or of one on a part of it."""
    owner = {f"netdev:{n.id}": n.nic or n.id for n in report.topology.netdevs}
    gpus = {g.pci: g.id for g in report.topology.gpus if g.pci}
    nics = {n.pci: n.id for n in report.topology.nics if n.pci}
    severities: dict[str, str] = {}
    for finding in report.findings:
        which = finding.subject.partition(":")[2]
        keys = [owner[finding.subject]] if finding.subject in owner else [k.partition("/")[0] for k in which.split("+")]
        for key in keys:
            key = gpus.get(key) or nics.get(key) or key
            if _rank(finding.severity) > _rank(severities.get(key)):
                severities[key] = finding.severity
    return severities


class _SceneBuilder:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.names = DisplayNames(report)
        self.tree = BusTree(report)
        self.severity = severity_by_box(report)
        self.limits = _limited_pairs(report, self.names)
        self.nodes = {node.id: node for node in report.node.numa_nodes}

    def scene(self) -> Scene:
        boxes = []
        for node, buses in self.tree.nodes().items():
            inner = [box for bus, tops in buses.items() for box in self._bus(bus, tops)]
            boxes.append(Box(f"numa:{node}", "node", *self._node(node), None, children=tuple(inner), numa=node))
        loose = [self._gpu(gpu, None) for gpu in self.tree.unplaced_gpus]
        loose += [self._nic(nic, None) for nic in self.tree.unplaced_nics]
        if loose:
            boxes.append(Box(UNPLACED, "node", "place in the PCI tree not known", (), None, children=tuple(loose)))
        return Scene(boxes, _direct_nvlinks(self.report))

    def _node(self, node: int | None) -> tuple[str, tuple[str, ...]]:
        known = self.nodes.get(-1 if node is None else node)
        words = [f"CPUs {known.cpus}"] if known and known.cpus else []
        words += [f"{known.memory_mib / 1024:.0f} GiB"] if known and known.memory_mib else []
        return ("NUMA node not known" if node is None else f"NUMA {node}", tuple(words))

    def _bus(self, bus: str, tops: list[PciFunction]) -> list[Box]:
        """A root bus of several devices is a box of its own: they meet there."""
        inner = self._boxes(tops)
        if len(inner) < 2 or not bus:
            return inner
        return [Box(f"bus:{bus}", "bus", "root bus", (self.names.short(bus),), None, children=tuple(inner))]

    def _boxes(self, functions: list[PciFunction]) -> list[Box]:
        switches = [f for f in functions if f.id in self.tree.switches]
        many = switches if len(switches) >= MIN_GROUP and not any(self._has_finding(f.id) for f in switches) else []
        boxes = [self._box(function) for function in functions if function not in many]
        if many:
            first, last = (self.names.short(switch.id) for switch in (many[0], many[-1]))
            boxes.append(
                self._box(many[0])._replace(title=f"{len(many)}x NVSwitch", words=(f"{first} .. {last}",), plugs=())
            )
        return boxes

    def _box(self, function: PciFunction) -> Box:
        if gpu := self.tree.gpus.get(function.id):
            return self._gpu(gpu, function)
        if nic := self.tree.nics.get(function.id):
            return self._nic(nic, function)
        kind = "nvswitch" if function.id in self.tree.switches else "switch"
        drives = self.tree.count_drives(function)
        words = [self.names.short(function.id), f"+ {drives} NVMe" if drives else "", function.name or ""]
        return Box(
            function.id,
            kind,
            "NVSwitch" if kind == "nvswitch" else "PCIe switch",
            _unique_known(words),
            self.severity.get(function.id),
            self._wire(function),
            children=tuple(self._boxes(self.tree.visible_below(function))),
        )

    def _gpu(self, gpu: Gpu, function: PciFunction | None) -> Box:
        state = (
            gpu.driver_error or "driver error"
            if gpu.driver_state == "error"
            else DRIVER_STATES.get(gpu.driver_state, "")
        )
        return Box(
            gpu.id,
            "gpu",
            gpu.label,
            _unique_known([state, *_presence(function), short_model(gpu.name), self.names.short(gpu.pci or "")]),
            self.severity.get(gpu.id),
            self._wire(function),
            _nvlink_ports(gpu),
        )

    def _nic(self, nic: Nic, function: PciFunction | None) -> Box:
        state = ["belongs to the fabric manager"] if nic.limited else [nic.role] if nic.role != "unknown" else []
        state += [NIC_STATES[nic.state]] if nic.state in NIC_STATES else []
        label = "NIC" if nic.label == nic.pci else nic.label.partition("@")[0]
        return Box(
            nic.id,
            "nic",
            label,
            _unique_known([*state, *_presence(function), short_model(nic.model), self.names.short(nic.pci or "")]),
            self.severity.get(nic.id),
            self._wire(function),
            tuple(_nic_port(port, len(nic.ports) > 1) for port in nic.ports),
        )

    def _wire(self, function: PciFunction | None) -> LinkBar | None:
        if function is None or function.link is None:
            return None
        link_bar = make_link_bar(function.id, function.link, self.limits.get(function.id, ()))
        device = function.id in self.tree.gpus or function.id in self.tree.nics
        # a device that is slower than its switch is no fault
        return link_bar._replace(limits=()) if device and link_bar.state != "lacks" else link_bar

    def _has_finding(self, key: str) -> bool:
        return key in self.severity


def make_link_bar(place: str, link: Link, limits: tuple[str, ...] = ()) -> LinkBar:
    """Describe a link; an idle or untrusted link is not marked as reduced."""
    lacks = [
        format_generation(link.max_speed_gt_s)
        if (link.speed_gt_s or 0) < (link.max_speed_gt_s or 0) and link.speed_gt_s
        else "",
        f"x{link.max_width}" if link.width and link.max_width and link.width < link.max_width else "",
    ]
    less = " ".join(part for part in lacks if part)
    text = f"{format_generation(link.speed_gt_s)} x{link.width if link.width is not None else '?'}"
    now = link.bandwidth_gbyte_s
    could = bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width)
    state = link.quality.state
    if now is None:
        return LinkBar(
            place, state if state == "asleep" else "link ?", None, could, "unknown", _describe_quality(link), limits
        )
    if link.speed_gt_s is None and link.width is None:
        text = f"{now:g} GB/s"  # a source without other values
    text += f" of {less}" if less else ""
    if state == "conclusive":
        return LinkBar(place, text, now, could, "lacks" if less else "ok", "", limits)
    return LinkBar(place, text, now, could, "idle" if state == "idle" else "untrusted", _describe_quality(link), limits)


def _describe_quality(link: Link) -> str:
    quality = link.quality
    return ": ".join(part for part in (QUALITY_TEXTS.get(quality.state, quality.state), quality.reason) if part)


def _limited_pairs(report: Report, names: DisplayNames) -> dict[str, tuple[str, ...]]:
    """Link -> the near pairs of a GPU and a NIC whose path it limits: it carries less than every other link there."""
    functions = {f.id: f for f in report.topology.pci}
    gpus = {gpu.id for gpu in report.topology.gpus}
    nics = {nic.id for nic in report.topology.nics if not nic.virtual_function}
    pairs_by_link: dict[str, list[str]] = {}
    for path in report.topology.paths:
        pair = {path.a, path.b}
        if (
            path.limiting not in functions
            or path.pcie_kind not in GPUDIRECT_KINDS
            or not pair & gpus
            or not pair & nics
        ):
            continue
        same_wire = {path.limiting, functions[path.limiting].parent}
        rest = [functions[id_].link for id_ in (*pair, *path.hops) if id_ in functions and id_ not in same_wire]
        carried = [link.bandwidth_gbyte_s for link in rest if link and link.bandwidth_gbyte_s]
        link = functions[path.limiting].link
        if link and link.bandwidth_gbyte_s and carried and link.bandwidth_gbyte_s < min(carried):
            labels = (names.labels.get(path.a, path.a), names.labels.get(path.b, path.b))
            pairs_by_link.setdefault(path.limiting, []).append("-".join(labels))
    return {place: tuple(pairs) for place, pairs in pairs_by_link.items()}


def _direct_nvlinks(report: Report) -> dict[tuple[str, str], int]:
    """Direct NVLinks between GPUs, counted at the end with more active ones."""
    ends: Counter[tuple[str, str]] = Counter()
    for gpu in report.topology.gpus:
        for link in gpu.links:
            if link.state in ("active", "sleep") and link.remote and link.remote.kind == "gpu" and link.remote.id:
                ends[gpu.id, link.remote.id] += 1
    ids = {gpu.id for gpu in report.topology.gpus}
    pairs = {tuple(sorted(pair)) for pair in ends if set(pair) <= ids and pair[0] != pair[1]}
    return {(a, b): max(ends[a, b], ends[b, a]) for a, b in sorted(pairs)}


def _nvlink_ports(gpu: Gpu) -> tuple[DevicePort, ...]:
    plugs = []
    if gpu.links:
        states = Counter(link.state for link in gpu.links)
        up = states["active"] + states["sleep"]
        name = {"xgmi": "XGMI", "hccs": "HCCS"}.get(gpu.links[0].protocol, "NVLink")
        remotes = [link.remote for link in gpu.links if link.remote]
        far = {
            "switch" if remote.kind == "switch" else remote.id or ""
            for remote in remotes
            if remote.kind in ("switch", "gpu")
        }
        state = "unknown" if states["unknown"] else "lacks" if up < len(gpu.links) else "ok"
        text = f"{name} {up if up or not states['unknown'] else '?'}/{len(gpu.links)}"
        plugs.append(DevicePort("nvlink", text, state, up, len(gpu.links), tuple(sorted(far - {""}))))
    if gpu.c2c and gpu.c2c.enabled:
        plugs.append(DevicePort("c2c", "C2C", "ok"))
    return tuple(plugs)


def _nic_port(port: Port, several: bool) -> DevicePort:
    up = port.state == "ACTIVE"
    layer = {"InfiniBand": "IB", "Ethernet": "RoCE"}.get(port.link_layer or "", port.link_layer or "")
    speed = port.speed if port.speed and port.link_layer != "Ethernet" else ""
    words = [f"p{port.port}" if several else "", layer, f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else "", speed]
    words += [] if up else [(port.state or "state not known").lower(), port.phys_state or ""]
    state = "ok" if up else "lacks" if port.state else "unknown"
    return DevicePort("port", " ".join(word for word in words if word), state)


def _presence(function: PciFunction | None) -> list[str]:
    return [] if function is None or function.state == "present" else [function.state.replace("_", " ")]


def _unique_known(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word))


def _rank(severity: str | None) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1
