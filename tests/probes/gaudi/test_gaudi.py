"""Gaudi cards and their ports: the boards against the vendor's tables, a described machine, and what files refuse."""

from __future__ import annotations

import csv
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from agent.model.nic import Nic, Port
from agent.outputs.html.page import render_html
from agent.outputs.names import describe_scale_out
from agent.outputs.text.page import render_page
from probes.gaudi.probe import ACCEL, OLD_ACCEL, RDMA, parse_hl_smi
from probes.gaudi.wiring import BOARDS, PORTS, SCALE_OUT, UNUSED, find_board
from probes.gpu.facts import Gpu
from probes.host.interface import Denied
from probes.probe import Status
from probes.sources.memory import SymlinkNode
from probes.sources.open_source import open_source
from probes.text import ParseError
from tests.machines import machine, scan_machine
from tests.probes.machine import Machine, ask, read_facts

SHAPE, A = "8xgaudi3-2s", "0000:33:00.0"
TABLE = """\
| HL-SMI Version:                              hl-1.18.0-fw-53.1.1.1          |
| Driver Version:                                     1.18.0-ee698fb          |
|   0  HL-325              N/A  | 0000:21:00.0     N/A |                   0  |
| N/A   43C   N/A   264W / 900W |    672MiB / 131072MiB |     0%           N/A|
"""


outcome, facts = partial(ask, "gaudi"), partial(read_facts, "gaudi")


def card(number: int = 0, address: str = A, folder: str = ACCEL, **more: str) -> Machine:
    """A host with one card; `more`: files of its function, or of its RDMA device below infiniband__hbl_0__."""
    host = Machine(live=True, kind="live")
    function = f"/sys/devices/pci0000:32/{address}"
    result = {
        "vendor": "0x1da3",
        "device": "0x1060",
        "pci_addr": address,
        "module_id": "3",
        "status": "Operational",
    } | more
    host.put({f"{function}/{name.replace('__', '/')}": f"{text}\n" for name, text in result.items()})
    host.put({f"/sys/bus/pci/devices/{address}": SymlinkNode(function)})
    name = f"accel{number}" if folder == ACCEL else f"hl{number}"
    host.put({f"{folder}/{name}" + ("/device" if folder == ACCEL else ""): SymlinkNode(function)})
    if any(name.startswith("infiniband") for name in more):
        host.put({f"{RDMA}/hbl_0": SymlinkNode(f"{function}/infiniband/hbl_0")})
        host.put({f"{function}/infiniband/hbl_0/device": SymlinkNode(function)})
    return host


def ports(gpu: Gpu) -> dict[int, tuple[str, str | None]]:
    """State and far end of each."""
    return {link.link: (link.state, link.remote_kind) for link in gpu.nvlinks}


@pytest.mark.parametrize("board", BOARDS, ids=[board.name for board in BOARDS])
def test_a_board_joins_both_ends_of_each_link(board: object) -> None:
    """Every port inside the box is the far end of its far end; pairs have equally many links."""
    assert board in BOARDS
    result = next(each for each in BOARDS if each is board)
    pairs: Counter[tuple[int, int]] = Counter()
    for own in range(8):
        assert PORTS == len(result.peers[own])
        assert {*result.peers[own]} <= {*"01234567", SCALE_OUT, UNUSED}
        for port in range(PORTS):
            far = result.far_end(own, port)
            if far is not None:
                assert (own, port) == result.far_end(*far)
                pairs[min(own, far[0]), max(own, far[0])] += 1

    assert {6: 28, 12: 12}[next(iter(pairs.values()))] == len(pairs)
    assert 1 == len(set(pairs.values()))
    assert result.name != "HLS3" or result.far_end(0, 0) == (1, 12)  # crossed: not in the order of the ports


@pytest.mark.parametrize("board", ["HLS2", "HLS2PCIE", "HLS3", "HLS3PCIE"])
def test_boards_are_those_of_the_vendor(corpus: Path, board: str) -> None:
    """Port by port, against the table that was made of the vendor's source."""
    result = next(each for each in BOARDS if each.name == board)
    with (corpus / "accelerators" / "other" / f"gaudi-wiring-{board}.tsv").open() as table:
        for row in csv.DictReader(table, delimiter="\t"):
            own, port, remote = int(row["card"]), int(row["nic"]), row["remote"]
            if remote.isdigit():
                assert (int(remote), int(row["remote_nic"])) == result.far_end(own, port)
            else:
                assert {"scale-out": SCALE_OUT, "not-connected": UNUSED}[remote] == result.peers[own][port]


def test_a_board_is_known_by_its_scale_out_ports() -> None:
    """Of every card; with another card, or none, it is not one of them."""
    hls2, pcie = BOARDS[0], BOARDS[1]

    assert hls2 is find_board({0: ("0x1020", hls2.scale_out(0)), 5: ("0x1020", hls2.scale_out(5))})
    assert pcie is find_board({0: ("0x1020", pcie.scale_out(0))})
    assert pcie is find_board({0: ("0x1021", pcie.scale_out(0))})
    assert find_board({0: ("0x1021", hls2.scale_out(0))}) is None
    assert find_board({0: ("0x1060", hls2.scale_out(0))}) is None
    assert find_board({0: ("0x1020", frozenset({1}))}) is None
    assert find_board({8: ("0x1020", hls2.scale_out(0))}) is None
    assert find_board({}) is None


def test_the_described_machine_is_a_full_mesh() -> None:
    """Three links of 25 GB/s between each two of eight, three ports that leave the box, and no counter read."""
    reading = outcome(machine(SHAPE))
    gpus = reading.facts.gpus

    assert (Status.OK, None, 8) == (reading.status, reading.reason, len(gpus))
    assert {(24, 21, 3)} == {
        (len(g.nvlinks), *(sum(link.remote_kind == kind for link in g.nvlinks) for kind in ("gpu", "network")))
        for g in gpus
    }
    assert {3} == set(
        Counter((g.address, link.remote_address) for g in gpus for link in g.nvlinks if link.remote_address).values()
    )
    assert [2, 3, 0, 1, 6, 7, 4, 5] == [gpu.module_id for gpu in gpus]
    assert 28 == len(reading.facts.pairs)
    assert not [source for source in reading.sources if "hw_counters" in source]


def test_the_report_joins_cards_and_draws_them() -> None:
    """75 GB/s of a pair; the page and the text have the links."""
    report = scan_machine(SHAPE)
    paths = [path for path in report.topology.paths if path.kind == "GAUDI"]

    assert ({75.0}, 28) == ({path.bandwidth_gbyte_s for path in paths}, len(paths))
    assert "GAUDI between all 8 GPUs" in "".join(part for line in render_page(report, 100) for part, _ in line)
    assert "GAUDI 21/21" in render_html(report)
    assert "scale-out 3/3 200G" in render_html(report)
    assert "</span>NVLink<" not in render_html(report)


def test_ports_that_leave_the_box_are_network_ports_inside_the_card() -> None:
    """Rows of NICs that name their card, with the interface of each port; no NICs of the host, and no links."""
    topology = scan_machine(SHAPE).topology
    own = {nic.accelerator: nic for nic in topology.nics}

    assert [gpu.id for gpu in topology.gpus] == [nic.accelerator for nic in topology.nics]
    assert [] == topology.host_nics
    assert {21} == {len(gpu.links) for gpu in topology.gpus}
    assert [(5, ["enp51s0d5"]), (8, ["enp51s0d8"]), (9, ["enp51s0d9"])] == [
        (port.port, port.netdevs) for port in own[A].ports
    ]
    assert {("ACTIVE", 200.0, "Ethernet")} == {
        (port.state, port.rate_gbit_s, port.link_layer) for nic in topology.nics for port in nic.ports
    }


def test_a_scale_out_port_that_is_down_has_no_rate() -> None:
    """The others of its card keep theirs."""
    report = scan_machine("", "gaudi-scale-out-down")
    nic = next(nic for nic in report.topology.nics if nic.label == "hbl_3")

    assert [(5, "ACTIVE", 200.0), (8, "DOWN", None), (9, "ACTIVE", 200.0)] == [
        (port.port, port.state, port.rate_gbit_s) for port in nic.ports
    ]
    assert "scale-out 2/3 200G" in "".join(part for line in render_page(report, 200) for part, _ in line)


@pytest.mark.parametrize(("states", "words"), [((None, None), "?/2"), (("DOWN", "DOWN"), "0/2")])
def test_scale_out_ports_without_a_rate(states: tuple[str | None, ...], words: str) -> None:
    """Nothing of speed is said."""
    nic = Nic(id="x", label="x", ports=[Port(port=n, state=state) for n, state in enumerate(states)])

    assert f"scale-out {words}" == describe_scale_out(nic)


def test_a_real_tree_of_the_vendors_wiring(corpus: Path) -> None:
    """192 ports by the board's table."""
    read = facts(open_source(str(corpus / "accelerators" / "trees" / "gaudi3-hls3-healthy.tar.xz"), None))

    assert (8, 28) == (len(read.gpus), len(read.pairs))
    assert {"active"} == {link.state for gpu in read.gpus for link in gpu.nvlinks}


def test_ports_are_numbered_by_the_bits_of_the_mask() -> None:
    """With gaps, port 2 is the second NIC that is on; the board is not known, and what leaves the box is."""
    host = card(
        infiniband__hbl_0__ports_mask="0x31",
        infiniband__hbl_0__ext_ports_mask="20",
        infiniband__hbl_0__ports__1__phys_state="5: LinkUp",
        infiniband__hbl_0__ports__2__phys_state="3: Disabled",
    )
    (gpu,) = facts(host).gpus

    assert {0: ("active", "unknown"), 4: ("inactive", "unknown"), 5: ("unknown", "network")} == ports(gpu)


def test_a_card_without_ports_and_one_of_an_older_driver() -> None:
    """What is not shown is said; /sys/class/habanalabs is the older place."""
    new, old = facts(card()).gpus[0], facts(card(folder=OLD_ACCEL, module_id="N/A")).gpus[0]

    assert ((), "the driver shows no ports of this card", 3) == (new.nvlinks, new.nvlink_reason, new.module_id)
    assert (A, None) == (old.address, old.module_id)


def test_a_state_other_than_operational_is_an_error() -> None:
    """As the driver writes it."""
    assert ["Malfunction"] == [gpu.error for gpu in facts(card(status="Malfunction")).gpus]
    assert [None] == [gpu.error for gpu in facts(card(status="")).gpus]


def test_resets_are_counted_where_the_driver_has_a_count() -> None:
    """Nothing where there is no number."""
    assert {"hard_resets": 3} == facts(card(hard_reset_cnt="3")).gpus[0].error_counts
    assert facts(card()).gpus[0].error_counts is None
    assert [None, None] == [facts(card(hard_reset_cnt=text)).gpus[0].error_counts for text in ("-1", "9" * 11)]


@pytest.mark.parametrize("more", [{"vendor": "0x8086"}, {"pci_addr": "somewhere"}])
def test_accelerators_of_other_drivers_are_left_alone(more: dict[str, str]) -> None:
    """The class is shared."""
    assert (Status.ABSENT, "no card in /sys/class/accel") == outcome(card(**more))[1::2][:2]


@pytest.mark.parametrize(
    ("folders", "vendor", "status"),
    [
        ((ACCEL,), "0x1da3", Status.OK),
        ((), "0x1da3", Status.ABSENT),
        ((ACCEL,), "0x10de", Status.ABSENT),
        ((f"{ACCEL}/accel0",), "0x1da3", Status.ABSENT),
        ((ACCEL, f"{OLD_ACCEL}/hl0"), "0x1da3", Status.ABSENT),
    ],
)
def test_an_empty_class_says_that_the_driver_made_no_device(
    folders: tuple[str, ...], vendor: str, status: Status
) -> None:
    """A card is on the bus, and nothing in the class: not one is offered. Without the class nothing is known."""
    host = Machine(live=True, kind="live").put({f"/sys/bus/pci/devices/{A}/vendor": f"{vendor}\n"})
    for folder in folders:
        host.files.add(folder, {})
    ended = outcome(host)

    assert status == ended.status
    assert (status is Status.OK) == (ended.facts is not None and ended.facts.gpus == ())


def test_what_may_not_be_read_is_named() -> None:
    """A mask that is none, or that is refused."""
    damaged, refused = outcome(card(infiniband__hbl_0__ports_mask="all")), card(infiniband__hbl_0__ports_mask="1")
    refused.refused[f"{RDMA}/hbl_0/ports_mask"] = Denied("ports_mask: EPERM")

    assert "EPERM" in (outcome(refused).reason or "")
    assert "hbl_0 does not state which ports it has" in (damaged.reason or "")


def test_the_tools_table() -> None:
    """Number, name, address, memory and driver; text that is none is refused."""
    read = parse_hl_smi(TABLE)

    assert [(0, "0000:21:00.0", "HL-325", 131_072)] == [(g.index, g.address, g.name, g.memory_mib) for g in read.gpus]
    assert "1.18.0-ee698fb" == read.driver_version
    with pytest.raises(ParseError, match="no card"):
        parse_hl_smi("+---+")


@pytest.mark.parametrize("before", ["", "Nov 12 10:00:00 n1 kernel: habanalabs hl0: Found GAUDI3 device\n"])
def test_a_saved_table(tmp_path: Path, before: str) -> None:
    """Also below lines of the journal."""
    file = tmp_path / "cards.txt"
    file.write_text(f"{before}$ hl-smi\n{TABLE}")

    assert ["0000:21:00.0"] == [gpu.address for gpu in facts(open_source(str(file), None)).gpus]
