"""Live NVML: the real binding over a shared library of our own, that answers as a fixture machine's driver would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.reports import read_report
from fixtures.build import build_capture
from fixtures.machine import load_machine
from fixtures.nvml import build_nvml_records
from tests.conftest import ROOT
from tests.machines import HOSTS, scan_machine
from tests.nvml.answers import CRASH, FOR_EVER, table

H100 = "8xh100-sxm-2s-8xcx7-ib-4nvsw"
WITH_NVML = [host for host in HOSTS if build_nvml_records(load_machine(host))]
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.usefixtures("real_commands"),
]

# Asks every recorded call again, and prints what the library answers
ASK = """
import json, sys
from probes.host.interface import ReadError
from probes.host.nvml import call
for record in json.load(sys.stdin):
    try:
        said = {"answer": call(record["function"], *record["arguments"])}
    except ReadError as error:
        said = {"code": error.code}
    print(json.dumps(said))
"""


@pytest.fixture
def library(real_commands: None, tmp_path: Path) -> Path:
    """The folder of libnvidia-ml.so.1."""
    folder = tmp_path / "lib"
    folder.mkdir()
    source = ROOT / "tests" / "nvml" / "nvml.c"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        ["gcc", "-O1", *warnings, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True
    )
    return folder


def environment(library: Path, answers: Path) -> dict[str, str]:
    return os.environ | {
        "LD_LIBRARY_PATH": str(library),
        "FABRICSCOPE_TEST_NVML": str(answers),
        "PYTHONPATH": str(ROOT),
    }


@pytest.mark.parametrize("host", WITH_NVML)
def test_every_call_gives_what_was_recorded(host: str, library: Path, tmp_path: Path) -> None:
    """Through ctypes and C and back: the same values, the same errors."""
    records = build_nvml_records(build_capture(host, None).machine)
    answers = tmp_path / "answers"
    answers.write_text(table(records))

    done = subprocess.run(
        [sys.executable, "-c", ASK], input=json.dumps(records), env=environment(library, answers), text=True,
        capture_output=True, check=True, timeout=100,
    )  # fmt: skip
    output = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [
        {"code": record["error"]["code"]} if "error" in record else {"answer": record["answer"]} for record in records
    ]

    differ = [
        (r["function"], r["arguments"], e, s) for r, e, s in zip(records, expected, output, strict=True) if e != s
    ]
    assert [] == differ


@pytest.fixture
def rooted(library: Path, tmp_path: Path) -> Callable[..., Any]:
    """Scans a fixture's tree as this host seen elsewhere, so that live NVML is asked; answers the report."""
    if not BOOT_ID.exists():
        pytest.skip("this kernel has no boot id")

    def scan(actions: dict[tuple[str, str], str] | None = None, seconds: float = 60) -> Any:
        capture = build_capture(H100, None)
        tree = tmp_path / "host"
        capture.tree.write(tree)
        place = tree / BOOT_ID.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(BOOT_ID.read_text())
        answers, report = tmp_path / "answers", tmp_path / "report.json"
        answers.write_text(table(build_nvml_records(capture.machine), actions))
        command = [sys.executable, "-m", "fabricscope", "scan", "--root", str(tree), "--timeout", str(seconds)]
        subprocess.run(
            [*command, "--only", "nvml,pci,modules", "--output", str(report), "--quiet"],
            env=environment(library, answers) | {"FABRICSCOPE_RUN_DIR": str(tmp_path / "run")}, check=True, timeout=100,
        )  # fmt: skip
        return read_report(str(report))

    return scan


def test_a_live_scan_sees_the_gpus_of_the_driver(rooted: Callable[..., Any]) -> None:
    """As the replay of the same machine's capture does."""
    report, replayed = rooted(), scan_machine(H100)
    run = next(probe for probe in report.probes if probe.name == "nvml")

    assert "ok" == run.status, run.reason
    assert [gpu.uuid for gpu in replayed.topology.gpus] == [gpu.uuid for gpu in report.topology.gpus]
    assert [gpu.links for gpu in replayed.topology.gpus] == [gpu.links for gpu in report.topology.gpus]
    assert [gpu.fabric for gpu in replayed.topology.gpus] == [gpu.fabric for gpu in report.topology.gpus]


def test_a_call_that_never_returns_ends_the_probe_and_not_the_scan(rooted: Callable[..., Any]) -> None:
    """The probe is named, the bus is there all the same, and no process is left."""
    report = rooted({("nvmlDeviceGetSerial", "3"): FOR_EVER}, seconds=6)
    run = next(probe for probe in report.probes if probe.name == "nvml")

    assert "timed_out" == run.status
    assert 8 == len(report.topology.gpus)  # of the bus
    assert all("fabricscope" not in name for name in _named("nvml"))


def test_a_library_that_crashes_ends_the_probe_and_not_the_scan(rooted: Callable[..., Any]) -> None:
    """With the signal as the reason."""
    report = rooted({("nvmlDeviceGetGpuFabricInfoV", "2"): CRASH})
    run = next(probe for probe in report.probes if probe.name == "nvml")

    assert "failed" == run.status
    assert "SIGSEGV" in (run.reason or "") or "signal 11" in (run.reason or "")
    assert 8 == len(report.topology.gpus)


def _named(word: str) -> list[str]:
    """Command lines of running processes of ours that hold a word."""
    result = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = place.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if "fabricscope" in text and word in text:
            result.append(text)
    return result
