"""Cables between switches at a wrong place: each is one fault at its port, and who has the others is not blamed."""

from __future__ import annotations

import pytest

from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.fabric_kind import classify_fabric
from agent.fleet.cluster.fabric_view import build_views
from tests.agent.fleet.cluster.given import UP, Plant, dragonfly, fat_tree, rails


def pods(pods: int = 2, units: int = 2, per_node: int = 3, nodes: int = 4, each: int = 4) -> Plant:
    """Each rail has switches of its own: a pod's units on two spines of the rail, these on two cores of the rail."""
    plant = Plant()
    for rail in range(per_node):
        for pod in range(pods):
            for unit in range(units):
                number = pod * units + unit
                leaf = plant.switch(f"leaf-u{number + 1}-r{rail}")
                for node in range(nodes):
                    plant.cable(f"n{number * nodes + node + 1:03d} mlx5_{rail}", 1, leaf, node + 1)
                for spine in range(2):
                    upper = plant.switch(f"spine-p{pod + 1}-r{rail}-{spine + 1}")
                    for cable in range(each):
                        plant.cable(leaf, UP + spine * each + cable, upper, unit * each + cable + 1)
            for spine in range(2):
                for core in range(2):
                    upper = plant.switch(f"core-r{rail}-{core + 1}")
                    for cable in range(2):
                        plant.cable(
                            f"spine-p{pod + 1}-r{rail}-{spine + 1}",
                            UP + core * 2 + cable,
                            upper,
                            pod * 4 + spine * 2 + cable + 1,
                        )
    return plant


def kinds(plant: Plant) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in plant.breaks()]


def judged(plant: Plant) -> tuple[int, int, set[tuple[str, str, str | None, str | None]]]:
    cluster = plant.cluster()
    result = judge_by_pattern(cluster, build_views(cluster))
    return result.right, result.judged, {(item.end, item.state, item.should, item.found) for item in result.wrong}


def test_planes_of_rails_are_one_fabric() -> None:
    plant = pods()

    assert [] == kinds(plant)
    assert ("rail-optimized", 3) == (classify_fabric(plant.view()).kind, classify_fabric(plant.view()).levels)
    assert 3 == len(plant.view().part.planes)


def test_two_cables_between_two_rails() -> None:
    """Two leaves a pod: no majority of leaves, but what each of them has alone is another rail's."""
    plant = pods()
    right, every, _ = judged(plant)
    plant.swap("leaf-u1-r0", "leaf-u1-r1", UP + 2, UP + 2)

    result = (
        "leaf-u1-r0/35 goes to spine-p1-r1-1 and leaf-u1-r1/35 to spine-p1-r0-1: "
        "by their peers leaf-u1-r0 has that cable to spine-p1-r0-1, leaf-u1-r1 to spine-p1-r1-1"
    )
    assert [("swapped-uplinks", result)] == kinds(plant)
    assert (right - 2, every) == judged(plant)[:2]
    assert {
        ("leaf-u1-r0/35", "swapped", "spine-p1-r0-1", "spine-p1-r1-1/3"),
        ("leaf-u1-r1/35", "swapped", "spine-p1-r1-1", "spine-p1-r0-1/3"),
    } == judged(plant)[2]
    assert 3 == len(plant.view().part.planes)


def test_rails_that_share_their_spines_are_not_taken_apart() -> None:
    assert 1 == len(rails(nodes=4, spines=4).view().part.planes)


def test_two_cables_of_two_pods() -> None:
    plant = fat_tree(leaves=4, spines=2, each=4, pods=3, cores=2)
    plant.swap("leaf02", "leaf07", UP, UP + 5)

    ((kind, text),) = kinds(plant)

    assert "swapped-uplinks" == kind
    assert text.startswith("leaf02/33 goes to spine04 and leaf07/38 to spine01: by their peers leaf02 has that cable")


@pytest.mark.parametrize("one_leaf", [False, True])
def test_a_cable_between_leaves(one_leaf: bool) -> None:
    """Both its ends lack their spine: one cable, not two that are missing."""
    plant = fat_tree(leaves=6, nodes=8, spines=4)
    right, every, _ = judged(plant)
    first, second = ("leaf03", 34), ("leaf03" if one_leaf else "leaf04", 37)
    plant.cut(*first)
    plant.cut(*second)
    plant.cable(*first, *second)

    ((kind, text),) = kinds(plant)

    assert "uplink-elsewhere" == kind
    assert text.startswith(
        f"leaf03/34 and {second[0]}/37 are joined with each other: by their peers leaf03 has that cable"
    )
    assert (right - 2, every) == judged(plant)[:2]
    assert {("leaf03/34", "elsewhere", "spine01"), (f"{second[0]}/37", "elsewhere", "spine03")} == {
        item[:3] for item in judged(plant)[2]
    }


def test_a_cable_between_leaves_that_lack_nothing_is_left_alone() -> None:
    plant = fat_tree(leaves=6, nodes=8, spines=4)
    plant.cable("leaf03", 60, "leaf04", 60)

    assert [] == kinds(plant)


def test_a_cable_on_another_spine_is_one_cable() -> None:
    plant = fat_tree(leaves=6, spines=4)
    right, every, _ = judged(plant)
    plant.cut("leaf02", 33)
    plant.cable("leaf02", 33, "spine02", 60)

    assert (right - 1, every, {("leaf02/33", "elsewhere", "spine01", "spine02/60")}) == judged(plant)


@pytest.mark.parametrize("plant", [dragonfly(), fat_tree(leaves=2, spines=1, each=1)])
def test_cables_that_nothing_is_like_are_not_judged(plant: Plant) -> None:
    assert (0, 0, set()) == judged(plant)


def test_leaves_that_were_given_fewer_cables() -> None:
    """One to each of the spines, where others have two: so it was meant. One that lacks some of them is a fault."""
    plant = fat_tree(leaves=8, nodes=8, spines=4)
    for leaf in ("io1", "io2"):
        plant.switch(leaf)
        plant.cable(f"{leaf}-store mlx5_0", 1, leaf, 1)
        for spine in range(4):
            plant.cable(leaf, UP + spine, f"spine{spine + 1:02d}", 50 + spine + (4 if leaf == "io2" else 0))
    for spine in range(4):
        plant.cut("leaf08", UP + 2 * spine)
    assert [] == kinds(plant)

    plant.cut("leaf07", UP)
    assert ["missing-uplink"] == [kind for kind, _ in kinds(plant)]


def test_of_two_designs_each_has_its_own_peers() -> None:
    """Six leaves with five cables to a spine, six with four; and cables that do not divide by the spines."""
    plant = Plant()
    for leaf in range(12):
        count = 0
        for spine in range(4):
            for _ in range(5 if leaf < 6 else 4):
                count += 1
                plant.cable(
                    plant.switch(f"leaf{leaf:02d}"), UP + count, plant.switch(f"spine{spine}"), leaf * 5 + count % 5 + 1
                )
        for node in range(20):
            plant.cable(f"n{leaf * 20 + node:03d} mlx5_0", 1, f"leaf{leaf:02d}", node + 1)
    result = classify_fabric(plant.view())

    assert ("fat-tree", "likely") == (result.kind, result.sure)
    assert "12 of 12 leaves spread their cables evenly over those above" in result.evidence


def test_where_it_is_not_clear_how_many_are_usual_nothing_is_too_much() -> None:
    """Two of four leaves lack one of two cables to a spine: those that have both have none too many."""
    plant = fat_tree(leaves=4, nodes=8, spines=4)
    for leaf, port in (("leaf04", 33), ("leaf04", 35), ("leaf01", 35)):
        plant.cut(leaf, port)

    assert {"missing-uplink"} == {kind for kind, _ in kinds(plant)}
    assert {("leaf04/33", "missing")} == {item[:2] for item in judged(plant)[2]}


@pytest.mark.parametrize("cables", [1, 2, 4])
@pytest.mark.parametrize("leaves", [2, 4])
def test_a_gateway_on_one_leaf_is_no_spine(cables: int, leaves: int) -> None:
    """Nobody lacks a cable to it, and it is nobody's second place."""
    plant = fat_tree(leaves=leaves, nodes=8, spines=4)
    for number in range(cables):
        plant.cable("leaf01", 50 + number, plant.switch("gw-1"), number + 1)
    assert [] == kinds(plant)
    assert set() == judged(plant)[2]

    plant.cut("leaf01", UP)
    assert all(kind == "missing-uplink" for kind, _ in kinds(plant))


def test_a_managers_switch_on_a_core() -> None:
    """The core stays above the spines; what lacks a cable there is told with its own port."""
    plant = fat_tree(leaves=4, spines=2, each=4, pods=4, cores=4)
    before = plant.view().tiers
    plant.cable("ufm1 mlx5_0", 1, plant.switch("gw-1"), 1)
    for number in range(2):
        plant.cable("gw-1", 30 + number, "core01", 50 + number)

    assert before == {switch: row for switch, row in plant.view().tiers.items() if switch != plant.guid("gw-1")}
    assert [] == kinds(plant)
    plant.cut("spine03", UP)
    assert {("spine03/33", "missing")} == {item[:2] for item in judged(plant)[2]}


def test_a_cable_from_a_core_to_a_leaf_moves_no_row() -> None:
    plant = fat_tree(leaves=4, spines=4, each=2, pods=4, cores=4)
    before = plant.view().tiers
    plant.cut("spine03", UP + 1)
    plant.cable("leaf08", 60, "core02", 60)

    assert before == plant.view().tiers
    assert ["missing-uplink"] == [kind for kind, _ in kinds(plant)]


@pytest.mark.parametrize("turned", [1, 2])
def test_a_leaf_with_an_order_of_ports_of_its_own(turned: int) -> None:
    """Two cables exchanged are a fault, all of them are the way it was cabled."""
    plant = fat_tree(leaves=12, nodes=8, spines=8)
    last = plant.switch("leaf12")
    ends = [plant.of(last, UP + number) for number in range(16)]
    for number, cable in enumerate(ends):
        cable.a = (last, UP + (15 - number if turned == 1 else (number * 8 + number // 2) % 16))
    assert set() == judged(plant)[2]

    plant = fat_tree(leaves=12, nodes=8, spines=8)
    plant.swap(last, last, UP, UP + 15)
    assert {(f"{last}/33", "elsewhere"), (f"{last}/48", "elsewhere")} == {item[:2] for item in judged(plant)[2]}
