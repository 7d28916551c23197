"""The scene of a dataset: columns of nodes, the questions' answers, what could not be known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from agent.fleet.cluster.from_dataset import Wiring
from agent.fleet.engines.engine import Tables
from agent.fleet.lossless.answer import LosslessAnswer
from agent.fleet.page import answers, reading
from agent.fleet.page.findings import join_outliers
from agent.fleet.page.from_dataset import DatasetFacts, PageOptions, format_stamp, read_dataset
from agent.fleet.page.hops import build_hops
from agent.fleet.page.scene import Coverage, FleetScene, Section
from agent.fleet.page.versions import find_skew
from agent.fleet.questions import drift, duplicates, findings, outliers, summary
from agent.fleet.questions.options import subtract_time
from agent.fleet.text.summary import describe_coverage, describe_lost_gpus
from agent.outputs.names import begin_sentence
from agent.version import VERSION

WEEK = timedelta(days=7)


def build_scene(
    tables: Tables,
    find_wiring: Callable[[], Wiring],
    page_options: PageOptions,
    now: datetime,
    *,
    title: str = "Fleet",
    quarantined: int | None = 0,
    lossless: LosslessAnswer | None = None,
) -> FleetScene:
    """Of the nodes in the tables, and of the hops between them. Raises EngineRefused, BadPattern."""
    facts = read_dataset(tables, page_options, find_wiring)
    hops = build_hops(lossless, answers.NodeIndex(facts.nodes)) if lossless is not None else None
    answer = summary.build_summary(tables, page_options.options)
    return FleetScene(
        title=title,
        made=f"{now:%Y-%m-%d %H:%M} UTC",
        version=VERSION,
        newest=format_stamp(facts.newest),
        stale_after_hours=round(page_options.stale_after_seconds / 3600, 2),
        nodes=facts.nodes,
        sections=[*_build_sections(tables, facts, page_options), *([hops.section] if hops else [])],
        hops=hops,
        skew=find_skew(facts.nodes),
        coverage=[_make_coverage(rule) for rule in answer.coverage],
        coverage_words=describe_coverage(answer),
        notes=[*([f"{begin_sentence(describe_lost_gpus(answer))}."] if answer.lost_gpus else []), *_list_notes(facts)],
        quarantined=quarantined,
    )


def _make_coverage(rule: summary.RuleCoverage) -> Coverage:
    return Coverage(
        rule=rule.rule, passed=rule.passed, failed=rule.failed, unknown=rule.unknown, stale=rule.stale,
        not_applicable=rule.not_applicable + rule.disabled, missing=rule.missing, reasons=rule.reasons,
    )  # fmt: skip


def _build_sections(tables: Tables, facts: DatasetFacts, page_options: PageOptions) -> list[Section]:
    options = page_options.options
    numbers = answers.NodeIndex(facts.nodes)
    items = list(
        join_outliers(
            answers.build_findings(findings.find_findings(tables, options), numbers),
            answers.build_outliers(outliers.find_outliers(tables, options), numbers),
        )
    )
    quiet = answers.list_silenced(numbers)
    items[1:1] = [quiet] if quiet else []
    if facts.wires.answer is not None:
        items.append(answers.build_cluster(facts.wires.answer, numbers, page_options.part))
    start = page_options.since or _find_since(reading.read_first_reports(tables), facts.newest)
    if start is not None:
        items.append(
            answers.build_drift(drift.find_drift(tables, start), numbers, requested=page_options.since is not None)
        )
    items.append(answers.build_duplicates(duplicates.find_duplicates(tables, options), numbers))
    return items


def _find_since(firsts: list[datetime], newest: datetime | None) -> datetime | None:
    """A week back; where most nodes were not known then, when the last of them came to be known."""
    if newest is None:
        return None
    start = subtract_time(newest, WEEK)
    young = sum(first > start for first in firsts) * 2 > len(firsts)
    return max(firsts) if young else start


def _list_notes(facts: DatasetFacts) -> list[str]:
    notes = list(facts.wires.answer.notes) if facts.wires.answer else []
    alone = sum(code < 0 for code in facts.nodes.classes.codes)
    who = "1 node is" if alone == 1 else f"{alone:,} nodes are"
    notes += [f"{who} of no known hardware class: compared with none"] if alone else []
    return notes
