"""What is said of real outputs that were once called clean, or faulty, and are neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.sources.open_source import open_source


def scan_source(path: Path) -> Report:
    """The report of one saved output."""
    return diagnose(open_source(str(path)), ScanPlan())[0]


def test_a_gpu_with_three_nics_on_its_switch_is_not_far_from_them(corpus: Path) -> None:
    """Which of the three is its rail is not in the matrix; that is no fault of GPU3."""
    report = scan_source(corpus / "text" / "nvidia-smi-topo-m" / "8gpu-h200-10nic-ansi.txt")

    assert [] == report.findings


@pytest.mark.parametrize(
    "name",
    [
        "lspci/vvv-cx7-gen5x16.txt",
        "lspci/vvv-cx7-gen4x8-downgraded-and-vf.txt",
        "lspci/vvv-nvswitch-22a3.txt",
        "nvidia-smi-nvlink/s-v100-gpu3-2inactive-excerpt.txt",
        "nvidia-smi-topo-m/8gpu-h100-dell-6nic-cpuset-affinity.txt",
    ],
)
def test_a_part_of_a_machine_is_never_ok(corpus: Path, name: str) -> None:
    """One device of lspci, one GPU's links, a matrix: what is not in it is not known to be well."""
    report = scan_source(corpus / "text" / name)

    assert "unknown" == report.summary.verdict


def test_two_dead_links_of_a_lone_v100_are_a_doubt(corpus: Path) -> None:
    """An SXM module by its name: its links are wired, and its siblings are not in the output."""
    report = scan_source(corpus / "text" / "nvidia-smi-nvlink" / "s-v100-gpu3-2inactive-excerpt.txt")
    (check,) = (check for check in report.checks if check.rule == "nvlink-inactive")

    assert ("unknown", "the only GPU of its model: nothing to compare with") == (check.state, check.reason)


def test_ports_that_answer_all_ones_are_told(corpus: Path) -> None:
    """Three ports of a switch, and nothing that says what hung below them."""
    report = scan_source(corpus / "text" / "lspci" / "vvv-rev-ff-fallen-off-bus.txt")

    assert {("pcie-device-gone", "warning")} == {(f.rule, f.severity) for f in report.findings}
    assert 3 == len(report.findings)


@pytest.mark.parametrize("name", ["cache_milan_good", "learn_ib_intf_operstate_down"])
def test_functions_without_a_class_may_be_anything(corpus: Path, name: str) -> None:
    """Trees that were saved without `class` and `vendor` files."""
    assert "unknown" == scan_source(corpus / "trees" / f"gcm-{name}.tar.xz").summary.verdict
