"""This host, for real: a live scan as the user that runs the tests, as nobody, its replay from the capture, and bundles
that hwloc-gather-topology and lspci -xxxx make of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.diagnose import ScanPlan, diagnose
from agent.model.report import Report
from agent.reports import encode_report, read_report
from probes.capture.extras import record_extras
from probes.capture.writer import write_capture
from probes.sources.open_source import open_source
from tests.conftest import ROOT
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
