"""What the picture shows, before anything has a place: boxes in boxes, and the link by which each hangs.

A link has what it carries now and what both its ends could carry: the picture draws the second below the first.
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
from agent.outputs.names import Names, model
from agent.outputs.text.link import MEANING, generation
from agent.outputs.text.row import DRIVER, NIC_STATE
from agent.outputs.wiring import Wiring

ALIKE = 3  # so many NVSwitches side by side are one box
LOOSE = "loose"  # the frame of devices that are on no known bus
NEAR = ("PIX", "PXB", "PHB", "NODE")  # pairs that GPUDirect can use: what limits them is marked


class Wire(NamedTuple):
    """A PCIe link, and what can be said of it. GB/s in one direction."""

    place: str  # the function whose link to the port above it is
    text: str  # "Gen5 x8 of x16"
    now: float | None
    could: float | None
    state: str  # ok | lacks | idle | untrusted | unknown
    note: str = ""  # why its numbers are not to be believed
    limits: tuple[str, ...] = ()  # pairs whose slowest link this is: "GPU2-mlx5_4"


class Plug(NamedTuple):
    """What leaves the machine, or the bus, at a device: its port or its NVLinks."""

    kind: str  # nvlink | port
    text: str
    state: str  # ok | lacks | unknown
    up: int = 0  # NVLinks
    all: int = 0
    far: tuple[str, ...] = ()  # ids of GPUs at the other end; "switch"; empty: not known


class Box(NamedTuple):
    """One thing with a name; `key` is its id, by which findings and paths refer to it."""

    key: str
    kind: str  # node | bus | switch | gpu | nic | nvswitch
    title: str
    words: tuple[str, ...]
    severity: str | None  # of the worst finding on it
    wire: Wire | None = None
    plugs: tuple[Plug, ...] = ()
    children: tuple[Box, ...] = ()
    numa: int | None = None

    def walk(self) -> Iterator[Box]:
        """This box and all in it, top down."""
        yield self
        for child in self.children:
            yield from child.walk()


class Scene(NamedTuple):
    """A machine."""

    boxes: list[Box]
    direct: dict[tuple[str, str], int]  # GPU pairs that NVLinks join without a switch -> how many


def scene(report: Report) -> Scene:
    """What there is to draw; no box where there is neither GPU nor NIC."""
    return _Maker(report).scene()


def places(report: Report) -> dict[str, str]:
    """Key of a box -> severity of the worst finding on it, or on a part of it."""
    owner = {f"netdev:{n.id}": n.nic or n.id for n in report.topology.netdevs}
    gpus = {g.pci: g.id for g in report.topology.gpus if g.pci}
    nics = {n.pci: n.id for n in report.topology.nics if n.pci}
    found: dict[str, str] = {}
    for finding in report.findings:
        which = finding.subject.partition(":")[2]
        keys = [owner[finding.subject]] if finding.subject in owner else [k.partition("/")[0] for k in which.split("+")]
        for key in keys:
            key = gpus.get(key) or nics.get(key) or key
            if _rank(finding.severity) > _rank(found.get(key)):
                found[key] = finding.severity
    return found


class _Maker:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.names = Names(report)
        self.wiring = Wiring(report)
        self.severity = places(report)
        self.limits = _limits(report, self.names)
        self.nodes = {node.id: node for node in report.node.numa_nodes}

    def scene(self) -> Scene:
        boxes = []
        for node, buses in self.wiring.nodes().items():
            inner = [box for bus, tops in buses.items() for box in self._bus(bus, tops)]
            boxes.append(Box(f"numa:{node}", "node", *self._node(node), None, children=tuple(inner), numa=node))
        loose = [self._gpu(gpu, None) for gpu in self.wiring.loose_gpus]
        loose += [self._nic(nic, None) for nic in self.wiring.loose_nics]
        if loose:
            boxes.append(Box(LOOSE, "node", "place in the PCI tree not known", (), None, children=tuple(loose)))
        return Scene(boxes, _direct(self.report))

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
        switches = [f for f in functions if f.id in self.wiring.switches]
        many = switches if len(switches) >= ALIKE and not any(self._loud(f.id) for f in switches) else []
        boxes = [self._box(function) for function in functions if function not in many]
        if many:
            first, last = (self.names.short(each.id) for each in (many[0], many[-1]))
            boxes.append(
                self._box(many[0])._replace(title=f"{len(many)}x NVSwitch", words=(f"{first} .. {last}",), plugs=())
            )
        return boxes

    def _box(self, function: PciFunction) -> Box:
        if gpu := self.wiring.gpus.get(function.id):
            return self._gpu(gpu, function)
        if nic := self.wiring.nics.get(function.id):
            return self._nic(nic, function)
        kind = "nvswitch" if function.id in self.wiring.switches else "switch"
        drives = self.wiring.drives(function)
        words = [self.names.short(function.id), f"+ {drives} NVMe" if drives else "", function.name or ""]
        return Box(
            function.id,
            kind,
            "NVSwitch" if kind == "nvswitch" else "PCIe switch",
            _known(words),
            self.severity.get(function.id),
            self._wire(function),
            children=tuple(self._boxes(self.wiring.below(function))),
        )

    def _gpu(self, gpu: Gpu, function: PciFunction | None) -> Box:
        said = gpu.driver_error or "driver error" if gpu.driver_state == "error" else DRIVER.get(gpu.driver_state, "")
        return Box(
            gpu.id,
            "gpu",
            gpu.label,
            _known([said, *_presence(function), model(gpu.name), self.names.short(gpu.pci or "")]),
            self.severity.get(gpu.id),
            self._wire(function),
            _nvlinks(gpu),
        )

    def _nic(self, nic: Nic, function: PciFunction | None) -> Box:
        said = ["belongs to the fabric manager"] if nic.limited else [nic.role] if nic.role != "unknown" else []
        said += [NIC_STATE[nic.state]] if nic.state in NIC_STATE else []
        label = "NIC" if nic.label == nic.pci else nic.label.partition("@")[0]
        return Box(
            nic.id,
            "nic",
            label,
            _known([*said, *_presence(function), model(nic.model), self.names.short(nic.pci or "")]),
            self.severity.get(nic.id),
            self._wire(function),
            tuple(_port(port, len(nic.ports) > 1) for port in nic.ports),
        )

    def _wire(self, function: PciFunction | None) -> Wire | None:
        if function is None or function.link is None:
            return None
        made = wire(function.id, function.link, self.limits.get(function.id, ()))
        device = function.id in self.wiring.gpus or function.id in self.wiring.nics
        # that a device is slower than its switch is no fault
        return made._replace(limits=()) if device and made.state != "lacks" else made

    def _loud(self, key: str) -> bool:
        return key in self.severity


def wire(place: str, link: Link, limits: tuple[str, ...] = ()) -> Wire:
    """A link in words and numbers; what an idle or untrusted link runs at is not held against it."""
    lacks = [
        generation(link.max_speed_gt_s)
        if (link.speed_gt_s or 0) < (link.max_speed_gt_s or 0) and link.speed_gt_s
        else "",
        f"x{link.max_width}" if link.width and link.max_width and link.width < link.max_width else "",
    ]
    less = " ".join(each for each in lacks if each)
    text = f"{generation(link.speed_gt_s)} x{link.width if link.width is not None else '?'}"
    now = link.bandwidth_gbyte_s
    could = bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width)
    state = link.quality.state
    if now is None:
        return Wire(place, state if state == "asleep" else "link ?", None, could, "unknown", _why(link), limits)
    if link.speed_gt_s is None and link.width is None:
        text = f"{now:g} GB/s"  # a source that tells nothing else
    text += f" of {less}" if less else ""
    if state == "conclusive":
        return Wire(place, text, now, could, "lacks" if less else "ok", "", limits)
    return Wire(place, text, now, could, "idle" if state == "idle" else "untrusted", _why(link), limits)


def _why(link: Link) -> str:
    quality = link.quality
    return ": ".join(each for each in (MEANING.get(quality.state, quality.state), quality.reason) if each)


def _limits(report: Report, names: Names) -> dict[str, tuple[str, ...]]:
    """Link -> the near pairs of a GPU and a NIC of which it carries less than every other link on their way."""
    functions = {f.id: f for f in report.topology.pci}
    gpus = {gpu.id for gpu in report.topology.gpus}
    nics = {nic.id for nic in report.topology.nics if not nic.virtual_function}
    found: dict[str, list[str]] = {}
    for path in report.topology.paths:
        pair = {path.a, path.b}
        if path.limiting not in functions or path.pcie_kind not in NEAR or not pair & gpus or not pair & nics:
            continue
        same_wire = {path.limiting, functions[path.limiting].parent}
        rest = [functions[each].link for each in (*pair, *path.hops) if each in functions and each not in same_wire]
        carried = [link.bandwidth_gbyte_s for link in rest if link and link.bandwidth_gbyte_s]
        link = functions[path.limiting].link
        if link and link.bandwidth_gbyte_s and carried and link.bandwidth_gbyte_s < min(carried):
            labels = (names.labels.get(path.a, path.a), names.labels.get(path.b, path.b))
            found.setdefault(path.limiting, []).append("-".join(labels))
    return {place: tuple(pairs) for place, pairs in found.items()}


def _direct(report: Report) -> dict[tuple[str, str], int]:
    """NVLinks from GPU to GPU, counted at the end that has more of them up."""
    ends: Counter[tuple[str, str]] = Counter()
    for gpu in report.topology.gpus:
        for link in gpu.links:
            if link.state in ("active", "sleep") and link.remote and link.remote.kind == "gpu" and link.remote.id:
                ends[gpu.id, link.remote.id] += 1
    ids = {gpu.id for gpu in report.topology.gpus}
    pairs = {tuple(sorted(pair)) for pair in ends if set(pair) <= ids and pair[0] != pair[1]}
    return {(a, b): max(ends[a, b], ends[b, a]) for a, b in sorted(pairs)}


def _nvlinks(gpu: Gpu) -> tuple[Plug, ...]:
    plugs = []
    if gpu.links:
        states = Counter(link.state for link in gpu.links)
        up = states["active"] + states["sleep"]
        name = {"xgmi": "XGMI", "hccs": "HCCS"}.get(gpu.links[0].protocol, "NVLink")
        remotes = [link.remote for link in gpu.links if link.remote]
        far = {
            "switch" if each.kind == "switch" else each.id or "" for each in remotes if each.kind in ("switch", "gpu")
        }
        state = "unknown" if states["unknown"] else "lacks" if up < len(gpu.links) else "ok"
        text = f"{name} {up if up or not states['unknown'] else '?'}/{len(gpu.links)}"
        plugs.append(Plug("nvlink", text, state, up, len(gpu.links), tuple(sorted(far - {""}))))
    if gpu.c2c and gpu.c2c.enabled:
        plugs.append(Plug("c2c", "C2C", "ok"))
    return tuple(plugs)


def _port(port: Port, several: bool) -> Plug:
    up = port.state == "ACTIVE"
    layer = {"InfiniBand": "IB", "Ethernet": "RoCE"}.get(port.link_layer or "", port.link_layer or "")
    speed = port.speed if port.speed and port.link_layer != "Ethernet" else ""
    words = [f"p{port.port}" if several else "", layer, f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else "", speed]
    words += [] if up else [(port.state or "state not known").lower(), port.phys_state or ""]
    state = "ok" if up else "lacks" if port.state else "unknown"
    return Plug("port", " ".join(each for each in words if each), state)


def _presence(function: PciFunction | None) -> list[str]:
    return [] if function is None or function.state == "present" else [function.state.replace("_", " ")]


def _known(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in words if each))


def _rank(severity: str | None) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1
