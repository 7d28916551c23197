"""The many spellings in which sysfs and the RDMA tools state one thing, brought to sysfs's own.

Link rates as the kernel and the RDMA tools print them, taken apart and put together.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from probes.named_tuple import NamedTuple
from probes.rdma.facts import RdmaDevice, RdmaPort
from probes.text import lazy_pattern, require

if TYPE_CHECKING:
    from probes.layout import Block  # what only sources with outputs of tools import

# drivers/infiniband/core/sysfs.c, include/rdma/ib_verbs.h: speed code -> name, Gbit/s a lane as sysfs counts them
SPEEDS = {
    1: ("SDR", 2.5),
    2: ("DDR", 5.0),
    4: ("QDR", 10.0),
    8: ("FDR10", 10.0),
    16: ("FDR", 14.0),
    32: ("EDR", 25.0),
    64: ("HDR", 50.0),
    128: ("NDR", 100.0),
    256: ("XDR", 200.0),
}

_RATE = lazy_pattern(r"([0-9]{1,6}(?:\.[0-9]{1,4})?)(?: Gb/sec(?: \(([0-9]{1,2}X)(?: ([A-Z]{2,4}[0-9]{0,3}))?\))?)?")


class Rate(NamedTuple):
    """One printed rate. `width` and `speed` are None where the text does not name them (ibstat; SDR of old kernels)."""

    gbit_s: float
    width: str | None
    speed: str | None


def parse_rate(text: str) -> Rate:
    """The rate of sysfs, ibstatus or ibstat. A port that is down prints a default here. Raises ParseError.

    >>> parse_rate("400 Gb/sec (4X NDR)")
    Rate(gbit_s=400.0, width='4X', speed='NDR')
    >>> parse_rate("2.5 Gb/sec (1X SDR)"), parse_rate("10 Gb/sec (4X)").speed, parse_rate("56")
    (Rate(gbit_s=2.5, width='1X', speed='SDR'), None, Rate(gbit_s=56.0, width=None, speed=None))
    """
    match = require(_RATE.fullmatch(text.strip()), f"not a link rate: {text!r:.60}")
    return Rate(float(match[1]), match[2], match[3])


def rate_text(lanes: int, speed_code: int) -> str | None:
    """The text that sysfs prints for a width and a speed code; None for a code that is not known here.

    >>> rate_text(4, 32), rate_text(1, 1), rate_text(4, 3)
    ('100 Gb/sec (4X EDR)', '2.5 Gb/sec (1X SDR)', None)
    """
    if speed_code not in SPEEDS:
        return None
    name, lane = SPEEDS[speed_code]
    return f"{lanes * lane:g} Gb/sec ({lanes}X {name})"


LINK_LAYER_LINE = (
    r"[Ll]ink[ _]layer:\s{0,80}(?:InfiniBand|IB|Ethernet|Unspecified|Unknown)"  # ends a port, and is whole
)
NAME = r"[A-Za-z0-9_.:\-]{1,64}"  # an RDMA device's name (IB_DEVICE_NAME_MAX)

_STATES = {
    "nop": "NOP",
    "down": "DOWN",
    "init": "INIT",
    "initializing": "INIT",
    "initialize": "INIT",
    "armed": "ARMED",
    "active": "ACTIVE",
    "activedefer": "ACTIVE_DEFER",
}
_PHYSICAL_STATES = {
    "sleep": "Sleep",
    "polling": "Polling",
    "disabled": "Disabled",
    "portconfigurationtraining": "PortConfigurationTraining",
    "linkup": "LinkUp",
    "linkerrorrecovery": "LinkErrorRecovery",
    "linkerrorrecover": "LinkErrorRecovery",
    "phytest": "Phy Test",
    "phystest": "Phy Test",
}
_LINK_LAYERS = {
    "infiniband": "InfiniBand",
    "ib": "InfiniBand",
    "ethernet": "Ethernet",
    "unspecified": "Unknown",
    "unknown": "Unknown",
}
_SOFTWARE_NAME = lazy_pattern(r"(?:rxe|siw)_?[0-9]|(?:rxe|siw)_")
_GUID = lazy_pattern(r"(?:0x)?([0-9a-fA-F]{4}):?([0-9a-fA-F]{4}):?([0-9a-fA-F]{4}):?([0-9a-fA-F]{4})")
_NUMBER = lazy_pattern(r"0[xX][0-9a-fA-F]{1,8}|[0-9]{1,10}")
_WRAPPING = lazy_pattern(r"^[0-9]{1,2}: |^PORT_| \([0-9]{1,3}\)$")


class ParsedTool(NamedTuple):
    """What one tool's text states, and what of it was cut off or could not be understood."""

    devices: tuple[RdmaDevice, ...]
    cut: tuple[str, ...] = ()


def state(text: str | None) -> str | None:
    """A logical port state; None for a word that is no state (a cut one).

    >>> state("4: ACTIVE"), state("PORT_DOWN (1)"), state("Initializing"), state("ACTIVE_DEFER"), state("Activ")
    ('ACTIVE', 'DOWN', 'INIT', 'ACTIVE_DEFER', None)
    """
    return _STATES.get(_letters(text))


def physical_state(text: str | None) -> str | None:
    """A physical port state.

    >>> physical_state("5: LinkUp"), physical_state("LINK_UP (5)"), physical_state("Disabled"), physical_state("Poll")
    ('LinkUp', 'LinkUp', 'Disabled', None)
    """
    return _PHYSICAL_STATES.get(_letters(text))


def link_layer(text: str | None) -> str | None:
    """A port's link layer.

    >>> link_layer("InfiniBand"), link_layer("IB"), link_layer("Unspecified"), link_layer("InfiniBan")
    ('InfiniBand', 'InfiniBand', 'Unknown', None)
    """
    return _LINK_LAYERS.get(_letters(text))


def guid(text: str | None) -> str | None:
    """A GUID in sysfs's form; None where the text is none (cut, or blanked out before it was published).

    >>> guid("0x506b4b0300a3c4ea"), guid("58a2e10300ff059e"), guid("7cfe:9003:00ff:a9c0"), guid("node_guid")
    ('506b:4b03:00a3:c4ea', '58a2:e103:00ff:059e', '7cfe:9003:00ff:a9c0', None)
    """
    match = _GUID.fullmatch((text or "").strip())
    return ":".join(match.groups()).lower() if match else None


def gid(text: str | None) -> str | None:
    """A used GID as eight groups of four; None where it is empty (no interface id) or no GID.

    >>> gid("fe80::b226:28ff:fed3:8cf0"), gid("::ffff:192.170.1.101")
    ('fe80:0000:0000:0000:b226:28ff:fed3:8cf0', '0000:0000:0000:0000:0000:ffff:c0aa:0165')
    >>> gid("fe80:0000:0000:0000:0000:0000:0000:0000"), gid("fe80:0000:00")
    (None, None)
    """
    from ipaddress import AddressValueError, IPv6Address  # lazy: a machine without RDMA has no GIDs

    try:
        address = IPv6Address((text or "").strip())
    except AddressValueError:
        return None
    raw = address.packed  # not `exploded`: from Python 3.13 on that writes a mapped IPv4 address with dots
    return None if address.scope_id or not any(raw[8:]) else raw.hex(":", 2)


def number(text: str | None) -> int | None:
    """A LID or count, decimal or hexadecimal; None where it is none.

    >>> number("0x30"), number("465"), number("4096 (5)"), number("sm_lid"), number("")
    (48, 465, 4096, None, None)
    """
    bare = _WRAPPING.sub("", (text or "").strip())
    if not _NUMBER.fullmatch(bare):
        return None
    return int(bare, 16) if bare[:2] in ("0x", "0X") else int(bare)


def is_software(name: str) -> bool:
    """Whether a name is one that soft RoCE or soft iWARP devices are given; a path under /sys is better evidence.

    >>> is_software("rxe_0"), is_software("siw0"), is_software("rocep1s0")
    (True, True, False)
    """
    return bool(_SOFTWARE_NAME.match(name))


def build_device(block: "Block", **more: Any) -> RdmaDevice:
    """A device as its section states it, with the ports that are sections in it."""
    ports = sorted((RdmaPort(**port.values()) for port in block.sections.values()), key=lambda port: port.port)
    name = block.texts["name"]
    return RdmaDevice(**{"software": is_software(name), "ports": tuple(ports), **block.values(), **more})


def devices_of_ports(ports: Mapping[str, Mapping[int, RdmaPort]], **more: Mapping[str, Any]) -> tuple[RdmaDevice, ...]:
    """Devices that a list of ports names, in its order. `more`: other fields of them, by device."""
    return tuple(
        RdmaDevice(
            name,
            software=is_software(name),
            ports=tuple(port for _, port in sorted(by_number.items())),
            **{field: values[name] for field, values in more.items()},
        )
        for name, by_number in ports.items()
    )


def describe_cut(tool: str, block: "Block", count_label: str) -> list[str]:
    """Notes on ports of a device that are cut off, or missing by its own count."""
    name = block.texts["name"]
    ports = [(port.values(), port.texts.get("Port GUID")) for port in block.sections.values()]
    notes = [
        f"{tool}: {name} port {port['port']} is cut off"
        for port, guid in ports
        if "link_layer" not in port and not guid
    ]
    count = number(block.texts.get(count_label))
    if count is None or count > len(ports):
        notes.append(f"{tool}: {name} has {count or 'more'} ports, the text holds {len(ports)}")
    return notes


def _letters(text: str | None) -> str:
    bare = _WRAPPING.sub("", _WRAPPING.sub("", (text or "").strip()))
    return bare.replace("_", "").replace(" ", "").lower()
