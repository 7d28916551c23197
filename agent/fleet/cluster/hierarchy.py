"""The tree that schedulers read: units of nodes, pods of units, and so on, each with one parent.

A node of a rail-optimized fabric hangs on many leaves; the unit of nodes that share them stands for all of them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from agent.fleet.cluster.fabric_kind import classify_fabric, join_neighbourhoods
from agent.fleet.cluster.fabric_view import View
from agent.fleet.cluster.graph import SwitchLink
from agent.fleet.cluster.peers import Joined
from agent.fleet.cluster.switch_tiers import SwitchBlock
from agent.fleet.cluster.trunks import find_trunk_faults
from agent.fleet.cluster.units import Unit
from agent.model.labels import group_by_key, natural


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


def build_tree(views: list[View]) -> Tree:
    """Every host once: in the first fabric, the one with most ports, that has it in a unit."""
    seen: set[str] = set()
    placed: dict[str, str] = {}
    roots: list[Level] = []
    names: set[str] = set()
    for view in views:
        levels = _list_unit_levels(view, seen, placed, names)
        roots += _join_by_switches(view, levels, names)
    return Tree(tuple(roots), placed)


def walk(roots: Iterable[Level]) -> Iterable[Level]:
    """Each below its children: units first."""
    for level in roots:
        yield from walk(level.below)
        yield level


def _list_unit_levels(view: View, seen: set[str], placed: dict[str, str], names: set[str]) -> list[tuple[Unit, Level]]:
    extra: defaultdict[str, list[str]] = defaultdict(list)
    for host in view.units.loose:
        if host not in seen and view.units.units:
            links = view.units.links[host]
            near = max(view.units.units, key=lambda unit: sum(link.at.switch in unit.leaves for link in links))
            extra[near.name].append(host)
    units = []
    for unit in view.units.units:
        own = [host for host in unit.hosts if host not in seen] + extra[unit.name]
        if own:
            name = _find_free_name(unit.name, names)
            placed |= dict.fromkeys(extra[unit.name], name)
            leaves = [view.name(leaf) for leaf in unit.leaves]
            about = leaves[0] if len(leaves) == 1 else f"{len(leaves)} leaves: {leaves[0]} .. {leaves[-1]}"
            seen.update(own)
            units.append((unit, Level(name, 1, tuple(sorted(own, key=natural)), (), about)))
    return units


def _join_by_switches(view: View, levels: list[tuple[Unit, Level]], names: set[str]) -> list[Level]:
    """Groups that switches of one more row join, until all are one or there are no more rows."""
    joined = Joined()
    for unit, _ in levels:
        for leaf in unit.leaves:
            joined.join(unit.leaves[0], leaf)
    ends: dict[Level, str] = {level: unit.leaves[0] for unit, level in levels}
    now = [level for _, level in levels]
    links = _list_trusted_links(view)
    for tier in range(2, view.levels + 1):
        for link in links:
            rows = view.tiers.get(link.a.switch, 99), view.tiers.get(link.b.switch, 99)
            if max(rows) <= tier:
                joined.join(link.a.switch, link.b.switch)
        now = _group_joined(view, now, ends, joined, tier, names)
    return _join_by_links(view, now, ends, links, joined, names)


def _list_trusted_links(view: View) -> list[SwitchLink]:
    """Cables between switches that show what belongs together: one at the wrong switch must not merge two zones.

    Left out: cables that are reported as wrong, and those to the spines of another block than most of a switch's.
    """
    trunk_faults = find_trunk_faults(view)
    faults = [fault for group in (*trunk_faults.swapped, *trunk_faults.moved) for fault in group]
    wrong = {fault.near for fault in faults if fault.near}
    own = {lower: block.places for block in view.blocks for lower in block.lower}
    claimed = {
        upper: len(block.lower)
        for block in sorted(view.blocks, key=lambda block: len(block.lower))
        for upper in block.places
    }
    for block in view.blocks:
        if len(block.lower) == 1:  # between blocks: it belongs where most of its cables go
            own[block.lower[0]] = _find_main_places(view, block)
    trusted = []
    for link in view.part.switch_links:
        if link.a in wrong or link.b in wrong:
            continue
        low, high = sorted((link.a.switch, link.b.switch), key=lambda switch: view.tiers.get(switch, 99))
        adjacent = view.tiers.get(high, 99) - view.tiers.get(low, 99) == 1
        if not adjacent or high in own.get(low, ()) or claimed.get(high, 1) == 1:
            trusted.append(link)
    return trusted


def _find_main_places(view: View, block: SwitchBlock) -> frozenset[str]:
    """The upper switches of the larger block that has most of its cables; its own where there is none."""
    (lower,) = block.lower
    rivals = [
        switch_block for switch_block in view.blocks if switch_block.tier == block.tier and len(switch_block.lower) > 1
    ]
    counts = [sum(block.cables.get((lower, upper), 0) for upper in rival.places) for rival in rivals]
    most_cables = max(counts, default=0)
    return rivals[counts.index(most_cables)].places if most_cables else block.places


def _join_by_links(
    view: View,
    now: list[Level],
    ends: dict[Level, str],
    links: list[SwitchLink],
    joined: Joined,
    names: set[str],
) -> list[Level]:
    """What is joined without a switch above: groups of a dragonfly, then all."""
    tier = view.levels + 1
    if classify_fabric(view).kind == "dragonfly":
        now = _group_joined(view, now, ends, join_neighbourhoods(view), tier, names)
    for link in links:
        joined.join(link.a.switch, link.b.switch)
    return _group_joined(view, now, ends, joined, tier + 1, names)


def _group_joined(
    view: View, now: list[Level], ends: dict[Level, str], joined: Joined, tier: int, names: set[str]
) -> list[Level]:
    groups = group_by_key((joined.find(ends[level]), level) for level in now)
    if len(groups) == len(now):
        return now
    above = group_by_key((joined.find(switch), view.name(switch)) for switch, row in view.tiers.items() if row == tier)
    levels = []
    for root, members in groups.items():
        if len(members) == 1:
            levels.append(members[0])
            continue
        upper = sorted(above.get(root, ()), key=natural)
        kind = _find_common_name(upper)
        whole = len(groups) == 1
        name = _find_free_name(
            kind or ("top" if whole else f"{'row' if upper else 'group'}{tier}-{len(levels) + 1}"), names
        )
        about = f"{len(upper)} switches in row {tier}" if upper else "joined directly, without a switch above"
        level = Level(name, tier, (), tuple(members), about)
        ends[level] = ends[members[0]]
        levels.append(level)
    return levels


def _find_common_name(names: list[str]) -> str:
    """What the names of switches begin with, without half a number; "" where that is nothing.

    >>> _find_common_name(["CSPINE1-01", "CSPINE1-80"]), _find_common_name(["CCORE1-001", "CCORE2-140"])
    ('CSPINE1', 'CCORE')
    >>> _find_common_name(["a1", "b1"])
    ''
    """
    common = os.path.commonprefix(names)  # noqa: RUF071  # names, not paths: letter by letter is meant
    if any(name[len(common) : len(common) + 1].isdigit() for name in names):
        common = common.rstrip("0123456789")
    common = common.rstrip("-_. ")
    return common if len(common) > 1 and len(names) > 1 else ""


def _find_free_name(name: str, names: set[str]) -> str:
    chosen, number = name, 2
    while chosen in names:
        chosen, number = f"{name}-{number}", number + 1
    names.add(chosen)
    return chosen
