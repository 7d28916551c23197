"""Rails at the wrong leaf, rails that are not there, and two whose cables are at each other's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.fault import Break
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import HostLink
from agent.fleet.cluster.peers import Most, most
from agent.fleet.cluster.rail_names import order
from agent.fleet.cluster.units import Unit


class _Moved(NamedTuple):
    link: HostLink
    unit: Unit
    leaf: str  # where it should be
    most: Most


def moved_rails(view: View) -> list[Break]:
    """Rails on another leaf than their unit's; two that would repair each other are one swap."""
    moved = list(_moved(view))
    where = {(each.link.at.switch, each.leaf): each for each in moved}
    found, paired = [], set[int]()
    for number, each in enumerate(moved):
        if number in paired:
            continue
        partner = _partner(number, moved, paired) if (each.leaf, each.link.at.switch) in where else None
        if partner is not None:
            paired |= {number, partner}
            found.append(_swap(view, each, moved[partner]))
        else:
            found.append(_alone(view, each))
    return found


def missing_rails(view: View, told: set[str]) -> list[Break]:
    """Nodes with fewer rails than the nodes beside them. `told`: hosts of which something else is said already."""
    found: list[Break] = []
    for unit in view.units.units if not view.cluster.cut else ():
        if unit.usual is None or unit.usual[0] < 2:
            continue
        usual, clear = unit.usual
        for host in unit.hosts:
            links = view.units.links[host]
            if host in told or not usual / 2 < len(links) < usual:
                continue
            gone = _gone(unit, links)
            if not gone or any(_maybe_it(view, unit.rails[rail].leaf) for rail in gone):
                continue
            names = ", ".join(f"{rail} ({view.name(unit.rails[rail].leaf)})" for rail in gone)
            found.append(
                Break(
                    kind="missing-rail",
                    text=f"{host} has {len(links)} of {usual} rails in the fabric: without {names}",
                    hosts=(host,),
                    compared=f"{clear.words} nodes of {unit.name} have {usual}",
                    fix="see whether the port is up on the host; then its cable and the port of the leaf",
                )
            )
    return found


def short_units(view: View) -> list[Break]:
    """Units whose nodes all lack a rail that the nodes of most other units have."""
    counts = {unit.name: unit.usual[0] for unit in view.units.units if unit.usual and unit.usual[0] > 1}
    clear = most(Counter(counts.values()))
    if clear is None or view.cluster.cut:
        return []
    usual, agree = clear
    every = {rail for unit in view.units.units if counts.get(unit.name) == usual for rail in unit.rails}
    found = []
    for unit in view.units.units:
        count = counts.get(unit.name, 0)
        if not usual - max(usual // 8, 1) <= count < usual or not unit.rails or not set(unit.rails) <= every:
            continue
        if sum(view.cluster.rails.get(host) == count for host in unit.hosts) * 2 > len(unit.hosts):
            continue  # by their reports these machines have no more
        gone = sorted(_like(view, unit, usual) - set(unit.rails), key=order)
        told = f": no leaf for {', '.join(gone)}" if gone else ""
        found.append(
            Break(
                kind="short-unit",
                text=f"the {len(unit.hosts)} nodes of {unit.name} have {count} rails, elsewhere {usual}{told}",
                hosts=unit.hosts,
                ports=tuple(view.name(leaf) for leaf in unit.leaves),
                compared=f"{agree.words} units have {usual} rails a node",
                fix="is the leaf of that rail off, or not reached by what wrote the file?",
            )
        )
    return found


def _moved(view: View) -> Iterator[_Moved]:
    for unit in view.units.units:
        for host in unit.hosts:
            for rail, link in links_by_rail(unit, view.units.links[host]).items():
                at = unit.rails.get(rail)
                if at is not None and at.leaf != link.at.switch:
                    yield _Moved(link, unit, at.leaf, at.most)


def links_by_rail(unit: Unit, links: Iterable[HostLink]) -> dict[str, HostLink]:
    """A node's links by the unit's rail that each is: of a node that renumbered its rails, the rail of the leaf."""
    named = [link for link in links if link.rail]
    if not _renumbered(unit, named):
        return {link.rail: link for link in named}
    rails = iter(unit.rails.items())
    return {next(rail for rail, at in rails if at.leaf == link.at.switch): link for link in named}


def _renumbered(unit: Unit, links: list[HostLink]) -> bool:
    """A node that lost an adapter may call the later ones by earlier names: their order on the leaves is right."""
    leaves = iter(rail.leaf for _, rail in unit.rails.items())
    return len(links) < len(unit.rails) and all(link.at.switch in leaves for link in links)


def _gone(unit: Unit, links: tuple[HostLink, ...]) -> list[str]:
    """Rails of the unit on whose leaf the node has none."""
    have = Counter(link.at.switch for link in links)
    wanted = Counter(rail.leaf for rail in unit.rails.values())
    named = {link.rail for link in links}
    gone = [rail for rail, at in unit.rails.items() if have[at.leaf] < wanted[at.leaf]]
    return sorted([rail for rail in gone if rail not in named] or gone, key=order)


def _maybe_it(view: View, leaf: str) -> bool:
    """An adapter on that leaf does not say whose it is: it may be the one that seems to be missing."""
    return any(each.at.switch == leaf for each in view.nameless)


def _like(view: View, unit: Unit, usual: int) -> set[str]:
    """The rails of a unit with all of them whose names are the most like this one's."""
    full = [each for each in view.units.units if each.usual and each.usual[0] == usual and len(each.rails) == usual]
    best = max(full, key=lambda each: len(set(each.rails) & set(unit.rails)), default=None)
    return set(best.rails) if best and len(set(best.rails) & set(unit.rails)) == len(unit.rails) else set()


def _partner(number: int, moved: list[_Moved], paired: set[int]) -> int | None:
    """The other of a swap; of the same node before one of another."""
    one = moved[number]
    fits = [
        other
        for other, each in enumerate(moved)
        if other != number and other not in paired
        and each.link.at.switch == one.leaf and each.leaf == one.link.at.switch
    ]  # fmt: skip
    return min(fits, key=lambda other: (moved[other].link.host != one.link.host, other), default=None)


def _swap(view: View, one: _Moved, other: _Moved) -> Break:
    place, name = view.cluster.place, view.name
    same = one.link.host == other.link.host
    first, second = _end(one), other.link.called if same else _end(other)
    return Break(
        kind="swapped-cables",
        text=(
            f"{first} is on {place(one.link.at)} and {second} on {place(other.link.at)}: "
            f"each on the leaf of the other ({name(one.leaf)} and {name(other.leaf)})"
        ),
        hosts=(one.link.host,) if same else (one.link.host, other.link.host),
        ports=(place(one.link.at), place(other.link.at)),
        compared=_compared(view, one) if one.unit == other.unit and one.leaf == other.leaf else
        f"{_compared(view, one)}; {_compared(view, other)}",
        fix="exchange the two cables, at the switches or at the hosts",
        should={_end(one): place(other.link.at), _end(other): place(one.link.at)},
    )  # fmt: skip


def _alone(view: View, one: _Moved) -> Break:
    place = view.cluster.place
    return Break(
        kind="rail-elsewhere",
        text=f"{_end(one)} is on {place(one.link.at)}, its unit's {one.link.rail} on {view.name(one.leaf)}",
        hosts=(one.link.host,),
        ports=(place(one.link.at),),
        compared=_compared(view, one),
        fix=f"move the cable to {view.name(one.leaf)}",
        should={_end(one): view.name(one.leaf)},
    )


def _end(one: _Moved) -> str:
    return f"{one.link.host} {one.link.called}"


def _compared(view: View, one: _Moved) -> str:
    return f"{one.most.words} nodes of {one.unit.name} have {one.link.rail} on {view.name(one.leaf)}"
