"""Causes of tests/matrix as a real kernel shows them: one description, the same findings, none on the healthy twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.batches import BATCHES, IB, ROCE, machine
from tests.lab.conftest import RecordRow, above_info, scan_here
from tests.lab.judging import Lab
from tests.matrix.cases import filled

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]

SCENARIOS = [(BATCHES[name].shape, name, scenario.name) for name in BATCHES for scenario in BATCHES[name].scenarios]


@pytest.mark.parametrize("shape", [IB, ROCE])
def test_the_healthy_machine_is_silent(lab: Lab, record_row: RecordRow, shape: str) -> None:
    """Nothing is said above info, no probe fails, and every function and NVLink that was described is there."""
    report = lab.healthy(shape).report

    assert [] == above_info(report)
    assert [] == [run for run in report["probes"] if run["status"] in ("failed", "timed_out")]
    functions = {row["id"] for row in report["topology"]["pci"]}
    there = {node.address for node in machine(shape).nodes if node.root_bus != "0000:00"}
    assert there <= functions
    assert [18] * 8 == [sum(link["state"] == "active" for link in gpu["links"]) for gpu in report["topology"]["gpus"]]
    record_row(f"the healthy machine, {shape}", f"{len(functions)} PCI functions", "nothing")


@pytest.mark.parametrize("shape", [IB, ROCE])
def test_the_capture_of_that_run_says_the_same(lab: Lab, record_row: RecordRow, tmp_path: Path, shape: str) -> None:
    """Replayed on this host: the same report, but for clocks, durations and the source."""
    live, capture = lab.healthy(shape)
    path = tmp_path / "lab.tar.zst"
    path.write_bytes(capture)
    replayed = scan_here(path, "--state-dir", str(tmp_path / "state"))

    assert "" == "\n".join(apart(still(live), still(replayed)))
    record_row(f"Its capture, replayed elsewhere, {shape}", f"{len(capture) >> 10} KiB", "the same report")


@pytest.mark.parametrize(("shape", "batch", "name"), SCENARIOS, ids=[f"{batch}-{name}" for _, batch, name in SCENARIOS])
def test_a_cause_is_found_by_name(lab: Lab, record_row: RecordRow, shape: str, batch: str, name: str) -> None:
    """What the fixture machine gives, the kernel gives; several stand at the same time, each on its own device."""
    judged = lab.batch(batch)
    (scenario,) = [scenario for scenario in BATCHES[batch].scenarios if scenario.name == name]
    expected = {tuple(item) for item in filled(scenario.cause.finds, shape)}

    assert expected <= set(above_info(judged.report))
    infos = {
        (finding["rule"], finding["subject"]) for finding in judged.report["findings"] if finding["severity"] == "info"
    }
    assert set(filled(scenario.cause.informs, shape)) <= infos
    items = [finding["summary"] for finding in judged.report["findings"] if key(finding) in expected]
    record_row(scenario.cause.about, judged.shown[name], "; ".join(items) or "nothing above info")


@pytest.mark.parametrize(("shape", "batch"), [(BATCHES[name].shape, name) for name in BATCHES], ids=list(BATCHES))
def test_nothing_else_is_said(lab: Lab, shape: str, batch: str) -> None:
    """One finding a cause, above info; what was shown before is silent again."""
    assert BATCHES[batch].shape == shape
    assert BATCHES[batch].finds == above_info(lab.batch(batch).report)


def key(finding: dict[str, Any]) -> tuple[str, str, str]:
    """What tells one finding from another."""
    return finding["rule"], finding["severity"], finding["subject"]


def apart(live: dict[str, Any], replayed: dict[str, Any]) -> list[str]:
    """What one of two reports holds otherwise, a line each."""
    lines = [
        {f"{name}: {json.dumps(row, sort_keys=True)}" for row in (value if isinstance(value, list) else [value])}
        for name in sorted(live.keys() | replayed.keys())
        if live.get(name) != replayed.get(name)
        for value in (live.get(name), replayed.get(name))
    ]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [
        line
        for here, there in pairs
        for line in [*(f"live {row}" for row in here - there), *(f"replayed {row}" for row in there - here)]
    ]


def still(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what two runs never share."""
    remaining = {
        name: value for name, value in report.items() if name not in ("source", "generated_at", "duration_seconds")
    }
    probes = [{**run, "duration_seconds": None} for run in report["probes"]]
    reasons = [{**row, "settles": []} for row in report["reasons"]]  # what to save is said of a saved source alone
    result: dict[str, Any] = json.loads(json.dumps({**remaining, "probes": probes, "reasons": reasons}))
    return result
