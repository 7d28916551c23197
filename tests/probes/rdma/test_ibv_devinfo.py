"""ibv_devinfo, plain and with -v, and ibv_devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.rdma.facts import GidEntry
from probes.rdma.ibv_devinfo import parse_ibv_devices, parse_ibv_devinfo
from tests.probes.rdma.tool_texts import IBV_DEVINFO


def test_cards_of_one_model_with_two_firmwares(corpus: Path) -> None:
    """A documented server holds two dual cards of one board, of which one is older."""
    (block,) = (corpus / "blocks/ibv_devinfo").iterdir()
    result = parse_ibv_devinfo(block.read_text())

    assert ["28.41.1000", "28.41.1000", "28.43.2566", "28.43.2566"] == [device.firmware for device in result.devices]
    assert {("MT_0000000834", "MT4129")} == {(device.board_id, device.hca_type) for device in result.devices}
    assert [1024, 1024, 4096, 4096] == [device.ports[0].active_mtu for device in result.devices]


def test_verbose_output_adds_rate_state_and_gids() -> None:
    """Compressed and IPv4 addresses become the eight groups that sysfs prints; a closing blank line ends the table."""
    result = parse_ibv_devinfo(IBV_DEVINFO)

    (port,) = result.devices[0].ports
    assert ("Ethernet", "LinkUp", "400 Gb/sec (4X NDR)") == (port.link_layer, port.phys_state, port.rate_text)
    assert port.gids_known
    assert (
        GidEntry(0, "fe80:0000:0000:0000:0002:c9ff:fea1:0010", "RoCE v2"),
        GidEntry(2, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "IB/RoCE v1"),
        GidEntry(3, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2"),
    ) == port.gids
    assert result.cut == ()


def test_gids_without_their_port_are_not_guessed() -> None:
    """The line that names the port was cut out: its GIDs belong to nobody, and that is said."""
    result = parse_ibv_devinfo(IBV_DEVINFO.replace("\t\tport:\t1\n", ""))

    assert () == result.devices[0].ports
    assert any("whose number is cut off" in note for note in result.cut)


@pytest.mark.parametrize(
    ("old", "new"), [("InfiniBand (0)", "unspecified (4)"), ("vendor_id:\t\t\t0x02c9", "vendor_id:\t\t\t0x1d0f")]
)
def test_ports_of_efa_are_no_infiniband(old: str, new: str) -> None:
    """Whatever link layer the output prints for them."""
    (device,) = parse_ibv_devinfo(IBV_DEVINFO.replace("Ethernet", "InfiniBand").replace(old, new)).devices
    assert ["Unknown"] == [port.link_layer for port in device.ports]


@pytest.mark.parametrize(("vendor", "software"), [("0x02c9", False), ("0xffffff", True), ("0x626d74", True)])
def test_software_devices_are_told_by_their_vendor_id(vendor: str, software: bool) -> None:
    """Soft RoCE and soft iWARP carry ids that no vendor has, whatever name they were given."""
    (device,) = parse_ibv_devinfo(IBV_DEVINFO.replace("0x02c9", vendor)).devices

    assert software == device.software
    assert (None if software else "MT4129") == device.hca_type


def test_iwarp_is_told_by_the_transport() -> None:
    """Rules on lossless Ethernet must know it."""
    (device,) = parse_ibv_devinfo(IBV_DEVINFO.replace("InfiniBand (0)", "iWARP (1)")).devices

    assert "RNIC" == device.node_type


def test_listed_devices_have_their_node_guid(corpus: Path) -> None:
    """The table comes with spaces or tabs, in any order."""
    folder = corpus / "text/ib-ibv_devices"
    ten = parse_ibv_devices((folder / "10dev-mixed-oui.txt").read_text()).devices
    four = parse_ibv_devices((folder / "mlx5-4dev-reverse-order.txt").read_text()).devices

    assert [f"mlx5_{number}" for number in range(10)] == [device.name for device in ten]
    assert {"58a2:e1": 8, "b83f:d2": 2} == {
        oui: sum((device.node_guid or "").startswith(oui) for device in ten) for oui in ("58a2:e1", "b83f:d2")
    }
    assert [("mlx5_3", "ec0d:9a03:00d3:730b"), ("mlx5_0", "248a:0703:0013:e908")] == [
        (device.name, device.node_guid) for device in (four[0], four[3])
    ]


def test_devices_that_could_not_be_opened_are_counted() -> None:
    whole = "hca_id:\tmlx5_0\n\tphys_port_cnt:\t1\n\t\tport:\t1\n\t\t\tstate:\t\tPORT_ACTIVE (4)\n\n"
    cut = parse_ibv_devinfo(whole).cut

    once = parse_ibv_devinfo("Failed to open device\n" + whole).cut
    assert (*cut, "ibv_devinfo: 1 device could not be opened") == once
    assert (*cut, "ibv_devinfo: 2 devices could not be opened") == (
        parse_ibv_devinfo("Failed to open device\n" + whole + "Failed to open device\n").cut
    )
