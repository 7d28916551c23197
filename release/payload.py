"""fabricscope and all that it imports, as one folder for one Python: what the zipapp and the .deb carry."""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
MACHINE = os.uname().machine
GLIBC = ("2_17", "2_28")  # for another machine: what every host of ours has (2.17: RHEL 7, 2.28: RHEL 8)
SURPLUS = (  # of packages that we need: what CPython never imports, and what is for type checkers
    "bin",
    "share",  # installed where the system looks for it, or not at all
    "example.py",  # of nvidia-ml-py
    "**/*.pyi",
    "**/py.typed",
    "pygments*",  # with the next two: for rich's highlighting and Markdown, which nothing here prints
    "markdown_it*",
    "mdurl*",
    "zstandard/_cffi.*",
    "zstandard/backend_cffi.py",
    "**/RECORD",
    "**/direct_url.json",
    "**/INSTALLER",
    "**/REQUESTED",
)


def wheels(place: Path, python: str = PYTHON, machine: str = MACHINE) -> Path:
    """Our wheel and those of all that it needs, for a Python and a machine, in a folder. Returns our own.

    Raises subprocess.CalledProcessError: no network, or a dependency without a wheel for this machine.
    """
    run([*PIP, "wheel", "--no-deps", "--wheel-dir", str(place), str(ROOT)])
    (ours,) = place.glob("fabricscope-*.whl")
    argv = [*PIP, "download", "--only-binary=:all:", "--dest", str(place), str(ours)]
    if (python, machine) != (PYTHON, MACHINE):
        argv += ["--python-version", python, "--implementation", "cp"]
        for glibc in GLIBC:
            argv += ["--platform", f"manylinux_{glibc}_{machine}"]
        if python == "3.10":  # pip asks conditions of the Python that runs, not of the one that is meant
            argv.append("tomli")
    run(argv)
    return ours


def installed(place: Path, found: Path, lies: str | None = None) -> None:
    """Install our wheel from a folder of wheels (see `wheels`) into a folder of its own, compiled and without surplus.

    The bytecode names no time: it is taken as it is, also by a user who cannot write there. `lies`: where the folder
    will be on the host, if that is known; the interpreter corrects the place in every module otherwise.
    """
    argv = [*PIP, "install", "--no-index", "--find-links", str(found), "--no-compile", "--target", str(place)]
    run([*argv, "fabricscope"])
    for pattern in SURPLUS:
        for each in place.glob(pattern):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    if shutil.which("strip"):  # the symbols of one library are most of the whole
        for each in place.glob("**/*.so"):
            run(["strip", "--strip-unneeded", str(each)])
    compileall.compile_dir(
        place,
        quiet=1,
        stripdir=str(place),
        prependdir=lies,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def run(argv: list[str]) -> None:
    """A command that has to succeed."""
    subprocess.run(argv, check=True)
