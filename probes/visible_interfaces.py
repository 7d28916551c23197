"""Which interfaces a recorded source shows, and whether it holds outputs about any: asked before readers are loaded."""

from __future__ import annotations

import contextlib
import re

from probes.host.interface import Host
from probes.host_reader import HostReader
from probes.netdev import sysfs as netdev_sysfs
from probes.netdev.ip_link import saved_links
from probes.netdev.probe import natural
from probes.text import ParseError

MOST_INTERFACES = 256
_INTERFACE = re.compile(r"[A-Za-z0-9_.:-]{1,15}")
DCB_SAVED = (("mlnx_qos", "-i"), *(("dcb", about, "show", "dev") for about in ("buffer", "ets", "pfc", "app")))
RDMA_FOLDERS = ("/sys/class/infiniband", "/sys/kernel/config/rdma_cm")


def interfaces(reader: HostReader) -> list[str]:
    """Interfaces that sysfs or a saved `ip link` shows, without the loopback."""
    found = set(netdev_sysfs.folders(reader)) | set(saved_links(reader))
    return sorted(found - {"lo"}, key=natural)[:MOST_INTERFACES]


def holds_output(host: Host, *commands: tuple[str, ...]) -> bool:
    """Whether there is an output of one of these commands, of any interface."""
    return any(host.has_output(*argv, name) for name in interfaces(HostReader(host)) for argv in commands)


def named_alone(host: Host, *commands: tuple[str, ...]) -> str | None:
    """An output of one of these commands about an interface that tools of RDMA name, and that is not shown."""
    from probes.rdma.ofed_scripts import parse_ibdev2netdev, parse_show_gids

    reader = HostReader(host)
    shown = set(interfaces(reader))
    for tool, parse in (("ibdev2netdev", parse_ibdev2netdev), ("show_gids", parse_show_gids)):
        text = reader.output(tool) if host.has_output(tool) else None
        with contextlib.suppress(ParseError):
            said = parse(text).devices if text else ()
            names = [name for device in said for port in device.ports for name in port.netdevs]
            alone = [name for name in names if name not in shown and _INTERFACE.fullmatch(name)]
            held = [(*argv, name) for name in alone for argv in commands if host.has_output(*argv, name)]
            if held:
                what, name = " ".join(held[0]), held[0][-1]
                return f"{what} is here, and nothing tells which device {name} is of (ip -d link would)"
    return None


def is_networked(host: Host) -> bool:
    """Whether an interface or an RDMA device is shown."""
    reader = HostReader(host)
    return bool(interfaces(reader)) or any(reader.names(folder) for folder in RDMA_FOLDERS)
