"""roce-lag-on-rails and roce-lag-broken: when they fire, and every guard alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agent.model.nic import Nic
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.bonds import bonds, roce_lag_broken, roce_lag_on_rails
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    fails,
    kinds,
    nic_id,
    probe,
    server,
    topology,
    virtual,
)
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


@pytest.mark.parametrize(
    "circumstance",
    [
        virtual,
        lambda c: changed_nic(c, 1, role="storage"),
        lambda c: changed_nic(c, 1, role="management"),
        lambda c: changed_nic(c, 1, limited="mezz internal"),
        lambda c: changed_nic(c, 1, software=True),
        lambda c: changed_netdev(c, 1, master=None),
        lambda c: changed_netdev(c, 1, nic=None),
        lambda c: changed_netdev(c, 1, nic="0000:ff:00.0"),
        lambda c: topology(c, netdevs=[netdev for netdev in c.topology.netdevs if netdev.bond is None]),
        lambda c: changed_nic(c, 1, ports=[replace(c.topology.nics[1].ports[0], link_layer="IB")]),
        lambda c: topology(c, netdevs=[replace(netdev, bond=None) for netdev in c.topology.netdevs]),
    ],
)
def test_other_bonds_are_not_applicable(circumstance) -> None:
    """One answer for the node."""
    assert {NotApplicable} == kinds(roce_lag_on_rails, circumstance(bonded(server(ethernet=True))))


def test_storage_bonds_are_looked_at_for_faults_only() -> None:
    """They are built on purpose; a member that is down is an info."""
    context = changed_netdev(bonded(server(ethernet=True), members=(0, 1)), 1, operstate="down")
    context = changed_nic(changed_nic(context, 0, role="storage"), 1, role="storage")

    assert {NotApplicable} == kinds(roce_lag_on_rails, context)
    assert [(BOND, "info", "member")] == [(f.subject, f.severity, f.cause) for f in fails(roce_lag_broken, context)]


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


@pytest.mark.parametrize(
    ("mode", "cause"),
    [("balance-rr", "mode"), ("active-backup", None), ("balance-xor", None), ("802.3ad", None), ("", None)],
)
def test_modes_that_roce_follows(mode: str, cause: str | None) -> None:
    """Three of seven."""
    assert ([cause] if cause else []) == [fault.cause for fault in fails(roce_lag_broken, followed(mode))]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        pytest.param(virtual, NotApplicable, id="virtual machine"),
        pytest.param(lambda c: changed_nic(c, 1, virtual_functions=4), Pass, id="virtual functions in use"),
        pytest.param(lambda c: changed_netdev(c, 1, operstate=None), Unknown, id="state not read"),
        pytest.param(lambda c: changed_netdev(c, 1, driver="bnxt_en"), Pass, id="another driver"),
        pytest.param(lambda c: changed_netdev(c, 1, pci="0000:77:00.0"), Pass, id="two cards"),
        pytest.param(lambda c: changed_nic(c, 1, rdma_device="mlx5_bond_0"), Pass, id="the bond's own device"),
        pytest.param(lambda c: changed_nic(c, 1, rdma_device=None), Pass, id="one device"),
        pytest.param(lambda c: one_card(""), Pass, id="mode not read"),
        pytest.param(lambda c: bonded(server(ethernet=True), "balance-rr"), Pass, id="a single member"),
    ],
)
def test_a_guard_keeps_it_silent(circumstance, kind) -> None:
    """Two devices on one card, and this circumstance."""
    assert kind in kinds(roce_lag_broken, circumstance(one_card()))
    assert [] == fails(roce_lag_broken, circumstance(one_card()))


def test_all_members_down_is_the_ports_matter() -> None:
    """Nothing carries the bond: roce-link-down has it."""
    context = changed_netdev(bonded(server(ethernet=True)), 1, operstate="down")

    assert [] == fails(roce_lag_broken, context)


def test_a_bond_that_says_nothing() -> None:
    """A mode that was not read, or is no word."""
    (bond,) = bonds(bonded(server(ethernet=True), mode=""), ("rail",))
    outlier = replace(bond.netdev, bond={"mode": ["802.3ad"]})

    assert "" == bond.mode
    assert "" == replace(bond, netdev=outlier).mode
    assert isinstance(bond.nics[0], Nic)
    assert bond.nics[0].id == nic_id(1)


@pytest.mark.parametrize("rule", [roce_lag_on_rails, roce_lag_broken], ids=lambda rule: rule.name)
def test_what_was_not_read_may_be_in_a_bond(rule) -> None:
    """Nothing is said, and the engine gives the reason; a virtual machine's is certain."""
    blind = probe(topology(server(ethernet=True), netdevs=[]), "netdev", "denied", "EACCES")

    assert [] == list(rule.check(blind))
    assert {NotApplicable} == kinds(rule, virtual(blind))
    assert {NotApplicable} == kinds(rule, server(ethernet=True))


def test_a_bond_is_not_said_to_be_missing_beside_itself() -> None:
    """One answer, that of the bond."""
    assert [BOND] == [answer.subject for answer in roce_lag_on_rails.check(followed())]
    assert [BOND] == [answer.subject for answer in roce_lag_broken.check(followed())]


def test_a_bond_is_about_the_bus_of_its_nics_too() -> None:
    """A sub-function has an id of its own, and the place of its card."""
    context = changed_netdev(bonded(server(ethernet=True)), 1, id="eth1", nic="mlx5_core.sf.4")
    (fault,) = fails(roce_lag_on_rails, changed_nic(context, 1, id="mlx5_core.sf.4"))

    assert {"mlx5_core.sf.4", NIC} <= fault.ids
