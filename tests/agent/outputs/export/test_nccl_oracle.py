"""NCCL's own parser and graph read what we export, and see every pair as the report does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.outputs.export.nccl_topo import export
from tests.agent.outputs.export.given import MACHINES
from tests.machines import scan_machine

ORACLE = os.environ.get("FABRICSCOPE_NCCL_ORACLE")
WAYS = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}  # NCCL's PHB: one NUMA node

pytestmark = pytest.mark.skipif(
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
