"""Settings that NCCL states in a job's log, in a text that also has outputs of the host: judged as the host's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.sources.open_source import open_source

TOPOLOGY = (
    "$ nvidia-smi topo -m\n        GPU0    GPU1    CPU Affinity    NUMA Affinity\n"
    "GPU0     X      {0}    0-31    0\nGPU1    {0}     X      32-63   1\n"
)
LINKS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11112222-3333-4444-5555-666677778888)\n\t Link 0: 26.562 GB/s\n"
STATED = "r4n2:811:811 [0] NCCL INFO {} set by environment to {}\n"


def scan_text(tmp_path: Path, text: str) -> Report:
    (tmp_path / "issue.md").write_text(text)
    return diagnose(open_source(str(tmp_path / "issue.md")), ScanPlan())[0]


@pytest.mark.parametrize(
    "text",
    [
        TOPOLOGY.format("NV18") + "\n" + STATED.format("NCCL_P2P_LEVEL", "LOC"),
        LINKS + "\nNCCL_P2P_DISABLE set by environment to 1.\n",
    ],
    ids=["a matrix and a log", "links, and the sentence alone"],
)
def test_a_setting_that_switches_nvlink_off_is_found_beside_an_output_that_shows_nvlink(
    tmp_path: Path, text: str
) -> None:
    """Neither the output nor the log states a fault: both together do."""
    (finding,) = scan_text(tmp_path, text).findings

    assert ("gdr-disabled-by-env", "environment of the job") == (finding.rule, finding.evidence[0].source)
    assert finding.summary.startswith("NCCL_P2P_")


@pytest.mark.parametrize(
    "text",
    [
        TOPOLOGY.format("SYS") + "\n" + STATED.format("NCCL_P2P_LEVEL", "LOC"),
        TOPOLOGY.format("NV18")
        + "\n"
        + STATED.format("NCCL_P2P_LEVEL", "LOC")
        + STATED.format("NCCL_P2P_LEVEL", "NVL"),
        TOPOLOGY.format("NV18") + "\n" + STATED.format("NCCL_P2P_LEVEL", "NVL"),
    ],
    ids=["no NVLink", "two runs with two values", "a value that loses nothing"],
)
def test_a_setting_that_takes_nothing_away_is_no_finding(tmp_path: Path, text: str) -> None:
    """On PCIe alone the switch is often right, and of two values it is not known which run was slow."""
    assert [] == scan_text(tmp_path, text).findings
