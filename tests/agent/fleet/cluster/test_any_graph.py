"""Any graph at all: nothing raises, what is written can be read; and a healthy fabric of any size is silent."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.fleet.cluster.answer import build_topology_answer
from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.cabling_pattern import judge_by_pattern
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, NetdevRow
from agent.fleet.cluster.picture import draw_picture
from agent.fleet.cluster.slurm import Nothing, format_conf
from agent.fleet.cluster.slurm import format_yaml as written
from agent.fleet.cluster.text import page, render_cables_page
from agent.fleet.cluster.topograph import format_labels, format_model
from agent.outputs.text.lines import to_plain_text
from probes.fabric.topology import (
    Fabric,
    FabricEnd,
    FabricLink,
    FabricNode,
)
from tests.agent.fleet.cluster.given import fat_tree, rails

NAMES = st.one_of(
    st.text(max_size=20),
    st.builds("n{} mlx5_{}".format, st.integers(1, 6), st.integers(0, 3)),
    st.builds("MF0;leaf{}:X/U1".format, st.integers(1, 9)),
)
IDS = st.sampled_from([f"{number:016x}" for number in range(1, 15)])
NODES = st.builds(
    FabricNode, IDS, st.sampled_from(["switch", "switch", "ca", "ca", "router", "unknown"]), NAMES,
    st.one_of(st.none(), st.integers(-1, 65)), system_image_guid=st.one_of(st.none(), IDS),
)  # fmt: skip
ENDS = st.builds(FabricEnd, IDS, st.integers(-1, 9), st.one_of(st.none(), IDS))
LINKS = st.builds(
    FabricLink, ENDS, st.one_of(st.none(), ENDS), st.sampled_from([None, 0, 1, 2, 4, 12]),
    st.sampled_from([None, "HDR", "NDR", "?"]), st.sampled_from([None, "Active", "Down"]), st.none(),
    st.sampled_from([None, 4]), st.sampled_from([None, "XDR"]),
)  # fmt: skip
FABRICS = st.builds(
    lambda nodes, links: Fabric("any", {node.guid: node for node in nodes}, tuple(links)),
    st.lists(NODES, max_size=14),
    st.lists(LINKS, max_size=60),
)
NETDEVS = st.builds(
    NetdevRow, st.sampled_from(["n1", "n2", "x/n1"]), st.sampled_from(["e0", "e1"]), st.sampled_from([None, "a"]),
    st.sampled_from([None, 0, 1]), st.sampled_from([None, 0.0, 400.0]), st.one_of(st.none(), NAMES), st.none(), NAMES,
)  # fmt: skip


@given(st.lists(FABRICS, max_size=2), st.lists(NETDEVS, max_size=12))
def test_any_graph_is_answered(fabrics: list[Fabric], netdevs: list[NetdevRow]) -> None:
    """Text, data, picture, Slurm's files, topograph's model, labels."""
    cluster = build([FabricFile("f", fabric) for fabric in fabrics], ClusterTables(netdev=netdevs) if netdevs else None)
    seen = build_views(cluster)
    answer = build_topology_answer(cluster, seen)

    for width in (40, 80, 200):
        assert all(line.isprintable() for line in to_plain_text(page(answer, width)).splitlines())
        to_plain_text(render_cables_page(judge_by_pattern(cluster, seen), cluster.sources, width))
    fromstring(draw_picture(cluster, seen, answer.breaks))
    assert isinstance(yaml.safe_load(format_model(cluster, seen)), dict)
    assert format_labels(cluster, seen).isascii()
    try:
        assert format_conf(cluster, seen).isascii()
        assert isinstance(yaml.safe_load(written(cluster, seen)), list)
    except Nothing:
        pass


@given(
    st.integers(1, 5), st.integers(1, 9), st.integers(1, 8), st.integers(1, 5), st.integers(1, 3), st.randoms()
)  # fmt: skip
def test_a_healthy_fabric_of_any_size_is_silent(
    units: int, nodes: int, per_node: int, spines: int, each: int, random: object
) -> None:
    """Whole nodes may be off: that is no break of the fabric; and every cable follows the pattern."""
    plant = rails(units, nodes, per_node, spines, each)
    for number in range(1, units * nodes + 1):
        if random.random() < 0.3:  # type: ignore[attr-defined]
            for rail in range(per_node):
                plant.cut(f"n{number:03d} mlx5_{rail}")
    cluster = plant.cluster()
    seen = build_views(cluster)

    assert [] == build_topology_answer(cluster, seen).breaks
    assert [] == judge_by_pattern(cluster, seen).wrong


@given(st.integers(1, 8), st.integers(0, 9), st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 3))
def test_a_healthy_fat_tree_of_any_size_is_silent(
    leaves: int, nodes: int, spines: int, each: int, pods: int, cores: int
) -> None:
    """Two or three levels; also leaves without hosts."""
    plant = fat_tree(leaves, nodes, spines, each, pods, cores)
    cluster = plant.cluster()
    seen = build_views(cluster)

    assert [] == build_topology_answer(cluster, seen).breaks
    assert [] == judge_by_pattern(cluster, seen).wrong
