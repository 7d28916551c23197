"""A screen of fabricscope that someone pasted, whole, in pieces, or between other outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.model.report import Report
from agent.outputs.text.lines import to_plain_text
from agent.outputs.text.page import render_page
from tests.machines import scan_machine, scan_text

SCREEN = """> h100-01  ·  Dell Inc. PowerEdge XE9680
> ERROR  1 error, 1 warning
>   84 checks ran; 3 could not run; 31 need a second sample; 131 not applicable
>
> ERROR  GPU2: PCIe link is x8; both ends
>        support x16
>   confirm   lspci -vv -s 0000:4c:00.0 | grep -E 'LnkCap:|LnkSta:'
>   rule      pcie-width-downgraded
>
> WARNING  Memory of processes is locked to 64 KiB
>   rule      memlock-limit (confidence: medium)
"""


def list_states(report: Report) -> list[tuple[str, str, str]]:
    return [(finding.severity, finding.label, finding.summary) for finding in report.findings]


def test_each_finding_of_a_screen_is_one_with_the_steps_of_its_rule(tmp_path: Path) -> None:
    report = scan_text(tmp_path, SCREEN)

    assert list_states(report) == [
        ("error", "GPU2", "fabricscope found: PCIe link is x8; both ends support x16"),
        ("warning", "node", "fabricscope found: Memory of processes is locked to 64 KiB"),
    ]
    assert "explain pcie-width-downgraded" in report.findings[0].steps[0].do


def test_what_stands_beside_a_screen_is_read(tmp_path: Path) -> None:
    """Its own commands and steps are not taken for outputs."""
    lost = "[  101.000000] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    report = scan_text(tmp_path, f"{SCREEN}\n{lost}")

    assert [finding.severity for finding in report.findings] == ["critical", "error", "warning"]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("ERROR pcie-width-downgraded GPU2: PCIe link is x8 (SXM module 3)\nFABRICSCOPE CRITICAL - x\n", "error"),
        (
            '      "rule": "pcie-width-downgraded",\n      "severity": "info",\n      "subject": "pci:0000:4c:00.0",\n'
            '      "label": "GPU2",\n      "summary": "PCIe link is x8",\n      "evidence": [\n',
            "info",
        ),
    ],
)
def test_lines_of_check_and_pieces_of_json_are_read(tmp_path: Path, text: str, severity: str) -> None:
    states = list_states(scan_text(tmp_path, text))
    assert [(state[:2], state[2][:34]) for state in states] == [
        ((severity, "GPU2"), "fabricscope found: PCIe link is x8")
    ]


def test_a_screen_without_a_finding_has_none(tmp_path: Path) -> None:
    text = "h1\nOK  no findings\n  84 checks ran; 31 need a second sample; 131 not applicable\n"
    assert list_states(scan_text(tmp_path, text)) == []


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_screen_of_a_whole_machine_has_its_findings_again(tmp_path: Path, width: int) -> None:
    report = scan_machine("8xh100-sxm-2s-8xcx7-ib-4nvsw", "gpu-width-x8")
    again = scan_text(tmp_path, to_plain_text(render_page(report, width)))

    found = [(finding.severity, finding.label, finding.summary) for finding in report.findings]
    assert [(severity, label, summary.partition(": ")[2]) for severity, label, summary in list_states(again)] == found
