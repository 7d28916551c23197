"""How a cluster is shown: as text and as a picture."""

from __future__ import annotations

import re
from typing import get_args
from xml.etree.ElementTree import Element, fromstring

import pytest

from agent.cli.fleet.topology import TopologyFormat
from agent.fleet.cluster.answer import DomainRow, FabricRow, SwitchTier, TopologyAnswer, UnitRow, build_topology_answer
from agent.fleet.cluster.build import build
from agent.fleet.cluster.cabling_faults import KINDS, find_cabling_faults
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.cabling_plan import STATES
from agent.fleet.cluster.fabric_kind import WORDS
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.picture import draw_picture
from agent.fleet.cluster.text import SHOWN, page, render_cables_page
from agent.fleet.hostlist import fold
from agent.outputs.text.lines import to_plain_text
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails
from tests.conftest import ROOT

# The page in docs names everything that can be said; text at 80 and at 200 columns.


PAGE = (ROOT / "docs" / "fleet-topology.md").read_text()


def said(plant: Plant, width: int = 80, every: bool = False) -> str:
    """The page."""
    cluster = plant.cluster()
    return to_plain_text(page(build_topology_answer(cluster, build_views(cluster)), width, every))


def test_the_page_in_docs_has_all() -> None:
    """Kinds of fabrics, of breaks, states of cables, forms."""
    assert [] == [kind for kind in KINDS if f"| `{kind}` |" not in PAGE]
    assert [] == [word for word in WORDS.values() if f"| {word} |" not in PAGE]
    assert [] == [state for state in STATES if f"`{state}`" not in PAGE]
    assert [] == [form for form in get_args(TopologyFormat) if f"`{form}`" not in PAGE]


@pytest.mark.parametrize("width", [80, 200])
def test_it_fits(width: int) -> None:
    """No line is longer than the terminal."""
    plant = rails(units=4, nodes=12)
    plant.swap("n002 mlx5_0", "n020 mlx5_2")
    plant.cut("su3-leaf1", 33)

    text = said(plant, width)

    assert all(len(line) <= width for line in text.splitlines())
    cluster = plant.cluster()
    result = to_plain_text(render_cables_page(judge_by_pattern(cluster, build_views(cluster)), cluster.sources, width))
    assert all(len(line) <= width for line in result.splitlines())


def test_long_lists_are_cut_and_counted() -> None:
    """--all shows them."""
    plant = fat_tree(leaves=14, pods=3, spines=3, cores=3)
    for leaf in range(1, 43, 4):
        plant.of(f"leaf{leaf:02d}", 33).speed = "HDR"

    text = said(plant)

    assert f"… and {42 - SHOWN} more: --all shows them" in text
    assert "more: --all" not in said(plant, every=True)
    assert "leaf42" in said(plant, every=True)


def test_nothing_is_said_of_nothing() -> None:
    """An empty graph."""
    text = " ".join(said(Plant()).split())
    assert "No switch, no link and no NVLink domain is known: give --fabric FILE or --switches DIR." in text


def test_host_lists_are_broken_at_their_commas() -> None:
    """A list has no blank: it stood over the edge of the terminal. What is long is cut, `--all` has it whole."""
    names = [f"gpu{number:05d}" for number in range(0, 160, 2)]
    unit = UnitRow(name="su1", nodes=80, leaves=["leaf1"], rails={}, hosts=fold(names))
    fabric = FabricRow(
        kind="rail-optimized", sure="sure", evidence=[], levels=1, oversubscription=None, hosts=80, ports=80, cables=80,
        switches=1, rows=[SwitchTier(row=1, switches=1, names=fold([f"leaf{name}" for name in names]))], units=[unit],
        in_no_unit=[],
    )  # fmt: skip
    domain = DomainRow(domain="d", nodes=80, gpus=320, hosts=fold(names))
    result = TopologyAnswer(
        sources=["a file"], fabrics=[fabric], nvlink=[domain], nvlink_words="One domain.", breaks=[], notes=[]
    )

    short, whole = to_plain_text(page(result, 80)), to_plain_text(page(result, 80, True))

    assert 80 >= max(len(splitline) for splitline in (short + whole).splitlines())
    assert 2 == short.count("(80 nodes)")
    assert 2 == re.sub(r",\s+", ",", whole).count(fold(names))


# The picture: every row, every bundle, red where something is broken; safe with any name.


NS = "{http://www.w3.org/2000/svg}"


def drawn(plant: Plant) -> Element:
    """Parsed."""
    cluster = plant.cluster()
    seen = build_views(cluster)
    return fromstring(draw_picture(cluster, seen, find_cabling_faults(cluster, seen)))


def of(root: Element, kind: str) -> list[Element]:
    """Elements whose class has this word."""
    return [item for item in root.iter() if kind in (item.get("class") or "").split()]


def test_a_small_fabric_is_drawn_one_by_one() -> None:
    """Four leaves, two spines, the hosts of each leaf; nothing red."""
    root = drawn(fat_tree())

    assert (4, 2, 4) == (len(of(root, "leaf")), len(of(root, "switch")), len(of(root, "hosts")))
    assert 4 * 2 + 4 == len(of(root, "wire"))
    assert [] == of(root, "broken")
    assert {"leaf01", "spine02", "n[001-008]"} <= {item.text for item in root.iter(f"{NS}text")}


def test_what_is_broken_is_red_and_says_so() -> None:
    """The two switches at the ends of the missing cable, and the bundle between them."""
    plant = fat_tree(leaves=6, spines=4)
    plant.cut("leaf03", 36)

    root = drawn(plant)

    assert 3 == len(of(root, "broken"))
    (wire,) = [item for item in of(root, "broken") if "wire" in (item.get("class") or "")]
    assert "leaf03 has 7 of 8 cables up" in (wire.findtext(f"{NS}title") or "")
    assert ["1", "1"] == [item.text for item in of(root, "count")]


def test_a_swap_is_red_at_the_host_and_its_leaves() -> None:
    """Rails: the unit's hosts, both leaves and what is between."""
    plant = rails(nodes=6)
    plant.swap("n002 mlx5_0", "n002 mlx5_3")

    red = {"".join(item.itertext()) for item in of(drawn(plant), "broken") if item.get("class") != "wire broken"}

    assert 3 == len(red)


def test_many_switches_are_few_boxes() -> None:
    """240 leaves, 160 spines, 8 cores: at most 48 boxes a row, within its width."""
    root = drawn(fat_tree(leaves=12, nodes=2, spines=8, pods=20, cores=8))

    assert (48, 48) == (len(of(root, "leaf")), len(of(root, "hosts")))
    assert 20 + 8 >= len(of(root, "switch"))
    wide = float(root.get("width") or 0)
    rects = [item for item in root.iter(f"{NS}rect") if item.get("x")]
    assert all(0 <= float(rect.get("x") or -1) <= wide - float(rect.get("width") or 0) for rect in rects)


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
    root = fromstring(draw_picture(build([], None), [], []))

    assert "no switch and no link is known" in "".join(root.itertext())
