"""A capture of this host for fixtures/captures: redacted, and without what runs on it and who built its kernel.

`make real-capture NAME=2xh100-1s` writes fixtures/captures/2xh100-1s.tar.gz. Read it before it is committed.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fixtures" / "captures"
MOST_BYTES = 200_000
# Processes, logs and units show what runs on the machine, and home its users.
_DROPPED = re.compile(
    r"/(?:proc/[0-9]+|proc/self/cgroup|dev/kmsg|dev/loop[0-9]+|home|var/log|usr/lib/systemd|etc/systemd)(?:/|$)"
)
_OPTIONS = re.compile(r"(?:iommu|intel_iommu|amd_iommu|pci|pcie_aspm|mitigations|swiotlb|console|ro|quiet)(?:=|$)")
_BUILD = {  # who built the kernel, and its local version
    "/proc/version": (re.compile(rb"^(Linux version [0-9.]+)[^ ]*.*", re.DOTALL), rb"\1\n"),
    "/proc/sys/kernel/osrelease": (re.compile(rb"^([0-9.]+).*", re.DOTALL), rb"\1\n"),
}


def main(name: str) -> None:
    """Capture, cut, and pack with the same bytes for the same content."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "capture"
        command = [sys.executable, "-m", "fabricscope", "capture", "-q", "--redact", "-o", str(whole)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cut(whole)
        path = FOLDER / f"{name}.tar.gz"
        pack(whole, path)
    size = path.stat().st_size
    print(f"wrote {path}, {size} bytes")
    if size > MOST_BYTES:
        sys.exit(f"more than {MOST_BYTES} bytes")


def cut(folder: Path) -> None:
    """Take out of a capture what is dropped, and what it lists and reports of it."""
    files = folder / "files"
    for path in sorted(files.rglob("*"), reverse=True):
        if _DROPPED.match("/" + path.relative_to(files).as_posix()):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, (pattern, kept) in _BUILD.items():
        path = files / name[1:]
        if path.is_file():
            path.write_bytes(pattern.sub(kept, path.read_bytes()))
    cmdline = files / "proc" / "cmdline"
    if cmdline.is_file():
        options = cmdline.read_text().partition(" -- ")[0].split()  # behind it: arguments of the first process
        cmdline.write_text(" ".join(filter(_OPTIONS.match, options)) + "\n")
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps(_cut_manifest(json.loads(manifest.read_text())), indent=1) + "\n")


def _cut_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    listings = {
        place: [name for name in names if not _DROPPED.match(f"{place}/{name}")]
        for place, names in manifest["listings"].items()
        if not _DROPPED.match(place)
    }
    errors = {path: error for path, error in manifest["errors"].items() if not _DROPPED.match(path)}
    return {**manifest, "listings": listings, "errors": errors}


def pack(folder: Path, path: Path) -> None:
    """A .tar.gz without times, owners and names of this machine."""
    path.parent.mkdir(exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for part in _list_parts(folder):
            member = tar.gettarinfo(part, part.relative_to(folder).as_posix())
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            tar.addfile(member, io.BytesIO(part.read_bytes()) if member.isreg() else None)


def _list_parts(folder: Path) -> Iterator[Path]:
    """The manifest first: a reader knows by it what the archive is."""
    yield folder / "manifest.json"
    yield from (part for part in sorted(folder.rglob("*")) if part.name != "manifest.json" or part.parent != folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
