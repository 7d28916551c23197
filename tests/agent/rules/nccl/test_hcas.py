"""NCCL's lists: prefix, whole name, port, all others."""

from __future__ import annotations

import msgspec
import pytest

from agent.rules.nccl.hcas import (
    active_ports,
    rdma_rails,
    read_hca_filter,
    report_no_rails,
)
from agent.rules.rule import NotApplicable, Unknown
from tests.agent.rules.build import (
    changed_nic,
    changed_port,
    changed_ports,
    probe,
    server,
    topology,
)

NAMES = ("mlx5_0", "mlx5_1", "mlx5_10", "eth0")


@pytest.mark.parametrize(
    ("value", "port", "taken"),
    [
        ("mlx5_1", 1, "mlx5_1 mlx5_10"),
        ("=mlx5_1", 1, "mlx5_1"),
        ("mlx5", 1, "mlx5_0 mlx5_1 mlx5_10"),
        ("^mlx5_1", 1, "mlx5_0 eth0"),
        ("^=mlx5_1", 1, "mlx5_0 mlx5_10 eth0"),
        ("=^mlx5_1", 1, ""),
        ("mlx5_0:1,eth", 1, "mlx5_0 eth0"),
        ("mlx5_0:2,eth", 1, "eth0"),
        ("mlx5_0:2,eth", 2, "mlx5_0 eth0"),
        ("mlx5_0:,x", 2, "mlx5_0"),
        ("mlx5_0:x", 1, ""),
        ("", 1, "mlx5_0 mlx5_1 mlx5_10 eth0"),
        (",,", 1, "mlx5_0 mlx5_1 mlx5_10 eth0"),
        ("^", 1, ""),
        (" mlx5_0", 1, ""),
        ("mlx5_0, mlx5_1", 1, "mlx5_0"),
        ("mlx5_0:1:2", 1, "mlx5_0"),
        (",mlx5_1", 1, "mlx5_1 mlx5_10"),
    ],
)
def test_a_list_takes_what_nccl_takes(value: str, port: int, taken: str) -> None:
    """By name and port."""
    assert taken.split() == [name for name in NAMES if read_hca_filter(value).takes(name, port)]


def test_ports_that_nccl_considers() -> None:
    """Active, InfiniBand or Ethernet, of a device that is here."""
    assert ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"] == [each.name for each in active_ports(server())]
    named_by_people = changed_nic(server(), 1, label="NIC 1")
    assert ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"] == [each.name for each in active_ports(named_by_people)]
    for changed in (
        changed_port(server(), 1, state="DOWN"),
        changed_port(server(), 1, link_layer="unspecified"),
        changed_nic(server(), 1, state="other_namespace"),
        changed_nic(server(), 1, rdma_device=None),
    ):
        assert ["mlx5_0", "mlx5_2", "mlx5_3"] == [each.name for each in active_ports(changed)]


def test_rails_of_ncc_s_own_rdma() -> None:
    """Not storage, software or a cloud's own."""
    for changes in ({"role": "storage"}, {"software": True}, {"driver": "efa"}):
        assert 3 == len(rdma_rails(changed_nic(server(), 1, **changes)))


def test_a_name_stands_for_a_device_whatever_its_port() -> None:
    """Of interfaces nobody knows a port, either."""
    assert read_hca_filter("mlx5_0:2").takes("mlx5_0")
    assert ["mlx5_0"] == read_hca_filter("mlx5_0:2").matching(("mlx5_0", 2), NAMES)


def test_the_port_is_told_where_there_are_several() -> None:
    """mlx5_0 and mlx5_0:2."""
    (port,) = server(1).topology.nics[0].ports
    two = changed_nic(server(1), 0, ports=[port, msgspec.structs.replace(port, port=2)])

    assert ["mlx5_0"] == [each.label for each in active_ports(server(1))]
    assert ["mlx5_0:1", "mlx5_0:2"] == [each.label for each in active_ports(two)]


def test_a_node_whose_devices_nobody_saw() -> None:
    """No GPU, or nobody knows; no rail, or nobody knows: one answer."""
    bare = topology(server(), gpus=[])
    quiet = changed_ports(server(), state="DOWN")
    hidden = probe(quiet, "rdma", "failed", "x")

    assert [NotApplicable("node", "no GPU")] == list(report_no_rails(bare))
    assert [NotApplicable("node", "no GPU")] == list(report_no_rails(topology(bare, nics=[])))
    assert [Unknown] == [type(a) for a in report_no_rails(probe(bare, "pci", "failed", "x"))]
    assert [NotApplicable("node", "no active RDMA rail")] == list(report_no_rails(quiet))
    assert [Unknown("node", "rdma: failed: x")] == list(report_no_rails(hidden))
    assert [NotApplicable("node", "no active RDMA rail")] == list(report_no_rails(topology(hidden, nics=[])))
    assert [] == list(report_no_rails(server()))
