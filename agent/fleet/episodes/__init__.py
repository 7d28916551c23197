"""What the history of findings shows: what is new, back, gone or flapping, and which parts fail again and again.

Reads tables of findings and their history; an episode is from when to when a finding was there. Not here: how an answer
is printed (agent.fleet.text), and the comparison of two moments of a node (agent.fleet.questions).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import query, statement
from agent.model.finding import SEVERITIES

EPISODES = query("episodes", "episodes", episode=statement("views", "finding_episode"))


class Episode(NamedTuple):
    """From when to when a finding was there; `ended` is null while it is. Times are UTC without a zone."""

    node: str
    rule: str
    severity: str
    subject: str
    fingerprint: str
    label: str | None
    part: str | None
    part_serial: str | None
    began: datetime
    ended: datetime | None
    previous_ended: datetime | None = None
    previous_severity: str | None = None
    next_began: datetime | None = None
    fleet_window: str | None = None  # made by the fleet from two reports of these times

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is the same finding, whatever its severity."""
        return self.node, self.rule, self.subject, self.fingerprint

    @property
    def is_continuation(self) -> bool:
        """The finding was there before: only its severity is another."""
        return self.previous_ended is not None and self.previous_ended == self.began

    @property
    def is_gone(self) -> bool:
        """It ended, and no other severity took its place."""
        return self.ended is not None and self.ended != self.next_began


def episodes(tables: Tables, since: datetime, least: str) -> list[Episode]:
    """Those that are open, or ended after a moment, from a severity on, in order."""
    rows = map(Episode._make, tables.rows(EPISODES.bind(moment=since)))
    return sorted(row for row in rows if is_at_least(row.severity, least))


def is_at_least(severity: str | None, least: str) -> bool:
    """Whether a severity is that one, or more severe."""
    return severity is not None and severity in SEVERITIES and SEVERITIES.index(severity) >= SEVERITIES.index(least)


def gravest(severities: Iterable[str]) -> str:
    """The most severe of some severities."""
    return max(severities, key=SEVERITIES.index)
