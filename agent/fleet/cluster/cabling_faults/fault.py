"""A fault of the cabling; and those of one node: in no unit, in two NVLink domains, a port that the fabric lacks."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import FabricGraph

KINDS = {
    "swapped-cables": "Swapped cables",
    "rail-elsewhere": "A rail on another leaf than its unit's",
    "missing-rail": "A node with fewer rails than its peers",
    "short-unit": "A unit without a leaf that its peers have",
    "no-unit": "A node in no scalable unit",
    "missing-uplink": "A cable between switches that peers have",
    "swapped-uplinks": "Swapped cables between switches",
    "uplink-elsewhere": "A cable between switches that leads elsewhere than its peers'",
    "uneven-pace": "A link slower than its peers",
    "slower-than-both-ends": "A link slower than both of its ends could be",
    "not-in-fabric": "A port that its host calls up and the fabric does not show",
    "down-in-report": "A port that the fabric shows and its host calls down",
    "split-domain": "A host in two NVLink domains",
}


class Break(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`kind`: a key of KINDS. `ports`: "SWITCH/PORT". `compared`: with what, and how many of it agree.

    `should`: where a cable belongs, by the end that is wrong: "luna-0541 mlx5_9" -> "LG28-08/1".
    """

    kind: str
    text: str
    hosts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    compared: str = ""
    fix: str = ""
    should: dict[str, str] = {}


def loose_hosts(view: View) -> list[Break]:
    """Nodes whose cables are spread over several units, where nearly all others are in one."""
    if view.cluster.cut or len(view.units.loose) > 0.1 * len(view.units.links):
        return []  # then it is the way this fabric is wired
    found, every = [], len(view.units.links)
    for host in view.units.loose:
        links = view.units.links[host]
        near: defaultdict[str, int] = defaultdict(int)
        for unit in view.units.units:
            shared = sum(link.at.switch in unit.leaves for link in links)
            if shared:
                near[unit.name] += shared
        spread = ", ".join(f"{count} on {name}" for name, count in sorted(near.items(), key=lambda item: -item[1]))
        found.append(
            Break(
                kind="no-unit",
                text=f"{host} is in no scalable unit: of its {len(links)} ports {spread}",
                hosts=(host,),
                ports=tuple(view.cluster.place(link.at) for link in links),
                compared=f"{every - len(view.units.loose):,} of {every:,} nodes are in one",
                fix="bring its cables to the leaves of one unit",
            )
        )
    return found


def unseen_ports(cluster: FabricGraph) -> list[Break]:
    """Ports that a report and the fabric files do not agree on."""
    found = []
    for each in cluster.unseen:
        missing = each.at is None
        found.append(
            Break(
                kind="not-in-fabric" if missing else "down-in-report",
                text=f"{each.host} {each.rail or each.device}: {each.why}",
                hosts=(each.host,),
                ports=(cluster.place(each.at),) if each.at else (),
                fix="one of the two is older: look at both times, then at the port",
            )
        )
    return found


def domain_breaks(cluster: FabricGraph) -> list[Break]:
    """Hosts whose GPUs are in more than one NVLink domain."""
    of: defaultdict[str, list[str]] = defaultdict(list)
    for domain in cluster.domains:
        for host in domain.hosts:
            of[host].append(domain.id)
    return [
        Break(
            kind="split-domain",
            text=f"the GPUs of {host} are in {len(ids)} NVLink domains: {', '.join(sorted(ids))}",
            hosts=(host,),
            fix="see the NVLink partitions of its rack, and which GPUs the fabric manager gave which clique",
        )
        for host, ids in sorted(of.items())
        if len(ids) > 1
    ]
