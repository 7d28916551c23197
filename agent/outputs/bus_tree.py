"""The part of the PCI tree that pages show: what leads to a GPU, NIC, NVSwitch or drive, from the root buses down; of a
machine that has none of them its drives, displays and ordinary network controllers."""

from __future__ import annotations

from agent.model.gpu import Gpu
from agent.model.labels import group_by_key
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.outputs.names import visible_nics

_BRIDGE, _NVME = "0x0604", "0x0108"
_ORDINARY = {"0x0108": "NVMe", "0x01": "storage", "0x02": "NIC", "0x03": "display", "0x12": "accelerator"}


class BusTree:
    """Lookups in the PCI tree of one report, and the walk from its roots; NVMe drives and CXL memory on request."""

    def __init__(self, report: Report, with_drives: bool = False) -> None:
        topology = report.topology
        nics = visible_nics(report)
        self.functions = {f.id: f for f in topology.pci}
        self.gpus: dict[str | None, Gpu] = {g.pci: g for g in topology.gpus if g.pci in self.functions}
        self.nics: dict[str | None, Nic] = {n.pci: n for n in nics if n.pci in self.functions}
        self.switches = {s.pci for s in topology.nvswitches if s.pci in self.functions}
        self.drives = {f.id for f in topology.pci if with_drives and (f.class_code or "").startswith(_NVME)}
        memories = topology.cxl.devices if topology.cxl and with_drives else []
        self.memories = {device.id: device for device in memories if device.id in self.functions}
        # devices without a known bus
        self.unplaced_gpus = [g for g in topology.gpus if g.pci not in self.functions]
        self.unplaced_nics = [n for n in nics if n.pci not in self.functions]
        devices = topology.gpus or nics or topology.nvswitches or with_drives
        self.ordinary = {} if devices else {f.id: kind for f in topology.pci if (kind := _name_kind(f))}
        self.children = group_by_key((function.parent, function) for function in topology.pci if function.parent)
        self.drawn = self._leading_to_devices()

    def nodes(self) -> dict[int | None, dict[str, list[PciFunction]]]:
        """NUMA node (None: unknown, last) -> root bus ("": unknown) -> what is drawn directly on it."""
        nodes: dict[int | None, dict[str, list[PciFunction]]] = {}
        for function in self.functions.values():
            if function.id in self.drawn and (function.parent or "") not in self.functions:
                buses = nodes.setdefault(function.numa_node, {})
                buses.setdefault(function.root_bus or "", []).append(function)
        return {
            node: {bus: self._visible(tops, below_switch=False) for bus, tops in nodes[node].items()}
            for node in sorted(nodes, key=lambda node: (node is None, node or 0))
        }

    def visible_below(self, function: PciFunction) -> list[PciFunction]:
        """What is drawn directly below a switch."""
        return self._visible(self.children.get(function.id, []), below_switch=True)

    def count_drives(self, switch: PciFunction) -> int:
        """NVMe drives on the ports of a switch."""
        return sum(
            (leaf.class_code or "").startswith(_NVME)
            for port in self.children.get(switch.id, [])
            for leaf in self.children.get(port.id, [])
        )

    def _visible(self, functions: list[PciFunction], below_switch: bool) -> list[PciFunction]:
        """What is drawn of one bus. Ports are skipped: what is below them is drawn in their place."""
        visible: list[PciFunction] = []
        for function in functions:
            if function.id in self.drawn:
                through = _is_port(function, below_switch or (function.parent or "") not in self.functions)
                visible += self.children.get(function.id, []) if through else [function]
        return [function for function in visible if function.id in self.drawn]

    def _leading_to_devices(self) -> set[str]:
        """The drawn devices and every bridge above them. A cycle of parents ends the walk."""
        drawn: set[str] = set()
        for place in (*self.gpus, *self.nics, *self.switches, *self.drives, *self.memories, *self.ordinary):
            bridge = self.functions.get(place or "")
            while bridge and bridge.id not in drawn:
                drawn.add(bridge.id)
                bridge = self.functions.get(bridge.parent or "")
        return drawn


def _name_kind(function: PciFunction) -> str | None:
    return next((kind for begin, kind in _ORDINARY.items() if (function.class_code or "").startswith(begin)), None)


def _is_port(function: PciFunction, by_place: bool) -> bool:
    if not (function.class_code or "").startswith(_BRIDGE):
        return False
    if function.port_type:
        return function.port_type in ("root_port", "downstream")
    return by_place
