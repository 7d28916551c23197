"""Network interfaces as /sys/class/net shows them: where a device sits, and all of it where netlink has no answer.

Kernel pages: Documentation/ABI/testing/sysfs-class-net, networking/bonding.rst. `speed` and `carrier` take the RTNL
lock and can wait long on a busy host; the other attributes that are read here take no lock.
"""

import re
from functools import lru_cache

from probes.host.interface import Host
from probes.host_reader import FileFacts, HostReader, may_hold, parse_files
from probes.named_tuple import NamedTuple
from probes.netdev.rtnetlink import ADMIN_UP, NetlinkLink
from probes.text import is_pci_address, lazy_pattern, require, text_or_none

CLASS = "/sys/class/net"
PCI = "/sys/bus/pci/devices"
VLANS = "/proc/net/vlan/config"
VLANS_LIMIT_BYTES = 256 << 10
MAC = lazy_pattern(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5,31}")
MOST_FUNCTIONS = 4096


class DevicePlace(NamedTuple):
    """Where an interface sits. Both None and not virtual: sysfs does not show it."""

    pci: str | None = None  # address of the PCI function below it
    virtual: bool = False  # it lies under /sys/devices/virtual


def folders(reader: HostReader) -> dict[str, str]:
    """Every interface and its folder. A recorded source may hold only the folders below the PCI functions."""
    names = reader.names(CLASS)
    if names is not None:
        return {name: f"{CLASS}/{name}" for name in names if name != "bonding_masters"}  # a file of the bond driver
    if reader.host.live:
        return {}
    interfaces, missing = _list_below_functions(reader.host)
    if missing:
        reader.gap(missing)
    return dict(interfaces)


@lru_cache(maxsize=1)  # several probes ask
def _list_below_functions(host: Host) -> tuple[dict[str, str], str | None]:
    """Interfaces by folder, and what has no answer."""
    reader = HostReader(host)
    drivers = {}
    for function in (reader.names(PCI) or [])[:MOST_FUNCTIONS]:
        if may_hold(host, f"{PCI}/{function}", "net"):
            for name in reader.names(f"{PCI}/{function}/net") or ():
                drivers[name] = f"{PCI}/{function}/net/{name}"
    return drivers, reader.missing


def place(reader: HostReader, folder: str) -> DevicePlace:
    """Where the interface of this folder sits, by the text of its link in /sys/class/net."""
    if folder.startswith(PCI):
        return place_of(folder)
    return place_of(reader.link(folder) or "")


def place_of(path: str) -> DevicePlace:
    """Where an interface sits, from its path in sysfs.

    >>> place_of("../../devices/pci0000:00/0000:00:05.0/0000:02:00.0/net/eth0").pci
    '0000:02:00.0'
    >>> place_of("../../devices/pci0000:00/0000:00:03.0/virtio0/net/ens3").pci
    '0000:00:03.0'
    >>> place_of("../../devices/pci0000:00/0000:00:14.0/usb1/1-5/1-5:1.0/net/usb0")
    DevicePlace(pci=None, virtual=False)
    """
    parts = path.split("/")[:-2]  # without net/<name>
    if "virtual" in parts:
        return DevicePlace(virtual=True)
    for part in parts[:-3:-1]:  # the device, or what it is a function of; a USB device is not the controller's
        if is_pci_address(part):
            return DevicePlace(part)
    return DevicePlace()


def links(reader: HostReader, interfaces: dict[str, str]) -> tuple[NetlinkLink, ...]:
    """Every interface with what sysfs states of it."""
    vlans = reader.parsed(reader.text(VLANS, VLANS_LIMIT_BYTES) or None, parse_vlans) or {}
    return tuple(_link(reader, name, folder, vlans.get(name)) for name, folder in interfaces.items())


def parse_vlans(text: str) -> dict[str, tuple[int, str]]:
    r"""The id and the lower interface of every VLAN in /proc/net/vlan/config. Raises ParseError.

    >>> parse_vlans("VLAN Dev name\t | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\neth0.5  | 5  | eth0\n")
    {'eth0.5': (5, 'eth0')}
    """
    vlans: dict[str, tuple[int, str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 3:
            continue  # the two lines of the heading
        require(re.fullmatch("[0-9]{1,4}", cells[1]), f"{VLANS}: no VLAN id in {line[:80]!r}")
        vlans[cells[0]] = (int(cells[1]), cells[2])
    return vlans


def whole(text: str | None) -> int | None:
    """A number as sysfs prints it; None for anything else, and for -1 (not known).

    >>> whole("200000"), whole("0x1003"), whole("-1"), whole("flags")
    (200000, 4099, None, None)
    """
    if text and re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    return int(text, 16) if text and re.fullmatch("0x[0-9a-f]{1,16}", text) else None


def mac(text: str | None) -> str | None:
    """A link-layer address; None where it is all zero, or no address.

    >>> mac("b8:3f:d2:00:00:01"), mac("00:00:00:00:00:00"), mac("address")
    ('b8:3f:d2:00:00:01', None, None)
    """
    return text if text and MAC.fullmatch(text) and text.strip("0:") else None


_FACTS: FileFacts = {
    "ifindex": ("index", whole),
    "address": ("mac", mac),
    "type": ("type", whole),
    "flags": ("flags", whole),
    "mtu": ("mtu", whole),
    "operstate": ("operstate", text_or_none),
    "carrier_changes": ("carrier_changes", whole),
    "carrier_up_count": ("carrier_up_count", whole),
    "carrier_down_count": ("carrier_down_count", whole),
}


def _link(reader: HostReader, name: str, folder: str, vlan: tuple[int, str] | None) -> NetlinkLink:
    facts = parse_files(_FACTS, reader.attributes(folder, _FACTS, source=f"{CLASS}/*"))
    flags = facts.get("flags")
    master = reader.link(f"{folder}/master")
    bond = _bond(reader, folder)
    carrier = None
    if flags is None or flags & ADMIN_UP:  # one that is down answers EINVAL
        carrier = reader.attributes(folder, ("carrier",), source=f"{CLASS}/*").get("carrier")
    return NetlinkLink(
        **facts,
        name=name,
        carrier=carrier == "1" if carrier in ("0", "1") else None,
        kind="bond" if bond else "vlan" if vlan else None,
        master=master.rsplit("/", 1)[-1] if master else None,
        lower=vlan[1] if vlan else None,
        vlan_id=vlan[0] if vlan else None,
        bond=bond,
    )


def _bond(reader: HostReader, folder: str) -> dict[str, str] | None:
    """A bond's settings; sysfs prints a word and its number ("802.3ad 4")."""
    keys = ("mode", "miimon", "xmit_hash_policy", "active_slave")
    files = reader.attributes(f"{folder}/bonding", keys, source=f"{CLASS}/*/bonding")
    return {key: files[key].split()[0] for key in keys if files.get(key)} or None
