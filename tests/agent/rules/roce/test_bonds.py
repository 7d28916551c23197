"""roce-lag-on-rails and roce-lag-broken: when they fire, and every guard alone."""

from __future__ import annotations

from msgspec.structs import replace

from agent.model.nic import Nic
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.bonds import bonds, roce_lag_broken, roce_lag_on_rails
from agent.rules.rule import Pass
from tests.agent.rules.build import answers, changed_netdev, changed_nic, fails, nic_id, server, topology
from tests.agent.rules.roce.qos import NIC, bonded

BOND = "netdev:bond0"
SECOND = f"{NIC[:-1]}1"


def one_card(mode: str = "802.3ad", **second):
    """Both ports of one card in a bond, each with an RDMA device unless told otherwise."""
    context = bonded(server(ethernet=True), mode)
    nic, netdev = context.topology.nics[1], context.netdevs["eth1"]
    twin = replace(nic, **({"id": SECOND, "pci": SECOND, "label": "mlx5_9"} | second))
    port = replace(netdev, id=SECOND, pci=SECOND, nic=SECOND, label="eth9")
    return topology(context, nics=[*context.topology.nics, twin], netdevs=[*context.topology.netdevs, port])


def followed(mode: str = "802.3ad"):
    """The same, with one RDMA device for both."""
    context = one_card(mode, rdma_device=None, ports=[], role="auxiliary", bond="bond0")
    return changed_nic(context, 1, rdma_device="mlx5_bond_0", bond="bond0")


def test_a_rail_in_a_bond_is_an_info() -> None:
    """Mode and members are the evidence."""
    (fault,) = fails(roce_lag_on_rails, followed())

    assert (BOND, "bond0", "info") == (fault.subject, fault.label, fault.severity)
    assert ["802.3ad", "eth1 (up), eth9 (up)"] == [row.value for row in fault.evidence]
    assert {NIC, "bond0", f"{NIC}/1", SECOND} - {SECOND} <= fault.ids
    assert [Pass(BOND)] == answers(roce_lag_broken, followed(), BOND)


def test_a_member_that_is_down_is_a_warning_and_stands_for_the_bond() -> None:
    """Half of the bandwidth; that rails are bonded is not told again."""
    context = changed_netdev(bonded(server(ethernet=True), members=(0, 1)), 1, operstate="down")
    (fault,) = fails(roce_lag_broken, context)
    _, findings, _ = judge(context, every_rule())

    assert (BOND, "warning", "member") == (fault.subject, fault.severity, fault.cause)
    assert "eth1 is down; 1 of 2 members carry it" == fault.summary
    assert [f"roce-lag-on-rails {BOND}"] == next(f.absorbs for f in findings if f.rule == "roce-lag-broken")


def test_members_of_different_speeds_are_named() -> None:
    """One whose speed was not read is not."""
    context = bonded(server(ethernet=True), members=(0, 1, 2))
    for n, speed in enumerate((100.0, 200.0, None)):
        context = changed_netdev(context, n, speed_gbit_s=speed)
    (fault,) = fails(roce_lag_broken, context)

    assert ("speed", "its members run at different speeds: eth0 100, eth1 200") == (fault.cause, fault.summary)


def test_two_devices_on_one_card_are_a_warning() -> None:
    """RoCE does not follow the bond."""
    (fault,) = fails(roce_lag_broken, one_card())

    assert "devices" == fault.cause
    assert "mlx5_1, mlx5_9" in fault.summary
    assert "mlx5_1, mlx5_1" == fault.evidence[2].value


def test_a_bond_that_says_nothing() -> None:
    """A mode that was not read, or is no word."""
    (bond,) = bonds(bonded(server(ethernet=True), mode=""), ("rail",))
    outlier = replace(bond.netdev, bond={"mode": ["802.3ad"]})

    assert "" == bond.mode
    assert "" == replace(bond, netdev=outlier).mode
    assert isinstance(bond.nics[0], Nic)
    assert bond.nics[0].id == nic_id(1)


def test_a_bond_is_about_the_bus_of_its_nics_too() -> None:
    """A sub-function has an id of its own, and the place of its card."""
    context = changed_netdev(bonded(server(ethernet=True)), 1, id="eth1", nic="mlx5_core.sf.4")
    (fault,) = fails(roce_lag_on_rails, changed_nic(context, 1, id="mlx5_core.sf.4"))

    assert {"mlx5_core.sf.4", NIC} <= fault.ids
