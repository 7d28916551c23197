"""What rules about lossless classes say alike: evidence only of what was read, one finding only in the same words."""

from __future__ import annotations

import pytest

from agent.model.nic import Neighbor
from agent.rules.roce.lossless import roce_lossy
from agent.rules.roce.pfc import roce_pfc_multi
from agent.rules.roce.ports import RocePort, cabled_interfaces, report_hidden, roce_ports
from agent.rules.rule import Unknown
from tests.agent.rules.build import changed_netdev, changed_port, fails
from tests.agent.rules.roce.qos import NIC, PORT, dcb, dcb_everywhere, roce, traffic
from tests.agent.rules.rows import only


def mismatch(**changes):
    """A rail with PFC on another priority than that of RDMA, and something about its interface."""
    return changed_netdev(dcb(roce(), pfc=only(4)), 1, **changes)


@pytest.mark.parametrize(
    ("case", "row"),
    [
        pytest.param(mismatch(pause=None), "global pause of eth1", id="pause"),
        pytest.param(mismatch(neighbor=None), "PFC that", id="neighbor"),
        pytest.param(mismatch(neighbor=Neighbor(system="leaf1", port="swp1")), "PFC that", id="PFC of the switch"),
        pytest.param(dcb(mismatch(), prio_tc=[0, 1, 2]), "traffic class queue at eth1", id="queue of priority 3"),
        pytest.param(dcb(roce(), pfc=only(), trust=None), "trust of eth1", id="trust"),
    ],
)
def test_what_was_not_read_is_no_evidence(case, row: str) -> None:
    """The rest of the chain is."""
    (fault,) = fails(roce_lossy, case)
    said = [each.what for each in fault.evidence]

    assert "PFC of eth1" in said
    assert [] == [what for what in said if what.startswith(row)]


def test_a_fault_is_about_the_interface_too() -> None:
    """Its id is not always that of the NIC."""
    case = changed_port(changed_netdev(mismatch(), 1, id="eth1"), 1, netdevs=["eth1"])

    assert {NIC, f"{NIC}/1", "eth1"} == fails(roce_lossy, case)[0].places


def test_faults_in_other_words_are_not_one() -> None:
    """As grave and of one cause, but not the same."""
    case = dcb_everywhere(roce(), pfc=only(3, 4, 5))
    words = {
        "PFC is on for 3 priorities (priority 3-5)": 3,
        "PFC is on for 3 priorities (priority 2-4)": 1,
    }
    found = [fault.summary for fault in fails(roce_pfc_multi, dcb(case, pfc=only(2, 3, 4)))]

    assert words == {summary: found.count(summary) for summary in found}
    assert ["node"] == [fault.subject for fault in fails(roce_pfc_multi, case)]


def test_evidence_of_many_ports_is_cut() -> None:
    """Nobody reads more than 32 rows."""
    (fault,) = fails(roce_lossy, dcb_everywhere(roce(8), pfc=only(4)))

    assert 32 == len(fault.evidence)


def test_a_table_that_was_not_read_gives_no_class() -> None:
    """Bytes of the window show that RDMA is elsewhere; which DSCP would lead to priority 0 is not known."""
    (fault,) = fails(roce_lossy, traffic(dcb(roce(), pfc=only(0), dscp_prio={}), 5))

    assert "NCCL_IB_TC=4 * DSCP + 2 of the lossless class" in fault.remedy


def test_an_interface_out_of_sight_has_no_cables() -> None:
    """Of a container's, or nobody's."""
    hidden = changed_port(roce(), 1, netdevs=[])
    (port,) = [each for each in roce_ports(hidden) if isinstance(each, RocePort) and each.subject == PORT]
    (plain,) = [each for each in roce_ports(roce()) if isinstance(each, RocePort) and each.subject == PORT]

    assert [] == cabled_interfaces(hidden, port)
    assert ["eth1"] == [netdev.label for netdev in cabled_interfaces(roce(), plain)]
    assert isinstance(report_hidden(port), Unknown)
    assert report_hidden(plain) is None
