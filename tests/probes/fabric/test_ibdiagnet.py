"""ibdiagnet's files: columns by their names, sections by theirs, and what is not read."""

from __future__ import annotations

import pytest

from probes.fabric import ibdiagnet
from probes.fabric.topology import FabricNode
from tests.probes.fabric.fabric_texts import DB_CSV, HCA0, LEAF1, LEAF2, NET_DUMP

COLUMNS = NET_DUMP.splitlines()[2]


def db_csv(text: str):
    return ibdiagnet.parse_db_csv(text, "f")


def net_dump(text: str):
    return ibdiagnet.parse_net_dump(text, "f")


def test_columns_of_net_dump_are_found_by_their_names() -> None:
    """Another version has others between."""
    wider = NET_DUMP.replace(": MTU :", ": MTU : New :").replace(" : 5 : ", " : 5 : x : ")
    down = "DOWN : POLL : N/A : x : N/A"
    wider = wider.replace("DOWN : POLL : N/A : N/A", down)

    assert net_dump(NET_DUMP).links == net_dump(wider).links


@pytest.mark.parametrize("column", ["IB#", "Sta", "PhysSta", "LWA", "LSA", "Neighbor Guid", "N#", "NLID"])
def test_a_net_dump_without_a_column_is_not_read(column: str) -> None:
    """Nobody guesses what stands where."""
    fabric = net_dump(NET_DUMP.replace(f" {column} ", " What "))

    assert () == fabric.links
    assert "no port of a switch" in fabric.problems[0]


def test_a_label_leads_to_the_port_of_its_switch() -> None:
    """1/17/1 is port 33 of the other one; without that one's block nobody knows."""
    alone = NET_DUMP[: NET_DUMP.index('"MF0;leaf-2:MQM9700/U1", Mellanox')]
    fabric = net_dump(alone)

    assert [(33, 33)] == [(li.a.port, li.b.port) for li in net_dump(NET_DUMP).links if li.b and li.b.guid == LEAF2]
    assert [f"f, line 6: which port of 0x{LEAF2} '1/17/1' is unknown"] == list(fabric.problems)


def test_words_of_net_dump() -> None:
    """States in full, an underscore for a blank, XDR."""
    row = f'1 : 1 : INI : LINK_UP : 5 : 1x : 200 : F : R : 0x{HCA0} : 1 : 21 : "gpu-7 mlx5_0"'
    (link,) = net_dump(f'"leaf:1", Mellanox, 0x{LEAF1}, LID 11\n{COLUMNS}\n{row}\n').links

    assert ("Initialize", "LinkUp", 1, "XDR") == (link.state, link.phys_state, link.width, link.speed)


@pytest.mark.parametrize("section", ["NODES", "PORTS", "LINKS"])
def test_a_file_without_a_section_tells_the_rest(section: str) -> None:
    """Names, what runs, or the cables."""
    begin, end = DB_CSV.index(f"START_{section}"), DB_CSV.index(f"END_{section}")
    fabric = db_csv(DB_CSV[:begin] + DB_CSV[end:])

    assert ((section != "LINKS") * 4) == len([link for link in fabric.links if link.b])
    assert all(link.width is None for link in fabric.links if link.b) or section != "PORTS"
    assert (FabricNode(HCA0, "unknown") == fabric.nodes.get(HCA0)) is (section == "NODES")
    assert () == fabric.problems


def test_a_column_that_is_missing_is_said() -> None:
    """The section is not read."""
    fabric = db_csv(DB_CSV.replace("PortNum2", "Port2"))

    assert "section LINKS is not read: it has no PortNum2" in fabric.problems[0]


def test_a_file_that_was_cut_is_said_to_be_cut() -> None:
    """Its last row is no row, its section has no end."""
    fabric = db_csv(DB_CSV[: DB_CSV.index("END_LINKS") - 3])

    assert ["no row of LINKS", "section LINKS has no end"] == [line.split(": ")[1] for line in fabric.problems]
    assert 3 == len([link for link in fabric.links if link.b])


def test_descriptions_may_hold_commas_and_quotes() -> None:
    """They are quoted as in any CSV."""
    fabric = db_csv(DB_CSV.replace('"gpu-7 mlx5_0"', '"gpu-7, ""old"" mlx5_0"'))

    assert 'gpu-7, "old" mlx5_0' == fabric.nodes[HCA0].name


@pytest.mark.parametrize(
    ("active", "host", "switch", "could"),
    [
        (1, 19, 19, 4),
        (1, 17, 19, 2),
        (16, 19, 3, 4),
        (2, 19, 19, None),
        (16, 17, 19, None),
        (0, 19, 19, None),
        (64, 19, 19, None),
    ],
)
def test_lanes_that_both_ends_support(active: int, host: int, switch: int, could: int | None) -> None:
    """Codes of PortInfo: 1 is 1X, 2 is 4X, 16 is 2X. As many as run, and none that run, are no hint."""
    text = DB_CSV.replace(f"0x{HCA0},1,21,2,19,", f"0x{HCA0},1,21,{active},{host},")
    text = text.replace(f"0x{LEAF1},1,0,2,19,", f"0x{LEAF1},1,0,{active},{switch},")
    (link,) = [li for li in db_csv(text).links if li.b and HCA0 in (li.a.guid, li.b.guid)]

    assert could == link.could_width
