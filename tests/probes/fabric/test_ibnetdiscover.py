"""`ibnetdiscover`: the topology file with its options, its older forms, and damaged."""

from __future__ import annotations

import pytest

from probes.fabric.ibnetdiscover import parse, parse_nodes, parse_ports
from probes.fabric.topology import FabricEnd, FabricNode
from tests.probes.fabric.fabric_texts import HCA0, HCA1, LEAF1, LEAF2, NODES, PORTS, TOPOLOGY

SWITCH = f'Switch\t65 "S-{LEAF1}"\t\t# "leaf" base port 0 lid 3 lmc 0\n'


def one(text: str):
    """The one link of a file."""
    fabric = parse(text, "f")
    assert () == fabric.problems
    (link,) = fabric.links
    return link


def test_a_node_has_its_ids() -> None:
    """GUIDs get their leading zeros back."""
    node = parse(TOPOLOGY, "f").nodes[HCA1]

    assert FabricNode(HCA1, "ca", "gpu-7 HCA-2", 1, None, HCA0) == node


def test_ids_are_of_one_node_only() -> None:
    """The next one that has none (an old switch without a system image GUID) has none."""
    text = f"vendid=0x2c9\nsysimgguid=0x1\n{SWITCH}\ndevid=0x7\nswitchguid=0x2(2)\n" + SWITCH.replace(LEAF1, LEAF2)
    nodes = parse(text, "f").nodes

    assert "0" * 15 + "1" == nodes[LEAF1].system_image_guid
    assert nodes[LEAF2].system_image_guid is None


@pytest.mark.parametrize(
    "line",
    [
        f'[1]\t"H-{HCA0}"[2](b83fd20300aa0011) \t\t# "gpu-7 mlx4_0" lid 21 4xFDR10',
        f'[1]    "H-{HCA0}"[2](b83fd20300aa0011)         # "gpu-7 mlx4_0" lid 21 4xFDR10',
        f'[1][ext 14]\t"H-{HCA0}"[2][ext 3](b83fd20300aa0011) \t\t# "gpu-7 mlx4_0" lid 21 4xFDR10',
        f'[1]\t"H-{HCA0}"[2](b83fd20300aa0011) \t\t# "gpu-7 mlx4_0" lid 21 4xFDR10 s=4 w=2 v=4',
        f'[1]\t"H-{HCA0}"[2](b83fd20300aa0011) \t\t# "gpu-7 mlx4_0" lid 21 4xFDR10 slot 3',
    ],
)
def test_a_port_of_a_switch(line: str) -> None:
    """Pasted with spaces; with -g, -f; behind an I/O director."""
    link = one(f"{SWITCH}{line}\r\n")

    assert (FabricEnd(LEAF1, 1, None, 3), FabricEnd(HCA0, 2, "b83fd20300aa0011", 21)) == (link.a, link.b)
    assert (4, "FDR10") == (link.width, link.speed)


def test_a_port_of_a_channel_adapter_tells_both_lids() -> None:
    """Its own comes first."""
    link = one(
        f'Ca\t2 "H-{HCA0}"\t\t# "gpu-7 mlx4_0"\n'
        f'[2](b83fd20300aa0011) \t"S-{LEAF1}"[17]\t\t# lid 21 lmc 0 "a \\"lid 9 4xSDR\\" b" lid 3 4xEDR\n'
    )

    assert (FabricEnd(HCA0, 2, "b83fd20300aa0011", 21), FabricEnd(LEAF1, 17, None, 3)) == (link.a, link.b)
    assert (4, "EDR") == (link.width, link.speed)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ("4xNDR", (4, "NDR")), ("2xHDR", (2, "HDR")), ("1xSDR", (1, "SDR")), ("4xXDR", (4, "XDR")),
        ("4x???", (4, None)), ("??QDR", (None, "QDR")), ("4xSD", (4, None)), ("4x", (4, None)), ("", (None, None)),
    ],
)  # fmt: skip
def test_what_runs_on_a_link(runs: str, said: tuple) -> None:
    """What the tool has no name for, and what was cut, is not known."""
    link = one(f'{SWITCH}[1]\t"S-{LEAF2}"[2]\t\t# "leaf-2" lid 4 {runs}')

    assert said == (link.width, link.speed)


def test_lids_that_mean_none() -> None:
    """Before a subnet manager came by."""
    link = one(f'{SWITCH.replace("lid 3", "lid 0")}[1]\t"S-{LEAF2}"[2]\t\t# "leaf-2" lid 65535 4xEDR')

    assert (None, None) == (link.a.lid, link.b.lid)


def test_headings_of_groups_are_no_problem() -> None:
    """What `ibnetdiscover -g` puts between."""
    text = "\nChassis 1 (guid 0x5)\n\n# Spine Nodes\nsysimgguid=0x5\t\t# Chassis 1\nswitchguid=0x6(6)\t# Spine 1\n"
    fabric = parse(f"{text}{SWITCH}\n# Line Nodes\nNon-Chassis Nodes\nHostname: gpu-7\n", "f")

    assert () == fabric.problems
    assert "0000000000000005" == fabric.nodes[LEAF1].system_image_guid


def test_a_file_that_was_cut_tells_as_much_as_it_holds() -> None:
    """The far end is a node as far as its line names it; the last line has no far end."""
    text = TOPOLOGY[: TOPOLOGY.index(f'"S-{LEAF2}"[33]') + 10]
    fabric = parse(text, "f")

    assert [(LEAF1, HCA0)] == [(link.a.guid, link.b.guid) for link in fabric.links if link.b]
    assert ("gpu-7 mlx5_0", "ca", None) == (
        fabric.nodes[HCA0].name, fabric.nodes[HCA0].kind, fabric.nodes[HCA0].ports,
    )  # fmt: skip
    assert ["f, line 12: no far end of a port: '[33]\\t\"S-0c42a10'"] == list(fabric.problems)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'[1]\t"S-{LEAF2}"[2]\n', "a port without a node"),
        (f'Switch 65 nothing\n[1]\t"S-{LEAF2}"[2]\n', "not understood"),
        (f"{SWITCH}[1]{'x' * 5000}\n", "too long"),
        (f"> {SWITCH}", "not understood"),
    ],
)
def test_lines_that_are_no_part_of_a_file(text: str, why: str) -> None:
    """Each is a problem, and no link."""
    fabric = parse(text, "f")

    assert why in fabric.problems[0]
    assert () == fabric.links


def test_ports_report_lines_that_are_none() -> None:
    """A cut one, and something else."""
    first = PORTS.splitlines()[0]
    fabric = parse_ports(f"{first[: first.index('0x0c42') + 4]}\nmoan\n{'x' * 5000}\n", "f")

    assert () == fabric.links
    assert ["no far end of a port", "no port of the report", "no port of the report"] == [
        problem.split(": ")[1] for problem in fabric.problems
    ]


def test_lists_of_nodes() -> None:
    """`ibhosts`, `ibswitches`, `ibnetdiscover -l`: nodes with their GUIDs, no links."""
    fabric = parse_nodes(NODES + "Ca\t: gone\n", "f")

    assert FabricNode(HCA1, "ca", "gpu-7 HCA-2", 1, None) == fabric.nodes[HCA1]
    assert FabricNode(LEAF1, "switch", "MF0;leaf-1:MQM9700/U1", 65, 11) == fabric.nodes[LEAF1]
    assert ((), 1) == (fabric.links, len(fabric.problems))
