"""Real outputs of the tools for RDMA devices, and what holds for each of them: cut, damaged and of another kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.rdma.ibstat import parse_ibstat, parse_ibstatus
from probes.rdma.ibv_devinfo import parse_ibv_devinfo
from probes.rdma.normalize import ParsedTool
from probes.rdma.ofed_scripts import parse_ibdev2netdev, parse_show_gids
from probes.rdma.tools import parse_rdma_link
from probes.text import ParseError
from tests.probes.rdma.rdma_machine import says_only_what_is_true
from tests.probes.rdma.tool_texts import IBDEV2NETDEV, IBSTAT, IBSTATUS, IBV_DEVINFO, RDMA_LINK, SHOW_GIDS


class Tool(NamedTuple):
    """One tool. `outputs`: its samples of real machines by file, each with the rows that `row` makes of it."""

    parse: Callable[[str], ParsedTool]
    text: str
    refuses: tuple[tuple[str, ...], str]  # texts that are none of it, and a word of the reason
    folder: str = ""
    row: Callable[[RdmaDevice, RdmaPort], tuple[Any, ...]] = lambda device, port: ()
    outputs: Mapping[str, list[tuple[Any, ...]]] = {}
    cut: tuple[str, ...] = ()  # samples that are not whole


# Rows: device, port, state, physical state, rate, link layer, lid, sm lid. Tabs, spaces, no indentation, warnings in
# between, one card on three fabrics, a cut end.
_IBSTAT_OUTPUTS: dict[str, list[tuple[Any, ...]]] = {
    "cori-gpu-5edr-3fdr-1roce-mixed.txt": [
        ("mlx4_0", 1, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0),
        ("mlx5_0", 1, "ACTIVE", "LinkUp", "100", "InfiniBand", 59, 10),
        ("mlx5_1", 1, "ACTIVE", "LinkUp", "56", "InfiniBand", 325, 43),
        ("mlx5_2", 1, "ACTIVE", "LinkUp", "100", "InfiniBand", 64, 10),
        ("mlx5_3", 1, "ACTIVE", "LinkUp", "100", "Ethernet", 0, 0),
        ("mlx5_4", 1, "ACTIVE", "LinkUp", "100", "InfiniBand", 71, 10),
        ("mlx5_5", 1, "ACTIVE", "LinkUp", "56", "InfiniBand", 465, 344),
        ("mlx5_6", 1, "ACTIVE", "LinkUp", "100", "InfiniBand", 75, 10),
        ("mlx5_7", 1, "ACTIVE", "LinkUp", "56", "InfiniBand", 331, 43),
    ],
    "cx3-eth-10g-dl580.txt": [
        ("mlx4_0", 1, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0),
        ("mlx4_0", 2, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0),
    ],
    "cx3-multi.txt": [
        ("mlx4_0", 1, "ACTIVE", "LinkUp", "56", "InfiniBand", 10, 9),
        ("mlx4_0", 2, "ACTIVE", "LinkUp", "56", "InfiniBand", 12, 9),
        ("mlx4_1", 1, "ACTIVE", "LinkUp", "56", "InfiniBand", 1, 7),
        ("mlx4_1", 2, "ACTIVE", "LinkUp", "56", "InfiniBand", 4, 7),
    ],
    "cx4-edr-tabs.txt": [
        ("mlx5_2", 1, "ACTIVE", "LinkUp", "100", "InfiniBand", 13, 1),
        ("mlx5_3", 1, "ACTIVE", "LinkUp", "40", "InfiniBand", 38, 36),
        ("mlx5_bond_0", 1, "ACTIVE", "LinkUp", "10", "Ethernet", 0, 0),
    ],
    "cx5-qdr-noindent.txt": [
        ("mlx5_0", 1, "ACTIVE", "LinkUp", "40", "InfiniBand", 14, 19),
        ("mlx5_1", 1, "ACTIVE", "LinkUp", "40", "InfiniBand", 15, 45),
    ],
    "cx6-roce-ppc64-name.txt": [("roceP1p1s0f1", 1, "ACTIVE", "LinkUp", "100", "Ethernet", 0, 0)],
    "cx7-400g-card-at-200.txt": [("mlx5_0", 1, "ACTIVE", "LinkUp", "200", "InfiniBand", 48, 48)],
    "initializing-no-sm-qdr.txt": [("mlx4_0", 1, "INIT", "LinkUp", "40", "InfiniBand", 0, 0)],
    "mlx4-ibwarn-noise-port1-disabled-TRUNCATED.txt": [
        ("mlx4_0", 1, "DOWN", "Disabled", "10", "InfiniBand", 38, 13),
        ("mlx4_0", 2, "ACTIVE", "LinkUp", "56", None, None, None),
    ],
}
# Rows: device, state, physical state, rate, link layer, lid, sm lid, GID 0. Tabs or spaces, bonds, a disabled port with
# the default rate; hexadecimal LIDs.
_IBSTATUS_OUTPUTS: dict[str, list[tuple[Any, ...]]] = {
    "bond-200g-2x-ndr.txt": [
        ("mlx5_bond_0", "ACTIVE", "LinkUp", "200 Gb/sec (2X NDR)", "Ethernet", 0, 0, "0225:9dff:fe3e:fb9a"),
        ("mlx5_bond_1", "ACTIVE", "LinkUp", "200 Gb/sec (2X NDR)", "Ethernet", 0, 0, "0225:9dff:fe34:ffec"),
    ],
    "cx7-hdr-same-host.txt": [
        ("mlx5_0", "ACTIVE", "LinkUp", "200 Gb/sec (4X HDR)", "InfiniBand", 48, 48, "c470:bd03:0095:7564")
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
# Rows: device, firmware, port, state, active MTU, link layer, lid, sm lid. Tabs, no-break spaces, "Device ports:",
# dots where an author left lines out. The index gives another firmware of the last (216.0.220.0): the sample is right.
_IBV_DEVINFO_OUTPUTS: dict[str, list[tuple[Any, ...]]] = {
    "2port-cx7-wrx90.txt": [
        ("mlx5_0", "28.44.1036", 1, "DOWN", 1024, "Ethernet", 0, 0),
        ("mlx5_1", "28.44.1036", 1, "DOWN", 1024, "Ethernet", 0, 0),
    ],
    "cx3-2hca-port2-down.txt": [
        ("mlx4_1", "2.42.5000", 1, "ACTIVE", 4096, "InfiniBand", 22, 1),
        ("mlx4_1", "2.42.5000", 2, "DOWN", 4096, "InfiniBand", 0, 0),
        ("mlx4_0", "2.42.5000", 1, "ACTIVE", 4096, "InfiniBand", 32, 18),
        ("mlx4_0", "2.42.5000", 2, "DOWN", 4096, "InfiniBand", 0, 0),
    ],
    "cx4lx-bond.txt": [("mlx5_bond_0", "14.26.6000", 1, "ACTIVE", 4096, "Ethernet", 0, 0)],
    "cx7-roce-2port-mtu1024.txt": [
        ("mlx5_2", "28.39.1002", 1, "ACTIVE", 1024, "Ethernet", 0, 0),
        ("mlx5_3", "28.39.1002", 1, "ACTIVE", 1024, "Ethernet", 0, 0),
    ],
    "v-bnxt-gidtype.txt": [("bnxt_re2", "198.3.187.3")],
}
# Rows: device, port, state, physical state, interfaces: out of order, in another namespace, of a card with four planes.
_RDMA_LINK_OUTPUTS: dict[str, list[tuple[Any, ...]]] = {
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

# Rows: device, indexes by type, interfaces, whether the table is known to be whole. With the command's echo, blanks at
# the ends of lines, expanded tabs, no interface; in a pod indexes begin at 4.
_SHOW_GIDS_OUTPUTS: dict[str, list[tuple[Any, ...]]] = {
    "a800-vm-4nic-trailing-spaces.txt": [
        (f"mlx5_{n}", {"IB/RoCE v1": [0, 2], "RoCE v2": [1, 3]}, (f"eth{n}",), False) for n in range(3)
    ],
    "container-gids-start-at-4.txt": [("mlx5_0", {"IB/RoCE v1": [4, 6], "RoCE v2": [5, 7]}, ("net1",), False)],
    "cx5-mce0-second-port-v1only.txt": [
        ("mlx5_0", {"IB/RoCE v1": [0, 2], "RoCE v2": [1, 3]}, ("mce0",), True),
        ("mlx5_1", {"IB/RoCE v1": [0]}, (), True),
    ],
    "rdma0-simple.txt": [("mlx5_0", {"IB/RoCE v1": [0, 2], "RoCE v2": [1, 3]}, ("rdma0",), True)],
}


def list_gids(device: RdmaDevice, port: RdmaPort) -> tuple[Any, ...]:
    by_type: dict[str, list[int]] = {}
    for gid in port.gids:
        by_type.setdefault(gid.type or "", []).append(gid.index)
    return device.name, by_type, port.netdevs, port.gids_known


TOOLS = {
    "ibstat": Tool(
        parse_ibstat,
        IBSTAT,
        (("", "ibpanic: [1] main: no such device\n", "mlx5_0 port 1 ==> ib0 (Up)\n"), "CA"),
        "ib-ibstat",
        lambda d, p: (d.name, p.port, p.state, p.phys_state, p.rate_text, p.link_layer, p.lid, p.sm_lid),
        _IBSTAT_OUTPUTS,
        ("mlx4-ibwarn-noise-port1-disabled-TRUNCATED.txt",),
    ),
    "ibstatus": Tool(
        parse_ibstatus,
        IBSTATUS,
        (("state: 4: ACTIVE\n",), "device"),
        "ib-ibstatus",
        lambda d, p: (d.name, p.state, p.phys_state, p.rate_text, p.link_layer, p.lid, p.sm_lid, p.gids[0].gid[20:]),
        _IBSTATUS_OUTPUTS,
    ),
    "ibv_devinfo": Tool(
        parse_ibv_devinfo,
        IBV_DEVINFO,
        (("", "No IB devices found\n", "port: 1\n"), "hca_id"),
        "ib-ibv_devinfo",
        lambda d, p: (d.name, d.firmware, p.port, p.state, p.active_mtu, p.link_layer, p.lid, p.sm_lid),
        _IBV_DEVINFO_OUTPUTS,
        ("v-bnxt-gidtype.txt",),
    ),
    "rdma link": Tool(
        parse_rdma_link,
        RDMA_LINK,
        (("", "\n", "1: lo: <LOOPBACK,UP> mtu 65536\n"), "link"),
        "rdma-link",
        lambda d, p: (d.name, p.port, p.state, p.phys_state, p.netdevs),
        _RDMA_LINK_OUTPUTS,
    ),
    "show_gids": Tool(
        parse_show_gids,
        SHOW_GIDS,
        (("show_gids\n",), "table"),
        "ib-show_gids",
        list_gids,
        _SHOW_GIDS_OUTPUTS,
        ("a800-vm-4nic-trailing-spaces.txt", "container-gids-start-at-4.txt"),
    ),
    "ibdev2netdev": Tool(
        parse_ibdev2netdev,
        IBDEV2NETDEV,
        (("", "bash: ibdev2netdev: command not found\n", "port 1 ==> ib0 (Up)\n"), "port"),
    ),
}
WITH_SAMPLES = [name for name, tool in TOOLS.items() if tool.folder]


@pytest.mark.parametrize(("tool", "file"), [(name, file) for name in WITH_SAMPLES for file in TOOLS[name].outputs])
def test_real_outputs_say_what_their_machines_had(corpus: Path, tool: str, file: str) -> None:
    """Every field, and whether the output is whole."""
    row, rows = TOOLS[tool].row, TOOLS[tool].outputs[file]
    result = TOOLS[tool].parse((corpus / "text" / TOOLS[tool].folder / file).read_text())

    assert rows == [row(device, port) for device in result.devices for port in device.ports] or rows == [
        (device.name, device.firmware) for device in result.devices
    ]
    assert (file in TOOLS[tool].cut) == bool(result.cut)


@pytest.mark.parametrize("tool", WITH_SAMPLES)
def test_every_real_output_is_known(corpus: Path, tool: str) -> None:
    """A new sample in the corpus asks for its row in the table."""
    assert set(TOOLS[tool].outputs) == {file.name for file in (corpus / "text" / TOOLS[tool].folder).iterdir()}


@pytest.mark.parametrize(("tool", "text"), [(name, text) for name, tool in TOOLS.items() for text in tool.refuses[0]])
def test_a_text_of_another_kind_is_refused(tool: str, text: str) -> None:
    """Nothing printed is no proof that there is nothing."""
    with pytest.raises(ParseError, match=TOOLS[tool].refuses[1]):
        TOOLS[tool].parse(text)


@pytest.mark.parametrize("tool", TOOLS)
@given(st.data())
def test_a_cut_output_says_only_what_is_true(tool: str, data: st.DataObject) -> None:
    """Wherever the text ends, no half number, word or table becomes a fact. Of `rdma link` a cut within the last word
    cannot be told from a last line that lost its line feed: that word is believed."""
    text = TOOLS[tool].text
    ends = [at for at, letter in enumerate(text) if letter in " \n"] if tool == "rdma link" else range(len(text) + 1)
    says_only_what_is_true(TOOLS[tool].parse, text, data.draw(st.sampled_from(ends)))
