"""Scalable units: nodes that share their set of leaves, and which rail hangs on which of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.cluster.fabrics import FabricPart
from agent.fleet.cluster.graph import HostLink, Switch, natural
from agent.fleet.cluster.peers import Majority, find_most, group_peers
from agent.fleet.cluster.rail_names import order, unify_names


class UnitRail(NamedTuple):
    """The leaf of a rail within a unit, and how many of its nodes have it there.

    `units`: as so many units show it, where these nodes do not agree (rail_slots.py).
    """

    leaf: str
    most: Majority
    units: Majority | None = None

    def describe(self, unit: str, rail: str, leaf: str) -> str:
        """Why it is thought to belong there. `leaf`: its name."""
        if self.units is not None:
            return f"{self.units.words} units have {rail} on a leaf like {leaf}, {self.most.words} nodes of {unit}"
        return f"{self.most.words} nodes of {unit} have {rail} on {leaf}"


class Unit(NamedTuple):
    """`rails`: only those where a majority is clear. `usual`: links that most of its nodes have, if that is clear."""

    name: str
    leaves: tuple[str, ...]
    hosts: tuple[str, ...]
    rails: Mapping[str, UnitRail]
    usual: tuple[int, Majority] | None


class Units(NamedTuple):
    """All units by the names of their leaves; `loose`: hosts that hang between several; `links`: of each host."""

    units: tuple[Unit, ...]
    loose: tuple[str, ...]
    links: Mapping[str, tuple[HostLink, ...]]


def build_units(part: FabricPart, switches: Mapping[str, Switch]) -> Units:
    """The units of one fabric."""
    links: defaultdict[str, list[HostLink]] = defaultdict(list)
    for link in part.host_links:
        links[link.host].append(link)
    same: dict[tuple[str, ...], Counter[str]] = {}  # most nodes of a unit are on the same switches
    places = {}
    for host, these in links.items():
        switches_of = tuple([link.at.switch for link in these])
        if switches_of not in same:
            same[switches_of] = Counter(switches_of)
        places[host] = same[switches_of]
    cohorts, loose = group_peers(places)
    unify_names([group.members for group in cohorts], links)
    unit_list, taken = [], set[str]()
    by_name = [tuple(sorted(group.places, key=lambda place: natural(switches[place].name))) for group in cohorts]
    order = sorted(
        zip(by_name, cohorts, strict=True), key=lambda pair: [natural(switches[switch].name) for switch in pair[0]]
    )
    common = Counter(_name([switches[leaf].name for leaf in leaves]) for leaves, _ in order)
    for leaves, group in order:
        names = [switches[leaf].name for leaf in leaves]
        own = _name(names)
        name = _find_free_name(
            [own, names[0]] if common[own] == 1 else [names[0]], taken
        )  # what several share names none
        hosts = tuple(sorted(group.members, key=natural))
        usual_rails = find_most(Counter(len(links[host]) for host in hosts))
        unit_list.append(Unit(name, leaves, hosts, _find_rails(hosts, links), usual_rails))
    ordered = {host: tuple(sorted(these, key=_order)) for host, these in links.items()}
    return Units(tuple(unit_list), tuple(sorted(loose, key=natural)), ordered)


def _order(link: HostLink) -> tuple[object, ...]:
    return order(link.rail or link.device), natural(link.at.port)


def _find_rails(hosts: Iterable[str], links: Mapping[str, list[HostLink]]) -> dict[str, UnitRail]:
    at: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for host in hosts:
        for link in links[host]:
            if link.rail:
                at[link.rail][link.at.switch] += 1
    rails = {}
    for rail in sorted(at, key=order):
        clear = find_most(at[rail])
        if clear:
            rails[rail] = UnitRail(*clear)
    return rails


def _name(leaves: list[str]) -> str:
    """What the names of its leaves have in common, or most of them where one is another unit's; else the first of them.

    >>> _name(["LG28-01", "LG28-08"]), _name(["leaf1"]), _name(["B09-LEAF-01-05", "B09-LEAF-02-05"]), _name(["a", "b"])
    ('LG28', 'leaf1', 'B09-LEAF-05', 'a')
    >>> _name(["su2-leaf1", "su3-leaf2", "su3-leaf3", "su3-leaf4"])
    'su3'
    """
    split = [re.split(r"([^A-Za-z0-9]+)", leaf) for leaf in leaves]
    if len(leaves) == 1 or len({len(word) for word in split}) > 1:
        return leaves[0]
    same = [_find_shared(words) for words in zip(*split, strict=True)]
    name = "-".join(word for word in same if word and re.match(r"[A-Za-z0-9]", word))
    return name if len(name) > 1 else leaves[0]


def _find_shared(words: Sequence[str]) -> str | None:
    counts = Counter(words)
    most = find_most(counts)
    return words[0] if len(counts) == 1 else most[0] if most else None


def _find_free_name(names: list[str], taken: set[str]) -> str:
    """The first of these that no other has, else the first with a number."""
    chosen, number = next((name for name in names if name not in taken), names[0]), 2
    while chosen in taken:
        chosen, number = f"{names[0]} ({number})", number + 1
    taken.add(chosen)
    return chosen
