"""The Debian package and the RPM, laid out beside this system: nothing is installed here."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.version import VERSION
from release.packages import build_deb, build_rpm
from release.share import BASH, FISH, MANUAL, ZSH, shared_files
from release.wheelhouse import MACHINE, PYTHON
from tests.conftest import ROOT

pytestmark = [
    pytest.mark.release,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("real_commands"),
]


@pytest.fixture(scope="module")
def deb(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built from wheels that are here."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not installed")
    return build_deb(tmp_path_factory.mktemp("deb"), wheels)


@pytest.fixture(scope="module")
def rpm(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for RHEL and its kin."""
    if shutil.which("rpmbuild") is None or shutil.which("rpm") is None:
        pytest.skip("rpmbuild is not installed (Debian: rpm)")
    return build_rpm(tmp_path_factory.mktemp("rpm"), wheels)


@pytest.fixture(scope="module")
def deb_root(deb: Path) -> Path:
    """Its files, unpacked."""
    root = deb.parent / "root"
    subprocess.run(["dpkg-deb", "-R", str(deb), str(root)], check=True)
    return root


@pytest.fixture(scope="module")
def rpm_root(rpm: Path) -> Path:
    """Its files, as rpm installs them below a folder; a user who is not root unpacks them."""
    root = rpm.parent / "root"
    root.mkdir()
    if os.geteuid() == 0:
        install = ["rpm", "--root", str(root), "--nodeps", "--noscripts", "--install", str(rpm)]
        subprocess.run(install, check=True, capture_output=True, timeout=100)
        done = subprocess.run(
            ["rpm", "--root", str(root), "--query", "fabricscope"], capture_output=True, text=True, check=True
        )
        assert f"{rpm.name.removesuffix('.rpm')}\n" == done.stdout
    else:
        subprocess.run(f"rpm2cpio '{rpm}' | cpio -idm --quiet", shell=True, cwd=root, check=True)
    return root


@pytest.fixture(params=["deb", "rpm"])
def laid(request: pytest.FixtureRequest) -> Path:
    """The files of each."""
    root: Path = request.getfixturevalue(f"{request.param}_root")
    return root


def query(rpm: Path, *options: str) -> str:
    """What rpm reads of the file."""
    return subprocess.run(
        ["rpm", "--query", "--package", *options, str(rpm)], capture_output=True, text=True, check=True
    ).stdout


def test_the_rpm_says_which_python_it_is_for(rpm: Path) -> None:
    """By the name that RHEL's Pythons provide; and by its own name, version and machine."""
    requires = query(rpm, "--requires").splitlines()
    fields = dict(line.split(":", 1) for line in query(rpm, "--info").splitlines()[:8])

    assert {f"python(abi) = {PYTHON}", f"/usr/bin/python{PYTHON}"} <= set(requires)
    assert not [line for line in requires if ".so" in line]  # its libraries are its own
    assert ["fabricscope", VERSION, f"1.py{PYTHON.replace('.', '')}", MACHINE] == [
        fields[name.ljust(12)].strip() for name in ("Name", "Version", "Release", "Architecture")
    ]


def test_all_files_of_the_rpm_are_roots_and_nobody_elses(rpm: Path) -> None:
    """Whoever built it, with whatever umask; the program alone can be executed."""
    rows = [line.split() for line in query(rpm, "--queryformat", "[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} "
                                           "%{FILENAMES}\n]").splitlines()]  # fmt: skip

    assert {("root", "root")} == {(row[1], row[2]) for row in rows}
    assert {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x", "lrwxrwxrwx"} == {row[0] for row in rows}
    assert ["/opt/fabricscope/bin/fabricscope"] == [row[3] for row in rows if row[0] == "-rwxr-xr-x"]
    assert [] == [row[3] for row in rows if not row[3].startswith(("/opt/fabricscope", "/usr/"))]


def test_the_rpm_enables_nothing_and_disables_what_was(rpm: Path) -> None:
    """At its end only, not when a newer one takes its place."""
    scripts = query(rpm, "--scripts")

    assert " enable " not in scripts
    assert 'if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then\n    systemctl disable --now fabricscope-' in scripts
    for script in ("POSTIN", "PREUN", "POSTUN"):
        text = query(rpm, "--queryformat", f"%{{{script}}}")
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)
        assert "(none)" != text


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

    python = "python3" if (laid / "DEBIAN").exists() else f"python{PYTHON}"  # RHEL's python3 is an older one
    assert (f"#!/usr/bin/{python} -IS", "", 0) == (first, done.stderr, done.returncode)
    assert done.stdout.startswith('{\n  "schema": "fabricscope.report/')


def test_the_manual_and_the_completions_are_where_shells_look_for_them(laid: Path) -> None:
    """As they are built from the commands; the manual compressed."""
    shared = shared_files()
    zsh = "vendor-completions" if (laid / "DEBIAN").exists() else "site-functions"

    assert shared[MANUAL] == gzip.decompress((laid / "usr/share/man/man1/fabricscope.1.gz").read_bytes()).decode()
    assert shared[BASH] == (laid / "usr/share/bash-completion/completions/fabricscope").read_text()
    assert shared[ZSH] == (laid / "usr/share/zsh" / zsh / "_fabricscope").read_text()
    assert shared[FISH] == (laid / "usr/share/fish/vendor_completions.d/fabricscope.fish").read_text()


def units_of(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / "usr/lib/systemd/system").iterdir()}


def test_the_units_are_those_of_the_project(laid: Path) -> None:
    """By their bytes."""
    assert {path.name: path.read_text() for path in (ROOT / "systemd").glob("fabricscope-*")} == units_of(laid)


def test_debians_scripts_name_the_units(deb_root: Path) -> None:
    """What is enabled by hand is disabled when the package goes; nothing is enabled by it."""
    laid, units = deb_root, units_of(deb_root)
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
    purged = set((laid / "DEBIAN/postrm").read_text().split())
    dataset = "/var/lib/fabricscope-fleet"  # of a whole fleet: not for a package to delete
    assert {f"/var/lib/{state}" for state in states} - {dataset} <= purged
    assert dataset not in purged
