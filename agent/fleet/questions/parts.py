"""What `fleet outliers` asks the engine for: one pass over each table counts the values of all its attributes."""

from __future__ import annotations

from typing import NamedTuple

from agent.fleet.engines.query import (
    LookupQuery,
    Query,
    identifiers,
    key_types,
    lookup,
    matching,
    query,
    quote,
    statement,
)
from agent.fleet.questions.attributes import ATTRIBUTES, Attribute
from agent.fleet.questions.classes import CLASS

_LABELS = {
    **dict.fromkeys(("gpu", "nic", "port", "netdev"), "thing.label"),
    "link": statement("outliers", "link_label"),
    "pci": "thing.id",
}
_WHICH = {True: "only_rails", False: "only_others", None: "all_things"}
_SHARED = (("gpu", "name"), ("gpu", None), ("nic", "board_id"))  # places that several things of one node share


class TablePass(NamedTuple):
    """Attributes that one pass over a table answers. `keys`: their places and columns, the class first."""

    attributes: list[Attribute]
    keys: tuple[str, ...]
    counts: Query  # how often each row of keys occurs
    things: LookupQuery  # node, label and keys
    nodes: dict[str | None, LookupQuery]  # nodes of a class and a place that things share, by place
    labelled: bool  # whether things have a label of their own


def _parts() -> list[TablePass]:
    """One for each table and choice of its rows."""
    together: dict[tuple[str, str], list[Attribute]] = {}
    for each in ATTRIBUTES:
        together.setdefault((each.table, each.which or _WHICH[each.rails]), []).append(each)
    return [_part(table, which, attributes) for (table, which), attributes in together.items()]


def _part(table: str, only: str, attributes: list[Attribute]) -> TablePass:
    places = [each.place for each in attributes if each.place]
    keys = tuple(dict.fromkeys((CLASS, *places, *(each.column for each in attributes))))
    which = statement("outliers", only)
    counts = query("outliers", "value_counts", keys=identifiers(keys, "thing"), table=quote(table), which=which)
    things = _lookup("things", table, keys, which)
    nodes = {
        place: _lookup("group_nodes", table, (CLASS, place) if place else (CLASS,), which)
        for place in dict.fromkeys(each.place for each in attributes)
        if (table, place) in _SHARED
    }
    return TablePass(attributes, keys, counts, things, nodes, table in _LABELS)


def _lookup(name: str, table: str, keys: tuple[str, ...], which: str) -> LookupQuery:
    return lookup(
        key_types(table, keys), "outliers", name,
        keys=identifiers(keys, "thing"), table=quote(table), which=which, matching=matching(keys),
        label=_LABELS.get(table, "thing.node"),
    )  # fmt: skip


PARTS = _parts()
