"""roce-pfc-nic-asymmetry: a rail that differs; and every guard alone."""

from __future__ import annotations

import pytest

from agent.model.nic import Pause
from agent.rules.roce.pfc import roce_pfc_nic_asymmetry as rule
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import answers, changed_netdev, changed_nic, changed_port, fails, function, nic_id
from tests.agent.rules.roce.qos import NIC, PORT, dcb, dcb_everywhere, nccl_sets, roce, silent
from tests.agent.rules.rows import only

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
    (fault,) = fails(rule, dcb(roce(), **changes))

    assert (PORT, severity) == (fault.subject, fault.severity)
    assert fault.summary.startswith(told)
    assert fault.evidence[0].source.endswith("eth1")
    assert 1 == len(fault.evidence)


def test_pause_differs() -> None:
    """A warning; what could not be read is not compared."""
    (fault,) = fails(rule, changed_netdev(roce(), 1, pause=Pause(rx=True, tx=True)))

    assert ("warning", "ethtool -a eth1") == (fault.severity, fault.evidence[0].source)
    silent(rule, changed_netdev(roce(), 1, pause=Pause(rx=True)), Pass)


def test_several_differences_are_one_finding() -> None:
    """The gravest counts."""
    (fault,) = fails(rule, dcb(roce(), pfc=only(4), dcbx="firmware"))

    assert ("error", "PFC,DCBX owner") == (fault.severity, fault.cause)
    assert 2 == len(fault.evidence)


def test_without_a_majority_all_are_named() -> None:
    """Two and two: nobody knows which is right."""
    case = dcb(dcb(roce(), 0, pfc=only(4)), 1, pfc=only(4))
    (fault,) = fails(rule, case)

    assert ("node", "error", "PFC") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith("rails differ in PFC: 3 on mlx5_2/1 (eth2), mlx5_3/1 (eth3), 4 on mlx5_0/1")
    assert ["4", "4", "3", "3"] == [row.value for row in fault.evidence]
    assert "warning" == fails(rule, dcb(roce(2), dcbx="firmware"))[0].severity


def test_what_was_not_read_is_no_evidence() -> None:
    """Two and one; of the fourth nothing is known."""
    case = dcb(dcb(dcb(roce(), 0, trust="pcp"), 1, trust="pcp"), 2, trust=None)
    found = fails(rule, case)

    assert all("None" not in str(row.value) for fault in found for row in fault.evidence)


def test_the_good_one_among_lossy_ones_belongs_to_their_fault() -> None:
    """Its places are theirs, so that the rule of the cause stands alone."""
    case = dcb(dcb_everywhere(nccl_sets(roce(), NCCL_IB_TC="130"), pfc=only(3)), pfc=only(4))
    (fault,) = fails(rule, case)

    assert PORT == fault.subject
    assert f"{nic_id(3)}/1" in fault.places
    assert f"{nic_id(3)}/1" not in fails(rule, dcb(roce(), pfc=only(4)))[0].places


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
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """A rail whose trust differs, and this circumstance."""
    silent(rule, circumstance(dcb(roce(), trust="pcp")), kind)


def test_entries_for_priority_0_mean_nothing() -> None:
    """A DSCP without an entry goes there, too."""
    table = {dscp: priority for dscp, priority in TABLE.items() if priority}

    silent(rule, dcb(roce(), dscp_prio=table), Pass)
    (fault,) = fails(rule, dcb(roce(), dscp_prio={"0": 0}))
    assert fault.summary.startswith("DSCP table is all 0")


def test_a_single_rail_has_nothing_to_compare_with() -> None:
    """Not applicable."""
    (answer,) = answers(rule, roce(1), f"port:{nic_id(0)}/1")

    assert isinstance(answer, NotApplicable)


def test_the_odd_one_s_places_are_all_only_where_it_is_the_good_one() -> None:
    """A lossy one among lossless ones or lossy ones, and a good one among good ones, are their own matter."""
    lossy = dcb(roce(), pfc=only())
    good = dcb(roce(), dcbx="firmware")
    among = dcb(nccl_sets(roce(), NCCL_IB_TC="130"), dcbx="firmware")
    some = dcb(dcb(dcb_everywhere(nccl_sets(roce(), NCCL_IB_TC="130"), pfc=only(3)), pfc=only(4)), 2, pfc=only(4))

    for case in (lossy, good, among):
        (fault,) = fails(rule, case)
        assert f"{nic_id(3)}/1" not in fault.places
    assert all(fault.subject == "node" for fault in fails(rule, some))


def test_one_answer_for_each_of_several_that_differ_without_a_majority() -> None:
    """The node's; nobody is the odd one."""
    case = dcb(dcb(roce(), 0, pfc=only(4)), 1, pfc=only(4))

    assert ["node"] == [answer.subject for answer in rule.check(case)]


def test_what_one_alone_tells_is_compared_with_nothing() -> None:
    """Three rails whose DCBX owner was not read, and the fourth's."""
    silent(rule, dcb(dcb_everywhere(roce(), dcbx=None), dcbx="firmware"), Pass)


def test_two_of_three_are_most() -> None:
    """What was not read is not counted."""
    (fault,) = fails(rule, dcb(dcb(roce(), 0, trust=None), trust="pcp"))

    assert (PORT, "trust") == (fault.subject, fault.cause)
