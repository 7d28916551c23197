"""Each cause, on each machine that it applies to, gives exactly the findings that it should."""

from __future__ import annotations

import msgspec
import pytest

from agent.config import Configuration
from agent.diagnose import ScanPlan, diagnose, evaluate_report
from agent.history.state import add_history, update_state
from agent.model.report import Report
from fixtures.loader import merge_tables
from tests.matrix.cases import Cause, causes, filled, overlaid, pairs


@pytest.mark.parametrize(("name", "shape"), pairs())
def test_a_cause_is_found_once_and_by_name(name: str, shape: str) -> None:
    """Nothing else is said of that machine above info."""
    cause = causes()[name]
    report = seen(cause, shape)
    told = [(f.rule, f.severity, f.subject) for f in report.findings if f.severity != "info"]

    assert sorted(filled(cause.finds, shape)) == sorted(told)
    infos = {(f.rule, f.subject) for f in report.findings if f.severity == "info"}
    assert set(filled(cause.informs, shape)) <= infos
    assert set(cause.unknown) <= {check.rule for check in report.checks if check.state == "unknown"}


def seen(cause: Cause, shape: str) -> Report:
    """The report of a machine that has this cause, with what a run on it as it was earlier knows."""
    plan = ScanPlan(configuration=msgspec.convert(cause.config, Configuration))
    if cause.earlier is None:
        return diagnose(overlaid(shape, cause.overlay), plan)[0]
    was, _ = diagnose(overlaid(shape, cause.earlier), plan)
    later = {"system": {"uptime_seconds": round(was.node.uptime_seconds or 0) + cause.seconds}}
    now, _ = diagnose(overlaid(shape, merge_tables(later, cause.overlay)), plan)
    return evaluate_report(add_history(update_state(None, was), now), plan.configuration)


def test_every_cause_is_on_a_machine() -> None:
    """A cause that fits nowhere tests nothing."""
    assert set(causes()) == {name for name, _ in pairs()}
