"""The page in docs names everything that can be said; text at 80 and at 200 columns."""

from __future__ import annotations

import pytest

from agent.cli.fleet.topology import TopologyFormat
from agent.fleet.cluster.answer import topology
from agent.fleet.cluster.breaks import KINDS
from agent.fleet.cluster.cables import STATES
from agent.fleet.cluster.kinds import WORDS
from agent.fleet.cluster.pattern import by_pattern
from agent.fleet.cluster.view import views
from agent.fleet.cluster.words import SHOWN, cables_page, page
from agent.outputs.text.lines import plain
from tests.agent.fleet.cluster.given import Plant, fat_tree, rails
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "fleet-topology.md").read_text()


def said(plant: Plant, width: int = 80, every: bool = False) -> str:
    """The page."""
    cluster = plant.cluster()
    return plain(page(topology(cluster, views(cluster)), width, every))


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
    told = plain(cables_page(by_pattern(cluster, views(cluster)), cluster.sources, width))
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
