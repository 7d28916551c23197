"""roce-pfc-switch-mismatch: what the switch announces; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor
from agent.rules.roce.pfc import roce_pfc_switch_mismatch as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, fails
from tests.agent.rules.roce.qos import PORT, dcb, facts, roce, silent
from tests.agent.rules.rows import only

LEAF = {"system": "leaf7", "port": "swp9"}


def switch(pfc=(4,), **more):
    pfc = [] if pfc is None else only(*pfc)
    return changed_netdev(roce(), 1, neighbor=Neighbor(**LEAF, pfc=pfc, **more))


def test_another_class_at_the_switch_is_an_error() -> None:
    """Both values, and where the switch port is."""
    (fault,) = fails(rule, switch())

    assert (PORT, "error", "high", "pfc") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "the switch announces PFC on 4, here it is on for priority 3" == fault.summary
    assert fault.remedy == "Set the same class on the interface and on its switch port."
    assert ("what leaf7 swp9 announces", "PFC 4, RoCE priority None") == (
        fault.evidence[0].what,
        fault.evidence[0].value,
    )


def test_another_priority_for_roce() -> None:
    """PFC agrees, the class of UDP 4791 does not."""
    (fault,) = fails(rule, switch((3,), applications={"udp:4791": 5}))

    assert "priority" == fault.cause
    assert "the switch announces priority 5 for RoCE, RDMA here uses 3 (DSCP 26)" == fault.summary
    assert 1 == len(fails(rule, switch(None, applications={"udp:4791": 5})))


def test_severity_and_confidence() -> None:
    """Storage is less grave; firmware that negotiates may know better."""
    assert ["warning"] == [fault.severity for fault in fails(rule, changed_nic(switch(), 1, role="storage"))]
    assert ["medium"] == [fault.confidence for fault in fails(rule, dcb(switch(), dcbx="firmware"))]


def test_what_the_driver_knows_of_its_peer_counts_too() -> None:
    """Without LLDP."""
    case = changed_netdev(dcb(roce(), peer_pfc=only(4)), 1, neighbor=None)
    assert not case.topology.netdevs[1].neighbor

    assert ["what the switch announces"] == [fails(rule, case)[0].evidence[0].what]


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(switch((3,)), Pass, id="the same"),
        pytest.param(switch((3,), applications={"udp:4791": 3}), Pass, id="the same priority"),
        pytest.param(switch(None, applications={"udp:4791": 3}), Pass, id="only the priority told"),
        pytest.param(switch(None), Unknown, id="nothing told"),
        pytest.param(dcb(switch(None, applications={"udp:4791": 5}), trust=None), Unknown, id="our class not known"),
        pytest.param(changed_netdev(roce(), 1, neighbor=None), Unknown, id="no neighbour"),
        pytest.param(facts(switch(), roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(changed_netdev(switch(), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(changed_nic(switch(), 1, role="unused"), NotApplicable, id="unused"),
        pytest.param(
            switch((3,), prio_tc=list(range(8)), tc_bandwidth=[100, 0, 0, 0, 0, 0, 0, 0]), Pass, id="0% may be strict"
        ),
    ],
)
def test_a_guard_keeps_it_silent(case, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(rule, case, kind)
