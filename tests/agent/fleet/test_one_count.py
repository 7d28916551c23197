"""All outputs of one dataset agree: nodes by state, names of classes, findings."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("duckdb", reason="the extra fleet is not installed")
from agent.cli.main import run
from tests.agent.fleet.small import finding, report, take

NOW = datetime.now(timezone.utc)
NODES = {  # verdict of the last report, hours since it arrived, model of the rails
    "n1": ("ok", 1, "ConnectX-7"), "n2": ("ok", 60, "ConnectX-7"), "n3": ("error", 60, "ConnectX-7"),
    "n4": ("error", 1, "ConnectX-7"),
    "n5": ("critical", 60, None), "n6": ("warning", 1, None),
    "n7": ("unknown", 1, None), "n8": ("unknown", 60, None),
    "n9": ("nothing_to_check", 1, None), "n10": ("nothing_to_check", 60, "ConnectX-7"),
}  # fmt: skip
STATES = {"critical": 1, "error": 2, "warning": 1, "unknown": 1, "stale": 3, "ok": 1, "nothing_to_check": 1}
CLASS = "V P, 2x GPU, 1x ConnectX-7 (MT_0000000838)"


def _report(host: str, verdict: str, hours: float, model: str | None) -> bytes:
    moment = (NOW - timedelta(hours=hours)).isoformat()
    bad = verdict in ("critical", "error", "warning")
    rail = {"id": "0000:10:00.0", "label": "mlx5_0", "role": "rail", "board_id": "MT_0000000838", "model": model}
    document = json.loads(report(host, observed_at=moment, generated_at=moment))
    document["topology"]["nics"] = [rail] if model else []
    document["findings"] = [finding("pcie-width-downgraded", severity=verdict)] if bad else []
    document["summary"] = {"verdict": verdict, "counts": {verdict: 1} if bad else {}, "unknown_rules": []}
    return json.dumps(document).encode()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By its name what each command writes to a file."""
    folder = tmp_path_factory.mktemp("outputs")
    take(folder / "dataset", *(_report(host, *facts) for host, facts in NODES.items()))
    commands = {
        "summary.json": ["summary", "--format", "json"], "summary.txt": ["summary"], "page.html": ["html"],
        "fleet.prom": ["export", "prometheus"], "host.csv": ["export", "csv", "host"],
        "finding.csv": ["export", "csv", "finding"], "findings.json": ["findings", "--format", "json"],
        "outliers.json": ["outliers", "--format", "json"],
    }  # fmt: skip
    for name, words in commands.items():
        assert 0 == run(["fleet", *words, "--dataset", str(folder / "dataset"), "--output", str(folder / name)])
    return {name: Path(folder / name).read_text() for name in commands}


def _summary(outputs: dict[str, str]) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(outputs["summary.json"])
    return summary


def _metric(outputs: dict[str, str], name: str) -> dict[tuple[str, ...], int]:
    """Values of a series by its labels, zeros left out."""
    lines = re.findall(rf"^fabricscope_{name}\{{(.*)\}} (\d+)$", outputs["fleet.prom"], re.MULTILINE)
    return {tuple(re.findall(r'="([^"]*)"', labels)): int(value) for labels, value in lines if value != "0"}


def _page_cells(outputs: dict[str, str]) -> list[list[str]]:
    """Rows of the page's table of classes: name, nodes, a number for each state."""
    table = re.search(r"<table class=\"numbers\">.*?</table>", outputs["page.html"], re.DOTALL)
    assert table
    rows = ET.fromstring(table[0]).iter("tr")
    return [["".join(cell.itertext()).strip() for cell in row][:9] for row in rows]


def test_states_of_nodes(outputs: dict[str, str]) -> None:
    """Text and JSON of the summary, the page's counts and table, and metrics."""
    summary = _summary(outputs)
    (text,) = (line for line in outputs["summary.txt"].splitlines() if " critical  " in line and "class" not in line)
    counted: Counter[str] = Counter()
    for (_, state), nodes in _metric(outputs, "fleet_nodes").items():
        counted[state] += nodes
    head, *rows = _page_cells(outputs)
    names = [name.replace(" ", "_") for name in head[2:]]

    assert STATES == summary["verdicts"] == counted
    assert STATES == {
        words.replace(" ", "_"): int(many) for many, words in re.findall(r"(\d+) ([a-z ]+?)(?=  |$)", text)
    }
    assert STATES == {name: sum(int(row[at] or 0) for row in rows) for at, name in enumerate(names, 2)}
    assert STATES == {
        look: int(many) for look, many in re.findall(r'<li data-look="(\w+)">.*?<b>(\d+)</b>', outputs["page.html"])
    }
    assert len(NODES) == summary["nodes"] == len(_hosts(outputs))


def test_nodes_without_a_recent_report(outputs: dict[str, str]) -> None:
    """All of them, those that count by their last report among them."""
    assert 5 == _summary(outputs)["stale"] == sum(_metric(outputs, "fleet_stale_nodes").values())
    assert "n[2-3,5,8,10]; 2 of them count by the last report" in outputs["summary.txt"]
    assert "5 are stale" in outputs["page.html"]
    assert "2 of the stale are among those that need attention" in outputs["page.html"]


def test_classes(outputs: dict[str, str]) -> None:
    """One name, and as many nodes, everywhere: with the model of its NICs and their board."""
    classes = {line["hardware_class"]: line["nodes"] for line in _summary(outputs)["classes"]}
    metrics: Counter[str] = Counter()
    for (name, _), nodes in _metric(outputs, "fleet_nodes").items():
        metrics[name] += nodes

    assert {CLASS: 5, "V P, 2x GPU": 5} == classes == metrics
    assert classes == Counter(row["hardware_class"] for row in _hosts(outputs))
    assert classes == {row[0]: int(row[1]) for row in _page_cells(outputs)[1:]}
    assert f"{CLASS}: 2 error, 2 stale, 1 ok" in " ".join(outputs["summary.txt"].split())
    assert set(classes) == {
        share["hardware_class"]
        for group in json.loads(outputs["findings.json"])["findings"]
        for share in group["classes"]
    }
    assert "MT_0000000838" not in outputs["page.html"].replace("ConnectX-7 (MT_0000000838)", "")


def test_findings(outputs: dict[str, str]) -> None:
    """Nodes with a finding by severity: the answer, metrics and the table."""
    groups = {group["severity"]: group["nodes"] for group in json.loads(outputs["findings.json"])["findings"]}
    rows = csv.DictReader(io.StringIO(outputs["finding.csv"]))

    assert {"critical": 1, "error": 2, "warning": 1} == groups == Counter(row["severity"] for row in rows)
    assert groups == {severity: nodes for (_, severity), nodes in _metric(outputs, "fleet_finding_nodes").items()}
    assert groups == {state: STATES[state] for state in groups}


def _hosts(outputs: dict[str, str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(outputs["host.csv"])))
