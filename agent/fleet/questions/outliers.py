"""Nodes that differ from their peers: the usual value of a hardware class, and the nodes with another.

Two steps for every table: values are counted by the engine, few rows that are judged here, and then the rows that
differ are fetched. What is not known is never odd.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, query
from agent.fleet.questions.amounts import (
    CLOCKS,
    MEMORY,
    NUMA_MEMORY,
    PROBES,
    find_clock_deviations,
    find_memory_deviations,
    find_numa_deviations,
    find_probe_deviations,
)
from agent.fleet.questions.attributes import PARTS, Attribute, TablePass
from agent.fleet.questions.baseline import CLASS, Baseline, find_baseline, find_planned, sum_by_value
from agent.fleet.questions.deviations import Deviation, NoMajority, Outlier, PeerGroup, fold_deviations
from agent.fleet.questions.domains import DOMAINS, Racks, find_shifted_domains
from agent.fleet.questions.error_rates import RATES, WINDOWS, find_rate_deviations
from agent.fleet.questions.in_common import HOST_PASS, KnownFacts, add_common_facts
from agent.fleet.questions.kinds import KINDS, DigestGroups
from agent.fleet.questions.multisets import COUNTS, find_multiset_deviations
from agent.fleet.questions.options import ORDINARY, Options, submit_stale_nodes
from agent.fleet.questions.pass_rows import TableScan, read_passes
from agent.fleet.questions.peer_classes import FACTS, DeviceLoss, ParentClass, read_peer_classes

SWITCH_CLASSES = query("outliers", "switch_classes")
_SMALL = 128  # differences that are reported as a number: GPUs, NVLinks; not megabytes
_MOST_A_NODE = 64  # things of one kind; with fewer than so many for each node it is looked how many nodes they are of
_NOT_KNOWN = (None, "unknown")  # what a report states where something could not be read
_Groups = dict[tuple[Attribute, str, Any], dict[Any, int]]
_Expected = dict[tuple[Attribute, str, Any], Baseline]


class Outliers(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet outliers`."""

    outliers: list[Outlier] = []
    mixed: list[NoMajority] = []
    compared_nodes: int = 0
    compared_switches: int = 0
    classes: dict[str, int] = {}  # those with enough nodes
    too_few: dict[str, int] = {}  # classes with too few nodes to have anything usual


def find_outliers(tables: Tables, options: Options = ORDINARY) -> Outliers:
    """Nodes that differ from a clear majority of their hardware class."""
    facts, alike = tables.submit(FACTS), tables.submit(KINDS)
    words, sums, times = [tables.submit(count) for count in COUNTS], tables.submit(MEMORY), tables.submit(PROBES)
    windows, rates = tables.submit(WINDOWS), tables.submit(RATES)
    numa_sums, domains, ahead = tables.submit(NUMA_MEMORY), tables.submit(DOMAINS), tables.submit(CLOCKS)
    switches = tables.submit(SWITCH_CLASSES)
    racks, stale = Racks(tables), submit_stale_nodes(tables, options)
    peers = read_peer_classes(tables, facts, options)
    kinds = DigestGroups(tables, alike)
    passes, of_kinds = read_passes(tables, kinds)
    of_nodes = [  # meanwhile
        *find_multiset_deviations(tables, words, peers, options),
        *find_memory_deviations(tables, sums, peers.of, options),
        *find_numa_deviations(tables, numa_sums, peers.of, options),
        *find_shifted_domains(domains, racks, peers.of, options),
        *find_clock_deviations(ahead, peers, options),
        *find_probe_deviations(tables, times, peers.of, options),
        *find_rate_deviations(tables, windows, rates, peers.of, options),
    ]
    judged: list[tuple[Pending, list[_Judged]]] = []  # of each pass the things that differ, begun
    mixed: dict[tuple[str, str], list[tuple[Attribute, Any, dict[Any, int]]]] = {}
    switch_sizes = {name: count for name, count in sorted(switches(), key=str) if name is not None}
    compared = {name: count for name, count in switch_sizes.items() if count >= options.fewest}
    of = {**peers.of, **dict(zip(compared, compared, strict=True))}
    for part, source in zip(PARTS, passes, strict=True):
        every = source.counts()
        rows = [row for row in every if row[0] in of]
        groups = _count_values(source, part, rows, of, options)
        expected = _baselines(groups, options, peers.devices)
        wider_classes = peers.wider if part.table == "host" else ()
        ways = [_judge(part, rows, expected, of)]
        ways += (one for wider in wider_classes for one in _judge_small_classes(source, part, every, wider, options))
        judged.append((source.things({row for one in ways for row in one.deviating}), ways))
        for (attribute, name, place), counts in groups.items():
            normal = expected.get((attribute, name, place))
            if normal is not None and normal.others:
                mixed.setdefault((attribute.key, name), []).append((attribute, place, counts))
    odds: list[Deviation] = []
    shifted: set[str] = set()  # nodes with another number of rails: their rail 3 may be their neighbours' rail 4
    for begun, (by_class, *small) in judged:
        things = begun()
        deviations = list(_find_deviations(by_class, things, shifted))
        if by_class.part.table == "host":
            deviations += _find_lost(peers.lost, by_class.expected)
        deviations += [deviation for one in small for deviation in _find_deviations(one, things, set())]
        shifted |= {deviation.node for deviation in deviations if deviation.group.key == "rails"}
        odds += deviations
    answers = fold_deviations([*odds, *of_nodes], frozenset(node for (node,) in stale()))
    hosts = [nodes for _, nodes in answers]
    known = KnownFacts(kinds, of_kinds, passes[PARTS.index(HOST_PASS)].counts())
    return Outliers(
        outliers=add_common_facts(tables, racks, known, [outlier for outlier, _ in answers], hosts, peers.sizes),
        mixed=[_make_mixed(name, groups) for (_, name), groups in sorted(mixed.items())],
        compared_nodes=sum(peers.sizes.values()),
        compared_switches=sum(compared.values()),
        classes={**peers.sizes, **compared},
        too_few={**peers.too_few, **{name: count for name, count in switch_sizes.items() if name not in compared}},
    )


def _find_lost(lost: list[DeviceLoss], expected: _Expected) -> Iterator[Deviation]:
    """Nodes that lost devices and are among nodes that never had more."""
    usual_of = {(attribute.key, name): (attribute, normal) for (attribute, name, _), normal in expected.items()}
    for lost_part in lost:
        for key, has in (("gpus", lost_part.gpus), ("rails", lost_part.rails)):
            attribute, normal = usual_of.get((key, lost_part.peers), (None, None))
            if attribute and normal and has is not None and has < normal.value:
                yield _make_deviation(attribute, lost_part.peers, None, normal, has, lost_part.node, None)


class _Judged(NamedTuple):
    """Keys of a pass that differ from what is usual."""

    part: TablePass
    expected: _Expected
    of: Mapping[str, str]
    deviating: set[Row]


def _judge(part: TablePass, rows: list[Row], expected: _Expected, of: Mapping[str, str]) -> _Judged:
    return _Judged(part, expected, of, {row[:-1] for row in rows if any(_compare_row(part, row, expected, of))})


def _judge_small_classes(
    source: TableScan, part: TablePass, rows: list[Row], wider: ParentClass, options: Options
) -> Iterator[_Judged]:
    """Nodes of small classes that differ from what is usual in the wider one.

    Where that has other GPUs, too, a class of which no node has the usual value is meant to be so.
    """
    part = part._replace(attributes=[attribute for attribute in part.attributes if attribute.key in wider.attributes])
    of = dict.fromkeys(wider.members, wider.name)
    expected = _baselines(_count_values(source, part, [row for row in rows if row[0] in of], of, options), options)
    for name in sorted(wider.small):
        own = [row for row in rows if row[0] == name]
        judged = part
        if not wider.same_gpus:
            deviating = [{attribute for attribute, *_ in _compare_row(part, row, expected, of)} for row in own]
            judged = part._replace(
                attributes=[
                    attribute for attribute in part.attributes if any(attribute not in row for row in deviating)
                ]
            )
        yield _judge(judged, own, expected, of)


def _count_values(
    source: TableScan, part: TablePass, rows: list[Row], of: Mapping[str, str], options: Options
) -> _Groups:
    """How often each value occurs in each group, of groups that enough nodes are in."""
    groups: dict[tuple[Attribute, str, Any], list[tuple[Any, int]]] = {}
    for row in rows:
        named = dict(zip(part.keys, row, strict=False))
        for attribute in part.attributes:
            place, value = named[attribute.place] if attribute.place else None, named[attribute.column]
            if value not in _NOT_KNOWN and (place is not None or not attribute.place):
                groups.setdefault((attribute, of[named[CLASS]], place), []).append((value, row[-1]))
    counts = {key: sum_by_value(rows) for key, rows in groups.items()}
    few = _find_small_groups(source, part, counts, options)
    return {key: count for key, count in counts.items() if (key[1], key[0].place, key[2]) not in few}


def _find_small_groups(
    source: TableScan, part: TablePass, counts: _Groups, options: Options
) -> set[tuple[str, str | None, Any]]:
    """Groups of many things that are of too few nodes: five GPUs of one node are no five nodes."""
    unsure: dict[str | None, dict[Row, None]] = {}
    for (attribute, name, place), count in counts.items():
        shared = attribute.place in part.nodes
        if shared and len(count) > 1 and sum(count.values()) < options.fewest * _MOST_A_NODE:
            unsure.setdefault(attribute.place, {})[(name, place) if attribute.place else (name,)] = None
    few = set()
    for column, groups in unsure.items():
        for row in source.nodes(column, groups):
            if row[-1] < options.fewest:
                few.add((row[0], column, row[1] if column else None))
    return few


def _baselines(
    groups: _Groups, options: Options, devices: Mapping[str, Mapping[str, int]] = MappingProxyType({})
) -> _Expected:
    """`devices`: see PeerClasses."""
    baselines = {
        key: find_baseline(counts, options) or _died(key[0], key[1], counts, devices) or find_planned(counts, options)
        for key, counts in groups.items()
    }
    return {key: baseline for key, baseline in baselines.items() if baseline is not None}


def _died(
    attribute: Attribute, name: str, counts: Mapping[Any, int], devices: Mapping[str, Mapping[str, int]]
) -> Baseline | None:
    """How many devices a class has whose nodes lost some: also where so many did that it looks like a roll-out."""
    value = devices.get(name, {}).get(attribute.key) if attribute.table == "host" else None
    return Baseline(value, counts[value], sum(counts.values())) if value in counts else None


def _find_deviations(judged: _Judged, things: list[Row], shifted: set[str]) -> Iterator[Deviation]:
    """Things whose value is another than the usual one."""
    part, expected, of, deviating = judged
    elsewhere: dict[tuple[Attribute, str], set[Any]] = {}
    for (attribute, name, _), baseline in expected.items():
        elsewhere.setdefault((attribute, name), set()).update(baseline.values)
    for node, label, *row in things:
        if tuple(row) not in deviating:
            continue
        for attribute, place, value, normal in _compare_row(part, row, expected, of):
            if attribute.rails and node in shifted and value in elsewhere[attribute, of[row[0]]]:
                continue
            yield _make_deviation(attribute, of[row[0]], place, normal, value, node, label if part.labelled else None)


def _compare_row(
    part: TablePass, row: Sequence[Any], expected: _Expected, of: Mapping[str, str]
) -> Iterator[tuple[Attribute, Any, Any, Baseline]]:
    """What is not as usual in one row of keys: attribute, place, value."""
    named = dict(zip(part.keys, row, strict=False))
    for attribute in part.attributes:
        place, value = named[attribute.place] if attribute.place else None, named[attribute.column]
        normal = expected.get((attribute, of[named[CLASS]], place))
        if normal is not None and value not in _NOT_KNOWN and value not in normal.values:
            yield attribute, place, value, normal


def _make_deviation(
    a: Attribute, name: str, place: Any, normal: Baseline, value: Any, node: str, label: str | None
) -> Deviation:
    where = None if place is None else f"rail {place}" if a.rails else str(place)
    group = PeerGroup(a.key, a.what, name, where, a.one)
    if a.column == "dscp_prio" and len(normal.values) == 1:
        return Deviation(group, normal, *map_difference(value, normal.value), node, label)
    expected = " or ".join(format_value(a, value) for value in normal.values)
    by = _describe_distance(value, normal.value) if a.is_amount else None
    return Deviation(group, normal, format_value(a, value), expected, node, label, by)


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


def _make_mixed(name: str, groups: list[tuple[Attribute, Any, dict[Any, int]]]) -> NoMajority:
    attribute = groups[0][0]
    counts = sum_by_value(item for _, _, counts in groups for item in counts.items())
    places = [f"rail {place}" if attribute.rails else str(place) for _, place, _ in groups if place is not None]
    return NoMajority(
        attribute=attribute.key,
        what=attribute.what,
        hardware_class=name,
        places=sorted(places),
        one=attribute.one,
        values=[
            (format_value(attribute, count), counts[count])
            for count in sorted(counts, key=lambda v: (-counts[v], str(v)))
        ],
        of=sum(counts.values()),
    )


def format_value(attribute: Attribute, value: Any) -> str:
    """A value for people."""
    if attribute.column == "acs":
        return value or "off"
    if attribute.column == "pfc" and isinstance(value, str):
        return _name_priorities(value)
    return ("no", "yes")[value] if isinstance(value, bool) else attribute.form.format(value)


def _name_priorities(bits: str) -> str:
    """
    >>> _name_priorities("00010000"), _name_priorities("00000000"), _name_priorities("00011000")
    ('priority 3', 'off', 'priorities 3, 4')
    """
    on = [str(priority) for priority, bit in enumerate(bits) if bit == "1"]
    return "off" if not on else f"priority {on[0]}" if len(on) == 1 else f"priorities {', '.join(on)}"


def _describe_distance(value: Any, normal: Any) -> str | None:
    """How far a number is away: "1 fewer", "half"."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isinstance(normal, (int, float)):
        return None
    if normal and value and (value * 2 == normal or value * 4 == normal):
        return "half" if value * 2 == normal else "a quarter"
    difference = value - normal
    if isinstance(difference, int) and abs(difference) <= _SMALL:
        return f"{abs(difference)} {'fewer' if difference < 0 else 'more'}"
    return None
