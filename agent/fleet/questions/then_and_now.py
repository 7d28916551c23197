"""The rows of a moment beside those of now, of nodes that have changed since.

Where these are few their rows are fetched and laid side by side here; where they are many, by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Choice, Dated, Row, Source, Those
from agent.fleet.questions.subjects import SUBJECTS, Subject, changed_columns

if TYPE_CHECKING:
    from ibis.expr import types as ir

_FEW = 2000  # tables of nodes that have changed
_Side = dict[Row, Row]


class Compared(NamedTuple):
    """A subject, when each node's rows of it changed last, and rows: node, then, now; null where there is none.

    Then and now: key, what may change, label.
    """

    subject: Subject
    at: dict[str, datetime]
    rows: Callable[[], Iterable[Row]]


def then_and_now(tables: Tables, since: datetime, recent: list[Row]) -> tuple[set[str], list[Compared]]:
    """Nodes that are new since, and the others' rows that are not the same. `recent`: rows of RECENT."""
    few = len(recent) <= _FEW
    moments = _with_before(tables, since, recent) if few else tables.since(MOMENTS, since)()
    new = {node for node, table, _, before in moments if table == "host" and before is None}
    changed: dict[str, list[Row]] = {}
    for node, table, last, before in moments:
        if node not in new:
            changed.setdefault(table, []).append((node, last, before))
    compared = []
    for subject, rows_of, pairs in zip(SUBJECTS, ROWS_OF, PAIRS, strict=True):
        rows = changed.get(subject.table)
        if rows:
            at = {node: last for node, last, _ in rows}
            beside = partial(_side_by_side, tables, subject, rows_of, rows) if few else tables.since(pairs, since)
            compared.append(Compared(subject, at, beside))
    return new, compared


def _with_before(tables: Tables, since: datetime, recent: list[Row]) -> list[Row]:
    """What MOMENTS gives, of few nodes: also since when each table had been as before; None: it was not there."""
    before: dict[tuple[str, str], datetime] = {}
    for node, table, at in tables.chosen(MOMENTS_OF, [row[:2] for row in recent]):
        if at <= since:
            before[node, table] = max(at, before.get((node, table), at))
    return [(*row, before.get(row[:2])) for row in recent]


def _side_by_side(tables: Tables, subject: Subject, rows_of: Choice, changed: list[Row]) -> Iterator[Row]:
    """`changed`: node, when last, since when it had been as before."""
    last = {node: at for node, at, _ in changed}
    wanted = {(node, at) for node, *moments in changed for at in moments if at is not None}
    keys = len(subject.key)
    then: _Side = {}
    now: _Side = {}
    for node, at, *row in tables.chosen(rows_of, wanted):
        key = (node, *row[:keys])
        (now if at == last[node] else then)[key] = tuple(row)
    nothing = (None,) * len(_names(subject))
    for key in {**then, **now}:
        was, has = then.get(key, nothing), now.get(key, nothing)
        if was != has:
            yield (key[0], *was, *has)


def _names(subject: Subject) -> list[str]:
    return [*subject.key, *(each.name for each in changed_columns(subject)), subject.label or "node"]


def _recent(tables: Source, cut: ir.TimestampScalar) -> ir.Table:
    """Every node and table that changed since, and when last."""
    change = tables.history("change")
    late = change.filter(change.observed_at > cut)
    return late.group_by(["node", "table"]).agg(last=late.observed_at.max())


def _moments_of(tables: Source, those: Those) -> ir.Table:
    return those(tables.history("change")).select("node", "table", "observed_at")


def _rows_of(tables: Source, those: Those, subject: Subject) -> ir.Table:
    """Of nodes and moments."""
    rows = those(tables.history(subject.table))
    names = ["node", "observed_at", *_names(subject)]
    return rows.select(**{f"c{place}": rows[name] for place, name in enumerate(names)})


def _moments(tables: Source, cut: ir.TimestampScalar) -> ir.Table:
    """Every node and table that changed since: when last, and since when it had been as before (null: not there)."""
    change = tables.history("change")
    grouped = change.group_by(["node", "table"]).agg(
        last=change.observed_at.max(), before=change.observed_at.max(where=change.observed_at <= cut)
    )
    return grouped.filter(grouped["last"] > cut)


def _pairs(tables: Source, cut: ir.TimestampScalar, subject: Subject) -> ir.Table:
    """Rows then and now side by side, of nodes whose table changed, where they are not the same."""
    change = tables.history("change")
    known = change.filter((change["table"] == "host") & (change.observed_at <= cut)).select("node").distinct()
    own = change.filter(change["table"] == subject.table).semi_join(known, "node")
    moments = own.group_by("node").agg(
        last=own.observed_at.max(), before=own.observed_at.max(where=own.observed_at <= cut)
    )
    moments = moments.filter(moments["last"] > cut)
    history = tables.history(subject.table)
    key = ["node", *subject.key]
    names = _names(subject)
    then = _renamed(history.inner_join(moments, ["node", ("observed_at", "before")]), "o", names)
    now = _renamed(tables.latest(subject.table).semi_join(moments, "node"), "n", names)
    pairs = then.outer_join(now, [(f"o{place}", f"n{place}") for place in range(len(key))])
    count = len(subject.key)
    differing = [pairs[f"o{at}"] != pairs[f"n{at}"] for at in range(count + 1, len(names))]
    missing = pairs["o0"].isnull() | pairs["n0"].isnull()
    chosen = pairs.filter(reduce(or_, differing, missing))
    both = [f"{side}{at}" for side in "on" for at in range(1, len(names) + 1)]
    return chosen.select(chosen["o0"].coalesce(chosen["n0"]).name("node"), *both)


def _renamed(table: ir.Table, side: str, names: list[str]) -> ir.Table:
    """Columns by number: node is 0, then the key, what may change, the label."""
    return table.select(**{f"{side}{place}": table[name] for place, name in enumerate(["node", *names])})


RECENT, MOMENTS = Dated("drift: recent", _recent), Dated("drift: moments", _moments)
MOMENTS_OF = Choice("drift: moments of nodes", ("node", "table"), _moments_of)
ROWS_OF = [
    Choice(f"drift: {subject.one} of nodes", ("node", "observed_at"), partial(_rows_of, subject=subject))
    for subject in SUBJECTS
]
PAIRS = [Dated(f"drift: {subject.one}", partial(_pairs, subject=subject)) for subject in SUBJECTS]
