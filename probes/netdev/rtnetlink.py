"""Links, addresses and counters as rtnetlink describes them: payloads of messages in, plain data out.

Headers: linux/if_link.h (IFLA_*, IFLA_BOND_*, IFLA_VLAN_*, rtnl_link_stats64), linux/if_addr.h, linux/if.h (IF_OPER_*).
"""

import struct
from collections.abc import Iterable, Mapping

from probes.named_tuple import NamedTuple
from probes.netlink import (
    ADDRESS,
    LINK,
    STATISTICS,
    STATISTICS_64,
    attributes,
    iter_attributes,
    parse_text,
    parse_unsigned,
)
from probes.text import ParseError

ADMIN_UP = 0x1  # IFF_UP
LOOPBACK = 772  # ARPHRD_LOOPBACK
MOST_INTERFACES = 256  # that are asked for more than their link
OPERSTATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")
BOND_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
BOND_HASHES = ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac")
COUNTERS = (
    "rx_packets tx_packets rx_bytes tx_bytes rx_errors tx_errors rx_dropped tx_dropped multicast collisions "
    "rx_length_errors rx_over_errors rx_crc_errors rx_frame_errors rx_fifo_errors rx_missed_errors "
    "tx_aborted_errors tx_carrier_errors tx_fifo_errors tx_heartbeat_errors tx_window_errors "
    "rx_compressed tx_compressed rx_nohandler rx_otherhost_dropped"
)

# IFLA_*
MAC, NAME, MTU, LOWER, MASTER, OPERSTATE, LINKINFO = 1, 3, 4, 5, 10, 16, 18
CARRIER, CARRIER_CHANGES, LOWER_NAMESPACE, PORT_NAME = 33, 35, 37, 38
CARRIER_UP, CARRIER_DOWN, PARENT, PARENT_BUS = 47, 48, 56, 57
# IFLA_INFO_*, IFLA_VLAN_*, IFLA_BOND_*, IFA_*
KIND, DATA, VLAN_ID, VLAN_EGRESS, VLAN_MAPPING = 1, 2, 1, 3, 1
BOND_MODE, BOND_ACTIVE, BOND_MIIMON, BOND_HASH = 1, 2, 3, 14
IFA_ADDRESS, IFA_LOCAL = 1, 2
FAMILIES = ((2, 4), (10, 16))  # AF_INET, AF_INET6, with the bytes of their addresses
MAPPING = struct.Struct("=II")  # from, to


class NetlinkLink(NamedTuple):
    """One network interface, from whatever source. None: the source does not show it."""

    name: str
    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which no fact needs
    type: int | None = None  # ARPHRD
    flags: int | None = None  # IFF_*
    mac: str | None = None
    mtu: int | None = None
    operstate: str | None = None
    carrier: bool | None = None  # of an interface that is administratively up
    carrier_changes: int | None = None
    carrier_up_count: int | None = None
    carrier_down_count: int | None = None
    kind: str | None = None  # of a software interface: "bond", "vlan", "veth"
    master: str | None = None
    lower: str | None = None  # below a VLAN
    vlan_id: int | None = None
    vlan_egress: str | None = None  # "0:3,4:3": from the socket's priority to the tag's; "": none
    bond: Mapping[str, str] | None = None  # without its slaves
    port_name: str | None = None  # "p0"; "pf0vf3" of a representor
    parent_pci: str | None = None  # PCI address of the device, where the kernel names it (5.14)
    statistics: Mapping[str, int] | None = None  # of a saved `ip -s link`, as COUNTERS names them
    addresses: tuple[str, ...] = ()  # of a saved `ip address`: "10.0.0.1/24"


def parse_links(payloads: Iterable[bytes]) -> tuple[NetlinkLink, ...]:
    """The links of one dump; references between them become names. Raises ParseError."""
    raw = [(_link_header(payload), attributes(payload, LINK.size)) for payload in payloads]
    names = {header[1]: parse_text(payloads.get(NAME)) for header, payloads in raw}
    return tuple(_link(header, payloads, names) for header, payloads in raw if names[header[1]])


def parse_address(payload: bytes) -> tuple[int, int, bytes, str] | None:
    """The link's index, the family, the raw address and its text ("10.0.0.1/24"); None: of another family.

    Raises ParseError.
    """
    if len(payload) < ADDRESS.size:
        raise ParseError(f"rtnetlink: an address of {len(payload)} bytes")
    family, prefix, _, _, index = ADDRESS.unpack_from(payload)
    payloads = attributes(payload, ADDRESS.size)
    raw = payloads.get(IFA_LOCAL, payloads.get(IFA_ADDRESS, b""))  # point to point: IFA_ADDRESS is the other end
    if (family, len(raw)) not in FAMILIES:
        return None
    import _socket as socket  # lazy: files alone show no address; see probes/host/netlink_socket.py

    return index, family, raw, f"{socket.inet_ntop(family, raw)}/{prefix}"


def parse_statistics(payload: bytes) -> dict[str, int]:
    """The counters of one link; an older kernel has fewer of them. Raises ParseError."""
    if len(payload) < STATISTICS.size:
        raise ParseError(f"rtnetlink: statistics of {len(payload)} bytes")
    block = attributes(payload, STATISTICS.size).get(STATISTICS_64, b"")
    values = struct.unpack_from(f"={len(block) // 8}Q", block)
    return dict(zip(COUNTERS.split(), values, strict=False))


def mac_text(raw: bytes) -> str | None:
    """A link-layer address as sysfs prints it; None where it is empty or all zero (loopback).

    >>> mac_text(bytes.fromhex("b83fd2000001")), mac_text(bytes(6))
    ('b8:3f:d2:00:00:01', None)
    """
    return raw.hex(":") if any(raw) else None


def _link_header(payload: bytes) -> tuple[int, int, int]:
    """Type, index and flags."""
    if len(payload) < LINK.size:
        raise ParseError(f"rtnetlink: a link of {len(payload)} bytes")
    _, kind, index, flags, _ = LINK.unpack_from(payload)
    return kind, index, flags


def _link(header: tuple[int, int, int], payloads: Mapping[int, bytes], names: Mapping[int, str | None]) -> NetlinkLink:
    kind, index, flags = header
    info = attributes(payloads.get(LINKINFO, b""))
    software = parse_text(info.get(KIND))
    data = attributes(info.get(DATA, b"")) if software in ("bond", "vlan") else {}
    carrier = parse_unsigned(payloads.get(CARRIER))
    lower = parse_unsigned(payloads.get(LOWER)) if software == "vlan" and LOWER_NAMESPACE not in payloads else None
    return NetlinkLink(
        name=names[index] or "",
        index=index,
        type=kind,
        flags=flags,
        mac=mac_text(payloads.get(MAC, b"")),
        mtu=parse_unsigned(payloads.get(MTU)),
        operstate=_word(OPERSTATES, payloads.get(OPERSTATE)),
        carrier=None if carrier is None or not flags & ADMIN_UP else bool(carrier),
        carrier_changes=parse_unsigned(payloads.get(CARRIER_CHANGES)),
        carrier_up_count=parse_unsigned(payloads.get(CARRIER_UP)),
        carrier_down_count=parse_unsigned(payloads.get(CARRIER_DOWN)),
        kind=software,
        master=names.get(parse_unsigned(payloads.get(MASTER)) or 0),
        lower=names.get(lower or 0),
        vlan_id=parse_unsigned(data.get(VLAN_ID)) if software == "vlan" else None,
        vlan_egress=_mappings(data.get(VLAN_EGRESS, b"")) if software == "vlan" else None,
        bond=_bond(data, names) if software == "bond" else None,
        port_name=parse_text(payloads.get(PORT_NAME)),
        parent_pci=parse_text(payloads.get(PARENT)) if parse_text(payloads.get(PARENT_BUS)) == "pci" else None,
    )


def _mappings(raw: bytes) -> str:
    """IFLA_VLAN_EGRESS_QOS: a struct ifla_vlan_qos_mapping each."""
    pairs = [
        MAPPING.unpack_from(value) for kind, value in iter_attributes(raw) if kind == VLAN_MAPPING and len(value) >= 8
    ]
    return ",".join(f"{priority}:{tag}" for priority, tag in sorted(pairs))


def _bond(data: Mapping[int, bytes], names: Mapping[int, str | None]) -> dict[str, str]:
    miimon = parse_unsigned(data.get(BOND_MIIMON))
    bond = {
        "mode": _word(BOND_MODES, data.get(BOND_MODE)),
        "miimon": None if miimon is None else str(miimon),
        "xmit_hash_policy": _word(BOND_HASHES, data.get(BOND_HASH)),
        "active_slave": names.get(parse_unsigned(data.get(BOND_ACTIVE)) or 0),
    }
    return {key: value for key, value in bond.items() if value}


def _word(words: tuple[str, ...], raw: bytes | None) -> str | None:
    """The word of a number; a number that has none yet stays a number."""
    number = parse_unsigned(raw)
    if number is None:
        return None
    return words[number] if number < len(words) else str(number)
