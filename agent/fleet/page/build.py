"""The scene of a dataset: columns of nodes, the questions' answers, what could not be known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from agent.fleet.cluster.from_dataset import Wiring
from agent.fleet.engines.engine import Tables
from agent.fleet.page import answers, reading
from agent.fleet.page.class_names import display_names
from agent.fleet.page.findings import join_outliers
from agent.fleet.page.from_dataset import DatasetFacts, Wish, known, stamp
from agent.fleet.page.scene import Coverage, FleetScene, Nodes, Section
from agent.fleet.page.versions import skew
from agent.fleet.questions import drift, duplicates, findings, outliers, summary
from agent.fleet.questions.options import earlier
from agent.fleet.text.summary import describe_coverage
from agent.version import VERSION

WEEK = timedelta(days=7)


def scene(
    tables: Tables,
    find_wiring: Callable[[], Wiring],
    wish: Wish,
    made: datetime,
    *,
    title: str = "Fleet",
    quarantined: int | None = 0,
) -> FleetScene:
    """Of the nodes in the tables. Raises EngineRefused, BadPattern."""
    told = known(tables, wish, find_wiring)
    names = display_names(tables, told.nodes.classes.labels)
    nodes = _rename_classes(told.nodes, names)
    answer = summary.summary(tables, wish.options)
    return FleetScene(
        title=title,
        made=f"{made:%Y-%m-%d %H:%M} UTC",
        version=VERSION,
        newest=stamp(told.newest),
        stale_after_hours=round(wish.stale_after_seconds / 3600, 2),
        nodes=nodes,
        sections=_sections(tables, told, wish, names),
        skew=skew(nodes),
        coverage=[_covered(rule) for rule in answer.coverage],
        coverage_words=describe_coverage(answer),
        notes=_notes(told),
        quarantined=quarantined,
    )


def _rename_classes(nodes: Nodes, names: dict[str, str]) -> Nodes:
    labels = [names[label] for label in nodes.classes.labels]
    return msgspec.structs.replace(nodes, classes=msgspec.structs.replace(nodes.classes, labels=labels))


def _covered(rule: summary.RuleCoverage) -> Coverage:
    return Coverage(
        rule=rule.rule, passed=rule.passed, failed=rule.failed, unknown=rule.unknown, stale=rule.stale,
        not_applicable=rule.not_applicable + rule.disabled, missing=rule.missing, reasons=rule.reasons,
    )  # fmt: skip


def _sections(tables: Tables, told: DatasetFacts, wish: Wish, names: dict[str, str]) -> list[Section]:
    options = wish.options
    numbers = answers.Numbers(told.nodes, names)
    found = list(
        join_outliers(
            answers.findings(findings.findings(tables, options), numbers),
            answers.outliers(outliers.outliers(tables, options), numbers),
        )
    )
    if told.wires.answer is not None:
        found.append(answers.cluster(told.wires.answer, numbers, wish.part))
    start = wish.since or _since(reading.first_looks(tables), told.newest)
    if start is not None:
        found.append(answers.drift(drift.drift(tables, start, options), numbers))
    found.append(answers.duplicates(duplicates.duplicates(tables, options), numbers))
    return found


def _since(firsts: list[datetime], newest: datetime | None) -> datetime | None:
    """A week back; where most nodes were not known then, when the last of them came to be known."""
    if newest is None:
        return None
    start = earlier(newest, WEEK)
    young = sum(first > start for first in firsts) * 2 > len(firsts)
    return max(firsts) if young else start


def _notes(told: DatasetFacts) -> list[str]:
    notes = list(told.wires.answer.notes) if told.wires.answer else []
    alone = sum(code < 0 for code in told.nodes.classes.codes)
    who = "1 node is" if alone == 1 else f"{alone:,} nodes are"
    notes += [f"{who} of no known hardware class: compared with none"] if alone else []
    return notes
