"""Slurm's files, read back by a real slurmctld, and of the shapes that Slurm's own test-suite has; topograph's model,
checked as its own reader checks it; labels that Kubernetes takes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, GpuRow
from agent.fleet.cluster.graph import FabricGraph
from agent.fleet.cluster.slurm import Nothing, format_conf
from agent.fleet.cluster.slurm import format_yaml as written
from agent.fleet.cluster.topograph import format_labels, format_model
from agent.fleet.hostlist import unfold
from probes.fabric.files import read_fabric
from tests.agent.fleet.cluster.given import Plant, dragonfly, fat_tree, rails
from tests.agent.fleet.cluster.later_slurm import SLURMCTLD, Controller

BY_HAND = {"fat tree": lambda: fat_tree(pods=2, cores=2), "dragonfly": dragonfly}
SHAPES = "fabric/slurm-topology/slurm-testsuite/test_150_9_testcases"
RACKS = ClusterTables(gpu=[GpuRow(f"n{node:03d}", f"{rack:08d}-0000-4000-8000-000000000001", 7) for rack in (1, 2)
                    for node in range(rack * 18 - 17, rack * 18 + 1) for _ in range(4)])  # fmt: skip
LABEL = re.compile(
    r"fabricscope\.feature\.node\.kubernetes\.io/[a-z0-9-]+=[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)


def tree_of(text: str) -> dict[str, tuple[list[str], list[str]]]:
    """Switch -> its nodes, the switches below it."""
    collected = {}
    for line in text.splitlines():
        result = dict(part.split("=", 1) for part in line.partition("#")[0].split())
        if result:
            assert set(result) in ({"SwitchName", "Nodes"}, {"SwitchName", "Switches"})
            collected[result["SwitchName"]] = unfold(result.get("Nodes", "")), unfold(result.get("Switches", ""))
    return collected


def given(plant: Plant, tables: ClusterTables | None = None) -> str:
    """Its topology.conf."""
    cluster = plant.cluster(tables)
    return format_conf(cluster, build_views(cluster))


def test_units_stand_for_their_leaves() -> None:
    """Each node once, each switch with one parent; said in a comment."""
    text = given(rails(units=2, nodes=4))
    result = tree_of(text)

    assert {
        "su1": (["n001", "n002", "n003", "n004"], []),
        "su2": (["n005", "n006", "n007", "n008"], []),
        "spine": ([], ["su1", "su2"]),
    } == result
    assert "a switch here is\n# a unit" in text


def test_three_levels() -> None:
    """Leaves, pods, all."""
    result = tree_of(given(fat_tree(pods=2, leaves=2, cores=2)))

    assert {"spine": ["leaf01", "leaf02"], "spine-2": ["leaf03", "leaf04"], "core": ["spine", "spine-2"]} == {
        name: below for name, (_, below) in result.items() if below
    }


def test_switches_joined_without_one_above() -> None:
    """Groups of a dragonfly, then all: a job may span them."""
    text = given(dragonfly(groups=3, routers=3))
    result = tree_of(text)

    assert "Several trees" not in text
    assert {f"g{group}r{router}" for group in range(3) for router in range(3)} == {
        name for name, (nodes, _) in result.items() if nodes
    }
    assert [["g0r0", "g0r1", "g0r2"], ["g1r0", "g1r1", "g1r2"], ["g2r0", "g2r1", "g2r2"]] == sorted(
        below for name, (_, below) in result.items() if name.startswith("group")
    )
    (top,) = (below for name, (_, below) in result.items() if below and not name.startswith("group"))
    assert sorted(name for name in result if name.startswith("group")) == sorted(top)

    plant = Plant()
    for leaf in ("sw1", "sw2"):
        plant.switch(leaf)
        for node in range(4):
            plant.cable(f"{leaf}-n{node} mlx5_0", 1, leaf, node + 1)
    assert "Several trees" in given(plant)
    plant.cable("sw1", 33, "sw2", 33)
    assert ["sw1", "sw2"] == tree_of(given(plant))["top"][1]


def test_a_unit_is_never_called_as_a_switch_of_another() -> None:
    plant = Plant()
    for unit in range(3):
        for node in range(4):
            for rail in range(2):
                leaf = plant.switch(f"st-leaf-{2 * unit + rail + 1}")
                plant.cable(f"n{unit * 4 + node} mlx5_{rail}", 1, leaf, node + 1)
                plant.cable(leaf, 40 + node, plant.switch("top-1"), (2 * unit + rail) * 4 + node + 1)
    result = tree_of(given(plant))

    assert {"st-leaf-1", "st-leaf-3", "st-leaf-5"} == {name for name, (nodes, _) in result.items() if nodes}


def test_names_that_slurm_takes() -> None:
    """Long, odd, the same as a node's, the same as another's."""
    plant = Plant()
    for leaf, name in enumerate(["MF0;n1 [x]:MQM8700/U1", "n1", "x" * 90, "x" * 90 + "é", "…"]):
        plant.add(f"leaf{leaf}", "switch", 64, name)
        for port in range(1, 4):
            plant.cable(f"n{leaf * 3 + port}.site.org mlx5_0", 1, f"leaf{leaf}", port)
        plant.cable(f"leaf{leaf}", 40, plant.switch("top"), leaf + 1)

    result = tree_of(given(plant))

    nodes = [node for own, _ in result.values() for node in own]
    assert sorted(f"n{number}" for number in range(1, 16)) == sorted(nodes)
    assert 6 == len(result)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name) for name in result)
    assert not result.keys() & set(nodes)


def test_only_nodes_that_slurm_has() -> None:
    """Service hosts are left out, and switches that are empty then."""
    plant = rails(units=2, nodes=4)
    cluster = plant.cluster()

    text = format_conf(cluster, build_views(cluster), {"n001", "n002"})

    assert {"su1": (["n001", "n002"], []), "spine": ([], ["su1"])} == tree_of(text)
    assert "# 6 hosts are left out" in text
    with pytest.raises(Nothing):
        format_conf(cluster, build_views(cluster), {"other"})


def test_a_node_between_units_stands_somewhere() -> None:
    """Once, with a comment."""
    plant = rails(units=3, nodes=6)
    for rail, leaf in enumerate(["su1-leaf1", "su1-leaf2", "su2-leaf3", "su2-leaf4"]):
        plant.cable(f"x1 mlx5_{rail}", 1, leaf, 20)

    text = given(plant)

    assert 1 == sum("x1" in nodes for nodes, _ in tree_of(text).values())
    assert "# x1 is in no unit" in text


def test_domains_alone_are_blocks() -> None:
    """No switch is known: topology/block."""
    cluster = build([], RACKS)

    lines = [line for line in format_conf(cluster, []).splitlines() if not line.startswith("#")]

    assert [
        "BlockName=nvlink-001 Nodes=n[001-018]",
        "BlockName=nvlink-002 Nodes=n[019-036]",
        "BlockSizes=18",
    ] == lines


def test_the_tree_of_topology_yaml() -> None:
    """The same as topology.conf."""
    plant = rails(units=2, nodes=4)
    cluster = plant.cluster()

    (only,) = yaml.safe_load(written(cluster, build_views(cluster)))

    assert {
        "topology": "fabric",
        "cluster_default": True,
        "tree": {
            "switches": [
                {"switch": "su1", "nodes": "n[001-004]"},
                {"switch": "su2", "nodes": "n[005-008]"},
                {"switch": "spine", "children": "su[1-2]"},
            ]
        },
    } == only


def test_blocks_and_tree_are_two_topologies() -> None:
    """Blocks are the default where there are any; every block has as many nodes as the block size."""
    plant = rails(units=2, nodes=18)
    cluster = plant.cluster(RACKS)

    block, tree = yaml.safe_load(written(cluster, build_views(cluster)))

    assert (True, False) == (block["cluster_default"], tree["cluster_default"])
    assert {"block_sizes": [18], "blocks": [
        {"block": "nvlink-001", "nodes": "n[001-018]"}, {"block": "nvlink-002", "nodes": "n[019-036]"},
    ]} == block["block"]  # fmt: skip


def test_blocks_that_lack_nodes_are_no_default() -> None:
    """Eight of sixteen nodes are in domains: a partition can ask for blocks, the cluster has the tree."""
    few = ClusterTables(gpu=[GpuRow(f"n{node:03d}", "00000001-0000-4000-8000-000000000001", 7) for node in range(1, 9)])
    cluster = rails(units=2, nodes=8).cluster(few)

    block, tree = yaml.safe_load(written(cluster, build_views(cluster)))

    assert (False, True) == (block["cluster_default"], tree["cluster_default"])


def keys(found: Any, at: str = "") -> set[str]:
    """Every path of names."""
    if isinstance(found, dict):
        return {f"{at}/{key}" for key in found} | {
            one for key, item in found.items() for one in keys(item, f"{at}/{key}")
        }
    return {one for item in found for one in keys(item, at)} if isinstance(found, list) else set()


def test_of_the_shapes_of_slurms_own_tests(corpus: Path) -> None:
    """Names and nesting are those which Slurm's test-suite writes."""
    theirs: set[str] = set()
    for name in ("tree_bad_options", "block_bad_options"):  # of which the shape is right
        theirs |= keys(yaml.safe_load((corpus / SHAPES / f"{name}.yaml").read_text()))
    cluster = rails(units=2, nodes=18).cluster(RACKS)

    ours = keys(yaml.safe_load(written(cluster, build_views(cluster))))

    assert ours == theirs


def fabric_of(corpus: Path, name: str) -> FabricGraph:
    """Of a real file."""
    return build([FabricFile(name, read_fabric((corpus / "fabric" / name).read_text(), name))], None)


@pytest.mark.slow
@pytest.mark.skipif(SLURMCTLD is None or os.geteuid() != 0, reason="slurmctld (Debian: slurmctld) and root are needed")
@pytest.mark.parametrize("name", [*BY_HAND, "selene.compute.txt", "topograph-example.out"])
def test_slurmctld_reads_the_same(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, real_commands: None
) -> None:
    """Every switch with the nodes below it, and no complaint about the file."""
    by_hand = BY_HAND.get(name)
    cluster = by_hand().cluster() if by_hand else fabric_of(request.getfixturevalue("corpus"), name)
    text = format_conf(cluster, build_views(cluster))
    wanted = tree_of(text)
    nodes = ",".join(re.findall(r"^SwitchName=\S+ Nodes=(\S+)", text, re.MULTILINE))
    controller = Controller(tmp_path, "topology.conf", text, nodes, plugin="TopologyPlugin=topology/tree")
    try:
        result = controller.topology()
    finally:
        controller.stop()

    seen = {
        item[1]: (unfold(item[2]), unfold(item[4] or ""))
        for item in re.finditer(
            r"^SwitchName=(\S+) Level=\d+ LinkSpeed=\d+ Nodes=(\S+)( Switches=(\S+))?", result, re.M
        )
    }
    assert wanted.keys() == seen.keys()
    for switch, (nodes, below) in wanted.items():
        assert set(below) == set(seen[switch][1])
        assert set(nodes) <= set(seen[switch][0])
        assert nodes == [] or set(nodes) == set(seen[switch][0])
    assert [] == re.findall(r"(?i).*(?:topology|switch).*(?:warning|error|invalid).*", controller.log())


@pytest.mark.parametrize("cores", [0, 2])
def test_a_swapped_pair_of_uplinks_merges_no_zones(cores: int) -> None:
    """One cable of each pod on a spine of the other: jobs would be placed as if both were one."""
    plant = fat_tree(pods=2, leaves=6, spines=4, cores=cores)
    plant.swap("leaf01", "leaf07", 33, 33)

    below = {name: switches for name, (_, switches) in tree_of(given(plant)).items() if switches}

    assert [f"leaf{number:02d}" for number in range(1, 7)] == below["spine"]
    assert [f"leaf{number:02d}" for number in range(7, 13)] == below["spine-2"]
    assert (["spine", "spine-2"] if cores else None) == below.get("core")


def test_a_leaf_between_two_pods_merges_no_zones() -> None:
    """Half of its uplinks in each: no majority, and still each pod is one."""
    plant = fat_tree(pods=2, leaves=6, spines=4)
    for port in (33, 34, 35, 36):
        cable = plant.of("leaf01", port)
        plant.cables.remove(cable)
        plant.cable("leaf01", port, f"spine{port - 28:02d}", 40)

    groups = [set(switches) - {"leaf01"} for _, switches in tree_of(given(plant)).values() if switches]

    assert {f"leaf{number:02d}" for number in range(2, 7)} in groups
    assert {f"leaf{number:02d}" for number in range(7, 13)} in groups


def test_units_of_one_pod_have_names_of_their_own() -> None:
    """Pairs of leaves of a pod: none of them is the pod."""
    plant = Plant()
    for pair in (1, 2, 3):
        for node in range(4):
            for rail in (0, 1):
                leaf = plant.switch(f"SLG01-{pair * 2 - 1 + rail:02d}")
                plant.cable(f"n{pair * 4 + node:03d} mlx5_{rail}", 1, leaf, node + 1)
                plant.cable(leaf, 33 + node, plant.switch(f"core{node + 1}"), pair * 2 + rail)

    names = {name for name, (nodes, _) in tree_of(given(plant)).items() if nodes}

    assert {"SLG01-01", "SLG01-03", "SLG01-05"} == names


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
