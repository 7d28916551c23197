"""RoCE ports and the wires below them: which interfaces are judged, and what a fault of one is about."""

from __future__ import annotations

from agent.rules.roce.counters import roce_rt_crc
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import changed_netdev, fails, nic_id
from tests.agent.rules.moves import NETDEV, PORT, bond, moved, one, roce, without_window

ERRORS = {"rx_crc_errors_phy": 10}
OTHERS = [f"port:{nic_id(n)}/1" for n in (0, 2, 3)]


def test_of_a_bond_its_members_are_judged_and_nothing_else() -> None:
    """Neither the bond itself nor interfaces of other ports; the port has no answer of its own."""
    subjects = [answer.subject for answer in roce_rt_crc.check(bond(roce()))]

    assert sorted([NETDEV, *OTHERS]) == sorted(subjects)


def test_a_bond_whose_members_are_not_in_sight_is_unknown() -> None:
    """They are in another network namespace."""
    case = changed_netdev(bond(moved(roce(), NETDEV, ERRORS)), 1, master=None)

    assert isinstance(one(roce_rt_crc, case, PORT), Unknown)
    assert [] == fails(roce_rt_crc, case)


def test_a_fault_is_about_the_port_and_its_interface() -> None:
    """Told by the name of the port, found by either."""
    case = changed_netdev(roce(), 1, id="eth1 of 25:00.0")
    (fault,) = fails(roce_rt_crc, moved(case, "netdev:eth1 of 25:00.0", ERRORS))

    assert (PORT, "mlx5_1/1 (eth1)") == (fault.subject, fault.label)
    assert {"eth1 of 25:00.0", PORT.removeprefix("port:")} <= fault.places


def test_a_node_that_is_not_judged_gets_one_answer() -> None:
    """Without an earlier sample; with one every port has an answer."""
    assert [Unknown] == [type(answer) for answer in roce_rt_crc.check(without_window(roce()))]
    assert {Pass(subject) for subject in (PORT, *OTHERS)} == set(roce_rt_crc.check(roce()))
