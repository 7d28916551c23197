"""Swapped rails of whole units, or of about half of the nodes of one: within the unit all agree, or neither place is
the usual one, and other units show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import natural
from agent.fleet.cluster.peers import AGREE, Majority, find_most
from agent.fleet.cluster.rail_names import order
from agent.fleet.cluster.units import Unit

_NUMBERS = re.compile(r"[0-9]{1,9}")


class _Slot(NamedTuple):
    """Where a rail is, as other units have it, too. `rank`: of its port among those of a node on that leaf."""

    leaf: int  # number of the leaf within its unit
    rank: int


def find_exchanged_leaves(view: View) -> list[CablingFault]:
    """Two units of which each has the other's leaf of a rail, by the numbers in the names of all leaves."""
    units = [unit for unit in view.units.units if len(unit.rails) > AGREE]
    home = _find_home_numbers(view, units) if not view.cluster.cut else {}
    of_number = {number: unit for unit, (_, number) in home.items()}
    away: dict[tuple[str, str], list[str]] = {}
    for unit in units if len(of_number) == len(home) else ():
        for rail, at in unit.rails.items() if unit.name in home else ():
            place, own = home[unit.name]
            number = _list_numbers(view, at.leaf)[place]
            if number != own and number in of_number:
                away.setdefault((unit.name, of_number[number]), []).append(rail)
    named = {unit.name: unit for unit in units}
    faults = []
    for (one, other), rails in sorted(away.items()):
        both = [rail for rail in rails if one < other and rail in away.get((other, one), ())]
        if both:
            faults.append(_report_leaves(view, named[one], named[other], both))
    return faults


def _find_home_numbers(view: View, units: Sequence[Unit]) -> dict[str, tuple[int, int]]:
    """Of each unit, which number in the names of its leaves is the unit's, and the number."""
    numbers = {unit.name: [_list_numbers(view, at.leaf) for at in unit.rails.values()] for unit in units}
    lengths = {len(row) for rows in numbers.values() for row in rows}
    for place in range(next(iter(lengths))) if len(lengths) == 1 else ():
        clear = {name: find_most(Counter(row[place] for row in rows)) for name, rows in numbers.items()}
        homes = {name: (place, most[0]) for name, most in clear.items() if most is not None}
        if len(homes) > 1 and len(homes) == len(units) == len(set(homes.values())):
            return homes
    return {}


def _list_numbers(view: View, leaf: str) -> list[int]:
    return [int(number) for number in _NUMBERS.findall(view.name(leaf))]


def _report_leaves(view: View, one: Unit, other: Unit, rails: Sequence[str]) -> CablingFault:
    leaves = [(view.name(one.rails[rail].leaf), view.name(other.rails[rail].leaf)) for rail in rails]
    where = "; ".join(f"{rail} on {first} and on {second}" for rail, (first, second) in zip(rails, leaves, strict=True))
    return CablingFault(
        kind="exchanged-rails",
        text=f"all nodes of {one.name} and {other.name} are on each other's leaf: {where}",
        hosts=(*one.hosts, *other.hosts),
        ports=tuple(name for pair in leaves for name in pair),
        compared=f"{len(one.rails) - len(rails)} of {len(one.rails)} rails of {one.name} are on leaves of its own",
        fix="see whether the names of the two switches are exchanged; else exchange their cables to the nodes",
    )


def find_exchanged_rails(view: View) -> list[CablingFault]:
    """Where the places of rails are as clear as that; a unit of which most rails differ keeps an order of its own."""
    if view.cluster.cut:
        return []
    units = [unit for unit in view.units.units if len(unit.rails) > 1]
    number = _find_rail_number(view, units)
    slots = {unit.name: _list_slots(view, unit, number) for unit in units}
    usual = _find_usual([slots[unit.name] for unit in units])
    if len({slot for slot, _ in usual.values()}) < len(usual):
        return []
    faults = []
    for unit in units:
        own = slots[unit.name]
        odd = [rail for rail, slot in own.items() if rail in usual and slot != usual[rail][0]]
        if 0 < len(odd) <= max(2, len(own) // 2) and {own[rail] for rail in odd} == {usual[rail][0] for rail in odd}:
            faults.append(_make_fault(view, unit, sorted(odd, key=order), usual[odd[0]][1]))
        faults += _find_swapped_nodes(view, unit, usual, number)
    return faults


def _find_swapped_nodes(
    view: View, unit: Unit, usual: Mapping[str, tuple[_Slot, Majority]], number: int | None
) -> list[CablingFault]:
    """Two rails that are swapped on so many nodes of a unit that within it neither place is the usual one."""
    leaves = sorted(unit.leaves, key=lambda leaf: natural(view.name(leaf)))
    of_number = {
        place if number is None else _list_numbers(view, leaf)[number]: leaf for place, leaf in enumerate(leaves)
    }
    expected = {
        rail: of_number[slot.leaf]
        for rail, (slot, _) in usual.items()
        if rail not in unit.rails and slot.leaf in of_number
    }
    swapped: dict[tuple[str, str], list[str]] = {}
    for host in unit.hosts:
        leaf_of = {link.rail: link.at.switch for link in view.units.links[host]}
        for one, other in combinations(sorted(expected, key=order), 2):
            places = expected[one], expected[other]
            if places[0] != places[1] and (leaf_of.get(other), leaf_of.get(one)) == places:
                swapped.setdefault((one, other), []).append(host)
    return [
        _report_nodes(view, unit, hosts, rails, [expected[rail] for rail in rails], usual[rails[0]][1])
        for rails, hosts in sorted(swapped.items())
        if len(hosts) >= AGREE
    ]


def _report_nodes(
    view: View, unit: Unit, hosts: Sequence[str], rails: Sequence[str], leaves: Sequence[str], most: Majority
) -> CablingFault:
    names = [view.name(leaf) for leaf in leaves]
    nodes = f"{len(hosts)} of {len(unit.hosts)} nodes of {unit.name}"
    return CablingFault(
        kind="exchanged-rails",
        text=f"{nodes} have {' and '.join(rails)} swapped on {', '.join(names)}",
        hosts=tuple(hosts),
        ports=tuple(names),
        compared=f"{most.words} units have them the other way round",
        fix="exchange the cables of both rails at these nodes or at the switches",
    )


def _make_fault(view: View, unit: Unit, rails: Sequence[str], most: Majority) -> CablingFault:
    leaves = list(dict.fromkeys(unit.rails[rail].leaf for rail in rails))
    names = ", ".join(view.name(leaf) for leaf in leaves)
    return CablingFault(
        kind="exchanged-rails",
        text=f"all {len(unit.hosts)} nodes of {unit.name} have {' and '.join(rails)} swapped on {names}",
        hosts=unit.hosts,
        ports=tuple(view.name(leaf) for leaf in leaves),
        compared=f"{most.words} units have them the other way round",
        fix="see whether the names of the two switches are exchanged; else exchange their cables to the nodes",
    )


def _find_usual(slots: Sequence[Mapping[str, _Slot]]) -> dict[str, tuple[_Slot, Majority]]:
    counts: dict[str, Counter[_Slot]] = {}
    for own in slots:
        for rail, slot in own.items():
            counts.setdefault(rail, Counter())[slot] += 1
    clear = {rail: find_most(seen) for rail, seen in counts.items()}
    return {rail: most for rail, most in clear.items() if most is not None}


def _list_slots(view: View, unit: Unit, number: int | None) -> dict[str, _Slot]:
    """Of the rails whose place is clear. `number`: see _find_rail_number."""
    ranks = _find_ranks(view, unit)
    leaves = sorted(unit.leaves, key=lambda leaf: natural(view.name(leaf)))
    return {
        rail: _Slot(leaves.index(at.leaf) if number is None else _list_numbers(view, at.leaf)[number], ranks[rail])
        for rail, at in unit.rails.items()
        if rail in ranks and at.leaf in leaves
    }


def _find_ranks(view: View, unit: Unit) -> dict[str, int]:
    seen: dict[str, Counter[int]] = {}
    for host in unit.hosts:
        on_leaf: dict[str, list[tuple[object, str]]] = {}
        for link in view.units.links[host]:
            on_leaf.setdefault(link.at.switch, []).append((natural(link.at.port), link.rail))
        for ports in on_leaf.values():
            for rank, (_, rail) in enumerate(sorted(ports)):
                seen.setdefault(rail, Counter())[rank] += 1
    clear = {rail: find_most(counts) for rail, counts in seen.items()}
    return {rail: most[0] for rail, most in clear.items() if most is not None}


def _find_rail_number(view: View, units: Sequence[Unit]) -> int | None:
    """Which number in the names of leaves is that of the rail: the same for a rail in nearly all units."""
    numbers = [(rail, _list_numbers(view, at.leaf)) for unit in units for rail, at in unit.rails.items()]
    if len({len(row) for _, row in numbers}) != 1:
        return None
    for place in range(len(numbers[0][1])):
        of_rail: dict[str, Counter[int]] = {}
        for rail, row in numbers:
            of_rail.setdefault(rail, Counter())[row[place]] += 1
        clear = [find_most(counts) for counts in of_rail.values()]
        if all(clear) and len({most[0] for most in clear if most}) > 1:
            return place
    return None
