"""Findings that the operator of the fleet acknowledged: the keys of a node's configuration, and `node`."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec

from agent.fleet.engines.engine import Silenced, Tables
from agent.fleet.engines.query import SILENCES, Relation, lookup, matching
from agent.fleet.episodes import Episode
from agent.fleet.hostlist import unfold
from agent.fleet.table import TEXT

_KNOWN = dict.fromkeys(("node", "rule", "subject", "fingerprint", "reason", "until"), TEXT)
_OF_RULES = lookup({"rule": TEXT}, "episodes", "findings_of_rules", matching=matching(("rule",), null_safe=False))
Text = Annotated[str, msgspec.Meta(min_length=1)]


class FleetSilence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings of one rule that are known: on some nodes or all, of one device or all, until a day."""

    rule: Text
    reason: Text
    node: Text | None = None  # a host list: gpu[001-016]
    device: Text | None = None  # an id, a label, a subject or a fingerprint
    until: datetime.date | None = None  # the last day, UTC
    ticket: str | None = None
    all: bool = False  # as in a node's configuration; what a finding explains is no finding of its own here


class SilenceFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    silence: list[FleetSilence] = []


class _Finding(NamedTuple):
    """A finding of a node's newest report."""

    node: str
    rule: str
    severity: str
    subject: str
    fingerprint: str
    label: str | None


class Silences:
    """Entries that are in force on a day. Raises BadHostlist."""

    def __init__(self, entries: Iterable[FleetSilence], day: datetime.date) -> None:
        self._by_rule: dict[str, list[tuple[frozenset[str] | None, FleetSilence]]] = {}
        self.ended = 0
        for entry in entries:
            nodes = frozenset(unfold(entry.node)) if entry.node is not None else None
            if entry.until is not None and entry.until < day:
                self.ended += 1
                continue
            self._by_rule.setdefault(entry.rule, []).append((nodes, entry))

    @property
    def rules(self) -> list[str]:
        """The rules of all entries."""
        return sorted(self._by_rule)

    def find(self, finding: Episode | _Finding) -> FleetSilence | None:
        """The first entry for a finding."""
        for nodes, entry in self._by_rule.get(finding.rule, ()):
            if (nodes is None or finding.node in nodes) and (entry.device is None or entry.device in _names(finding)):
                return entry
        return None


NONE = Silences((), datetime.date.min)


def _names(finding: Episode | _Finding) -> set[str | None]:
    """By what an entry can name the device of a finding."""
    _, _, rest = finding.subject.partition(":")
    return {finding.subject, rest or finding.subject, rest.partition("/")[0], finding.label, finding.fingerprint} - {""}


def silence(tables: Tables, silences: Silences) -> Tables:
    """The same tables, in which findings of these entries are as if their nodes' operators had silenced them."""
    rows = []
    for row in tables.whole.fetch_by_keys(_OF_RULES, [(rule,) for rule in silences.rules]):
        finding = _Finding(*row)
        entry = silences.find(finding)
        if entry is not None:
            reason = f"{entry.reason} ({entry.ticket})" if entry.ticket else entry.reason
            until = entry.until.isoformat() if entry.until else None
            rows.append((finding.node, finding.rule, finding.subject, finding.fingerprint, reason, until))
    return Silenced(tables, Relation(SILENCES, _KNOWN, rows)) if rows else tables
