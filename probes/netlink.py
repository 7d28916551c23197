"""The netlink codec: messages and attributes as bytes, the requests of rtnetlink, the families of generic netlink.

The socket is in `probes/host/netlink_socket.py`. Headers: linux/netlink.h, linux/rtnetlink.h, linux/genetlink.h,
linux/if_link.h, linux/if_addr.h; rtnetlink(7). Numbers are in the byte order of the machine that answered: a recording
is read on a machine of the same order.
"""

import errno
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress

from probes.named_tuple import NamedTuple
from probes.text import ParseError, require

ROUTE, GENERIC, RDMA = 0, 16, 20  # NETLINK_*

NEW_LINK, GET_LINK, NEW_ADDRESS, GET_ADDRESS, NEW_STATS, GET_STATS = 16, 18, 20, 22, 92, 94
IS_REQUEST, IS_DUMP = 0x1, 0x300
SEQUENCE = 1  # one question a socket
IS_ERROR, IS_DONE = 2, 3
NESTED_OR_ORDERED = 0xC000  # flags in an attribute's type

CONTROL, GET_FAMILY, NEW_FAMILY = 0x10, 3, 1  # nlctrl, CTRL_CMD_*
FAMILY_ID, FAMILY_NAME = 1, 2  # CTRL_ATTR_*

LINK_NAME, EXTENDED_MASK = 3, 29  # IFLA_IFNAME, IFLA_EXT_MASK
SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS: the dump then asks no driver, so it wakes none
STATISTICS_64 = 1  # IFLA_STATS_LINK_64

HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
LINK = struct.Struct("=BxHiII")
ADDRESS = struct.Struct("=BBBBI")
STATISTICS = struct.Struct("=BxHII")
GENERIC_HEAD = struct.Struct("=BBH")  # genlmsghdr: command, version, reserved


class Message(NamedTuple):
    """One message: its type, its flags and what follows the header."""

    type: int
    flags: int
    payload: bytes


class NetlinkError(ParseError):
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


def family_request(name: str) -> bytes:
    """Which message type a family of generic netlink has in this kernel."""
    body = GENERIC_HEAD.pack(GET_FAMILY, 2, 0) + attribute(FAMILY_NAME, name.encode() + b"\0")
    return request(CONTROL, IS_REQUEST, body)


def families_request() -> bytes:
    """Every family of generic netlink that this kernel has now. One that is asked for by its name is one that the
    kernel tries to load a module for."""
    return request(CONTROL, IS_REQUEST | IS_DUMP, GENERIC_HEAD.pack(GET_FAMILY, 2, 0))


def requested_family(question: bytes) -> bytes | None:
    """The name in a request for a family, with its NUL; None where it has none. Raises ParseError."""
    return attributes(question, HEADER.size + GENERIC_HEAD.size).get(FAMILY_NAME)


def link_request(name: str) -> bytes:
    """One link by its name, without statistics; the kernel loads no module for a name that it does not have."""
    body = LINK.pack(0, 0, 0, 0, 0) + attribute(EXTENDED_MASK, struct.pack("=I", SKIP_STATISTICS))
    return request(GET_LINK, IS_REQUEST, body + attribute(LINK_NAME, name.encode("utf-8", "surrogateescape") + b"\0"))


def parse_family(reply: bytes) -> int:
    """The message type of the family that was asked for. Raises ParseError."""
    raw = generic_attributes(reply, NEW_FAMILY).get(FAMILY_ID, b"")
    return require(parse_unsigned(raw), "nlctrl: no family id")


def generic_attributes(reply: bytes, command: int) -> dict[int, bytes]:
    """The attributes of the one message of generic netlink that answers with this command. Raises ParseError."""
    for message in messages(reply):
        if len(message.payload) >= GENERIC_HEAD.size and message.payload[0] == command:
            return attributes(message.payload, GENERIC_HEAD.size)
    raise ParseError(f"generic netlink: no message {command} in the answer")


def messages(reply: bytes) -> list[Message]:
    """The messages of a reply, without its end mark. Raises NetlinkError for an errno, ParseError for other bytes.

    >>> messages(request(NEW_LINK, 0, b"abcd") + request(IS_DONE, 0, bytes(4)))
    [Message(type=16, flags=0, payload=b'abcd')]
    """
    parsed = []
    for raw in _records(reply, 0, HEADER, "a header", "a message"):
        _, kind, flags, _, _ = HEADER.unpack_from(raw)
        payload = raw[HEADER.size :]
        if kind in (IS_ERROR, IS_DONE):
            _check(payload)
            continue
        parsed.append(Message(kind, flags, payload))
    return parsed


def whole_messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, flags and all bytes of each message. Ends at the first that is malformed.

    >>> list(whole_messages(request(IS_DONE, 2, bytes(4)) + b"?"))[0][:2]
    (3, 2)
    """
    with suppress(ParseError):
        for raw in _records(data, 0, HEADER, "a header", "a message"):
            yield *HEADER.unpack_from(raw)[1:3], raw


def attributes(data: bytes, start: int = 0) -> dict[int, bytes]:
    """Attributes by number; of a number that comes twice, the last. Raises ParseError.

    >>> attributes(attribute(3, b"lo\\x00") + attribute(4, b"\\x00\\x00\\x01\\x00"))
    {3: b'lo\\x00', 4: b'\\x00\\x00\\x01\\x00'}
    """
    return dict(iter_attributes(data, start))


def iter_attributes(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Attributes in their order, their flags taken off. Raises ParseError."""
    for raw in _records(data, start, ATTRIBUTE, "an attribute", "an attribute"):
        yield ATTRIBUTE.unpack_from(raw)[1] & ~NESTED_OR_ORDERED, raw[ATTRIBUTE.size :]


def flagged_attributes(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Number, value and the type as it stands, with its flags. Ends at the first that is malformed."""
    with suppress(ParseError):
        for raw in _records(data, 0, ATTRIBUTE, "an attribute", "an attribute"):
            kind = ATTRIBUTE.unpack_from(raw)[1]
            yield kind & ~NESTED_OR_ORDERED, raw[ATTRIBUTE.size :], kind


def parse_unsigned(raw: bytes | None) -> int | None:
    """A number of one, two, four or eight bytes."""
    return int.from_bytes(raw, sys.byteorder) if raw is not None and len(raw) in (1, 2, 4, 8) else None


def parse_text(raw: bytes | None) -> str | None:
    """The text before the first NUL; None where there is none."""
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace") or None if raw else None


def same_question(request: bytes) -> bytes:
    """The request with its sequence number and port zeroed: by this a recording finds it again."""
    return request[:8] + bytes(8) + request[16:]


def _records(data: bytes, start: int, header: struct.Struct, head: str, record: str) -> Iterator[bytes]:
    """The bytes of each message or attribute, without padding: both begin with their length. Raises ParseError."""
    place = start
    while place < len(data):
        left = len(data) - place
        if left < header.size:
            raise ParseError(f"netlink: {left} bytes where {head} should be")
        length: int = header.unpack_from(data, place)[0]
        if not header.size <= length <= left:
            raise ParseError(f"netlink: {record} of {length} bytes where {left} are left")
        yield data[place : place + length]
        place += (length + 3) & ~3


def _check(payload: bytes) -> None:
    """An error message and the end of a dump carry an errno, negative; 0 is no error."""
    if len(payload) < 4:
        return
    (code,) = struct.unpack_from("=i", payload)
    if code:
        raise NetlinkError(f"the kernel answered {errno.errorcode.get(-code, str(code))}")
