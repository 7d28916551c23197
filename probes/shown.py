"""Which interfaces a recorded source shows, and whether it holds outputs about any: asked before readers are loaded."""

from __future__ import annotations

from probes import netdev_sysfs
from probes.asking import Asking
from probes.host.door import Host
from probes.ip_link import saved_links
from probes.netdev import natural

MOST_INTERFACES = 256
RDMA_FOLDERS = ("/sys/class/infiniband", "/sys/kernel/config/rdma_cm")


def interfaces(asking: Asking) -> list[str]:
    """Interfaces that sysfs or a saved `ip link` shows, without the loopback."""
    found = set(netdev_sysfs.folders(asking)) | set(saved_links(asking))
    return sorted(found - {"lo"}, key=natural)[:MOST_INTERFACES]


def holds_output(host: Host, *commands: tuple[str, ...]) -> bool:
    """Whether there is an output of one of these commands, of any interface."""
    return any(host.has_output(*argv, name) for name in interfaces(Asking(host)) for argv in commands)


def is_networked(host: Host) -> bool:
    """Whether an interface or an RDMA device is shown."""
    asking = Asking(host)
    return bool(interfaces(asking)) or any(asking.names(folder) for folder in RDMA_FOLDERS)
