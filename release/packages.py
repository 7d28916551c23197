"""dist/fabricscope_VERSION+pyXY_ARCH.deb and dist/fabricscope-VERSION-1.pyXY.ARCH.rpm, below /opt/fabricscope.

`python -m release.packages deb|rpm [--wheels DIR] [FOLDER]`. One tree, laid out for both; dpkg-deb and rpmbuild only
pack it: no debhelper, no distribution's rules. Each holds its libraries, for one Python of the system.
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
from release.share import MANUAL, ZSH, shared_files
from release.wheelhouse import DIST, MACHINE, PYTHON, ROOT, download_wheels, install_tree, run_command

MAINTAINER = "fabricscope <root@localhost>"
STATE = "/var/lib/fabricscope /var/lib/fabricscope-ship /var/lib/private/fabricscope /var/lib/private/fabricscope-ship"
PROGRAM = """\
#!{python} -IS
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
SPEC = """\
Name: fabricscope
Version: {version}
Release: 1.py{digits}
Summary: How a GPU server is wired, from PCIe to RoCE, and what is wrong with it
License: Apache-2.0
Packager: {maintainer}
AutoReqProv: no
Requires: python(abi) = {python}
Requires: /usr/bin/python{python}
Recommends: pciutils
%global __os_install_post %{{nil}}
%global debug_package %{{nil}}
%global _build_id_links none
%global _binary_payload w6.xzdio
%global _buildhost localhost

%description
One read-only scan of a GPU server: PCIe tree, NVLink and NVSwitch, InfiniBand
and RoCE ports, GPUDirect, NUMA. One topology, judged by rules, in one report.

With its libraries below /opt/fabricscope, for Python {python}. The hourly scan is
not enabled: systemctl enable --now fabricscope-scan.timer

%install
cp -a {tree}/. %{{buildroot}}/

%files
%defattr(-,root,root)
{files}

%post
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart {restarted}
fi

%preun
if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
    systemctl disable --now {units}
fi

%postun
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
"""
DEBIAN_PATHS = {ZSH: "share/zsh/vendor-completions/_fabricscope"}  # where Debian's zsh looks; others: site-functions


def build_deb(folder: Path, wheels: Path | None = None, maintainer: str = MAINTAINER) -> Path:
    """Write the Debian package into a folder, from a folder of wheels if one is given. Returns its path."""
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    version = f"{VERSION}+py{_digits()}"
    path = folder / f"fabricscope_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "root")
        _lay_out(tree, Path(scratch), wheels, "/usr/bin/python3", DEBIAN_PATHS)
        _write(tree / "usr/share/doc/fabricscope/copyright", COPYRIGHT)
        _write_control(tree, version, architecture, maintainer)
        _set_modes(tree)
        folder.mkdir(parents=True, exist_ok=True)
        run_command(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(path)])
    return path


def build_rpm(folder: Path, wheels: Path | None = None, maintainer: str = MAINTAINER) -> Path:
    """The same for RHEL, Rocky, SUSE: their python3 is older than ours, so the program names its Python."""
    path = folder / f"fabricscope-{VERSION}-1.py{_digits()}.{MACHINE}.rpm"
    with tempfile.TemporaryDirectory() as scratch:
        tree, spec = Path(scratch, "root"), Path(scratch, "fabricscope.spec")
        _lay_out(tree, Path(scratch), wheels, f"/usr/bin/python{PYTHON}", {})
        _set_modes(tree)
        files = ["/opt/fabricscope"]
        files += [f"/{item.relative_to(tree)}" for item in sorted(tree.glob("usr/**/*")) if not item.is_dir()]
        restarted, enabled = _unit_names()
        text = SPEC.format(version=VERSION, digits=_digits(), maintainer=maintainer, python=PYTHON, tree=tree,
                           files="\n".join(files), restarted=restarted, units=enabled)  # fmt: skip
        _write(spec, text)
        run_command(
            ["rpmbuild", "-bb", "--quiet", "--target", MACHINE, "--define", f"_topdir {scratch}/rpm", str(spec)]
        )
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(scratch, "rpm/RPMS", MACHINE, path.name), path)
    return path


def _lay_out(tree: Path, scratch: Path, wheels: Path | None, python: str, moved: dict[str, str]) -> None:
    """The program with its libraries, its units and what a shell and man look for."""
    if wheels is None:
        wheels = scratch / "wheels"
        download_wheels(wheels)
    install_tree(tree / "opt/fabricscope/lib", wheels, "/opt/fabricscope/lib")
    _write(tree / "opt/fabricscope/bin/fabricscope", PROGRAM.format(python=python))
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/fabricscope").symlink_to("/opt/fabricscope/bin/fabricscope")
    for unit in render_units(list(list_parts()), TEMPLATE_PROGRAM):
        _write(tree / "usr/lib/systemd/system" / unit.name, unit.text)
    shared = shared_files()
    manual = shared.pop(MANUAL)
    for name, text in shared.items():
        _write(tree / "usr" / moved.get(name, name), text)
    _compress(tree / "usr" / f"{MANUAL}.gz", manual)
    _compress(tree / "usr/share/doc/fabricscope/changelog.gz", (ROOT / "CHANGELOG.md").read_text())


def _write_control(tree: Path, version: str, architecture: str, maintainer: str) -> None:
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) // 1024
    following = f"{sys.version_info.major}.{sys.version_info.minor + 1}"
    _write(
        tree / "DEBIAN/control",
        CONTROL.format(version=version, architecture=architecture, maintainer=maintainer, kibibytes=size,
                       python=PYTHON, next=following),
    )  # fmt: skip
    restarted, enabled = _unit_names()
    _write(tree / "DEBIAN/postinst", POSTINST.format(restarted=restarted))
    _write(tree / "DEBIAN/prerm", PRERM.format(units=enabled))
    _write(tree / "DEBIAN/postrm", POSTRM.format(state=STATE))


def _unit_names() -> tuple[str, str]:
    """The services that stay and are restarted by an upgrade; and all units that a person may have enabled."""
    enabled = [unit.name for unit in render_units(list(list_parts()), TEMPLATE_PROGRAM) if unit.enabled]
    return " ".join(name for name in enabled if name.endswith(".service")), " ".join(enabled)


def _set_modes(tree: Path) -> None:
    """Whatever the umask here: only the program and Debian's scripts can be executed."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or "bin" in path.relative_to(tree).parts or path.parent.name == "DEBIAN"
            path.chmod(0o755 if executable and path.name != "control" else 0o644)


def _digits() -> str:
    return PYTHON.replace(".", "")


def _compress(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> int:
    """Build one, and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("deb", "rpm"))
    parser.add_argument("--wheels", type=Path, help="a folder of wheels to build from; else PyPI")
    parser.add_argument("--maintainer", default=MAINTAINER, help="who answers for the package")
    parser.add_argument("folder", type=Path, nargs="?", default=DIST)
    arguments = parser.parse_intermixed_args()
    tool = {"deb": "dpkg-deb", "rpm": "rpmbuild"}[arguments.kind]
    if not shutil.which(tool):
        hint = "a .deb is built on Debian or Ubuntu" if tool == "dpkg-deb" else "Debian: rpm, RHEL: rpm-build"
        print(f"{tool} is not here: {hint}", file=sys.stderr)
        return 2
    build = build_deb if arguments.kind == "deb" else build_rpm
    path = build(arguments.folder, arguments.wheels, arguments.maintainer)
    print(f"{os.path.relpath(path)}: {path.stat().st_size / 1e6:.1f} MB, for Python {PYTHON}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
