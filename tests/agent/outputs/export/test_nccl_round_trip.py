"""The NCCL topology that we write is read by our reader, and by NCCL's, to the same devices, ports, links and ways."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from agent.outputs.export.nccl_topo import export
from probes.sources.open_source import open_source
from tests.agent.outputs.export.given import MACHINES
from tests.machines import HOSTS, scan_machine


def read_back(report: Report, folder: Path) -> Report:
    """What a scan of the file says."""
    place = folder / "topo.xml"
    place.write_text(export(report))
    again, _ = diagnose(open_source(str(place)), ScanPlan())
    return again


READ = ("NVIDIA", "AMD")  # what NCCL and RCCL read


@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_our_reader_reads_the_same_devices_back(host: str, fault: str | None, tmp_path: Path) -> None:
    """GPUs with number and capability, active ports with rate and GUID, NVLinks and way of every pair."""
    report = scan_machine(host, fault)
    usable = {g.id: g for g in report.topology.gpus if g.driver_state in ("open", "unknown") and g.vendor in READ}
    nics = {n.id: n for n in report.topology.host_nics if not n.limited and n.state != "other_namespace"}
    if not usable and not nics:
        return
    again = read_back(report, tmp_path)
    seen = {g.id: g for g in again.topology.gpus}

    assert sorted(usable) == sorted(seen)
    if report.node.arch == "x86_64":
        assert report.node.cpu.family == again.node.cpu.family
    for gpu in usable.values():
        assert (gpu.index, gpu.compute_capability) == (seen[gpu.id].index, seen[gpu.id].compute_capability)
        assert gpu.numa_node == seen[gpu.id].numa_node
    active = {
        (n.id, p.port, p.rate_gbit_s, n.system_image_guid) for n in nics.values() for p in n.ports if p.rate_gbit_s
    }
    assert active == {(n.id, p.port, p.rate_gbit_s, n.system_image_guid) for n in again.topology.nics for p in n.ports}
    assert set(nics) == {n.id for n in again.topology.nics}
    _same_ways(report, again)


def _same_ways(report: Report, again: Report) -> None:
    """Of pairs that both know: PHB and NODE are one in the file."""
    ways = {(p.a, p.b): p for p in again.topology.paths}
    links_known = {g.id for g in report.topology.gpus if g.links_known}
    nowhere = {f.id for f in report.topology.pci if f.numa_node is None}
    for path in report.topology.paths:
        there = ways.get((path.a, path.b))
        if there is None or path.pcie_kind is None:
            continue
        if there.pcie_kind is None:  # of two devices on no NUMA node, the file does not tell
            assert path.a in nowhere or path.b in nowhere
            continue
        assert path.pcie_kind.replace("PHB", "NODE") == there.pcie_kind
        if {path.a, path.b} <= links_known and (path.kind or "").startswith("NV"):
            assert path.kind == there.kind


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_read_back_gives_the_same_file(host: str, tmp_path: Path) -> None:
    """The tree survives: the second export names the same devices below the same switches."""
    report = scan_machine(host)
    if not any(gpu.vendor in READ for gpu in report.topology.gpus):
        return
    again = read_back(report, tmp_path)
    below = [
        {
            (up.get("busid"), match.get("busid"))
            for up in ElementTree.fromstring(export(one)).iter()
            for match in up.findall("pci")
        }
        for one in (report, again)
    ]

    assert below[0] == below[1]


ORACLE = os.environ.get("FABRICSCOPE_NCCL_ORACLE")
WAYS = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}  # NCCL's PHB: one NUMA node


@pytest.mark.skipif(
    ORACLE is None, reason="FABRICSCOPE_NCCL_ORACLE names no program that is built of nccl_oracle.cc and NCCL's source"
)
@pytest.mark.parametrize(("host", "fault"), MACHINES)
def test_nccl_sees_the_same_ways(host: str, fault: str | None, tmp_path: Path, real_commands: None) -> None:
    """PIX, PXB, PHB, SYS or NVLink of every GPU with every GPU and every active port."""
    report = scan_machine(host, fault)
    place = tmp_path / "topo.xml"
    place.write_text(export(report))
    nets = {
        f"net-{net.get('dev')}": pci.get("busid", "")
        for pci in ElementTree.fromstring(place.read_text()).iter("pci")
        for net in pci.findall("nic/net")
    }
    if "<gpu" not in place.read_text():
        return
    done = subprocess.run([str(ORACLE), str(place)], capture_output=True, text=True, timeout=60)
    ways = {frozenset((p.a, p.b)): p for p in report.topology.paths}
    ids = {g.id for g in report.topology.gpus if g.links_known}
    nowhere = {f.id for f in report.topology.pci if f.numa_node is None}

    assert (0, "") == (done.returncode, done.stderr)
    for a, b, kind in (line.split(" ") for line in done.stdout.splitlines()):
        path = ways[frozenset((a, nets.get(b, b)))]
        if path.pcie_kind is None and nowhere:
            continue  # firmware that names no NUMA node: NCCL guesses, we do not
        linked = {a, b} <= ids and (path.kind or "").startswith("NV")
        assert kind == ("NVL" if linked else WAYS[str(path.pcie_kind)])
