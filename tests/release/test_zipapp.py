"""What a host without internet gets: dist/fabricscope.pyz with its compiled libraries, and the wheelhouse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from agent.version import VERSION
from fixtures.build import write_capture
from release.share import shared_files
from release.wheelhouse import MACHINE, PYTHON, build_wheelhouse
from release.zipapp import build_zipapp

pytestmark = [pytest.mark.release, pytest.mark.timeout(600), pytest.mark.usefixtures("real_commands")]
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


def test_its_readme_installs_it(wheels: Path, tmp_path: Path) -> None:
    """In a new environment, from nothing but the archive; with units, manual and completions."""
    archive = build_wheelhouse(tmp_path, wheels)
    name = f"fabricscope-wheelhouse-{VERSION}-py{PYTHON.replace('.', '')}-{MACHINE}"
    assert f"{name}.tar" == archive.name
    with tarfile.open(archive) as opened:
        names = opened.getnames()
        readme = opened.extractfile(f"{name}/README")
        assert readme
        lines = readme.read().decode().splitlines()
        opened.extractall(tmp_path)  # made above
    assert 2 == len(lines)
    assert all(each.startswith(f"{name}/") for each in names)

    home = tmp_path / "home"
    environment = {"PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path)}
    for line in lines:
        typed = line.replace(f"python{PYTHON}", sys.executable, 1).replace("/opt/fabricscope", str(home)).split()
        done = subprocess.run(
            typed, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=110
        )
        assert 0 == done.returncode, f"{line}\n{done.stdout}{done.stderr}"
    program = home / "bin" / "fabricscope"

    assert f"fabricscope {VERSION}\n" == subprocess.check_output(
        [program, "--version"], text=True, cwd="/", env=environment
    )
    for name, text in shared_files().items():
        assert text == (home / name).read_text()
    printed = subprocess.check_output([program, "install-units", "--print"], text=True, cwd="/", env=environment)
    assert f"ExecStart={program} scan" in printed
