"""ibstatus: paragraphs with tabs or spaces, ports that are down."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.ibstat import parse_ibstatus
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import damaged, says_only_what_is_true, understood

PARAGRAPH = """Infiniband device 'mlx5_{0}' port {1} status:
\tdefault gid:\t fe80:0000:0000:0000:0002:c903:00a1:00{0}{1}
\tbase lid:\t 0x1{0}
\tsm lid:\t\t 0x1
\tstate:\t\t {2}
\tphys state:\t {3}
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t InfiniBand

"""
TEXT = PARAGRAPH.format(0, 1, "4: ACTIVE", "5: LinkUp") + PARAGRAPH.format(0, 2, "1: DOWN", "2: Polling")

# file -> [(device, state, physical state, rate, link layer, lid, sm lid, GID 0)]
CORPUS = {
    "bond-200g-2x-ndr.txt": [
        ("mlx5_bond_0", "ACTIVE", "LinkUp", "200 Gb/sec (2X NDR)", "Ethernet", 0, 0, "0225:9dff:fe3e:fb9a"),
        ("mlx5_bond_1", "ACTIVE", "LinkUp", "200 Gb/sec (2X NDR)", "Ethernet", 0, 0, "0225:9dff:fe34:ffec"),
    ],
    "cx7-hdr-same-host.txt": [
        ("mlx5_0", "ACTIVE", "LinkUp", "200 Gb/sec (4X HDR)", "InfiniBand", 48, 48, "c470:bd03:0095:7564"),
    ],
    "edr-4hca-tabs.txt": [
        ("mlx5_0", "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand", 15, 1, "506b:4b03:00af:f29c"),
        ("mlx5_1", "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand", 6, 1, "506b:4b03:0013:7e36"),
        ("mlx5_2", "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand", 2, 1, "506b:4b03:00af:f304"),
    ],
    "roce-dualport-one-disabled.txt": [
        ("mlx5_0", "DOWN", "Disabled", "40 Gb/sec (4X QDR)", "Ethernet", 0, 0, "c670:bdff:fef0:23c8"),
        ("mlx5_1", "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "Ethernet", 0, 0, "c670:bdff:fef0:23c9"),
    ],
}


@pytest.mark.parametrize("name", CORPUS)
def test_real_outputs_say_what_their_machines_had(corpus: Path, name: str) -> None:
    """Tabs or spaces, bonds, a disabled port with the default rate; hexadecimal LIDs."""
    result = parse_ibstatus((corpus / "text/ib-ibstatus" / name).read_text())

    assert CORPUS[name] == [
        (
            device.name,
            port.state,
            port.phys_state,
            port.rate_text,
            port.link_layer,
            port.lid,
            port.sm_lid,
            port.gids[0].gid[20:],
        )
        for device in result.devices
        for port in device.ports
    ]
    assert result.cut == ()


def test_every_real_output_is_known(corpus: Path) -> None:
    """A new sample in the corpus asks for its row in the table."""
    assert set(CORPUS) == {file.name for file in (corpus / "text/ib-ibstatus").iterdir()}


def test_ports_of_one_card_belong_together() -> None:
    """Two paragraphs of one device are one device with two ports; one GID is not the table."""
    (device,) = parse_ibstatus(TEXT).devices

    assert [(1, "ACTIVE", "LinkUp"), (2, "DOWN", "Polling")] == [
        (port.port, port.state, port.phys_state) for port in device.ports
    ]
    assert [False, False] == [port.gids_known for port in device.ports]
    assert ["0002:c903:00a1:0001", "0002:c903:00a1:0002"] == [port.gids[0].gid[20:] for port in device.ports]


def test_an_empty_default_gid_is_none() -> None:
    """A prefix without an interface id is no address."""
    (device,) = parse_ibstatus(TEXT.replace("0002:c903:00a1:0001", "0000:0000:0000:0000")).devices

    assert () == device.ports[0].gids


def test_a_cut_paragraph_is_named() -> None:
    """What the last line before the cut said stays; what follows is unknown."""
    result = parse_ibstatus(TEXT[: TEXT.rindex("\trate")])

    assert ("ibstatus: mlx5_0 port 2 is cut off",) == result.cut
    assert ("DOWN", None) == (result.devices[0].ports[1].state, result.devices[0].ports[1].rate_text)


def test_a_text_without_a_header_is_unparsable() -> None:
    """The keys alone tell no device."""
    with pytest.raises(ParseError, match="device"):
        parse_ibstatus("state: 4: ACTIVE\n")


@given(st.integers(0, len(TEXT)))
def test_a_cut_output_says_only_what_is_true(length: int) -> None:
    """Wherever the text ends, no half number or half word becomes a fact."""
    says_only_what_is_true(parse_ibstatus, TEXT, length)


@given(damaged(TEXT) | st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: an answer, or ParseError."""
    understood(parse_ibstatus, text)
