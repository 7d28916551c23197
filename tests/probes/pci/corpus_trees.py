"""Trees of the corpus for tests: in memory as a host of files, or unpacked for a tool that reads them itself."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from probes.host.interface import Absent
from probes.sources.memory import MemoryFiles, SymlinkNode

_PCI = re.compile(r"\./sys/(?:bus/pci|class/pci_bus|devices/pci|kernel/iommu_groups)")


class TreeHost(MemoryFiles):
    """What concerns PCI of one tree; it holds files and nothing else."""

    kind = "tree"
    live = False
    path: str | None = None
    observed_at: str | None = None

    def run(self, *argv: str) -> Any:
        raise Absent(f"no {argv[0]}")

    def has_output(self, *argv: str) -> bool:
        return False

    def udev(self, path: str) -> Mapping[str, str]:
        raise Absent("no udev database")

    def nvml(self, function: str, *arguments: Any) -> Any:
        raise Absent("no NVML")

    def netlink(self, protocol: int, request: bytes) -> bytes:
        raise Absent("no netlink")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        raise Absent(f"{interface}: no ethtool here")


def in_memory(corpus: Path, name: str) -> TreeHost:
    """One tree as a host."""
    host = TreeHost()
    with _archive(corpus, name) as archive:
        for member in _members(archive):
            content = archive.extractfile(member) if member.isreg() else None
            node = {} if member.isdir() else SymlinkNode(member.linkname) if content is None else content.read()
            host.add(member.name, node)
    return host


def unpacked(corpus: Path, name: str, into: Path) -> Path:
    """The folder that holds one tree's sys/."""
    trusted: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
    with _archive(corpus, name) as archive:
        archive.extractall(into, members=_members(archive), **trusted)
    return into


def _archive(corpus: Path, name: str) -> tarfile.TarFile:
    return tarfile.open(corpus / "trees" / f"{name}.tar.xz")


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    return (
        member for member in archive if _PCI.match(member.name) and (member.isdir() or member.isreg() or member.issym())
    )
