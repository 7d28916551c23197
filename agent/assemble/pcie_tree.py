"""The PCI tree as a graph: what is above and below a function, and which bridges are which ports of a switch.

A PCIe switch is one upstream port and its downstream ports; root ports belong to the host bridge. Where config space
could not be read (no privilege), the structure tells: on a root bus stand root ports, below a root or downstream port
stands an upstream port, below an upstream port stand downstream ports.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from probes.pci.sysfs import PciFunction


class Port(Enum):
    """What a bridge is to the traffic that passes it. Its link registers describe the link named here."""

    ROOT = "root"  # part of the host bridge; link below
    UP = "up"  # of a switch, or a PCIe-to-PCI bridge; link above
    DOWN = "down"  # of a switch; link below


_BY_TYPE = {"root_port": Port.ROOT, "upstream": Port.UP, "downstream": Port.DOWN, "bridge": Port.UP}
_BELOW = {Port.ROOT: Port.UP, Port.UP: Port.DOWN, Port.DOWN: Port.UP}


class PcieTree:
    """Look-ups over all functions of one host. Parents that go in a circle end the climb."""

    def __init__(self, functions: Iterable[PciFunction]) -> None:
        self.functions = {f.address: f for f in functions}
        self.children: dict[str, list[PciFunction]] = {}
        for function in self.functions.values():
            if function.parent in self.functions:
                self.children.setdefault(function.parent, []).append(function)
        self._above: dict[str, tuple[str, ...]] = {}
        self._ports: dict[str, Port | None] = {}

    def above(self, address: str) -> tuple[str, ...]:
        """The bridges above a function, nearest first, up to the root bus."""
        found = self._above.get(address)
        if found is None:
            climbed: dict[str, None] = {}
            at = self.functions.get(address)
            while at and at.parent in self.functions and at.parent not in climbed and at.parent != address:
                climbed[at.parent] = None
                at = self.functions[at.parent]
            found = self._above[address] = tuple(climbed)
        return found

    def parent(self, function: PciFunction) -> PciFunction | None:
        """The bridge above, where the source holds it."""
        return self.functions.get(function.parent) if function.parent else None

    def port(self, address: str) -> Port | None:
        """What a bridge is; None for what is no bridge."""
        if address not in self._ports:
            for place in reversed((address, *self.above(address))):
                if place not in self._ports:
                    self._ports[place] = self._port(self.functions[place])
        return self._ports[address]

    def root_bus(self, address: str) -> str | None:
        """The root bus that a function hangs from; None where the source does not tell."""
        function = self.functions.get(address)
        return function.root_bus if function else None

    def _port(self, function: PciFunction) -> Port | None:
        if function.port_type in _BY_TYPE:
            return _BY_TYPE[function.port_type]
        if not is_bridge(function) and function.address not in self.children:
            return None
        above = self._ports.get(function.parent) if function.parent else None
        return _BELOW[above] if above else Port.ROOT


def is_bridge(function: PciFunction) -> bool:
    """A PCI-to-PCI bridge by class: ports of switches and root ports are these."""
    return (function.class_code or "").startswith("0x0604")
