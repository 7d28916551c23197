"""roce-class-mismatch: marking and PFC that do not meet, and every guard alone."""

from __future__ import annotations

import pytest

from agent.rules.roce.lossless import roce_class_mismatch as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, probe
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, facts, nccl_sets, roce, silent, traffic, vlan
from tests.agent.rules.rows import only


def other_class():
    """PFC of rail 1 on priority 4; NCCL marks for 3."""
    return dcb(roce(), pfc=only(4))


def test_marking_that_leads_elsewhere_is_an_error() -> None:
    """The way from the marking to the priority is told, and both ways to mend it."""
    (fault,) = fails(rule, other_class())

    assert (PORT, "error", "high") == (fault.subject, fault.severity, fault.confidence)
    assert "traffic class 106 is DSCP 26: RDMA uses priority 3 (DSCP 26), PFC is on for priority 4" == fault.summary
    assert fault.remedy.startswith("set NCCL_IB_TC=130 in /etc/nccl.conf")
    assert "echo 130 > /sys/class/infiniband/mlx5_1/tc/1/traffic_class" in fault.remedy
    assert "mlnx_qos -i eth1 --pfc 0,0,0,1,0,0,0,0" in fault.remedy


def test_a_class_that_is_not_reached_by_any_dscp() -> None:
    """The remedy says what to compute."""
    (fault,) = fails(rule, dcb(other_class(), dscp_prio={"26": 3, "10": 1}))

    assert "NCCL_IB_TC=4 * DSCP + 2 of the lossless class" in fault.remedy


def test_bytes_that_prove_another_class() -> None:
    """Whatever the marking leads to."""
    (fault,) = fails(rule, traffic(roce(), 0))

    assert "RDMA uses priority 0 (most bytes of the window), PFC is on for priority 3" == fault.summary
    assert "ethtool -S eth1" in [row.source for row in fault.evidence]


def test_the_forced_class_counts_for_its_port() -> None:
    """Over what NCCL is told."""
    (fault,) = fails(rule, changed_port(roce(), 1, traffic_class=160))

    assert fault.summary.startswith("traffic class 160 is DSCP 40")
    assert "/sys/class/infiniband/mlx5_1/tc/1/traffic_class" == fault.evidence[0].source
    assert PORT == fault.subject


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["warning"] == [fault.severity for fault in fails(rule, changed_nic(other_class(), 1, role="storage"))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(
            lambda c: facts(dcb_everywhere(nccl_sets(c), pfc=only(4)), roce_traffic_class=130),
            Pass,
            id="declared class",
        ),
        pytest.param(lambda c: probe(nccl_sets(c), "nccl", "failed"), Unknown, id="marking not known"),
        pytest.param(lambda c: traffic(c, 4), Pass, id="bytes prove it"),
        pytest.param(lambda c: dcb(c, pfc=only()), Pass, id="PFC off: told elsewhere"),
        pytest.param(lambda c: dcb(c, pfc=only(3, 4)), Pass, id="class in use is on"),
        pytest.param(lambda c: dcb(c, trust="pcp"), Pass, id="trust PCP: told elsewhere"),
        pytest.param(lambda c: vlan(c, ""), Pass, id="VLAN: told elsewhere"),
        pytest.param(lambda c: dcb(c, trust=None), Unknown, id="trust not known"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(rule, circumstance(other_class()), kind)


def test_what_other_rules_tell_is_not_told_here() -> None:
    """Nothing set, and a slip."""
    assert [] == fails(rule, nccl_sets(roce()))
    assert [] == fails(rule, nccl_sets(roce(), NCCL_IB_TC="26"))
