"""ib-sm-changed: what the last run noted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.report import History
from agent.rules.infiniband.subnet import ib_sm_changed as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_nic, changed_port, fails, nic_id, server
from tests.agent.rules.moves import PORT, one, severities


def noted(*ports: str, **was: str):
    """A machine whose last run noted other settings of these ports."""
    return replace(server(), history=History(runs=2, settings=dict.fromkeys(ports, was)))


FIRING = noted(PORT, sm_lid="7")


def test_another_subnet_manager_is_worth_a_word() -> None:
    """What it is and what it was."""
    (fault,) = fails(rule, FIRING)

    assert (PORT, "info") == (fault.subject, fault.severity)
    assert fault.summary == "the subnet manager's LID is 1, was 7"
    assert fault.evidence[0].source == "/sys/class/infiniband/mlx5_1/ports/1/sm_lid"
    (fault,) = fails(rule, noted(PORT, lid="3"))
    assert fault.summary == "its own LID is 11, was 3"


def test_the_same_on_every_port_is_one_finding() -> None:
    """A failover is seen by all."""
    assert [("node", "info")] == severities(rule, noted(*(f"port:{nic_id(n)}/1" for n in range(4)), sm_lid="7"))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(noted(), Pass, id="as it was"),
        pytest.param(noted(PORT, rate="400"), Pass, id="another setting"),
        pytest.param(changed_port(FIRING, 1, sm_lid=None), Pass, id="not read now"),
        pytest.param(changed_port(FIRING, 1, state="DOWN"), NotApplicable, id="not active"),
        pytest.param(changed_nic(FIRING, 1, role="unused"), NotApplicable, id="no role"),
        pytest.param(replace(FIRING, history=None), Unknown, id="no state directory"),
        pytest.param(replace(FIRING, history=History()), Unknown, id="no earlier run"),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    assert [] == fails(rule, case)
    assert isinstance(one(rule, case, PORT), kind)
