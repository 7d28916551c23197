"""Rows of switches: by distance from hosts, but for service hosts on a spine and leaves whose hosts are off."""

from __future__ import annotations

from collections import Counter

from tests.agent.fleet.cluster.given import Plant, dragonfly, fat_tree, rails


def rows(plant: Plant) -> dict[str, int]:
    """By name."""
    view = plant.view()
    return {view.name(switch): tier for switch, tier in view.tiers.items()}


def test_three_levels() -> None:
    """Leaves, spines, cores."""
    found = rows(fat_tree(pods=2, cores=2))

    assert Counter({1: 8, 2: 4, 3: 2}) == Counter(found.values())
    assert (1, 2, 3) == (found["leaf01"], found["spine01"], found["core01"])


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
