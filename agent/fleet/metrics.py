"""The fleet for Prometheus: a file for node_exporter's textfile collector, by the contract of export prometheus.

Series are bounded: by hardware classes, verdicts, rules and severities, never by nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from agent.fleet.engines.engine import Tables
from agent.fleet.episodes.finding_changes import ALARMING, News, news_since
from agent.fleet.episodes.silences import NONE, Silences
from agent.fleet.questions.findings import Findings, find_findings
from agent.fleet.questions.options import NODE_STATES, Options, subtract_time
from agent.fleet.questions.summary import FleetSummary, build_summary
from agent.model.finding import SEVERITIES
from agent.outputs.export.prometheus import Metric, Sample, format_family
from agent.version import VERSION

CLASSES_LIMIT, RULES_LIMIT = 64, 256  # the largest classes, and the most severe rules; the rest is summed up
OTHERS = "others"
WINDOW = timedelta(hours=24)


def metrics(tables: Tables, options: Options, quarantined: int | None = None, silences: Silences = NONE) -> str:
    """The metrics file. `silences`: of news; those of `tables` are silenced already. Raises EngineRefused."""
    now = options.now or datetime.now(timezone.utc).replace(tzinfo=None)
    answer, finding_answer = build_summary(tables, options), find_findings(tables, options)
    news = news_since(tables, subtract_time(now, WINDOW), options, least="info", silences=silences)
    families = [
        *_node_families(answer),
        *_finding_families(finding_answer),
        *_news_families(news),
        *_own_families(answer, quarantined),
    ]
    return "".join(line for family in families for line in format_family(family))


def _node_families(answer: FleetSummary) -> Iterator[Metric]:
    nodes: Counter[tuple[str, str]] = Counter()
    stale: Counter[str] = Counter()
    for place, class_line in enumerate(answer.classes):
        name = class_line.hardware_class if place < CLASSES_LIMIT else OTHERS
        stale[name] += class_line.stale
        for verdict in NODE_STATES:
            nodes[name, verdict] += class_line.verdicts.get(verdict, 0)
    yield Metric(
        "fleet_nodes",
        "Nodes by hardware class and state, each once.",
        [Sample({"hardware_class": name, "verdict": verdict}, count) for (name, verdict), count in nodes.items()],
    )
    yield Metric(
        "fleet_stale_nodes",
        "Nodes whose last report arrived too long ago, also those that were bad then.",
        [Sample({"hardware_class": name}, count) for name, count in stale.items()],
    )


def _finding_families(finding_answer: Findings) -> Iterator[Metric]:
    nodes: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for finding in finding_answer.findings:
        key = (finding.rule, finding.severity)
        if key not in nodes and len(nodes) >= RULES_LIMIT:
            key = (OTHERS, finding.severity)
        nodes[key][0] += finding.nodes
        nodes[key][1] += finding.findings
    for place, name, text in (
        (0, "fleet_finding_nodes", "Nodes with a finding of a rule."),
        (1, "fleet_findings", "Findings of a rule."),
    ):
        samples = [Sample({"rule": rule, "severity": word}, counts[place]) for (rule, word), counts in nodes.items()]
        yield Metric(name, text, samples)
    if finding_answer.lost is not None:
        lost = [Sample({}, finding_answer.lost.percent / 100)]
        yield Metric("fleet_lost_bandwidth_ratio", "Share of the inter-node bandwidth that faults cost.", lost)


def _news_families(news: News) -> Iterator[Metric]:
    counts: Counter[tuple[str, str]] = Counter(
        {(kind, word): 0 for kind in (*ALARMING, "gone") if kind != "silent" for word in SEVERITIES}
    )
    for item in news.items:
        if item.severity is not None:
            counts[item.kind, item.severity] += 1
    samples = [Sample({"kind": kind, "severity": word}, count) for (kind, word), count in counts.items()]
    yield Metric("fleet_news_24h", "Findings that are new, back, worse, flapping or gone since 24 hours.", samples)


def _own_families(answer: FleetSummary, quarantined: int | None) -> Iterator[Metric]:
    if answer.newest is not None:
        newest = datetime.fromisoformat(answer.newest.replace("Z", "+00:00")).timestamp()
        yield Metric("fleet_newest_report_timestamp_seconds", "When the newest report arrived.", [Sample({}, newest)])
    if quarantined is not None:
        yield Metric("fleet_quarantined_reports", "Reports that could not be read.", [Sample({}, quarantined)])
    yield Metric("fleet_build_info", "The version that wrote this file.", [Sample({"version": VERSION}, 1)])
