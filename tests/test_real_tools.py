"""Bundles that the real tools make of this very machine are this machine: hwloc-gather-topology and lspci -xxxx."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from probes.sources.open_source import open_source

GATHER, LSPCI = shutil.which("hwloc-gather-topology"), shutil.which("lspci")

pytestmark = pytest.mark.usefixtures("real_commands")


def rows(report: Report) -> list[tuple[str, str | None, str | None, str | None]]:
    """The bus as every source has to tell it."""
    return [(f.id, f.class_code, f.vendor, f.device) for f in report.topology.pci]


@pytest.mark.skipif(GATHER is None, reason="hwloc-gather-topology is not installed (Debian: hwloc-nox)")
def test_a_gathered_topology_is_this_machine(tmp_path: Path) -> None:
    """The archive of hwloc's own capture tool, as it comes: the same functions, CPUs and NUMA nodes as a live scan."""
    subprocess.run(
        [str(GATHER), "--io", "--no-cpuid", str(tmp_path / "here")], capture_output=True, check=True, timeout=100
    )
    (packed,) = tmp_path.glob("here*.tar.*")
    gathered, _ = diagnose(open_source(str(packed)), ScanPlan())
    live, _ = diagnose(open_source(None), ScanPlan())

    assert "tree" == gathered.source.kind
    assert rows(live) == rows(gathered)
    assert [(n.id, n.cpus) for n in live.node.numa_nodes] == [(n.id, n.cpus) for n in gathered.node.numa_nodes]
    assert live.node.cpu == gathered.node.cpu


@pytest.mark.skipif(LSPCI is None, reason="lspci is not installed (Debian: pciutils)")
@pytest.mark.skipif(not os.path.isdir("/sys/bus/pci/devices"), reason="this machine has no PCI bus")
def test_lspci_hex_of_this_machine_is_this_machine(tmp_path: Path) -> None:
    """Config space as lspci dumps it goes through the decoder that reads it from sysfs."""
    saved = tmp_path / "lspci_-D_-nn_-xxxx.txt"
    saved.write_bytes(subprocess.run([str(LSPCI), "-D", "-nn", "-xxxx"], capture_output=True, check=True).stdout)
    dumped, _ = diagnose(open_source(str(tmp_path)), ScanPlan())
    live, _ = diagnose(open_source(None), ScanPlan())

    assert "dump" == dumped.source.kind
    assert rows(live) == rows(dumped)
    assert {f.id: f.port_type for f in live.topology.pci if f.config_bytes} == {
        f.id: f.port_type for f in dumped.topology.pci
    }
