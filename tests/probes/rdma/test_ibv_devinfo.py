"""ibv_devinfo, plain and with -v, and ibv_devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.facts import GidEntry
from probes.rdma.ibv_devinfo import parse_ibv_devices, parse_ibv_devinfo
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import damaged, says_only_what_is_true, understood

VERBOSE = """hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t28.41.1000
\tnode_guid:\t\t\t0002:c903:00a1:0010
\tsys_image_guid:\t\t\t0002:c903:00a1:0010
\tvendor_id:\t\t\t0x02c9
\tvendor_part_id:\t\t\t4129
\thw_ver:\t\t\t\t0x0
\tboard_id:\t\t\tMT_0000000838
\tphys_port_cnt:\t\t\t1
\tmax_mr_size:\t\t\t0xffffffffffffffff
\tdevice_cap_flags:\t\t0x21361c36
\t\t\t\t\tBAD_PKEY_CNTR
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tactive_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t1
\t\t\tport_lid:\t\t22
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tEthernet
\t\t\tpkey_tbl_len:\t\t1
\t\t\tgid_tbl_len:\t\t255
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t100.0 Gbps (128)
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80::2:c9ff:fea1:10, RoCE v2
\t\t\tGID[  2]:\t\t0000:0000:0000:0000:0000:ffff:c0a8:0105, IB/RoCE v1
\t\t\tGID[  3]:\t\t::ffff:192.168.1.5, RoCE v2

"""

# file -> (firmware, [(device, port, state, active MTU, link layer, lid, sm lid)])
CORPUS = {
    "2port-cx7-wrx90.txt": (
        "28.44.1036",
        [("mlx5_0", 1, "DOWN", 1024, "Ethernet", 0, 0), ("mlx5_1", 1, "DOWN", 1024, "Ethernet", 0, 0)],
    ),
    "cx3-2hca-port2-down.txt": (
        "2.42.5000",
        [
            ("mlx4_1", 1, "ACTIVE", 4096, "InfiniBand", 22, 1),
            ("mlx4_1", 2, "DOWN", 4096, "InfiniBand", 0, 0),
            ("mlx4_0", 1, "ACTIVE", 4096, "InfiniBand", 32, 18),
            ("mlx4_0", 2, "DOWN", 4096, "InfiniBand", 0, 0),
        ],
    ),
    "cx4lx-bond.txt": ("14.26.6000", [("mlx5_bond_0", 1, "ACTIVE", 4096, "Ethernet", 0, 0)]),
    "cx7-roce-2port-mtu1024.txt": (
        "28.39.1002",
        [("mlx5_2", 1, "ACTIVE", 1024, "Ethernet", 0, 0), ("mlx5_3", 1, "ACTIVE", 1024, "Ethernet", 0, 0)],
    ),
    # the index gives another firmware (216.0.220.0): the sample is right
    "v-bnxt-gidtype.txt": ("198.3.187.3", []),
}


@pytest.mark.parametrize("name", CORPUS)
def test_real_outputs_say_what_their_machines_had(corpus: Path, name: str) -> None:
    """Tabs, no-break spaces, a "Device ports:" line, dots where an author left lines out."""
    firmware, ports = CORPUS[name]
    result = parse_ibv_devinfo((corpus / "text/ib-ibv_devinfo" / name).read_text())

    assert {firmware} == {device.firmware for device in result.devices}
    assert ports == [
        (device.name, port.port, port.state, port.active_mtu, port.link_layer, port.lid, port.sm_lid)
        for device in result.devices
        for port in device.ports
    ]
    assert (name == "v-bnxt-gidtype.txt") == bool(result.cut)


def test_every_real_output_is_known(corpus: Path) -> None:
    """A new sample in the corpus asks for its row in the table."""
    assert set(CORPUS) == {file.name for file in (corpus / "text/ib-ibv_devinfo").iterdir()}


def test_cards_of_one_model_with_two_firmwares(corpus: Path) -> None:
    """A documented server holds two dual cards of one board, of which one is older."""
    (block,) = (corpus / "blocks/ibv_devinfo").iterdir()
    result = parse_ibv_devinfo(block.read_text())

    assert ["28.41.1000", "28.41.1000", "28.43.2566", "28.43.2566"] == [device.firmware for device in result.devices]
    assert {("MT_0000000834", "MT4129")} == {(device.board_id, device.hca_type) for device in result.devices}
    assert [1024, 1024, 4096, 4096] == [device.ports[0].active_mtu for device in result.devices]


def test_verbose_output_adds_rate_state_and_gids() -> None:
    """Compressed and IPv4 addresses become the eight groups that sysfs prints; a closing blank line ends the table."""
    result = parse_ibv_devinfo(VERBOSE)

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
    result = parse_ibv_devinfo(VERBOSE.replace("\t\tport:\t1\n", ""))

    assert () == result.devices[0].ports
    assert any("whose number is cut off" in note for note in result.cut)


@pytest.mark.parametrize(
    ("old", "new"), [("InfiniBand (0)", "unspecified (4)"), ("vendor_id:\t\t\t0x02c9", "vendor_id:\t\t\t0x1d0f")]
)
def test_ports_of_efa_are_no_infiniband(old: str, new: str) -> None:
    """Whatever link layer the output prints for them."""
    (device,) = parse_ibv_devinfo(VERBOSE.replace("Ethernet", "InfiniBand").replace(old, new)).devices
    assert ["Unknown"] == [port.link_layer for port in device.ports]


@pytest.mark.parametrize(("vendor", "software"), [("0x02c9", False), ("0xffffff", True), ("0x626d74", True)])
def test_software_devices_are_told_by_their_vendor_id(vendor: str, software: bool) -> None:
    """Soft RoCE and soft iWARP carry ids that no vendor has, whatever name they were given."""
    (device,) = parse_ibv_devinfo(VERBOSE.replace("0x02c9", vendor)).devices

    assert software == device.software
    assert (None if software else "MT4129") == device.hca_type


def test_iwarp_is_told_by_the_transport() -> None:
    """Rules on lossless Ethernet must know it."""
    (device,) = parse_ibv_devinfo(VERBOSE.replace("InfiniBand (0)", "iWARP (1)")).devices

    assert "RNIC" == device.node_type


@pytest.mark.parametrize("text", ["", "No IB devices found\n", "port: 1\n"])
def test_a_text_without_a_device_is_unparsable(text: str) -> None:
    """Nothing printed is no proof that there is nothing."""
    with pytest.raises(ParseError, match="hca_id"):
        parse_ibv_devinfo(text)


@given(st.integers(0, len(VERBOSE)))
def test_a_cut_output_says_only_what_is_true(length: int) -> None:
    """Wherever the text ends, no half number, word or table becomes a fact."""
    says_only_what_is_true(parse_ibv_devinfo, VERBOSE, length)


@given(damaged(VERBOSE) | st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: an answer, or ParseError."""
    understood(parse_ibv_devinfo, text)
    understood(parse_ibv_devices, text)


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
