"""ibstat: every layout in which its output is handed on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.ibstat import parse_ibstat, parse_ibstatus
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import damaged, says_only_what_is_true, understood

TWO_PORTS = """CA 'mlx4_0'
\tCA type: MT4099
\tNumber of ports: 2
\tFirmware version: 2.42.5000
\tHardware version: 1
\tNode GUID: 0x0002c90300a10010
\tSystem image GUID: 0x0002c90300a10013
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 10
\t\tBase lid: 38
\t\tLMC: 0
\t\tSM lid: 13
\t\tCapability mask: 0x02594868
\t\tPort GUID: 0x0002c90300a10011
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 56
\t\tBase lid: 12
\t\tLMC: 0
\t\tSM lid: 13
\t\tCapability mask: 0x02594868
\t\tPort GUID: 0x0002c90300a10012
\t\tLink layer: InfiniBand
"""

# file -> {device: [(port, state, physical state, rate, link layer, lid, sm lid)]}
CORPUS = {
    "cori-gpu-5edr-3fdr-1roce-mixed.txt": {
        "mlx4_0": [(1, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0)],
        "mlx5_0": [(1, "ACTIVE", "LinkUp", "100", "InfiniBand", 59, 10)],
        "mlx5_1": [(1, "ACTIVE", "LinkUp", "56", "InfiniBand", 325, 43)],
        "mlx5_2": [(1, "ACTIVE", "LinkUp", "100", "InfiniBand", 64, 10)],
        "mlx5_3": [(1, "ACTIVE", "LinkUp", "100", "Ethernet", 0, 0)],
        "mlx5_4": [(1, "ACTIVE", "LinkUp", "100", "InfiniBand", 71, 10)],
        "mlx5_5": [(1, "ACTIVE", "LinkUp", "56", "InfiniBand", 465, 344)],
        "mlx5_6": [(1, "ACTIVE", "LinkUp", "100", "InfiniBand", 75, 10)],
        "mlx5_7": [(1, "ACTIVE", "LinkUp", "56", "InfiniBand", 331, 43)],
    },
    "cx3-eth-10g-dl580.txt": {
        "mlx4_0": [
            (1, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0),
            (2, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0),
        ]
    },
    "cx3-multi.txt": {
        "mlx4_0": [
            (1, "ACTIVE", "LinkUp", "56", "InfiniBand", 10, 9),
            (2, "ACTIVE", "LinkUp", "56", "InfiniBand", 12, 9),
        ],
        "mlx4_1": [
            (1, "ACTIVE", "LinkUp", "56", "InfiniBand", 1, 7),
            (2, "ACTIVE", "LinkUp", "56", "InfiniBand", 4, 7),
        ],
    },
    "cx4-edr-tabs.txt": {
        "mlx5_2": [(1, "ACTIVE", "LinkUp", "100", "InfiniBand", 13, 1)],
        "mlx5_3": [(1, "ACTIVE", "LinkUp", "40", "InfiniBand", 38, 36)],
        "mlx5_bond_0": [(1, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0)],
    },
    "cx5-qdr-noindent.txt": {
        "mlx5_0": [(1, "ACTIVE", "LinkUp", "40", "InfiniBand", 14, 19)],
        "mlx5_1": [(1, "ACTIVE", "LinkUp", "40", "InfiniBand", 15, 45)],
    },
    "cx6-roce-ppc64-name.txt": {"roceP1p1s0f1": [(1, "ACTIVE", "LinkUp", "100", "Ethernet", 0, 0)]},
    "cx7-400g-card-at-200.txt": {"mlx5_0": [(1, "ACTIVE", "LinkUp", "200", "InfiniBand", 48, 48)]},
    "initializing-no-sm-qdr.txt": {"mlx4_0": [(1, "INIT", "LinkUp", "40", "InfiniBand", 0, 0)]},
    "mlx4-ibwarn-noise-port1-disabled-TRUNCATED.txt": {
        "mlx4_0": [
            (1, "DOWN", "Disabled", "10", "InfiniBand", 38, 13),
            (2, "ACTIVE", "LinkUp", "56", None, None, None),
        ]
    },
}


@pytest.mark.parametrize("name", CORPUS)
def test_real_outputs_say_what_their_machines_had(corpus: Path, name: str) -> None:
    """Tabs, spaces, no indentation, warnings in between, one card on three fabrics, a cut end."""
    result = parse_ibstat((corpus / "text/ib-ibstat" / name).read_text())

    assert CORPUS[name] == {
        device.name: [
            (port.port, port.state, port.phys_state, port.rate_text, port.link_layer, port.lid, port.sm_lid)
            for port in device.ports
        ]
        for device in result.devices
    }
    assert ("TRUNCATED" in name) == bool(result.cut)


def test_every_real_output_is_known(corpus: Path) -> None:
    """A new sample in the corpus asks for its row in the table."""
    assert set(CORPUS) == {file.name for file in (corpus / "text/ib-ibstat").iterdir()}


def test_a_transcript_of_other_commands_keeps_the_later_state(corpus: Path) -> None:
    """Port information of another tool and an author's comments stand between two runs; both ends are cut."""
    (transcript,) = (corpus / "blocks/ibstat").glob("*ibportstate*")
    result = parse_ibstat(transcript.read_text())

    (device,) = result.devices
    assert ("mlx4_0", "MT4099", "0002:c903:00a4:e720") == (device.name, device.hca_type, device.node_guid)
    assert [("DOWN", "Disabled", "2.5"), ("ACTIVE", "LinkUp", "56")] == [
        (port.state, port.phys_state, port.rate_text) for port in device.ports
    ]
    assert device.ports[1].link_layer is None


def test_a_card_is_described_whole() -> None:
    """The card reports its identity, the port its addresses; one that is down keeps stale LIDs and a default rate."""
    (device,) = parse_ibstat(TWO_PORTS).devices

    assert ("2.42.5000", "MT4099") == (device.firmware, device.hca_type)
    assert ("0002:c903:00a1:0010", "0002:c903:00a1:0013") == (device.node_guid, device.system_image_guid)
    assert ("DOWN", "10", 38, 13) == (
        device.ports[0].state,
        device.ports[0].rate_text,
        device.ports[0].lid,
        device.ports[0].sm_lid,
    )
    assert "0002:c903:00a1:0012" == device.ports[1].port_guid


def test_a_missing_port_is_named() -> None:
    """A text that ends after the first of two ports is not the whole card."""
    result = parse_ibstat(TWO_PORTS[: TWO_PORTS.index("\tPort 2")])

    assert ("ibstat: mlx4_0 has 2 ports, the text holds 1",) == result.cut


@pytest.mark.parametrize("text", ["", "ibpanic: [1] main: no such device\n", "mlx5_0 port 1 ==> ib0 (Up)\n"])
def test_a_text_without_an_adapter_is_unparsable(text: str) -> None:
    """Nothing printed is no proof that there is nothing."""
    with pytest.raises(ParseError, match="CA"):
        parse_ibstat(text)


@given(st.integers(0, len(TWO_PORTS)))
def test_a_cut_output_says_only_what_is_true(length: int) -> None:
    """Wherever the text ends, no half number or half word becomes a fact."""
    says_only_what_is_true(parse_ibstat, TWO_PORTS, length)


@given(damaged(TWO_PORTS) | st.text())
def test_any_text_is_survived(text: str) -> None:
    """Whatever it is: an answer, or ParseError."""
    understood(parse_ibstat, text)


def test_where_it_ended_early_is_told() -> None:
    """The devices behind that one are not in the text."""
    whole = "CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tLink layer: InfiniBand\n"
    result = "ibpanic: [1400444] main: stat of IB device 'mlx5_8' failed: No such file or directory"

    assert () == parse_ibstat(whole).cut
    assert ("ibstat: it ended early: main: stat of IB device 'mlx5_8' failed: No such file or directory",) == (
        parse_ibstat(whole + result + "\n").cut
    )


STATUS = "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t 4: ACTIVE\n\tlink_layer:\t InfiniBand\n\n"


@pytest.mark.parametrize("tool", ["ibstat", "ibstatus"])
def test_a_text_that_is_no_whole_list_is_known_by_its_ends(tool: str) -> None:
    """It begins among the fields of a device, or ends in the line that begins the next one; what is before stays."""
    adapter = "CA 'mlx5_0'\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tLink layer: InfiniBand\n"
    parse, whole, rest, head = {
        "ibstat": (parse_ibstat, adapter, "\t\tRate: 400\n", "CA 'ml"),
        "ibstatus": (parse_ibstatus, STATUS, "\tphys state:\t 5: LinkUp\n", "Infiniband dev"),
    }[tool]

    assert () == parse(whole).cut == parse(whole.rstrip()).cut == parse(f"\n$ {tool}\n{whole}").cut
    assert (f"{tool}: the text begins within a device",) == parse(rest + whole).cut
    assert (f"{tool}: the text ends within a line",) == parse(whole + head).cut
    assert ["mlx5_0"] == [device.name for device in parse(rest + whole + head).devices]


@pytest.mark.parametrize("labels", [("State", "Rate"), ("Physical state", "State"), ("Rate",)])
def test_what_grep_left_over_is_of_ports_in_their_order(labels: tuple[str, ...]) -> None:
    """`ibstat | egrep "CA '|State"`: no line says which port it is; none is a whole list."""
    values = {"State": ("Active", "Down"), "Physical state": ("LinkUp", "Polling"), "Rate": ("400", "10")}
    lines = [f"\t\t{label}: {values[label][n]}\n" for n in range(2) for label in labels]
    parsed = parse_ibstat("".join(["CA 'mlx5_0'\n", *lines, "CA 'mlx5_1'\n", *lines[: len(labels)]]))
    numbers = [[port.port for port in device.ports] for device in parsed.devices]

    assert ([[1, 2], [1]], True) == (numbers, bool(parsed.cut))
    if "State" in labels:
        assert ["ACTIVE", "DOWN"] == [port.state for port in parsed.devices[0].ports]
