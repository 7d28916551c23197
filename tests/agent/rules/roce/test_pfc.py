"""Flow control: too many classes, the wrong class, NICs and switches that differ; global pause, without PFC and beside
it; DCB settings that cannot be read or that firmware owns.
"""

from __future__ import annotations

from agent.model.nic import Neighbor, Pause
from agent.rules.roce.lossless import roce_dcb_unreadable, roce_dcbx_firmware_owned
from agent.rules.roce.pfc import (
    roce_pause_and_pfc,
    roce_pfc_multi,
    roce_pfc_nic_asymmetry,
    roce_pfc_on_cnp_or_default,
    roce_pfc_switch_mismatch,
)
from agent.rules.rule import Pass
from tests.agent.rules.build import changed_netdev, changed_nic, changed_port, fails, nic_id
from tests.agent.rules.roce.qos import PORT, dcb, dcb_everywhere, nccl_sets, roce, silent, vlan
from tests.agent.rules.rows import only

# roce-pfc-multi: how many classes are many; and every guard alone.
LEAF = {"system": "leaf7", "port": "swp9"}
TABLE = {str(dscp): dscp // 8 for dscp in range(64)}
COUNTED = {"rx_global_pause": 0, "tx_global_pause": 0}


def many(*priorities: int):
    return dcb(roce(), pfc=only(*(priorities or (3, 4, 5))))


def test_what_is_told() -> None:
    """The class of RDMA is the one to keep."""
    (fault,) = fails(roce_pfc_multi, many())

    assert (PORT, "PFC is on for 3 priorities (priority 3-5)", "") == (fault.subject, fault.summary, fault.cause)
    assert "--pfc 0,0,0,1,0,0,0,0" in fault.remedy
    assert "all" == fails(roce_pfc_multi, many(*range(8)))[0].cause
    assert "--pfc 0,0,0,1,0,0,0,0" in fails(roce_pfc_multi, many(2, 3, 4))[0].remedy
    assert "--pfc 0,0,0,0,1,0,0,0" in fails(roce_pfc_multi, many(4, 5, 6))[0].remedy


# roce-pfc-on-cnp-or-default: what else is paused; and every guard alone.


def both(*priorities: int):
    return dcb(roce(), pfc=only(*(priorities or (3, 6))))


def test_cnps_on_priority_0_are_told_once() -> None:
    """Not as ordinary traffic, too; with trust in PCP their priority counts, not their DSCP."""
    (fault,) = fails(roce_pfc_on_cnp_or_default, dcb(both(0, 3), cnp_dscp=0))

    assert "ordinary" not in fault.summary
    tagged = dcb(vlan(both(3, 6), "0:3"), cnp_dscp=48, cnp_priority=7)
    assert [] == fails(roce_pfc_on_cnp_or_default, dcb(tagged, pfc=only(3, 6)))
    assert 1 == len(fails(roce_pfc_on_cnp_or_default, dcb(dcb(tagged, pfc=only(3, 6)), cnp_priority=6)))


# roce-pfc-switch-mismatch: what the switch announces; and every guard alone.


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


# roce-pfc-nic-asymmetry: a rail that differs; and every guard alone.


def test_without_a_majority_all_are_named() -> None:
    """Two and two: nobody knows which is right."""
    context = dcb(dcb(roce(), 0, pfc=only(4)), 1, pfc=only(4))
    (fault,) = fails(roce_pfc_nic_asymmetry, context)

    assert ("node", "error", "PFC") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.startswith("rails differ in PFC: 3 on mlx5_2/1 (eth2), mlx5_3/1 (eth3), 4 on mlx5_0/1")
    assert ["4", "4", "3", "3"] == [row.value for row in fault.evidence]
    assert "warning" == fails(roce_pfc_nic_asymmetry, dcb(roce(2), dcbx="firmware"))[0].severity


def test_the_good_one_among_lossy_ones_belongs_to_their_fault() -> None:
    """Its places are theirs, so that the rule of the cause stands alone."""
    context = dcb(dcb_everywhere(nccl_sets(roce(), NCCL_IB_TC="130"), pfc=only(3)), pfc=only(4))
    (fault,) = fails(roce_pfc_nic_asymmetry, context)

    assert PORT == fault.subject
    assert f"{nic_id(3)}/1" in fault.ids
    assert f"{nic_id(3)}/1" not in fails(roce_pfc_nic_asymmetry, dcb(roce(), pfc=only(4)))[0].ids


def test_entries_for_priority_0_mean_nothing() -> None:
    """A DSCP without an entry goes there, too."""
    table = {dscp: priority for dscp, priority in TABLE.items() if priority}

    silent(roce_pfc_nic_asymmetry, dcb(roce(), dscp_prio=table), Pass)
    (fault,) = fails(roce_pfc_nic_asymmetry, dcb(roce(), dscp_prio={"0": 0}))
    assert fault.summary.startswith("DSCP table is all 0")


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


# roce-pause-and-pfc: both at once, where counters say so; and every guard alone.


def paused(**changes):
    values = {"pause": Pause(rx=True, tx=True), "counters": COUNTED} | changes
    return changed_netdev(roce(), 1, **values)


def test_both_at_once_are_a_warning() -> None:
    """The port, and both settings."""
    (fault,) = fails(roce_pause_and_pfc, paused())

    assert (PORT, "warning", "medium") == (fault.subject, fault.severity, fault.confidence)
    assert "global pause is on beside PFC (priority 3)" == fault.summary
    assert ["info"] == [fault.severity for fault in fails(roce_pause_and_pfc, changed_nic(paused(), 1, role="storage"))]


# roce-dcb-unreadable: what cannot be seen from here; and every guard alone.


def refused(context=None):
    return changed_netdev(context or roce(), 1, qos=None, qos_reason="EOPNOTSUPP: the driver has no DCB here")


def test_the_command_names_the_interface_where_it_has_one() -> None:
    """For people who look for themselves."""
    hidden = changed_port(roce(), 1, netdevs=[])

    assert "dcb pfc show dev eth1" == fails(roce_dcb_unreadable, refused())[0].evidence[0].source
    assert "dcb pfc show dev INTERFACE" == fails(roce_dcb_unreadable, hidden)[0].evidence[0].source


# roce-dcbx-firmware-owned: who negotiates; and every guard alone.


def test_the_firmware_in_charge_is_worth_knowing() -> None:
    """Info on its port."""
    (fault,) = fails(roce_dcbx_firmware_owned, dcb(roce(), dcbx="firmware", dcbx_modes=["ieee"]))

    assert (PORT, "info", "DCBX is run by the firmware of the NIC") == (fault.subject, fault.severity, fault.summary)
    assert ("firmware (ieee), PFC of the peer: not known", "dcb dcbx show dev eth1") == (
        fault.evidence[0].value,
        fault.evidence[0].source,
    )


def test_a_peer_shows_that_dcbx_runs() -> None:
    """Whoever owns it."""
    (fault,) = fails(roce_dcbx_firmware_owned, dcb(roce(), peer_pfc=only(3)))

    assert "DCBX is run with the switch" == fault.summary
    assert fault.evidence[0].value.endswith("PFC of the peer: 3")
    assert 1 == len(fails(roce_dcbx_firmware_owned, dcb(roce(), dcbx=None, peer_pfc=only(3))))
