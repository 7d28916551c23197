"""The Debian package, laid out beside this system: nothing is installed here."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.version import VERSION
from release.deb import build
from release.payload import PYTHON
from release.share import BASH, FISH, MANUAL, ZSH, shared_files
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("real_commands"),
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed"),
]


@pytest.fixture(scope="module")
def deb(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built from wheels that are here."""
    return build(tmp_path_factory.mktemp("deb"), wheels)


@pytest.fixture(scope="module")
def laid(deb: Path) -> Path:
    """Its files, unpacked."""
    place = deb.parent / "root"
    subprocess.run(["dpkg-deb", "-R", str(deb), str(place)], check=True)
    return place


def test_it_says_which_python_it_is_for(deb: Path) -> None:
    """Its compiled libraries load in no other."""
    fields = subprocess.check_output(["dpkg-deb", "-f", str(deb), "Version", "Depends"], text=True)
    major, minor = PYTHON.split(".")

    assert f"Version: {VERSION}+py{major}{minor}\n" in fields
    assert f"python3 (>= {PYTHON}), python3 (<< {major}.{int(minor) + 1}~)" in fields


def test_all_files_are_roots_and_nobody_elses(deb: Path) -> None:
    """Whoever built it, with whatever umask."""
    rows = [
        line.split(maxsplit=5) for line in subprocess.check_output(["dpkg-deb", "-c", str(deb)], text=True).splitlines()
    ]

    assert {"root/root"} == {row[1] for row in rows}
    assert {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"} == {row[0] for row in rows}
    assert ["./opt/fabricscope/bin/fabricscope"] == [row[5] for row in rows if row[0] == "-rwxr-xr-x"]


def test_the_program_runs_from_its_own_libraries(laid: Path) -> None:
    """As it is written, but for where it lies."""
    program = (laid / "opt/fabricscope/bin/fabricscope").read_text()
    first, _, rest = program.partition("\n")
    moved = rest.replace("/opt/", f"{laid}/opt/")
    done = subprocess.run(
        [sys.executable, *first.split()[1:], "-c", moved, "scan", "--quiet", "--format", "json"],
        capture_output=True, text=True, check=False, cwd="/", timeout=100,
    )  # fmt: skip

    assert ("#!/usr/bin/python3 -IS", "", 0) == (first, done.stderr, done.returncode)
    assert done.stdout.startswith('{\n  "schema": "fabricscope.report/')


def test_the_manual_and_the_completions_are_where_debian_looks_for_them(laid: Path) -> None:
    """As they are built from the commands; the manual compressed."""
    shared = shared_files()

    assert shared[MANUAL] == gzip.decompress((laid / "usr/share/man/man1/fabricscope.1.gz").read_bytes()).decode()
    assert shared[BASH] == (laid / "usr/share/bash-completion/completions/fabricscope").read_text()
    assert shared[ZSH] == (laid / "usr/share/zsh/vendor-completions/_fabricscope").read_text()
    assert shared[FISH] == (laid / "usr/share/fish/vendor_completions.d/fabricscope.fish").read_text()


def test_the_units_are_those_of_the_project_and_the_scripts_name_them(laid: Path) -> None:
    """What is enabled by hand is disabled when the package goes; nothing is enabled by it."""
    units = {path.name: path.read_text() for path in (laid / "usr/lib/systemd/system").iterdir()}
    assert {path.name: path.read_text() for path in (ROOT / "systemd").glob("fabricscope-*")} == units

    removed = (laid / "DEBIAN/prerm").read_text()
    assert [] == [name for name, text in units.items() if ("[Install]" in text) != (name in removed)]
    for script in ("postinst", "prerm", "postrm"):
        assert " enable " not in (laid / "DEBIAN" / script).read_text()
        subprocess.run(["sh", "-n", str(laid / "DEBIAN" / script)], check=True)
    states = {
        line.partition("=")[2]
        for text in units.values()
        for line in text.splitlines()
        if line.startswith("StateDirectory=")
    }
    assert {f"/var/lib/{each}" for each in states} <= set((laid / "DEBIAN/postrm").read_text().split())
