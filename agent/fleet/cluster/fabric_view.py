"""One fabric, worked out: rows, units, blocks. What judges it, draws it and writes it down reads this."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from agent.fleet.cluster.fabrics import FabricPart, split_fabric
from agent.fleet.cluster.graph import FabricGraph, HostLink, SwitchLink, SwitchPort, UnknownAdapter
from agent.fleet.cluster.switch_tiers import SwitchBlock, build_blocks, find_tiers
from agent.fleet.cluster.units import Unit, Units, build_units, settle_rails
from agent.model.labels import group_by_key


class View:
    """All that is worked out of one fabric, each when it is first asked for."""

    def __init__(self, cluster: FabricGraph, part: FabricPart) -> None:
        self.cluster = cluster
        self.part = part
        self.tiers: dict[str, int] = find_tiers(part, cluster.switches, self.nameless)
        units = build_units(part, cluster.switches)
        self.units: Units = units if cluster.cut else settle_rails(units, self.name)

    @cached_property
    def blocks(self) -> list[SwitchBlock]:
        """Between each row and the next."""
        return build_blocks(self.part, self.tiers, self.cluster.switches)

    @cached_property
    def block_of(self) -> dict[str, SwitchBlock]:
        """By its lower switches."""
        return {lower: block for block in self.blocks for lower in block.lower}

    @cached_property
    def leaves(self) -> set[str]:
        """Switches of the first row."""
        return {switch for switch, tier in self.tiers.items() if tier == 1}

    @cached_property
    def levels(self) -> int:
        """Rows of switches."""
        return max(self.tiers.values(), default=0)

    @cached_property
    def nameless(self) -> list[UnknownAdapter]:
        """Adapters in this fabric that do not show which host they are in."""
        own = set(self.part.switches)
        return [adapter for adapter in self.cluster.nameless if adapter.at.switch in own]

    @cached_property
    def unit_of(self) -> dict[str, Unit]:
        """By host."""
        return {host: unit for unit in self.units.units for host in unit.hosts}

    @cached_property
    def used(self) -> Mapping[SwitchPort, HostLink | SwitchLink | UnknownAdapter]:
        """What is on every port of a switch that has something on it."""
        used: dict[SwitchPort, HostLink | SwitchLink | UnknownAdapter] = {
            link.at: link for link in self.part.host_links
        }
        used |= {adapter.at: adapter for adapter in self.nameless}
        for link in self.part.switch_links:
            used[link.a] = used[link.b] = link
        return used

    @cached_property
    def down(self) -> Mapping[str, list[HostLink | UnknownAdapter]]:
        """Ports of hosts, by their switch."""
        ports: list[HostLink | UnknownAdapter] = [*self.part.host_links, *self.nameless]
        return group_by_key((port.at.switch, port) for port in ports)

    def name(self, switch: str) -> str:
        """As people call it."""
        return self.cluster.switches[switch].name


def build_views(cluster: FabricGraph) -> list[View]:
    """Every fabric that has a host or a cable, the largest first."""
    return [View(cluster, part) for part in split_fabric(cluster) if part.host_links or part.switch_links]
