"""What a node's operator silenced counts in no answer; the page shows it, in grey."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from agent.fleet.cluster.from_dataset import build_from_reports, read_wiring
from agent.fleet.dataset import open_dataset
from agent.fleet.engines import connect
from agent.fleet.engines.engine import Tables, Where, narrow
from agent.fleet.engines.query import query, table_query
from agent.fleet.episodes.finding_changes import news_since
from agent.fleet.episodes.repeat import repeats
from agent.fleet.episodes.silences import NONE, FleetSilence, Silences, silence
from agent.fleet.page.from_dataset import PageOptions, build_scene
from agent.fleet.page.scene import FleetScene, pack_scene, sort_worst_first
from agent.fleet.questions.drift import find_drift
from agent.fleet.questions.findings import find_findings
from agent.fleet.questions.options import Options
from tests.agent.fleet.small import asked, finding, node, take

HALF_PAST = datetime(2026, 1, 15, 8, 30)  # noqa: DTZ001  # UTC without a zone is what is asked for
TEN = datetime(2026, 1, 15, 10)  # noqa: DTZ001
COST = {"collective": "allreduce", "nodes": 4, "gbyte_s": 10.0, "percent": 20.0}
OPEN = finding("bad-link", severity="error") | {"cost": COST}
SILENCED = OPEN | {"silenced": {"until": "2026-02-01", "reason": "ticket <7>"}}
QUESTIONS: dict[str, Callable[[Tables], Any]] = {
    "findings": find_findings,
    "news": lambda tables: news_since(tables, HALF_PAST, Options(now=TEN)),
    "repeat": lambda tables: repeats(tables, HALF_PAST, TEN, times=1),
    "drift": lambda tables: find_drift(tables, HALF_PAST),
    "job: faults": lambda tables: sorted(tables.rows(query("job", "faults"))),
    "job: costs": lambda tables: sorted(tables.rows(query("job", "costs"))),
    "nodes to drain": lambda tables: sorted(tables.rows(query("episodes", "severe_findings"))),
}


def fleet(*of_last: dict[str, Any]) -> list[bytes]:
    """Five nodes, of which the first has a finding that counts, and the last others, since the second report."""
    result = [[OPEN], [], [], [], list(of_last)]
    summary = [{"verdict": "error", "counts": {"error": 1}}, *[{"verdict": "ok", "counts": {}}] * 4]
    earlier = [node(f"n{n}") for n in range(5)]
    return [*earlier, *(node(f"n{n}", 1, findings=result[n], summary=summary[n]) for n in range(5))]


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_counts_it(question: str, tmp_path: Path) -> None:
    answers = []
    for place, result in (("without", ()), ("silenced", (SILENCED,)), ("open", (OPEN,))):
        (tmp_path / place).mkdir()
        with asked(tmp_path / place, *fleet(*result)) as tables:
            answers.append(QUESTIONS[question](tables))
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]


def test_what_is_silenced_and_what_counts_again_came_and_went(tmp_path: Path) -> None:
    with asked(tmp_path, node("a", findings=[OPEN]), node("b", findings=[SILENCED]),
               node("a", 1, findings=[SILENCED]), node("b", 1, findings=[OPEN])) as tables:  # fmt: skip
        changes = find_drift(tables, HALF_PAST).changes
        news = news_since(tables, HALF_PAST, Options(now=TEN)).items
    assert [(change.hosts, change.subject, change.what) for change in changes] == [
        ("a", "finding", "gone"), ("b", "finding", "new"),
    ]  # fmt: skip
    assert [(new.node, new.kind) for new in news] == [("b", "new"), ("a", "gone")]


HERE = Silences([FleetSilence(rule="bad-link", node="n[4-9]", reason="ticket <7>", until=date(2026, 2, 1))], date.min)
OF_THE_NEWEST = ("findings", "job: faults", "job: costs", "nodes to drain")  # the others look into the history


@pytest.mark.parametrize("question", OF_THE_NEWEST)
@pytest.mark.parametrize("nodes", [(), ("n0", "n4")])
def test_the_same_of_what_the_operator_of_the_fleet_silenced(
    question: str, nodes: tuple[str, ...], tmp_path: Path
) -> None:
    """Also of some nodes."""
    answers = []
    for place, found, silences in (("by the node", SILENCED, NONE), ("here", OPEN, HERE), ("open", OPEN, NONE)):
        (tmp_path / place).mkdir()
        with asked(tmp_path / place, *fleet(found)) as tables:
            answers.append(QUESTIONS[question](silence(narrow(tables, Where(nodes=nodes)), silences)))
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]


@pytest.mark.parametrize(
    ("entry", "silenced"),
    [
        ({}, ["n0", "n4"]),
        ({"node": "n4"}, ["n4"]),
        ({"node": "n4", "device": "GPU0"}, ["n4"]),
        ({"device": "GPU1"}, []),
        ({"rule": "other"}, []),
        ({"until": date(2026, 1, 14)}, []),
        ({"until": date(2026, 1, 15)}, ["n0", "n4"]),
    ],
)
def test_what_an_entry_is_for(entry: dict[str, Any], silenced: list[str], tmp_path: Path) -> None:
    silences = Silences([FleetSilence(**{"rule": "bad-link", "reason": "r"} | entry)], date(2026, 1, 15))
    with asked(tmp_path, *fleet(OPEN)) as tables:
        rows = silence(tables, silences).rows(table_query("finding", ("node", "silenced")))
    assert sorted(node for node, is_silenced in rows if is_silenced) == silenced


def test_what_a_node_silenced_keeps_its_own_reason(tmp_path: Path) -> None:
    with asked(tmp_path, *fleet(SILENCED)) as tables:
        rows = silence(tables, Silences([FleetSilence(rule="bad-link", reason="here")], date.min)).rows(
            table_query("finding", ("node", "silenced_reason", "silenced_until"))
        )
    assert sorted(rows) == [("n0", "here", None), ("n4", "ticket <7>", "2026-02-01")]


def shown(tables: Tables) -> FleetScene:
    """The page of a dataset."""
    return build_scene(
        tables,
        lambda: read_wiring(build_from_reports(tables)),
        PageOptions(),
        datetime(2026, 1, 16, tzinfo=timezone.utc),
    )


@pytest.mark.parametrize(("found", "device"), [(SILENCED, None), (OPEN, "GPU0")])
def test_the_page_has_it_apart_with_reason_and_day(found: dict[str, Any], device: str | None, tmp_path: Path) -> None:
    """By the node's operator, or the fleet's."""
    entry = FleetSilence(
        rule="bad-link", node="n4", device=device, reason="ticket <7>", until=date(2026, 2, 1), ticket=None
    )
    with asked(tmp_path, *fleet(found, finding("bad-link", "GPU1", "error"))) as tables:
        page = shown(silence(tables, Silences([entry] if device else [], date.min)))
    sections = {section.anchor: section.said for section in page.sections}
    why = "silenced until 2026-02-01: ticket <7>"
    assert [(item.about, item.nodes, item.more, item.quiet) for item in sections["silenced"]] == [
        ("bad-link", [4], [("why", why)], True)
    ]
    assert [(item.about, item.nodes, item.quiet) for item in sections["findings"]] == [("bad-link", [0, 4], False)]
    result = [(node.label, node.silenced) for node in page.nodes.found]
    assert sorted(result, key=str) == [("GPU0", why), ("GPU0", None), ("GPU1", None)]
    data = pack_scene(page)
    assert sorted(len(item) for item in data["found"]) == [8, 8, 9]
    assert [data["texts"][item[8]] for item in data["found"] if len(item) > 8] == [why]


def test_a_node_with_nothing_else_is_not_among_the_worst(tmp_path: Path) -> None:
    with asked(tmp_path, *fleet(SILENCED)) as tables:
        page = shown(tables)
    assert sort_worst_first(page.nodes) == [0]
    assert [rail for rails in page.nodes.rails.sets for rail in rails if rail.severity] == []


def test_a_fleet_without_any_has_no_such_section(tmp_path: Path) -> None:
    with asked(tmp_path, *fleet()) as tables:
        assert "silenced" not in [section.anchor for section in shown(tables).sections]


def test_a_dataset_from_before_the_columns_is_read(tmp_path: Path) -> None:
    take(tmp_path / "dataset", *fleet())
    opened = open_dataset(str(tmp_path / "dataset"))
    for file in (*opened.latest("finding"), *opened.history("finding")):
        table = pq.read_table(file)
        pq.write_table(table.drop_columns(["silenced", "silenced_reason", "silenced_until", "devices"]), file)
    engine = connect(None, str(tmp_path / "dataset"))
    answers = {name: msgspec.to_builtins(ask(engine)) for name, ask in QUESTIONS.items()}
    sections = [section.anchor for section in shown(engine).sections]
    engine.close()
    with asked(tmp_path, *fleet()) as tables:
        assert {name: msgspec.to_builtins(ask(tables)) for name, ask in QUESTIONS.items()} == answers
    assert "silenced" not in sections
