"""rtnetlink answers written by hand, as a kernel would send them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable

from probes import netlink, rtnetlink
from probes.netlink import attribute, request


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def u32(value: int) -> bytes:
    return struct.pack("=I", value)


def nest(*parts: bytes) -> bytes:
    return b"".join(parts)


def link(
    index: int,
    name: str,
    *,
    mac: str = "",
    up: bool = True,
    operstate: int = 6,
    carrier: int = 1,
    type: int = 1,  # noqa: A002 - the header's word
    more: bytes = b"",
) -> bytes:
    """One RTM_NEWLINK."""
    head = netlink.LINK.pack(0, type, index, 0x1003 if up else 0x1002, 0)
    said = (
        (rtnetlink.NAME, text(name)),
        (rtnetlink.MAC, bytes.fromhex(mac.replace(":", ""))),
        (rtnetlink.MTU, u32(9000)),
        (rtnetlink.OPERSTATE, bytes([operstate])),
        (rtnetlink.CARRIER, bytes([carrier])),
        (rtnetlink.CARRIER_CHANGES, u32(5)),
        (rtnetlink.CARRIER_UP, u32(3)),
        (rtnetlink.CARRIER_DOWN, u32(2)),
    )
    return request(netlink.NEW_LINK, 2, head + b"".join(attribute(kind, value) for kind, value in said) + more)


def info(kind: str, *data: bytes) -> bytes:
    """IFLA_LINKINFO."""
    inner = attribute(rtnetlink.KIND, text(kind)) + attribute(rtnetlink.DATA | 0x8000, nest(*data))
    return attribute(rtnetlink.LINKINFO | 0x8000, inner)


def address(index: int, where: str, prefix: int, *, peer: str | None = None) -> bytes:
    """One RTM_NEWADDR."""
    family = socket.AF_INET6 if ":" in where else socket.AF_INET
    head = netlink.ADDRESS.pack(family, prefix, 0, 0, index)
    local = attribute(rtnetlink.IFA_LOCAL, socket.inet_pton(family, where))
    far = attribute(rtnetlink.IFA_ADDRESS, socket.inet_pton(family, peer or where))
    return request(netlink.NEW_ADDRESS, 2, head + far + (local if family == socket.AF_INET else b""))


def statistics(index: int, counters: Iterable[int]) -> bytes:
    """One RTM_NEWSTATS."""
    block = b"".join(struct.pack("=Q", value) for value in counters)
    head = netlink.STATISTICS.pack(0, 0, index, netlink.STATISTICS_64)
    return request(netlink.NEW_STATS, 0, head + attribute(netlink.STATISTICS_64, block))


def refusal(code: int) -> bytes:
    """One NLMSG_ERROR."""
    return request(netlink.IS_ERROR, 0, struct.pack("=i", -code) + bytes(16))
