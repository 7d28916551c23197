"""Identities in what is no text: netlink replies and the configuration space, also as lspci dumps it.

Of a netlink reply only those attributes are kept that are known to tell of no one, or whose addresses are written
anew: what is not understood is left out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from probes.host.netlink_socket import RDMA_QUESTIONS
from probes.netlink import HEADER, IS_DONE, IS_ERROR, RDMA, ROUTE, attribute, flagged_attributes, whole_messages
from probes.redact.text import Texts

NEW_LINK, NEW_ADDRESS, NEW_STATISTICS, GET_DCB = 16, 20, 92, 78
BODY_BYTES = {NEW_LINK: 16, NEW_ADDRESS: 8, NEW_STATISTICS: 12, GET_DCB: 4, **dict.fromkeys(RDMA_QUESTIONS, 0)}
# linux/if_link.h, linux/if_addr.h: attributes that say numbers and words
LINK_NUMBERS = frozenset({4, 5, 10, 13, 16, 17, 27, 30, 31, 32, 33, 35, 37, 39, 43, 44, 47, 48, 50, 51, 57})
LINK_TEXTS = frozenset({3, 6, 38, 56})  # IFLA_IFNAME, QDISC, PHYS_PORT_NAME, PARENT_DEV_NAME
LINK_HARDWARE = frozenset({1, 2, 54})  # IFLA_ADDRESS, BROADCAST, PERM_ADDRESS
LINKINFO, INFO_KIND, INFO_DATA, ALT_NAMES, ALT_NAME = 18, 1, 2, 52, 53
INFO_NUMBERS = {b"bond": frozenset(range(1, 23)), b"vlan": frozenset({1, 2, 5})}
VLAN_MAPS = frozenset({3, 4})  # IFLA_VLAN_EGRESS_QOS, INGRESS_QOS: pairs of priorities
ADDRESS_TEXTS, ADDRESS_NUMBERS, ADDRESS_VALUES = frozenset({3}), frozenset({6, 8, 9, 11}), frozenset({1, 2, 4, 5, 7})
# linux/dcbnl.h: DCB_ATTR_IFNAME; IEEE, DCBX, CEE. rdma/rdma_netlink.h: no GUIDs, which nobody reads here
DCB_TEXTS, DCB_NUMBERS = frozenset({1}), frozenset({13, 14, 16})
RDMA_TEXTS, RDMA_NUMBERS = frozenset({2, 5, 51, 67}), frozenset({1, 3, 9, 10, 11, 12, 13, 50, 66})

EXTENDED_AT, SERIAL_CAPABILITY, SERIAL_BYTES = 0x100, 0x0003, 8
DUMP_LINE = re.compile(r"^([0-9a-f]{2,3}): ((?:[0-9a-f]{2} ){15}[0-9a-f]{2})$", re.MULTILINE)

Value = Callable[[int, bytes], bytes | None]  # attribute number, value -> the value to write, or None to leave it out


def hardware_addresses(protocol: int, reply: bytes) -> Iterator[bytes]:
    """Every link-layer address of a reply."""
    for kind, body in _bodies(protocol, reply):
        if kind == NEW_LINK:
            yield from (value for number, value in _attributes(body) if number in LINK_HARDWARE)


def network_addresses(protocol: int, reply: bytes) -> Iterator[bytes]:
    """Every IPv4 or IPv6 address of a reply."""
    for kind, body in _bodies(protocol, reply):
        if kind == NEW_ADDRESS:
            yield from (value for number, value in _attributes(body) if number in ADDRESS_VALUES)


def question(texts: Texts, protocol: int, request: bytes) -> bytes:
    """The request, where it names an interface, with that name as it is written now."""
    named = protocol == ROUTE and len(request) >= HEADER.size and HEADER.unpack_from(request)[1] == GET_DCB
    return netlink(texts, protocol, request) or request if named else request


def netlink(texts: Texts, protocol: int, reply: bytes) -> bytes | None:
    """The reply with pseudonyms; None where it is of a kind that is not understood."""
    parts = []
    for kind, _, message in whole_messages(reply):
        if kind in (IS_ERROR, IS_DONE):  # an errno, and in an error the question
            parts.append(message + bytes(-len(message) % 4))
            continue
        if not _is_understood(protocol, kind):
            return None
        start = HEADER.size + BODY_BYTES[kind]
        rest = _written(message[start:], _values(texts)[kind])
        length = start + len(rest)
        parts.append(struct.pack("=I", length) + message[4:start] + rest)
    return b"".join(parts)


def config_space(texts: Texts, content: bytes) -> bytes:
    """A function's configuration space with another device serial number."""
    at = serial_at(content)
    if at is None:
        return content
    serial = texts.names.guid(content[at : at + SERIAL_BYTES][::-1])[::-1]
    return content[:at] + serial + content[at + SERIAL_BYTES :]


def serial_at(content: bytes) -> int | None:
    """Where the device serial number of a configuration space begins; its lowest byte stands first."""
    at = EXTENDED_AT
    for _ in range((4096 - EXTENDED_AT) // 8):  # as many capabilities as there is room for: then it is a loop
        if not EXTENDED_AT <= at <= len(content) - 4 - SERIAL_BYTES:
            return None
        (header,) = struct.unpack_from("<I", content, at)
        if header & 0xFFFF == SERIAL_CAPABILITY:
            return at + 4
        at = header >> 20 & 0xFFC
    return None


def dumps(texts: Texts, text: str) -> str:
    """The output of lspci -xxxx, each function's dump with another device serial number."""
    return "\n\n".join(_dump(texts, block) if DUMP_LINE.search(block) else block for block in text.split("\n\n"))


def _dump(texts: Texts, block: str) -> str:
    content = b"".join(bytes.fromhex(match[2]) for match in DUMP_LINE.finditer(block))
    new = config_space(texts, content)
    rows = (new[i : i + 16].hex(" ") for i in range(0, len(new), 16))
    return DUMP_LINE.sub(lambda match: f"{match[1]}: {next(rows)}", block)


def _values(texts: Texts) -> dict[int, Value]:
    def link(number: int, value: bytes) -> bytes | None:
        if number in LINK_HARDWARE:
            return _hardware(texts, value)
        if number in LINK_TEXTS:
            return texts.content(value)
        if number == ALT_NAMES:
            return _written(value, lambda inner, name: texts.content(name) if inner == ALT_NAME else None)
        if number == LINKINFO:
            return _information(value)
        return value if number in LINK_NUMBERS else None

    def address(number: int, value: bytes) -> bytes | None:
        if number in ADDRESS_VALUES:
            return {4: texts.names.ipv4, 16: texts.names.ipv6}.get(len(value), lambda _: None)(value)
        if number in ADDRESS_TEXTS:
            return texts.content(value)
        return value if number in ADDRESS_NUMBERS else None

    def named(names: frozenset[int], numbers: frozenset[int]) -> Value:
        return lambda number, value: texts.content(value) if number in names else value if number in numbers else None

    rdma = dict.fromkeys(RDMA_QUESTIONS, named(RDMA_TEXTS, RDMA_NUMBERS))
    own = {NEW_LINK: link, NEW_ADDRESS: address, NEW_STATISTICS: lambda _, value: value}
    return own | rdma | {GET_DCB: named(DCB_TEXTS, DCB_NUMBERS)}


def _is_understood(protocol: int, kind: int) -> bool:
    return kind in BODY_BYTES and protocol == (RDMA if kind in RDMA_QUESTIONS else ROUTE)


def _hardware(texts: Texts, value: bytes) -> bytes | None:
    ways = {6: texts.names.mac, 8: texts.names.guid, 20: texts.names.infiniband, 4: texts.names.ipv4}
    return ways[len(value)](value) if len(value) in ways else None


def _information(value: bytes) -> bytes:
    """What kind of software interface it is, and the numbers of bonds and VLANs: others hold addresses."""
    kind = dict(_attributes(value)).get(INFO_KIND, b"").rstrip(b"\0")
    maps = VLAN_MAPS if kind == b"vlan" else frozenset[int]()
    numbers = INFO_NUMBERS.get(kind, frozenset()) | maps

    def inner(number: int, data: bytes) -> bytes | None:
        if number == INFO_DATA:
            return _written(data, lambda each, it: it if each in numbers and (len(it) <= 8 or each in maps) else None)
        return data if number == INFO_KIND else None

    return _written(value, inner)


def _bodies(protocol: int, reply: bytes) -> Iterator[tuple[int, bytes]]:
    for kind, _, message in whole_messages(reply):
        if _is_understood(protocol, kind):
            yield kind, message[HEADER.size + BODY_BYTES[kind] :]


def _written(data: bytes, new: Value) -> bytes:
    parts = []
    for number, value, kind in flagged_attributes(data):
        kept = new(number, value)
        if kept is not None:
            parts.append(attribute(kind, kept))
    return b"".join(parts)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, value) for number, value, _ in flagged_attributes(data))
