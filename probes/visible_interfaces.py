"""Which interfaces a recorded source shows, and whether it holds outputs about any: asked before readers are loaded."""

from __future__ import annotations

from probes.host.interface import Host
from probes.host_reader import HostReader
from probes.netdev import sysfs as netdev_sysfs
from probes.netdev.rtnetlink import MOST_INTERFACES
from probes.netdev.shown_links import shown_links
from probes.text import natural

RDMA_FOLDERS = ("/sys/class/infiniband", "/sys/kernel/config/rdma_cm")


def interfaces(reader: HostReader) -> list[str]:
    """Interfaces that sysfs or saved outputs show, without the loopback."""
    names = set(netdev_sysfs.folders(reader)) | set(shown_links(reader))
    return sorted(names - {"lo"}, key=natural)[:MOST_INTERFACES]


def holds_output(host: Host, *commands: tuple[str, ...]) -> bool:
    """Whether there is an output of one of these commands, of any interface."""
    return any(host.has_output(*argv, name) for name in interfaces(HostReader(host)) for argv in commands)


def is_networked(host: Host) -> bool:
    """Whether an interface or an RDMA device is shown."""
    reader = HostReader(host)
    return bool(interfaces(reader)) or any(reader.names(folder) for folder in RDMA_FOLDERS)
