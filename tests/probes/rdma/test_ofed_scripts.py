"""ibdev2netdev: which interface a port has; show_gids: the used GIDs of every port, and whether they are all."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.rdma.facts import GidEntry
from probes.rdma.ofed_scripts import parse_ibdev2netdev, parse_show_gids
from tests.probes.rdma.tool_texts import IBDEV2NETDEV, SHOW_GIDS


def interfaces(text: str) -> dict[tuple[str, int], tuple[str, ...]]:
    return {
        (device.name, port.port): port.netdevs for device in parse_ibdev2netdev(text).devices for port in device.ports
    }


def test_dual_port_cards(corpus: Path) -> None:
    """Each port has its own interface."""
    assert {("mlx4_0", 1): ("ib0",), ("mlx4_0", 2): ("ib1",), ("mlx4_1", 1): ("ib2",), ("mlx4_1", 2): ("ib3",)} == (
        interfaces((corpus / "text/ib-ibdev2netdev/cx3-4port-ib.txt").read_text())
    )


@pytest.mark.parametrize(
    ("name", "bonded"),
    [
        ("roce-12port-two-bonds.txt", {"mlx5_3", "mlx5_9"}),
        ("roce-12port-other-chassis.txt", {"mlx5_1", "mlx5_7"}),
    ],
)
def test_two_ports_can_share_a_bond(corpus: Path, name: str, bonded: set[str]) -> None:
    """Twelve ports each, of which two are under bond0, on two chassis that number them differently."""
    result = interfaces((corpus / "text/ib-ibdev2netdev" / name).read_text())

    assert 12 == len(result)
    assert bonded == {device for (device, _), netdevs in result.items() if netdevs == ("bond0",)}


def test_a_transcript_of_other_commands_is_read(corpus: Path) -> None:
    """What ibswitches prints below is none of it."""
    (block,) = (corpus / "blocks/ibdev2netdev").glob("*ibswitches*")

    assert {(f"mlx5_{number}", 1): (f"ib{number}",) for number in range(4)} == interfaces(block.read_text())


def test_the_verbose_form_adds_address_and_firmware() -> None:
    """-v begins with the PCI address; the plain form says neither."""
    devices = {device.name: device for device in parse_ibdev2netdev(IBDEV2NETDEV).devices}

    assert ("0000:84:00.0", "12.12.0780") == (devices["mlx5_2"].address, devices["mlx5_2"].firmware)
    assert (None, None) == (devices["mlx5_0"].address, devices["mlx5_0"].firmware)


def test_a_port_without_interface_is_a_port() -> None:
    """The interface is in another namespace: the arrow points at its state alone."""
    result = parse_ibdev2netdev("mlx5_1 port 1 ==>  (Down)\n")

    assert () == result.devices[0].ports[0].netdevs
    assert () == result.cut


def test_words_behind_the_state_hide_no_interface() -> None:
    """Scripts and people add a note to a line."""
    result = parse_ibdev2netdev("mlx5_1 port 1 ==> eth1 (Up) # rail 1\n")

    assert ("eth1",) == result.devices[0].ports[0].netdevs
    assert () == result.cut


def test_a_cut_line_is_named() -> None:
    """Half a name is no interface."""
    result = parse_ibdev2netdev(IBDEV2NETDEV + "mlx5_11 port 1 ==> ens115n")

    assert ("ibdev2netdev: the line of mlx5_11 port 1 is cut off",) == result.cut
    assert () == result.devices[-1].ports[0].netdevs


def test_a_row_is_read_whole() -> None:
    """An IPv4 address stands between the GID and its version, or does not."""
    ports = [device.ports[0] for device in parse_show_gids(SHOW_GIDS).devices]

    assert GidEntry(3, "0000:0000:0000:0000:0000:ffff:c0a8:0105", "RoCE v2", "rdma0") == ports[0].gids[2]
    assert GidEntry(0, "fe80:0000:0000:0000:0002:c903:00a1:0011", "IB/RoCE v1", None) == ports[1].gids[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SHOW_GIDS.replace("=4", "=9"), "show_gids: 9 GIDs were found, the text holds 4"),
        (SHOW_GIDS[: SHOW_GIDS.index("n_gids")], "show_gids: the closing count is missing, the table may be cut off"),
    ],
)
def test_a_table_that_is_not_whole_is_named(text: str, why: str) -> None:
    """The closing count tells how many rows there must be."""
    result = parse_show_gids(text)

    assert (why,) == result.cut
    assert not any(port.gids_known for device in result.devices for port in device.ports)


def test_an_empty_table_is_an_answer() -> None:
    """The head with a count of none says that there are no GIDs."""
    assert ((), ()) == parse_show_gids("".join(SHOW_GIDS.splitlines(True)[:2]) + "n_gids_found=0\n")
