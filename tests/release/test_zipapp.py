"""dist/fabricscope.pyz as a host gets it: with its compiled libraries, without pip, without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.build import write_capture
from release.zipapp import build_zipapp

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("real_commands")]
DESCRIBED, FAULT = "8xh100-sxm-2s-8xcx7-ib-4nvsw", "gpu-width-x8"


@pytest.fixture(scope="module")
def pyz(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, built from wheels that are here."""
    place = tmp_path_factory.mktemp("pyz") / "fabricscope.pyz"
    build_zipapp(place, wheels)
    return place


def run(pyz: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run without the environment's packages and without the checkout."""
    bare = os.path.join(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return subprocess.run(
        [bare if os.path.exists(bare) else sys.executable, "-S", str(pyz), *arguments],
        capture_output=True, text=True, check=False, timeout=120, cwd="/",
        env={"PATH": os.defpath, "FABRICSCOPE_CACHE": str(pyz.parent / "cache")},
    )  # fmt: skip


def test_it_scans_as_the_checkout_does(pyz: Path, tmp_path: Path) -> None:
    """A capture in zstd: msgspec, zstandard and every probe's code are there, and the report is the same."""
    capture = tmp_path / "capture.tar.zst"
    write_capture(DESCRIBED, FAULT, capture)
    result = ["scan", "--source", str(capture), "--format", "json"]
    here = subprocess.run([sys.executable, "-m", "fabricscope", *result], capture_output=True, text=True, check=True)
    there = run(pyz, *result)

    assert ("", 0) == (there.stderr, there.returncode)
    assert steady(here.stdout) == steady(there.stdout)
    assert "pcie-width-downgraded" in there.stdout


def steady(text: str) -> dict[str, object]:
    """A report without its times."""
    report = json.loads(text)
    for item in (report, *report["probes"]):
        for name in ("generated_at", "duration_seconds"):
            item.pop(name, None)
    return report  # type: ignore[no-any-return]  # of JSON


def test_this_host_the_catalogue_the_profiles_and_the_units_are_there(pyz: Path) -> None:
    """Everything that is data and no code; a live scan reaches its end."""
    assert 0 == run(pyz, "scan", "--quiet").returncode
    assert "gpu-missing" in run(pyz, "rules").stdout
    assert "dgx-h100" in run(pyz, "profile", "list").stdout
    assert (
        "ExecStart=/usr/bin/env x.pyz scan"
        in run(pyz, "install-units", "--print", "--exec", "/usr/bin/env x.pyz").stdout
    )


def test_every_module_of_machine_code_can_be_loaded(pyz: Path) -> None:
    """In the copy that was unpacked, by a Python that has no other packages."""
    run(pyz, "--version")
    (copy,) = (pyz.parent / "cache").iterdir()
    modules = "msgspec, urllib3, zstandard, pynvml, pyudev, rich"
    code = f"import sys; sys.path.insert(0, {str(copy)!r}); import {modules}"
    done = subprocess.run([sys.executable, "-IS", "-c", code], capture_output=True, text=True, check=False)

    assert ("", 0) == (done.stderr, done.returncode)


def test_units_for_it_name_the_interpreter_and_a_cache(pyz: Path) -> None:
    """ExecStart runs this file, unless it lies where a service cannot see it: /tmp and /home are refused."""
    done = run(pyz, "install-units", "--print")
    start = next(line for line in done.stdout.splitlines() if line.startswith("ExecStart="))

    interpreter, file, command = start.partition("=")[2].split()[:3]
    assert [True, str(pyz), "scan"] == [os.access(interpreter, os.X_OK), file, command]
    assert "\nCacheDirectory=%N\n" in done.stdout
