"""roce-pfc-on-cnp-or-default: what else is paused; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.pfc import roce_pfc_on_cnp_or_default as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, nccl_sets, roce, silent, vlan
from tests.agent.rules.rows import only


def both(*priorities: int):
    return dcb(roce(), pfc=only(*(priorities or (3, 6))))


def test_paused_feedback_is_a_warning() -> None:
    """By the DSCP of CNPs where the port trusts DSCP."""
    (fault,) = fails(rule, both())

    assert (PORT, "warning", "cnp") == (fault.subject, fault.severity, fault.cause)
    assert "PFC covers congestion notification packets: on for priority 3, 6, RDMA uses priority 3" == fault.summary
    assert "DSCP 48, priority 6" == fault.evidence[-1].value
    assert 1 == len(fails(rule, dcb(both(3, 5), cnp_dscp=40)))
    assert [] == fails(rule, dcb(both(), cnp_dscp=56))


def test_paused_ordinary_traffic_is_a_warning() -> None:
    """Also where CNPs are not known."""
    (fault,) = fails(rule, dcb(both(0, 3), cnp_dscp=None, cnp_priority=None))

    assert "default" == fault.cause
    assert fault.summary.startswith("PFC covers ordinary traffic (priority 0)")
    assert "CNPs" not in "".join(row.what for row in fault.evidence)
    both_told = fails(rule, both(0, 3, 6))[0].summary
    assert "congestion notification packets and ordinary traffic" in both_told


def test_without_a_dscp_the_priority_of_cnps_counts() -> None:
    """Trust in PCP, or a DSCP that could not be read."""
    assert 1 == len(fails(rule, dcb(both(), cnp_dscp=None)))
    assert [] == fails(rule, dcb(both(), cnp_dscp=None, cnp_priority=7))


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(both(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: dcb(c, pfc=only()), NotApplicable, id="PFC off"),
        pytest.param(lambda c: dcb(c, pfc=only(3)), Pass, id="RDMA's class alone"),
        pytest.param(lambda c: dcb(c, cnp_dscp=24), Pass, id="CNPs share RDMA's class"),
        pytest.param(lambda c: dcb(c, pfc=only(3, 5), cnp_dscp=None, cnp_priority=None), Unknown, id="CNPs not known"),
        pytest.param(lambda c: dcb(c, pfc=only(3), cnp_dscp=None, cnp_priority=None), Pass, id="nothing else paused"),
        pytest.param(lambda c: dcb(c, trust=None), Unknown, id="RDMA's class not known"),
        pytest.param(lambda c: dcb(c, trust=None, pfc=only(3)), Pass, id="one class, whoever uses it"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(both()), kind)


def test_cnps_on_priority_0_are_told_once() -> None:
    """Not as ordinary traffic, too; with trust in PCP their priority counts, not their DSCP."""
    (fault,) = fails(rule, dcb(both(0, 3), cnp_dscp=0))

    assert "ordinary" not in fault.summary
    tagged = dcb(vlan(both(3, 6), "0:3"), cnp_dscp=48, cnp_priority=7)
    assert [] == fails(rule, dcb(tagged, pfc=only(3, 6)))
    assert 1 == len(fails(rule, dcb(dcb(tagged, pfc=only(3, 6)), cnp_priority=6)))


def test_rdma_on_priority_0_by_design() -> None:
    """Nothing marks, and PFC is on for 0."""
    silent(rule, dcb(nccl_sets(roce()), pfc=only(0)), Pass)
    silent(rule, dcb(nccl_sets(roce()), pfc=only(0, 3)), Pass)
