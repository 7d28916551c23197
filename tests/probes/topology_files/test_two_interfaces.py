"""The same machine through two interfaces: its file tree, and what hwloc or rdma_topo would write of that tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.pci import PciFunction
from agent.model.report import Report
from fixtures.build import build_capture
from fixtures.tree import FileTree
from probes.sources.open_source import open_source
from tests.machines import HOSTS, SOME_HOSTS, scan_machine
from tests.probes.topology_files.samples import dump, function

LSTOPO = shutil.which("lstopo-no-graphics")
HWLOC = pytest.mark.skipif(LSTOPO is None, reason="hwloc is not installed")
UNREAD = re.compile(r"/(statistics|power)/|/(aer_|dma_|msi_|mod)|/run/")
LEFT_OUT = ("0x060000", "0x060100", "0x080700", "0x088000", "0x110100", "0x130000")


def through_hwloc(shape: str | None, fault: str | None, place: Path, *options: str) -> Report:
    """What is read of the XML that lstopo makes of a fixture's tree."""
    result = build_capture(shape, fault).tree
    match = {path: content for path, content in result.files.items() if not UNREAD.search(path)}
    FileTree(match, result.links, result.directories).write(place / "tree")
    environment = {**os.environ, "HWLOC_COMPONENTS": "linux,stop", "HWLOC_FSROOT": str(place / "tree")}
    command = [str(LSTOPO), "--whole-io", "--of", "xml", *options, "-"]
    text = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    (place / "machine.xml").write_bytes(text)
    return diagnose(open_source(str(place / "machine.xml")), ScanPlan())[0]


def places(report: Report) -> dict[str, tuple[object, ...]]:
    """Where every function is and what it is."""
    return {
        f.id: (f.parent, f.root_bus, f.class_code, f.vendor, f.device, f.subsystem_device) for f in report.topology.pci
    }


def ways(report: Report) -> dict[tuple[str, str], str | None]:
    """The PCIe relation of every pair."""
    return {(path.a, path.b): path.pcie_kind for path in report.topology.paths}


def ports(report: Report) -> dict[str, list[tuple[object, ...]]]:
    """State and LID of every port, by NIC."""
    return {nic.id: [(p.port, p.state, p.lid, p.netdevs) for p in nic.ports] for nic in report.topology.host_nics}


def carried(f: PciFunction) -> float:
    """What its link carries, as far as it is told."""
    return (f.link.bandwidth_gbyte_s if f.link else None) or 0.0


@HWLOC
@pytest.mark.usefixtures("real_commands")
@pytest.mark.parametrize(
    ("shape", "options"),
    [pytest.param(shape, (), id=shape) for shape in SOME_HOSTS]
    + [pytest.param(shape, ("--export-xml-flags", "v1"), id=f"{shape} in format 1") for shape in HOSTS[2:5]],
)
def test_a_tree_and_its_own_hwloc_topology_agree(shape: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """Functions, hierarchy, bandwidth, NUMA, RDMA ports, interfaces, and the way of every pair; no false alarm.

    hwloc puts what has no proximity on a machine of one node beside that node, and drops distances there.
    """
    tree, other = scan_machine(shape), through_hwloc(shape, None, tmp_path, *options)
    functions = {f.id: f for f in other.topology.pci}
    several = len(tree.node.numa_nodes) > 1

    assert "hwloc-xml" == other.source.kind
    assert places(tree) == places(other)
    assert ways(tree) == ways(other)
    assert ports(tree) == ports(other)
    for f in tree.topology.pci:
        assert functions[f.id].numa_node == f.numa_node or not several
        if f.state != "asleep":
            assert carried(functions[f.id]) == pytest.approx(carried(f), rel=0.001)
    assert [(n.id, n.cpus, n.memory_mib, n.distances if several else []) for n in tree.node.numa_nodes] == [
        (n.id, n.cpus, n.memory_mib, n.distances) for n in other.node.numa_nodes
    ]
    assert {n.label: (n.pci, n.mac) for n in tree.topology.netdevs if n.pci} == {
        n.label: (n.pci, n.mac) for n in other.topology.netdevs
    }
    assert (tree.node.vendor, tree.node.product, tree.node.cpu.sockets) == (
        other.node.vendor,
        other.node.product,
        other.node.cpu.sockets,
    )
    assert {"info"} >= {finding.severity for finding in other.findings}


@HWLOC
@pytest.mark.usefixtures("real_commands")
def test_a_fault_of_the_tree_is_found_and_a_narrow_link_is_not_guessed(tmp_path: Path) -> None:
    """A GPU far from its NIC is in the hierarchy; whether half a bandwidth is a fault is not in the file."""
    far = through_hwloc(None, "gpu-far-from-nic", tmp_path / "far")
    narrow = through_hwloc(None, "gpu-width-x8", tmp_path / "narrow")
    checks = {check.rule: check for check in narrow.checks}

    assert ["affinity-gpu-far-from-nic"] == [finding.rule for finding in far.findings]
    assert [] == narrow.findings
    assert "unknown" == checks["pcie-width-downgraded"].state
    assert {"what it carries is known, and not at what speed and width"} == {
        row.reason for row in checks["pcie-width-downgraded"].unknown_subjects
    }


def rdma_topo_dump(shape: str | None, fault: str | None) -> bytes:
    """What rdma_topo would write as root: the files of every function but for those of kinds that it leaves out."""
    tree = build_capture(shape, fault).tree
    rows = []
    for link in sorted(
        path for path in tree.links if path.startswith("/sys/bus/pci/devices/") and path.count("/") == 5
    ):
        path = tree.physical(link)
        text = {name: tree.files.get(f"{path}/{name}", b"").decode().strip() for name in IDS}
        kind = text["class"].removeprefix("0x").upper()
        ids = "".join(
            f"{mark}0000{text[name][2:].upper()}" for mark, name in zip(("v", "d", "sv", "sd"), IDS, strict=False)
        )
        modalias = f"pci:{ids}bc{kind[:2]}sc{kind[2:4]}i{kind[4:]}"
        names = {part: below(tree, f"{path}/{part}/") for part in ("infiniband", "net")}
        node = int(tree.files[f"{path}/numa_node"])
        if text["class"] not in LEFT_OUT:
            rows.append(function(path, tree.files[f"{path}/config"], modalias, numa_node=node, subsystems=names))
    return dump(*rows)


IDS = ("vendor", "device", "subsystem_vendor", "subsystem_device", "class")


def below(tree: FileTree, folder: str) -> list[str]:
    """The names in a folder."""
    return sorted({path[len(folder) :].split("/")[0] for path in (*tree.files, *tree.links) if path.startswith(folder)})


@pytest.mark.parametrize("shape", [shape for shape in HOSTS if not shape.startswith("trn1-")])  # no class that it lists
def test_a_tree_and_its_own_rdma_topo_dump_agree(shape: str, tmp_path: Path) -> None:
    """Functions, hierarchy, links as the registers tell them, NUMA, ACS, and the way of every pair.

    Between host bridges nothing is known where no function has a node: a dump does not say that there is only one.
    """
    place = tmp_path / "machine.json"
    place.write_bytes(rdma_topo_dump(shape, None))
    tree, other = scan_machine(shape), diagnose(open_source(str(place)), ScanPlan())[0]
    functions = {f.id: f for f in tree.topology.pci}
    told_ways, known = ways(tree), {pair: kind for pair, kind in ways(other).items() if kind}

    assert "rdma-topo" == other.source.kind
    assert {f.id for f in tree.topology.pci if f.class_code not in LEFT_OUT} == {f.id for f in other.topology.pci}
    assert {pair: told_ways[pair] for pair in known} == known
    assert (ways(other) == known) or any(f.numa_node is None for f in other.topology.pci)
    assert {"info"} >= {finding.severity for finding in other.findings}
    for f in other.topology.pci:
        result = functions[f.id]
        if result.state == "asleep":  # root reads what the kernel then was not asked
            continue
        assert (f.parent, f.root_bus, f.class_code, f.device, f.numa_node, f.acs, f.max_payload_bytes) == (
            result.parent,
            result.root_bus,
            result.class_code,
            result.device,
            result.numa_node,
            result.acs,
            result.max_payload_bytes,
        )
        assert carried(f) == carried(result)


def test_a_fault_in_the_registers_is_found_in_an_rdma_topo_dump(tmp_path: Path) -> None:
    """Config space says what a link trained to."""
    place = tmp_path / "machine.json"
    place.write_bytes(rdma_topo_dump(None, "slot-narrow"))
    report, _ = diagnose(open_source(str(place)), ScanPlan())

    assert {finding.rule for finding in scan_machine("", "slot-narrow").findings} >= {f.rule for f in report.findings}
    assert [] == [f.rule for f in report.findings if f.severity == "critical"]
