"""What each node was on the last days, and which findings came and went since the day before its last report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query, statement
from agent.fleet.page.scene import LOOKS
from agent.fleet.questions.options import find_state, subtract_time

DAYS = 14
NO_REPORT = "."
_LETTERS = {look: look[0] for look in LOOKS}  # c e w u s o n
_VERDICTS = query("page", "verdict_changes")
_CHANGES = query("page", "finding_changes", episode=statement("views", "finding_episode"))
_DAY = timedelta(days=1)


def list_verdicts_by_day(
    tables: Tables, last_reports: Mapping[str, datetime | None], newest: datetime | None
) -> dict[str, str]:
    """Node -> a letter for each of the last days, the newest last: the state at its end; "." where none is known.

    Days after a node's last report have none: what was not scanned is not shown as it was.
    """
    if newest is None:
        return {}
    first = date.fromordinal(max(newest.toordinal() - DAYS + 1, date.min.toordinal()))
    days = [first + timedelta(days=at) for at in range(newest.toordinal() - first.toordinal() + 1)]
    days_of: dict[str, list[tuple[date, str]]] = {}
    for node, at, verdict in sorted(tables.rows(_VERDICTS), key=lambda row: (row[0], row[1])):
        days_of.setdefault(node, []).append((at.date(), _LETTERS[find_state(verdict, stale=False)]))
    return {
        node: _encode_days(days_of[node], days, last.date())
        for node, last in last_reports.items()
        if last is not None and node in days_of
    }


def _encode_days(changes: Sequence[tuple[date, str]], days: Sequence[date], last: date) -> str:
    """
    >>> day = lambda n: date(2026, 1, n)
    >>> _encode_days([(day(2), "o"), (day(3), "e"), (day(3), "w")], [day(n) for n in range(1, 6)], day(4))
    '.oww.'
    """
    text, now, at = "", NO_REPORT, 0
    for day in days:
        while at < len(changes) and changes[at][0] <= day:
            now = changes[at][1]
            at += 1
        text += now if day <= last else NO_REPORT
    return text


def list_finding_changes(tables: Tables, newest: datetime | None) -> dict[str, list[str]]:
    """Node -> "new: RULE on LABEL" and "gone: .." of the last day; of a node that is new nothing is."""
    if newest is None:
        return {}
    since = subtract_time(newest, _DAY)
    changes: dict[str, list[str]] = {}
    for node, rule, label, is_new in sorted(tables.rows(_CHANGES.bind(moment=since)), key=str):
        changes.setdefault(node, []).append(f"{'new' if is_new else 'gone'}: {rule}{f' on {label}' if label else ''}")
    return changes
