"""Ports: numbers only where they mean something."""

from __future__ import annotations

import pytest

from agent.assemble.rdma import build_ports
from agent.model.nic import Port
from probes.netdev.probe import Netdev
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaPort


def port(rdma_port: RdmaPort, *netdevs: Netdev) -> Port:
    """One port as a row."""
    return build_ports(RdmaDevice("mlx5_0", ports=(rdma_port,)), netdevs)[0]


def test_an_active_infiniband_port_has_rate_width_and_speed() -> None:
    """As the kernel prints it."""
    row = port(RdmaPort(1, "InfiniBand", "ACTIVE", "LinkUp", "400 Gb/sec (4X NDR)", lid=7))

    assert (400.0, "4X", "NDR", 7) == (row.rate_gbit_s, row.width, row.speed, row.lid)


@pytest.mark.parametrize("state", ["DOWN", "INIT", "ARMED", None])
def test_a_port_that_is_not_active_has_no_rate(state: str | None) -> None:
    """The kernel prints SDR for a port that is down."""
    row = port(RdmaPort(1, "InfiniBand", state, "Polling", "10 Gb/sec (4X SDR)"))

    assert (None, None, None) == (row.rate_gbit_s, row.width, row.speed)


def test_on_ethernet_the_interface_s_speed_counts_and_lanes_say_nothing() -> None:
    """The text is a translation there; where the interface is silent, its leading number serves."""
    rdma_port = RdmaPort(1, "Ethernet", "ACTIVE", rate_text="100 Gb/sec (4X EDR)")
    fast = port(rdma_port, Netdev("ens1", "0000:14:00.0", speed_mbit_s=200000))
    silent = port(rdma_port, Netdev("ens1", "0000:14:00.0"))

    assert (200.0, None, None) == (fast.rate_gbit_s, fast.width, fast.speed)
    assert (100.0, None, None) == (silent.rate_gbit_s, silent.width, silent.speed)


def test_two_ports_on_one_function_take_their_own_interfaces() -> None:
    """By dev_port."""
    device = RdmaDevice("mlx4_0", ports=(RdmaPort(2, "Ethernet", "ACTIVE"), RdmaPort(1, "Ethernet", "ACTIVE")))
    interfaces = [Netdev("b", dev_port=1, speed_mbit_s=40000), Netdev("a", dev_port=0, speed_mbit_s=10000)]

    assert [(1, 10.0, ["a"]), (2, 40.0, ["b"])] == [
        (row.port, row.rate_gbit_s, row.netdevs) for row in build_ports(device, interfaces)
    ]


def test_a_rate_that_is_no_rate_is_null() -> None:
    """Never a guess."""
    assert port(RdmaPort(1, "InfiniBand", "ACTIVE", rate_text="fast")).rate_gbit_s is None


@pytest.mark.parametrize(
    ("netdev_mtu", "active"), [(1500, 1024), (4192, 4096), (4191, 2048), (9000, 4096), (300, None), (None, None)]
)
def test_the_roce_mtu_is_what_fits_into_the_interface_s(netdev_mtu: int | None, active: int | None) -> None:
    """96 bytes are headers."""
    assert active == port(RdmaPort(1, "Ethernet"), Netdev("ens1", mtu=netdev_mtu)).active_mtu


def test_infiniband_takes_no_mtu_from_its_interface() -> None:
    """IPoIB's MTU is another thing."""
    assert port(RdmaPort(1, "InfiniBand"), Netdev("ib0", mtu=2044)).active_mtu is None


def test_tables_are_sorted_and_unread_ones_are_known_to_be_unread() -> None:
    """GIDs by index."""
    gids = (GidEntry(10, "fe80::a", "RoCE v2", "ens1"), GidEntry(9, "fe80::b"))
    read = port(RdmaPort(1, "Ethernet", gids=gids, gids_known=True, counters={"b": 2, "a": 1}))

    assert ([9, 10], True, ["a", "b"]) == ([gid.index for gid in read.gids], read.gids_known, list(read.counters))
    assert not port(RdmaPort(1)).gids_known


def test_an_unknown_link_layer_is_unspecified() -> None:
    """EFA says Unknown."""
    assert ["unspecified", None] == [port(RdmaPort(1, layer)).link_layer for layer in ("Unknown", None)]
