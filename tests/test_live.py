"""This host, for real: a live scan as the user that runs the tests, as nobody, its replay from the capture, and bundles
that hwloc-gather-topology and lspci -xxxx make of it; hwloc as another reader of the same trees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from agent.reports import encode_report, read_report
from probes.capture.extras import record_extras
from probes.capture.writer import write_capture
from probes.sources.open_source import open_source
from tests.conftest import ROOT, sample_of
from tests.machines import still

pytestmark = pytest.mark.usefixtures("real_commands")
NOBODY = 65534


def scan(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """`fabricscope scan` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "fabricscope", "scan", "--format", "json", *arguments],
        capture_output=True, text=True, cwd=ROOT, check=True, timeout=60,
    )  # fmt: skip


def test_this_host_is_scanned() -> None:
    """What the kernel says of itself is in the report, and every PCI function of sysfs."""
    report = json.loads(scan([]).stdout)

    assert "live" == report["source"]["kind"]
    assert os.uname().release == report["node"]["kernel"]
    functions = Path("/sys/bus/pci/devices")
    there = sorted(os.listdir(functions)) if functions.is_dir() else []
    assert there == sorted(row["id"] for row in report["topology"]["pci"])
    assert [] == [run for run in report["probes"] if run["status"] in ("failed", "timed_out")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_an_ordinary_user_gets_a_report_too() -> None:
    """Less is known, and it is said what; nothing fails because privilege is missing."""
    report = as_nobody()
    pci = next(run for run in report["probes"] if run["name"] == "pci")

    assert [] == [run for run in report["probes"] if run["status"] in ("failed", "timed_out")]
    if any(row["config_bytes"] for row in report["topology"]["pci"]):
        assert "partial" == pci["status"]
        assert "CAP_SYS_ADMIN" in pci["reason"]


def as_nobody() -> dict[str, Any]:
    """A live scan after all privilege is dropped, in a child: the interpreter itself may lie where nobody cannot read,
    so everything is imported by a first scan before that."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        diagnose(open_source(None, None), ScanPlan())
        os.environ["FABRICSCOPE_RUN_DIR"] = ""
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        report, _ = diagnose(open_source(None, None), ScanPlan())
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(encode_report(report))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    result: dict[str, Any] = json.loads(data)
    return result


def test_the_replay_of_a_capture_is_the_same_report(tmp_path: Path) -> None:
    """But for source, generated_at and durations: as a folder and as an archive."""
    host = open_source(None, None)
    report, recording = diagnose(host, ScanPlan(record=True))
    assert recording is not None
    record_extras(recording, host, 20)
    assert not [line for line in recording.missing if not line.startswith("kernel log")]
    for name in ("capture", "capture.tar.gz", "capture.tar.zst"):
        place = tmp_path / name
        write_capture(recording, str(place))
        again, _ = diagnose(open_source(str(place), None), ScanPlan())

        assert "capture" == again.source.kind
        assert report.observed_at == again.observed_at
        assert comparable(report) == comparable(again)


def comparable(report: Report) -> bytes:
    """The bytes of a report but for where and when."""
    remaining = still(report)
    return encode_report(msgspec.structs.replace(remaining, source=msgspec.structs.replace(remaining.source, kind="")))


def test_capture_and_scan_in_one_run(tmp_path: Path) -> None:
    """`scan --capture FILE` does both."""
    place, out = tmp_path / "c.tar.gz", tmp_path / "r.json"
    scan(["--capture", str(place), "-o", str(out)])

    assert "capture" == open_source(str(place), None).kind
    assert "live" == read_report(str(out)).source.kind


GATHER, LSPCI = shutil.which("hwloc-gather-topology"), shutil.which("lspci")


def rows(report: Report) -> list[tuple[str, str | None, str | None, str | None]]:
    """The bus as every source has to tell it."""
    return [(f.id, f.class_code, f.vendor, f.device) for f in report.topology.pci]


@pytest.mark.release
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


# Another reader of the same trees: hwloc's PCI functions, bridges and link bandwidths are ours. hwloc drops domains
# above 16 bits and refuses trees without CPUs; what it can read has to agree.


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
