"""NCCL's lists: prefix, whole name, port, all others."""

from __future__ import annotations

import pytest

from agent.rules.nccl.hcas import active_ports, rdma_rails, wanted
from tests.agent.rules.build import changed_nic, changed_port, server

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
    ],
)
def test_a_list_takes_what_nccl_takes(value: str, port: int, taken: str) -> None:
    """By name and port."""
    assert taken.split() == [name for name in NAMES if wanted(value).takes(name, port)]


def test_ports_that_nccl_considers() -> None:
    """Active, InfiniBand or Ethernet, of a device that is here."""
    assert ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"] == [each.name for each in active_ports(server())]
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
