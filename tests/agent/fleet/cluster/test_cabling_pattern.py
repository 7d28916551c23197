"""`fleet cables` without a plan: what the pattern of most cables says, and no more."""

from __future__ import annotations

from agent.fleet.cluster.cabling_pattern import by_pattern
from agent.fleet.cluster.expected_cables import Cables
from agent.fleet.cluster.fabric_view import views
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails


def judged(plant: Plant) -> Cables:
    """By pattern."""
    cluster = plant.cluster()
    return by_pattern(cluster, views(cluster))


def test_all_is_where_it_should_be() -> None:
    """Every cable of hosts and between switches is counted."""
    found = judged(rails(nodes=6))

    assert (80, 80, 80, []) == (found.right, found.judged, found.of, found.wrong)
    assert ["su1: a node has the same port on all leaves (24 of 24 cables)"] == found.patterns[:1]


def test_two_ports_of_a_leaf_exchanged() -> None:
    """The right leaf, each at the other's port: harmless, but not as meant."""
    plant = rails(nodes=6)
    plant.swap("n002 mlx5_1", "n004 mlx5_1")

    found = judged(plant)

    assert [
        ("n002 mlx5_1", "swapped", "su1-leaf2/2", "su1-leaf2/4", "n004 mlx5_1"),
        ("n004 mlx5_1", "swapped", "su1-leaf2/4", "su1-leaf2/2", "n002 mlx5_1"),
    ] == [(each.end, each.state, each.should, each.found, each.there) for each in found.wrong]
    assert (78, 80) == (found.right, found.judged)
    assert [] == plant.breaks()


def test_a_missing_cable_of_a_host() -> None:
    """Its place is known by the node's other rails."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_2")

    (found,) = judged(plant).wrong

    assert ("n003 mlx5_2", "missing", "su1-leaf3/3", None) == (found.end, found.state, found.should, found.found)


def test_a_node_that_lost_an_adapter_and_renumbered_the_rest() -> None:
    """One cable is missing; the others are where they were, by whatever names their host has for them now."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_1")
    for rail in (2, 3):
        cable = plant.of(f"n003 mlx5_{rail}")
        plant.cables.remove(cable)
        plant.cable(f"n003 mlx5_{rail - 1}", 1, *cable.b)

    (found,) = judged(plant).wrong

    assert ("n003 mlx5_1", "missing", "su1-leaf2/3") == (found.end, found.state, found.should)


def test_a_cable_on_another_leaf_and_what_is_at_its_place() -> None:
    """Something else was plugged in there."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_0")
    plant.cable("n003 mlx5_0", 1, "su1-leaf2", 20)
    plant.cable("login mlx5_0", 1, "su1-leaf1", 3)

    (found,) = judged(plant).wrong

    assert ("elsewhere", "su1-leaf1/3", "su1-leaf2/20", "login mlx5_0") == (
        found.state, found.should, found.found, found.there,
    )  # fmt: skip


def disordered() -> Plant:
    """Each leaf has its nodes in an order of its own."""
    plant = rails(units=1, nodes=6)
    for rail in range(4):
        for node in range(6):
            cable = plant.of(f"n{node + 1:03d} mlx5_{rail}")
            cable.b = (cable.b[0], (node * (rail + 1) + rail) % 7 + 8 * (rail % 3) + 1)

    return plant


def test_leaves_are_judged_where_ports_follow_no_pattern() -> None:
    """The leaf of a rail, not its port; and cables between switches."""
    found = judged(disordered())

    assert [] == found.wrong
    assert (40, 40) == (found.right, found.judged)
    assert ["su1: the leaf of each rail, its ports follow no pattern"] == [
        each for each in found.patterns if each.startswith("su1")
    ]


def test_a_rail_on_another_leaf_where_ports_follow_no_pattern() -> None:
    """As with two ToRs per rack and RoCE."""
    plant = disordered()
    plant.swap("n002 mlx5_1", "n002 mlx5_3")

    found = judged(plant)

    assert [("n002 mlx5_1", "elsewhere", "su1-leaf2"), ("n002 mlx5_3", "elsewhere", "su1-leaf4")] == [
        (each.end, each.state, each.should) for each in found.wrong
    ]
    assert (38, 40) == (found.right, found.judged)
    assert "5 of 6 nodes of su1 have mlx5_1 on su1-leaf2" == found.wrong[0].why


def test_a_pattern_that_too_few_cables_follow_is_none() -> None:
    """Three of a node's four cables on one port, the fourth always on another."""
    plant = rails(units=1, nodes=6)
    for node in range(1, 7):
        cable = plant.of(f"n{node:03d} mlx5_{node % 4}")
        cable.b = (cable.b[0], 20 + node)

    assert [] == judged(plant).wrong


def test_cables_between_switches() -> None:
    """One is out, one leads to another spine."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf03", 36)
    plant.swap("leaf02", "leaf05", 33, 38)

    found = judged(plant).wrong

    assert [("leaf03/36", "missing", "spine02/6", None)] == [
        (each.end, each.state, each.should, each.found) for each in found if each.state == "missing"
    ]
    assert {("leaf02/33", "spine01"), ("leaf05/38", "spine03")} == {
        (each.end, each.should) for each in found if each.state == "swapped"
    }


def test_one_rail_a_node_has_no_pattern_of_ports() -> None:
    """Nothing says on which port a node with one cable should be."""
    plant = fat_tree()
    plant.swap("n001 mlx5_0", "n002 mlx5_0")

    assert [] == judged(plant).wrong
