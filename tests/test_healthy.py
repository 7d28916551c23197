"""Healthy machines of every kind are silent: a false alarm is a worse bug than a missed fault."""

from __future__ import annotations

import pytest

from tests.machines import HOSTS, scanned


@pytest.mark.parametrize("shape", HOSTS)
def test_a_healthy_machine_gives_no_finding_above_info(shape: str) -> None:
    """No warning, no error; and the verdict is ok, which takes every essential rule to be judged."""
    report = scanned(shape)

    assert [] == [(f.rule, f.label, f.summary) for f in report.findings if f.severity != "info"]
    assert "ok" == report.summary.verdict


@pytest.mark.parametrize("shape", HOSTS)
def test_no_rule_is_unknown_on_a_machine_whose_evidence_is_whole(shape: str) -> None:
    """Fixtures hold all evidence: what stays unknown there would be unknown everywhere."""
    report = scanned(shape)

    assert {} == {check.rule: check.unknown_subjects for check in report.checks if check.unknown}
