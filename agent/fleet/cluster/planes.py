"""Planes that only cables at the wrong place join: rails with switches of their own, up to the top."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from agent.fleet.cluster.clear import most
from agent.fleet.cluster.graph import FabricGraph, SwitchLink
from agent.fleet.cluster.grouping import Joined

STRAY = 0.02  # of the cables of a plane: more are meant
_ROUNDS = 4  # rows above the leaves


def apart(cluster: FabricGraph, planes: list[list[str]]) -> list[list[str]]:
    """The planes, of which some were taken for one because of a few cables between switches of two rails."""
    rails: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for link in cluster.host_links:
        rails[link.at.switch][link.rail] += 1
    own: defaultdict[str, list[SwitchLink]] = defaultdict(list)
    for cable in cluster.switch_links:
        own[cable.a.switch].append(cable)
    found = []
    for plane in planes:
        links = [link for switch in plane for link in own[switch]]
        found += _split(plane, links, rails)
    return found


def _split(plane: list[str], links: list[SwitchLink], rails: Mapping[str, Counter[str]]) -> list[list[str]]:
    rail = _rail_of(plane, links, rails)
    if len(rail) < len(plane) or len(set(rail.values())) < 2:
        return [plane]
    strays = [link for link in links if rail[link.a.switch] != rail[link.b.switch]]
    if len(strays) > max(2, STRAY * len(links)):
        return [plane]
    joined = Joined()
    for link in links:
        if rail[link.a.switch] == rail[link.b.switch]:
            joined.join(link.a.switch, link.b.switch)
    parts: defaultdict[object, list[str]] = defaultdict(list)
    for switch in plane:
        parts[joined.find(switch)].append(switch)
    return list(parts.values()) if len(parts) == len(set(rail.values())) else [plane]


def _rail_of(plane: list[str], links: list[SwitchLink], rails: Mapping[str, Counter[str]]) -> dict[str, str]:
    """The rail that a switch carries, or that most of the switches beside it do; only those of which it is clear."""
    beside: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for link in links:
        beside[link.a.switch][link.b.switch] += 1
        beside[link.b.switch][link.a.switch] += 1
    found: dict[str, str] = {}
    for switch in plane:
        clear = most(rails[switch]) if switch in rails else None
        if clear and clear[0]:
            found[switch] = clear[0]
        elif switch in rails:
            return {}  # a leaf of several rails
    for _ in range(_ROUNDS):
        new = {}
        for switch in plane:
            if switch in found:
                continue
            near: Counter[str] = Counter()
            for far, count in beside[switch].items():
                if far in found:
                    near[found[far]] += count
            clear = most(near)
            if clear:
                new[switch] = clear[0]
        found |= new
    return found
