"""InfiniBand ports with their counters: which interfaces above them count."""

from __future__ import annotations

from agent.model.nic import Netdev
from agent.rules.infiniband.counters import ib_link_flap, ib_vl15_dropped
from agent.rules.rule import Pass, Unknown
from tests.agent.rules.build import changed_port, topology
from tests.agent.rules.moves import PORT, infiniband, moved, one, severities, without_window

DOWNS = {"carrier_down_count": 0}


def test_an_interface_that_is_not_in_sight_is_left_out() -> None:
    """It is in another network namespace: the port's own counters decide."""
    case = changed_port(infiniband(), 1, netdevs=["ib9"])

    assert Pass(PORT) == one(ib_link_flap, case, PORT)
    assert [(PORT, "error")] == severities(ib_link_flap, moved(case, PORT, {"link_downed": 3}))


def test_a_partition_above_the_interface_is_no_link() -> None:
    """A child of IPoIB goes down when somebody removes it; its parent has the cable."""
    parent = Netdev(id="ib1", label="ib1", counters=DOWNS)
    child = Netdev(id="ib1.8001", label="ib1.8001", vlan={"parent": "ib1"}, counters=DOWNS)
    case = changed_port(topology(infiniband(), netdevs=[parent, child]), 1, netdevs=["ib1", "ib1.8001"])

    assert Pass(PORT) == one(ib_link_flap, moved(case, "netdev:ib1.8001", {"carrier_down_count": 3}), PORT)
    assert [(PORT, "error")] == severities(ib_link_flap, moved(case, "netdev:ib1", {"carrier_down_count": 3}))


def test_a_node_that_is_not_judged_gets_one_answer() -> None:
    """Without an earlier sample."""
    assert [Unknown] == [type(answer) for answer in ib_vl15_dropped.check(without_window(infiniband()))]
