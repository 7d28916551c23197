"""MTU, IP addresses and GIDs of RoCE ports and their interfaces."""

from __future__ import annotations

import msgspec
import pytest

from agent.model.nic import Gid
from agent.rules.catalogue import every_rule
from agent.rules.engine import judge
from agent.rules.roce.addresses import roce_gid_v1_only, roce_nccl_gid_default_old, roce_no_ip
from agent.rules.roce.interfaces import find_subnet, roce_mtu_mismatch, roce_mtu_small, roce_netdev_missing
from agent.rules.rule import NotApplicable, Pass, Unknown
from tests.agent.rules.build import (
    answers,
    changed_netdev,
    changed_nic,
    changed_nics,
    changed_port,
    changed_ports,
    fails,
    kinds,
    nic_id,
    probe,
    server,
    topology,
)
from tests.agent.rules.moves import moved, roce
from tests.agent.rules.nccl.nccl_case import using
from tests.agent.rules.roce.qos import NETDEV, NIC, NOT_ACTIVE, PORT, PROVIDERS, ROLES, UNSEEN

# roce-mtu-mismatch: when it fires, when it must not, and every guard alone.
LOCAL = [Gid(index=n, gid="FE80::1", type=kind, netdev="eth1") for n, kind in enumerate(("IB/RoCE v1", "RoCE v2"))]
LOCAL_V1, ROUTED = "fe80:0000:0000:0000:0000:0000:0000:0001", "0000:0000:0000:0000:0000:ffff:0a00:0001"
LIBRARY = "/usr/lib/libnccl.so.2.18.3"


def told(frame: int | None, gpus: int = 4):
    """A switch that announces its largest frame."""
    context = server(gpus, ethernet=True)
    neighbor = msgspec.structs.replace(context.topology.netdevs[1].neighbor, max_frame_bytes=frame)
    return changed_netdev(context, 1, neighbor=neighbor)


def oversize(frames: int, counter: str = "rx_oversize_pkts_phy"):
    """Frames that came in too large."""
    context = roce()
    counters = {**context.topology.netdevs[1].counters, counter: 7}
    return moved(changed_netdev(context, 1, counters=counters), NETDEV, {counter: frames})


def test_rails_that_differ_are_one_error() -> None:
    """Two packet sizes; the rail with the small MTU has a rule of its own, which stands for this one."""
    context = changed_netdev(server(ethernet=True), 1, mtu=1500)
    (fault,) = fails(roce_mtu_mismatch, context)
    _, findings, _ = judge(context, every_rule())

    assert ("node", "error", "rails") == (fault.subject, fault.severity, fault.cause)
    assert fault.summary.endswith("mlx5_1/1 (eth1) 1024")
    assert 4 == len(fault.evidence)
    explained = [f"peer-differs netdev:{nic_id(1)}", "roce-mtu-mismatch node"]
    assert [("roce-mtu-small", explained)] == [(f.rule, f.absorbs) for f in findings]


@pytest.mark.parametrize(
    ("circumstance", "kind"),
    [
        *ROLES,
        NOT_ACTIVE,
        *PROVIDERS,
        *UNSEEN,
        pytest.param(lambda c: changed_netdev(c, 1, mtu=None), Unknown, id="MTU not read"),
        pytest.param(lambda c: changed_netdev(c, 1, mtu=1500), Pass, id="as the switch says"),
        pytest.param(lambda c: changed_netdev(c, 1, neighbor=None), NotApplicable, id="nobody tells, first run"),
    ],
)
def test_a_guard_keeps_mtu_mismatch_silent(circumstance, kind) -> None:
    """The firing case of two rails and this circumstance: nothing on the port but the answer that is promised."""
    (answer,) = answers(roce_mtu_mismatch, circumstance(told(1518, gpus=2)), PORT)

    assert isinstance(answer, kind), answer


def test_only_counters_that_moved_are_evidence() -> None:
    """Beside the MTU."""
    context = oversize(10)
    counters = {**context.topology.netdevs[1].counters, "rx_oversize_pkts_buffer": 7}
    (fault,) = fails(roce_mtu_mismatch, changed_netdev(context, 1, counters=counters))

    assert ["rx_oversize_pkts_phy"] == [row.what for row in fault.evidence[1:]]


def test_a_number_of_four_digits_is_in_no_address() -> None:
    """A report may hold any text."""
    assert ("10.0.100.0/24", None) == (find_subnet("10.0.100.1/24"), find_subnet("10.0.1000.1/24"))


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.0.1/", "10.0.0.1/x", "10.0.0/24", "10.0.x.1/24"])
def test_what_is_no_address_with_a_length_is_in_no_network(address: str) -> None:
    """A report may hold any text."""
    assert find_subnet(address) is None


def test_all_addresses_are_no_network() -> None:
    """And a network of two addresses joins two ports with a cable."""
    assert (None, None, "10.0.0.0/30") == tuple(find_subnet(f"10.0.0.1/{bits}") for bits in (0, 31, 30))


# roce-mtu-small: when it fires, when it must not, and every guard alone.


def small(mtu: int = 1500):
    return changed_netdev(server(ethernet=True), 1, mtu=mtu)


def test_a_small_mtu_is_a_warning_on_the_interface() -> None:
    """1500 gives packets of 1024 bytes."""
    (fault,) = fails(roce_mtu_small, small())

    assert (NETDEV, "mlx5_1/1 (eth1)", "warning", "") == (fault.subject, fault.label, fault.severity, fault.cause)
    assert fault.summary.startswith("interface MTU 1500 limits the RoCE MTU to 1024")
    assert fault.impact.startswith("92.6% of the bytes are payload")
    assert ("1500", "/sys/class/net/eth1/mtu") == (fault.evidence[0].value, fault.evidence[0].source)


def test_infiniband_and_nothing_are_not_applicable() -> None:
    """One answer for the node; unknown where nobody looked."""
    bare = probe(topology(server(1), nics=[]), "rdma", "absent", "no class")

    assert {NotApplicable} == kinds(roce_mtu_small, server())
    assert {NotApplicable} == kinds(roce_mtu_small, bare)
    assert "unknown" == judge(probe(bare, "pci", "failed", "broken"), [roce_mtu_small])[0][0].state


def test_nics_whose_ports_nobody_read_may_speak_roce() -> None:
    """Without the RDMA probe nothing is said of them, and the engine says why."""
    unread = probe(changed_nics(server(1), ports=[]), "rdma", "denied", "no permission")

    assert [] == list(roce_mtu_small.check(unread))
    assert "unknown" == judge(unread, [roce_mtu_small])[0][0].state


# roce-no-ip, roce-netdev-missing: when they fire, and every guard alone.


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


def old_nccl(version: str | None = "2.18.3", ethernet: bool = True):
    return using(server(ethernet=ethernet), LIBRARY, version=version)


def test_what_is_told() -> None:
    """A warning with the library and GID 0."""
    (fault,) = fails(roce_nccl_gid_default_old, old_nccl())

    assert "warning" == roce_nccl_gid_default_old.severity
    assert f"{LIBRARY} (2.18.3)" == fault.evidence[0].value
    assert "GID 0 of mlx5_0/1 (eth0)" == fault.evidence[1].what
