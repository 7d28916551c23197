"""Rails at another leaf, swaps, rails that are not there; each with its twin that is silent."""

from __future__ import annotations

import pytest

from agent.fleet.cluster.from_reports import ClusterTables, HostRow
from tests.agent.fleet.cluster.given import Plant, rails


def kinds(plant: Plant) -> list[str]:
    """Of what breaks it."""
    return [each.kind for each in plant.breaks()]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("spines", [1, 2, 8])
def test_a_healthy_fabric_is_silent(nodes: int, spines: int) -> None:
    """However small."""
    assert [] == rails(units=3, nodes=nodes, spines=spines).breaks()


def test_two_rails_of_a_node_are_swapped() -> None:
    """One break, with both ends, both places, and where each belongs."""
    plant = rails(nodes=6)
    plant.swap("n002 mlx5_0", "n002 mlx5_3")

    (result,) = plant.breaks()

    assert "swapped-cables" == result.kind
    assert ("n002",) == result.hosts
    assert {"su1-leaf1/2", "su1-leaf4/2"} == set(result.ports)
    assert {"n002 mlx5_0": "su1-leaf1/2", "n002 mlx5_3": "su1-leaf4/2"} == result.should
    assert "5 of 6 nodes of su1 have mlx5_0 on su1-leaf1" in result.compared


def test_rails_of_two_nodes_are_swapped() -> None:
    """Across units, and across rails."""
    plant = rails(nodes=6)
    plant.swap("n001 mlx5_1", "n010 mlx5_2")

    (result,) = plant.breaks()

    assert ("swapped-cables", ("n001", "n010")) == (result.kind, result.hosts)
    assert {"n001 mlx5_1": "su1-leaf2/1", "n010 mlx5_2": "su2-leaf3/4"} == result.should


def test_a_rail_on_another_leaf() -> None:
    """It is in a free port of the leaf beside."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_0")
    plant.cable("n003 mlx5_0", 1, "su1-leaf2", 20)

    (result,) = plant.breaks()

    assert ("rail-elsewhere", ("n003",), ("su1-leaf2/20",)) == (result.kind, result.hosts, result.ports)
    assert {"n003 mlx5_0": "su1-leaf1"} == result.should
    assert "5 of 6 nodes of su1 have mlx5_0 on su1-leaf1" == result.compared


@pytest.mark.parametrize("nodes", [2, 3])
def test_few_nodes_are_no_majority(nodes: int) -> None:
    """Who of two is wrong cannot be told."""
    plant = rails(units=1, nodes=nodes)
    plant.swap("n001 mlx5_0", "n001 mlx5_1")

    assert [] == plant.breaks()


def test_half_of_a_unit_is_no_majority() -> None:
    """A unit with two ways of wiring."""
    plant = rails(units=1, nodes=8)
    for node in range(1, 5):
        plant.swap(f"n{node:03d} mlx5_0", f"n{node:03d} mlx5_1")

    assert [] == plant.breaks()


def test_a_unit_that_is_wired_its_own_way_is_healthy() -> None:
    """Rail 1 of all its nodes on the leaf that is called 2."""
    plant = rails(nodes=6)
    for node in range(1, 7):
        plant.swap(f"n{node:03d} mlx5_0", f"n{node:03d} mlx5_1")

    assert [] == plant.breaks()


def test_a_node_with_a_rail_less() -> None:
    """Named with its leaf."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_2")

    (result,) = plant.breaks()

    assert ("missing-rail", ("n003",)) == (result.kind, result.hosts)
    assert "without mlx5_2 (su1-leaf3)" in result.text
    assert "5 of 6 nodes of su1 have 4" == result.compared


def test_a_service_host_is_no_node_that_lost_rails() -> None:
    """One or two ports of eight."""
    plant = rails(nodes=6, per_node=8)
    plant.cable("login1 mlx5_0", 1, "su1-leaf1", 20)
    plant.cable("store1 mlx5_0", 1, "su1-leaf1", 21)
    plant.cable("store1 mlx5_1", 1, "su1-leaf2", 21)

    assert [] == plant.breaks()


def test_an_adapter_without_a_name_may_be_the_missing_rail() -> None:
    """So nothing is said but a note."""
    plant = rails(nodes=6)
    plant.nodes["n003 mlx5_2"] = plant.nodes["n003 mlx5_2"]._replace(name="MT4129 ConnectX7   Mellanox Technologies")

    assert [] == plant.breaks()


def renamed(plant: Plant, node: str, names: dict[str, str]) -> None:
    """Call a node's adapters otherwise."""
    for old, new in names.items():
        key = f"{node} {old}"
        plant.nodes[key] = plant.nodes[key]._replace(name=f"{node} {new}")


def test_a_lost_adapter_moves_the_names_of_the_later_ones() -> None:
    """mlx5_1 is gone, so mlx5_2 is called mlx5_1: one rail is missing, none is moved."""
    plant = rails(nodes=6)
    plant.cut("n003 mlx5_1")
    renamed(plant, "n003", {"mlx5_2": "mlx5_1", "mlx5_3": "mlx5_2"})

    (result,) = plant.breaks()

    assert ("missing-rail", ("n003",)) == (result.kind, result.hosts)
    assert "(su1-leaf2)" in result.text


def test_names_of_udev_beside_names_of_the_kernel() -> None:
    """Some nodes say ibp26s0; a swap among them is still seen."""
    plant = rails(nodes=6)
    for node in ("n002", "n004", "n009"):
        renamed(plant, node, {f"mlx5_{rail}": f"ibp{26 + 10 * rail}s0" for rail in range(4)})
    assert [] == plant.breaks()

    plant.swap("n004 mlx5_1", "n004 mlx5_2")
    (result,) = plant.breaks()

    assert ("swapped-cables", ("n004",)) == (result.kind, result.hosts)
    assert result.text.startswith("n004 ibp36s0 is on su1-leaf3/4 and ibp46s0 on su1-leaf2/4")


@pytest.mark.parametrize("strange", [("n002",), ("n002", "n003"), ("n002", "n003", "n004", "n008")])
def test_names_that_count_in_another_order(strange: tuple[str, ...]) -> None:
    """Then their cables say what they mean, however few they are."""
    plant = rails(nodes=8)
    for node in strange:
        renamed(plant, node, {"mlx5_0": "ibC", "mlx5_1": "ibA", "mlx5_2": "ibD", "mlx5_3": "ibB"})
        for rail in range(4):
            key = f"{node} mlx5_{rail}"
            plant.nodes[key] = plant.nodes[key]._replace(name=plant.nodes[key].name + "0")

    assert [] == plant.breaks()


def test_two_names_that_mean_each_other() -> None:
    """Where several nodes name them so, their cables show it: no swap in each of them."""
    plant = rails(nodes=8)
    for node in ("n002", "n003", "n009", "n010"):
        renamed(plant, node, {"mlx5_0": "ib1", "mlx5_1": "ib0", "mlx5_2": "ib2", "mlx5_3": "ib3"})
    assert [] == plant.breaks()

    plant.swap("n003 mlx5_2", "n003 mlx5_3")

    assert [("swapped-cables", ("n003",))] == [(each.kind, each.hosts) for each in plant.breaks()]


def test_a_unit_without_a_leaf_that_others_have() -> None:
    """Its leaf is off: no node is blamed."""
    plant = rails(units=5, nodes=4)
    for port in range(1, 5):
        plant.cut("su3-leaf2", port)

    result = [each for each in plant.breaks() if each.kind == "short-unit"]

    assert ["the 4 nodes of su3 have 3 rails, elsewhere 4: no leaf for mlx5_1"] == [item.text for item in result]
    assert "missing-rail" not in kinds(plant)


def test_units_of_other_machines_are_no_short_units() -> None:
    """Half of the rails: another kind of node."""
    plant = rails(units=5, nodes=4)
    for rail in range(2):
        leaf = plant.switch(f"old-leaf{rail + 1}")
        for node in range(4):
            plant.cable(f"o{node} mlx5_{rail}", 1, leaf, node + 1)
        plant.cable(leaf, 33, "spine1", 60 + rail)
        plant.cable(leaf, 34, "spine2", 60 + rail)

    assert "short-unit" not in kinds(plant)


def test_a_unit_of_machines_with_a_rail_less_is_no_short_unit() -> None:
    """As their reports say."""
    plant = rails(units=5, nodes=4)
    for port in range(1, 5):
        plant.cut("su3-leaf2", port)
    hosts = [HostRow(f"n{node:03d}", None, 3 if 9 <= node <= 12 else 4) for node in range(1, 21)]

    assert "short-unit" not in [each.kind for each in plant.breaks(ClusterTables(host=hosts))]


def test_a_node_between_units() -> None:
    """Half here, half there."""
    plant = rails(units=3, nodes=6)
    for rail, leaf in enumerate(["su1-leaf1", "su1-leaf2", "su2-leaf3", "su2-leaf4"]):
        plant.cable(f"x1 mlx5_{rail}", 1, leaf, 20)

    (result,) = plant.breaks()

    assert ("no-unit", ("x1",)) == (result.kind, result.hosts)
    assert "of its 4 ports 2 on su1, 2 on su2" in result.text
    assert "18 of 19 nodes are in one" == result.compared


def test_every_tenth_node_between_units_is_how_it_is_wired() -> None:
    """Four of 22: nothing is said of them."""
    plant = rails(units=3, nodes=6)
    pairs = [("su1", "su2"), ("su2", "su3"), ("su3", "su1"), ("su2", "su1")]
    for number, (one, other) in enumerate(pairs):
        for rail, leaf in enumerate([f"{one}-leaf1", f"{one}-leaf2", f"{other}-leaf3", f"{other}-leaf4"]):
            plant.cable(f"x{number} mlx5_{rail}", 1, leaf, 20 + number)

    assert 4 == len(plant.view().units.loose)
    assert [] == plant.breaks()


def test_many_nodes_between_units_are_how_it_is_wired() -> None:
    """A ring of leaves: each pair of neighbours shares nodes."""
    plant = Plant()
    for node in range(24):
        for rail in range(2):
            plant.cable(f"n{node} mlx5_{rail}", 1, plant.switch(f"leaf{(node + rail) % 6}"), 1 + node)

    assert [] == plant.breaks()
