"""Links slower than their peers, or than both ends could be."""

from __future__ import annotations

import pytest

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_faults import breaks
from agent.fleet.cluster.fabric_view import views
from tests.agent.fleet.cluster.given import fat_tree, rails


@pytest.mark.parametrize(("width", "speed", "told"), [(2, "NDR", "2xNDR"), (4, "HDR", "4xHDR"), (1, "NDR", "1xNDR")])
def test_a_cable_between_switches_that_runs_slower(width: int, speed: str, told: str) -> None:
    """Held against all of those rows."""
    plant = fat_tree()
    cable = plant.of("leaf01", 33)
    cable.width, cable.speed = width, speed

    (found,) = plant.breaks()

    assert f"leaf01/33 to spine01/1 runs at {told}, its peers at 4xNDR" == found.text
    assert ("leaf01/33", "spine01/1") == found.ports
    assert "15 of 16 links of rows 1 and 2 run at 4xNDR" == found.compared


def test_a_hosts_port_that_runs_slower() -> None:
    """Held against the same rail of its unit."""
    plant = rails(nodes=6)
    plant.of("n002 mlx5_1").speed = "HDR"

    (found,) = plant.breaks()

    assert "n002 mlx5_1 on su1-leaf2/2 runs at 4xHDR, its peers at 4xNDR" == found.text
    assert "5 of 6 links of su1's mlx5_1 run at 4xNDR" == found.compared


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

    found = {each.kind: each.text for each in plant.breaks()}

    assert {
        "slower-than-both-ends": "spine1/1 to su1-leaf1/33 runs at 4xNDR, both ends could 4xXDR",
        "uneven-pace": "spine1/3 to su1-leaf2/33 runs at 4xHDR, its peers at 4xNDR (both ends could 4xNDR)",
    } == found


def test_a_whole_row_that_could_be_faster_is_one_break() -> None:
    """A setting, or old cables: no single one is blamed."""
    plant = fat_tree()
    for cable in plant.cables:
        if cable.b[0].startswith("spine"):
            cable.speed, cable.could = "HDR", "NDR"

    (found,) = plant.breaks()

    assert "16 of 16 links of rows 1 and 2 could be faster: 16 run at 4xHDR and could 4xNDR" == found.text


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

    assert [] == [each for each in breaks(cluster, views(cluster)) if each.kind == "uneven-pace"]
    assert ["uneven-pace"] == [each.kind for each in plant.breaks() if each.kind == "uneven-pace"]  # nothing is known
