"""ibdev2netdev: which interface a port has."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.ofed_scripts import parse_ibdev2netdev
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import damaged, says_only_what_is_true, understood

TEXT = """mlx5_0 port 1 ==> ens108np0 (Up)
mlx5_10 port 1 ==> bond0 (Up)
mlx4_0 port 1 ==> ib0 (Down)
mlx4_0 port 2 ==> ib1 (Up)
0000:84:00.0 mlx5_2 (MT4115 - MT1523X04353) CX456A - ConnectX-4 QSFP fw 12.12.0780 port 1 (ACTIVE) ==> ens785f0 (Up)
"""


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
    devices = {device.name: device for device in parse_ibdev2netdev(TEXT).devices}

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
    result = parse_ibdev2netdev(TEXT + "mlx5_11 port 1 ==> ens115n")

    assert ("ibdev2netdev: the line of mlx5_11 port 1 is cut off",) == result.cut
    assert () == result.devices[-1].ports[0].netdevs


@pytest.mark.parametrize("text", ["", "bash: ibdev2netdev: command not found\n", "port 1 ==> ib0 (Up)\n"])
def test_a_text_without_a_port_is_unparsable(text: str) -> None:
    """Nothing printed is no proof that there is nothing."""
    with pytest.raises(ParseError, match="port"):
        parse_ibdev2netdev(text)


@given(st.integers(0, len(TEXT)))
def test_a_cut_output_says_only_what_is_true(length: int) -> None:
    """Wherever the text ends, no half name becomes a fact."""
    says_only_what_is_true(parse_ibdev2netdev, TEXT, length)


@given(damaged(TEXT) | st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: an answer, or ParseError."""
    understood(parse_ibdev2netdev, text)
