"""The switches of one group: which port every rail is plugged into, and the whole as ibnetdiscover would print it.

Rail-optimized: rail k of a unit is on leaf k of that unit, in the port of the node's place. Fat tree: all rails of a
node are on one leaf. Up to as many leaves as a spine has ports every leaf is on every spine; above that, spines are
grouped by rail and core switches join them: a fabric has as many units as half of a switch's ports, at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.fleet.identity import switch_guid, switch_mac
from bench.fleet.platforms import Wiring

LAYOUTS = ("rail", "fat-tree")


class Port(NamedTuple):
    """A switch's port. `switch`: its number in the fabric: leaves, then spines, then cores."""

    switch: int
    number: int


class Rail(NamedTuple):
    """One port of a node, as the fabric sees it."""

    hostname: str
    device: str
    guid: str  # 16 digits
    lid: int
    speed: str


@dataclass
class Fabric:
    """One fabric. `moved`: (node of the group, rail) -> another port; `uplinks`: what differs of a cable upwards."""

    name: str
    seed: int
    first_switch: int  # number of its first switch among all of the fleet
    nodes: int
    unit: int
    rails: int
    radix: int
    layout: str = "rail"
    oversubscription: float = 1.0
    wiring: Wiring | None = None
    moved: dict[tuple[int, int], Port] = field(default_factory=dict)
    uplinks: dict[Port, str | None] = field(default_factory=dict)  # "4xHDR", "2xNDR"; none: no cable
    exchanged: dict[Port, Port] = field(default_factory=dict)  # of cables upwards: each goes where the other should
    thin_units: set[int] = field(default_factory=set)  # those with half of their cables upwards

    def __post_init__(self) -> None:
        self.units = math.ceil(self.nodes / self.unit)
        if self.layout == "rail":
            self.down = self.unit
            self.leaves = self.units * self.rails
        else:
            self.per_leaf = max(self.radix // 2 // self.rails, 1)
            self.down = self.per_leaf * self.rails
            self.leaves = math.ceil(self.nodes / self.per_leaf)
        self.up = max(int(self.down / self.oversubscription), 1)
        self._plan_spines()
        self._names = [self.switch_name(number) for number in range(self.leaves)]
        self._macs = [self.chassis(number) for number in range(self.leaves)]

    def _plan_spines(self) -> None:
        """Two tiers where a spine has a port for every leaf; else spines by rail, and cores over them."""
        fits = [n for n in range(1, self.up + 1) if self.up % n == 0 and self.leaves * (self.up // n) <= self.radix]
        self.tiers = 2 if fits else 3
        self.cores = 0
        if fits:
            self.spines, self.per_spine = fits[0], self.up // fits[0]
            return
        self.groups = math.ceil(self.leaves / (self.radix // 2)) if self.layout == "fat-tree" else self.rails
        self.per_spine = 1
        self.spines = self.groups * self.up
        self.core_ports = 4  # uplinks of a spine, each to another core of its number
        self.cores = self.up * self.core_ports

    def port(self, node: int, rail: int) -> Port:
        """Where a rail of the group's node is plugged in."""
        return self.moved.get((node, rail)) or self.meant(node, rail)

    def meant(self, node: int, rail: int) -> Port:
        """Where it should be."""
        if self.layout == "rail":
            return Port(node // self.unit * self.rails + rail, node % self.unit + 1)
        return Port(node // self.per_leaf, node % self.per_leaf * self.rails + rail + 1)

    def told(self, port: Port) -> tuple[str, str, str]:
        """A leaf's port by LLDP it: switch, port, chassis."""
        return self._names[port.switch], f"Ethernet{port.number}", self._macs[port.switch]

    def switch_name(self, number: int) -> str:
        """Its name in LLDP and in its node description."""
        if number < self.leaves:
            if self.layout == "rail":
                return f"{self.name}-leaf-u{number // self.rails + 1:02d}-r{number % self.rails}"
            return f"{self.name}-leaf-{number + 1:03d}"
        if number < self.leaves + self.spines:
            return f"{self.name}-spine-{number - self.leaves + 1:03d}"
        return f"{self.name}-core-{number - self.leaves - self.spines + 1:03d}"

    def guid(self, number: int) -> str:
        """A switch's GUID."""
        return switch_guid(self.seed, self.first_switch + number)

    def chassis(self, number: int) -> str:
        """A switch's MAC."""
        return switch_mac(self.seed, self.first_switch + number)

    @property
    def switches(self) -> int:
        """How many there are."""
        return self.leaves + self.spines + self.cores

    def lid(self, node: int, rail: int) -> int:
        """Of a node's rail: after those of the switches and their aggregation nodes."""
        return 2 * self.switches + 1 + node * self.rails + rail

    def cables(self) -> Iterator[tuple[Port, Port, str]]:
        """Between switches: the lower port, the upper one, width and speed."""
        usual = f"4x{self.wiring.speed}" if self.wiring else ""
        for leaf in range(self.leaves):
            for n in range(self.up):
                if self.tiers == 2:
                    upper = Port(self.leaves + n // self.per_spine, leaf * self.per_spine + n % self.per_spine + 1)
                else:
                    group = leaf % self.groups
                    upper = Port(self.leaves + group * self.up + n, leaf // self.groups + 1)
                yield from self._cable(Port(leaf, self.down + 1 + n), upper, usual)
        if self.tiers == 3:
            yield from self._to_cores(usual)

    def _to_cores(self, usual: str) -> Iterator[tuple[Port, Port, str]]:
        for spine in range(self.spines):
            group, number = divmod(spine, self.up)
            for n in range(self.core_ports):
                core = self.leaves + self.spines + number * self.core_ports + n
                for k in range(max(self.radix // 2 // self.core_ports, 1)):
                    upper = Port(core, group * (self.radix // 2 // self.core_ports) + k + 1)
                    lower = Port(
                        self.leaves + spine, self.radix // 2 + n * (self.radix // 2 // self.core_ports) + k + 1
                    )
                    yield from self._cable(lower, upper, usual)

    def _cable(self, lower: Port, upper: Port, usual: str) -> Iterator[tuple[Port, Port, str]]:
        what = self.uplinks.get(lower, usual)
        thin = lower.switch < self.leaves and lower.switch // self.rails in self.thin_units
        if what is not None and not (thin and (lower.number - self.down) % 2):
            yield self.exchanged.get(lower, lower), upper, what

    def text(self, rails: Mapping[Port, Rail]) -> Iterator[str]:
        """The fabric as ibnetdiscover prints it, a node a piece. Every switch has an aggregation node (SHARP)."""
        assert self.wiring is not None
        ends: dict[int, dict[int, tuple[Port, str]]] = {}
        for lower, upper, what in self.cables():
            ends.setdefault(lower.switch, {})[lower.number] = (upper, what)
            ends.setdefault(upper.switch, {})[upper.number] = (lower, what)
        below: dict[int, dict[int, Rail]] = {}
        for port, rail in rails.items():
            below.setdefault(port.switch, {})[port.number] = rail
        root = self.guid(0)
        yield "#\n# Topology file: generated on Thu Jan 15 08:00:00 2026\n#\n"
        yield f"# Initiated from node {root} port {root}\n"
        for number in range(self.switches):
            yield self._switch(number, ends.get(number, {}), below.get(number, {}))
        for number in range(self.switches):
            yield self._aggregation(number)
        for port, rail in rails.items():
            yield self._adapter(port, rail)

    def _switch(self, number: int, ends: Mapping[int, tuple[Port, str]], below: Mapping[int, Rail]) -> str:
        assert self.wiring is not None
        guid = self.guid(number)
        lines = [
            f"\nvendid=0x2c9\ndevid={self.wiring.device_id}\nsysimgguid=0x{guid}\nswitchguid=0x{guid}({guid})",
            f'Switch\t{self.radix + 1} "S-{guid}"\t\t# "{self._description(number)}" '
            f"enhanced port 0 lid {number + 1} lmc 0",
        ]
        for port in sorted({*ends, *below}):
            rail = below.get(port)
            if rail is not None:
                lines.append(
                    f'[{port}]\t"H-{rail.guid}"[1]({rail.guid}) \t\t# "{rail.hostname} {rail.device}" '
                    f"lid {rail.lid} {rail.speed}"
                )
                continue
            far, what = ends[port]
            lines.append(
                f'[{port}]\t"S-{self.guid(far.switch)}"[{far.number}]\t\t# "{self._description(far.switch)}" '
                f"lid {far.switch + 1} {what}"
            )
        sharp = _sharp(guid)
        lines.append(
            f'[{self.radix + 1}]\t"H-{sharp}"[1]({sharp}) \t\t# "Mellanox Technologies Aggregation Node" '
            f"lid {self.switches + number + 1} 4x{self.wiring.speed}"
        )
        return "\n".join(lines) + "\n"

    def _aggregation(self, number: int) -> str:
        assert self.wiring is not None
        guid = self.guid(number)
        sharp = _sharp(guid)
        return (
            f"\nvendid=0x2c9\ndevid=0xcf09\nsysimgguid=0x{guid}\ncaguid=0x{sharp}\n"
            f'Ca\t1 "H-{sharp}"\t\t# "Mellanox Technologies Aggregation Node"\n'
            f'[1]({sharp}) \t"S-{guid}"[{self.radix + 1}]\t\t# lid {self.switches + number + 1} lmc 0 '
            f'"{self._description(number)}" lid {number + 1} 4x{self.wiring.speed}\n'
        )

    def _adapter(self, port: Port, rail: Rail) -> str:
        assert self.wiring is not None
        return (
            f"\nvendid=0x2c9\ndevid={self.wiring.hca_device_id}\nsysimgguid=0x{rail.guid}\ncaguid=0x{rail.guid}\n"
            f'Ca\t1 "H-{rail.guid}"\t\t# "{rail.hostname} {rail.device}"\n'
            f'[1]({rail.guid}) \t"S-{self.guid(port.switch)}"[{port.number}]\t\t# lid {rail.lid} lmc 0 '
            f'"{self._description(port.switch)}" lid {port.switch + 1} {rail.speed}\n'
        )

    def _description(self, number: int) -> str:
        assert self.wiring is not None
        return f"MF0;{self.switch_name(number)}:{self.wiring.model}/U1"


def _sharp(guid: str) -> str:
    """The GUID of a switch's aggregation node."""
    return f"{guid[:8]}01{guid[10:]}"
