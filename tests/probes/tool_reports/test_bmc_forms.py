"""Logs of BMCs as pages and tools of other makers print them: recognized by their text, named as what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines import scan_text

ENTRY = """{{"Members": [{{"@odata.id": "/redfish/v1/Systems/1/LogServices/Log1/Entries/{n}", "Id": "{n}",
  "Created": "2026-02-0{n}T08:00:00Z", "Severity": "{severity}",
  "Message": "{message}"}}]}}"""
ILO = '<EVENT SEVERITY="{}" CLASS="Power" LAST_UPDATE="02/03/2026 08:00" COUNT="1" DESCRIPTION="{}" />\n'
LISTED = "3 2026/02/03 08:01:02 Power Supply PS2 Power Supply Failure Detected - {}\n"
CSV = '"4","Critical","2026/02/03 08:01:02","Fan","FAN4","Lower Critical - Going Low - Asserted"\n'


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (ENTRY.format(n=1, severity="Critical", message="PSU2 has failed."), "PSU2"),
        (ILO.format("Critical", "Uncorrectable PCI Express Error (Slot 4, Bus 0, Device 1, Function 0)"), "Slot 4"),
        (LISTED.format("Asserted"), "PS2"),
        (CSV, "FAN4"),
    ],
)
def test_a_fault_is_read_and_its_source_named(text: str, label: str, tmp_path: Path) -> None:
    """By no command, which nobody ran."""
    (finding,) = scan_text(tmp_path, text, "event log.txt").findings
    assert ("tool-reports-fault", label) == (finding.rule, finding.label)
    assert ["event log.txt (log of a BMC)"] == [row.source for row in finding.evidence]


@pytest.mark.parametrize(
    "text",
    [
        ENTRY.format(n=2, severity="OK", message="PSU2 is operating normally."),
        ILO.format("Informational", "Server power restored."),
        LISTED.format("Asserted") + LISTED.format("Deasserted"),
    ],
)
def test_an_event_that_is_over_or_calm_is_none(text: str, tmp_path: Path) -> None:
    assert [] == scan_text(tmp_path, text, "event log.txt").findings
