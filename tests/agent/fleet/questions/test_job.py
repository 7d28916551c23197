"""Jobs on nodes of a dataset: what the tables give is what the reports gave."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec
import pytest

from agent.cli.main import run
from agent.fleet.engines import connect
from agent.fleet.questions.job import predict_job, read_nodes
from agent.model.report import Report
from agent.recommend.answer import Question, answer_nodes
from agent.recommend.cost import add_costs
from agent.recommend.machine import read_node
from tests.agent.fleet.small import at, take
from tests.machines import FAULTS, HOSTS, scan_machine

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
GIB = 1 << 30


def named(report: Report, name: str) -> Report:
    """The same host under another name, with what its faults cost."""
    node = msgspec.structs.replace(report.node, hostname=name)
    return add_costs(msgspec.structs.replace(report, node=node, observed_at=at(0), generated_at=at(0)))


def ingest(tmp_path: Path, *reports: Report) -> str:
    """A dataset of these reports."""
    take(tmp_path / "data", *(msgspec.json.encode(report) for report in reports))
    return str(tmp_path / "data")


def test_tables_predict_what_reports_predict(tmp_path: Path) -> None:
    """For every machine and for each fault."""
    reports = [named(scan_machine(host), f"healthy{number:02}") for number, host in enumerate(HOSTS)]
    reports += [named(scan_machine("", fault), f"faulty{number:02}") for number, fault in enumerate(FAULTS)]
    engine = connect(None, ingest(tmp_path, *reports))
    nodes = {node.host: node for node in read_nodes(engine)}
    engine.close()

    for report in reports:
        name = report.node.hostname or ""
        for collective in ("all_reduce", "all_gather"):
            question = Question(collective, GIB)
            expected = answer_nodes([read_node(report)] * 4, question, []).predictions
            result = answer_nodes([nodes[name]] * 4, question, []).predictions
            figures = [(row.case, row.busbw_gbyte_s, row.bound) for row in result]
            assert [(row.case, row.busbw_gbyte_s, row.bound) for row in expected] == figures, name


def test_the_node_that_sets_the_least_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the hosts that are named; what its repair gives back is first, and the sum is stated."""
    good, bad = scan_machine(H100), scan_machine(H100, "gpu-width-x8")
    rows = [named(bad if number == 7 else good, f"gpu{number:02}") for number in range(1, 9)]
    dataset = ingest(tmp_path, *rows)
    row = ["recommend", "--dataset", dataset, "--collective", "all_gather", "--size", "1G"]

    assert 0 == run([*row, "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    have, healthy = answer["predictions"]
    assert (8, 64, 0.5) == (have["nodes"], have["ranks"], round(have["busbw_gbyte_s"] / healthy["busbw_gbyte_s"], 2))
    assert {"kind": "pcie", "device": "GPU2", "host": "gpu07"} == have["bound"]
    assert ("gpu07", "pcie-width-downgraded", "GPU2") == tuple(
        answer["repairs"][0][key] for key in ("host", "rule", "device")
    )
    assert all(": gpu" in text for text in answer["node_order"])
    assert 0 == run(row)
    assert "costs 6.25% of the inter-node bandwidth of 64 GPUs" in " ".join(capsys.readouterr().out.split())
    assert 0 == run([*row, "--hosts", "gpu[01-04]", "--format", "json"])
    have, healthy = json.loads(capsys.readouterr().out)["predictions"]
    assert (4, have["busbw_gbyte_s"]) == (have["nodes"], healthy["busbw_gbyte_s"])
    assert 2 == run([*row, "--hosts", "cpu[01-04]"])
    assert 2 == run(["recommend", "--hosts", "gpu01"])
    assert 2 == run([*row, "--nodes", "4"])


def test_findings_of_a_fleet_have_their_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with what it costs a job, and together what they cost the fleet; the largest is first."""
    good, narrow, down = scan_machine(H100), scan_machine(H100, "gpu-width-x8"), scan_machine(H100, "ib-port-down")
    faults = {3: narrow, 5: down}
    dataset = ingest(tmp_path, *(named(faults.get(number, good), f"gpu{number}") for number in range(1, 9)))
    row = ["fleet", "findings", "--dataset", dataset]

    assert 0 == run([*row, "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    lost = answer["lost"]
    assert (64, "pcie-width-downgraded", "gpu3") == (lost["gpus"], lost["rule"], lost["node"])
    assert (50 + 12.5) / 8 == pytest.approx(lost["percent"], abs=0.3)
    costs = {item["rule"]: item["cost_percent"] for item in answer["findings"]}
    assert 50 == pytest.approx(costs["pcie-width-downgraded"], abs=1)
    assert 0 == run(row)
    text = " ".join(capsys.readouterr().out.split())
    assert "of the inter-node bandwidth of 64 GPUs" in text
    assert 0 == run([*row, "pcie-width-downgraded"])
    assert "50% of all-reduce bandwidth lost in every job on" in " ".join(capsys.readouterr().out.split())
    assert 0 == run(["fleet", "html", "--dataset", dataset, "--output", str(tmp_path / "page.html")])
    assert "of the inter-node bandwidth of 64 GPUs" in (tmp_path / "page.html").read_text()
    assert 0 == run([*row, "--where", "nodes=gpu1", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["lost"] is None


def test_a_large_job_takes_seconds(tmp_path: Path) -> None:
    """A thousand nodes in five, so 300 in less."""
    good, bad = scan_machine(H100), scan_machine(H100, "nic-width-x8")
    dataset = ingest(tmp_path, *(named(bad if number == 500 else good, f"n{number:04}") for number in range(300)))
    engine = connect(None, dataset)
    started = time.process_time()
    answer = predict_job(engine, Question())
    elapsed = time.process_time() - started
    engine.close()

    assert 300 * 8 == answer.predictions[0].ranks
    assert elapsed < 5
