"""Which nodes are not as their like: the usual value of a hardware class, and who has another.

Two steps for every table: values are counted by the engine, few rows that are judged here, and then the rows that
differ are fetched. What is not known is never odd.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec

from agent.fleet.engines.engine import Asked, Row, Tables
from agent.fleet.questions.amounts import memory, memory_begun, probes, probes_begun
from agent.fleet.questions.attributes import ATTRIBUTES, Attribute
from agent.fleet.questions.bags import bags, bags_begun
from agent.fleet.questions.classes import CLASS, sizes, sizes_begun
from agent.fleet.questions.odd import Group, Mixed, Odd, Outlier, folded
from agent.fleet.questions.options import ORDINARY, Options
from agent.fleet.questions.usual import Usual, counted, planned, usual

if TYPE_CHECKING:
    from ibis.expr import types as ir

_SUBJECT = {"gpu": "label", "nic": "label", "port": "label", "netdev": "label", "link": "called"}
_SHARED = (("gpu", "name"), ("gpu", None), ("nic", "board_id"))  # places that several things of one node share
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
    together, first = _together(), sizes_begun(tables)
    begun = [_begun(tables, attributes) for attributes in together]
    words, sums, times = bags_begun(tables), memory_begun(tables), probes_begun(tables)
    classes = sizes(first)
    enough = {name: count for name, count in classes.items() if count >= options.fewest}
    odds: list[Odd] = []
    mixed: dict[tuple[str, str], list[tuple[Attribute, Any, dict[Any, int]]]] = {}
    shifted: set[str] = set()  # nodes with another number of rails: their rail 3 may be their neighbours' rail 4
    for attributes, rows in zip(together, begun, strict=True):
        groups = _counted(tables, attributes, rows(), enough, options)
        found = list(_found(tables, attributes, _usual(groups, options), shifted))
        shifted |= {odd.node for odd in found if odd.group.key == "rails"}
        odds += found
        for (attribute, name, place), counts in groups.items():
            if usual(counts, options) is None and planned(counts, options) is not None:
                mixed.setdefault((attribute.key, name), []).append((attribute, place, counts))
    odds += bags(tables, words, enough, options)
    odds += memory(tables, sums, enough, options)
    odds += probes(tables, times, enough, options)
    return Outliers(
        outliers=folded(odds),
        mixed=[_mixed(name, each) for (_, name), each in sorted(mixed.items())],
        compared_nodes=sum(enough.values()),
        classes=enough,
        too_few={name: count for name, count in classes.items() if name not in enough},
    )


def _together() -> list[list[Attribute]]:
    """Attributes that one pass over a table answers."""
    found: dict[tuple[str, bool | None], list[Attribute]] = {}
    for each in ATTRIBUTES:
        found.setdefault((each.table, each.rails), []).append(each)
    return list(found.values())


def _source(tables: Tables, attribute: Attribute) -> ir.Table:
    table = tables.latest(attribute.table)
    if attribute.rails is None:
        return table
    return table.filter(table.rail.notnull() if attribute.rails else table.rail.isnull() & table.nic.notnull())


def _keys(attributes: list[Attribute]) -> list[str]:
    """Places and values, each column once."""
    places = (each.place for each in attributes if each.place)
    return list(dict.fromkeys((CLASS, *places, *(each.column for each in attributes))))


def _begun(tables: Tables, attributes: list[Attribute]) -> Asked:
    table, rails = attributes[0].table, {True: " rails", False: " others", None: ""}[attributes[0].rails]
    return tables.prepared(f"outliers: {table}{rails}", lambda each: _counts(each, attributes))


def _counts(tables: Tables, attributes: list[Attribute]) -> ir.Table:
    source = _source(tables, attributes[0])
    return source.group_by(_keys(attributes)).agg(things=source.count())


def _counted(
    tables: Tables, attributes: list[Attribute], rows: list[Row], enough: dict[str, int], options: Options
) -> _Groups:
    """How often each value occurs in each group, of groups that enough nodes are in."""
    source = _source(tables, attributes[0])
    keys = _keys(attributes)
    groups: dict[tuple[Attribute, str, Any], list[tuple[Any, int]]] = {}
    for row in rows:
        named = dict(zip(keys, row, strict=False))
        if named[CLASS] not in enough:
            continue
        for attribute in attributes:
            place, value = named[attribute.place] if attribute.place else None, named[attribute.column]
            if value not in _NOT_KNOWN and (place is not None or not attribute.place):
                groups.setdefault((attribute, named[CLASS], place), []).append((value, row[-1]))
    counts = {key: counted(rows) for key, rows in groups.items()}
    few = _few_nodes(tables, source, counts, options)
    return {key: each for key, each in counts.items() if (key[1], key[0].place, key[2]) not in few}


def _few_nodes(tables: Tables, source: ir.Table, counts: _Groups, options: Options) -> set[tuple[str, str | None, Any]]:
    """Groups of many things that are of too few nodes: five GPUs of one node are no five nodes."""
    unsure: dict[str | None, set[Any]] = {}
    for (attribute, _, place), each in counts.items():
        shared = (attribute.table, attribute.place) in _SHARED
        if shared and len(each) > 1 and sum(each.values()) < options.fewest * _MOST_A_NODE:
            unsure.setdefault(attribute.place, set()).add(place)
    few = set()
    for column, places in unsure.items():
        chosen = source.filter(source[column].isin(sorted(places))) if column else source
        grouped = chosen.group_by([CLASS, column] if column else [CLASS]).agg(nodes=chosen.node.nunique())
        for row in tables.rows(grouped):
            if row[-1] < options.fewest:
                few.add((row[0], column, row[1] if column else None))
    return few


def _usual(groups: _Groups, options: Options) -> dict[tuple[Attribute, str, Any], Usual]:
    found = {key: usual(counts, options) or planned(counts, options) for key, counts in groups.items()}
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
    table = attributes[0].table
    source = _source(tables, attributes[0])
    chosen = source.filter(_differs(source, differing))
    if table == "link":
        chosen = chosen.mutate(called=chosen.kind.fill_null("other") + " " + chosen.id)
    keys = _keys(attributes)
    subject = _SUBJECT.get(table)
    elsewhere: dict[tuple[Attribute, str], set[Any]] = {}
    for (attribute, name, _), each in expected.items():
        elsewhere.setdefault((attribute, name), set()).update(each.values)
    columns = {f"c{at}": chosen[key] for at, key in enumerate(["node", subject or "node", *keys])}
    for node, label, *rest in tables.rows(chosen.select(**columns)):
        named = dict(zip(keys, rest, strict=True))
        name = named[CLASS]
        for attribute in attributes:
            place, value = named[attribute.place] if attribute.place else None, named[attribute.column]
            normal = differing.get((attribute, name, place))
            if normal is None or value in _NOT_KNOWN or value in normal.values:
                continue
            if attribute.rails and node in shifted and value in elsewhere[attribute, name]:
                continue
            yield _odd(attribute, name, place, normal, value, node, label if subject else None)


def _odd(a: Attribute, name: str, place: Any, normal: Usual, value: Any, node: str, label: str | None) -> Odd:
    where = None if place is None else f"rail {place}" if a.rails else str(place)
    group = Group(a.key, a.what, name, where, a.one)
    expected = " or ".join(shown(a, each) for each in normal.values)
    return Odd(group, normal, shown(a, value), expected, node, label, _by(value, normal.value))


def _differs(source: ir.Table, expected: dict[tuple[Attribute, str, Any], Usual]) -> ir.BooleanValue:
    """Rows of those groups with another value. Groups with the same usual value are one term."""
    terms: dict[tuple[str, str | None, tuple[Any, ...]], dict[str, set[Any]]] = {}
    for (attribute, name, place), normal in expected.items():
        terms.setdefault((attribute.column, attribute.place, normal.values), {}).setdefault(name, set()).add(place)
    return reduce(
        or_,
        [
            source[column].notin(values) & _within(source, place, classes)
            for (column, place, values), classes in sorted(terms.items(), key=str)
        ],
    )


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
