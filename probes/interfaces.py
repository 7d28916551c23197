"""The network interfaces of PCI devices, as far as those must know them who ask a driver about each.

Where netlink answers, its names are those of our network namespace; /sys/class/net may show another's.
"""

from __future__ import annotations

from typing import NamedTuple

from probes import netdev_sysfs as sysfs
from probes import netlink, rtnetlink
from probes.asking import Asking
from probes.host.door import Failed, Unanswered
from probes.netdev import SLEEPING, natural
from probes.text import Unparsable

ETHERNET = 1  # ARPHRD_ETHER


class Interface(NamedTuple):
    """One interface with a PCI function below it."""

    name: str
    pci: str
    folder: str  # in sysfs; it may show another namespace's where `known_folder` is False
    known_folder: bool = True
    type: int | None = None  # ARPHRD
    awake: bool = True  # False: the device sleeps, and no driver is to be asked


def of_pci(asking: Asking) -> list[Interface]:
    """Every one, sorted by name, numbers as numbers. Empty where neither netlink nor sysfs shows any."""
    try:
        links = _links(asking)
    except Unanswered:
        folders = sysfs.folders(asking)
        rows = [_of_folder(asking, name, folder) for name, folder in folders.items()]
    else:
        rows = [_of_link(asking, link) for link in links if not link.kind or link.kind == "ipoib"]
    return sorted((row for row in rows if row), key=lambda row: natural(row.name))


def _links(asking: Asking) -> tuple[rtnetlink.Link, ...]:
    try:
        answer = netlink.messages(asking.host.netlink(netlink.ROUTE, netlink.links_request()))
        return rtnetlink.parse_links(m.payload for m in answer if m.type == netlink.NEW_LINK)
    except Unparsable as why:
        raise Failed(f"RTM_GETLINK: {why}") from why


def _of_link(asking: Asking, link: rtnetlink.Link) -> Interface | None:
    folder = f"{sysfs.CLASS}/{link.name}"
    said = asking.attributes(folder, ("ifindex", "address"), source=f"{sysfs.CLASS}/*")
    same = (sysfs.whole(said.get("ifindex")), sysfs.mac(said.get("address"))) == (link.index, link.mac)
    pci = (sysfs.place(asking, folder).pci if same else None) or link.parent_pci
    return Interface(link.name, pci, folder, same, link.type, _is_awake(asking, pci)) if pci else None


def _of_folder(asking: Asking, name: str, folder: str) -> Interface | None:
    pci = sysfs.place(asking, folder).pci
    if not pci:
        return None
    said = asking.attributes(folder, ("type",), source=f"{sysfs.CLASS}/*")
    return Interface(name, pci, folder, True, sysfs.whole(said.get("type")), _is_awake(asking, pci))


def _is_awake(asking: Asking, pci: str | None) -> bool:
    path = f"{sysfs.PCI}/{pci}/power/runtime_status"
    return asking.text(path, source=f"{sysfs.PCI}/*/power/runtime_status") not in SLEEPING
