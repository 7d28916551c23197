"""The fleet at a glance: verdicts, what could not be judged, silent and worst nodes; and nodes that had more GPUs some
days ago, and whose own report has no finding about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, Row, lookup, query
from agent.fleet.hostlist import fold
from agent.fleet.questions.baseline import sum_by_key
from agent.fleet.questions.kinds import KINDS, DigestGroups, Kind
from agent.fleet.questions.options import (
    NODE_STATES,
    ORDINARY,
    Options,
    find_stale_cut,
    find_state,
    format_stamp,
    is_silent,
    read_dataset_time,
    subtract_time,
)
from agent.fleet.table import INT, TEXT
from agent.model.finding import SEVERITIES, VERDICTS, rank_gravity
from agent.model.labels import group_by_key

LOST = query("summary", "lost_gpus")
LOST_SINCE = timedelta(days=7)
REASONS = 3  # of a rule that could not be judged
WORST = 10
_NO_CLASS, _NO_REASON = "(not known)", "no reason reported"
HOURS, BAD = query("summary", "hours"), query("summary", "nodes_with_findings")
STATES = query("summary", "rule_states")
STATES_OF_KINDS = lookup({"node": TEXT, "nodes": INT}, "summary", "rule_states_of_kinds")
OLD = lookup({"hour": INT}, "summary", "nodes_of_hours")
FINDINGS = lookup({"node": TEXT}, "summary", "findings_of_nodes")
OLD_STATES = lookup({"node": TEXT}, "summary", "rule_states_of_nodes")


class LostGpus(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose report by itself has nothing wrong, and that had more GPUs in a report of the last week."""

    node: str
    before: int
    now: int
    since: str  # of the first report with fewer
    hardware_class: str | None = None
    verdict: str = "ok"  # of its report
    stale: bool = False
    state: str = "error"  # what it counts as: "unknown" in a virtual machine, whose devices the hypervisor takes


def list_lost_gpus(lost: Pending, newest: datetime, cut: datetime | None = None) -> list[LostGpus]:
    """Those of the last week: what is longer ago is how the node is now. Stale are those that arrived before `cut`."""
    start = subtract_time(newest, LOST_SINCE)
    rows = sorted((row for row in lost() if row[3] >= start), key=lambda row: (row[2] - row[1], row[0]))
    return [
        LostGpus(
            node=node,
            before=before,
            now=now,
            since=format_stamp(at),
            hardware_class=name,
            verdict=verdict,
            state="unknown" if virtual else "error",
            stale=cut is not None and received < cut,
        )
        for node, before, now, at, name, verdict, virtual, received in rows
    ]


def describe_lost_node(lost: LostGpus) -> str:
    """In place of a finding."""
    return f"had {lost.before} GPUs, now {lost.now}"


class ClassLine(msgspec.Struct, frozen=True, kw_only=True):
    """One hardware class. `verdicts`: nodes by state, each in one; `stale`: those without a recent report."""

    hardware_class: str
    nodes: int
    verdicts: dict[str, int] = {}
    stale: int = 0


class RuleCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How one rule was judged, in nodes that are not stale. `missing`: nodes whose report does not have the rule."""

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
    findings: list[str] = []  # above info, worst first, one for each rule: "roce-pfc-off mlx5_0/1 and 15 more"


class FleetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet summary`. Times are RFC 3339, UTC."""

    nodes: int
    newest: str | None = None  # arrival, of the dataset, also where some nodes only are asked about
    oldest: str | None = None
    stale_after_seconds: float
    silent: bool = False  # no report of any node arrived for longer than that: staleness is against the newest
    verdicts: dict[str, int] = {}  # by state, each node once: "stale" is one where nothing was wrong when last seen
    stale: int = 0  # all nodes without a recent report, bad ones among them
    stale_hosts: str = ""
    lost_gpus: list[LostGpus] = []
    classes: list[ClassLine] = []
    coverage: list[RuleCoverage] = []
    worst: list[Worst] = []
    more_worst: int = 0  # nodes with findings from warning on that `worst` does not name


def build_summary(tables: Tables, options: Options = ORDINARY) -> FleetSummary:
    """Verdicts by class, coverage by rule, the worst nodes."""
    begun, alike, bad, lost = (tables.submit(query) for query in (HOURS, KINDS, BAD, LOST))
    hours = begun()
    if not hours:
        return FleetSummary(nodes=0, stale_after_seconds=options.stale_after_seconds)
    seen = max(row[-2] for row in hours)
    newest = read_dataset_time(tables, seen) or seen
    oldest = min(row[-1] for row in hours)
    cut = find_stale_cut(newest, options)
    old = list(dict.fromkeys((row[2],) for row in hours if row[-1] < cut))
    stale = [row[:3] for row in tables.fetch_by_keys(OLD, old) if row[-1] < cut]
    lost_gpus = list_lost_gpus(lost, newest, cut)
    classes, worst = _list_classes(hours, stale, lost_gpus), _list_worst(bad, cut, lost_gpus)
    more_worst = max(0, len(worst) - WORST)
    worst = _add_findings(tables, worst[:WORST])
    return FleetSummary(
        nodes=sum(hardware_class.nodes for hardware_class in classes),
        newest=format_stamp(newest),
        oldest=format_stamp(oldest),
        stale_after_seconds=options.stale_after_seconds,
        silent=is_silent(newest, options),
        verdicts=_sum(hardware_class.verdicts for hardware_class in classes),
        stale=len(stale),
        stale_hosts=fold(node for node, _, _ in stale),
        lost_gpus=lost_gpus,
        classes=classes,
        coverage=_list_coverage(
            _states(tables, DigestGroups(tables, alike).of("check")),
            tables.fetch_by_keys(OLD_STATES, [(node,) for node, _, _ in stale]),
            sum(hardware_class.nodes - hardware_class.stale for hardware_class in classes),
        ),
        worst=worst,
        more_worst=more_worst,
    )


def _list_classes(hours: list[Row], stale: list[Row], lost_gpus: Iterable[LostGpus]) -> list[ClassLine]:
    """`hours`: class, verdict, hour, nodes, .. `stale`: node, class, verdict."""
    counts_of: dict[str, Counter[str]] = {}
    for name, verdict, _, count, *_ in hours:
        counts_of.setdefault(name or _NO_CLASS, Counter())[find_state(verdict, stale=False)] += count
    for _, name, verdict in stale:
        counts = counts_of.setdefault(name or _NO_CLASS, Counter())
        counts[find_state(verdict, stale=False)] -= 1
        counts[find_state(verdict, stale=True)] += 1
    for lost in lost_gpus:
        counts = counts_of[lost.hardware_class or _NO_CLASS]
        counts[find_state(lost.verdict, lost.stale)] -= 1
        counts[find_state(lost.verdict, lost.stale, lost.state)] += 1
    late = Counter(name or _NO_CLASS for _, name, _ in stale)
    lines = [
        ClassLine(
            hardware_class=name,
            nodes=sum(counts.values()),
            verdicts={state: counts[state] for state in NODE_STATES if counts[state] > 0},
            stale=late[name],
        )
        for name, counts in counts_of.items()
    ]
    return sorted(lines, key=lambda line: (-line.nodes, line.hardware_class))


def _list_coverage(states: list[Row], late: list[Row], nodes: int) -> list[RuleCoverage]:
    """Rows: rule, state, reason, nodes. `late`: those of nodes that are stale, of which none is judged now.

    `nodes`: how many are not stale.
    """
    now, old, reasons = _sum_by_state(states), _sum_by_state(late), _sum_reasons(states)
    for rule, reason in _sum_reasons(late).items():
        reasons[rule] = {why: count - reason.get(why, 0) for why, count in reasons.get(rule, {}).items()}
    rule_coverage = []
    for rule, now_counts in now.items():
        late_here = old.get(rule, {})
        fresh = {state: count - late_here.get(state, 0) for state, count in now_counts.items()}
        rule_coverage.append(
            RuleCoverage(
                rule=rule,
                passed=fresh.get("pass", 0),
                failed=fresh.get("fail", 0),
                unknown=fresh.get("unknown", 0),
                not_applicable=fresh.get("not_applicable", 0),
                disabled=fresh.get("disabled", 0),
                stale=sum(late_here.values()),
                missing=max(0, nodes - sum(fresh.values())),  # earlier versions took a rule twice
                reasons=_select_frequent(reasons.get(rule, {})),
            )
        )
    return sorted(rule_coverage, key=lambda coverage: (-coverage.unknown, -coverage.missing, coverage.rule))


def _select_frequent(reasons: dict[str, int]) -> list[tuple[str, int]]:
    frequent = [(reason, count) for reason, count in reasons.items() if count]
    return sorted(frequent, key=lambda row: (-row[1], row[0]))[:REASONS]


def _states(tables: Tables, kinds: Collection[Kind] | None) -> list[Row]:
    """How each rule ended, why, and on how many nodes."""
    if kinds is None:
        return tables.rows(STATES)
    return tables.fetch_by_keys(STATES_OF_KINDS, [(kind.node, kind.nodes) for kind in kinds])


def _sum_by_state(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    return sum_by_key((rule, state, count) for rule, state, _, count in rows)


def _sum_reasons(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Why rules are unknown."""
    return sum_by_key((rule, reason or _NO_REASON, count) for rule, state, reason, count in rows if state == "unknown")


def _list_worst(bad: Pending, cut: datetime, lost_gpus: Iterable[LostGpus]) -> list[Worst]:
    worst = [
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
    worst += [
        Worst(
            node=lost.node,
            hardware_class=lost.hardware_class,
            verdict=lost.state,
            critical=0,
            error=0,
            warning=0,
            stale=lost.stale,
            findings=[describe_lost_node(lost)],
        )
        for lost in lost_gpus
        if lost.state in SEVERITIES
    ]
    return sorted(worst, key=lambda w: (VERDICTS.index(w.verdict), -w.critical, -w.error, -w.warning, w.node))


def _add_findings(tables: Tables, worst: list[Worst]) -> list[Worst]:
    """What is wrong with each of these nodes."""
    found = tables.fetch_by_keys(FINDINGS, [(node.node,) for node in worst])
    rows_of = group_by_key((name, tuple(row)) for name, *row in found)
    return [
        msgspec.structs.replace(node, findings=_describe_findings(rows_of.get(node.node, [])) or node.findings)
        for node in worst
    ]


def _describe_findings(rows: Iterable[Row]) -> list[str]:
    """`rows`: severity, subject, percent that it costs, rule, label."""
    loud = [row for row in rows if row[0] in SEVERITIES[1:]]
    loud.sort(key=lambda row: (rank_gravity(*row[:3]), row[3], row[4] or ""))
    labels_of = group_by_key((rule, label or "node") for *_, rule, label in loud)
    texts = []
    for rule, labels in labels_of.items():
        place = "" if labels[0] == "node" else f" {labels[0]}"
        texts.append(rule + place + (f" and {len(labels) - 1} more" if len(labels) > 1 else ""))
    return texts


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    totals: Counter[str] = sum(map(Counter, counts), Counter())
    return {verdict: totals[verdict] for verdict in NODE_STATES if totals[verdict]}
