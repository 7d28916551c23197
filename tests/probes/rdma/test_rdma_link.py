"""rdma link: with and without interface, InfiniBand, old iproute2, wrapped lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.tools import parse_rdma_link
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import damaged, says_only_what_is_true, understood

TEXT = """link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 133 sm_lid 49151 lmc 0 state ACTIVE physical_state LINK_UP
link roceo1/1 state DOWN physical_state DISABLED netdev eno12409
link roceo2/1 state ACTIVE physical_state LINK_UP
"""

# file -> [(device, port, state, physical state, interfaces)]
CORPUS = {
    "bnxt_re-8rails.txt": [
        (f"bnxt_re{index}", 1, "ACTIVE", "LinkUp", (f"ens{slot}np0",))
        for index, slot in enumerate((26, 27, 25, 24, 22, 23, 21, 20))
    ],
    "ionic-8rails.txt": [
        (f"ionic_{index}", 1, "ACTIVE", "LinkUp", (f"benic{rail}p1",))
        for index, rail in enumerate((7, 8, 6, 5, 3, 2, 1, 4))
    ],
    "netns-4ports-mixed.txt": [
        ("roceo12399", 1, "DOWN", "Disabled", ()),
        ("roceo12409", 1, "DOWN", "Disabled", ("eno12409",)),
        ("rocep202s0f0", 1, "DOWN", "Disabled", ("ens7f0",)),
        ("rocep202s0f1", 1, "ACTIVE", "LinkUp", ("ens7f1",)),
    ],
    "rxe-softroce-in-vm.txt": [("rxe_0", 1, "ACTIVE", "LinkUp", ("p1p1",))],
    "smi-multiplane-4ports.txt": [("smi1", port, "INIT", "LinkUp", ()) for port in (1, 2, 3, 4)],
}


def rows(text: str) -> list[tuple[str, int, str | None, str | None, tuple[str, ...]]]:
    return [
        (device.name, port.port, port.state, port.phys_state, port.netdevs)
        for device in parse_rdma_link(text).devices
        for port in device.ports
    ]


@pytest.mark.parametrize("name", CORPUS)
def test_real_outputs_say_what_their_machines_had(corpus: Path, name: str) -> None:
    """Interfaces out of order, in another namespace, or of a card with four planes."""
    text = (corpus / "text/rdma-link" / name).read_text()

    assert CORPUS[name] == rows(text)
    assert () == parse_rdma_link(text).cut


def test_every_real_output_is_known(corpus: Path) -> None:
    """A new sample in the corpus asks for its row in the table."""
    assert set(CORPUS) == {file.name for file in (corpus / "text/rdma-link").iterdir()}


def test_interfaces_in_pods_are_not_seen(corpus: Path) -> None:
    """Seven of eight links of a cloud node have their interface in another namespace."""
    (block,) = (corpus / "blocks/rdma-link").glob("google*")

    assert [()] * 3 + [("gpu3rdma0",)] + [()] * 4 == [row[4] for row in rows(block.read_text())]


def test_soft_roce_is_software(corpus: Path) -> None:
    """It must not be counted as RDMA hardware."""
    (device,) = parse_rdma_link((corpus / "text/rdma-link/rxe-softroce-in-vm.txt").read_text()).devices

    assert device.software


def test_an_infiniband_link_has_lids() -> None:
    """Decimal, as iproute2 prints them."""
    port = parse_rdma_link(TEXT).devices[0].ports[0]

    assert (133, 49151) == (port.lid, port.sm_lid)


def test_lines_that_were_wrapped_are_put_together() -> None:
    """Mail programs break them anywhere between words; capabilities (-d) stand on lines of their own."""
    wrapped = TEXT.replace(" sm_lid", "\n    sm_lid").replace(" netdev", "\nnetdev")

    assert rows(TEXT) == rows(wrapped + "    caps: <CM, IP_BASED_GIDS>\n")


def test_the_form_of_old_iproute2_is_read() -> None:
    """Before 2019 a link began with the indexes of device and port."""
    assert [("mlx5_0", 1, "ACTIVE", "LinkUp", ("ib0",))] == rows(
        "1/1: mlx5_0/1: state ACTIVE physical_state LINK_UP netdev ib0 \n"
    )


def test_a_cut_line_is_named() -> None:
    """A state without its physical state is not the whole link."""
    result = parse_rdma_link(TEXT + "link roceo3/1 state ACTI")

    assert ("rdma link: roceo3/1 is cut off",) == result.cut
    assert result.devices[-1].ports[0].state is None


@pytest.mark.parametrize("text", ["", "\n", "1: lo: <LOOPBACK,UP> mtu 65536\n"])
def test_a_text_without_a_link_is_unparsable(text: str) -> None:
    """Output of `ip link` is none of it."""
    with pytest.raises(ParseError, match="link"):
        parse_rdma_link(text)


@given(st.sampled_from([at for at, letter in enumerate(TEXT) if letter in " \n"]))
def test_an_output_cut_between_words_says_only_what_is_true(length: int) -> None:
    """A cut within the last word cannot be told from a last line that lost its line feed: that word is believed."""
    says_only_what_is_true(parse_rdma_link, TEXT, length)


@given(damaged(TEXT) | st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: an answer, or ParseError."""
    understood(parse_rdma_link, text)


def test_only_infiniband_has_a_subnet_prefix() -> None:
    """nldev_port_fill of the kernel: of other ports the link layer is not told."""
    text = (
        "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 0 sm_lid 0 lmc 0 state DOWN physical_state POLLING\n"
        "link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev eth0\n"
    )
    one, other = parse_rdma_link(text).devices

    assert ("InfiniBand", None) == (one.ports[0].link_layer, other.ports[0].link_layer)
