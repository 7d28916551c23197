"""roce-pfc-multi: how many classes are many; and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.pfc import roce_pfc_multi as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, limited, roce, silent
from tests.agent.rules.rows import only


def many(*priorities: int):
    return dcb(roce(), pfc=only(*(priorities or (3, 4, 5))))


@pytest.mark.parametrize(
    ("priorities", "severity"),
    [((3,), None), ((3, 4), None), ((3, 4, 5), "warning"), (range(7), "warning"), (range(8), "error")],
)
def test_two_classes_are_fine_and_eight_are_an_error(priorities, severity) -> None:
    """GPU traffic and storage; all eight are global pause by another name."""
    assert ([severity] if severity else []) == [fault.severity for fault in fails(rule, many(*priorities))]


def test_what_is_told() -> None:
    """The class of RDMA is the one to keep."""
    (fault,) = fails(rule, many())

    assert (PORT, "PFC is on for 3 priorities (priority 3-5)", "") == (fault.subject, fault.summary, fault.cause)
    assert "--pfc 0,0,0,1,0,0,0,0" in fault.remedy
    assert "all" == fails(rule, many(*range(8)))[0].cause
    assert "--pfc 0,0,0,1,0,0,0,0" in fails(rule, many(2, 3, 4))[0].remedy
    assert "--pfc 0,0,0,0,1,0,0,0" in fails(rule, many(4, 5, 6))[0].remedy


def test_the_operator_says_how_many() -> None:
    """The limit is a threshold."""
    assert [] == fails(rule, limited(many(), "roce-pfc-multi.classes", 3))
    assert 1 == len(fails(rule, limited(many(3, 4), "roce-pfc-multi.classes", 1)))


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["info"] == [fault.severity for fault in fails(rule, changed_nic(many(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: dcb(c, pfc=only()), NotApplicable, id="PFC off"),
        pytest.param(lambda c: dcb(c, pfc=only(3)), Pass, id="one class"),
        pytest.param(lambda c: dcb(c, pfc=[]), Unknown, id="PFC not read"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(many()), kind)
