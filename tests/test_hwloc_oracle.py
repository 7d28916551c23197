"""Another reader of the same trees: hwloc's PCI functions, bridges and link bandwidths are ours.

hwloc drops domains above 16 bits and refuses trees without CPUs; what it can read has to agree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.diagnose import ScanPlan, diagnose
from probes.sources.open_source import open_source
from tests.conftest import sample_of

TREES = {  # tree -> how many PCI functions hwloc lists
    "ghw-accel-nvidia": 29,
    "ghw-amd64-2numa": 82,
    "hwloc-2pa-pcidomain32bits": 7,
    "hwloc-32intel64-2p8co2t+8ve": 28,
    "hwloc-40intel64-2g2n4c+pcilocality": 37,
    "hwloc-40intel64-4n10c+pci-conflicts": 3,
    "hwloc-fakepcilocalities": 30,
    "hwloc-nvidiagpunumanodes": 6,
}
LSTOPO = shutil.which("lstopo-no-graphics")


@pytest.mark.parametrize("tree", sample_of(list(TREES)))
@pytest.mark.skipif(LSTOPO is None, reason="lstopo-no-graphics is not installed (Debian: hwloc-nox)")
def test_hwloc_reads_the_same_bus(tree: str, corpus: Path, tmp_path: Path, real_commands: None) -> None:
    """Functions with class and ids, the bridge above each, and one direction's bandwidth where hwloc gives it."""
    with tarfile.open(corpus / "trees" / f"{tree}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # Python before 3.11.4 has none
        archive.extractall(tmp_path)
    report, _ = diagnose(open_source(str(tmp_path), None), ScanPlan(only=("pci", "kernel")))
    ours = {function.id: function for function in report.topology.pci}
    theirs = list(hwloc(tmp_path))

    assert TREES[tree] == len(theirs)
    for node, above in theirs:
        function = ours[node.attrib["pci_busid"]]
        assert function.class_code is not None
        ids = f" [{function.vendor[2:]}:{function.device[2:]}]" if function.vendor and function.device else ""
        assert node.attrib["pci_type"].startswith(function.class_code[2:6] + ids)
        assert above is None or above == function.parent
        speed = float(node.attrib.get("pci_link_speed", "0"))
        if speed and function.link and function.link.bandwidth_gbyte_s:
            assert speed == pytest.approx(function.link.bandwidth_gbyte_s, rel=0.01)


def hwloc(tree: Path) -> list[tuple[ElementTree.Element, str | None]]:
    """Every PCI object of hwloc's XML, with the address of the PCI bridge that it hangs below."""
    environment = {**os.environ, "HWLOC_COMPONENTS": "linux,stop", "HWLOC_FSROOT": str(tree)}
    argv = [str(LSTOPO), "--whole-io", "--of", "xml", "-"]
    text = subprocess.run(argv, capture_output=True, check=True, env=environment).stdout
    result: list[tuple[ElementTree.Element, str | None]] = []

    def walk(node: ElementTree.Element, above: str | None) -> None:
        here = node.attrib.get("pci_busid")
        if here is not None:
            result.append((node, above))
        for child in node:
            walk(child, here or above)

    walk(ElementTree.fromstring(text), None)
    return result
