"""The tables by the names that engines know, and their columns."""

from __future__ import annotations

from agent.fleet.table import TIME, Column
from agent.fleet.tables import CHANGE, SIGHTING, TABLES

HISTORY = "history_"  # before the name of a table's history, in every engine
MOMENT = "observed_at"  # a row of history: since then the rows of this node have been so
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
