"""IP addresses and GIDs of RoCE ports."""

from __future__ import annotations

from agent.model.nic import Gid
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.addresses import roce_gid_v1_only, roce_nccl_gid_default_old, roce_no_ip
from agent.rules.roce.interfaces import roce_netdev_missing
from tests.agent.rules.build import (
    changed_netdev,
    changed_nic,
    changed_port,
    changed_ports,
    fails,
    server,
)
from tests.agent.rules.nccl_case import using
from tests.agent.rules.roce.qos import NIC, PORT

# roce-no-ip, roce-netdev-missing: when they fire, and every guard alone.

LOCAL = [Gid(index=n, gid="FE80::1", type=kind, netdev="eth1") for n, kind in enumerate(("IB/RoCE v1", "RoCE v2"))]


def no_ip():
    return changed_netdev(changed_port(server(ethernet=True), 1, gids=LOCAL), 1, addresses=["fe80::1/64"])


def test_a_rail_without_an_address_is_a_warning() -> None:
    """Addresses and GIDs are the evidence."""
    (fault,) = fails(roce_no_ip, no_ip())

    assert (PORT, "warning", "", "high") == (fault.subject, fault.severity, fault.cause, fault.confidence)
    assert "2 GIDs, all link-local: eth1 has no IPv4 and no global IPv6 address" == fault.summary
    assert ["fe80::1/64", "FE80::1", "FE80::1"] == [row.value for row in fault.evidence]
    assert ["info"] == [f.severity for f in fails(roce_no_ip, changed_nic(no_ip(), 1, role="storage"))]


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


def with_rows(*rows: tuple[str, str | None]) -> list[Gid]:
    return [Gid(index=n, gid=gid, type=kind, netdev="eth1") for n, (gid, kind) in enumerate(rows)]


V1 = with_rows((LOCAL_V1, "IB/RoCE v1"), (ROUTED, "IB/RoCE v1"))


def only_v1():
    return changed_port(server(ethernet=True), 1, gids=V1)


def test_a_port_without_v2_is_an_error() -> None:
    """The table is the evidence."""
    (fault,) = fails(roce_gid_v1_only, only_v1())

    assert (PORT, "mlx5_1/1 (eth1)", "error", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert [f"{LOCAL_V1} IB/RoCE v1", f"{ROUTED} IB/RoCE v1"] == [row.value for row in fault.evidence]
    assert "/sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/0" == fault.evidence[0].source
    assert "passes no router" in fault.impact


# roce-nccl-gid-default-old: a running NCCL that takes GID 0.

LIBRARY = "/usr/lib/libnccl.so.2.18.3"


def old_nccl(version: str | None = "2.18.3", ethernet: bool = True):
    return using(server(ethernet=ethernet), LIBRARY, version=version)


def test_what_is_told() -> None:
    """A warning with the library and GID 0."""
    (fault,) = fails(roce_nccl_gid_default_old, old_nccl())

    assert "warning" == roce_nccl_gid_default_old.severity
    assert f"{LIBRARY} (2.18.3)" == fault.evidence[0].value
    assert "GID 0 of mlx5_0/1 (eth0)" == fault.evidence[1].what
