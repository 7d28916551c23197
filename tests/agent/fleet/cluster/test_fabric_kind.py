"""Which kind of fabric it is, and the tiers of its switches."""

from __future__ import annotations

from collections import Counter

import pytest

from agent.fleet.cluster.build import build
from agent.fleet.cluster.fabric_kind import FabricKind, classify_fabric
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, NetdevRow
from tests.agent.fleet.cluster.given import Plant, dragonfly, fat_tree, rails

# What a fabric is, with its evidence; nothing is claimed where it does not show.


def kind(plant: Plant) -> tuple[str, str]:
    """Kind and how sure."""
    result = classify_fabric(plant.view())
    return result.kind, result.sure


def test_rails_on_leaves_of_their_own() -> None:
    """Two levels; as much up as down."""
    result = classify_fabric(rails(nodes=8, spines=4).view())

    assert FabricKind("rail-optimized", "sure", result.evidence, 2, 1.0) == result
    assert "64 of 64 rails are on the leaf of their unit's rail, in 2 units" in result.evidence
    assert "a full leaf has 8 ports down (3,200 Gbit/s) and 8 up (3,200 Gbit/s): 1:1" in result.evidence


def test_one_wrong_cable_does_not_change_what_it_is() -> None:
    """It is a break."""
    plant = rails(nodes=8)
    plant.swap("n001 mlx5_0", "n001 mlx5_1")

    assert ("rail-optimized", "likely") == kind(plant)


@pytest.mark.parametrize(("each", "ratio"), [(1, 4.0), (2, 2.0), (4, 1.0)])
def test_a_fat_tree_and_its_oversubscription(each: int, ratio: float) -> None:
    """Eight hosts on a leaf, `each` cables to each of two spines."""
    result = classify_fabric(fat_tree(each=each).view())

    assert ("fat-tree", "sure", 2, ratio) == (result.kind, result.sure, result.levels, result.oversubscription)


def test_width_counts() -> None:
    """Half the width up is half the bandwidth."""
    plant = fat_tree(each=4)
    for cable in plant.cables:
        if "spine" in cable.b[0]:
            cable.width = 2

    assert 2.0 == classify_fabric(plant.view()).oversubscription


def test_slow_and_missing_cables_are_no_oversubscription() -> None:
    """That is how it was built, not how it is today."""
    plant = fat_tree(leaves=6, spines=4, each=2)
    for leaf in range(1, 5):
        plant.of(f"leaf{leaf:02d}", 33 + leaf).speed = "HDR"
        plant.of(f"n{leaf * 8:03d} mlx5_0").speed = "HDR"
    plant.cut("leaf06", 33)

    assert 1.0 == classify_fabric(plant.view()).oversubscription


def test_oversubscription_is_not_invented() -> None:
    """Where the file does not tell how fast links are."""
    plant = fat_tree()
    for cable in plant.cables:
        cable.speed = "?"

    assert classify_fabric(plant.view()).oversubscription is None


def test_a_fat_tree_of_three_levels() -> None:
    """Pods that cores join."""
    result = classify_fabric(fat_tree(pods=2, cores=2).view())

    assert ("fat-tree", 3) == (result.kind, result.levels)


def test_one_switch() -> None:
    """All hosts on it."""
    plant = Plant()
    for port in range(1, 9):
        plant.cable(f"n{port} mlx5_0", 1, plant.switch("only"), port)

    assert ("single-switch", "sure") == kind(plant)


def test_dragonfly() -> None:
    """Groups of routers, each joined with each."""
    result = classify_fabric(dragonfly().view())

    assert ("dragonfly", "likely") == (result.kind, result.sure)
    assert "5 groups of switches; 10 of 10 pairs of groups are joined directly" in result.evidence


def test_a_full_mesh_is_no_dragonfly() -> None:
    """Four routers, all joined."""
    assert ("mesh", "likely") == kind(dragonfly(groups=1))


def test_a_cable_from_a_switch_to_itself_is_no_pair() -> None:
    """A loop cable beside the one that joins both."""
    plant = Plant()
    for switch in ("a", "b"):
        for node in range(4):
            plant.cable(f"{switch}{node} mlx5_0", 1, plant.switch(switch), node + 1)
    plant.cable("a", 40, "b", 40)
    plant.cable("a", 41, "a", 42)

    assert "1 of 1 pairs of them are joined" in classify_fabric(plant.view()).evidence


def test_groups_whose_spines_are_joined() -> None:
    """Dragonfly+: three groups of leaves and spines."""
    plant = fat_tree(pods=3)
    for port, (one, other) in enumerate([(1, 3), (2, 5), (4, 6)], 50):
        plant.cable(f"spine0{one}", port, f"spine0{other}", port)

    assert ("dragonfly+", "likely") == kind(plant)


def test_leaves_that_only_hosts_tell_of() -> None:
    """By LLDP rails are seen, not what joins the leaves."""
    rows = [
        NetdevRow(f"n{node}", f"eth{rail}", "x", rail, 400.0, f"leaf{rail}", f"00:0{rail}", f"swp{node}")
        for node in range(4)
        for rail in range(4)
    ]

    (view,) = build_views(build([], ClusterTables(netdev=rows)))
    result = classify_fabric(view)

    assert ("rail-optimized", None) == (result.kind, result.oversubscription)
    assert "what joins the leaves is not known" in result.evidence


def test_rails_whose_planes_nothing_joins() -> None:
    """A spine a rail: one fabric of four planes, in which a cable at the wrong plane is seen."""
    plant = Plant()
    for unit in range(2):
        for rail in range(4):
            leaf = plant.switch(f"su{unit}-leaf{rail}")
            for node in range(6):
                plant.cable(f"n{unit}{node} mlx5_{rail}", 1, leaf, node + 1)
            plant.cable(leaf, 33, plant.switch(f"spine{rail}"), unit + 1)

    view = plant.view()
    assert 4 == len(view.part.planes)
    assert ("rail-optimized", "sure") == kind(plant)
    assert "its 4 planes are not joined by any cable" in classify_fabric(view).evidence

    plant.swap("n00 mlx5_0", "n00 mlx5_1")
    assert ["swapped-cables"] == [each.kind for each in plant.breaks()]


def test_storage_beside_compute_is_a_fabric_of_its_own() -> None:
    """Two networks that share hosts, wired by other groups."""
    plant = rails(units=2, nodes=6)
    for node in range(12):
        leaf = plant.switch(f"storage-leaf{node % 3}")
        plant.cable(f"n{node + 1:03d} mlx5_9", 1, leaf, node + 1)
    for leaf in range(3):
        plant.cable(f"storage-leaf{leaf}", 33, plant.switch("storage-spine"), leaf + 1)

    compute, storage = plant.views()

    assert ("rail-optimized", "fat-tree") == (classify_fabric(compute).kind, classify_fabric(storage).kind)
    assert 2 == len(compute.units.units)


def test_a_leaf_and_a_spine_are_not_enough() -> None:
    """One leaf of a larger fabric, perhaps: not surely a fat tree."""
    assert ("fat-tree", "unsure") == kind(fat_tree(leaves=1, spines=1))


def test_two_networks_with_a_cable_a_host_are_two() -> None:
    """Compute by racks, storage by something else: no units are made of both."""
    plant = Plant()
    for node in range(24):
        for name, leaf in (("c", node // 6), ("s", node % 4)):
            switch = plant.switch(f"{name}-leaf{leaf}")
            plant.cable(f"n{node:02d} mlx5_{'cs'.index(name)}", 1, switch, node + 1)
    for name in "cs":
        for leaf in range(4):
            plant.cable(f"{name}-leaf{leaf}", 40, plant.switch(f"{name}-spine"), leaf + 1)

    assert ["fat-tree", "fat-tree"] == [classify_fabric(view).kind for view in plant.views()]


def test_hosts_at_random_are_unknown() -> None:
    """Leaves that hang on whatever: nothing is claimed."""
    plant = Plant()
    for leaf in range(6):
        name = plant.switch(f"s{leaf}")
        for port in range(1, 7):
            plant.cable(f"n{leaf}-{port} mlx5_0", 1, name, port)
        for up in range(leaf + 1):
            plant.cable(name, 33 + up, plant.switch(f"u{up}"), leaf + 1)

    assert ("unknown", "unsure") == kind(plant)


def test_a_full_leaf_is_one_that_there_is() -> None:
    """Hosts at half width on most leaves, at full on few: nobody has the ports of the one at the pace of the other."""
    plant = fat_tree(leaves=8, nodes=8, spines=4, each=1)
    for cable in plant.cables:
        if cable.a[0].startswith("n"):
            cable.width = 2
    for leaf in ("leaf07", "leaf08"):
        for port in range(3, 9):
            plant.cables.remove(next(cable for cable in plant.cables if cable.b == (leaf, port)))
        for port in (1, 2):
            next(cable for cable in plant.cables if cable.b == (leaf, port)).width = 4

    assert (
        "a full leaf has 8 ports down (1,600 Gbit/s) and 4 up (1,600 Gbit/s): 1:1"
        in classify_fabric(plant.view()).evidence
    )


def test_adapters_of_nobody_make_a_leaf() -> None:
    """One leaf of a rail, then all of them: the switches are told all the same; rails cannot be seen."""
    plant = fat_tree(leaves=6, nodes=8, spines=4)
    names = [node for node in plant.nodes if node.startswith("n")]
    for name in names[:8]:
        plant.nodes[name] = plant.nodes[name]._replace(name="localhost mlx5_0")
    result = classify_fabric(plant.view())
    assert ("fat-tree", "sure", 2) == (result.kind, result.sure, result.levels)
    assert "40 hosts with 40 ports and 8 adapters of no known node on 6 leaves, 4 switches in row 2" in result.evidence

    for name in names:
        plant.nodes[name] = plant.nodes[name]._replace(name="localhost mlx5_0")
    result = classify_fabric(plant.view())
    assert ("fat-tree", "unsure", 2, 1.0) == (result.kind, result.sure, result.levels, result.oversubscription)
    assert "48 adapters of no known node on 6 leaves, 4 switches in row 2" in result.evidence
    assert [] == plant.breaks()


def test_two_nodes_show_no_rails() -> None:
    assert ("fat-tree", "unsure") == kind(rails(units=1, nodes=2, per_node=8))


# Rows of switches: by distance from hosts, but for service hosts on a spine and leaves whose hosts are off.


def rows(plant: Plant) -> dict[str, int]:
    """By name."""
    view = plant.view()
    return {view.name(switch): tier for switch, tier in view.tiers.items()}


def test_three_levels() -> None:
    """Leaves, spines, cores."""
    result = rows(fat_tree(pods=2, cores=2))

    assert Counter({1: 8, 2: 4, 3: 2}) == Counter(result.values())
    assert (1, 2, 3) == (result["leaf01"], result["spine01"], result["core01"])


def test_a_manager_on_a_spine_makes_it_no_leaf() -> None:
    """Also where every spine has one."""
    plant = fat_tree()
    for spine in (1, 2):
        plant.cable(f"ufm{spine} mlx5_0", 1, f"spine0{spine}", 60)

    assert {"leaf01": 1, "leaf02": 1, "leaf03": 1, "leaf04": 1, "spine01": 2, "spine02": 2} == rows(plant)


def test_a_leaf_without_a_host_that_is_up_is_a_leaf() -> None:
    """By its name: it hangs on the same spines."""
    plant = fat_tree()
    for port in range(1, 9):
        plant.cut("leaf04", port)

    assert 1 == rows(plant)["leaf04"]


def test_a_half_empty_leaf_is_a_leaf() -> None:
    """One host of eight."""
    plant = fat_tree()
    for port in range(2, 9):
        plant.cut("leaf04", port)

    assert 1 == rows(plant)["leaf04"]


def test_routers_with_hosts_are_all_of_the_first_row() -> None:
    """A dragonfly has one; also the router with a single host."""
    plant = dragonfly()
    plant.cut("g0r0", 2)

    assert {1} == set(rows(plant).values())


def test_a_switch_that_no_host_reaches_has_no_row() -> None:
    """Two switches on their own, beside the fabric."""
    plant = rails()
    plant.cable(plant.switch("x1"), 1, plant.switch("x2"), 1)

    own, other = plant.views()

    assert {} == other.tiers
    assert 2 == own.levels
