"""Swapped rails of whole units: within the unit all agree, and other units show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import HostLink
from agent.fleet.cluster.peers import AGREE, Majority, find_most
from agent.fleet.cluster.rail_names import order
from agent.fleet.cluster.units import (
    Unit,
    UsualSlots,
    find_places,
    find_ranks,
    find_slots,
    keeps_usual_order,
    list_numbers,
)


class _Exchange(NamedTuple):
    one: Unit
    other: Unit
    rails: list[str]


def find_exchanged_leaves(view: View) -> list[CablingFault]:
    """Two units of which each has the other's leaf of a rail, by the numbers in the names of all leaves."""
    return [_report_leaves(view, *exchange) for exchange in _find_exchanges(view)]


def list_home_leaves(view: View) -> dict[str, tuple[str, ...]]:
    """The leaves of each unit, those that two units have exchanged where they belong."""
    leaves = {unit.name: list(unit.leaves) for unit in view.units.units}
    for one, other, rails in _find_exchanges(view):
        for rail in rails:
            for unit, own, foreign in ((one, other, one), (other, one, other)):
                place = foreign.rails[rail].leaf
                if place in leaves[unit.name]:
                    leaves[unit.name][leaves[unit.name].index(place)] = own.rails[rail].leaf
    return {name: tuple(row) for name, row in leaves.items()}


def _find_exchanges(view: View) -> list[_Exchange]:
    units = [unit for unit in view.units.units if len(unit.rails) > AGREE]
    home = _find_home_numbers(view, units) if not view.cluster.cut else {}
    of_number = {number: unit for unit, (_, number) in home.items()}
    away: dict[tuple[str, str], list[str]] = {}
    for unit in units if len(of_number) == len(home) else ():
        for rail, at in unit.rails.items() if unit.name in home else ():
            place, own = home[unit.name]
            number = list_numbers(view.name(at.leaf))[place]
            if number != own and number in of_number:
                away.setdefault((unit.name, of_number[number]), []).append(rail)
    named = {unit.name: unit for unit in units}
    exchanges = []
    for (one, other), rails in sorted(away.items()):
        both = [rail for rail in rails if one < other and rail in away.get((other, one), ())]
        if both:
            exchanges.append(_Exchange(named[one], named[other], both))
    return exchanges


def _find_home_numbers(view: View, units: Sequence[Unit]) -> dict[str, tuple[int, int]]:
    """Of each unit, which number in the names of its leaves is the unit's, and the number."""
    numbers = {unit.name: [list_numbers(view.name(at.leaf)) for at in unit.rails.values()] for unit in units}
    lengths = {len(row) for rows in numbers.values() for row in rows}
    for place in range(next(iter(lengths))) if len(lengths) == 1 else ():
        clear = {name: find_most(Counter(row[place] for row in rows)) for name, rows in numbers.items()}
        homes = {name: (place, most[0]) for name, most in clear.items() if most is not None}
        if len(homes) > 1 and len(homes) == len(units) == len(set(homes.values())):
            return homes
    return {}


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
    slots = find_slots(view.units, view.name)
    faults = []
    for unit in view.units.units:
        own = slots.of_unit.get(unit.name, {})
        odd = [rail for rail, slot in own.items() if rail in slots.usual and slot != slots.usual[rail][0]]
        exchanged = {own[rail] for rail in odd} == {slots.usual[rail][0] for rail in odd}
        swaps = _find_exchanged_ports(view, unit, slots)
        if odd and keeps_usual_order(len(odd), len(own)) and exchanged and not any(set(odd) & {*key} for key in swaps):
            faults.append(_make_fault(view, unit, sorted(odd, key=order), slots.usual[odd[0]][1]))
        for rails, nodes in swaps.items():
            faults += _report_ports(view, unit, rails, nodes)
    return faults


class _ExchangedPorts(NamedTuple):
    """Two rails of a node on each other's port of a leaf. `why`: what others have."""

    one: HostLink
    other: HostLink
    why: str


def _find_exchanged_ports(view: View, unit: Unit, slots: UsualSlots) -> dict[tuple[str, str], list[_ExchangedPorts]]:
    """Where several rails of a node share a leaf and keep an order of ports: nodes with two of them exchanged.

    Where nearly all nodes of a unit are alike they decide, unless most other units have it the other way round.
    """
    ranks = find_ranks(view.units, unit)
    expected: dict[str, tuple[int, str]] = {}
    for rail in unit.rails:
        rank, most = ranks.get(rail, (None, None))
        slot, units = slots.usual.get(rail, (None, None))
        if slot is not None and units is not None and rank != slot.rank and (most is None or most.agree < most.of):
            expected[rail] = slot.rank, f"{units.words} units"
        elif rank is not None and most is not None:
            expected[rail] = rank, f"{most.words} nodes of {unit.name}"
    swaps: dict[tuple[str, str], list[_ExchangedPorts]] = {}
    for host in unit.hosts:
        links = {link.rail: link for link in view.units.links[host]}
        if len(links) != len(unit.rails) or links.keys() != expected.keys():
            continue
        places = find_places(view.units.links[host])
        odd = [rail for rail, (rank, _) in expected.items() if places[rail] != (unit.rails[rail].leaf, rank)]
        if len(odd) != 2:
            continue
        one, other = odd
        (leaf, rank), (other_leaf, other_rank) = places[one], places[other]
        if (leaf, rank, other_rank) == (other_leaf, expected[other][0], expected[one][0]):
            swaps.setdefault((one, other), []).append(_ExchangedPorts(links[one], links[other], expected[one][1]))
    return swaps


def _report_ports(
    view: View, unit: Unit, rails: tuple[str, str], nodes: Sequence[_ExchangedPorts]
) -> list[CablingFault]:
    leaf = view.name(nodes[0].one.at.switch)
    compared = f"{nodes[0].why} have them in the other order of ports"
    fix = "exchange the two cables, at the switch or at the host"
    if len(nodes) >= AGREE:
        hosts = tuple(node.one.host for node in nodes)
        text = f"{len(hosts)} of {len(unit.hosts)} nodes of {unit.name} have {' and '.join(rails)} swapped on {leaf}"
        return [
            CablingFault(
                kind="exchanged-rails", text=text, hosts=hosts, ports=(leaf,), compared=compared, fix=f"{fix}s"
            )
        ]
    place = view.cluster.place
    return [
        CablingFault(
            kind="swapped-cables",
            text=f"{one.host} {one.called} is on {place(one.at)} and {other.called} on {place(other.at)}: "
            "each on the port of the other",
            hosts=(one.host,),
            ports=(place(one.at), place(other.at)),
            compared=compared,
            fix=fix,
            should={f"{one.host} {one.called}": place(other.at), f"{other.host} {other.called}": place(one.at)},
        )
        for one, other, _ in nodes
    ]


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
