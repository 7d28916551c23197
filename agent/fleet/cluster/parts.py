"""The fabrics of a cluster: what cables join is one, and so are planes that the same hosts hang on alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.fleet.cluster.graph import FabricGraph, HostLink, SwitchLink, natural
from agent.fleet.cluster.grouping import Joined
from agent.fleet.cluster.planes import apart

ALIKE = 0.8  # of the hosts on a leaf, those that share a leaf in the other plane too
_NO_CABLES = ("switches", "of which no cable to another is known")


class FabricPart(NamedTuple):
    """One fabric. `planes`: parts of it that no cable joins, each with its switches."""

    switches: tuple[str, ...]
    host_links: tuple[HostLink, ...]
    switch_links: tuple[SwitchLink, ...]
    planes: tuple[tuple[str, ...], ...]


def parts(cluster: FabricGraph) -> list[FabricPart]:
    """The fabrics, the one with most hosts' links first."""
    joined = Joined()
    cabled = {end for link in cluster.switch_links for end in (link.a.switch, link.b.switch)}
    for link in cluster.switch_links:
        joined.join(link.a.switch, link.b.switch)
    for switch in cluster.switches.values():
        if switch.by_hosts and switch.id not in cabled:  # nothing shows what joins them: taken as one
            joined.join(_NO_CABLES, switch.id)
    found_planes: defaultdict[object, list[str]] = defaultdict(list)
    for each in cluster.switches:
        found_planes[joined.find(each)].append(each)
    planes = apart(cluster, list(found_planes.values()))
    plane_of = {each: number for number, these in enumerate(planes) for each in these}
    kin = _kin(cluster, plane_of, len(planes))
    for link in cluster.switch_links:  # one plane, but for a cable at the wrong place
        kin.join(plane_of[link.a.switch], plane_of[link.b.switch])
    found: defaultdict[object, list[tuple[str, ...]]] = defaultdict(list)
    for number, these in enumerate(planes):
        found[kin.find(number)].append(tuple(sorted(these, key=lambda each: natural(cluster.switches[each].name))))
    return sorted(_built(cluster, found), key=lambda part: (-len(part.host_links), part.switches))


def _built(cluster: FabricGraph, found: Mapping[object, list[tuple[str, ...]]]) -> Iterator[FabricPart]:
    owner = {switch: key for key, planes in found.items() for plane in planes for switch in plane}
    hosts: defaultdict[object, list[HostLink]] = defaultdict(list)
    trunks: defaultdict[object, list[SwitchLink]] = defaultdict(list)
    for host_link in cluster.host_links:
        hosts[owner[host_link.at.switch]].append(host_link)
    for link in cluster.switch_links:
        trunks[owner[link.a.switch]].append(link)
    for key, planes in found.items():
        switches = tuple(each for plane in planes for each in plane)
        yield FabricPart(switches, tuple(hosts[key]), tuple(trunks[key]), tuple(planes))


def _kin(cluster: FabricGraph, plane_of: Mapping[str, int], count: int) -> Joined:
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
            if _alike(leaf[plane], leaf[leader]) and _alike(leaf[leader], leaf[plane]):
                kin.join(leader, plane)
                break
        else:
            if len(leaders) < 64:  # more planes than any network has: each stays its own
                leaders.append(plane)
    return kin


def _alike(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Hosts that share a leaf in the one mostly share one in the other."""
    both = one.keys() & other.keys()
    if len(both) < 0.5 * min(len(one), len(other)) or not both:
        return False
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for host in both:
        together[one[host]][other[host]] += 1
    return sum(max(each.values()) for each in together.values()) >= ALIKE * len(both)
