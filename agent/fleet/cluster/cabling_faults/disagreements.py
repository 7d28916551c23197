"""Hosts in no scalable unit, and ports on which reports disagree: with fabric files, or with each other."""

from __future__ import annotations

from collections import defaultdict

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph, HostLink


def find_loose_hosts(view: View) -> list[CablingFault]:
    """Nodes whose cables are spread over several units, where nearly all others are in one."""
    if view.cluster.cut or len(view.units.loose) > 0.1 * len(view.units.links):
        return []  # then it is the way this fabric is wired
    unplaced, every = [], len(view.units.links)
    for host in view.units.loose:
        links = view.units.links[host]
        near: defaultdict[str, int] = defaultdict(int)
        for unit in view.units.units:
            shared = sum(link.at.switch in unit.leaves for link in links)
            if shared:
                near[unit.name] += shared
        spread = ", ".join(f"{count} on {name}" for name, count in sorted(near.items(), key=lambda item: -item[1]))
        unplaced.append(
            CablingFault(
                kind="no-unit",
                text=f"{host} is in no scalable unit: of its {len(links)} ports {spread}",
                hosts=(host,),
                ports=tuple(view.cluster.place(link.at) for link in links),
                compared=f"{every - len(view.units.loose):,} of {every:,} nodes are in one",
                fix="bring its cables to the leaves of one unit",
            )
        )
    return unplaced


def find_unseen_ports(cluster: FabricGraph) -> list[CablingFault]:
    """Ports that a report and the fabric files do not agree on."""
    faults = []
    for unseen in cluster.unseen:
        missing = unseen.at is None
        faults.append(
            CablingFault(
                kind="not-in-fabric" if missing else "down-in-report",
                text=f"{unseen.host} {unseen.rail or unseen.device}: {unseen.why}",
                hosts=(unseen.host,),
                ports=(cluster.place(unseen.at),) if unseen.at else (),
                fix="one of the two is older: look at both times, then at the port",
            )
        )
    return faults


def find_shared_ports(cluster: FabricGraph) -> list[CablingFault]:
    """Ports of a switch that several hosts report by LLDP or their own fabric file."""
    return [
        CablingFault(
            kind="one-port-twice",
            text=f"{cluster.place(shared_port.at)} is reported by "
            f"{' and by '.join(_end(link) for link in shared_port.links)}",
            hosts=tuple(link.host for link in shared_port.links),
            ports=(cluster.place(shared_port.at),),
            compared="the newest report first",
            fix="scan the later ones again: their reports may be older than a change of cables; then look at the port",
        )
        for shared_port in cluster.shared
    ]


def _end(link: HostLink) -> str:
    return f"{link.host} {link.called}"
