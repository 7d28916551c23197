"""The local fact: JSON as Ansible loads it, small, null for what is not known."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.model.report import Report
from agent.outputs.export.ansible import export
from tests.agent.outputs.export.given import H100, MACHINES, bare, hostile, with_gpu
from tests.machines import scan_machine

ANSIBLE = shutil.which("ansible")
MOST_BYTES = 32_768  # every play carries it


def facts(report: Report) -> Any:
    return json.loads(export(report))


@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_it_is_small_json(host: str, fault: str | None) -> None:
    """The verdict, counts of findings, GPUs and rails."""
    report = scan_machine(host, fault)
    output = facts(report)

    assert report.summary.verdict == output["verdict"]
    assert report.summary.counts == output["findings_count"]
    assert [g.id for g in report.topology.gpus] == [g["id"] for g in output["gpus"]]
    assert len(export(report)) < MOST_BYTES


def test_unknown_is_null():
    """Neither 0 nor an empty text."""
    output = facts(with_gpu(scan_machine(H100), links_known=False, links=[], name=None, numa_node=None))

    assert (None, None, None) == tuple(output["gpus"][0][name] for name in ("nvlinks_active", "name", "numa_node"))
    assert 18 == output["gpus"][1]["nvlinks_active"]
    assert (None, None, []) == tuple(
        facts(bare(scan_machine(H100)))[name] for name in ("product", "nvlink_domain", "rails")
    )


@pytest.mark.parametrize("names_only", [True, False])
def test_hostile_texts_are_texts(names_only: bool) -> None:
    """Names stay one line each."""
    output = facts(hostile(scan_machine(H100), names_only))

    assert 8 == len(output["gpus"])
    assert all("\n" not in gpu["name"] and len(gpu["name"]) <= 200 for gpu in output["gpus"])


@pytest.mark.slow
@pytest.mark.skipif(ANSIBLE is None, reason="ansible is not installed (Debian: ansible-core)")
@pytest.mark.parametrize("kind", ["good", "hostile"])
def test_ansible_loads_it(kind: str, tmp_path: Path, real_commands: None) -> None:
    """`setup` with this folder of facts has ours as ansible_local.fabricscope."""
    report = scan_machine(H100) if kind == "good" else hostile(scan_machine(H100), names_only=True)
    (tmp_path / "fabricscope.fact").write_text(export(report))
    (tmp_path / "fabricscope.fact").chmod(0o644)
    expected = f"filter=ansible_local fact_path={tmp_path}"
    done = subprocess.run(
        [str(ANSIBLE), "localhost", "-o", "-c", "local", "-m", "setup", "-a", expected],
        capture_output=True,
        timeout=100,
    )
    answer = json.loads(done.stdout.decode().partition("=> ")[2])

    assert facts(report) == answer["ansible_facts"]["ansible_local"]["fabricscope"]
