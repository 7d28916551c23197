"""Where other units have a rail: on which leaf of a unit, by its number, and on which port of a node there.

Within a unit most nodes decide. Where they do not agree, and most other units have the rail elsewhere, these do: so
many nodes may be wrong that the right ones are the few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.fleet.cluster.graph import HostLink, natural
from agent.fleet.cluster.peers import Majority, find_most
from agent.fleet.cluster.rail_names import order
from agent.fleet.cluster.units import Unit, UnitRail, Units

_NUMBERS = re.compile(r"[0-9]{1,9}")
Name = Callable[[str], str]  # of a switch, as people call it


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
    counts: dict[str, Counter[str]] = {}  # by rail, of its leaves
    for host in unit.hosts:
        for link in units.links[host]:
            if link.rail:
                counts.setdefault(link.rail, Counter())[link.at.switch] += 1
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
    counts: dict[str, Counter[Slot]] = {}
    for own in of_unit.values():
        for rail, slot in own.items():
            counts.setdefault(rail, Counter())[slot] += 1
    clear = {rail: find_most(seen) for rail, seen in counts.items()}
    usual = {rail: most for rail, most in clear.items() if most is not None}
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
    on_leaf: dict[str, list[tuple[object, str]]] = {}
    for link in links:
        on_leaf.setdefault(link.at.switch, []).append((natural(link.at.port), link.rail))
    return {rail: (leaf, rank) for leaf, ports in on_leaf.items() for rank, (_, rail) in enumerate(sorted(ports))}


def find_ranks(units: Units, unit: Unit) -> dict[str, tuple[int, Majority]]:
    """Of the rails where it is clear."""
    seen: dict[str, Counter[int]] = {}
    for host in unit.hosts:
        for rail, (_, rank) in find_places(units.links[host]).items():
            seen.setdefault(rail, Counter())[rank] += 1
    clear = {rail: find_most(counts) for rail, counts in seen.items()}
    return {rail: most for rail, most in clear.items() if most is not None}


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
        of_rail: dict[str, Counter[int]] = {}
        for rail, row in numbers:
            of_rail.setdefault(rail, Counter())[row[place]] += 1
        clear = [find_most(counts) for counts in of_rail.values()]
        if all(clear) and len({most[0] for most in clear if most}) > 1:
            return place
    return None
