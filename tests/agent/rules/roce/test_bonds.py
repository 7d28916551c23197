"""roce-lag-on-rails and roce-lag-broken: when they fire, and every guard alone."""

from __future__ import annotations

from msgspec.structs import replace

from agent.model.nic import Nic
from agent.rules.roce.bonds import bonds, roce_lag_broken, roce_lag_on_rails
from tests.agent.rules.build import (
    changed_netdev,
    changed_nic,
    fails,
    nic_id,
    server,
)
from tests.agent.rules.roce.qos import NIC, bonded


def test_members_of_different_speeds_are_named() -> None:
    """One whose speed was not read is not."""
    context = bonded(server(ethernet=True), members=(0, 1, 2))
    for n, speed in enumerate((100.0, 200.0, None)):
        context = changed_netdev(context, n, speed_gbit_s=speed)
    (fault,) = fails(roce_lag_broken, context)

    assert ("speed", "its members run at different speeds: eth0 100, eth1 200") == (fault.cause, fault.summary)


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
