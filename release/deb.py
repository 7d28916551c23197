"""dist/fabricscope_VERSION+pyXY_ARCH.deb: below /opt/fabricscope with its libraries, for the system's own Python.

`python -m release.deb [--wheels DIR] [FOLDER]`. Built by dpkg-deb alone: no debhelper, no distribution's rules.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agent.units import TEMPLATE_PROGRAM, list_parts, render_units
from agent.version import VERSION
from release.payload import DIST, PYTHON, ROOT, installed, run, wheels
from release.share import MANUAL, ZSH, shared_files

STATE = "/var/lib/fabricscope /var/lib/fabricscope-ship /var/lib/private/fabricscope /var/lib/private/fabricscope-ship"
PROGRAM = """\
#!/usr/bin/python3 -IS
import sys

sys.path.insert(0, "/opt/fabricscope/lib")

from fabricscope import console

console()
"""
CONTROL = """\
Package: fabricscope
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kibibytes}
Depends: python3 (>= {python}), python3 (<< {next}~), libc6 (>= 2.17)
Recommends: pciutils
Suggests: lldpd
Section: admin
Priority: optional
Description: how a GPU server is wired, from PCIe to RoCE, and what is wrong with it
 One read-only scan of a GPU server: PCIe tree, NVLink and NVSwitch, InfiniBand
 and RoCE ports, GPUDirect, NUMA. One topology, judged by rules, in one report.
 .
 With its libraries below /opt/fabricscope, for Python {python}. The hourly scan is
 not enabled: systemctl enable --now fabricscope-scan.timer
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: fabricscope
Comment: The licences of the libraries lie with them: /opt/fabricscope/lib/*.dist-info

Files: *
Copyright: the fabricscope authors
License: Apache-2.0
 See /usr/share/common-licenses/Apache-2.0.
"""
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart {restarted}
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now {units}
fi
"""
POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
if [ "$1" = purge ]; then
    rm -rf {state}
fi
"""
MOVED = {ZSH: "share/zsh/vendor-completions/_fabricscope"}  # where Debian's zsh looks


def build(folder: Path, found: Path | None = None, maintainer: str = "fabricscope <root@localhost>") -> Path:
    """Write the package into a folder, from a folder of wheels where one is given. Returns its place."""
    architecture = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout
    version = f"{VERSION}+py{PYTHON.replace('.', '')}"
    name = f"fabricscope_{version}_{architecture.strip()}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        if found is None:
            found = Path(scratch, "wheels")
            wheels(found)
        place = Path(scratch, "root")
        installed(place / "opt/fabricscope/lib", found, "/opt/fabricscope/lib")
        _laid(place)
        _control(place, version, architecture.strip(), maintainer)
        for each in (place, *place.rglob("*")):
            if not each.is_symlink():  # whatever the umask here
                each.chmod(0o755 if each.is_dir() or "bin" in each.parts or each.parent.name == "DEBIAN" else 0o644)
        (place / "DEBIAN/control").chmod(0o644)
        folder.mkdir(parents=True, exist_ok=True)
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(place), str(folder / name)])
    return folder / name


def _laid(place: Path) -> None:
    """The program, its units and what a shell and man look for."""
    _write(place / "opt/fabricscope/bin/fabricscope", PROGRAM)
    (place / "usr/bin").mkdir(parents=True)
    (place / "usr/bin/fabricscope").symlink_to("/opt/fabricscope/bin/fabricscope")
    for unit in render_units(list(list_parts()), TEMPLATE_PROGRAM):
        _write(place / "usr/lib/systemd/system" / unit.name, unit.text)
    shared = shared_files()
    manual = shared.pop(MANUAL)
    for name, text in shared.items():
        _write(place / "usr" / MOVED.get(name, name), text)
    _write(place / "usr/share/doc/fabricscope/copyright", COPYRIGHT)
    _compress(place / "usr" / f"{MANUAL}.gz", manual)
    _compress(place / "usr/share/doc/fabricscope/changelog.gz", (ROOT / "CHANGELOG.md").read_text())


def _control(place: Path, version: str, architecture: str, maintainer: str) -> None:
    size = sum(each.stat().st_size for each in place.rglob("*") if each.is_file()) // 1024
    following = f"{sys.version_info.major}.{sys.version_info.minor + 1}"
    _write(
        place / "DEBIAN/control",
        CONTROL.format(version=version, architecture=architecture, maintainer=maintainer, kibibytes=size,
                       python=PYTHON, next=following),
    )  # fmt: skip
    made = render_units(list(list_parts()), TEMPLATE_PROGRAM)
    stays = " ".join(unit.name for unit in made if unit.enabled and unit.name.endswith(".service"))
    started = " ".join(unit.name for unit in made if unit.enabled)
    _write(place / "DEBIAN/postinst", POSTINST.format(restarted=stays))
    _write(place / "DEBIAN/prerm", PRERM.format(units=started))
    _write(place / "DEBIAN/postrm", POSTRM.format(state=STATE))


def _compress(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> int:
    """Build it, and say where it is."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--wheels", type=Path, help="a folder of wheels to build from; else PyPI")
    asked.add_argument("--maintainer", default="fabricscope <root@localhost>", help="who answers for the package")
    asked.add_argument("folder", type=Path, nargs="?", default=DIST)
    told = asked.parse_args()
    if not shutil.which("dpkg-deb"):
        print("dpkg-deb is not here: a .deb is built on Debian or Ubuntu", file=sys.stderr)
        return 2
    place = build(told.folder, told.wheels, told.maintainer)
    print(f"{os.path.relpath(place)}: {place.stat().st_size / 1e6:.1f} MB, for Python {PYTHON}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
