"""Kernel lines in messages of Kubernetes are read as the log of the node that they are of."""

from __future__ import annotations

from pathlib import Path

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.sources.open_source import open_source

XID = "NVRM: Xid (PCI:0000:4f:00): 79, pid=31, name=train, GPU has fallen off the bus."
EVENTS = "LAST SEEN   TYPE      REASON     OBJECT      MESSAGE\n"
NODE = (
    "Name:               c7\nConditions:\n"
    "  Type      Status  LastHeartbeatTime  LastTransitionTime  Reason  Message\n"
    "  ----      ------  -----------------  ------------------  ------  -------\n"
    "  {kind}    True    Mon, 03 Nov 2025 07:41:10 +0000   Mon, 03 Nov 2025 07:12:44 +0000   "
    "XidCriticalError   {text}\n"
    "Capacity:\n  nvidia.com/gpu:     8\nAllocatable:\n  nvidia.com/gpu:     8\n"
)


def scan_text(tmp_path: Path, text: str) -> Report:
    (tmp_path / "paste.txt").write_text(text)
    return diagnose(open_source(str(tmp_path / "paste.txt")), ScanPlan())[0]


def test_a_condition_that_quotes_the_log_is_one_finding_with_the_part(tmp_path: Path) -> None:
    report = scan_text(tmp_path, NODE.format(kind="GpuXid", text=XID))

    assert [("gpu-xid", ["0000:4f:00.0"])] == [(finding.rule, finding.devices) for finding in report.findings] or [
        ("gpu-xid", "device 0000:4f:00.0")
    ] == [(finding.rule, finding.label) for finding in report.findings]


def test_a_condition_without_a_line_of_the_log_stays_one_of_kubernetes(tmp_path: Path) -> None:
    report = scan_text(tmp_path, NODE.format(kind="GpuXid", text="device is unhealthy"))

    assert {"tool-reports-fault"} == {finding.rule for finding in report.findings}


def test_events_of_two_nodes_are_of_two_hosts(tmp_path: Path) -> None:
    rows = "".join(f"2m          Warning   XIDError   node/c{node}     {XID}\n" for node in (7, 8))
    report = scan_text(tmp_path, EVENTS + rows + "1m          Normal    NodeReady  node/c9     is ready\n")

    assert {"c7", "c8"} <= {host.name for host in report.source.hosts or []}
    assert ["c7: device 0000:4f:00.0", "c8: device 0000:4f:00.0"] == sorted(f.label for f in report.findings)


def test_other_events_quote_no_line(tmp_path: Path) -> None:
    report = scan_text(tmp_path, f"{EVENTS}1m          Normal    NodeReady  node/c9     Node is ready\n")

    assert [] == report.findings
