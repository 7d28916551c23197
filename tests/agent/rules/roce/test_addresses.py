"""IP addresses and GIDs of RoCE ports."""

from __future__ import annotations

from agent.model.nic import Gid
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.addresses import roce_no_ip
from agent.rules.roce.interfaces import roce_netdev_missing
from tests.agent.rules.build import (
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    server,
)
from tests.agent.rules.roce.qos import NIC, PORT

# roce-no-ip, roce-netdev-missing: when they fire, and every guard alone.

LOCAL = [Gid(index=n, gid="FE80::1", type=kind, netdev="eth1") for n, kind in enumerate(("IB/RoCE v1", "RoCE v2"))]


def test_a_fabric_of_link_local_addresses_is_one_info() -> None:
    """All ports alike; a single one, too."""
    (fault,) = fails(roce_no_ip, changed_ports(server(ethernet=True), gids=LOCAL))
    (alone,) = fails(roce_no_ip, changed_ports(server(1, ethernet=True), gids=LOCAL))

    assert ("node", "info", "all", "low") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert "info" == alone.severity


def lost(**port):
    return changed_port(server(ethernet=True), 1, **({"netdevs": [], "gids": [], "state": "DOWN"} | port))


def test_an_interface_that_nobody_has_is_a_warning() -> None:
    """No GID is left; the port is down without it, and roce-link-down does not say it again."""
    (fault,) = fails(roce_netdev_missing, lost())
    _, findings, _ = judge(lost(), every_rule())

    assert (PORT, "warning", "lost") == (fault.subject, fault.severity, fault.cause)
    assert ["none", "0"] == [row.value for row in fault.evidence]
    assert {NIC, f"{NIC}/1"} <= fault.ids
    assert ["roce-netdev-missing"] == [f.rule for f in findings if f.severity != "info"]
    assert ["info"] == [f.severity for f in fails(roce_netdev_missing, changed_nic(lost(), 1, role="storage"))]


# roce-gid-v1-only: when it fires, when it must not, and every guard alone.

LOCAL_V1, ROUTED = "fe80:0000:0000:0000:0000:0000:0000:0001", "0000:0000:0000:0000:0000:ffff:0a00:0001"
