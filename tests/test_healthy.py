"""Healthy machines of every kind are silent: a false alarm is a worse bug than a missed fault."""

from __future__ import annotations

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.history.state import add_history, update_state
from agent.history.store import STATE_LIMIT_BYTES
from agent.model.report import REPORT_LIMIT_BYTES, Report
from agent.reports import encode_report
from bench.sixteen import make_sixteen_gpus
from tests.machines import HOSTS, scan_machine
from tests.matrix.cases import Cause
from tests.matrix.rule_rows import tables
from tests.matrix.together import seen

IDLE = {"2xa10-2xt4-1s-idle", "4xrtx3090-1s-nvlink-pairs"}  # their speed can only be judged under load
SETTINGS_TOO = {"roce-prio2buffer-shared"}  # looks at counters only where settings are as they should not be
COUNTED = {
    name
    for name, table in tables().items()
    if any("no earlier sample" in guards for guards in table.silent_when.values())
} - SETTINGS_TOO
# What no host can tell of itself, or what the drivers of these machines do not tell
UNTOLD = {
    "roce-pfc-switch-mismatch",  # only LLDP from the switch says what it has
    "roce-ecn-off",  # the kernel's own driver has no readout of it
    "roce-cnp-class",
    "cxl-health",  # a question to the device
    "cxl-media-errors",  # the same
}
GUEST = {
    "8xh100-vm-kvm-8xvf-ib": {"nvlink-bandwidth-mode-reduced"},  # a guest is not told the board's mode
}
# Of NPUs only outputs of npu-smi and hccn_tool say it, and neither is ever run
_NPUS = {
    "hccs-errors",
    "hccs-lanes-degraded",
    "hccs-link-down",
    "hccs-matrix-asymmetric",
    "npu-fec-mismatch",
    "npu-optic-absent",
    "npu-optic-power",
    "npu-pfc-storm",
    "npu-roce-net-health",
    "npu-roce-port-down",
    "npu-roce-speed",
}
NO_OUTPUT = {
    "8x910b-4s-atlas-a2": _NPUS,
    "16x910c-4s-atlas-a3": {*_NPUS, "sio-errors", "numa-changed"},  # its NPUs are near no socket
}
SETTLED = Cause(about="nothing happened for an hour", on=["all"], earlier={})


@pytest.mark.parametrize("shape", HOSTS)
def test_a_healthy_machine_gives_no_finding_above_info(shape: str) -> None:
    """No warning, no error; and the verdict is ok, which takes every essential rule to be judged."""
    report = scan_machine(shape)

    assert [] == [(f.rule, f.label, f.summary) for f in report.findings if f.severity != "info"]
    assert ("ok" if report.topology.gpus else "nothing_to_check") == report.summary.verdict


def test_sixteen_gpus_are_as_healthy_as_eight() -> None:
    """The machine that `bench` judges: two GPUs behind each switch, and not a word about either."""
    report = evaluate_report(make_sixteen_gpus(scan_machine("8xh200-sxm-2s-16xcx7-roce-4nvsw")), Configuration())

    assert (16, 18, 32) == (len(report.topology.gpus), len(report.topology.nics), len(report.gpudirect))
    assert [] == [(f.rule, f.label, f.summary) for f in report.findings]
    assert "ok" == report.summary.verdict


@pytest.mark.parametrize("shape", HOSTS)
def test_no_rule_is_unknown_on_a_machine_whose_evidence_is_whole(shape: str) -> None:
    """Fixtures hold all evidence: what stays unknown there, with an earlier run to compare with, would be unknown
    everywhere. But an idle GPU slows its link down, and what it could do cannot be seen then."""
    report = seen(SETTLED, shape)
    allowed = (
        UNTOLD
        | GUEST.get(shape, set())
        | NO_OUTPUT.get(shape, set())
        | ({"pcie-speed-downgraded"} if shape in IDLE else set())
    )

    assert [] == [(f.rule, f.label, f.summary) for f in report.findings if f.severity != "info"]
    assert {} == {c.rule: c.unknown_subjects[:2] for c in report.checks if c.unknown and c.rule not in allowed}


@pytest.mark.parametrize("shape", HOSTS)
def test_the_first_run_says_that_it_is_the_first(shape: str) -> None:
    """Rules about counters are unknown then, for one reason; none of them is clean."""
    checks = [check for check in scan_machine(shape).checks if check.rule in COUNTED]

    assert COUNTED == {check.rule for check in checks}
    assert {"unknown", "not_applicable"} >= {check.state for check in checks}
    assert all("counters need two samples" in (check.reason or "") for check in checks if check.state == "unknown")


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
