"""Which nodes are not as their like: the usual value of a hardware class, and who has another.

Two steps for every table: values are counted by the engine, few rows that are judged here, and then the rows that
differ are fetched. What is not known is never odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

import msgspec
from ibis.expr import types as ir

from agent.fleet.engines.engine import Tables
from agent.fleet.questions.amounts import memory, slow_probes
from agent.fleet.questions.attributes import ATTRIBUTES, Attribute
from agent.fleet.questions.bags import bags
from agent.fleet.questions.classes import CLASS, sizes, with_class
from agent.fleet.questions.odd import Group, Mixed, Odd, Outlier, folded
from agent.fleet.questions.options import ORDINARY, Options
from agent.fleet.questions.usual import Usual, counted, planned, usual

_SUBJECT = {"gpu": "label", "nic": "label", "port": "label", "netdev": "label", "link": "called", "probe": "name"}
_SHARED = (("gpu", "name"), ("gpu", None), ("nic", "board_id"))  # places that several things of one node share
_SMALL = 128  # differences that are told as a number: GPUs, NVLinks; not megabytes
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
    classes = sizes(tables)
    enough = {name: count for name, count in classes.items() if count >= options.fewest}
    odds: list[Odd] = []
    mixed: dict[tuple[str, str], list[tuple[Attribute, Any, dict[Any, int]]]] = {}
    shifted: set[str] = set()  # nodes with another number of rails: their rail 3 may be their neighbours' rail 4
    for attributes in _together():
        groups = _counted(tables, attributes, enough, options)
        found = list(_found(tables, attributes, _usual(groups, options), shifted))
        shifted |= {odd.node for odd in found if odd.group.key == "rails"}
        odds += found
        for (attribute, name, place), counts in groups.items():
            if usual(counts, options) is None and planned(counts, options):
                mixed.setdefault((attribute.key, name), []).append((attribute, place, counts))
    odds += bags(tables, enough, options)
    odds += memory(tables, enough, options)
    odds += slow_probes(tables, enough, options)
    return Outliers(
        outliers=folded(odds),
        mixed=[_mixed(name, each) for (_, name), each in sorted(mixed.items())],
        compared_nodes=sum(enough.values()),
        classes=enough,
        too_few={name: count for name, count in classes.items() if name not in enough},
    )


def _together() -> list[list[Attribute]]:
    """Attributes that one pass over a table answers."""
    found: dict[tuple[str, str | None, bool | None], list[Attribute]] = {}
    for each in ATTRIBUTES:
        found.setdefault((each.table, each.place, each.rails), []).append(each)
    return list(found.values())


def _source(tables: Tables, attribute: Attribute) -> ir.Table:
    table = with_class(tables, attribute.table)
    if attribute.rails is None:
        return table
    return table.filter(table.rail.notnull() if attribute.rails else table.rail.isnull() & table.nic.notnull())


def _counted(tables: Tables, attributes: list[Attribute], enough: dict[str, int], options: Options) -> _Groups:
    """How often each value occurs in each group, of groups that enough nodes are in."""
    place = attributes[0].place
    source = _source(tables, attributes[0])
    keys = [CLASS, *([place] if place else []), *(each.column for each in attributes)]
    several = (attributes[0].table, place) in _SHARED
    nodes = source.node.nunique() if several else source.count()
    groups: dict[tuple[Attribute, str, Any], list[tuple[Any, int]]] = {}
    most: dict[tuple[Attribute, str, Any], int] = {}
    for row in tables.rows(source.group_by(keys).agg(things=source.count(), nodes=nodes)):
        name, there, values = row[0], row[1] if place else None, row[2 if place else 1 : -2]
        if name not in enough or (place and there is None):
            continue
        for attribute, value in zip(attributes, values, strict=True):
            if value not in _NOT_KNOWN:
                groups.setdefault((attribute, name, there), []).append((value, row[-2]))
            most[attribute, name, there] = max(most.get((attribute, name, there), 0), row[-1])
    return {
        key: counted(rows)
        for key, rows in groups.items()
        if not several or most[key] >= options.fewest  # five GPUs of one node are no five nodes
    }


def _usual(groups: _Groups, options: Options) -> dict[tuple[Attribute, str, Any], Usual]:
    found = {key: usual(counts, options) for key, counts in groups.items()}
    return {key: each for key, each in found.items() if each is not None}


def _found(
    tables: Tables,
    attributes: list[Attribute],
    expected: dict[tuple[Attribute, str, Any], Usual],
    shifted: set[str],
) -> Iterator[Odd]:
    """Things whose value is another than the usual one."""
    differing = {key: each for key, each in expected.items() if each.has < each.of}
    if not differing:
        return
    first = attributes[0]
    source = _source(tables, first)
    subject = _SUBJECT.get(first.table, "node")
    columns = ["node", subject, CLASS, *([first.place] if first.place else []), *(each.column for each in attributes)]
    chosen = source.filter(_differs(source, differing))
    if first.table == "link":
        chosen = chosen.mutate(called=chosen.kind.fill_null("other") + " " + chosen.id)
    names = [f"c{number}" for number in range(len(columns))]  # one column may be asked for twice
    rows = chosen.select(**{name: chosen[column] for name, column in zip(names, columns, strict=True)})
    elsewhere: dict[tuple[Attribute, str], set[Any]] = {}
    for (attribute, name, _), each in expected.items():
        elsewhere.setdefault((attribute, name), set()).add(each.value)
    for node, label, name, *rest in tables.rows(rows):
        place = rest[0] if first.place else None
        for attribute, value in zip(attributes, rest[1:] if first.place else rest, strict=True):
            normal = differing.get((attribute, name, place))
            if normal is None or value in _NOT_KNOWN or value == normal.value:
                continue
            if attribute.told_of and (normal.value not in attribute.told_of or value in attribute.told_of):
                continue
            if attribute.rails and node in shifted and value in elsewhere[attribute, name]:
                continue
            yield _odd(attribute, name, place, normal, value, node, label if subject != "node" else None)


def _odd(a: Attribute, name: str, place: Any, normal: Usual, value: Any, node: str, label: str | None) -> Odd:
    where = None if place is None else f"rail {place}" if a.rails else str(place)
    group = Group(a.key, a.what, name, where, a.one)
    return Odd(group, normal, shown(a, value), shown(a, normal.value), node, label, _by(value, normal.value))


def _differs(source: ir.Table, expected: dict[tuple[Attribute, str, Any], Usual]) -> ir.BooleanValue:
    """Rows of those groups with another value. Groups with one usual value are one term, however many there are."""
    terms: dict[tuple[str, Any], dict[str, set[Any]]] = {}
    for (attribute, name, place), normal in expected.items():
        terms.setdefault((attribute.column, normal.value), {}).setdefault(name, set()).add(place)
    place_column = next(iter(expected))[0].place
    conditions = []
    for (column, value), classes in sorted(terms.items(), key=str):
        conditions.append((source[column] != value) & _within(source, place_column, classes))
    return reduce(or_, conditions)


def _within(source: ir.Table, place: str | None, classes: dict[str, set[Any]]) -> ir.BooleanValue:
    if place is None:
        return source[CLASS].isin(sorted(classes))
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, places in classes.items():
        alike.setdefault(tuple(sorted(places)), []).append(name)
    return reduce(
        or_, [source[CLASS].isin(sorted(names)) & source[place].isin(places) for places, names in alike.items()]
    )


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
