"""Netlink messages as bytes: requests of rtnetlink made, replies read. No socket here; the door has that.

Headers: linux/netlink.h, linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h; rtnetlink(7). Numbers are in the byte
order of the machine that answered: a recording is read on a machine of the same order.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from typing import NamedTuple

from probes.text import Unparsable

ROUTE = 0  # NETLINK_ROUTE

NEW_LINK, GET_LINK, NEW_ADDRESS, GET_ADDRESS, NEW_STATS, GET_STATS = 16, 18, 20, 22, 92, 94
IS_REQUEST, IS_DUMP = 0x1, 0x300
SEQUENCE = 1  # one question a socket
IS_ERROR, IS_DONE = 2, 3
NESTED_OR_ORDERED = 0xC000  # flags in an attribute's type

EXTENDED_MASK = 29  # IFLA_EXT_MASK
SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS: the dump then asks no driver, so it wakes none
STATISTICS_64 = 1  # IFLA_STATS_LINK_64

HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
LINK = struct.Struct("=BxHiII")
ADDRESS = struct.Struct("=BBBBI")
STATISTICS = struct.Struct("=BxHII")


class Message(NamedTuple):
    """One message: its type, its flags and what follows the header."""

    type: int
    flags: int
    payload: bytes


class Refused(Unparsable):
    """The kernel answered with an error; the message is the errno's name."""


def links_request() -> bytes:
    """Every link of the network namespace, without statistics: those would ask every driver.

    >>> len(links_request()), attributes(links_request(), HEADER.size + LINK.size)
    (40, {29: b'\\x08\\x00\\x00\\x00'})
    """
    body = LINK.pack(0, 0, 0, 0, 0) + attribute(EXTENDED_MASK, struct.pack("=I", SKIP_STATISTICS))
    return request(GET_LINK, IS_REQUEST | IS_DUMP, body)


def addresses_request() -> bytes:
    """Every IPv4 and IPv6 address of the network namespace."""
    return request(GET_ADDRESS, IS_REQUEST | IS_DUMP, ADDRESS.pack(0, 0, 0, 0, 0))


def statistics_request(index: int) -> bytes:
    """The counters of one link (rtnl_link_stats64)."""
    return request(GET_STATS, IS_REQUEST, STATISTICS.pack(0, 0, index, STATISTICS_64))


def request(kind: int, flags: int, body: bytes) -> bytes:
    """One message with its header."""
    return HEADER.pack(HEADER.size + len(body), kind, flags, SEQUENCE, 0) + body


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded to four bytes.

    >>> attribute(3, b"lo\\x00").hex()
    '070003006c6f0000'
    """
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + b"\0" * (-len(value) % 4)


def messages(reply: bytes) -> list[Message]:
    """The messages of a reply, without its end mark. Raises Refused where the kernel did, Unparsable for other bytes.

    >>> messages(request(NEW_LINK, 0, b"abcd") + request(IS_DONE, 0, bytes(4)))
    [Message(type=16, flags=0, payload=b'abcd')]
    """
    found = []
    place = 0
    while place < len(reply):
        if len(reply) - place < HEADER.size:
            raise Unparsable(f"netlink: {len(reply) - place} bytes where a header should be")
        length, kind, flags, _, _ = HEADER.unpack_from(reply, place)
        if not HEADER.size <= length <= len(reply) - place:
            raise Unparsable(f"netlink: a message of {length} bytes where {len(reply) - place} are left")
        payload = reply[place + HEADER.size : place + length]
        place += (length + 3) & ~3
        if kind in (IS_ERROR, IS_DONE):
            _check(payload)
            continue
        found.append(Message(kind, flags, payload))
    return found


def attributes(data: bytes, start: int = 0) -> dict[int, bytes]:
    """Attributes by number; of a number that comes twice, the last. Raises Unparsable.

    >>> attributes(attribute(3, b"lo\\x00") + attribute(4, b"\\x00\\x00\\x01\\x00"))
    {3: b'lo\\x00', 4: b'\\x00\\x00\\x01\\x00'}
    """
    return dict(each_attribute(data, start))


def each_attribute(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Attributes in their order, their flags taken off. Raises Unparsable."""
    place = start
    while place < len(data):
        if len(data) - place < ATTRIBUTE.size:
            raise Unparsable(f"netlink: {len(data) - place} bytes where an attribute should be")
        length, kind = ATTRIBUTE.unpack_from(data, place)
        if not ATTRIBUTE.size <= length <= len(data) - place:
            raise Unparsable(f"netlink: an attribute of {length} bytes where {len(data) - place} are left")
        yield kind & ~NESTED_OR_ORDERED, data[place + ATTRIBUTE.size : place + length]
        place += (length + 3) & ~3


def _check(payload: bytes) -> None:
    """An error message and the end of a dump carry an errno, negative; 0 is no error."""
    if len(payload) < 4:
        return
    (code,) = struct.unpack_from("=i", payload)
    if code:
        raise Refused(f"the kernel answered {errno.errorcode.get(-code, str(code))}")
