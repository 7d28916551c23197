"""NVLink domains: hosts in two of them, domains of an odd size, hosts in the domain of another rack."""

from __future__ import annotations

from collections import Counter, defaultdict

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.graph import Domain, FabricGraph
from agent.fleet.cluster.peers import find_most
from agent.fleet.hostlist import fold

LARGEST_GPUS = 72  # of one NVLink domain: GB200, GB300 and Vera Rubin NVL72


def find_domain_faults(cluster: FabricGraph) -> list[CablingFault]:
    """Everything about NVLink domains that leave a node."""
    elsewhere = _find_other_racks(cluster)
    explained = {host for cable_break in elsewhere for host in cable_break.hosts}
    return [*_split(cluster), *elsewhere, *_find_odd_sizes(cluster, explained)]


def _split(cluster: FabricGraph) -> list[CablingFault]:
    """Hosts whose GPUs are in more than one domain."""
    of: defaultdict[str, list[str]] = defaultdict(list)
    for domain in cluster.domains:
        for host in domain.hosts:
            of[host].append(domain.id)
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
    racks: defaultdict[str, Counter[Domain]] = defaultdict(Counter)
    for domain in cluster.domains:
        for host in domain.hosts:
            if host in cluster.racks:
                racks[cluster.racks[host]][domain] += 1
    clear = {rack: find_most(domains) for rack, domains in racks.items()}
    return {rack: racks[0] for rack, racks in clear.items() if racks}


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
