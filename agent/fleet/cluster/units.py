"""Scalable units: nodes that share their set of leaves, and which rail hangs on which of them.

Within a unit most nodes decide on which leaf a rail is. Where they do not agree, and most other units have the rail
elsewhere, these do (`settle_rails`): so many nodes may be wrong that the right ones are the few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.cluster.fabrics import FabricPart
from agent.fleet.cluster.graph import HostLink, Switch
from agent.fleet.cluster.peers import Majority, find_most, find_most_by_key, group_peers
from agent.fleet.cluster.rail_names import order, unify_names
from agent.model.labels import count_by_key, group_by_key, natural

_NUMBERS = re.compile(r"[0-9]{1,9}")
Name = Callable[[str], str]  # of a switch, as people call it


class UnitRail(NamedTuple):
    """The leaf of a rail within a unit, and how many of its nodes have it there.

    `units`: as so many units show it, where these nodes do not agree (settle_rails).
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
    links = group_by_key((link.host, link) for link in part.host_links)
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
    clear = find_most_by_key((link.rail, link.at.switch) for host in hosts for link in links[host] if link.rail)
    return {rail: UnitRail(*clear[rail]) for rail in sorted(clear, key=order)}


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


class Slot(NamedTuple):
    """Where a rail is, as other units have it, too. `rank`: of its port among those of a node on that leaf."""

    leaf: int  # number of the leaf within its unit
    rank: int


class UsualSlots(NamedTuple):
    """Of all units. `usual`: by rail, where it is clear; `number`: see _find_rail_number."""

    of_unit: Mapping[str, Mapping[str, Slot]]
    usual: Mapping[str, tuple[Slot, Majority]]
    number: int | None


def settle_rails(units: Units, name: Name) -> Units:
    """The units, each rail on the leaf that others show where the unit's own nodes do not agree."""
    slots = find_slots(units, name)
    return units._replace(
        units=tuple(_settle(units, unit, slots, name) if unit.name in slots.of_unit else unit for unit in units.units)
    )


def _settle(units: Units, unit: Unit, slots: UsualSlots, name: Name) -> Unit:
    own_links = (link for host in unit.hosts for link in units.links[host] if link.rail)
    counts = count_by_key((link.rail, link.at.switch) for link in own_links)
    taken = {leaf for other in units.units if other is not unit for leaf in other.leaves}
    leaves = {leaf for seen in counts.values() for leaf in seen} - taken
    leaf_of = list_leaves(leaves, slots.number, name)
    settled = {}
    for rail, seen in counts.items():
        if rail not in slots.usual or len(seen) < 2:
            continue
        slot, most = slots.usual[rail]
        leaf, own = leaf_of.get(slot.leaf), unit.rails.get(rail)
        if leaf is not None and seen[leaf] and (own is None or own.leaf != leaf):
            settled[rail] = UnitRail(leaf, Majority(seen[leaf], seen.total()), most)
    if not settled or not keeps_usual_order(len(settled), len(counts)):
        return unit
    rails = {**unit.rails, **settled}
    return unit._replace(rails={rail: rails[rail] for rail in sorted(rails, key=order)})


def keeps_usual_order(odd: int, rails: int) -> bool:
    """Whether so few rails of a unit differ; one of which most do keeps an order of its own."""
    return odd <= max(2, rails // 2)


def find_slots(units: Units, name: Name) -> UsualSlots:
    """Of the units that have several rails."""
    several = [unit for unit in units.units if len(unit.leaves) > 1 or len(unit.rails) > 1]
    number = _find_rail_number(several, name)
    of_unit = {unit.name: _list_slots(units, unit, number, name) for unit in several}
    usual = find_most_by_key(pair for own in of_unit.values() for pair in own.items())
    distinct = len({slot for slot, _ in usual.values()}) == len(usual)
    return UsualSlots(of_unit, usual if distinct else {}, number)


def list_leaves(leaves: Iterable[str], number: int | None, name: Name) -> dict[int, str]:
    """Leaves of a unit by their number within it."""
    ordered = sorted(leaves, key=lambda leaf: natural(name(leaf)))
    if number is None:
        return dict(enumerate(ordered))
    numbers = {leaf: list_numbers(name(leaf)) for leaf in ordered}
    return {row[number]: leaf for leaf, row in numbers.items() if number < len(row)}


def list_numbers(name: str) -> list[int]:
    """Those in a switch's name."""
    return [int(number) for number in _NUMBERS.findall(name)]


def find_places(links: Sequence[HostLink]) -> dict[str, tuple[str, int]]:
    """Leaf of each rail of a node, and the rank of its port among those of the node on that leaf."""
    on_leaf = group_by_key((link.at.switch, (natural(link.at.port), link.rail)) for link in links)
    return {rail: (leaf, rank) for leaf, ports in on_leaf.items() for rank, (_, rail) in enumerate(sorted(ports))}


def find_ranks(units: Units, unit: Unit) -> dict[str, tuple[int, Majority]]:
    """Of the rails where it is clear."""
    places = (place for host in unit.hosts for place in find_places(units.links[host]).items())
    return find_most_by_key((rail, rank) for rail, (_, rank) in places)


def _list_slots(units: Units, unit: Unit, number: int | None, name: Name) -> dict[str, Slot]:
    """Of the rails whose place is clear."""
    ranks = find_ranks(units, unit)
    number_of = {leaf: place for place, leaf in list_leaves(unit.leaves, number, name).items()}
    return {
        rail: Slot(number_of[at.leaf], ranks[rail][0])
        for rail, at in unit.rails.items()
        if rail in ranks and at.leaf in number_of
    }


def _find_rail_number(units: Sequence[Unit], name: Name) -> int | None:
    """Which number in the names of leaves is that of the rail: the same for a rail in nearly all units."""
    rows = {leaf: list_numbers(name(leaf)) for unit in units for leaf in unit.leaves}
    numbers = [(rail, rows[at.leaf]) for unit in units for rail, at in unit.rails.items() if at.leaf in rows]
    if not numbers or len({len(row) for row in rows.values()}) != 1:
        return None
    for place in range(len(numbers[0][1])):
        rails = [find_most(counts) for counts in count_by_key((rail, row[place]) for rail, row in numbers).values()]
        if all(rails) and len({most[0] for most in rails if most}) > 1:
            return place
    return None
