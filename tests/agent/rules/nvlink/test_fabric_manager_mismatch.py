"""fabric-manager-mismatch: when it fires, when it must not, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.nvlink.services import fabric_manager_mismatch as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import fails, node, software, topology
from tests.agent.rules.fabric import FM, driver, hgx, service


def other(state: str = "inactive"):
    return service(hgx(), FM, state, "570.124.07")


@pytest.mark.parametrize(
    ("state", "severity"), [("active", "warning"), ("inactive", "critical"), ("failed", "critical")]
)
def test_the_last_number_counts(state: str, severity: str) -> None:
    """One that still runs will not start again."""
    (fault,) = fails(rule, other(state))

    assert (severity, "fabric manager 570.124.07, driver 570.124.06: they must be equal") == (
        fault.severity,
        fault.summary,
    )


def test_it_stands_for_a_manager_that_ended() -> None:
    """One finding."""
    _, findings, _ = judge(other(), every_rule())
    told = [(f.rule, f.absorbs) for f in findings if f.rule.startswith("fabric")]

    assert [("fabric-manager-mismatch", ["fabric-manager-down node"])] == told


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: driver(c, version="570.124.07"), Pass, id="equal"),
        pytest.param(lambda c: driver(c, version=None), Unknown, id="no driver version"),
        pytest.param(lambda c: service(c, FM, "active"), Unknown, id="no version of the manager"),
        pytest.param(lambda c: service(c, FM, "not_installed", "570.124.07"), NotApplicable, id="not installed"),
        pytest.param(lambda c: service(c, FM, "unknown", "570.124.07"), Unknown, id="state not known"),
        pytest.param(lambda c: software(c, services=[]), Unknown, id="services not read"),
        pytest.param(lambda c: topology(c, nvswitches=[]), NotApplicable, id="no switch"),
        pytest.param(lambda c: node(c, container="docker"), Unknown, id="container"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    (answer,) = rule.check(circumstance(other()))

    assert isinstance(answer, kind), answer
