"""What many switches lack together is one line, and what may be meant so is none."""

from __future__ import annotations

import pytest

from tests.agent.fleet.cluster.given import UP, Plant, fat_tree, rails


def pods(count: int = 5) -> Plant:
    return fat_tree(leaves=4, nodes=8, spines=4, each=2, pods=count, cores=4)


def half(plant: Plant, leaves: range = range(9, 13)) -> Plant:
    """Leaves with one of two cables to each spine."""
    for leaf in leaves:
        for spine in range(4):
            plant.cut(f"leaf{leaf:02d}", UP + 2 * spine)
    return plant


def dark(plant: Plant, name: str) -> Plant:
    """Without a switch, as a file has none that is off."""
    plant.cables = [cable for cable in plant.cables if name not in (cable.a[0], cable.b[0])]
    del plant.nodes[name]
    return plant


def test_a_unit_that_reaches_half_of_the_spines() -> None:
    plant = rails(units=6, spines=4)
    for leaf in range(1, 5):
        for port in range(4):
            plant.cut(f"su3-leaf{leaf}", UP + 4 + port)
    (result,) = plant.breaks()
    assert result.kind == "fewer-uplinks"
    assert result.text == (
        "each of the 4 leaves of su3 has 4 of 8 cables up (1:1, elsewhere 0.5:1); "
        "they reach 2 switches above, elsewhere 4"
    )
    assert result.ports == tuple(f"su3-leaf{leaf}" for leaf in range(1, 5))
    assert result.compared == "5 of 6 such groups have 8 cables up from each to 4 switches"


def test_a_pod_that_is_half_wired() -> None:
    (result,) = half(pods()).breaks()
    assert result.text == "each of the 4 leaves of leaf09 .. leaf12 has 4 of 8 cables up (2:1, elsewhere 1:1)"


def test_a_pod_whose_spines_reach_half_of_the_cores() -> None:
    plant = pods()
    for spine in range(9, 13):
        for core in range(2):
            plant.cut(f"spine{spine:02d}", UP + core)
    (result,) = plant.breaks()
    assert result.text.startswith(
        "each of the 4 spines of spine09 .. spine12 has 2 of 4 cables up (4:1, elsewhere 2:1)"
    )


def test_a_dark_spine_of_a_pod() -> None:
    (result,) = dark(pods(), "spine10").breaks()
    assert result.text.endswith(
        "has 6 of 8 cables up (1.33:1, elsewhere 1:1); they reach 3 switches above, elsewhere 4"
    )


def test_a_single_cable_beside_a_pod_that_is_half_wired() -> None:
    plant = half(pods())
    plant.cut("leaf01", UP)
    assert sorted(each.kind for each in plant.breaks()) == ["fewer-uplinks", "missing-uplink"]


def test_a_pod_of_which_one_leaf_is_wired() -> None:
    """Then the leaves differ, and each is held against its own spines."""
    assert {each.kind for each in half(pods(), range(9, 11)).breaks()} <= {"missing-uplink"}


def _fewer_hosts(plant: Plant) -> None:
    for leaf in range(9, 13):
        for port in range(1, 5):
            plant.cut(f"leaf{leaf:02d}", port)


def _other_names(plant: Plant) -> None:
    for leaf in range(9, 13):
        name = f"leaf{leaf:02d}"
        plant.nodes[name] = plant.nodes[name]._replace(name=f"storage-{leaf}")


def _not_listed(plant: Plant) -> None:
    plant.nodes["leaf09"] = plant.nodes["leaf09"]._replace(ports=None)


@pytest.mark.parametrize("meant", [_fewer_hosts, _other_names, _not_listed])
def test_groups_of_another_kind(meant: object) -> None:
    plant = half(pods())
    meant(plant)  # type: ignore[operator]
    assert "fewer-uplinks" not in {each.kind for each in plant.breaks()}


@pytest.mark.parametrize("count", [2, 3])
def test_few_pods_are_no_majority(count: int) -> None:
    plant = half(pods(count), range(1, 5))
    assert "fewer-uplinks" not in {each.kind for each in plant.breaks()}


def test_pods_of_two_designs() -> None:
    assert half(pods(6), range(1, 13)).breaks() == []


def test_more_cables_than_elsewhere_are_fine() -> None:
    plant = half(pods(), range(5, 21))
    assert "fewer-uplinks" not in {each.kind for each in plant.breaks()}


def test_a_dark_spine_that_all_leaves_share() -> None:
    (result,) = dark(rails(units=3, spines=8), "spine4").breaks()
    assert result.kind == "dark-spine"
    assert result.text == (
        "spine4 is not in the fabric: none of the 12 switches su1-leaf1 .. su3-leaf4 has a cable at ports 39, 40"
    )


def test_a_dark_spine_beside_a_unit_that_is_half_wired() -> None:
    """Neither hides the other."""
    plant = dark(rails(units=6, spines=8), "spine4")
    for leaf in range(1, 5):
        for spine in range(7):
            plant.cut(f"su3-leaf{leaf}", UP + 2 * spine + (2 if spine > 2 else 0))
    assert sorted(each.kind for each in plant.breaks()) == ["dark-spine", "fewer-uplinks"]


def _in_use(plant: Plant) -> None:
    plant.cable("login1 mlx5_0", 1, "su1-leaf1", 39)


def _numbered_on(plant: Plant) -> None:
    for number in range(5, 9):
        plant.nodes[f"spine{number}"] = plant.nodes[f"spine{number}"]._replace(name=f"spine{number - 1}")


def _ports_moved_up(plant: Plant) -> None:
    for cable in plant.cables:
        name, port = cable.a
        if "leaf" in name and port > 40:
            cable.a = (name, port - 2)


def _names_of_places(plant: Plant) -> None:
    for number, name in enumerate(["r1s1", "r1s2", "r2s1", "r5s1", "r5s2", "r6s1", "r6s2"]):
        spine = f"spine{[1, 2, 3, 5, 6, 7, 8][number]}"
        plant.nodes[spine] = plant.nodes[spine]._replace(name=name)


@pytest.mark.parametrize("meant", [_in_use, _numbered_on, _ports_moved_up, _names_of_places])
def test_numbers_or_ports_alone_are_no_dark_spine(meant: object) -> None:
    plant = dark(rails(units=3, spines=8), "spine4")
    meant(plant)  # type: ignore[operator]
    assert "dark-spine" not in {each.kind for each in plant.breaks()}


def test_three_leaves_show_no_dark_spine() -> None:
    assert dark(rails(units=1, per_node=3, spines=8), "spine4").breaks() == []
