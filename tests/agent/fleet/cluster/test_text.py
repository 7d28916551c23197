"""The page in docs names everything that can be said; text at 80 and at 200 columns."""

from __future__ import annotations

import re

import pytest

from agent.cli.fleet.topology import TopologyFormat
from agent.fleet.cluster.answer import DomainRow, FabricRow, SwitchTier, TopologyAnswer, UnitRow, topology
from agent.fleet.cluster.cabling_faults import KINDS
from agent.fleet.cluster.cabling_pattern import by_pattern
from agent.fleet.cluster.expected_cables import STATES
from agent.fleet.cluster.fabric_kind import WORDS
from agent.fleet.cluster.fabric_view import views
from agent.fleet.cluster.text import SHOWN, cables_page, page
from agent.fleet.hostlist import fold
from agent.outputs.text.lines import to_plain_text
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "fleet-topology.md").read_text()


def said(plant: Plant, width: int = 80, every: bool = False) -> str:
    """The page."""
    cluster = plant.cluster()
    return to_plain_text(page(topology(cluster, views(cluster)), width, every))


def test_the_page_in_docs_has_all() -> None:
    """Kinds of fabrics, of breaks, states of cables, forms."""
    assert [] == [each for each in KINDS if f"| `{each}` |" not in PAGE]
    assert [] == [each for each in WORDS.values() if f"| {each} |" not in PAGE]
    assert [] == [each for each in STATES if f"`{each}`" not in PAGE]
    assert [] == [each.value for each in TopologyFormat if f"`{each.value}`" not in PAGE]


@pytest.mark.parametrize("width", [80, 200])
def test_it_fits(width: int) -> None:
    """No line is longer than the terminal."""
    plant = rails(units=4, nodes=12)
    plant.swap("n002 mlx5_0", "n020 mlx5_2")
    plant.cut("su3-leaf1", 33)

    text = said(plant, width)

    assert all(len(line) <= width for line in text.splitlines())
    cluster = plant.cluster()
    told = to_plain_text(cables_page(by_pattern(cluster, views(cluster)), cluster.sources, width))
    assert all(len(line) <= width for line in told.splitlines())


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
    assert "No switch, no link and no NVLink domain is known." in said(Plant())


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
    made = TopologyAnswer(
        sources=["a file"], fabrics=[fabric], nvlink=[domain], nvlink_words="One domain.", breaks=[], notes=[]
    )

    short, whole = to_plain_text(page(made, 80)), to_plain_text(page(made, 80, True))

    assert 80 >= max(len(each) for each in (short + whole).splitlines())
    assert 2 == short.count("(80 nodes)")
    assert 2 == re.sub(r",\s+", ",", whole).count(fold(names))
