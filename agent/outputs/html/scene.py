"""The content of the picture before layout: nested boxes, and the link of each to its parent.

Drives that hang from one place share a box. Only what has a finding carries its severity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.labels import compress_names, group_by_key
from agent.model.nic import Nic
from agent.model.node import NumaNode
from agent.model.pci import CxlDevice, PciFunction
from agent.model.report import Report
from agent.model.topology import find_npu_link
from agent.outputs.bus_tree import BusTree
from agent.outputs.html.drawn_links import (
    DevicePort,
    LinkBar,
    describe_gpu_links,
    describe_nic_port,
    find_limited_pairs,
    is_in_use,
    make_link_bar,
)
from agent.outputs.html.elements import Severities
from agent.outputs.names import (
    DisplayNames,
    begin_sentence,
    describe_npu_port,
    describe_scale_out,
    format_gib,
    short_model,
)
from agent.outputs.text.header import count_names
from agent.outputs.text.rows import NIC_STATES, describe_driver_state


def sockets_by_numa_node(report: Report) -> dict[int, int]:
    """NUMA node with CPUs -> socket, numbered from 0; empty where it cannot be decided."""
    sockets = report.node.cpu.sockets
    nodes = [node for node in report.node.numa_nodes if node.cpus]
    if not sockets or not nodes or len(nodes) < sockets:
        return {}
    if len(nodes) == sockets:
        return {node.id: number for number, node in enumerate(nodes)}
    if sockets == 1:
        return {node.id: 0 for node in nodes}
    return _group_by_distance(nodes, [node.id for node in report.node.numa_nodes], sockets)


def _group_by_distance(nodes: list[NumaNode], ids: list[int], sockets: int) -> dict[int, int]:
    """Nodes of one socket are near to each other: the distance limit that gives as many groups as sockets."""
    near = {node.id: dict(zip(ids, node.distances, strict=False)) for node in nodes}
    for limit in sorted({distance for row in near.values() for distance in row.values()}):
        groups: list[list[int]] = []
        for node in nodes:
            group = next((g for g in groups if all(near[node.id].get(other, limit + 1) <= limit for other in g)), None)
            if group is None:
                groups.append([node.id])
            else:
                group.append(node.id)
        if len(groups) == sockets and len({len(group) for group in groups}) == 1:
            return {node: number for number, group in enumerate(groups) for node in group}
    return {}


MIN_GROUP = 3  # sibling NVSwitches from this number on share one box
UNPLACED = "loose"  # the frame of devices without a known bus


class Box(NamedTuple):
    """One named box; `key` is its id, by which findings and paths refer to it."""

    key: str
    kind: str  # node | bus | switch | gpu | nic | nvswitch | drive | memory | other
    title: str
    words: tuple[str, ...]
    severity: str | None  # of the worst finding on it
    wire: LinkBar | None = None
    ports: tuple[DevicePort, ...] = ()
    children: tuple[Box, ...] = ()

    socket: int | None = None  # of a NUMA node, where known
    alias: str = ""  # of a NIC: its network interfaces
    drives: tuple[str, ...] = ()  # model of each drive in this box

    def walk(self) -> Iterator[Box]:
        """This box and all boxes in it, top down."""
        yield self
        for child in self.children:
            yield from child.walk()


class Scene(NamedTuple):
    """The boxes of one machine and its direct NVLinks."""

    boxes: list[Box]
    direct: dict[tuple[str, str], int]  # GPU pairs with direct NVLinks -> their number
    cpu: str = ""  # model of the processors
    empty_nodes: str = ""  # NUMA nodes with CPUs and without any of these devices: "0,2,6"


def build_scene(report: Report) -> Scene:
    """Build the scene; of a machine without GPU and RDMA NIC its drives, displays and network controllers."""
    return _SceneBuilder(report).scene()


class _SceneBuilder:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.names = DisplayNames(report)
        tree = BusTree(report, with_drives=True)
        has_devices = tree.gpus or tree.nics or tree.unplaced_gpus or tree.unplaced_nics
        self.tree = tree if has_devices else BusTree(report)  # of an ordinary machine, its ordinary devices
        self.severities = Severities(report)
        self.limits = find_limited_pairs(report, self.names)
        self.nodes = {node.id: node for node in report.node.numa_nodes}
        self.sockets = sockets_by_numa_node(report)
        self.interfaces = group_by_key((row.nic, row.label) for row in report.topology.netdevs if row.nic)

    def scene(self) -> Scene:
        tree, boxes = self.tree, []
        nodes = tree.nodes()
        for node in sorted(nodes, key=lambda node: (node is None, self.sockets.get(node or 0, 0), node or 0)):
            inner = [box for bus, tops in nodes[node].items() for box in self._bus(bus, tops)]
            inner = self._join_drives(inner)
            title, words = self._node(node)
            socket = None if node is None else self.sockets.get(node)
            boxes.append(Box(f"numa:{node}", "node", title, words, None, children=tuple(inner), socket=socket))
        loose = [self._gpu(gpu, None) for gpu in tree.unplaced_gpus]
        loose += [self._nic(nic, None) for nic in tree.unplaced_nics]
        if loose:
            boxes.append(Box(UNPLACED, "node", "unknown position in the PCI tree", (), None, children=tuple(loose)))
        empty = [str(node.id) for node in self.nodes.values() if node.cpus and node.id not in nodes]
        empty = empty if None not in nodes else []
        return Scene(boxes, _direct_nvlinks(self.report), self.report.node.cpu.name or "", compress_names(empty))

    def _node(self, node: int | None) -> tuple[str, tuple[str, ...]]:
        known = self.nodes.get(-1 if node is None else node)
        words = [f"CPUs {known.cpus}"] if known and known.cpus else []
        words += [f"{known.memory_mib / 1024:.0f} GiB"] if known and known.memory_mib else []
        return ("NUMA node unknown" if node is None else f"NUMA {node}", tuple(words))

    def _bus(self, bus: str, tops: list[PciFunction]) -> list[Box]:
        """A root bus of several devices is a box of its own: they meet there."""
        inner = self._boxes(tops)
        if len([box for box in inner if box.kind != "drive"]) < 2 or not bus:
            return inner
        return [Box(f"bus:{bus}", "bus", "root bus", (self.names.short(bus),), None, children=tuple(inner))]

    def _boxes(self, functions: list[PciFunction]) -> list[Box]:
        switches = [f for f in functions if f.id in self.tree.switches]
        healthy = not any(f.id in self.severities.devices for f in switches)
        many = switches if len(switches) >= MIN_GROUP and healthy else []
        boxes = [self._box(function) for function in functions if function not in many]
        if many:
            first, last = (self.names.short(switch.id) for switch in (many[0], many[-1]))
            boxes.append(
                self._box(many[0])._replace(title=f"{len(many)}x NVSwitch", words=(f"{first} .. {last}",), ports=())
            )
        return self._join_drives(boxes)

    def _join_drives(self, boxes: list[Box]) -> list[Box]:
        """Drives are after the other devices; those without a finding share one box."""
        boxes = sorted(boxes, key=lambda box: box.kind == "drive")
        drives = [box for box in boxes if box.kind == "drive" and not box.severity]
        if len(drives) < 2:
            return boxes
        models = tuple(model for box in drives for model in box.drives)
        words = _unique_known([count_names(filter(None, models))])
        joined = drives[0]._replace(title=f"{len(models)}x NVMe", words=words, wire=None, drives=models)
        return [*(box for box in boxes if box not in drives), joined]

    def _box(self, function: PciFunction) -> Box:
        if gpu := self.tree.gpus.get(function.id):
            return self._gpu(gpu, function)
        if nic := self.tree.nics.get(function.id):
            return self._nic(nic, function)
        if function.id in self.tree.drives:
            return self._drive(function)
        if memory := self.tree.memories.get(function.id):
            return self._memory(memory, function)
        if ordinary := self.tree.ordinary.get(function.id):
            return self._drive(function) if ordinary == "NVMe" else self._ordinary(function, ordinary)
        kind = "nvswitch" if function.id in self.tree.switches else "switch"
        return Box(
            function.id,
            kind,
            "NVSwitch" if kind == "nvswitch" else "PCIe switch",
            _unique_known([self.names.short(function.id), short_model(function.name).partition(" PCIe ")[0]]),
            self.severities.devices.get(function.id),
            self._wire(function),
            children=tuple(self._boxes(self.tree.visible_below(function))),
        )

    def _memory(self, device: CxlDevice, function: PciFunction) -> Box:
        """A CXL expander, with the NUMA node that is its memory."""
        regions = self.report.topology.cxl.regions if self.report.topology.cxl else []
        node = next((region.numa_node for region in regions if device.id in region.devices), None)
        size = format_gib(device.ram_mib) if device.memdev else "no memory device"
        size += f" as NUMA {node}" if node is not None else ""
        words = _unique_known([*_presence(function), size, self.names.short(device.id)])
        title, severity = f"CXL {device.memdev or 'memory'}", self.severities.devices.get(device.id)
        return Box(device.id, "memory", title, words, severity, self._wire(function))

    def _ordinary(self, function: PciFunction, kind: str) -> Box:
        """A storage, network or display controller of a machine that has nothing else to show."""
        interfaces = [netdev.label for netdev in self.report.topology.netdevs if netdev.pci == function.id]
        words = _unique_known(
            [*_presence(function), *interfaces, short_model(function.name), self.names.short(function.id)]
        )
        severity = self.severities.devices.get(function.id)
        title = kind if kind == "NIC" else f"{kind} controller"
        wire, alias = self._wire(function), ", ".join(interfaces)
        return Box(function.id, "other", begin_sentence(title), words, severity, wire, alias=alias)

    def _drive(self, function: PciFunction) -> Box:
        model = short_model(function.name)
        words = _unique_known([*_presence(function), model, self.names.short(function.id)])
        severity = self.severities.devices.get(function.id)
        wire = self._wire(function)
        return Box(function.id, "drive", "NVMe", words, severity, wire, drives=(model,))

    def _gpu(self, gpu: Gpu, function: PciFunction | None) -> Box:
        state = describe_driver_state(gpu)
        return Box(
            gpu.id,
            "gpu",
            gpu.label,
            _unique_known([state, *_presence(function), short_model(gpu.name), self.names.short(gpu.pci or "")]),
            self.severities.devices.get(gpu.id),
            self._wire(function),
            (*describe_gpu_links(gpu, self.severities), *self._own_ports(gpu)),
        )

    def _own_ports(self, gpu: Gpu) -> Iterator[DevicePort]:
        """The RoCE port inside an NPU, or the ports of a Gaudi that leave the box."""
        ascend = self.report.topology.ascend
        for nic in self.report.topology.nics if ascend is None else ():
            if nic.accelerator == gpu.id:
                states = {port.state for port in nic.ports}
                state = "unknown" if None in states else "ok" if states == {"ACTIVE"} else "down"
                yield DevicePort("port", describe_scale_out(nic), state)
        for port in ascend.ports if ascend else ():
            if port.gpu == gpu.id:
                link = find_npu_link(self.report.topology.nics, port)
                state = {"ACTIVE": "ok", "DOWN": "down"}.get(link.state or "", "unknown")
                yield DevicePort("port", describe_npu_port(port, link), state)

    def _nic(self, nic: Nic, function: PciFunction | None) -> Box:
        state = ["NVSwitch management"] if nic.limited else [nic.role] if nic.role != "unknown" else []
        state += [NIC_STATES[nic.state]] if nic.state in NIC_STATES else []
        label = "NIC" if nic.label == nic.pci else nic.label.partition("@")[0]
        return Box(
            nic.id,
            "nic",
            label,
            _unique_known([*state, *_presence(function), short_model(nic.model), self.names.short(nic.pci or "")]),
            self.severities.devices.get(nic.id),
            self._wire(function, is_in_use(nic)),
            tuple(describe_nic_port(nic, port, self.severities) for port in nic.ports),
            alias=", ".join(self._interface_names(nic)),
        )

    def _interface_names(self, nic: Nic) -> list[str]:
        named = [label for port in nic.ports for label in port.netdevs] + self.interfaces.get(nic.id, [])
        return [label for label in dict.fromkeys(named) if label != nic.label]

    def _wire(self, function: PciFunction | None, in_use: bool = True) -> LinkBar | None:
        if function is None or function.link is None:
            return None
        owner = (self.tree.gpus.get(function.id) or self.tree.nics.get(function.id) or function).id
        severity = self.severities.links.get(owner)
        limits = (
            self.limits.get(function.id, ()) if severity else ()
        )  # a device that is slower than its switch is no fault
        return make_link_bar(function.id, function.link, limits)._replace(severity=severity, in_use=in_use)


OF_MATRIX = ("HCCS", "SIO", "UB")  # kinds of paths that no link of a GPU stands for: the driver's matrix alone has them


def _direct_nvlinks(report: Report) -> dict[tuple[str, str], int]:
    """Direct links between GPUs, counted at the end with more active ones; of Ascend NPUs those of the matrix."""
    ends: Counter[tuple[str, str]] = Counter()
    for gpu in report.topology.gpus:
        for link in gpu.links:
            if link.state in ("active", "sleep") and link.remote and link.remote.kind == "gpu" and link.remote.id:
                ends[gpu.id, link.remote.id] += 1
    ids = {gpu.id for gpu in report.topology.gpus}
    for path in report.topology.paths:
        if path.kind in OF_MATRIX:
            ends[path.a, path.b] = 1
    pairs = {tuple(sorted(pair)) for pair in ends if set(pair) <= ids and pair[0] != pair[1]}
    return {(a, b): max(ends[a, b], ends[b, a]) for a, b in sorted(pairs)}


def _presence(function: PciFunction | None) -> list[str]:
    return [] if function is None or function.state == "present" else [function.state.replace("_", " ")]


def _unique_known(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in words if word))
