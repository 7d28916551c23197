"""Uplinks that are in the wrong place, or slow."""

from __future__ import annotations

import pytest

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import find_cabling_faults
from agent.fleet.cluster.fabric_view import build_views
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails

# Cables between switches that peers have, by the exact ports where the peers' pattern shows them.


def test_a_missing_cable_with_both_its_ports() -> None:
    """One of two to a spine."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf03", 36)

    (result,) = plant.breaks()

    assert "missing-uplink" == result.kind
    assert "leaf03 has 7 of 8 cables up: 1 of 2 to spine02 (expected port 36)" == result.text
    assert {"leaf03/36": "spine02/6"} == result.should
    assert "5 of 6 leaves have 2 to spine02" == result.compared


def test_a_spine_that_a_leaf_does_not_reach() -> None:
    """All cables to it are missing."""
    plant = fat_tree(leaves=6, spines=4)
    for port in (35, 36):
        plant.cut("leaf03", port)

    (result,) = plant.breaks()

    assert "leaf03 has 6 of 8 cables up: 0 of 2 to spine02 (expected ports 35 and 36)" == result.text
    assert ("leaf03/35", "leaf03/36") == result.ports


def test_between_spines_and_cores_too() -> None:
    """The second row is held against its own."""
    plant = fat_tree(pods=4, spines=3, cores=3)
    plant.cut("spine05", 34)

    (result,) = plant.breaks()

    assert "spine05 has 2 of 3 cables up: 0 of 1 to core02 (expected port 34)" == result.text


def test_two_cables_at_each_others_spine() -> None:
    """One break, not two missing ones."""
    plant = fat_tree(leaves=6, spines=4)
    plant.swap("leaf02", "leaf05", 33, 38)

    (result,) = plant.breaks()

    assert "swapped-uplinks" == result.kind
    assert {"leaf02/33", "leaf05/38"} == set(result.ports)
    assert {"leaf02/33": "spine01", "leaf05/38": "spine03"} == result.should


def test_a_cable_to_another_spine() -> None:
    """Missing at one, too many at the other: one break that says both."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf02", 33)
    plant.cable("leaf02", 33, "spine02", 60)

    (result,) = plant.breaks()

    assert "uplink-elsewhere" == result.kind
    assert "leaf02/33 goes to spine02: by its peers leaf02 has that cable to spine01" == result.text
    assert {"leaf02/33": "spine01"} == result.should


def test_a_service_switch_is_no_leaf_that_lost_its_cables() -> None:
    """Two cables to one spine, and named otherwise."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cable("login1 mlx5_0", 1, plant.switch("mgmt-sw1"), 1)
    for port in (40, 41):
        plant.cable("mgmt-sw1", port, "spine01", port)

    assert [] == plant.breaks()


def test_a_gateway_leaf_of_half_the_spines_is_no_break() -> None:
    """Named otherwise, and cabled to two spines of four, twice as thick."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cable("login1 mlx5_0", 1, plant.switch("gw-a"), 1)
    for port in range(8):
        plant.cable("gw-a", 40 + port, f"spine0{1 + port % 2}", 40 + port)

    assert [] == plant.breaks()


@pytest.mark.parametrize("leaves", [2, 3])
def test_few_leaves_are_no_majority(leaves: int) -> None:
    """Of two leaves with one and two cables neither is wrong."""
    plant = fat_tree(leaves=leaves, spines=1)
    plant.cut("leaf01", 33)
    if leaves == 3:
        plant.cut("leaf02", 33)

    assert [] == plant.breaks()


def test_several_odd_leaves_do_not_hide_each_other() -> None:
    """Two of six lack a cable to one spine: the other spines show what is usual."""
    plant = fat_tree(leaves=6, spines=4)
    for leaf in (1, 2):
        plant.cut(f"leaf0{leaf}", 35)

    assert ["missing-uplink"] * 2 == [each.kind for each in plant.breaks()]


def test_a_new_spine_that_half_of_the_leaves_reach_is_no_break() -> None:
    """It is being built in."""
    plant = fat_tree(leaves=8, spines=4)
    for leaf in range(1, 5):
        for port in (60, 61):
            plant.cable(f"leaf{leaf:02d}", port, plant.switch("spine05"), leaf * 2 + port - 60)

    assert [] == plant.breaks()


def test_leaves_of_two_generations_are_no_break() -> None:
    """Half of them with four cables, half with two."""
    plant = fat_tree(leaves=8, spines=2, each=2)
    for leaf in range(5, 9):
        plant.cut(f"leaf{leaf:02d}", 34)
        plant.cut(f"leaf{leaf:02d}", 36)

    assert [] == plant.breaks()


def test_a_leaf_of_many_that_has_one_cable_left() -> None:
    """It is named as its peers are, so it is one of them."""
    plant = rails(units=2, nodes=4, spines=8, each=1)
    for port in range(34, 41):
        plant.cut("su1-leaf1", port)

    (result,) = plant.breaks()

    assert result.text.startswith("su1-leaf1 has 1 of 8 cables up")


def test_a_switch_that_is_named_and_not_listed() -> None:
    """The file is cut: what a whole leaf lacks is said, but not which port of that spine is free; no more is said."""
    plant = fat_tree(leaves=6, spines=4)
    plant.nodes["spine02"] = plant.nodes["spine02"]._replace(ports=None)
    plant.cut("leaf03", 36)

    (result,) = plant.breaks()
    assert {"leaf03/36": "spine02"} == result.should

    plant.nodes["leaf03"] = plant.nodes["leaf03"]._replace(ports=None)
    assert [] == plant.breaks()


def test_a_trunk_between_leaves_is_left_alone() -> None:
    """Two leaves of one row that are joined."""
    plant: Plant = fat_tree(leaves=6)
    plant.cable("leaf01", 60, "leaf02", 60)

    assert [] == plant.breaks()


# Links slower than their peers, or than both ends could be.


@pytest.mark.parametrize(("width", "speed", "told"), [(2, "NDR", "2xNDR"), (4, "HDR", "4xHDR"), (1, "NDR", "1xNDR")])
def test_a_cable_between_switches_that_runs_slower(width: int, speed: str, told: str) -> None:
    """Held against all of those rows."""
    plant = fat_tree()
    cable = plant.of("leaf01", 33)
    cable.width, cable.speed = width, speed

    (result,) = plant.breaks()

    assert f"leaf01/33 to spine01/1 runs at {told}, its peers at 4xNDR" == result.text
    assert ("leaf01/33", "spine01/1") == result.ports
    assert "15 of 16 links of rows 1 and 2 run at 4xNDR" == result.compared


def test_a_hosts_port_that_runs_slower() -> None:
    """Held against the same rail of its unit."""
    plant = rails(nodes=6)
    plant.of("n002 mlx5_1").speed = "HDR"

    (result,) = plant.breaks()

    assert "n002 mlx5_1 on su1-leaf2/2 runs at 4xHDR, its peers at 4xNDR" == result.text
    assert "5 of 6 links of su1's mlx5_1 run at 4xNDR" == result.compared


def test_faster_than_the_peers_is_fine() -> None:
    """A new switch among old ones."""
    plant = fat_tree()
    plant.of("leaf01", 33).speed = "XDR"

    assert [] == plant.breaks()


def test_a_pace_that_is_not_known_is_not_slow() -> None:
    """A name that nobody knows yet, and one that the file leaves out."""
    plant = fat_tree()
    plant.of("leaf01", 33).speed = "QQR"
    plant.of("leaf01", 34).width = None  # type: ignore[assignment]

    assert [] == plant.breaks()


def test_rows_of_two_speeds_are_no_break() -> None:
    """Hosts at HDR below switches at NDR; leaves of two generations."""
    plant = fat_tree(leaves=8)
    for cable in plant.cables:
        if cable.a[0].startswith("n") or cable.a[0] in ("leaf01", "leaf02", "leaf03"):
            cable.speed = "HDR"

    assert [] == plant.breaks()


def test_both_ends_could_be_faster() -> None:
    """As iblinkinfo says; told once, also where the peers are faster."""
    plant = rails(nodes=6)
    first, second = plant.of("su1-leaf1", 33), plant.of("su1-leaf2", 33)
    first.could = "XDR"
    second.speed, second.could = "HDR", "NDR"

    result = {each.kind: each.text for each in plant.breaks()}

    assert {
        "slower-than-both-ends": "spine1/1 to su1-leaf1/33 runs at 4xNDR, both ends could 4xXDR",
        "uneven-pace": "spine1/3 to su1-leaf2/33 runs at 4xHDR, its peers at 4xNDR (both ends could 4xNDR)",
    } == result


def test_a_whole_row_that_could_be_faster_is_one_break() -> None:
    """A setting, or old cables: no single one is blamed."""
    plant = fat_tree()
    for cable in plant.cables:
        if cable.b[0].startswith("spine"):
            cable.speed, cable.could = "HDR", "NDR"

    (result,) = plant.breaks()

    assert "16 of 16 links of rows 1 and 2 could be faster: 16 run at 4xHDR and could 4xNDR" == result.text


@pytest.mark.parametrize("alone", [True, False])
def test_an_adapter_that_can_do_no_more_is_not_slow(alone: bool) -> None:
    """Both ends decide what a link can do: another adapter among newer ones, of a login node or of a compute node."""
    plant = rails(nodes=6)
    for rail in (1, 2, 3) if alone else ():
        plant.cut(f"n002 mlx5_{rail}")
    plant.of("n002 mlx5_0").speed = "HDR"
    fabric = plant.fabric()
    links = tuple(link._replace(could_told=True) for link in fabric.links)
    cluster = build([FabricFile("f", fabric._replace(links=links))], None)

    assert [] == [each for each in find_cabling_faults(cluster, build_views(cluster)) if each.kind == "uneven-pace"]
    assert ["uneven-pace"] == [each.kind for each in plant.breaks() if each.kind == "uneven-pace"]  # nothing is known
