"""`iblinkinfo` and `iblinkinfo -l`: what stands on a line, and which node the far end is."""

from __future__ import annotations

import pytest

from probes.fabric.iblinkinfo import parse
from tests.probes.fabric.fabric_texts import HCA0, HCA1, LEAF1, LEAF2, LINES, LINKS

HEADER = f"Switch: 0x{LEAF1} leaf-1:\n"


def of(runs: str, far: str = '    12   33[  ] "leaf-2" ( )'):
    """The link of one line of a switch."""
    fabric = parse(f"{HEADER}      11    1[  ] ==({runs}==>  {far}\n", "f")
    (link,) = fabric.links
    return link, fabric


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (" 4X         106.25 Gbps Active/  LinkUp)", (4, "NDR", "Active", "LinkUp")),
        (" 4X           25.78125 Gbps Active/  LinkUp)", (4, "EDR", "Active", "LinkUp")),
        (" 4X  10.0 Gbps (FDR10) Active/  LinkUp)", (4, "FDR10", "Active", "LinkUp")),
        (" 1X            2.5 Gbps Initialize/  LinkUp)", (1, "SDR", "Initialize", "LinkUp")),
        (" 4X      undefined (8) Active/  LinkUp)", (4, None, "Active", "LinkUp")),
        ("undefined (32)  undefined (8) Armed/  LinkUp)", (None, None, "Armed", "LinkUp")),
        ("12X           10.0 Gbps Active/  LinkUp) (HOQ:16 VL_Stall:7)", (12, "QDR", "Active", "LinkUp")),
        ("                Down/Disabled)", (None, None, "Down", "Disabled")),
        (" 4X  2.5 Gbps  ? (7)/ ? (9))", (4, "SDR", None, None)),
        (")", (None, None, None, None)),
    ],
)
def test_what_runs_on_a_link(runs: str, said: tuple) -> None:
    """What an older version has no name for is not known. Of a port that is down only the states mean anything."""
    link, _ = of(runs)

    assert said == (link.width, link.speed, link.state, link.phys_state)


@pytest.mark.parametrize(
    ("hints", "said"),
    [
        ("( )", (None, None)),
        ("(Could be 4X )", (4, None)),
        ("( Could be 106.25 Gbps)", (None, "NDR")),
        ("(Could be 12X Could be 10.0 Gbps)", (12, "QDR")),
        ("( Could be FDR10 (Found link at QDR but expected speed is FDR10))", (None, "FDR10")),
        ("(Could be undefined (64) Could be undefined (16))", (None, None)),
        ("(Could be ", (None, None)),
    ],
)
def test_what_both_ends_could_do(hints: str, said: tuple) -> None:
    """As far as the tool has a name for it."""
    link, _ = of(" 2X           10.0 Gbps Active/  LinkUp)", f'    12   33[  ] "leaf-2" {hints}')

    assert said == (link.could_width, link.could_speed)


def test_a_name_may_hold_quotes_and_brackets() -> None:
    """The far end's name ends where its hints begin."""
    link, fabric = of(" 4X 10.0 Gbps Active/  LinkUp)", '    12   33[ 7] "a "b" (c) ==(" (Could be 12X )')

    assert 'a "b" (c) ==(' == fabric.nodes[link.b.guid].name
    assert 12 == link.could_width


def test_a_far_end_is_the_node_of_its_lid_and_name() -> None:
    """Two nodes with LID 0, before a subnet manager came by, are told apart by their names; two of one name are not."""
    text = f'{HEADER}      0    1[  ] ==( 4X 10.0 Gbps Initialize/  LinkUp)==>       0    1[  ] "gpu-7 HCA-1" ( )\n'
    host = (
        f'CA: gpu-7 HCA-1:\n  0x{HCA0}  0    1[  ] ==( 4X 10.0 Gbps Initialize/  LinkUp)==>  0    1[  ] "leaf-1" ( )\n'
    )
    twin = host.replace(HCA0, HCA1)
    alone, two = parse(text + host, "f"), parse(text + host + twin, "f")

    assert [(LEAF1, HCA0, HCA0)] == [(li.a.guid, li.b.guid, li.b.port_guid) for li in alone.links if li.b]
    assert () == alone.problems
    assert "which node 'gpu-7 HCA-1' is unknown" in two.problems[0]


def test_a_far_end_that_is_not_in_the_file_is_a_node_by_its_lid() -> None:
    """`iblinkinfo -S GUID` prints one switch only."""
    link, fabric = of(" 4X 10.0 Gbps Active/  LinkUp)", '    21    1[  ] "gpu-7 HCA-1" ( )')

    assert ("lid 21", 1, None, 21) == link.b
    assert ("ca", "gpu-7 HCA-1") == (fabric.nodes["lid 21"].kind, fabric.nodes["lid 21"].name)


def test_both_ports_of_a_channel_adapter_are_of_one_node() -> None:
    """Its first port's GUID stands for it; each port keeps its own."""
    fabric = parse(
        "CA: gpu-7 HCA-1:\n"
        + "".join(
            f'   0x{guid}  2{port}    {port}[  ] ==( 4X 10.0 Gbps Active/  LinkUp)==>  11    {port}[  ] "leaf-1" ( )\n'
            for port, guid in ((1, HCA0), (2, HCA1))
        ),
        "f",
    )

    assert [(HCA0, 1, HCA0, 21), (HCA0, 2, HCA1, 22)] == [link.a for link in fabric.links]


def test_lines_that_grep_picked() -> None:
    """Without the headers: hosts by their ports' GUIDs, switches by their LIDs."""
    fabric = parse("".join(f"{line}\n" for line in LINKS.splitlines() if "LinkUp" in line), "f")
    names = {node.guid: (node.kind, node.name.partition(":")[0]) for node in fabric.nodes.values()}

    assert () == fabric.problems
    assert {"lid 11": ("switch", "MF0;leaf-1"), "lid 12": ("switch", "MF0;leaf-2")} == {
        guid: name for guid, name in names.items() if name[0] == "switch"
    }
    assert {HCA0: "gpu-7 mlx5_0", HCA1: "gpu-7 HCA-2"} == {guid: names[guid][1] for guid in (HCA0, HCA1)}
    assert [(2, "HDR"), (4, "NDR"), (4, "NDR"), (4, "NDR")] == [(link.width, link.speed) for link in fabric.links]


def test_a_port_that_could_not_be_asked() -> None:
    """It is up, and nothing is known of its far end."""
    link, _ = of(" 4X 10.0 Gbps Active/  LinkUp)", '    "Port not available"')

    assert (None, "Active", None) == (link.b, link.state, link.width)


def test_a_line_for_itself_is_a_switch_where_ports_share_a_guid() -> None:
    """With -l nobody says what a node is."""
    renamed = LINES.replace("MF0;leaf-1:MQM9700/U1", "leaf one").replace("MF0;leaf-2:MQM9700/U1", "leaf two")
    kinds = {node.guid: node.kind for node in parse(renamed, "f").nodes.values()}
    alone = parse(renamed.splitlines()[2].replace("gpu-7 mlx5_0", "gpu seven"), "f").nodes

    assert ("switch", "switch", "ca") == (kinds[LEAF1], kinds[LEAF2], kinds[HCA0])
    assert {"unknown"} == {node.kind for node in alone.values()}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"< {LINKS.splitlines()[1]}\n", "a line of a difference between two fabrics"),
        (f"{HEADER}  11  1[  ] ==( 4X 10.0 Gbps Act", "no port of a link"),
        (f'{HEADER}  11  1[  ] ==( 4X 10.0 Gbps Active/  LinkUp)==>      12   33[  ] "lea', "no far end of a link"),
        ('  0  1[  ] ==( 4X 10.0 Gbps Active/  LinkUp)==>      12   33[  ] "leaf" ( )\n', "a port without a node"),
        ("ibwarn: [1] x\n", "not understood"),
        (f"{HEADER}{'x' * 5000}==(\n", "too long"),
    ],
)
def test_lines_that_are_no_link(text: str, why: str) -> None:
    """Each is a problem, and no link."""
    fabric = parse(text, "f")

    assert why in fabric.problems[0]
    assert () == fabric.links
