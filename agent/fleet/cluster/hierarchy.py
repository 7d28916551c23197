"""The tree that schedulers want: units of nodes, pods of units, and so on, each with one parent.

A node of a rail-optimized fabric hangs on many leaves; the unit of nodes that share them stands for all of them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from agent.fleet.cluster.fabric_kind import neighbourhoods, what
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import SwitchLink, natural
from agent.fleet.cluster.peers import Joined
from agent.fleet.cluster.switch_tiers import SwitchBlock
from agent.fleet.cluster.trunks import odd
from agent.fleet.cluster.units import Unit


class Level(NamedTuple):
    """One switch of the tree: `nodes` of a unit, or `below` it. `about`: what it stands for."""

    name: str
    tier: int
    nodes: tuple[str, ...] = ()
    below: tuple[Level, ...] = ()
    about: str = ""


class Tree(NamedTuple):
    """`placed`: hosts that are in no unit, and the name of the unit they were put to; `left`: hosts left out."""

    roots: tuple[Level, ...]
    placed: dict[str, str]


def tree(views: list[View]) -> Tree:
    """Every host once: in the first fabric, the one with most ports, that has it in a unit."""
    seen: set[str] = set()
    placed: dict[str, str] = {}
    roots: list[Level] = []
    names: set[str] = set()
    for view in views:
        levels = _units(view, seen, placed, names)
        roots += _up(view, levels, names)
    return Tree(tuple(roots), placed)


def walk(roots: Iterable[Level]) -> Iterable[Level]:
    """Each below its children: units first."""
    for level in roots:
        yield from walk(level.below)
        yield level


def _units(view: View, seen: set[str], placed: dict[str, str], names: set[str]) -> list[tuple[Unit, Level]]:
    extra: defaultdict[str, list[str]] = defaultdict(list)
    for host in view.units.loose:
        if host not in seen and view.units.units:
            links = view.units.links[host]
            near = max(view.units.units, key=lambda unit: sum(link.at.switch in unit.leaves for link in links))
            extra[near.name].append(host)
    made = []
    for unit in view.units.units:
        own = [host for host in unit.hosts if host not in seen] + extra[unit.name]
        if own:
            name = _free(unit.name, names)
            placed |= dict.fromkeys(extra[unit.name], name)
            leaves = [view.name(leaf) for leaf in unit.leaves]
            about = leaves[0] if len(leaves) == 1 else f"{len(leaves)} leaves: {leaves[0]} .. {leaves[-1]}"
            seen.update(own)
            made.append((unit, Level(name, 1, tuple(sorted(own, key=natural)), (), about)))
    return made


def _up(view: View, levels: list[tuple[Unit, Level]], names: set[str]) -> list[Level]:
    """Groups that switches of one more row join, until all are one or there are no more rows."""
    joined = Joined()
    for unit, _ in levels:
        for leaf in unit.leaves:
            joined.join(unit.leaves[0], leaf)
    ends: dict[Level, str] = {level: unit.leaves[0] for unit, level in levels}
    now = [level for _, level in levels]
    links = _trusted_links(view)
    for tier in range(2, view.levels + 1):
        for link in links:
            rows = view.tiers.get(link.a.switch, 99), view.tiers.get(link.b.switch, 99)
            if max(rows) <= tier:
                joined.join(link.a.switch, link.b.switch)
        now = _grouped(view, now, ends, joined, tier, names)
    return _beside(view, now, ends, links, joined, names)


def _trusted_links(view: View) -> list[SwitchLink]:
    """Cables between switches that show what belongs together: one at the wrong switch must not merge two zones.

    Left out: cables that are reported as wrong, and those to the spines of another block than most of a switch's.
    """
    found = odd(view)
    faults = [fault for group in (*found.swapped, *found.moved) for fault in group]
    wrong = {fault.near for fault in faults if fault.near}
    own = {lower: block.places for block in view.blocks for lower in block.lower}
    claimed = {
        upper: len(block.lower)
        for block in sorted(view.blocks, key=lambda block: len(block.lower))
        for upper in block.places
    }
    for block in view.blocks:
        if len(block.lower) == 1:  # between blocks: it belongs where most of its cables go
            own[block.lower[0]] = _main_places(view, block)
    kept = []
    for link in view.part.switch_links:
        if link.a in wrong or link.b in wrong:
            continue
        low, high = sorted((link.a.switch, link.b.switch), key=lambda each: view.tiers.get(each, 99))
        adjacent = view.tiers.get(high, 99) - view.tiers.get(low, 99) == 1
        if not adjacent or high in own.get(low, ()) or claimed.get(high, 1) == 1:
            kept.append(link)
    return kept


def _main_places(view: View, block: SwitchBlock) -> frozenset[str]:
    """The upper switches of the larger block that has most of its cables; its own where there is none."""
    (lower,) = block.lower
    rivals = [
        switch_block for switch_block in view.blocks if switch_block.tier == block.tier and len(switch_block.lower) > 1
    ]
    counts = [sum(block.cables.get((lower, upper), 0) for upper in rival.places) for rival in rivals]
    most_cables = max(counts, default=0)
    return rivals[counts.index(most_cables)].places if most_cables else block.places


def _beside(
    view: View,
    now: list[Level],
    ends: dict[Level, str],
    links: list[SwitchLink],
    joined: Joined,
    names: set[str],
) -> list[Level]:
    """What is joined without a switch above: groups of a dragonfly, then all."""
    tier = view.levels + 1
    if what(view).kind == "dragonfly":
        now = _grouped(view, now, ends, neighbourhoods(view), tier, names)
    for link in links:
        joined.join(link.a.switch, link.b.switch)
    return _grouped(view, now, ends, joined, tier + 1, names)


def _grouped(
    view: View, now: list[Level], ends: dict[Level, str], joined: Joined, tier: int, names: set[str]
) -> list[Level]:
    groups: defaultdict[object, list[Level]] = defaultdict(list)
    for level in now:
        groups[joined.find(ends[level])].append(level)
    if len(groups) == len(now):
        return now
    above: defaultdict[object, list[str]] = defaultdict(list)
    for switch, row in view.tiers.items():
        if row == tier:
            above[joined.find(switch)].append(view.name(switch))
    made = []
    for root, members in groups.items():
        if len(members) == 1:
            made.append(members[0])
            continue
        upper = sorted(above[root], key=natural)
        kind = _called(upper)
        whole = len(groups) == 1
        name = _free(kind or ("top" if whole else f"{'row' if upper else 'group'}{tier}-{len(made) + 1}"), names)
        about = f"{len(upper)} switches in row {tier}" if upper else "joined directly, without a switch above"
        level = Level(name, tier, (), tuple(members), about)
        ends[level] = ends[members[0]]
        made.append(level)
    return made


def _called(names: list[str]) -> str:
    """What the names of switches begin with, without half a number; "" where that is nothing.

    >>> _called(["CSPINE1-01", "CSPINE1-80"]), _called(["CCORE1-001", "CCORE2-140"]), _called(["a1", "b1"])
    ('CSPINE1', 'CCORE', '')
    """
    common = os.path.commonprefix(names)  # noqa: RUF071  # names, not paths: letter by letter is meant
    if any(name[len(common) : len(common) + 1].isdigit() for name in names):
        common = common.rstrip("0123456789")
    common = common.rstrip("-_. ")
    return common if len(common) > 1 and len(names) > 1 else ""


def _free(name: str, names: set[str]) -> str:
    chosen, number = name, 2
    while chosen in names:
        chosen, number = f"{name}-{number}", number + 1
    names.add(chosen)
    return chosen
