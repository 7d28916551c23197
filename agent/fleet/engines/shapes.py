"""The tables as Ibis sees them before any engine is asked: expressions are built on these, and compiled for each."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from agent.fleet.tables import BOOL, CHANGE, FLOAT, INT, SIGHTING, TABLES, TEXT, TIME, Column

if TYPE_CHECKING:
    from ibis.expr import types as ir

HISTORY = "history_"  # before the name of a table's history, in every engine
MOMENT = "observed_at"  # a row of history: since then the rows of this node have been so
KINDS = {TEXT: "string", INT: "int64", FLOAT: "float64", BOOL: "boolean", TIME: "timestamp(6)"}
HISTORIES = {each.name: each for each in (*(each for each in TABLES.values() if each.history), CHANGE, SIGHTING)}


def names() -> list[str]:
    """Every name that an engine knows."""
    return [*TABLES, *(HISTORY + each for each in HISTORIES)]


def columns(name: str) -> tuple[Column, ...]:
    """Columns of a table by the name that an engine knows. Raises KeyError."""
    if not name.startswith(HISTORY):
        return TABLES[name].columns
    known = HISTORIES[name.removeprefix(HISTORY)].columns
    moment = () if any(each.name == MOMENT for each in known) else (Column(MOMENT, TIME),)
    return (known[0], *moment, *known[1:])


@cache
def table(name: str) -> ir.Table:
    """A table that belongs to no engine. Raises KeyError."""
    import ibis  # a third of a second

    return ibis.table({each.name: KINDS[each.type] for each in columns(name)}, name=name)
