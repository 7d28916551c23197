"""Whether the class of RoCE packets is lossless: PFC, ECN, CNPs, and the same on all NICs."""

from __future__ import annotations

import pytest

from agent.model.nic import Pause
from agent.rules.roce.lossless import roce_class_mismatch, roce_cnp_class, roce_ecn_off, roce_pfc_off
from agent.rules.rule import Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, limited, lost, netdevs, roce, silent, traffic, window
from tests.agent.rules.rows import only

# roce-class-mismatch: marking and PFC that do not meet, and every guard alone.


def test_bytes_that_prove_another_class() -> None:
    """Whatever the marking leads to."""
    (fault,) = fails(roce_class_mismatch, traffic(roce(), 0))

    assert "RDMA uses priority 0 (most bytes of the window), PFC is on for priority 3" == fault.summary
    assert "ethtool -S eth1" in [row.source for row in fault.evidence]


# roce-cnp-class: where feedback travels; and every guard alone.


def test_one_port_that_differs() -> None:
    """From more than half of its kind."""
    (fault,) = fails(roce_cnp_class, dcb(roce(), cnp_dscp=46))

    assert (PORT, "info", "differs") == (fault.subject, fault.severity, fault.cause)
    assert "CNPs have DSCP 46, those of other ports 48" == fault.summary
    assert "/sys/class/net/eth1/ecn/roce_np/cnp_dscp" == fault.evidence[0].source
    assert [] == fails(roce_cnp_class, dcb(dcb(roce(), 0, cnp_dscp=46), cnp_dscp=46))
    assert [] == fails(roce_cnp_class, changed_nic(dcb(roce(), cnp_dscp=46), 1, role="storage"))


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"cnp_dscp": None, "cnp_priority": 3}, "DSCP not known, priority 3"),
        ({"cnp_dscp": 26, "cnp_priority": None}, "DSCP 26, priority not known"),
    ],
)
def test_what_was_not_read_is_said(changes, value: str) -> None:
    """Either of the two is enough to judge."""
    (fault,) = fails(roce_cnp_class, dcb(roce(), **changes))

    assert value == fault.evidence[0].value


# roce-ecn-off: congestion control that is off, or does not answer; and every guard alone.

ON, OFF = [True] * 8, [False] * 8
BUT_3 = [n != 3 for n in range(8)]


def ecn(np=ON, rp=ON, **changes):
    return dcb(roce(), ecn={"np": np, "rp": rp}, **changes)


def marked(marks: int = 10_000, answered: int = 0, **changes):
    """A driver that does not tell, and marks counted over the window."""
    context = dcb(roce(), ecn={}, **changes)
    context = changed_port(context, 1, hw_counters={"np_ecn_marked_roce_packets": marks, "np_cnp_sent": answered})
    return window(context, {PORT: {"np_ecn_marked_roce_packets": marks, "np_cnp_sent": answered}})


@pytest.mark.parametrize(
    ("context", "sides"),
    [
        pytest.param(ecn(np=BUT_3), "notification point", id="np"),
        pytest.param(ecn(rp=BUT_3), "reaction point", id="rp"),
        pytest.param(ecn(OFF, OFF), "notification point and reaction point", id="both"),
        pytest.param(ecn(np=only(5)), "notification point", id="on for another priority"),
    ],
)
def test_off_for_the_class_of_rdma_is_a_warning(context, sides: str) -> None:
    """Either side."""
    (fault,) = fails(roce_ecn_off, context)

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert f"ECN is off for priority 3: {sides}" == fault.summary
    assert (("PRIORITY", "3"),) == fault.values
    assert fault.evidence[0].source.startswith("/sys/class/net/eth1/ecn/roce_")


def test_severity() -> None:
    """Graver where nothing else protects; less on storage and where ECN may not be needed."""
    assert ["error"] == [fault.severity for fault in fails(roce_ecn_off, ecn(OFF, pfc=only()))]
    paused = changed_netdev(ecn(OFF, pfc=only()), 1, pause=Pause(rx=True, tx=True))
    assert ["warning"] == [fault.severity for fault in fails(roce_ecn_off, paused)]
    assert "; PFC is off, too" in fails(roce_ecn_off, ecn(OFF, pfc=only()))[0].summary
    assert ["info"] == [fault.severity for fault in fails(roce_ecn_off, changed_nic(ecn(OFF), 1, role="storage"))]
    for model in ("BlueField-3", "ConnectX-8"):
        assert ["info"] == [fault.severity for fault in fails(roce_ecn_off, changed_nic(ecn(OFF), 1, model=model))]


def test_marks_that_nobody_answers() -> None:
    """10000 in the window, and not one CNP."""
    (fault,) = fails(roce_ecn_off, marked())

    assert ("marks", "10000 marks of congestion were received and none was answered") == (fault.cause, fault.summary)
    assert ["10000", "0"] == [row.value for row in fault.evidence]
    silent(roce_ecn_off, marked(9_999), Unknown)
    silent(roce_ecn_off, marked(10_000, 1), Unknown)
    assert 1 == len(fails(roce_ecn_off, limited(marked(5), "roce-ecn-off.marks", 5)))
    silent(roce_ecn_off, marked(0), Unknown)


# roce-pfc-off: severity by what is known, and every guard alone.


def off():
    """One rail of four, and no neighbour seen: the others have PFC."""
    return dcb(netdevs(roce(), neighbor=None), pfc=only())


def off_everywhere():
    """As the factory sets it: nothing shows what is meant."""
    return dcb_everywhere(netdevs(roce(), neighbor=None), pfc=only(), trust="pcp")


def test_one_rail_without_pfc_is_an_error() -> None:
    """The others show that it is meant."""
    (fault,) = fails(roce_pfc_off, off())

    assert (PORT, "error", "meant") == (fault.subject, fault.severity, fault.cause)
    assert "PFC is off for every priority, and it is on at eth0,2,3" == fault.summary
    assert "mlnx_qos -i eth1 --pfc 0,0,0,1,0,0,0,0` (upstream: `dcb pfc set dev eth1" in fault.remedy
    assert "prio-pfc all:off 3:on" in fault.remedy
    assert "--trust" not in fault.remedy
    assert "ethtool -A" not in fault.remedy
    assert "roce_mode" not in fault.remedy


@pytest.mark.parametrize(("rails", "where"), [(5, "eth0,2-4"), (6, "5 other ports")])
def test_other_ports_are_named_or_counted(rails: int, where: str) -> None:
    """Sixteen of them are no sentence."""
    (fault,) = fails(roce_pfc_off, dcb(netdevs(roce(rails), neighbor=None), pfc=only()))

    assert f"PFC is off for every priority, and it is on at {where}" == fault.summary


def test_lost_packets_make_it_grave() -> None:
    """On the port that lost them."""
    result = {fault.subject: fault for fault in fails(roce_pfc_off, lost(off_everywhere()))}

    assert "error" == result[PORT].severity
    assert result[PORT].summary.endswith("and lost packets are counted")
    assert {"warning"} == {fault.severity for subject, fault in result.items() if subject != PORT}
