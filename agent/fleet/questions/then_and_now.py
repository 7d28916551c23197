"""The rows of a moment beside those of now, of nodes that have changed since.

Where these are few their rows are fetched and laid side by side here; where they are many, by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import LookupQuery, Query, Row, identifiers, lookup, query, quote
from agent.fleet.engines.shapes import HISTORY
from agent.fleet.questions.subjects import SUBJECTS, DriftSubject, changed_columns
from agent.fleet.table import TEXT, TIME

_FEW = 2000  # tables of nodes that have changed
_Side = dict[Row, Row]


class Compared(NamedTuple):
    """A subject, when each node's rows of it changed last, and rows: node, then, now; null where there is none.

    Then and now: key, what may change, label.
    """

    subject: DriftSubject
    at: dict[str, datetime]
    rows: Callable[[], Iterable[Row]]


def then_and_now(tables: Tables, since: datetime, recent: list[Row]) -> tuple[set[str], list[Compared]]:
    """Nodes that are new since, and the others' rows that are not the same. `recent`: rows of RECENT."""
    few = len(recent) <= _FEW
    moments = _with_before(tables, since, recent) if few else tables.rows(MOMENTS.bind(moment=since))
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
            here = partial(_side_by_side, tables, subject, rows_of, rows)
            compared.append(Compared(subject, at, here if few else tables.submit(pairs.bind(moment=since))))
    return new, compared


def _with_before(tables: Tables, since: datetime, recent: list[Row]) -> list[Row]:
    """What MOMENTS gives, of few nodes: also since when each table had been as before; None: it was not there."""
    before: dict[tuple[str, str], datetime] = {}
    for node, table, at in tables.fetch_by_keys(MOMENTS_OF, [row[:2] for row in recent]):
        if at <= since:
            before[node, table] = max(at, before.get((node, table), at))
    return [(*row, before.get(row[:2])) for row in recent]


def _side_by_side(tables: Tables, subject: DriftSubject, rows_of: LookupQuery, changed: list[Row]) -> Iterator[Row]:
    """`changed`: node, when last, since when it had been as before."""
    last = {node: at for node, at, _ in changed}
    wanted = {(node, at) for node, *moments in changed for at in moments if at is not None}
    keys = len(subject.key)
    then: _Side = {}
    now: _Side = {}
    for node, at, *row in tables.fetch_by_keys(rows_of, wanted):
        key = (node, *row[:keys])
        (now if at == last[node] else then)[key] = tuple(row)
    nothing = (None,) * len(_names(subject))
    for key in {**then, **now}:
        was, has = then.get(key, nothing), now.get(key, nothing)
        if was != has:
            yield (key[0], *was, *has)


def _names(subject: DriftSubject) -> list[str]:
    return [*subject.key, *(each.name for each in changed_columns(subject)), subject.label or "node"]


def _parts(subject: DriftSubject) -> dict[str, str]:
    *columns, label = _names(subject)
    return {
        "table": quote(subject.table),
        "history": quote(HISTORY + subject.table),
        "columns": identifiers(columns, "thing"),
        "label": quote(label, "thing"),
    }


def _rows_of(subject: DriftSubject) -> LookupQuery:
    """Of nodes and moments."""
    return lookup({"node": TEXT, "observed_at": TIME}, "drift", "rows_of_nodes", **_parts(subject))


def _pairs(subject: DriftSubject) -> Query:
    """Rows then and now."""
    *columns, _ = _names(subject)
    changed = columns[len(subject.key) :]
    return query(
        "drift", "pairs", **_parts(subject),
        earlier_columns=identifiers(columns, "earlier"),
        later_columns=identifiers(columns, "later"),
        same_key="".join(f" AND {quote(key, 'earlier')} = {quote(key, 'later')}" for key in subject.key),
        differing="".join(f" OR {quote(name, 'earlier')} <> {quote(name, 'later')}" for name in changed),
    ).bind(table=subject.table)  # fmt: skip


RECENT, MOMENTS = query("drift", "recent_changes"), query("drift", "changes")
MOMENTS_OF = lookup({"node": TEXT, "table": TEXT}, "drift", "changes_of_nodes")
ROWS_OF = [_rows_of(subject) for subject in SUBJECTS]
PAIRS = [_pairs(subject) for subject in SUBJECTS]
