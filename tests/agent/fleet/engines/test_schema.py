"""Views beside the tables, and every SQL and query of the docs."""

from __future__ import annotations

import re
import shlex

import pytest

from agent.cli.main import run
from agent.fleet.engines import connect
from agent.fleet.engines.engine import views
from agent.fleet.engines.query import table_query
from tests.agent.fleet.small import report, take
from tests.conftest import ROOT

DOCS = sorted((ROOT / "docs").glob("fleet*.md"))
SQL = [(page.name, sql) for page in DOCS for sql in re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL)]
QUERIES = [
    (page.name, text)
    for page in DOCS
    for text in re.findall(r'^(?:\$ )?(fabricscope fleet query "[^"]*"[^\n]*)$', page.read_text(), re.MULTILINE)
]


def finding(severity="error", fingerprint="f1", label="GPU0"):
    return {
        "rule": "gpu-lost", "severity": severity, "subject": "gpu:a", "label": label, "fingerprint": fingerprint,
        "summary": "s", "impact": "i", "remedy": "r", "evidence": [], "confidence": "certain",
    }  # fmt: skip


SILENCED = {"until": "2026-02-01", "reason": "ticket 7"}


def episodes(place, *states):
    """The episodes of a node by reports that are an hour apart."""
    take(place / "dataset", *(report("gpu1", hour, findings=state) for hour, state in enumerate(states)))
    engine = connect(None, str(place / "dataset"))
    _, pieces = engine.query(
        "SELECT severity, fingerprint, label, hour(began) - 8, hour(ended) - 8 FROM finding_episode ORDER BY ALL"
    )
    rows = [row for piece in pieces for row in piece]
    engine.close()
    return rows


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([[], []], []),
        ([[finding()]], [("error", "f1", "GPU0", 0, None)]),
        ([[], [finding()], [finding()], []], [("error", "f1", "GPU0", 1, 3)]),
        ([[finding()], [], [finding()]], [("error", "f1", "GPU0", 0, 1), ("error", "f1", "GPU0", 2, None)]),
        (
            [[finding()], [finding(), finding(fingerprint="f2")], [finding()]],
            [("error", "f1", "GPU0", 0, None), ("error", "f2", "GPU0", 1, 2)],
        ),
        ([[finding("warning")], [finding()]], [("error", "f1", "GPU0", 1, None), ("warning", "f1", "GPU0", 0, 1)]),
        (
            [[finding()], [finding() | {"silenced": SILENCED}], [finding()]],
            [("error", "f1", "GPU0", 0, 1), ("error", "f1", "GPU0", 2, None)],
        ),
        ([[finding() | {"silenced": SILENCED}]], []),
        ([[finding(label="GPU0")], [finding(label="GPU1")]], [("error", "f1", "GPU1", 0, None)]),
    ],
)
def test_episodes(tmp_path, states, expected):
    assert episodes(tmp_path, *states) == expected


def test_days(tmp_path):
    verdicts = {0: "ok", 1: "error", 15.9: "warning", 16: "ok", 40: "ok"}
    take(
        tmp_path / "dataset",
        *(report("gpu1", hour, summary={"verdict": verdict, "counts": {}}) for hour, verdict in verdicts.items()),
    )
    engine = connect(None, str(tmp_path / "dataset"))
    _, pieces = engine.query("SELECT node, CAST(day AS VARCHAR), reports, verdict FROM node_day ORDER BY day")
    assert [row for piece in pieces for row in piece] == [
        ("gpu1", "2026-01-15", 3, "warning"), ("gpu1", "2026-01-16", 1, "ok"), ("gpu1", "2026-01-17", 1, "ok"),
    ]  # fmt: skip
    engine.close()


def test_settings_and_services_in_long_form(tmp_path):
    values = {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    settings = [
        {"key": key, "value": value, "source": "/etc/nccl.conf", "scope": "system"} for key, value in values.items()
    ]
    services = [{"name": "opensm", "state": "active"}, {"name": "irqbalance", "state": "inactive"}]
    software = {"driver": {}, "nccl": {"settings": settings}, "services": services}
    take(tmp_path / "dataset", report("gpu1", software=software), report("gpu2"))
    rows = []
    for sql in ("SELECT node, setting, value FROM node_setting ORDER BY ALL",
                "SELECT node, service, state FROM node_service ORDER BY ALL"):  # fmt: skip
        engine = connect(None, str(tmp_path / "dataset"))
        _, pieces = engine.query(sql)
        rows += [row for piece in pieces for row in piece]
        engine.close()
    assert rows == [
        ("gpu1", "NCCL_DEBUG", "INFO"), ("gpu1", "NCCL_IB_HCA", "=mlx5_0,mlx5_1"),
        ("gpu1", "irqbalance", "inactive"), ("gpu1", "opensm", "active"),
    ]  # fmt: skip


def counted(host, hour, **counters):
    """A report whose only port has these counters."""
    port = {
        "port": 1,
        "counters": {"link_downed": counters.pop("downs", 0), **counters},
        "hw_counters": {"out_of_sequence": 7},
    }
    return report(host, hour, topology={"nics": [{"id": "0000:10:00.0", "label": "mlx5_0", "ports": [port]}]})


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_counters_of_a_port_by_day(tmp_path, order):
    """From the first report of each day, however they came; a counter that began again has grown by what it is."""
    reports = [
        counted("gpu1", 0, downs=1), counted("gpu1", 5, downs=3), counted("gpu1", 17, downs=6),
        counted("gpu1", 20, downs=9), counted("gpu1", 41, downs=2, symbol_error=2**64 - 1),
    ]  # fmt: skip
    for n in order:
        take(tmp_path / "dataset", reports[n])
    engine = connect(None, str(tmp_path / "dataset"))
    _, pieces = engine.query(
        "SELECT node, CAST(day AS VARCHAR), port, link_downed, out_of_sequence, symbol_error, rp_cnp_handled "
        "FROM port_day ORDER BY day"
    )
    assert [row for piece in pieces for row in piece] == [
        ("gpu1", "2026-01-15", 1, 5, 0, None, None),
        ("gpu1", "2026-01-16", 1, 2, 0, None, None),
        ("gpu1", "2026-01-17", 1, None, None, None, None),
    ]
    assert engine.rows(table_query("port_counter", ["link_downed", "symbol_error"])) == [(2, None)]
    engine.close()


def test_counters_of_the_first_day_are_there_after_two_reports(tmp_path):
    take(tmp_path / "dataset", counted("gpu1", 0, downs=1))
    days = []
    for later in (1, 4):
        take(tmp_path / "dataset", counted("gpu1", later, downs=1 + later))
        engine = connect(None, str(tmp_path / "dataset"))
        _, pieces = engine.query("SELECT link_downed, hour(sampled_at), hour(compared_at) FROM port_day")
        days += [row for piece in pieces for row in piece]
        engine.close()
    assert days == [(1, 8, 9), (4, 8, 12)]


def test_a_port_without_counters_has_no_row(tmp_path):
    port = {"port": 1, "state": "ACTIVE"}
    take(tmp_path / "dataset", report("gpu1", topology={"nics": [{"id": "0000:10:00.0", "ports": [port]}]}))
    engine = connect(None, str(tmp_path / "dataset"))
    _, pieces = engine.query("SELECT * FROM port_day")
    assert list(pieces) == []
    engine.close()


def test_an_open_finding_has_its_beginning(tmp_path):
    take(
        tmp_path / "dataset",
        report("gpu1", 0, findings=[]),
        report("gpu1", 1, findings=[finding(), finding(fingerprint="f2") | {"silenced": SILENCED}]),
    )
    engine = connect(None, str(tmp_path / "dataset"))
    _, pieces = engine.query("SELECT node, rule, hour(began), hour(observed_at) FROM finding_open")
    assert [row for piece in pieces for row in piece] == [("gpu1", "gpu-lost", 9, 9)]
    engine.close()


@pytest.mark.parametrize("name", views())
def test_views_of_a_dataset_without_anything_in_them(tmp_path, name):
    take(tmp_path / "dataset", report("gpu1"))
    engine = connect(None, str(tmp_path / "dataset"))
    columns, pieces = engine.query(f"SELECT * FROM {name}")
    assert columns[0] == "node"
    assert len(list(pieces)) == (name == "node_day")
    engine.close()


def test_the_docs_have_sql():
    assert {"fleet-dataset.md"} <= {page for page, _ in SQL}
    assert {"fleet.md"} <= {page for page, _ in QUERIES}


@pytest.mark.parametrize(("page", "sql"), SQL)
def test_sql_of_the_docs_runs(tmp_path, page, sql):
    take(tmp_path / "dataset", report("gpu1"), report("gpu2"))
    engine = connect(None, str(tmp_path / "dataset"))
    _, pieces = engine.query(sql)
    assert [row for piece in pieces for row in piece]
    engine.close()


@pytest.mark.parametrize(("page", "text"), QUERIES)
def test_queries_of_the_docs_run(tmp_path, page, text, capsys):
    take(tmp_path / "dataset", report("gpu1"), report("gpu2"))
    _, *arguments = shlex.split(text)
    assert run([*arguments, "--dataset", str(tmp_path / "dataset")]) == 0, capsys.readouterr().err
