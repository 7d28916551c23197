"""The PCI tree as a graph: what is above and below a function, and which bridges are ports of a switch.

A PCIe switch is one upstream port and its downstream ports; root ports belong to the host bridge. Where config space
could not be read (no privilege), the structure decides: root ports are on a root bus; below a root or downstream port
is an upstream port, below an upstream port are downstream ports.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from probes.pci.sysfs import PciFunction


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
        self.children: dict[str, list[PciFunction]] = {}
        for function in self.functions.values():
            if function.parent in self.functions:
                self.children.setdefault(function.parent, []).append(function)
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
    return (function.class_code or "").startswith("0x0604")
