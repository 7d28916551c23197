"""A tree of a thousand functions."""

from __future__ import annotations

import pytest

from tests.lab.conftest import RecordRow, above_info
from tests.lab.qemu.guest import Guest
from tests.lab.qemu.shown import THOUSAND, thousand

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("real_commands"), pytest.mark.timeout(900)]
SHOWN = THOUSAND


def test_a_thousand_functions(guest: Guest, record_row: RecordRow) -> None:
    """All are read in the scan's time, and nothing is wrong with them."""
    report = guest.scan("--only", "pci,kernel,numa,cpu")

    (run,) = [probe for probe in report["probes"] if probe["name"] == "pci"]
    functions = [row for row in report["topology"]["pci"] if row["device"] != "0x29c0"]
    assert "ok" == run["status"]
    assert len(thousand().nodes) <= len(functions)
    assert [] == above_info(report)
    result = f"{len(functions)} functions in {run['duration_seconds']:.0f} s; nothing above info"
    record_row("A thousand functions", f"{len(thousand().nodes)} functions, 112 ports of 7 switches", result)
