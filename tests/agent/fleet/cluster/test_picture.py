"""The picture: every row, every bundle, red where something is broken; safe with any name."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

from agent.fleet.cluster.build import build
from agent.fleet.cluster.cabling_faults import breaks
from agent.fleet.cluster.fabric_view import views
from agent.fleet.cluster.picture import picture
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails

NS = "{http://www.w3.org/2000/svg}"


def drawn(plant: Plant) -> Element:
    """Parsed."""
    cluster = plant.cluster()
    seen = views(cluster)
    return fromstring(picture(cluster, seen, breaks(cluster, seen)))


def of(root: Element, kind: str) -> list[Element]:
    """Elements whose class has this word."""
    return [each for each in root.iter() if kind in (each.get("class") or "").split()]


def test_a_small_fabric_is_drawn_one_by_one() -> None:
    """Four leaves, two spines, the hosts of each leaf; nothing red."""
    root = drawn(fat_tree())

    assert (4, 2, 4) == (len(of(root, "leaf")), len(of(root, "switch")), len(of(root, "hosts")))
    assert 4 * 2 + 4 == len(of(root, "wire"))
    assert [] == of(root, "broken")
    assert {"leaf01", "spine02", "n[001-008]"} <= {each.text for each in root.iter(f"{NS}text")}


def test_what_is_broken_is_red_and_says_so() -> None:
    """The two switches at the ends of the missing cable, and the bundle between them."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf03", 36)

    root = drawn(plant)

    assert 3 == len(of(root, "broken"))
    (wire,) = [each for each in of(root, "broken") if "wire" in (each.get("class") or "")]
    assert "leaf03 has 7 of 8 cables up" in (wire.findtext(f"{NS}title") or "")
    assert ["1", "1"] == [each.text for each in of(root, "count")]


def test_a_swap_is_red_at_the_host_and_its_leaves() -> None:
    """Rails: the unit's hosts, both leaves and what is between."""
    plant = rails(nodes=6)
    plant.swap("n002 mlx5_0", "n002 mlx5_3")

    red = {"".join(each.itertext()) for each in of(drawn(plant), "broken") if each.get("class") != "wire broken"}

    assert 3 == len(red)


def test_many_switches_are_few_boxes() -> None:
    """240 leaves, 160 spines, 8 cores: at most 48 boxes a row, within its width."""
    root = drawn(fat_tree(leaves=12, nodes=2, spines=8, pods=20, cores=8))

    assert (48, 48) == (len(of(root, "leaf")), len(of(root, "hosts")))
    assert 20 + 8 >= len(of(root, "switch"))
    wide = float(root.get("width") or 0)
    rects = [each for each in root.iter(f"{NS}rect") if each.get("x")]
    assert all(0 <= float(each.get("x") or -1) <= wide - float(each.get("width") or 0) for each in rects)


def test_names_are_no_markup() -> None:
    """Hostile descriptions, control characters, very long ones."""
    plant = Plant()
    for leaf, name in enumerate(["<script>alert(1)</script>", "a\x00\x1b[31mb", "y" * 5000]):
        plant.add(f"s{leaf}", "switch", 64, name)
        plant.cable(f"n{leaf} mlx5_0", 1, f"s{leaf}", 1)
        plant.cable(f"s{leaf}", 40, plant.switch("top"), leaf + 1)

    root = drawn(plant)

    assert not list(root.iter(f"{NS}script"))
    assert not list(root.iter("script"))


def test_nothing_is_one_sentence() -> None:
    """No switch at all."""
    root = fromstring(picture(build([], None), [], []))

    assert "no switch and no link is known" in "".join(root.itertext())
