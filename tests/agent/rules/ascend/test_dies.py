"""One die of an Atlas A3 is gone: named by the fifteen that are left, without a profile and without the NPU ports."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.config import Configuration
from agent.diagnose import evaluate_report
from tests.machines import scan_machine


@pytest.mark.parametrize("number", [0, 7, 15])
def test_fifteen_dies_of_sixteen(number: int) -> None:
    """The first one, one in the middle, and the last one."""
    report = scan_machine("16x910c-4s-atlas-a3")
    assert report.topology.ascend is not None
    gone = report.topology.gpus[number]
    topology = replace(
        report.topology,
        gpus=[gpu for gpu in report.topology.gpus if gpu is not gone],
        pci=[function for function in report.topology.pci if function.id != gone.pci],
        paths=[path for path in report.topology.paths if gone.id not in (path.a, path.b)],
        nics=[],
        ascend=replace(report.topology.ascend, ports=[], device_nodes=None),
    )

    findings = evaluate_report(replace(report, topology=topology), Configuration(), "none").findings

    (fault,) = (finding for finding in findings if finding.severity == "critical")
    assert "npu-missing" == fault.rule
    assert f"dies on the PCI bus: 15 of 16; nothing is at {gone.pci}" == fault.summary
