"""Tables by the names that engines use, and their columns."""

from __future__ import annotations

from agent.fleet.table import Column, Table
from agent.fleet.tables import HISTORY as HISTORIES
from agent.fleet.tables import MOMENT as _MOMENT
from agent.fleet.tables import TABLES, history_columns

HISTORY = "history_"  # before the name of a table's history, in every engine
MOMENT = _MOMENT.name


def names() -> list[str]:
    """Every name that an engine uses."""
    return [*TABLES, *(HISTORY + history for history in HISTORIES)]


def columns(name: str) -> tuple[Column, ...]:
    """Columns of a table by the name that an engine uses. Raises KeyError."""
    table = _table(name)
    return history_columns(table) if name.startswith(HISTORY) else table.columns


def key(name: str) -> tuple[str, ...]:
    """The columns that identify a row. Raises KeyError."""
    table = _table(name)
    moment = (MOMENT,) if name.startswith(HISTORY) and MOMENT not in table.key else ()
    return (table.columns[0].name, *moment, *table.key)


def about(name: str) -> str:
    """What is in it. Raises KeyError."""
    text = _table(name).about
    return (
        f"What changed, when it changed. {text}"
        if name.startswith(HISTORY) and name[len(HISTORY) :] in TABLES
        else text
    )


def _table(name: str) -> Table:
    return HISTORIES[name.removeprefix(HISTORY)] if name.startswith(HISTORY) else TABLES[name]
