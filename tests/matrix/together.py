"""Two causes on one machine: what each changes of a report is laid over the healthy one, and judged.

Each cause is scanned by itself (`test_matrix.py`); the facts of both are merged as data, so that a pair costs one
judgement. Two that change the same fact to different values cannot be on one machine and are not laid together.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.history.context import build_context
from agent.history.state import add_history, update_state
from agent.model.finding import SEVERITIES
from agent.model.report import Report
from agent.platforms.profiles import choose_profile
from agent.rules.catalogue import rules_for
from agent.rules.consequences import RootFinding, find_standing
from agent.rules.engine import evaluate
from fixtures.loader import merge_tables
from tests.machines import machine
from tests.matrix.cases import CONSEQUENCES, Cause, causes, filled, overlaid, pairs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FACTS = ("node", "platform", "software", "probes", "events", "topology", "counters_window", "history")
_KEYS = (("id",), ("name",), ("a", "b"), ("subject",), ("port",), ("link",), ("key", "source"))
_GONE: Any = object()


class Collision(Exception):
    """Both causes change one fact, and differ."""


class Missing(NamedTuple):
    """What a cause is found by alone, and not together with the other."""

    rule: str
    severity: str
    subject: str
    beside: tuple[str, ...]  # rules of what stands on the same device or on the node


class Laid(NamedTuple):
    """Two causes on a machine, and what became of what each is found by."""

    named: int
    explained: frozenset[tuple[str, str]]  # rule of the finding that stands, rule that it explains
    missing: tuple[Missing, ...]
    rules: frozenset[str]  # of what stands above info


def seen(cause: Cause, shape: str) -> Report:
    """The report of a machine that has this cause, with what a run on it as it was earlier knows."""
    plan = ScanPlan(configuration=msgspec.convert(cause.config, Configuration))
    if cause.earlier is None:
        return diagnose(overlaid(shape, cause.overlay), plan)[0]
    was, _ = diagnose(overlaid(shape, cause.earlier), plan)
    later = {"system": {"uptime_seconds": round(was.node.uptime_seconds or 0) + cause.seconds}}
    now, _ = diagnose(overlaid(shape, merge_tables(later, cause.overlay)), plan)
    return evaluate_report(add_history(update_state(None, was), now), plan.configuration)


def together(shape: str) -> Iterator[tuple[str, str]]:
    """Every two causes of a machine."""
    return itertools.combinations([name for name, where in pairs() if where == shape], 2)


def lay(shape: str, *names: str) -> Laid:
    """All at once. Raises Collision."""
    wanted = [tuple(result) for name in names for result in filled(causes()[name].finds, shape)]
    return compare(judge_all(*laid_over(shape, *names)), wanted)


def laid_over(shape: str, *names: str) -> tuple[Report, Configuration]:
    """A machine with all these causes, not judged, and what the operator has set. Raises Collision."""
    base = facts = _healthy(shape)
    config: dict[str, Any] = {}
    for name in names:
        facts = merge(base, facts, _facts(shape, name), "")
        config = merge({}, config, causes()[name].config, "config")
    report = msgspec.convert({**_frame(shape), **facts}, Report)
    return report, msgspec.convert(config, Configuration)


def judge_all(report: Report, configuration: Configuration) -> Sequence[RootFinding]:
    """What stands of a report, with the profile of its platform as in a scan."""
    chosen = choose_profile("auto", report.platform)
    context = build_context(report, configuration.settings, chosen.platform, chosen.profile)
    return find_standing(evaluate(context, rules_for(context))[1])


def merge(base: Any, one: Any, other: Any, where: str) -> Any:
    """A value that two causes change: the change of either, or of both where they are of different parts."""
    if one is other or one == other or other == base:
        return one
    if one == base:
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        return _merge_tables(base if isinstance(base, dict) else {}, one, other, where)
    if isinstance(one, list) and isinstance(other, list):
        return _merge_lists(base if isinstance(base, list) else [], one, other, where)
    raise Collision(where)


def _merge_tables(base: dict[Any, Any], one: dict[Any, Any], other: dict[Any, Any], where: str) -> dict[Any, Any]:
    merged = {}
    for key in dict.fromkeys((*base, *one, *other)):
        values = (table.get(key, _GONE) for table in (base, one, other))
        value = merge(*values, f"{where}.{key}")
        if value is not _GONE:
            merged[key] = value
    return merged


def _merge_lists(base: list[Any], one: list[Any], other: list[Any], where: str) -> list[Any]:
    if one[: len(base)] == base == other[: len(base)]:  # both only add to it
        return [*one, *(row for row in other[len(base) :] if row not in one)]
    for keys in _KEYS:
        tables = [_by_keys(rows, keys) for rows in (base, one, other)]
        if all(table is not None for table in tables):
            return list(_merge_tables(*tables, where).values())  # type: ignore[arg-type]  # none is None
    raise Collision(where)


def _by_keys(rows: list[Any], keys: tuple[str, ...]) -> dict[Any, Any] | None:
    if not all(isinstance(row, dict) and all(row.get(key) is not None for key in keys) for row in rows):
        return None
    table = {tuple(row[key] for key in keys): row for row in rows}
    return table if len(table) == len(rows) else None


@cache
def _healthy(shape: str) -> dict[str, Any]:
    return _only_facts(diagnose(machine(shape), ScanPlan())[0])


@cache
def _frame(shape: str) -> dict[str, Any]:
    """The rest of the report of the healthy machine: when, from where; no judgement."""
    return {**msgspec.to_builtins(diagnose(machine(shape), ScanPlan())[0]), "findings": [], "checks": []}


@cache
def _alone(shape: str, name: str) -> Report:
    return seen(causes()[name], shape)


@cache
def _facts(shape: str, name: str) -> dict[str, Any]:
    return _only_facts(_alone(shape, name))


def _only_facts(report: Report) -> dict[str, Any]:
    plain = msgspec.to_builtins(report)
    plain["probes"] = [{**run, "duration_seconds": 0.0} for run in plain["probes"]]
    return {name: plain[name] for name in FACTS}


def compare(rows: Sequence[RootFinding], wanted: Sequence[tuple[str, str, str]]) -> Laid:
    """What became of each finding that is wanted, (rule, severity, subject), among what stands."""
    named, explained, missing = 0, set(), []
    for rule, severity, subject in dict.fromkeys(wanted):
        own = [row for row in rows if row.rule.name == rule]
        ids = {subject, "node"}
        if any(row.fault.subject in ids or subject == "node" for row in own if _is_as_severe(row, severity)):
            named += 1
        elif cause := _find_cause(rows, rule, severity, subject):
            explained.add((cause, rule))
        else:
            missing.append(Missing(rule, severity, subject, _beside(rows, subject)))
    above_info = frozenset(row.rule.name for row in rows if row.severity != "info")
    return Laid(named, frozenset(explained), tuple(missing), above_info)


def _beside(rows: Sequence[RootFinding], subject: str) -> tuple[str, ...]:
    """Rules of what stands on a device, and of what stands on all of them."""
    device = subject.partition(":")[2].partition("/")[0]
    return tuple(
        row.rule.name
        for row in rows
        if subject == "node"
        or row.fault.subject == "node"
        or any(place.partition("/")[0] == device for place in row.fault.ids)
    )


def _find_cause(rows: Sequence[RootFinding], rule: str, severity: str, subject: str) -> str | None:
    """The rule of what stands and explains a finding of this rule on this subject, or on all of its kind."""
    lines = {f"{rule} {subject}", f"{rule} node"}
    return next((row.rule.name for row in rows if lines & {*row.absorbs} and _is_as_severe(row, severity)), None)


def _is_as_severe(row: RootFinding, severity: str) -> bool:
    return SEVERITIES.index(row.severity) >= SEVERITIES.index(severity)


def find_reason(missing: Missing, names: Sequence[str]) -> dict[str, Any] | None:
    """The row of consequences.toml that says why one of these causes takes a finding of another away."""
    there = {*missing.beside, *names}
    rows = read_listed()["rows"]
    return next((row for row in rows if missing.rule in row["hidden"] and not there.isdisjoint(row["beside"])), None)


@cache
def read_listed() -> dict[str, list[dict[str, Any]]]:
    """What consequences.toml lists."""
    return tomllib.loads(Path(__file__).with_name(CONSEQUENCES).read_text())
