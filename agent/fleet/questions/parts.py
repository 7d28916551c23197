"""What `fleet outliers` asks the engine for: one pass over each table counts the values of all its attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from agent.fleet.engines.query import Choice, Query, Source, Those
from agent.fleet.questions.attributes import ATTRIBUTES, Attribute
from agent.fleet.questions.classes import CLASS

if TYPE_CHECKING:
    from ibis.expr import types as ir

_Make = Callable[[Source], "ir.Table"]
_SUBJECT = {"gpu": "label", "nic": "label", "port": "label", "netdev": "label", "link": "called"}
_SUFFIX = {True: " rails", False: " others", None: ""}
_SHARED = (("gpu", "name"), ("gpu", None), ("nic", "board_id"))  # places that several things of one node share


class Part(NamedTuple):
    """Attributes that one pass over a table answers. `keys`: their places and columns, the class first."""

    attributes: list[Attribute]
    keys: tuple[str, ...]
    counts: Query  # how often each row of keys occurs
    things: Choice  # node, label and keys
    nodes: dict[str | None, Choice]  # by place, if things share it: how many nodes there are of a class and a place
    labelled: bool  # whether things have a label of their own


def _parts() -> list[Part]:
    """Of every table one, or two."""
    together: dict[tuple[str, bool | None], list[Attribute]] = {}
    for each in ATTRIBUTES:
        together.setdefault((each.table, each.rails), []).append(each)
    return [_part(table, rails, attributes) for (table, rails), attributes in together.items()]


def _part(table: str, rails: bool | None, attributes: list[Attribute]) -> Part:
    name = f"outliers: {table}{_SUFFIX[rails]}"
    places = [each.place for each in attributes if each.place]
    keys = tuple(dict.fromkeys((CLASS, *places, *(each.column for each in attributes))))
    source = partial(_source, table=table, rails=rails)
    things = partial(_things, source=source, subject=_SUBJECT.get(table, "node"), keys=keys)
    nodes = {
        place: _nodes_of(name, (CLASS, place) if place else (CLASS,), source)
        for place in dict.fromkeys(each.place for each in attributes)
        if (table, place) in _SHARED
    }
    counts = Query(name, partial(_counts, source=source, keys=keys))
    return Part(attributes, keys, counts, Choice(f"{name}, things", keys, things), nodes, table in _SUBJECT)


def _nodes_of(name: str, keys: tuple[str, ...], source: _Make) -> Choice:
    return Choice(f"{name}, nodes by {' and '.join(keys)}", keys, partial(_nodes, source=source, keys=keys))


def _source(tables: Source, table: str, rails: bool | None) -> ir.Table:
    found = tables.latest(table)
    if table == "link":
        found = found.mutate(called=found.kind.fill_null("other") + " " + found.id)
    if rails is None:
        return found
    return found.filter(found.rail.notnull() if rails else found.rail.isnull() & found.nic.notnull())


def _counts(tables: Source, source: _Make, keys: tuple[str, ...]) -> ir.Table:
    found = source(tables)
    return found.group_by(list(keys)).agg(things=found.count())


def _things(tables: Source, those: Those, source: _Make, subject: str, keys: tuple[str, ...]) -> ir.Table:
    found = those(source(tables))
    return found.select(**{f"c{at}": found[key] for at, key in enumerate(["node", subject, *keys])})


def _nodes(tables: Source, those: Those, source: _Make, keys: tuple[str, ...]) -> ir.Table:
    found = those(source(tables))
    return found.group_by(list(keys)).agg(nodes=found.node.nunique())


PARTS = _parts()
