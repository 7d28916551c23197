"""topology.yaml read by a real slurmctld of a version that knows it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.fleet.cluster.build import FabricFile, build
from agent.fleet.cluster.fabric_view import build_views
from agent.fleet.cluster.from_reports import ClusterTables, GpuRow
from agent.fleet.cluster.slurm import format_yaml as written
from agent.fleet.hostlist import fold, unfold
from probes.fabric.files import read_fabric
from tests.agent.fleet.cluster import later_slurm
from tests.agent.fleet.cluster.given import fat_tree, rails
from tests.agent.fleet.cluster.later_slurm import Controller

ABSENT = later_slurm.absent()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(ABSENT is not None, reason=str(ABSENT)),
    pytest.mark.usefixtures("real_commands"),
]


def domains(*sizes: int) -> ClusterTables:
    """NVLink domains of so many hosts, n001 first."""
    hosts = iter(range(1, sum(sizes) + 1))
    result = [(number, next(hosts)) for number, size in enumerate(sizes, 1) for _ in range(size)]
    return ClusterTables(
        gpu=[GpuRow(f"n{host:03d}", f"{number:08d}-0000-4000-8000-000000000001", 7) for number, host in result * 4]
    )


GIVEN = {
    "rails": lambda: rails(units=4, nodes=8).cluster(),
    "fat tree": lambda: fat_tree(pods=2, leaves=2, cores=2).cluster(),
    "rails and domains": lambda: rails(units=2, nodes=18).cluster(domains(18, 18)),
    "domains of many sizes": lambda: build([], domains(18, 17, 1, 4)),
    "hosts in a domain only, hosts in the tree only": lambda: rails(units=2, nodes=8).cluster(domains(4, 4)),
    "selene.compute.txt": None,
    "topograph-example.out": None,
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """Below the root of that Slurm, which sees nothing else."""
    place = Path(tempfile.mkdtemp(dir=later_slurm.PLACE / "tmp"))
    yield place
    shutil.rmtree(place)


def nodes_of(topologies: list[Any]) -> str:
    """All nodes that any of them names."""
    lists = re.findall(r"'nodes': '([^']+)'", str(topologies))
    return fold({node for item in lists for node in unfold(item)}, suffix=False)


@pytest.mark.parametrize("name", GIVEN)
def test_slurmctld_reads_the_same(name: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """Every switch and every block of every topology, and no complaint about the file."""
    make = GIVEN[name]
    if make is None:
        text = (request.getfixturevalue("corpus") / "fabric" / name).read_text()
        cluster = build([FabricFile(name, read_fabric(text, name))], None)
    else:
        cluster = make()
    text = written(cluster, build_views(cluster))
    topologies = yaml.safe_load(text)
    controller = Controller(folder, "topology.yaml", text, nodes_of(topologies), later_slurm.PLACE)
    try:
        result = {topology["topology"]: controller.topology(topology["topology"]) for topology in topologies}
        usual_value = controller.topology()
    finally:
        controller.stop()

    (default,) = (topology["topology"] for topology in topologies if topology["cluster_default"])
    assert result[default] == usual_value
    for topology in topologies:
        (same_tree if "tree" in topology else same_blocks)(topology, result[topology["topology"]])
    complaints = re.findall(r"(?i).*(?:warning|error|fatal): .*(?:topolog|switch|block).*", controller.log())
    if default == "fabric":  # of a topology that a partition must ask for
        complaints = [complaint for complaint in complaints if "Blocks lack access" not in complaint]
    assert [] == complaints


def same_tree(ours: Any, told: str) -> None:
    """Switches with what is below them; of upper ones Slurm says all nodes."""
    seen = {
        item[1]: (set(unfold(item[2])), set(unfold(item[4] or "")))
        for item in re.finditer(r"^SwitchName=(\S+) Level=\d+ LinkSpeed=\d+ Nodes=(\S+)( Switches=(\S+))?", told, re.M)
    }
    switches = ours["tree"]["switches"]
    assert {switch["switch"] for switch in switches} == seen.keys()
    for switch in switches:
        nodes, below = seen[switch["switch"]]
        assert set(unfold(switch.get("children", ""))) == below
        if "nodes" in switch:
            assert set(unfold(switch["nodes"])) == nodes


def same_blocks(ours: Any, told: str) -> None:
    """Blocks with their nodes and the size that they are planned with."""
    seen = [
        (result[1], result[2], int(result[3]))
        for result in re.finditer(r"^BlockName=(\S+) BlockIndex=\d+ Nodes=(\S+) BlockSize=(\d+)", told, re.M)
    ]
    (size,) = ours["block"]["block_sizes"]
    assert [(item["block"], item["nodes"], size) for item in ours["block"]["blocks"]] == seen


def test_a_wrong_file_is_refused(folder: Path) -> None:
    """So that the tests above say something: a child that is no switch ends it."""
    cluster = rails(units=2, nodes=4).cluster()
    text = written(cluster, build_views(cluster)).replace("su[1-2]", "su[1-3]")
    controller = Controller(folder, "topology.yaml", text, "n[001-008]", later_slurm.PLACE)
    try:
        with pytest.raises(AssertionError, match="invalid child"):
            controller.topology()
    finally:
        controller.stop()
