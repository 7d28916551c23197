"""One fabric, worked out: rows, units, blocks. What judges it, draws it and writes it down stands on this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from agent.fleet.cluster.fabrics import FabricPart, parts
from agent.fleet.cluster.graph import FabricGraph, HostLink, Nameless, SwitchLink, SwitchPort
from agent.fleet.cluster.switch_tiers import SwitchBlock, blocks, tiers
from agent.fleet.cluster.units import Unit, Units, units


class View:
    """All that is worked out of one fabric, each when it is first asked for."""

    def __init__(self, cluster: FabricGraph, part: FabricPart) -> None:
        self.cluster = cluster
        self.part = part
        self.tiers: dict[str, int] = tiers(part, cluster.switches, self.nameless)
        self.units: Units = units(part, cluster.switches)

    @cached_property
    def blocks(self) -> list[SwitchBlock]:
        """Between each row and the next."""
        return blocks(self.part, self.tiers, self.cluster.switches)

    @cached_property
    def block_of(self) -> dict[str, SwitchBlock]:
        """By its lower switches."""
        return {lower: block for block in self.blocks for lower in block.lower}

    @cached_property
    def leaves(self) -> set[str]:
        """Switches of the first row."""
        return {each for each, tier in self.tiers.items() if tier == 1}

    @cached_property
    def levels(self) -> int:
        """Rows of switches."""
        return max(self.tiers.values(), default=0)

    @cached_property
    def nameless(self) -> list[Nameless]:
        """Adapters in this fabric that do not say which host they are in."""
        own = set(self.part.switches)
        return [each for each in self.cluster.nameless if each.at.switch in own]

    @cached_property
    def unit_of(self) -> dict[str, Unit]:
        """By host."""
        return {host: unit for unit in self.units.units for host in unit.hosts}

    @cached_property
    def used(self) -> Mapping[SwitchPort, HostLink | SwitchLink | Nameless]:
        """What is on every port of a switch that has something on it."""
        found: dict[SwitchPort, HostLink | SwitchLink | Nameless] = {each.at: each for each in self.part.host_links}
        found |= {each.at: each for each in self.nameless}
        for link in self.part.switch_links:
            found[link.a] = found[link.b] = link
        return found

    @cached_property
    def down(self) -> Mapping[str, list[HostLink | Nameless]]:
        """Ports of hosts, by their switch."""
        found: defaultdict[str, list[HostLink | Nameless]] = defaultdict(list)
        for link in self.part.host_links:
            found[link.at.switch].append(link)
        for adapter in self.nameless:
            found[adapter.at.switch].append(adapter)
        return found

    def name(self, switch: str) -> str:
        """As people call it."""
        return self.cluster.switches[switch].name


def views(cluster: FabricGraph) -> list[View]:
    """Every fabric that has a host or a cable, the largest first."""
    return [View(cluster, part) for part in parts(cluster) if part.host_links or part.switch_links]
