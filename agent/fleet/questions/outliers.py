"""Which nodes are not as their like: the usual value of a hardware class, and who has another.

Two steps for every table: values are counted by the engine, few rows that are judged here, and then the rows that
differ are fetched. What is not known is never odd.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row
from agent.fleet.questions.amounts import CLOCKS, MEMORY, PROBES, clocks, memory, probes
from agent.fleet.questions.attributes import PARTS, Attribute, TablePass
from agent.fleet.questions.baseline import CLASS, SIZES, Usual, counted, planned, sizes, usual
from agent.fleet.questions.deviations import Deviation, Mixed, Outlier, PeerGroup, folded
from agent.fleet.questions.in_common import with_common_facts
from agent.fleet.questions.multisets import COUNTS, bags
from agent.fleet.questions.options import ORDINARY, Options, stale_nodes

_SMALL = 128  # differences that are told as a number: GPUs, NVLinks; not megabytes
_MOST_A_NODE = 64  # things of one kind; with fewer than so many for each node it is looked how many nodes they are of
_NOT_KNOWN = (None, "unknown")  # what a report says where something could not be read
_Groups = dict[tuple[Attribute, str, Any], dict[Any, int]]


class Outliers(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet outliers`."""

    outliers: list[Outlier] = []
    mixed: list[Mixed] = []
    compared_nodes: int = 0
    classes: dict[str, int] = {}  # those with enough nodes
    too_few: dict[str, int] = {}  # classes with too few nodes to have anything usual


def outliers(tables: Tables, options: Options = ORDINARY) -> Outliers:
    """Nodes that differ from a clear majority of their hardware class."""
    first, begun = tables.submit(SIZES), [tables.submit(part.counts) for part in PARTS]
    words, sums, times = [tables.submit(each) for each in COUNTS], tables.submit(MEMORY), tables.submit(PROBES)
    ahead = tables.submit(CLOCKS)
    classes = sizes(first)
    enough = {name: count for name, count in classes.items() if count >= options.fewest}
    odds: list[Deviation] = []
    mixed: dict[tuple[str, str], list[tuple[Attribute, Any, dict[Any, int]]]] = {}
    shifted: set[str] = set()  # nodes with another number of rails: their rail 3 may be their neighbours' rail 4
    for part, counts_begun in zip(PARTS, begun, strict=True):
        rows = [row for row in counts_begun() if row[0] in enough]
        groups = _counted(tables, part, rows, options)
        found = list(_found(tables, part, rows, _baselines(groups, options), shifted))
        shifted |= {odd.node for odd in found if odd.group.key == "rails"}
        odds += found
        for (attribute, name, place), counts in groups.items():
            if usual(counts, options) is None and planned(counts, options) is not None:
                mixed.setdefault((attribute.key, name), []).append((attribute, place, counts))
    odds += bags(tables, words, enough, options)
    odds += memory(tables, sums, enough, options)
    odds += clocks(ahead, enough, options)
    odds += probes(tables, times, enough, options)
    answers = folded(odds, frozenset(stale_nodes(tables, options)))
    hosts = [nodes for _, nodes in answers]
    return Outliers(
        outliers=with_common_facts(tables, [outlier for outlier, _ in answers], hosts, classes),
        mixed=[_mixed(name, each) for (_, name), each in sorted(mixed.items())],
        compared_nodes=sum(enough.values()),
        classes=enough,
        too_few={name: count for name, count in classes.items() if name not in enough},
    )


def _counted(tables: Tables, part: TablePass, rows: list[Row], options: Options) -> _Groups:
    """How often each value occurs in each group, of groups that enough nodes are in."""
    groups: dict[tuple[Attribute, str, Any], list[tuple[Any, int]]] = {}
    for row in rows:
        named = dict(zip(part.keys, row, strict=False))
        for attribute in part.attributes:
            place, value = named[attribute.place] if attribute.place else None, named[attribute.column]
            if value not in _NOT_KNOWN and (place is not None or not attribute.place):
                groups.setdefault((attribute, named[CLASS], place), []).append((value, row[-1]))
    counts = {key: counted(rows) for key, rows in groups.items()}
    few = _few_nodes(tables, part, counts, options)
    return {key: each for key, each in counts.items() if (key[1], key[0].place, key[2]) not in few}


def _few_nodes(tables: Tables, part: TablePass, counts: _Groups, options: Options) -> set[tuple[str, str | None, Any]]:
    """Groups of many things that are of too few nodes: five GPUs of one node are no five nodes."""
    unsure: dict[str | None, dict[Row, None]] = {}
    for (attribute, name, place), each in counts.items():
        shared = attribute.place in part.nodes
        if shared and len(each) > 1 and sum(each.values()) < options.fewest * _MOST_A_NODE:
            unsure.setdefault(attribute.place, {})[(name, place) if attribute.place else (name,)] = None
    few = set()
    for column, groups in unsure.items():
        for row in tables.fetch_by_keys(part.nodes[column], groups):
            if row[-1] < options.fewest:
                few.add((row[0], column, row[1] if column else None))
    return few


def _baselines(groups: _Groups, options: Options) -> dict[tuple[Attribute, str, Any], Usual]:
    found = {key: usual(counts, options) or planned(counts, options) for key, counts in groups.items()}
    return {key: each for key, each in found.items() if each is not None}


def _found(
    tables: Tables,
    part: TablePass,
    rows: list[Row],
    expected: dict[tuple[Attribute, str, Any], Usual],
    shifted: set[str],
) -> Iterator[Deviation]:
    """Things whose value is another than the usual one."""
    elsewhere: dict[tuple[Attribute, str], set[Any]] = {}
    for (attribute, name, _), each in expected.items():
        elsewhere.setdefault((attribute, name), set()).update(each.values)
    odd = [row[:-1] for row in rows if any(_differing(part, row, expected))]
    for node, label, *row in tables.fetch_by_keys(part.things, odd):
        for attribute, place, value, normal in _differing(part, row, expected):
            if attribute.rails and node in shifted and value in elsewhere[attribute, row[0]]:
                continue
            yield _odd(attribute, row[0], place, normal, value, node, label if part.labelled else None)


def _differing(
    part: TablePass, row: Sequence[Any], expected: dict[tuple[Attribute, str, Any], Usual]
) -> Iterator[tuple[Attribute, Any, Any, Usual]]:
    """What is not as usual in one row of keys: attribute, place, value."""
    named = dict(zip(part.keys, row, strict=False))
    for attribute in part.attributes:
        place, value = named[attribute.place] if attribute.place else None, named[attribute.column]
        normal = expected.get((attribute, named[CLASS], place))
        if normal is not None and value not in _NOT_KNOWN and value not in normal.values:
            yield attribute, place, value, normal


def _odd(a: Attribute, name: str, place: Any, normal: Usual, value: Any, node: str, label: str | None) -> Deviation:
    where = None if place is None else f"rail {place}" if a.rails else str(place)
    group = PeerGroup(a.key, a.what, name, where, a.one)
    if a.column == "dscp_prio" and len(normal.values) == 1:
        return Deviation(group, normal, *map_difference(value, normal.value), node, label)
    expected = " or ".join(shown(a, each) for each in normal.values)
    return Deviation(group, normal, shown(a, value), expected, node, label, _by(value, normal.value))


def map_difference(value: str, normal: str) -> tuple[str, str]:
    """The entries in which two maps differ, of each.

    >>> map_difference("24:3 26:0 46:5", "24:3 26:3 48:6")
    ('26:0 46:5 48:none', '26:3 46:none 48:6')
    """
    maps = [dict(word.split(":", 1) for word in text.split()) for text in (value, normal)]
    keys = [key for key in {**maps[0], **maps[1]} if maps[0].get(key) != maps[1].get(key)]
    has, expected = (
        " ".join(f"{key}:{entries.get(key, 'none')}" for key in sorted(keys, key=lambda key: (len(key), key)))
        for entries in maps
    )
    return has, expected


def _mixed(name: str, groups: list[tuple[Attribute, Any, dict[Any, int]]]) -> Mixed:
    attribute = groups[0][0]
    counts = counted(item for _, _, each in groups for item in each.items())
    places = [f"rail {place}" if attribute.rails else str(place) for _, place, _ in groups if place is not None]
    return Mixed(
        attribute=attribute.key,
        what=attribute.what,
        hardware_class=name,
        places=sorted(places),
        one=attribute.one,
        values=[(shown(attribute, each), counts[each]) for each in sorted(counts, key=lambda v: (-counts[v], str(v)))],
        of=sum(counts.values()),
    )


def shown(attribute: Attribute, value: Any) -> str:
    """A value for people."""
    return ("no", "yes")[value] if isinstance(value, bool) else attribute.form.format(value)


def _by(value: Any, normal: Any) -> str | None:
    """How far a number is away: "1 fewer", "half"."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isinstance(normal, (int, float)):
        return None
    if normal and value and (value * 2 == normal or value * 4 == normal):
        return "half" if value * 2 == normal else "a quarter"
    difference = value - normal
    if isinstance(difference, int) and abs(difference) <= _SMALL:
        return f"{abs(difference)} {'fewer' if difference < 0 else 'more'}"
    return None
