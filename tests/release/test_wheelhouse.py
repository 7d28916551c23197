"""The wheelhouse, installed by its own two lines where there is no network."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from agent.version import VERSION
from release.share import shared_files
from release.wheelhouse import MACHINE, PYTHON, build_wheelhouse

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("real_commands")]


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
