"""Files of a whole fabric, and nodes and links while they are gathered from them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from probes.fabric.files import FORMATS, fabric_format, read_fabric
from probes.fabric.formatting import describe_node
from probes.fabric.topology import (
    MOST_PROBLEMS,
    Fabric,
    FabricBuilder,
    FabricEnd,
    FabricLink,
    FabricNode,
)
from tests.probes.fabric.fabric_texts import DB_CSV, EVERY, HCA0, HCA1, LEAF1, LEAF2, LINES, LINKS, NODES, SHARP

# Files of a whole fabric: recognized by what they hold, all six tell the same, and no input makes them raise.


CABLES = {
    ((HCA0, 1), (LEAF1, 1)): (4, "NDR"),
    ((HCA1, 1), (LEAF2, 1)): (2, "HDR"),
    ((LEAF1, 33), (LEAF2, 33)): (4, "NDR"),
    ((SHARP, 1), (LEAF1, 65)): (4, "NDR"),
}


def cables(fabric: Fabric) -> dict:
    collected = {}
    for link in fabric.links:
        if link.b:
            one, other = sorted(
                [link.a, link.b], key=lambda end: (end.guid.startswith("0c42a10300bb02"), end.port != 1)
            )
            ends = sorted([(one.guid, one.port), (other.guid, other.port)], key=lambda end: list(NAMES).index(end[0]))
            collected[tuple(ends)] = link.width, link.speed
    return collected


NAMES = {
    HCA0: "gpu-7 mlx5_0",
    HCA1: "gpu-7 HCA-2",
    SHARP: "Mellanox Technologies Aggregation Node",
    LEAF1: "MF0;leaf-1:MQM9700/U1",
    LEAF2: "MF0;leaf-2:MQM9700/U1",
}


def test_which_nodes_a_file_lists_itself() -> None:
    """Formats with a block a node; a section that has no end is a file that is cut."""
    listed = {name: read_fabric(text, name).listed for name, text in EVERY.items()}
    assert {LEAF1, LEAF2} == set(listed["ibdiagnet net_dump"]) == set(listed["iblinkinfo"]) & {LEAF1, LEAF2}
    assert {LEAF1, LEAF2, HCA0, HCA1, SHARP} == set(listed["ibnetdiscover"])
    assert () == listed["ibdiagnet db_csv"]
    assert not any(read_fabric(text, name).cut for name, text in EVERY.items())
    assert read_fabric(DB_CSV[: DB_CSV.index("END_LINKS")], "db_csv").cut


def test_a_port_that_two_cables_claim() -> None:
    """The first stands; the other is kept apart."""
    text = EVERY["ibnetdiscover"]
    line = next(splitline for splitline in text.splitlines() if f'"H-{HCA0}"[1]' in splitline)
    fabric = read_fabric(text.replace(line, line + "\n" + line.replace("[1]", "[2]", 1)), "f")

    (link,) = fabric.twice
    assert {(HCA0, 1), (LEAF1, 2)} == {(end.guid, end.port) for end in (link.a, link.b) if end}
    assert () == read_fabric(text, "f").twice


@pytest.mark.parametrize("name", ["iblinkinfo", "ibdiagnet db_csv"])
def test_what_both_ends_could_do_is_told_where_it_is_no_more(name: str) -> None:
    assert {True} == {link.could_told for link in read_fabric(EVERY[name], name).links if link.b and link.speed}
    assert {None} == {link.could_told for link in read_fabric(EVERY["ibnetdiscover"], name).links}


@pytest.mark.parametrize("name", EVERY)
def test_every_tool_tells_the_same_fabric(name: str) -> None:
    """Nodes with their kinds, names and LIDs; each cable once, with what runs on it; the ends with their LIDs."""
    fabric = read_fabric(EVERY[name], name)

    assert () == fabric.problems
    assert fabric.format_name in FORMATS
    assert NAMES == {node.guid: node.name for node in fabric.nodes.values()}
    assert {LEAF1: 11, LEAF2: 12} == {n.guid: n.lid for n in fabric.nodes.values() if n.kind == "switch"}
    assert {HCA0, HCA1, SHARP} == {n.guid for n in fabric.nodes.values() if n.kind == "ca"}
    assert CABLES == cables(fabric)
    ends = {(end.guid, end.lid) for link in fabric.links for end in (link.a, link.b) if end}
    assert {(HCA0, 21), (HCA1, 22), (SHARP, 31), (LEAF1, 11), (LEAF2, 12)} == ends


@pytest.mark.parametrize("name", [name for name in EVERY if name != "ibnetdiscover"])
def test_a_port_without_a_cable_is_told_as_free(name: str) -> None:
    """What its width and speed say means nothing. ibnetdiscover leaves it out."""
    (free,) = [link for link in read_fabric(EVERY[name], name).links if link.b is None]

    assert ((LEAF1, 2), None, None) == ((free.a.guid, free.a.port), free.width, free.speed)
    if name != "ibnetdiscover -p":
        assert ("Down", "Polling") == (free.state, free.phys_state)


@pytest.mark.parametrize("name", ["iblinkinfo", "iblinkinfo -l", "ibdiagnet db_csv"])
def test_what_both_ends_could_do_is_told_where_it_is_more(name: str) -> None:
    """By the tool's own hint, or by what both ends support."""
    could = {(li.a.guid, li.b.guid if li.b else ""): (li.could_width, li.could_speed) for li in links(name)}

    assert [(4, "NDR")] == [item for item in could.values() if item != (None, None)]


def links(name: str) -> tuple[FabricLink, ...]:
    return read_fabric(EVERY[name], name).links


@pytest.mark.parametrize("name", ["iblinkinfo", "iblinkinfo -l", "ibnetdiscover -p"])
def test_where_only_guids_of_ports_are_named_a_node_says_so(name: str) -> None:
    """So that nobody takes one for the GUID of a node."""
    assert all(node.guid_of_port for node in read_fabric(EVERY[name], name).nodes.values())
    assert not any(node.guid_of_port for node in read_fabric(EVERY["ibnetdiscover"], name).nodes.values())


@pytest.mark.parametrize(
    "name", ["ibnetdiscover", "iblinkinfo", "iblinkinfo -l", "ibnetdiscover -p", "ibdiagnet db_csv"]
)
def test_ports_of_hosts_have_their_own_guids(name: str) -> None:
    """By which a node finds itself; a switch's ports have none of their own."""
    ends = [end for link in links(name) for end in (link.a, link.b) if end]

    assert {HCA0, HCA1, SHARP} == {end.port_guid for end in ends if end.port_guid}
    assert {LEAF1, LEAF2} == {end.guid for end in ends if not end.port_guid}


def test_the_roles_of_nodes_are_in_their_descriptions() -> None:
    """A SHARP node is no host."""
    nodes = read_fabric(EVERY["ibnetdiscover"], "f").nodes

    assert ("host", "gpu-7", "HCA-2") == describe_node(nodes[HCA1])[:3]
    assert "aggregation" == describe_node(nodes[SHARP]).role
    assert ("switch", "leaf-1", None, "MQM9700", "U1") == describe_node(nodes[LEAF1])


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("switch", "MF0;core:IS5200/L07/U1", ("switch", "core", None, "IS5200", "L07/U1")),
        ("switch", "SwitchX -  Mellanox Technologies", ("switch", None, None, None, None)),
        ("switch", "leaf1", ("switch", "leaf1", None, None, None)),
        ("ca", "node1-mlx5_0", ("host", "node1-mlx5_0", None, None, None)),
        ("ca", "MT25408 ConnectX Mellanox Technologies", ("host", None, None, None, None)),
        ("ca", "gpu 7 of rack 3", ("host", "gpu 7 of rack 3", None, None, None)),
        ("ca", "gpu-1 ibp26s0", ("host", "gpu-1", "ibp26s0", None, None)),
        ("router", "r1", ("router", "r1", None, None, None)),
        ("unknown", "leaf1", ("unknown", "leaf1", None, None, None)),
        ("ca", "", ("host", None, None, None, None)),
    ],
)
def test_descriptions(kind: str, text: str, said: tuple) -> None:
    """What a vendor wrote is no name; what somebody typed is one."""
    assert said == describe_node(FabricNode("", kind, text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DB_CSV, "ibdiagnet db_csv"),
        ("\x1b[1mCA: gpu-7:\n" + LINKS, "iblinkinfo"),
        (LINES.replace("\n", "\r\n"), "iblinkinfo"),
        ("ibwarn: [7] mad_rpc: _do_madrpc failed\n" + EVERY["ibnetdiscover"], "ibnetdiscover"),
        ("# Topology file: generated on Tue Feb  3 14:02:06 2026\n", "ibnetdiscover"),
        (NODES, "ibnodes"),
        ("Ty   :   # : #IB : GUID : LID : Sta\n", "ibdiagnet net_dump_ext"),
        ("CA 'mlx5_0'\n\tCA type: MT4129\n", None),
        ("", None),
        ("Switch off the light\n", None),
    ],
)
def test_files_are_recognized_by_what_they_hold(text: str, said: str | None) -> None:
    """Never by their names."""
    assert said == fabric_format(text)


def test_what_is_not_read_is_said() -> None:
    """A file of another kind, and one whose far ends nobody is sure of."""
    unknown, unsure = read_fabric("Dear all,\n", "mail.txt"), read_fabric("Ty   :   # : #IB : GUID\n", "ext")

    assert ("unknown", {}, ()) == unknown[:3]
    assert unknown.problems[0].startswith("mail.txt: is not recognized: neither ibnetdiscover")
    assert ("ibdiagnet net_dump_ext", {}, ()) == unsure[:3]
    assert unsure.problems[0].startswith("ext: ibdiagnet net_dump_ext is not read: ")


def test_problems_are_bounded_and_name_their_lines() -> None:
    """A file of garbage behind one good line."""
    text = EVERY["ibnetdiscover"] + "".join(f"garbage {n} {'x' * 500}\n" for n in range(5000))
    fabric = read_fabric(text, "net.txt")

    assert CABLES == cables(fabric)
    assert MOST_PROBLEMS + 1 == len(fabric.problems)
    assert fabric.problems[0].startswith("net.txt, line 43: not understood: 'garbage 0 xxx")
    assert "net.txt: and 4980 more" == fabric.problems[-1]
    assert all(len(line) < 200 for line in fabric.problems)


@pytest.mark.parametrize(
    "line",
    ['[1]\t"', '"' * 400, "==(" * 700, " " * 2000, "[ext 1]" * 200, '" (' * 700, "(" * 2000, ":" * 2000, '"x",' * 500],
)
@pytest.mark.parametrize("name", EVERY)
def test_long_hostile_lines_are_read_in_time(name: str, line: str) -> None:
    """1 MiB of one shape behind a good file: two seconds of one core would be a hundred times too long."""
    began = time.thread_time()
    read_fabric(EVERY[name] + f"{line}\n" * (1_000_000 // (len(line) + 1)), "f")

    assert time.thread_time() - began < 10


@pytest.mark.parametrize(
    ("file", "nodes", "cables", "hosts"),
    [
        ("fabric/selene.compute.txt", 5007, 12852, 3675),
        ("fabric/topograph-example.out", 622, 1114, 542),
        ("text/ib-ibnetdiscover/sx6036-qdr-52k.txt", 152, 192, 144),
    ],
)
def test_real_fabrics(corpus: Path, file: str, nodes: int, cables: int, hosts: int) -> None:
    """Nothing of them is not understood; ports of hosts are told apart from SHARP nodes."""
    fabric = read_fabric((corpus / file).read_text(), file)
    roles = [describe_node(node).role for node in fabric.nodes.values()]

    assert () == fabric.problems
    assert (nodes, cables, hosts) == (len(fabric.nodes), len(fabric.links), roles.count("host"))
    assert roles.count("host") + roles.count("switch") + roles.count("aggregation") == nodes
    assert all(link.width == 4 and link.speed for link in fabric.links)


def test_a_real_fabric_of_2007(corpus: Path) -> None:
    """Spaces for tabs, headings of groups, ends that disagree."""
    fabric = read_fabric((corpus / "text/ib-ibnetdiscover/jabl-1.txt").read_text(), "f")

    assert (6, 7) == (len(fabric.nodes), len(fabric.links))
    assert [None, None] == [link.width for link in fabric.links if link.width != 4]
    assert all("differ in width: 4 and 1" in line for line in fabric.problems)
    assert 2 == len(fabric.problems)


def test_a_real_ports_report_with_free_ports(corpus: Path) -> None:
    """ "4x ???" and "4x SDR" of a port without a cable mean nothing."""
    fabric = read_fabric((corpus / "text/ib-fabric/ibnetdiscover-p-edr-mixed-down.txt").read_text(), "f")

    assert [(None, None)] * 2 == [(link.width, link.speed) for link in fabric.links if link.b is None]
    assert {(4, "EDR")} == {(link.width, link.speed) for link in fabric.links if link.b}


# Nodes and links while they are gathered: each once, and what two ends say otherwise.


def wired(*links: FabricLink) -> Fabric:
    wiring = FabricBuilder("f", "f")
    for number, link in enumerate(links, 1):
        wiring.link(link, number)
    return wiring.fabric()


A, B, C = FabricEnd("a", 1, lid=7), FabricEnd("b", 2, "bb"), FabricEnd("c", 3)


def test_both_ends_of_a_link_are_one_link_with_what_each_says() -> None:
    """The end that came first stays first."""
    fabric = wired(FabricLink(A, B._replace(port_guid=None), 4), FabricLink(B, A._replace(lid=None), None, "NDR"))

    assert (FabricLink(A, B, 4, "NDR"),) == fabric.links
    assert () == fabric.problems


def test_where_the_ends_differ_nothing_is_known() -> None:
    """The link trained while the file was made."""
    fabric = wired(FabricLink(A, B, 4, "NDR", "Active"), FabricLink(B, A, 1, "NDR", "Initialize"))

    assert (FabricLink(A, B, None, "NDR", None),) == fabric.links
    assert [
        "f, line 2: the ends of port 1 of a differ in width: 4 and 1",
        "f, line 2: the ends of port 1 of a differ in state: Active and Initialize",
    ] == list(fabric.problems)


@pytest.mark.parametrize("links", [(FabricLink(A, B), FabricLink(A, C)), (FabricLink(A, B), FabricLink(C, B))])
def test_a_port_has_one_far_end(links: tuple[FabricLink, ...]) -> None:
    """A file that names two is not believed in the second."""
    fabric = wired(*links)

    assert (FabricLink(A, B),) == fabric.links
    assert "has two far ends" in fabric.problems[0]


@pytest.mark.parametrize(
    "links", [(FabricLink(A, B, 4), FabricLink(A, None)), (FabricLink(B, None), FabricLink(A, B, 4))]
)
def test_a_port_that_is_connected_and_free(links: tuple[FabricLink, ...]) -> None:
    """The cable stands, and it is said."""
    fabric = wired(*links)

    assert [(A, B)] == [(link.a, link.b) for link in fabric.links]
    assert "once as connected and once as free" in fabric.problems[0]


def test_a_loopback_plug_is_a_link() -> None:
    """A port whose far end is itself."""
    assert (FabricLink(A, A, 4),) == wired(FabricLink(A, A, 4), FabricLink(A, A, 4)).links


def test_a_link_takes_the_place_of_two_free_ports() -> None:
    """Both of its ends were told as free before."""
    fabric = wired(FabricLink(A, None), FabricLink(B, None), FabricLink(C, None), FabricLink(A, B, 4))

    assert [(C, None), (A, B)] == [(link.a, link.b) for link in fabric.links]
    assert ["f, line 4: port 1 of a, or its far end, is reported once as connected and once as free"] == list(
        fabric.problems
    )


def test_a_free_port_is_free_once() -> None:
    """Told twice."""
    assert (FabricLink(A, None),) == wired(FabricLink(A, None), FabricLink(A, None)).links


def test_what_is_learnt_of_a_node_later_fills_its_gaps() -> None:
    """What is known stays."""
    wiring = FabricBuilder("f", "f")
    wiring.node(FabricNode("a", "unknown", lid=3))
    wiring.node(FabricNode("a", "switch", "leaf", lid=4, ports=65))

    assert FabricNode("a", "switch", "leaf", 65, 3) == wiring.fabric().nodes["a"]
