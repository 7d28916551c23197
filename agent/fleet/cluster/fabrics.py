"""The fabrics of a cluster: what cables join is one, and so are planes to which the same hosts are connected alike.

A few cables between the switches of two rails do not make one plane of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.cluster.graph import FabricGraph, HostLink, SwitchLink, count_neighbors
from agent.fleet.cluster.peers import Joined, find_most
from agent.model.labels import count_by_key, group_by_key, natural

ALIKE = 0.8  # of the hosts on a leaf, those that share a leaf in the other plane too
_NO_CABLES = ("switches", "without a known cable to another")


class FabricPart(NamedTuple):
    """One fabric. `planes`: parts of it that no cable joins, each with its switches."""

    switches: tuple[str, ...]
    host_links: tuple[HostLink, ...]
    switch_links: tuple[SwitchLink, ...]
    planes: tuple[tuple[str, ...], ...]


def split_fabric(cluster: FabricGraph) -> list[FabricPart]:
    """The fabrics, the one with most hosts' links first."""
    joined = Joined()
    cabled = {end for link in cluster.switch_links for end in (link.a.switch, link.b.switch)}
    for link in cluster.switch_links:
        joined.join(link.a.switch, link.b.switch)
    for switch in cluster.switches.values():
        if switch.by_hosts and switch.id not in cabled:  # nothing shows what joins them: taken as one
            joined.join(_NO_CABLES, switch.id)
    planes = split_planes(cluster, joined.group(cluster.switches))
    plane_of = {switch: number for number, these in enumerate(planes) for switch in these}
    kin = _join_kin(cluster, plane_of, len(planes))
    for link in cluster.switch_links:  # one plane, but for a cable at the wrong place
        kin.join(plane_of[link.a.switch], plane_of[link.b.switch])
    ordered = [tuple(sorted(these, key=lambda switch: natural(cluster.switches[switch].name))) for these in planes]
    fabrics = [tuple(ordered[number] for number in numbers) for numbers in kin.group(range(len(planes)))]
    return sorted(_build_parts(cluster, fabrics), key=lambda part: (-len(part.host_links), part.switches))


def _build_parts(cluster: FabricGraph, fabrics: Sequence[tuple[tuple[str, ...], ...]]) -> Iterator[FabricPart]:
    owner = {switch: number for number, planes in enumerate(fabrics) for plane in planes for switch in plane}
    hosts = group_by_key((owner[link.at.switch], link) for link in cluster.host_links)
    trunks = group_by_key((owner[link.a.switch], link) for link in cluster.switch_links)
    for number, planes in enumerate(fabrics):
        switches = tuple(switch for plane in planes for switch in plane)
        yield FabricPart(switches, tuple(hosts.get(number, ())), tuple(trunks.get(number, ())), planes)


def _join_kin(cluster: FabricGraph, plane_of: Mapping[str, int], count: int) -> Joined:
    """Planes with one link a host each, whose hosts share leaves alike: rails that nothing joins above."""
    kin = Joined()
    links: defaultdict[int, Counter[str]] = defaultdict(Counter)
    leaf: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for link in cluster.host_links:
        plane = plane_of[link.at.switch]
        links[plane][link.host] += 1
        leaf[plane][link.host] = link.at.switch
    single = [plane for plane in range(count) if links[plane] and links[plane].total() <= 1.1 * len(links[plane])]
    single.sort(key=lambda plane: -len(leaf[plane]))
    leaders: list[int] = []
    for plane in single:
        for leader in leaders:
            if _share_leaves(leaf[plane], leaf[leader]) and _share_leaves(leaf[leader], leaf[plane]):
                kin.join(leader, plane)
                break
        else:
            if len(leaders) < 64:  # more planes than any network has: each stays its own
                leaders.append(plane)
    return kin


def _share_leaves(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Hosts that share a leaf in the one mostly share one in the other."""
    both = one.keys() & other.keys()
    if len(both) < 0.5 * min(len(one), len(other)) or not both:
        return False
    together = count_by_key((one[host], other[host]) for host in both)
    return sum(max(counts.values()) for counts in together.values()) >= ALIKE * len(both)


STRAY = 0.02  # of the cables of a plane: more are meant
_ROUNDS = 4  # rows above the leaves


def split_planes(cluster: FabricGraph, planes: list[list[str]]) -> list[list[str]]:
    """The planes, of which some were taken for one because of a few cables between switches of two rails."""
    rails = count_by_key((link.at.switch, link.rail) for link in cluster.host_links)
    own = group_by_key((cable.a.switch, cable) for cable in cluster.switch_links)
    split_parts = []
    for plane in planes:
        links = [link for switch in plane for link in own.get(switch, ())]
        split_parts += _split(plane, links, rails)
    return split_parts


def _split(plane: list[str], links: list[SwitchLink], rails: Mapping[str, Counter[str]]) -> list[list[str]]:
    rail = _find_rails(plane, links, rails)
    if len(rail) < len(plane) or len(set(rail.values())) < 2:
        return [plane]
    strays = [link for link in links if rail[link.a.switch] != rail[link.b.switch]]
    if len(strays) > max(2, STRAY * len(links)):
        return [plane]
    joined = Joined()
    for link in links:
        if rail[link.a.switch] == rail[link.b.switch]:
            joined.join(link.a.switch, link.b.switch)
    parts = joined.group(plane)
    return parts if len(parts) == len(set(rail.values())) else [plane]


def _find_rails(plane: list[str], links: list[SwitchLink], rails: Mapping[str, Counter[str]]) -> dict[str, str]:
    """The rail that a switch carries, or that most of the switches beside it do; only those of which it is clear."""
    beside = count_neighbors(links)
    rail_by_host: dict[str, str] = {}
    for switch in plane:
        clear = find_most(rails[switch]) if switch in rails else None
        if clear and clear[0]:
            rail_by_host[switch] = clear[0]
        elif switch in rails:
            return {}  # a leaf of several rails
    for _ in range(_ROUNDS):
        new = {}
        for switch in plane:
            if switch in rail_by_host:
                continue
            near: Counter[str] = Counter()
            for far, count in beside.get(switch, {}).items():
                if far in rail_by_host:
                    near[rail_by_host[far]] += count
            clear = find_most(near)
            if clear:
                new[switch] = clear[0]
        rail_by_host |= new
    return rail_by_host
