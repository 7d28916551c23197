"""Priority flow control: too many classes, the wrong class, NICs and switches that differ."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor, Pause
from agent.rules.roce.pfc import (
    roce_pfc_multi,
    roce_pfc_nic_asymmetry,
    roce_pfc_on_cnp_or_default,
    roce_pfc_switch_mismatch,
)
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, changed_port, fails, function, nic_id
from tests.agent.rules.roce.qos import NIC, PORT, dcb, dcb_everywhere, facts, limited, nccl_sets, roce, silent, vlan
from tests.agent.rules.rows import only

# roce-pfc-multi: how many classes are many; and every guard alone.


def many(*priorities: int):
    return dcb(roce(), pfc=only(*(priorities or (3, 4, 5))))


@pytest.mark.parametrize(
    ("priorities", "severity"),
    [((3,), None), ((3, 4), None), ((3, 4, 5), "warning"), (range(7), "warning"), (range(8), "error")],
)
def test_two_classes_are_fine_and_eight_are_an_error(priorities, severity) -> None:
    """GPU traffic and storage; all eight are global pause by another name."""
    assert ([severity] if severity else []) == [fault.severity for fault in fails(roce_pfc_multi, many(*priorities))]


def test_what_is_told() -> None:
    """The class of RDMA is the one to keep."""
    (fault,) = fails(roce_pfc_multi, many())

    assert (PORT, "PFC is on for 3 priorities (priority 3-5)", "") == (fault.subject, fault.summary, fault.cause)
    assert "--pfc 0,0,0,1,0,0,0,0" in fault.remedy
    assert "all" == fails(roce_pfc_multi, many(*range(8)))[0].cause
    assert "--pfc 0,0,0,1,0,0,0,0" in fails(roce_pfc_multi, many(2, 3, 4))[0].remedy
    assert "--pfc 0,0,0,0,1,0,0,0" in fails(roce_pfc_multi, many(4, 5, 6))[0].remedy


def test_the_operator_says_how_many() -> None:
    """The limit is a threshold."""
    assert [] == fails(roce_pfc_multi, limited(many(), "roce-pfc-multi.classes", 3))
    assert 1 == len(fails(roce_pfc_multi, limited(many(3, 4), "roce-pfc-multi.classes", 1)))


def test_storage_is_less_grave_for_pfc_multi() -> None:
    """One step below a rail."""
    assert ["info"] == [fault.severity for fault in fails(roce_pfc_multi, changed_nic(many(), 1, role="storage"))]


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
def test_a_guard_keeps_pfc_multi_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_pfc_multi, circumstance(many()), kind)


# roce-pfc-on-cnp-or-default: what else is paused; and every guard alone.


def both(*priorities: int):
    return dcb(roce(), pfc=only(*(priorities or (3, 6))))


def test_paused_feedback_is_a_warning() -> None:
    """By the DSCP of CNPs where the port trusts DSCP."""
    (fault,) = fails(roce_pfc_on_cnp_or_default, both())

    assert (PORT, "warning", "cnp") == (fault.subject, fault.severity, fault.cause)
    assert "PFC covers congestion notification packets: on for priority 3, 6, RDMA uses priority 3" == fault.summary
    assert "DSCP 48, priority 6" == fault.evidence[-1].value
    assert 1 == len(fails(roce_pfc_on_cnp_or_default, dcb(both(3, 5), cnp_dscp=40)))
    assert [] == fails(roce_pfc_on_cnp_or_default, dcb(both(), cnp_dscp=56))


def test_paused_ordinary_traffic_is_a_warning() -> None:
    """Also where CNPs are not known."""
    (fault,) = fails(roce_pfc_on_cnp_or_default, dcb(both(0, 3), cnp_dscp=None, cnp_priority=None))

    assert "default" == fault.cause
    assert fault.summary.startswith("PFC covers ordinary traffic (priority 0)")
    assert "CNPs" not in "".join(row.what for row in fault.evidence)
    both_told = fails(roce_pfc_on_cnp_or_default, both(0, 3, 6))[0].summary
    assert "congestion notification packets and ordinary traffic" in both_told


def test_without_a_dscp_the_priority_of_cnps_counts() -> None:
    """Trust in PCP, or a DSCP that could not be read."""
    assert 1 == len(fails(roce_pfc_on_cnp_or_default, dcb(both(), cnp_dscp=None)))
    assert [] == fails(roce_pfc_on_cnp_or_default, dcb(both(), cnp_dscp=None, cnp_priority=7))


def test_storage_is_less_grave_for_pfc_on_cnp_or_default() -> None:
    """One step below a rail."""
    assert ["info"] == [
        fault.severity for fault in fails(roce_pfc_on_cnp_or_default, changed_nic(both(), 1, role="storage"))
    ]


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
def test_a_guard_keeps_pfc_on_cnp_or_default_silent(circumstance, kind) -> None:
    """The firing case and this circumstance."""
    silent(roce_pfc_on_cnp_or_default, circumstance(both()), kind)


def test_cnps_on_priority_0_are_told_once() -> None:
    """Not as ordinary traffic, too; with trust in PCP their priority counts, not their DSCP."""
    (fault,) = fails(roce_pfc_on_cnp_or_default, dcb(both(0, 3), cnp_dscp=0))

    assert "ordinary" not in fault.summary
    tagged = dcb(vlan(both(3, 6), "0:3"), cnp_dscp=48, cnp_priority=7)
    assert [] == fails(roce_pfc_on_cnp_or_default, dcb(tagged, pfc=only(3, 6)))
    assert 1 == len(fails(roce_pfc_on_cnp_or_default, dcb(dcb(tagged, pfc=only(3, 6)), cnp_priority=6)))


def test_rdma_on_priority_0_by_design() -> None:
    """Nothing marks, and PFC is on for 0."""
    silent(roce_pfc_on_cnp_or_default, dcb(nccl_sets(roce()), pfc=only(0)), Pass)
    silent(roce_pfc_on_cnp_or_default, dcb(nccl_sets(roce()), pfc=only(0, 3)), Pass)


# roce-pfc-switch-mismatch: what the switch announces; and every guard alone.

LEAF = {"system": "leaf7", "port": "swp9"}


def switch(pfc=(4,), **more):
    pfc = [] if pfc is None else only(*pfc)
    return changed_netdev(roce(), 1, neighbor=Neighbor(**LEAF, pfc=pfc, **more))


def test_another_class_at_the_switch_is_an_error() -> None:
    """Both values, and where the switch port is."""
    (fault,) = fails(roce_pfc_switch_mismatch, switch())

    assert (PORT, "error", "high", "pfc") == (fault.subject, fault.severity, fault.confidence, fault.cause)
    assert "the switch announces PFC on 4, here it is on for priority 3" == fault.summary
    assert ("what leaf7 swp9 announces", "PFC 4, RoCE priority None") == (
        fault.evidence[0].what,
        fault.evidence[0].value,
    )


def test_another_priority_for_roce() -> None:
    """PFC agrees, the class of UDP 4791 does not."""
    (fault,) = fails(roce_pfc_switch_mismatch, switch((3,), applications={"udp:4791": 5}))

    assert "priority" == fault.cause
    assert "the switch announces priority 5 for RoCE, RDMA here uses 3 (DSCP 26)" == fault.summary
    assert 1 == len(fails(roce_pfc_switch_mismatch, switch(None, applications={"udp:4791": 5})))


def test_severity_and_confidence() -> None:
    """Storage is less grave; firmware that negotiates may know better."""
    assert ["warning"] == [
        fault.severity for fault in fails(roce_pfc_switch_mismatch, changed_nic(switch(), 1, role="storage"))
    ]
    assert ["medium"] == [fault.confidence for fault in fails(roce_pfc_switch_mismatch, dcb(switch(), dcbx="firmware"))]


def test_what_the_driver_knows_of_its_peer_counts_too() -> None:
    """Without LLDP."""
    context = changed_netdev(dcb(roce(), peer_pfc=only(4)), 1, neighbor=None)
    assert not context.topology.netdevs[1].neighbor

    assert ["what the switch announces"] == [fails(roce_pfc_switch_mismatch, context)[0].evidence[0].what]


@pytest.mark.parametrize(
    ("context", "kind"),
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
def test_a_guard_keeps_pfc_switch_mismatch_silent(context, kind) -> None:
    """No fault, and the answer that the page promises."""
    silent(roce_pfc_switch_mismatch, context, kind)


# roce-pfc-nic-asymmetry: a rail that differs; and every guard alone.

TABLE = {str(dscp): dscp // 8 for dscp in range(64)}


@pytest.mark.parametrize(
    ("changes", "severity", "told"),
    [
        ({"pfc": only(3, 4)}, "error", "PFC is 3-4, on the other rails 3"),
        ({"pfc": only()}, "error", "PFC is none, on the other rails 3"),
        ({"trust": "pcp"}, "error", "trust is pcp, on the other rails dscp"),
        ({"dscp_prio": {**TABLE, "46": 6}}, "error", "DSCP table is 1: 8-15"),
        ({"prio_tc": [0] * 8}, "error", "traffic class queues is 0,0,0,0,0,0,0,0"),
        ({"buffers": {"prio_buffer": [0] * 8, "size_bytes": [1, 2]}}, "warning", "receive buffers is 0,0,0"),
        ({"dcbx": "firmware"}, "warning", "DCBX owner is firmware, on the other rails host"),
    ],
)
def test_what_differs(changes, severity: str, told: str) -> None:
    """What loses packets is an error, the rest a risk."""
    (fault,) = fails(roce_pfc_nic_asymmetry, dcb(roce(), **changes))

    assert (PORT, severity) == (fault.subject, fault.severity)
    assert fault.summary.startswith(told)
    assert fault.evidence[0].source.endswith("eth1")
    assert 1 == len(fault.evidence)


def test_pause_differs() -> None:
    """A warning; what could not be read is not compared."""
    (fault,) = fails(roce_pfc_nic_asymmetry, changed_netdev(roce(), 1, pause=Pause(rx=True, tx=True)))

    assert ("warning", "ethtool -a eth1") == (fault.severity, fault.evidence[0].source)
    silent(roce_pfc_nic_asymmetry, changed_netdev(roce(), 1, pause=Pause(rx=True)), Pass)


def test_several_differences_are_one_finding() -> None:
    """The gravest counts."""
    (fault,) = fails(roce_pfc_nic_asymmetry, dcb(roce(), pfc=only(4), dcbx="firmware"))

    assert ("error", "PFC,DCBX owner") == (fault.severity, fault.cause)
    assert 2 == len(fault.evidence)


def test_without_a_majority_all_are_named() -> None:
    """Two and two: nobody knows which is right."""
    context = dcb(dcb(roce(), 0, pfc=only(4)), 1, pfc=only(4))
    (fault,) = fails(roce_pfc_nic_asymmetry, context)

    assert ("node", "error", "PFC") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith("rails differ in PFC: 3 on mlx5_2/1 (eth2), mlx5_3/1 (eth3), 4 on mlx5_0/1")
    assert ["4", "4", "3", "3"] == [row.value for row in fault.evidence]
    assert "warning" == fails(roce_pfc_nic_asymmetry, dcb(roce(2), dcbx="firmware"))[0].severity


def test_what_was_not_read_is_no_evidence() -> None:
    """Two and one; of the fourth nothing is known."""
    context = dcb(dcb(dcb(roce(), 0, trust="pcp"), 1, trust="pcp"), 2, trust=None)
    result = fails(roce_pfc_nic_asymmetry, context)

    assert all("None" not in str(row.value) for fault in result for row in fault.evidence)


def test_the_good_one_among_lossy_ones_belongs_to_their_fault() -> None:
    """Its places are theirs, so that the rule of the cause stands alone."""
    context = dcb(dcb_everywhere(nccl_sets(roce(), NCCL_IB_TC="130"), pfc=only(3)), pfc=only(4))
    (fault,) = fails(roce_pfc_nic_asymmetry, context)

    assert PORT == fault.subject
    assert f"{nic_id(3)}/1" in fault.ids
    assert f"{nic_id(3)}/1" not in fails(roce_pfc_nic_asymmetry, dcb(roce(), pfc=only(4)))[0].ids


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(lambda c: changed_nic(c, 1, role="storage"), NotApplicable, id="no rail"),
        pytest.param(lambda c: function(c, NIC, device="0x101b"), NotApplicable, id="another device id"),
        pytest.param(lambda c: changed_port(c, 1, state="DOWN"), NotApplicable, id="down"),
        pytest.param(lambda c: changed_netdev(c, 1, qos=None), Unknown, id="DCB not known"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_function=True), Unknown, id="virtual function"),
        pytest.param(lambda c: dcb(c, trust=None), Pass, id="a value that was not read"),
        pytest.param(
            lambda c: dcb(roce(), dscp_prio={}, prio_tc=[], buffers={}, dcbx=None), Pass, id="tables not read"
        ),
        pytest.param(lambda c: dcb_everywhere(c, trust="pcp"), Pass, id="all alike"),
    ],
)
def test_a_guard_keeps_pfc_nic_asymmetry_silent(circumstance, kind) -> None:
    """A rail whose trust differs, and this circumstance."""
    silent(roce_pfc_nic_asymmetry, circumstance(dcb(roce(), trust="pcp")), kind)


def test_entries_for_priority_0_mean_nothing() -> None:
    """A DSCP without an entry goes there, too."""
    table = {dscp: priority for dscp, priority in TABLE.items() if priority}

    silent(roce_pfc_nic_asymmetry, dcb(roce(), dscp_prio=table), Pass)
    (fault,) = fails(roce_pfc_nic_asymmetry, dcb(roce(), dscp_prio={"0": 0}))
    assert fault.summary.startswith("DSCP table is all 0")


def test_a_single_rail_has_nothing_to_compare_with() -> None:
    """Not applicable."""
    (answer,) = answers(roce_pfc_nic_asymmetry, roce(1), f"port:{nic_id(0)}/1")

    assert isinstance(answer, NotApplicable)


def test_the_odd_one_s_places_are_all_only_where_it_is_the_good_one() -> None:
    """A lossy one among lossless ones or lossy ones, and a good one among good ones, are their own matter."""
    lossy = dcb(roce(), pfc=only())
    good = dcb(roce(), dcbx="firmware")
    among = dcb(nccl_sets(roce(), NCCL_IB_TC="130"), dcbx="firmware")
    some = dcb(dcb(dcb_everywhere(nccl_sets(roce(), NCCL_IB_TC="130"), pfc=only(3)), pfc=only(4)), 2, pfc=only(4))

    for context in (lossy, good, among):
        (fault,) = fails(roce_pfc_nic_asymmetry, context)
        assert f"{nic_id(3)}/1" not in fault.ids
    assert all(fault.subject == "node" for fault in fails(roce_pfc_nic_asymmetry, some))


def test_one_answer_for_each_of_several_that_differ_without_a_majority() -> None:
    """The node's; nobody is the odd one."""
    context = dcb(dcb(roce(), 0, pfc=only(4)), 1, pfc=only(4))

    assert ["node"] == [answer.subject for answer in roce_pfc_nic_asymmetry.check(context)]


def test_what_one_alone_tells_is_compared_with_nothing() -> None:
    """Three rails whose DCBX owner was not read, and the fourth's."""
    silent(roce_pfc_nic_asymmetry, dcb(dcb_everywhere(roce(), dcbx=None), dcbx="firmware"), Pass)


def test_two_of_three_are_most() -> None:
    """What was not read is not counted."""
    (fault,) = fails(roce_pfc_nic_asymmetry, dcb(dcb(roce(), 0, trust=None), trust="pcp"))

    assert (PORT, "trust") == (fault.subject, fault.cause)
