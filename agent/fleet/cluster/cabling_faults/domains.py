"""NVLink domains: hosts in two of them, domains of an odd size, hosts in the domain of another rack; hosts in no
scalable unit; ports on which reports disagree, with fabric files or with each other.
"""

from __future__ import annotations

from collections import Counter

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import Domain, FabricGraph, HostLink
from agent.fleet.cluster.peers import find_most, find_most_by_key
from agent.fleet.hostlist import fold
from agent.model.labels import group_by_key

LARGEST_GPUS = 72  # of one NVLink domain: GB200, GB300 and Vera Rubin NVL72


def find_domain_faults(cluster: FabricGraph) -> list[CablingFault]:
    """Everything about NVLink domains that leave a node."""
    elsewhere = _find_other_racks(cluster)
    explained = {host for cable_break in elsewhere for host in cable_break.hosts}
    return [*_split(cluster), *elsewhere, *_find_odd_sizes(cluster, explained)]


def _split(cluster: FabricGraph) -> list[CablingFault]:
    """Hosts whose GPUs are in more than one domain."""
    of = group_by_key((host, domain.id) for domain in cluster.domains for host in domain.hosts)
    return [
        CablingFault(
            kind="split-domain",
            text=f"the GPUs of {host} are in {len(ids)} NVLink domains: {', '.join(sorted(ids))}",
            hosts=(host,),
            fix="see the NVLink partitions of its rack, and which GPUs the fabric manager gave which clique",
        )
        for host, ids in sorted(of.items())
        if len(ids) > 1
    ]


def _find_other_racks(cluster: FabricGraph) -> list[CablingFault]:
    """Hosts whose rack differs from that of nearly all others of their domain, and such in a domain of no rack."""
    faults = []
    home = _find_homes(cluster)
    for domain in cluster.domains:
        racks = Counter(cluster.racks[host] for host in domain.hosts if host in cluster.racks)
        clear = find_most(racks)  # null also where hosts of several racks came into one domain of their own
        for host in domain.hosts:
            rack = cluster.racks.get(host)
            if rack is None:
                continue
            if clear and rack != clear[0]:
                text = f"{host} is in NVLink domain {domain.id} of rack {clear[0]}, and itself in rack {rack}"
                faults.append(_make_fault(host, text, f"{clear[1].words} hosts of the domain are in rack {clear[0]}"))
            elif not clear and rack in home and home[rack].id != domain.id:
                other = home[rack]
                where = "alone" if len(domain.hosts) == 1 else "with hosts of other racks"
                text = f"{host} is {where} in NVLink domain {domain.id}; the others of rack {rack} are in {other.id}"
                count = sum(cluster.racks.get(each) == rack for each in other.hosts)
                faults.append(_make_fault(host, text, f"{count} hosts of rack {rack} are in {other.id}"))
    return faults


def _make_fault(host: str, text: str, compared: str) -> CablingFault:
    return CablingFault(
        kind="domain-rack",
        text=text,
        hosts=(host,),
        compared=compared,
        fix="compare the tray's place and its NVLink cartridge with the fabric manager's list of the rack",
    )


def _find_homes(cluster: FabricGraph) -> dict[str, Domain]:
    """The domain of most hosts of a rack, where that is clear."""
    placed = ((host, domain) for domain in cluster.domains for host in domain.hosts if host in cluster.racks)
    clear = find_most_by_key((cluster.racks[host], domain) for host, domain in placed)
    return {rack: domain for rack, (domain, _) in clear.items()}


def _find_odd_sizes(cluster: FabricGraph, explained: set[str]) -> list[CablingFault]:
    """Domains with more GPUs than there can be, and such with another number of hosts than most have."""
    clear = find_most(Counter(len(domain.hosts) for domain in cluster.domains))
    faults = []
    for domain in cluster.domains:
        hosts = len(domain.hosts)
        if explained & set(domain.hosts):
            continue  # the host of another rack is why
        if domain.gpus > LARGEST_GPUS:
            compared = f"an NVLink domain has at most {LARGEST_GPUS} GPUs"
        elif clear and hosts != clear[0]:
            compared = f"{clear[1].words} domains have {clear[0]} hosts"
        else:
            continue
        one = f"host{'s'[: hosts != 1]} and {domain.gpus} GPUs"
        faults.append(
            CablingFault(
                kind="domain-size",
                text=f"NVLink domain {domain.id} has {hosts} {one}: {fold(domain.hosts)}",
                hosts=domain.hosts,
                compared=compared,
                fix="see which trays the fabric manager lists for the rack; a tray that is missing may have no report",
            )
        )
    return faults


def find_loose_hosts(view: View) -> list[CablingFault]:
    """Nodes whose cables are spread over several units, where nearly all others are in one."""
    if view.cluster.cut or len(view.units.loose) > 0.1 * len(view.units.links):
        return []  # then it is the way this fabric is wired
    unplaced, every = [], len(view.units.links)
    for host in view.units.loose:
        links = view.units.links[host]
        near = Counter(unit.name for unit in view.units.units for link in links if link.at.switch in unit.leaves)
        spread = ", ".join(f"{count} on {name}" for name, count in near.most_common())
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
