"""The switches of one group: which port every rail is plugged into, and the whole as ibnetdiscover would print it.

Rail-optimized: rail k of a unit is on leaf k of that unit, in the port of the node's place. Fat tree: all rails of a
node are on one leaf. Pair: the same, on two leaves that are joined with each other. Up to as many leaves as a spine
has ports every leaf is on every spine; above that, spines are grouped by rail and core switches join them: a fabric
has as many units as half of a switch's ports, at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.fleet.identity import switch_guid, switch_mac
from bench.fleet.platforms import Wiring

LAYOUTS = ("rail", "fat-tree", "pair")
_SCATTER = 7  # no factor of a unit


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
    meant: Port  # where it should be


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
    best: set[Port] = field(default_factory=set)  # of cables upwards whose ends can do no more
    exchanged: dict[Port, Port] = field(default_factory=dict)  # of cables upwards: each goes where the other should
    dark: set[int] = field(default_factory=set)  # switches that are off
    scattered: bool = False  # a node is on another port of each leaf
    thin_units: set[int] = field(default_factory=set)  # those with half of their cables upwards

    def __post_init__(self) -> None:
        self.units = math.ceil(self.nodes / self.unit)
        if self.layout == "rail":
            self.down = self.unit
            self.leaves = self.units * self.rails
        else:
            self.per_leaf = max(self.radix // 2 // self.rails, 1)
            if self.layout == "pair" and self.nodes > 2 * self.per_leaf:
                raise ValueError(f"{self.nodes} nodes of {self.name}: on two switches are at most {2 * self.per_leaf}")
            self.down = self.per_leaf * self.rails
            self.leaves = math.ceil(self.nodes / self.per_leaf)
        self.up = max(int(self.down / self.oversubscription), 1)
        self._plan_spines()
        self._names = [self.switch_name(number) for number in range(self.leaves)]
        self._macs = [self.chassis(number) for number in range(self.leaves)]

    def _plan_spines(self) -> None:
        """Two tiers where a spine has a port for every leaf; else spines by rail, and cores over them."""
        if self.layout == "pair":
            self.tiers, self.spines, self.cores = 1, 0, 0
            return
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
            place = node % self.unit
            if self.scattered:
                place = (place * _SCATTER + rail * 5) % self.unit
            return Port(node // self.unit * self.rails + rail, place + 1)
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
        usual_value = f"4x{self.wiring.speed}" if self.wiring else ""
        for lower, upper in self.meant_cables():
            yield from self._cable(lower, upper, usual_value)

    def meant_cables(self) -> Iterator[tuple[Port, Port]]:
        """The same as they should be."""
        for leaf in range(self.leaves if self.spines else self.leaves - 1):
            yield from ((Port(leaf, self.down + 1 + n), self.above(leaf, n)) for n in range(self.up))
        if self.tiers == 3:
            yield from self._to_cores()

    def above(self, leaf: int, n: int) -> Port:
        """The far end of a leaf's cable upwards, from 0; of two leaves without a spine, at the other one."""
        if not self.spines:
            return Port(leaf + 1, self.down + 1 + n)
        if self.tiers == 2:
            return Port(self.leaves + n // self.per_spine, leaf * self.per_spine + n % self.per_spine + 1)
        return Port(self.leaves + leaf % self.groups * self.up + n, leaf // self.groups + 1)

    def _to_cores(self) -> Iterator[tuple[Port, Port]]:
        for spine in range(self.spines):
            group, number = divmod(spine, self.up)
            for n in range(self.core_ports):
                core = self.leaves + self.spines + number * self.core_ports + n
                for k in range(max(self.radix // 2 // self.core_ports, 1)):
                    upper = Port(core, group * (self.radix // 2 // self.core_ports) + k + 1)
                    lower = Port(
                        self.leaves + spine, self.radix // 2 + n * (self.radix // 2 // self.core_ports) + k + 1
                    )
                    yield lower, upper

    def _cable(self, lower: Port, upper: Port, usual: str) -> Iterator[tuple[Port, Port, str]]:
        if {lower.switch, upper.switch} & self.dark:
            return
        what = self.uplinks.get(lower, usual)
        thin = lower.switch < self.leaves and lower.switch // self.rails in self.thin_units
        if what is not None and not (thin and (lower.number - self.down) % 2):
            yield self.exchanged.get(lower, lower), upper, what

    def ends(
        self, rails: Mapping[Port, Rail]
    ) -> tuple[dict[int, dict[int, tuple[Port, str]]], dict[int, dict[int, Rail]]]:
        """By switch and port: far ends of cables between switches with their width and speed, and rails."""
        ends: dict[int, dict[int, tuple[Port, str]]] = {}
        for lower, upper, what in self.cables():
            ends.setdefault(lower.switch, {})[lower.number] = (upper, what)
            ends.setdefault(upper.switch, {})[upper.number] = (lower, what)
        below: dict[int, dict[int, Rail]] = {}
        for port, rail in rails.items():
            below.setdefault(port.switch, {})[port.number] = rail
        return ends, below

    def text(self, rails: Mapping[Port, Rail]) -> Iterator[str]:
        """The fabric as ibnetdiscover prints it, a node a piece. Every switch has an aggregation node (SHARP)."""
        assert self.wiring is not None
        ends, below = self.ends(rails)
        root = self.guid(0)
        yield "#\n# Topology file: generated on Thu Jan 15 08:00:00 2026\n#\n"
        yield f"# Initiated from node {root} port {root}\n"
        there = [number for number in range(self.switches) if number not in self.dark]
        for number in there:
            yield self._switch(number, ends.get(number, {}), below.get(number, {}))
        yield from map(self._aggregation, there)
        for port, rail in rails.items():
            yield self._adapter(port, rail)

    def _switch(self, number: int, ends: Mapping[int, tuple[Port, str]], below: Mapping[int, Rail]) -> str:
        assert self.wiring is not None
        guid = self.guid(number)
        lines = [
            f"\nvendid=0x2c9\ndevid={self.wiring.device_id}\nsysimgguid=0x{guid}\nswitchguid=0x{guid}({guid})",
            f'Switch\t{self.radix + 1} "S-{guid}"\t\t# "{self.description(number)}" '
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
                f'[{port}]\t"S-{self.guid(far.switch)}"[{far.number}]\t\t# "{self.description(far.switch)}" '
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
            f'"{self.description(number)}" lid {number + 1} 4x{self.wiring.speed}\n'
        )

    def _adapter(self, port: Port, rail: Rail) -> str:
        assert self.wiring is not None
        return (
            f"\nvendid=0x2c9\ndevid={self.wiring.hca_device_id}\nsysimgguid=0x{rail.guid}\ncaguid=0x{rail.guid}\n"
            f'Ca\t1 "H-{rail.guid}"\t\t# "{rail.hostname} {rail.device}"\n'
            f'[1]({rail.guid}) \t"S-{self.guid(port.switch)}"[{port.number}]\t\t# lid {rail.lid} lmc 0 '
            f'"{self.description(port.switch)}" lid {port.switch + 1} {rail.speed}\n'
        )

    def description(self, number: int) -> str:
        """Its node description."""
        assert self.wiring is not None
        return f"MF0;{self.switch_name(number)}:{self.wiring.model}/U1"


def _sharp(guid: str) -> str:
    """The GUID of a switch's aggregation node."""
    return f"{guid[:8]}01{guid[10:]}"


_GBPS = {"EDR": "25.78125", "HDR": "53.125", "NDR": "106.25"}  # of a lane, as signalled


def iblinkinfo(fabric: Fabric, rails: Mapping[Port, Rail]) -> Iterator[str]:
    """A block for each switch. "Could be": what both ends can do and the link does not use."""
    assert fabric.wiring is not None
    usual = f"4x{fabric.wiring.speed}"
    ends, below = fabric.ends(rails)
    for number in range(fabric.switches):
        if number in fabric.dark:
            continue
        yield f"Switch: 0x{fabric.guid(number)} {fabric.description(number)}:\n"
        for port in sorted({*ends.get(number, {}), *below.get(number, {})}):
            rail = below.get(number, {}).get(port)
            if rail is not None:
                far, what, best = f'{rail.lid} 1[  ] "{rail.hostname} {rail.device}"', rail.speed, False
            else:
                upper, what = ends[number][port]
                far = f'{upper.switch + 1} {upper.number}[  ] "{fabric.description(upper.switch)}"'
                best = not fabric.best.isdisjoint((Port(number, port), upper))
            yield f"{number + 1:>12}{port:>5}[  ] ==( {_words(what)} Active/  LinkUp)==>  {far} "
            yield "( )\n" if best or what == usual else f"({_hint(what, usual)})\n"


def _words(what: str) -> str:
    return f"{what[0]}X {_GBPS[what[2:]]} Gbps"


def _hint(what: str, usual: str) -> str:
    hints = [f"Could be {usual[0]}X"] if what[0] != usual[0] else []
    return " ".join(hints + ([f"Could be {_GBPS[usual[2:]]} Gbps"] if what[2:] != usual[2:] else []))


def ndt(fabric: Fabric, rails: Mapping[Port, Rail]) -> Iterator[str]:
    """Every cable where it is meant to be, whatever was planted."""
    yield "#Fields:StartDevice,StartPort,EndDevice,EndPort,Cable Length\n"
    for rail in rails.values():
        switch = fabric.description(rail.meant.switch)
        yield f"{switch},Port {rail.meant.number},{rail.hostname} {rail.device},Port 1,3m\n"
    for lower, upper in fabric.meant_cables():
        near, far = fabric.description(lower.switch), fabric.description(upper.switch)
        yield f"{near},Port {lower.number},{far},Port {upper.number},10m\n"
