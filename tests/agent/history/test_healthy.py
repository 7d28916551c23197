"""Every healthy machine, an hour later and after a reboot: nothing above info that was not there before."""

from __future__ import annotations

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.history.state import add_history, update_state
from agent.history.store import STATE_LIMIT_BYTES
from agent.model.report import REPORT_LIMIT_BYTES, Report
from agent.reports import encode_report
from tests.machines import HOSTS, scan_machine


def later(report: Report, boot_id: str | None = None) -> Report:
    """The same machine after an hour, or an hour after it was restarted."""
    up = 3600.0 + (0.0 if boot_id else report.node.uptime_seconds or 0.0)
    node = msgspec.structs.replace(report.node, uptime_seconds=up, boot_id=boot_id or report.node.boot_id)
    return msgspec.structs.replace(report, node=node, observed_at="2030-01-01T00:00:00Z")


def grave(report: Report) -> set[tuple[str, str]]:
    return {(finding.rule, finding.subject) for finding in report.findings if finding.severity != "info"}


@pytest.mark.parametrize("shape", HOSTS)
@pytest.mark.parametrize("boot_id", [None, "another"])
def test_time_alone_is_no_fault(shape: str, boot_id: str | None) -> None:
    """Inventory and settings are the same, and no counter moved."""
    report = scan_machine(shape)
    state = update_state(None, report)
    result = evaluate_report(add_history(state, later(report, boot_id)), Configuration())
    (lost,) = [check for check in result.checks if check.rule == "inventory-lost"]

    assert grave(report) == grave(result)
    assert result.history is not None
    assert {} == result.history.settings == result.history.link_downs
    assert ("pass" if result.history.inventory else "not_applicable") == lost.state
    assert result.counters_window is not None
    assert {} == result.counters_window.moved
    assert (3600.0 if boot_id is None else None) == result.counters_window.seconds
    assert len(encode_report(result)) < REPORT_LIMIT_BYTES / 2
    assert len(msgspec.json.encode(state)) < STATE_LIMIT_BYTES / 8
