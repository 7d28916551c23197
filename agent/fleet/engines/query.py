"""Queries that have a name, by which an engine may know their SQL: those without values of their own, those that ask
for some rows of a table by the values of some of its columns, and those that look back to a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from itertools import islice
from operator import and_, or_
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ibis.expr import types as ir

Row = tuple[Any, ...]
Those = Callable[["ir.Table"], "ir.Table"]  # of a table only the rows that are asked for
ASKED = "asked"  # the table of what is asked for, where it is joined; its columns are k0, k1, ..
_TOGETHER = 500  # of them in one query, where they are written into it


class Source(Protocol):
    """Where tables come from."""

    def latest(self, name: str) -> ir.Table:
        """A table of the newest reports. Raises KeyError."""

    def history(self, name: str) -> ir.Table:
        """A table's history. Raises KeyError."""


class Answering(Source, Protocol):
    """And that answers."""

    def rows(self, expression: ir.Table) -> list[Row]:
        """The rows of an expression."""


class Query(NamedTuple):
    """One without values of its own."""

    name: str
    make: Callable[[Source], ir.Table]


class Choice(NamedTuple):
    """One for rows whose `keys` have certain values. `make` passes a table that has these columns to the second.

    Where it counts, it is for callers who add up: values may be asked for in several goes.
    """

    name: str
    keys: tuple[str, ...]
    make: Callable[[Source, Those], ir.Table]


class Dated(NamedTuple):
    """One that depends on a moment, UTC without a zone."""

    name: str
    make: Callable[[Source, ir.TimestampScalar], ir.Table]


def in_pieces(tables: Answering, choice: Choice, values: Iterable[Row]) -> list[Row]:
    """The rows of a choice, for any engine. `values`: of its keys, none twice."""
    left = iter(values)
    found: list[Row] = []
    while piece := list(islice(left, _TOGETHER)):
        found += tables.rows(choice.make(tables, _filtered(choice.keys, piece)))
    return found


def since(tables: Answering, query: Dated, moment: datetime) -> list[Row]:
    """The rows of a dated query, for any engine."""
    import ibis

    return tables.rows(query.make(tables, ibis.literal(moment)))


def asked_moment(types: list[str]) -> ir.TimestampScalar:
    """That which stands in the table ASKED. `types` is filled as by `joined`."""
    import ibis

    types[:] = ["timestamp(6)"]
    return ibis.table({"k0": types[0]}, name=ASKED).k0.as_scalar()


def joined(keys: tuple[str, ...], types: list[str]) -> Those:
    """Those that stand in the table ASKED. `types` is filled with the Ibis types of its columns."""
    import ibis

    def those(table: ir.Table) -> ir.Table:
        types[:] = [str(table[key].type()) for key in keys]
        asked = ibis.table({f"k{at}": table[key].type() for at, key in enumerate(keys)}, name=ASKED)
        return table.semi_join(asked, [table[key].identical_to(asked[f"k{at}"]) for at, key in enumerate(keys)])

    return those


def _filtered(keys: tuple[str, ...], values: Sequence[Row]) -> Those:
    """Those that have one of these values."""

    def those(table: ir.Table) -> ir.Table:
        return table.filter(reduce(or_, _terms(table, keys, values)))

    return those


def _terms(table: ir.Table, keys: tuple[str, ...], values: Sequence[Row]) -> Iterator[ir.BooleanValue]:
    """As few as there can be: what is the same but for the key with the most values is one."""
    most = max(range(len(keys)), key=lambda at: len({row[at] for row in values}))
    alike: dict[Row, list[Any]] = {}
    for row in values:
        alike.setdefault(row[:most] + row[most + 1 :], []).append(row[most])
    others = keys[:most] + keys[most + 1 :]
    for same, differing in alike.items():
        equal = [_is(table, key, value) for key, value in zip(others, same, strict=True)]
        yield reduce(and_, [*equal, _among(table, keys[most], differing)])


def _is(table: ir.Table, key: str, value: Any) -> ir.BooleanValue:
    return table[key].isnull() if value is None else table[key] == value


def _among(table: ir.Table, key: str, values: list[Any]) -> ir.BooleanValue:
    known = [value for value in values if value is not None]
    if not known:
        return table[key].isnull()
    found = table[key].isin(known)
    return found if len(known) == len(values) else found | table[key].isnull()
