"""The fleet at a glance: verdicts, what could not be judged, who has fallen silent, who is worst."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from agent.fleet.engines.engine import Asked, Tables
from agent.fleet.hostlist import fold
from agent.fleet.questions.classes import CLASS
from agent.fleet.questions.options import ORDINARY, Options

if TYPE_CHECKING:
    from ibis.expr import types as ir

VERDICTS = ("critical", "error", "warning", "unknown", "ok")  # worst first
REASONS = 3  # of a rule that could not be judged
WORST = 10
_WORST = ["node", CLASS, "verdict", "critical", "error", "warning", "observed_at"]


class ClassLine(msgspec.Struct, frozen=True, kw_only=True):
    """One hardware class. `verdicts` counts nodes that are not stale."""

    hardware_class: str
    nodes: int
    verdicts: dict[str, int] = {}
    stale: int = 0


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How one rule was judged, in nodes. `missing`: nodes whose report does not know the rule."""

    rule: str
    passed: int = 0
    failed: int = 0
    unknown: int = 0
    not_applicable: int = 0
    disabled: int = 0
    stale: int = 0  # judged, but too long ago
    missing: int = 0
    reasons: list[tuple[str, int]] = []  # why it is unknown, the most frequent first


class Worst(msgspec.Struct, frozen=True, kw_only=True):
    """A node with findings."""

    node: str
    hardware_class: str | None
    verdict: str
    critical: int
    error: int
    warning: int
    stale: bool


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet summary`. Times are RFC 3339, UTC."""

    nodes: int
    newest: str | None = None
    oldest: str | None = None
    stale_after_seconds: float
    verdicts: dict[str, int] = {}  # of nodes that are not stale
    stale: int = 0
    stale_hosts: str = ""
    classes: list[ClassLine] = []
    coverage: list[Coverage] = []
    worst: list[Worst] = []
    more_worst: int = 0  # nodes with findings from warning on that `worst` does not name


def summary(tables: Tables, options: Options = ORDINARY) -> Summary:
    """Verdicts by class, coverage by rule, the worst nodes."""
    begun = tables.prepared("summary: times", _times)
    states, bad = tables.prepared("summary: states", _all_states), tables.prepared("summary: worst", _bad)
    ((count, newest, oldest),) = begun()
    if not count:
        return Summary(nodes=0, stale_after_seconds=options.stale_after_seconds)
    cut = newest - timedelta(seconds=options.stale_after_seconds)
    host = tables.latest("host")
    old = host.observed_at < cut
    stale = [node for (node,) in tables.rows(host.filter(old).select("node"))] if oldest < cut else []
    classes = _classes(tables, cut)
    worst = _worst(bad, cut)
    return Summary(
        nodes=count,
        newest=stamp(newest),
        oldest=stamp(oldest),
        stale_after_seconds=options.stale_after_seconds,
        verdicts=_sum(each.verdicts for each in classes),
        stale=len(stale),
        stale_hosts=fold(stale),
        classes=classes,
        coverage=_coverage(tables, states, cut, count, bool(stale)),
        worst=worst[:WORST],
        more_worst=max(0, len(worst) - WORST),
    )


def stamp(moment: datetime) -> str:
    """RFC 3339 of a UTC time that has no zone."""
    return moment.isoformat(timespec="seconds") + "Z"


def _classes(tables: Tables, cut: datetime) -> list[ClassLine]:
    host = tables.latest("host").mutate(old=lambda t: (t.observed_at < cut).ifelse(1, 0))
    found: dict[str, dict[tuple[str, bool], int]] = {}
    rows = tables.rows(host.group_by([CLASS, "verdict", "old"]).agg(nodes=host.count()))
    for name, verdict, old, count in rows:
        found.setdefault(name or "(not known)", {})[verdict or "unknown", bool(old)] = count
    lines = [
        ClassLine(
            hardware_class=name,
            nodes=sum(each.values()),
            verdicts={verdict: each[verdict, False] for verdict in VERDICTS if each.get((verdict, False))},
            stale=sum(count for (_, old), count in each.items() if old),
        )
        for name, each in found.items()
    ]
    return sorted(lines, key=lambda line: (-line.nodes, line.hardware_class))


def _coverage(tables: Tables, states: Asked, cut: datetime, nodes: int, stale: bool) -> list[Coverage]:
    host, check = tables.latest("host"), tables.latest("check")
    gone = host.filter(host.observed_at < cut).select("node")
    old = _by_rule(tables.rows(_states(check.semi_join(gone, "node")))) if stale else {}
    unknown = check.filter(check.state == "unknown")
    if stale:
        unknown = unknown.anti_join(gone, "node")
    reasons: dict[str, list[tuple[str, int]]] = {}
    for rule, reason, count in tables.rows(unknown.group_by(["rule", "reason"]).agg(nodes=unknown.count())):
        reasons.setdefault(rule, []).append((reason or "no reason told", count))
    found = []
    for rule, each in _by_rule(states()).items():
        late = old.get(rule, {})
        fresh = {state: count - late.get(state, 0) for state, count in each.items()}
        found.append(
            Coverage(
                rule=rule,
                passed=fresh.get("pass", 0),
                failed=fresh.get("fail", 0),
                unknown=fresh.get("unknown", 0),
                not_applicable=fresh.get("not_applicable", 0),
                disabled=fresh.get("disabled", 0),
                stale=sum(late.values()),
                missing=nodes - sum(each.values()),
                reasons=sorted(reasons.get(rule, []), key=lambda row: (-row[1], row[0]))[:REASONS],
            )
        )
    return sorted(found, key=lambda each: (-each.unknown, -each.missing, each.rule))


def _times(tables: Tables) -> ir.Table:
    host = tables.latest("host")
    return host.aggregate(nodes=host.count(), newest=host.observed_at.max(), oldest=host.observed_at.min())


def _all_states(tables: Tables) -> ir.Table:
    return _states(tables.latest("check"))


def _bad(tables: Tables) -> ir.Table:
    host = tables.latest("host")
    return host.filter(host.verdict.isin(["critical", "error", "warning"])).select(_WORST)


def _states(check: ir.Table) -> ir.Table:
    return check.group_by(["rule", "state"]).agg(nodes=check.count())


def _by_rule(rows: Iterable[tuple[Any, ...]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for rule, state, count in rows:
        found.setdefault(rule, {})[state] = count
    return found


def _worst(bad: Asked, cut: datetime) -> list[Worst]:
    found = [
        Worst(
            node=node,
            hardware_class=name,
            verdict=verdict,
            critical=critical or 0,
            error=error or 0,
            warning=warning or 0,
            stale=seen < cut,
        )
        for node, name, verdict, critical, error, warning, seen in bad()
    ]
    return sorted(found, key=lambda w: (VERDICTS.index(w.verdict), -w.critical, -w.error, -w.warning, w.node))


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    found = dict.fromkeys(VERDICTS, 0)
    for each in counts:
        for verdict, count in each.items():
            found[verdict] = found.get(verdict, 0) + count
    return {verdict: count for verdict, count in found.items() if count}
