"""The PCI tree as a graph: what is above and below a function, and which bridges are ports of a switch.

A PCIe switch is one upstream port and its downstream ports; root ports belong to the host bridge. Where config space
could not be read (no privilege), the structure decides: root ports are on a root bus; below a root or downstream port
is an upstream port, below an upstream port are downstream ports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from agent.model.labels import group_by_key
from probes.pci.facts import PciFunction

if TYPE_CHECKING:
    from agent.model.pci import PciFunction as PciRow


_BRIDGE = "0x0604"  # PCI class


class BridgePort(Enum):
    """The role of a bridge for traffic. Its link registers describe the link named here."""

    ROOT = "root"  # part of the host bridge; link below
    UP = "up"  # of a switch, or a PCIe-to-PCI bridge; link above
    DOWN = "down"  # of a switch; link below


_BY_TYPE = {
    "root_port": BridgePort.ROOT,
    "upstream": BridgePort.UP,
    "downstream": BridgePort.DOWN,
    "bridge": BridgePort.UP,
}
_BELOW = {BridgePort.ROOT: BridgePort.UP, BridgePort.UP: BridgePort.DOWN, BridgePort.DOWN: BridgePort.UP}


class PcieTree:
    """Lookups over all functions of one host. A cycle of parents ends the walk."""

    def __init__(self, functions: Iterable[PciFunction]) -> None:
        self.functions = {f.address: f for f in functions}
        self.children = group_by_key((f.parent, f) for f in self.functions.values() if f.parent in self.functions)
        self._above: dict[str, tuple[str, ...]] = {}
        self._ports: dict[str, BridgePort | None] = {}

    def above(self, address: str) -> tuple[str, ...]:
        """The bridges above a function, nearest first, up to the root bus."""
        bridges = self._above.get(address)
        if bridges is None:
            climbed: dict[str, None] = {}
            function = self.functions.get(address)
            while (
                function
                and function.parent in self.functions
                and function.parent not in climbed
                and function.parent != address
            ):
                climbed[function.parent] = None
                function = self.functions[function.parent]
            bridges = self._above[address] = tuple(climbed)
        return bridges

    def parent(self, function: PciFunction) -> PciFunction | None:
        """The bridge above, if the source has it."""
        return self.functions.get(function.parent) if function.parent else None

    def port(self, address: str) -> BridgePort | None:
        """The port type of a bridge; None for other functions."""
        if address not in self._ports:
            for place in reversed((address, *self.above(address))):
                if place not in self._ports:
                    self._ports[place] = self._port(self.functions[place])
        return self._ports[address]

    def root_bus(self, address: str) -> str | None:
        """The root bus of a function; None where the source does not report it."""
        function = self.functions.get(address)
        return function.root_bus if function else None

    def _port(self, function: PciFunction) -> BridgePort | None:
        if function.port_type in _BY_TYPE:
            return _BY_TYPE[function.port_type]
        if not is_bridge(function) and function.address not in self.children:
            return None
        above = self._ports.get(function.parent) if function.parent else None
        return _BELOW[above] if above else BridgePort.ROOT


def is_bridge(function: PciFunction) -> bool:
    """A PCI-to-PCI bridge by class: ports of switches and root ports are these."""
    return (function.class_code or "").startswith(_BRIDGE)


def find_beside_lost_gpu(rows: Mapping[str, PciRow], devices: Iterable[str], gpus: Collection[str]) -> frozenset[str]:
    """Devices on a switch that has nothing where another switch of its shape has a GPU: theirs is gone."""
    children = group_by_key((row.parent, row) for row in rows.values() if row.parent)
    shapes: dict[str, tuple[object, ...]] = {}

    def switches(device: str) -> Iterator[tuple[str, tuple[object, ...], str]]:
        """Those above a device, each with its shape and the device and function of the port that leads to it."""
        row, seen = rows.get(device), {device}
        while row and (top := rows.get(row.parent or "")) and top.id not in seen:
            seen.add(top.id)
            if top.id not in shapes:
                ports = sorted(c.id[-4:] for c in children[top.id] if (c.class_code or "").startswith(_BRIDGE))
                shapes[top.id] = (top.vendor, top.device, *ports) if len(ports) > 1 else ()
            if shapes[top.id]:
                yield top.id, shapes[top.id], row.id[-4:]
            row = top

    def is_empty(port: PciRow) -> bool:
        """Nothing but bridges below it: a GPU may have a switch of its own."""
        todo, seen = [port], {port.id}
        while todo:
            row = todo.pop()
            if not (row.class_code or "").startswith(_BRIDGE):
                return False
            todo += (child for child in children.get(row.id, ()) if child.id not in seen)
            seen.update(child.id for child in todo)
        return True

    expected_ids: dict[tuple[object, ...], set[str]] = {}
    for gpu in gpus:
        for _, shape, port in switches(gpu):
            expected_ids.setdefault(shape, set()).add(port)
    return frozenset(
        device
        for device in devices
        for top, shape, _ in switches(device)
        for child in children[top]
        if child.id[-4:] in expected_ids.get(shape, ()) and is_empty(child)
    )
