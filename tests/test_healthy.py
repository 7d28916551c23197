"""Healthy machines of every kind are silent: a false alarm is a worse bug than a missed fault."""

from __future__ import annotations

import pytest

from tests.machines import HOSTS, scanned

IDLE = {"2xa10-2xt4-1s-idle", "4xrtx3090-1s-nvlink-pairs"}  # their speed can only be judged under load


@pytest.mark.parametrize("shape", HOSTS)
def test_a_healthy_machine_gives_no_finding_above_info(shape: str) -> None:
    """No warning, no error; and the verdict is ok, which takes every essential rule to be judged."""
    report = scanned(shape)

    assert [] == [(f.rule, f.label, f.summary) for f in report.findings if f.severity != "info"]
    assert "ok" == report.summary.verdict


@pytest.mark.parametrize("shape", HOSTS)
def test_no_rule_is_unknown_on_a_machine_whose_evidence_is_whole(shape: str) -> None:
    """Fixtures hold all evidence: what stays unknown there would be unknown everywhere. But an idle GPU slows its link
    down, and what it could do cannot be seen then."""
    report = scanned(shape)
    allowed = {"pcie-speed-downgraded"} if shape in IDLE else set()

    assert {} == {c.rule: c.unknown_subjects for c in report.checks if c.unknown and c.rule not in allowed}
