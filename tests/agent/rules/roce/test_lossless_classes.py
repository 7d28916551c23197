"""Whether the class of RoCE packets is lossless: PFC, ECN, CNPs, and the same on all NICs."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor, Pause
from agent.rules.roce.lossless import roce_class_mismatch, roce_cnp_class, roce_ecn_off, roce_pfc_off
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, probe
from tests.agent.rules.roce.qos import (
    PORT,
    dcb,
    dcb_everywhere,
    facts,
    limited,
    lost,
    nccl_sets,
    netdevs,
    roce,
    silent,
    traffic,
    vlan,
    window,
)
from tests.agent.rules.rows import only

# roce-class-mismatch: marking and PFC that do not meet, and every guard alone.


def other_class():
    """PFC of rail 1 on priority 4; NCCL marks for 3."""
    return dcb(roce(), pfc=only(4))


def test_marking_that_leads_elsewhere_is_an_error() -> None:
    """The way from the marking to the priority is told, and both ways to mend it."""
    (fault,) = fails(roce_class_mismatch, other_class())

    assert (PORT, "error", "high") == (fault.subject, fault.severity, fault.confidence)
    assert "traffic class 106 is DSCP 26: RDMA uses priority 3 (DSCP 26), PFC is on for priority 4" == fault.summary
    assert (("TRAFFIC_CLASS", "130"),) == fault.values
    assert "mlnx_qos -i eth1 --pfc 0,0,0,1,0,0,0,0" in fault.remedy


def test_a_class_that_is_not_reached_by_any_dscp() -> None:
    """There is no value for the steps, which state what to compute."""
    (fault,) = fails(roce_class_mismatch, dcb(other_class(), dscp_prio={"26": 3, "10": 1}))

    assert () == fault.values


def test_bytes_that_prove_another_class() -> None:
    """Whatever the marking leads to."""
    (fault,) = fails(roce_class_mismatch, traffic(roce(), 0))

    assert "RDMA uses priority 0 (most bytes of the window), PFC is on for priority 3" == fault.summary
    assert "ethtool -S eth1" in [row.source for row in fault.evidence]


def test_the_forced_class_counts_for_its_port() -> None:
    """Over what NCCL is told."""
    (fault,) = fails(roce_class_mismatch, changed_port(roce(), 1, traffic_class=160))

    assert fault.summary.startswith("traffic class 160 is DSCP 40")
    assert "/sys/class/infiniband/mlx5_1/tc/1/traffic_class" == fault.evidence[0].source
    assert PORT == fault.subject


def test_storage_is_less_grave() -> None:
    """One step below a rail."""
    assert ["warning"] == [
        fault.severity for fault in fails(roce_class_mismatch, changed_nic(other_class(), 1, role="storage"))
    ]


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
def test_a_guard_keeps_class_mismatch_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_class_mismatch, circumstance(other_class()), kind)


def test_what_other_rules_tell_is_not_told_here() -> None:
    """Nothing set, and a slip."""
    assert [] == fails(roce_class_mismatch, nccl_sets(roce()))
    assert [] == fails(roce_class_mismatch, nccl_sets(roce(), NCCL_IB_TC="26"))


# roce-cnp-class: where feedback travels; and every guard alone.


@pytest.mark.parametrize(
    ("dscp", "cause"),
    [(24, "data"), (26, "data"), (0, "default"), (7, "default"), (48, None), (46, None), (56, None)],
)
def test_a_class_of_its_own_is_fine(dscp: int, cause) -> None:
    """Whatever number it has, alike on all ports."""
    result = fails(roce_cnp_class, dcb_everywhere(roce(), cnp_dscp=dscp))

    assert ([("node", "info", cause)] if cause else []) == [(f.subject, f.severity, f.cause) for f in result]


def test_one_port_that_differs() -> None:
    """From more than half of its kind."""
    (fault,) = fails(roce_cnp_class, dcb(roce(), cnp_dscp=46))

    assert (PORT, "info", "differs") == (fault.subject, fault.severity, fault.cause)
    assert "CNPs have DSCP 46, those of other ports 48" == fault.summary
    assert "/sys/class/net/eth1/ecn/roce_np/cnp_dscp" == fault.evidence[0].source
    assert [] == fails(roce_cnp_class, dcb(dcb(roce(), 0, cnp_dscp=46), cnp_dscp=46))
    assert [] == fails(roce_cnp_class, changed_nic(dcb(roce(), cnp_dscp=46), 1, role="storage"))


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: dcb(c, cnp_dscp=None, cnp_priority=None), Unknown, id="CNPs not known"),
        pytest.param(lambda c: dcb(c, trust=None), Unknown, id="RDMA's class not known"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: c, Pass, id="healthy"),
        pytest.param(lambda c: dcb(c, cnp_dscp=None), Pass, id="a DSCP that was not read differs from none"),
        pytest.param(
            lambda c: traffic(dcb(c, dscp_prio={}), 3), Pass, id="without a DSCP table their own priority counts"
        ),
    ],
)
def test_a_guard_keeps_cnp_class_silent(circumstance, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_cnp_class, circumstance(roce()), kind)


def test_ports_that_do_not_tell_have_no_vote() -> None:
    """Two of the three that tell are most of them."""
    context = dcb(dcb(roce(), 0, cnp_dscp=None), 1, cnp_dscp=46)

    assert [(PORT, "differs")] == [(fault.subject, fault.cause) for fault in fails(roce_cnp_class, context)]


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


def test_where_the_class_is_not_known_all_eight_must_be_off() -> None:
    """Off for some proves nothing."""
    (fault,) = fails(roce_ecn_off, ecn(OFF, trust=None))

    assert "ECN is off for every priority: notification point" == fault.summary
    assert () == fault.values
    silent(roce_ecn_off, ecn(BUT_3, trust=None), Unknown)
    silent(roce_ecn_off, ecn(trust=None), Pass)


def test_marks_that_nobody_answers() -> None:
    """10000 in the window, and not one CNP."""
    (fault,) = fails(roce_ecn_off, marked())

    assert ("marks", "10000 marks of congestion were received and none was answered") == (fault.cause, fault.summary)
    assert ["10000", "0"] == [row.value for row in fault.evidence]
    silent(roce_ecn_off, marked(9_999), Unknown)
    silent(roce_ecn_off, marked(10_000, 1), Unknown)
    assert 1 == len(fails(roce_ecn_off, limited(marked(5), "roce-ecn-off.marks", 5)))
    silent(roce_ecn_off, marked(0), Unknown)


@pytest.mark.parametrize(
    ("context", "kind"),
    [
        pytest.param(ecn(), Pass, id="on"),
        pytest.param(ecn(only(3), only(3)), Pass, id="on for RDMA"),
        pytest.param(dcb(roce(), ecn={}), Unknown, id="not told"),
        pytest.param(dcb(roce(), ecn={"np": ON}), Unknown, id="half told"),
        pytest.param(dcb(roce(), ecn={"np": [True], "rp": [True]}), Unknown, id="cut short"),
        pytest.param(ecn([True] * 3, [True] * 3), Unknown, id="cut short before RDMA's priority"),
        pytest.param(ecn([False] * 3, [False] * 3), Unknown, id="off as far as it goes"),
        pytest.param(changed_netdev(ecn(OFF), 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(changed_nic(ecn(OFF), 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(changed_nic(ecn(OFF), 1, role="unused"), NotApplicable, id="unused"),
    ],
)
def test_a_guard_keeps_ecn_off_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_ecn_off, context, kind)


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


@pytest.mark.parametrize("pause", [Pause(rx=True, tx=False), Pause(rx=False, tx=True)])
def test_half_a_pause_is_to_be_switched_off(pause) -> None:
    """It does not protect both directions, and PFC takes its place."""
    (fault,) = fails(roce_pfc_off, changed_netdev(off(), 1, pause=pause))

    assert "global pause off: `ethtool -A eth1 rx off tx off" in fault.remedy


def test_nowhere_and_nothing_known_asks() -> None:
    """A warning for the node; with trust to be set too."""
    (fault,) = fails(roce_pfc_off, off_everywhere())

    assert ("node", "warning", "") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith("PFC is off for every priority; lossy by design?")
    assert "mlnx_qos -i INTERFACE --trust dscp" in fault.remedy  # of every interface


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossless"), "error", id="declared"),
        pytest.param(lambda c: netdevs(c, neighbor=Neighbor(system="leaf", pfc=only(5))), "error", id="switch"),
        pytest.param(
            lambda c: netdevs(c, neighbor=Neighbor(system="leaf", pfc=only())), "warning", id="switch has none"
        ),
        pytest.param(lambda c: changed_nic(c, 1, role="storage"), "info", id="storage"),
    ],
)
def test_what_is_meant_makes_it_grave(change, severity: str) -> None:
    """An error where somebody says that loss is not meant."""
    assert severity in {fault.severity for fault in fails(roce_pfc_off, change(off_everywhere()))}


def test_lost_packets_make_it_grave() -> None:
    """On the port that lost them."""
    result = {fault.subject: fault for fault in fails(roce_pfc_off, lost(off_everywhere()))}

    assert "error" == result[PORT].severity
    assert result[PORT].summary.endswith("and lost packets are counted")
    assert {"warning"} == {fault.severity for subject, fault in result.items() if subject != PORT}


def test_the_remedy_takes_the_class_of_the_switch() -> None:
    """Else that of other rails, else 3."""
    context = netdevs(off_everywhere(), neighbor=Neighbor(system="leaf", pfc=only(5)))

    assert "--pfc 0,0,0,0,0,1,0,0" in fails(roce_pfc_off, context)[0].remedy
    assert "--pfc 0,0,0,1,0,0,0,0" in fails(roce_pfc_off, off_everywhere())[0].remedy
    assert "--pfc 0,0,0,0,1,0,0,0" in fails(roce_pfc_off, dcb(off_everywhere(), 0, pfc=only(4)))[0].remedy


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: facts(c, roce_mode="lossy"), NotApplicable, id="declared lossy"),
        pytest.param(
            lambda c: netdevs(
                dcb_everywhere(c, pfc=only()), neighbor=Neighbor(system="leaf", applications={"udp:4791": 3})
            ),
            NotApplicable,
            id="lossy by the switch",
        ),
        pytest.param(lambda c: changed_netdev(c, 1, pause=Pause(rx=True, tx=True)), Pass, id="global pause"),
        pytest.param(lambda c: changed_netdev(c, 1, pause=None), Unknown, id="pause not read"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: changed_nic(c, 1, state="other_namespace"), Unknown, id="namespace"),
        pytest.param(lambda c: dcb(c, pfc=[]), Unknown, id="PFC not read"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None, qos_reason="EOPNOTSUPP"), Unknown, id="no DCB"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="down"),
        pytest.param(lambda c: changed_nic(c, 1, role="management"), NotApplicable, id="management"),
        pytest.param(lambda c: changed_nic(c, 1, driver="mana"), NotApplicable, id="cloud"),
        pytest.param(lambda c: dcb(c, pfc=only(3)), Pass, id="on"),
    ],
)
def test_a_guard_keeps_pfc_off_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_pfc_off, circumstance(off()), kind)
