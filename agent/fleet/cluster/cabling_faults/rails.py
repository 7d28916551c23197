"""Rails at the wrong leaf, rails that are not there, and two whose cables are at each other's place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent.fleet.cluster.cabling_faults.fault import CablingFault
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import HostLink
from agent.fleet.cluster.peers import AGREE, find_most
from agent.fleet.cluster.rail_names import order
from agent.fleet.cluster.units import Unit, UnitRail
from agent.fleet.hostlist import fold
from agent.model.labels import natural

FEW_SWAPS = 2  # pairs of cables between two leaves: more are one fault


class _Moved(NamedTuple):
    link: HostLink
    unit: Unit
    at: UnitRail  # where it should be

    @property
    def leaf(self) -> str:
        """Of that place."""
        return self.at.leaf


def find_moved_rails(view: View) -> list[CablingFault]:
    """Rails on another leaf than their unit's; two that would repair each other are one swap, many alike one fault."""
    moved = list(_find_moved(view))
    where = {(rail.link.at.switch, rail.leaf): rail for rail in moved}
    singles: defaultdict[tuple[str, ...], list[_Moved]] = defaultdict(list)
    swaps: defaultdict[tuple[frozenset[str], frozenset[str]], list[_Swap]] = defaultdict(list)
    paired = set[int]()
    for number, rail in enumerate(moved):
        if number in paired:
            continue
        partner = _find_partner(number, moved, paired) if (rail.leaf, rail.link.at.switch) in where else None
        if partner is None:
            singles[rail.unit.name, rail.link.rail, rail.link.at.switch].append(rail)
            continue
        paired |= {number, partner}
        other = moved[partner]
        swaps[frozenset((rail.unit.name, other.unit.name)), frozenset((rail.leaf, other.leaf))].append(
            _Swap(rail, other)
        )
    faults = []
    for rails in singles.values():
        faults += [_report_row(view, rails)] if len(rails) > FEW_SWAPS else [_report_single(view, one) for one in rails]
    for (_, leaves), pairs in swaps.items():
        if all(swap.within_unit for swap in pairs) and len(pairs) >= AGREE:
            faults.append(_report_nodes(view, pairs))
        elif len(pairs) > FEW_SWAPS:
            faults.append(_report_side(view, leaves, [_report_swap(view, *swap) for swap in pairs]))
        else:
            faults += [_report_swap(view, *swap) for swap in pairs]
    return faults


class _Swap(NamedTuple):
    one: _Moved
    other: _Moved

    @property
    def within_unit(self) -> bool:
        """Two rails of a node that its unit has in both ways: other units show which is right."""
        return self.one.link.host == self.other.link.host and None not in (self.one.at.units, self.other.at.units)


def _report_nodes(view: View, pairs: Sequence[_Swap]) -> CablingFault:
    """Two rails that are swapped on so many nodes of a unit that within it neither place is the usual one."""
    first, second = sorted((pairs[0].one, pairs[0].other), key=lambda rail: order(rail.link.rail))
    hosts = tuple(swap.one.link.host for swap in pairs)
    names = [view.name(first.leaf), view.name(second.leaf)]
    assert first.at.units is not None
    return CablingFault(
        kind="exchanged-rails",
        text=f"{len(hosts)} of {len(first.unit.hosts)} nodes of {first.unit.name} have {first.link.rail} and "
        f"{second.link.rail} swapped on {', '.join(names)}",
        hosts=hosts,
        ports=tuple(names),
        compared=f"{first.at.units.words} units have them the other way round",
        fix="exchange the cables of both rails at these nodes or at the switches",
    )


def _report_row(view: View, rails: Sequence[_Moved]) -> CablingFault:
    """Many nodes of a unit with a rail on one other leaf."""
    one = rails[0]
    here, leaf = view.name(one.link.at.switch), view.name(one.leaf)
    return CablingFault(
        kind="rail-elsewhere",
        text=f"{len(rails)} of {len(one.unit.hosts)} nodes of {one.unit.name} have {one.link.rail} on {here}, not on "
        f"{leaf}",
        hosts=tuple(rail.link.host for rail in rails),
        ports=tuple(view.cluster.place(rail.link.at) for rail in rails),
        compared=_describe_peers(view, one),
        fix=f"move these cables to {leaf}",
        should={_end(rail): leaf for rail in rails},
    )


def _report_side(view: View, leaves: Iterable[str], single: list[CablingFault]) -> CablingFault:
    """Many swaps between two leaves are one: their cables are exchanged for a row of nodes."""
    one, other = sorted((view.name(leaf) for leaf in leaves), key=natural)
    hosts = tuple(sorted({host for fault in single for host in fault.hosts}, key=natural))
    return CablingFault(
        kind="swapped-cables",
        text=f"{len(single)} pairs of cables of {fold(hosts)} are exchanged between {one} and {other}",
        hosts=hosts,
        ports=tuple(port for fault in single for port in fault.ports),
        compared="; ".join(dict.fromkeys(fault.compared for fault in single[:3])),
        fix="exchange the bundle between the two switches, or these cables one by one",
        should={end: place for fault in single for end, place in fault.should.items()},
    )


def find_missing_rails(view: View, explained: set[str]) -> list[CablingFault]:
    """Nodes with fewer rails than the nodes beside them. `told`: hosts that another finding names already."""
    faults: list[CablingFault] = []
    for unit in view.units.units if not view.cluster.cut else ():
        if unit.usual is None or unit.usual[0] < 2:
            continue
        expected, clear = unit.usual
        for host in unit.hosts:
            links = view.units.links[host]
            if host in explained or not expected / 2 < len(links) < expected:
                continue
            gone = _list_missing(unit, links)
            if not gone or any(_may_be_moved(view, unit.rails[rail].leaf) for rail in gone):
                continue
            names = ", ".join(f"{rail} ({view.name(unit.rails[rail].leaf)})" for rail in gone)
            faults.append(
                CablingFault(
                    kind="missing-rail",
                    text=f"{host} has {len(links)} of {expected} rails in the fabric: without {names}",
                    hosts=(host,),
                    compared=f"{clear.words} nodes of {unit.name} have {expected}",
                    fix="see whether the port is up on the host; then its cable and the port of the leaf",
                )
            )
    return faults


def find_short_units(view: View) -> list[CablingFault]:
    """Units whose nodes are all without a rail that the nodes of most other units have."""
    counts = {unit.name: unit.usual[0] for unit in view.units.units if unit.usual and unit.usual[0] > 1}
    clear = find_most(Counter(counts.values()))
    if clear is None or view.cluster.cut:
        return []
    expected, agree = clear
    every = {rail for unit in view.units.units if counts.get(unit.name) == expected for rail in unit.rails}
    faults = []
    for unit in view.units.units:
        count = counts.get(unit.name, 0)
        if not expected - max(expected // 8, 1) <= count < expected or not unit.rails or not set(unit.rails) <= every:
            continue
        if sum(view.cluster.rails.get(host) == count for host in unit.hosts) * 2 > len(unit.hosts):
            continue  # by their reports these machines have no more
        gone = sorted(_find_similar(view, unit, expected) - set(unit.rails), key=order)
        detail = f": no leaf for {', '.join(gone)}" if gone else ""
        faults.append(
            CablingFault(
                kind="short-unit",
                text=f"the {len(unit.hosts)} nodes of {unit.name} have {count} rails, elsewhere {expected}{detail}",
                hosts=unit.hosts,
                ports=tuple(view.name(leaf) for leaf in unit.leaves),
                compared=f"{agree.words} units have {expected} rails a node",
                fix="see whether the leaf of that rail is off, or missing from the file because the tool could not "
                "reach it",
            )
        )
    return faults


def _find_moved(view: View) -> Iterator[_Moved]:
    for unit in view.units.units:
        for host in unit.hosts:
            for rail, link in group_links_by_rail(unit, view.units.links[host]).items():
                at = unit.rails.get(rail)
                if at is not None and at.leaf != link.at.switch:
                    yield _Moved(link, unit, at)


def group_links_by_rail(unit: Unit, links: Iterable[HostLink]) -> dict[str, HostLink]:
    """A node's links by the unit's rail that each is: of a node that renumbered its rails, the rail of the leaf."""
    named = [link for link in links if link.rail]
    if not _is_renumbered(unit, named):
        return {link.rail: link for link in named}
    rails = iter(unit.rails.items())
    return {next(rail for rail, at in rails if at.leaf == link.at.switch): link for link in named}


def _is_renumbered(unit: Unit, links: list[HostLink]) -> bool:
    """A node that lost an adapter may call the later ones by earlier names: their order on the leaves is right."""
    leaves = iter(rail.leaf for _, rail in unit.rails.items())
    return len(links) < len(unit.rails) and all(link.at.switch in leaves for link in links)


def _list_missing(unit: Unit, links: tuple[HostLink, ...]) -> list[str]:
    """Rails of the unit on whose leaf the node has none."""
    have = Counter(link.at.switch for link in links)
    wanted = Counter(rail.leaf for rail in unit.rails.values())
    named = {link.rail for link in links}
    gone = [rail for rail, at in unit.rails.items() if have[at.leaf] < wanted[at.leaf]]
    return sorted([rail for rail in gone if rail not in named] or gone, key=order)


def _may_be_moved(view: View, leaf: str) -> bool:
    """An adapter on that leaf does not show whose it is: it may be the one that seems to be missing."""
    return any(link.at.switch == leaf for link in view.nameless)


def _find_similar(view: View, unit: Unit, expected: int) -> set[str]:
    """The rails of a unit with all of them whose names are the most like this one's."""
    full = [
        unit for unit in view.units.units if unit.usual and unit.usual[0] == expected and len(unit.rails) == expected
    ]
    best = max(full, key=lambda other: len(set(other.rails) & set(unit.rails)), default=None)
    return set(best.rails) if best and len(set(best.rails) & set(unit.rails)) == len(unit.rails) else set()


def _find_partner(number: int, moved: list[_Moved], paired: set[int]) -> int | None:
    """The other of a swap; of the same node before one of another."""
    one = moved[number]
    fits = [
        other
        for other, other_rail in enumerate(moved)
        if other != number and other not in paired
        and other_rail.link.at.switch == one.leaf and other_rail.leaf == one.link.at.switch
    ]  # fmt: skip
    return min(fits, key=lambda other: (moved[other].link.host != one.link.host, other), default=None)


def _report_swap(view: View, one: _Moved, other: _Moved) -> CablingFault:
    place, name = view.cluster.place, view.name
    same = one.link.host == other.link.host
    first, second = _end(one), other.link.called if same else _end(other)
    return CablingFault(
        kind="swapped-cables",
        text=(
            f"{first} is on {place(one.link.at)} and {second} on {place(other.link.at)}: "
            f"each on the leaf of the other ({name(one.leaf)} and {name(other.leaf)})"
        ),
        hosts=(one.link.host,) if same else (one.link.host, other.link.host),
        ports=(place(one.link.at), place(other.link.at)),
        compared=_describe_peers(view, one) if one.unit == other.unit and one.leaf == other.leaf else
        f"{_describe_peers(view, one)}; {_describe_peers(view, other)}",
        fix="exchange the two cables, at the switches or at the hosts",
        should={_end(one): place(other.link.at), _end(other): place(one.link.at)},
    )  # fmt: skip


def _report_single(view: View, one: _Moved) -> CablingFault:
    place = view.cluster.place
    return CablingFault(
        kind="rail-elsewhere",
        text=f"{_end(one)} is on {place(one.link.at)}, its unit's {one.link.rail} on {view.name(one.leaf)}",
        hosts=(one.link.host,),
        ports=(place(one.link.at),),
        compared=_describe_peers(view, one),
        fix=f"move the cable to {view.name(one.leaf)}",
        should={_end(one): view.name(one.leaf)},
    )


def _end(one: _Moved) -> str:
    return f"{one.link.host} {one.link.called}"


def _describe_peers(view: View, one: _Moved) -> str:
    return one.at.describe(one.unit.name, one.link.rail, view.name(one.leaf))
