"""probe-hung: a process that cannot be killed is a fault of the node; a slow one is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.report import ProbeRun
from agent.rules.context import RuleContext
from agent.rules.engine import judge
from agent.rules.host.probes import probe_hung
from tests.agent.rules.build import server

STORY = "no answer within 25 s: state D, waits in rwsem_down_read_slowpath; it cannot be killed and was left behind"


def with_run(**run: object) -> RuleContext:
    """A healthy server of which one probe ended so."""
    made = ProbeRun(**{"name": "nvml", "status": "timed_out", "reason": STORY, **run})  # type: ignore[arg-type]
    case = server()
    return replace(case, probes={**case.probes, made.name: made})


@pytest.mark.parametrize(("probe", "severity"), [("nvml", "critical"), ("nvidia_smi", "critical"), ("rdma", "error")])
def test_a_hang_is_a_finding_with_its_story(probe: str, severity: str) -> None:
    """What hangs, in which state, and how grave; one finding a probe."""
    checks, findings, summary = judge(with_run(name=probe, hung=True), [probe_hung])

    assert [("probe-hung", severity, "node", f"probe {probe}")] == [
        (f.rule, f.severity, f.subject, f.label) for f in findings
    ]
    assert STORY == findings[0].evidence[0].value
    assert severity == summary.verdict
    assert "fail" == checks[0].state


def test_two_drivers_that_hang_are_two_faults() -> None:
    """Each has its own fingerprint."""
    case = with_run(hung=True)
    both = replace(case, probes={**case.probes, "rdma": ProbeRun(name="rdma", status="timed_out", hung=True)})
    _, findings, _ = judge(both, [probe_hung])

    assert 2 == len({f.fingerprint for f in findings})


def test_a_probe_that_was_slow_and_could_be_ended_is_no_fault() -> None:
    """It is timed_out; the rules that needed it are unknown."""
    checks, findings, _ = judge(with_run(hung=False), [probe_hung])

    assert [] == findings
    assert "pass" == checks[0].state
