"""topograph's model, checked as its own reader checks it; labels that Kubernetes takes."""

from __future__ import annotations

import re
from typing import Any

import yaml

from agent.fleet.cluster.build import build
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.topograph import format_labels, format_model
from agent.fleet.hostlist import unfold
from tests.agent.fleet.cluster.given import fat_tree, rails
from tests.agent.fleet.cluster.test_slurm import RACKS

LABEL = re.compile(
    r"fabricscope\.feature\.node\.kubernetes\.io/[a-z0-9-]+=[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)


def accepted(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Switches and blocks, held to what topograph's pkg/models/model.go refuses."""
    result = yaml.safe_load(text)
    assert {"switches", "blocks"} == result.keys()
    switches, blocks = result["switches"], result["blocks"]
    children = [below for value in switches.values() for below in value.get("switches", [])]
    assert len(children) == len(set(children))
    assert all(switch is not None for switch in switches.values())
    known = {*switches, *children}
    nodes = [node for block in blocks for item in block["nodes"] for node in unfold(item)]
    assert len(nodes) == len(set(nodes))
    assert all(block.get("switch") is None or block["switch"] in known for block in blocks)
    assert all(block["nodes"] for block in blocks)
    return switches, blocks


def test_the_model_of_two_levels() -> None:
    """Units are blocks."""
    cluster = rails(units=2, nodes=4).cluster()

    switches, blocks = accepted(format_model(cluster, build_views(cluster)))

    assert {"su1": {}, "su2": {}, "spine": {"switches": ["su1", "su2"]}} == switches
    assert [{"switch": "su1", "nodes": ["n[001-004]"]}, {"switch": "su2", "nodes": ["n[005-008]"]}] == blocks


def test_nvlink_domains_in_the_model() -> None:
    """A block a domain of a switch; without switches, blocks alone."""
    cluster = rails(units=2, nodes=18).cluster(RACKS)
    domain = "00000001-0000-4000-8000-000000000001.7"

    _, blocks = accepted(format_model(cluster, build_views(cluster)))
    assert {"accelerator.topology.test/domain": domain} == blocks[0]["annotations"]

    switches, blocks = accepted(format_model(build([], RACKS), []))
    assert {} == switches
    assert [["n[001-018]"], ["n[019-036]"]] == [block["nodes"] for block in blocks]


def test_nothing_is_a_model_too() -> None:
    """No switch, no host."""
    assert ({}, []) == accepted(format_model(build([], None), []))


def test_labels_of_every_node() -> None:
    """The nearest tier is the first; the same domain as the node's own label."""
    plant = fat_tree(pods=2, leaves=2, nodes=9, cores=2)
    cluster = plant.cluster(RACKS)

    lines = [line.split() for line in format_labels(cluster, build_views(cluster)).splitlines()]

    assert 36 == len(lines)
    assert all(LABEL.fullmatch(label) for _, *own in lines for label in own)
    assert [
        "n001",
        "fabricscope.feature.node.kubernetes.io/fabric-tier-1=leaf01",
        "fabricscope.feature.node.kubernetes.io/fabric-tier-2=spine",
        "fabricscope.feature.node.kubernetes.io/fabric-tier-3=core",
        "fabricscope.feature.node.kubernetes.io/nvlink-domain=00000001-0000-4000-8000-000000000001.7",
    ] == lines[0]


def test_long_names_stay_apart() -> None:
    """Two switches that differ beyond the 63rd letter."""
    plant = fat_tree(leaves=2)
    for number in (1, 2):
        plant.nodes[f"leaf0{number}"] = plant.nodes[f"leaf0{number}"]._replace(name="x" * 70 + str(number))
    cluster = plant.cluster()

    result = {line.split()[1] for line in format_labels(cluster, build_views(cluster)).splitlines()}

    assert 2 == len(result)
    assert all(LABEL.fullmatch(item) for item in result)
