"""ibstat and ibstatus: cards and ports, lists that are no whole ones; excerpts that begin within a device: the name was
in a line above, and the state of the port is below.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.rdma.ibstat import parse_ibstat, parse_ibstatus
from probes.sources.identify import identify_command
from probes.sources.open_source import BadSource
from tests.machines import scan_text
from tests.probes.rdma.tool_texts import IBSTAT, IBSTATUS


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
    (device,) = parse_ibstat(IBSTAT).devices

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
    result = parse_ibstat(IBSTAT[: IBSTAT.index("\tPort 2")])

    assert ("ibstat: mlx4_0 has 2 ports, the text holds 1",) == result.cut


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


def test_ports_of_one_card_belong_together() -> None:
    """Two paragraphs of one device are one device with two ports; one GID is not the table."""
    (device,) = parse_ibstatus(IBSTATUS).devices

    assert [(1, "ACTIVE", "LinkUp"), (2, "DOWN", "Polling")] == [
        (port.port, port.state, port.phys_state) for port in device.ports
    ]
    assert [False, False] == [port.gids_known for port in device.ports]
    assert ["0002:c903:00a1:0001", "0002:c903:00a1:0002"] == [port.gids[0].gid[20:] for port in device.ports]


def test_an_empty_default_gid_is_none() -> None:
    """A prefix without an interface id is no address."""
    (device,) = parse_ibstatus(IBSTATUS.replace("0002:c903:00a1:0001", "0000:0000:0000:0000")).devices

    assert () == device.ports[0].gids


def test_a_cut_paragraph_is_named() -> None:
    """What the last line before the cut said stays; what follows is unknown."""
    result = parse_ibstatus(IBSTATUS[: IBSTATUS.rindex("\trate")])

    assert ("ibstatus: mlx5_0 port 2 is cut off",) == result.cut
    assert ("DOWN", None) == (result.devices[0].ports[1].state, result.devices[0].ports[1].rate_text)


POLLING = "\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 200\n\t\tLink layer: InfiniBand\n"
INIT = (
    "\tbase lid:\t 0xffff\n\tsm lid:\t\t 0x0\n\tstate:\t\t 2: INIT\n\tphys state:\t 5: LinkUp\n"
    "\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n"
)
SMALL = (
    "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n"
    "\t\t\tlink_layer:\t\tEthernet\n\n"
)
NAMED = "hca_id:\tmlx5_4\n\tphys_port_cnt:\t1\n\t\tport:\t1\n" + SMALL.replace("1024 (3)", "4096 (5)")


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        pytest.param(POLLING, "ib-port-down mlx5_X/1", id="ibstat"),
        pytest.param("Port 1:\n" + POLLING, "ib-port-down mlx5_X/1", id="ibstat, with the line of the port"),
        pytest.param("Hi,\n\n```\nPort 1:\n" + POLLING + "```\n", "ib-port-down mlx5_X/1", id="within a text"),
        pytest.param(INIT, "ib-no-sm mlx5_X/1", id="ibstatus"),
        pytest.param(SMALL, "roce-mtu-small mlx5_X/1", id="ibv_devinfo"),
        pytest.param(SMALL + NAMED, "roce-mtu-small mlx5_X/1", id="ibv_devinfo, a named device follows"),
    ],
)
def test_the_port_of_a_device_without_a_name_is_judged(tmp_path: Path, text: str, finding: str) -> None:
    """Its fault is stated whole; only its name is missing."""
    report = scan_text(tmp_path, text)

    assert [finding] == [f"{found.rule} {found.label}" for found in report.findings]
    assert ("mlx5_4" in text) == any(nic.rdma_device == "mlx5_4" for nic in report.topology.nics)


def test_ports_that_cannot_be_told_apart_are_not_read(tmp_path: Path) -> None:
    """Of `ibstat | grep -i state` it is not known whose line is whose."""
    text = "State: Active\nPhysical state: LinkUp\nState: Down\nPhysical state: Polling\n"

    assert () == identify_command(text)
    with pytest.raises(BadSource):
        scan_text(tmp_path, text)
