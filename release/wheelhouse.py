"""fabricscope and all that it imports, as one folder for one Python: what the zipapp and the .deb carry."""

from __future__ import annotations

import argparse
import compileall
import io
import os
import py_compile
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from agent.version import VERSION

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


def download_wheels(folder: Path, python: str = PYTHON, machine: str = MACHINE) -> Path:
    """Our wheel and those of all that it needs, for a Python and a machine, in a folder. Returns our own.

    Raises subprocess.CalledProcessError: no network, or a dependency without a wheel for this machine.
    """
    run_command([*PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)])
    (ours,) = folder.glob("fabricscope-*.whl")
    argv = [*PIP, "download", "--only-binary=:all:", "--dest", str(folder), str(ours)]
    if (python, machine) != (PYTHON, MACHINE):
        argv += ["--python-version", python, "--implementation", "cp"]
        for glibc in GLIBC:
            argv += ["--platform", f"manylinux_{glibc}_{machine}"]
        if python == "3.10":  # pip asks conditions of the Python that runs, not of the one that is meant
            argv.append("tomli")
    run_command(argv)
    return ours


def install_tree(folder: Path, wheels: Path, installed_at: str | None = None) -> None:
    """Install our wheel from a folder of wheels (see `download_wheels`), compiled and without surplus.

    The bytecode names no time: it is taken as it is, also by a user who cannot write there. `installed_at`: where the
    folder will be on the host, if that is known; the interpreter corrects the place in every module otherwise.
    """
    argv = [*PIP, "install", "--no-index", "--find-links", str(wheels), "--no-compile", "--target", str(folder)]
    run_command([*argv, "fabricscope"])
    for pattern in SURPLUS:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if shutil.which("strip"):  # the symbols of one library are most of the whole
        for path in folder.glob("**/*.so"):
            run_command(["strip", "--strip-unneeded", str(path)])
    compileall.compile_dir(
        folder,
        quiet=1,
        stripdir=str(folder),
        prependdir=installed_at,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def run_command(argv: list[str]) -> None:
    """A command that has to succeed."""
    subprocess.run(argv, check=True)


def build_wheelhouse(folder: Path, wheels: Path | None = None, python: str = PYTHON, machine: str = MACHINE) -> Path:
    """Write the archive into a folder, from a folder of wheels where one is given. Returns its place."""
    name = f"fabricscope-wheelhouse-{VERSION}-py{python.replace('.', '')}-{machine}"
    with tempfile.TemporaryDirectory() as scratch:
        if wheels is None:
            wheels = Path(scratch)
            download_wheels(wheels, python, machine)
        content = {path.name: path.read_bytes() for path in wheels.glob("*.whl")}
    content["README"] = make_readme(name, python).encode()
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / f"{name}.tar"
    temporary = output.with_name(f".{output.name}.tmp")
    with tarfile.open(temporary, "w") as archive:  # wheels are compressed
        for filename, data in sorted(content.items()):
            entry = tarfile.TarInfo(f"{name}/{filename}")  # root's, without a time: the same wheels, the same bytes
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    temporary.replace(output)
    return output


def make_readme(name: str, python: str) -> str:
    """The two lines that install it."""
    return f"""\
python{python} -m venv /opt/fabricscope
/opt/fabricscope/bin/pip install --no-index --find-links {name} fabricscope
"""


def main() -> None:
    """Build it, and state where it is and how it is installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, help="a folder of wheels to pack; else PyPI")
    parser.add_argument("--python", default=PYTHON, metavar="X.Y", help=f"the hosts' Python ({PYTHON})")
    parser.add_argument("--machine", default=MACHINE, metavar="ARCH", help=f"the hosts' uname -m ({MACHINE})")
    parser.add_argument("folder", type=Path, nargs="?", default=DIST)
    arguments = parser.parse_args()
    output = build_wheelhouse(arguments.folder, arguments.wheels, arguments.python, arguments.machine)
    print(f"{os.path.relpath(output)}: {output.stat().st_size / 1e6:.1f} MB. On the host, unpacked:")
    print(make_readme(output.name.removesuffix(".tar"), arguments.python), end="")


if __name__ == "__main__":
    main()
