"""HCCS ports of which some are down or slow, and others count errors; a die of an Atlas A3 that is gone is named by the
fifteen that are left, without a profile and without the NPU ports.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from tests.machines import scan_machine
from tests.matrix.rule_rows import row


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("another port lost lanes", ["hccs-errors HCCS port 3", "hccs-lanes-degraded HCCS port 5"]),
        ("another port is down", ["hccs-errors HCCS port 3", "hccs-link-down HCCS port 5"]),
        ("of two ports one lost lanes", ["hccs-errors HCCS port 3, 5", "hccs-lanes-degraded HCCS port 5"]),
        ("of three ports two lost lanes", ["hccs-errors HCCS port 3", "hccs-lanes-degraded HCCS port 5-6"]),
    ],
)
def test_a_port_explains_no_errors_of_another_port(name: str, names: list[str]) -> None:
    """What is left of errors of several ports stands: alone where it is the smaller part."""
    found = judge(row("hccs-errors", name)[0], every_rule())[1]

    texts = sorted(f"{finding.rule} {finding.summary}" for finding in found)
    assert len(names) == len(texts)
    assert all(text.startswith(start) for text, start in zip(texts, names, strict=True)), texts


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
