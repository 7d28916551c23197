"""The interfaces that saved outputs show: those of `ip link`, else those that other outputs name, or are named by.

`ethtool -i` and `ibdev2netdev -v` state the PCI device of an interface, which older versions of `ip link` do not.
"""

from __future__ import annotations

import re
from contextlib import suppress

from probes.host.commands import LLDP, LLDP_SAVED, OF_INTERFACE
from probes.host_reader import HostReader
from probes.netdev import sysfs
from probes.netdev.ip_link import saved_links
from probes.netdev.rtnetlink import LOOPBACK, MOST_INTERFACES, NetlinkLink
from probes.text import PCI_ADDRESS, ParseError, lazy_pattern

_NAME = lazy_pattern(r"[A-Za-z0-9_.:-]{1,15}")
_BUS_INFO = lazy_pattern(rf"^bus-info:[ \t]*({PCI_ADDRESS})[ \t]*\r?$", re.MULTILINE)
_DRIVER = lazy_pattern(r"^driver:[ \t]*(\S[^\r\n]{0,39}?)[ \t]*\r?$", re.MULTILINE)
_DEVICE = lazy_pattern(rf"^({PCI_ADDRESS}) [^\n]{{1,400}}==> (\S{{1,15}}) \(", re.MULTILINE)
_NETDEV = lazy_pattern(r"\bnetdev (\S{1,15})(?:\s|$)")
_ARROW = lazy_pattern(r"==> {1,8}(\S{1,15}) {1,40}\((?:Up|Down)\)")
_NAMED_IN = (
    (("rdma", "link"), _NETDEV),
    (("rdma", "link", "show"), _NETDEV),
    (("ibdev2netdev",), _ARROW),
    (("ibdev2netdev", "-v"), _ARROW),
    (("show_gids",), lazy_pattern(r"[ \t]v[12][ \t]{1,40}(\S{1,15})[ \t\r]{0,40}$", re.MULTILINE)),
)
_KINDS = {"bonding": "bond", "802.1Q VLAN Support": "vlan", "bridge": "bridge", "dummy": "dummy", "macvlan": "macvlan"}
_KINDS |= {"openvswitch": "openvswitch", "team": "team", "tun": "tun", "veth": "veth", "vxlan": "vxlan"}
_REPRESENTOR = "_rep"  # mlx5e_rep states the PCI device of the port that it stands for a function of
_OWN_PORT = (None, "ipoib")


def shown_links(reader: HostReader) -> dict[str, NetlinkLink]:
    """Every interface that a saved output shows, by name; none where a kernel answers, or its recorded answers do."""
    links = saved_links(reader)
    if reader.host.live or reader.host.kind == "capture":
        return links
    if not links and not sysfs.folders(reader):  # a list of interfaces is whole: what it does not have is not here
        links = {name: NetlinkLink(name) for name in _list_names(reader)}
    addresses = _addresses(reader) if links else {}
    return {name: _with_device(reader, link, addresses.get(name)) for name, link in links.items()}


def _list_names(reader: HostReader) -> list[str]:
    names = {name for argv in OF_INTERFACE for name in reader.host.saved_arguments(*argv)}
    for argv, pattern in _NAMED_IN:
        names |= set(pattern.findall(reader.saved(*argv) or ""))
    for command in LLDP + LLDP_SAVED:
        if reader.host.has_output(*command):
            from probes.netdev.lldp import parse_lldp  # lazy: few sources hold one

            with suppress(ParseError):
                names |= {neighbor.interface for neighbor in parse_lldp(reader.output(*command) or "").neighbors}
    return sorted({name for name in names if _NAME.fullmatch(name)} - {"lo"})[:MOST_INTERFACES]


def _addresses(reader: HostReader) -> dict[str, str]:
    """PCI devices by interface, as `ibdev2netdev -v` states them."""
    return {name: address for address, name in _DEVICE.findall(reader.saved("ibdev2netdev", "-v") or "")}


def _with_device(reader: HostReader, link: NetlinkLink, address: str | None) -> NetlinkLink:
    """What `ethtool -i` states besides: the PCI device, and whether there is none below it."""
    text = None if link.type == LOOPBACK else reader.saved("ethtool", "-i", link.name)
    if text is None:
        return link._replace(parent_pci=link.parent_pci or address) if link.kind in _OWN_PORT else link
    driver, device = _DRIVER.search(text), _BUS_INFO.search(text)
    kind = link.kind or (_KINDS.get(driver[1]) if driver else None)
    if kind not in _OWN_PORT or (driver and driver[1].endswith(_REPRESENTOR)):
        return link._replace(kind=kind)
    return link._replace(parent_pci=link.parent_pci or (device[1] if device else address))
