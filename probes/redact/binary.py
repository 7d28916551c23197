"""Identities in what is no text: netlink replies, answers to ethtool, and the configuration space, also as lspci dumps
it.

Of a reply only those attributes are kept that are known to name no one, or whose addresses are written again: what is
not understood is left out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from probes.ethtool import netlink as genl
from probes.host.netlink_socket import RDMA_QUESTIONS
from probes.netlink import (
    CONTROL,
    GENERIC_HEAD,
    HEADER,
    IS_DONE,
    IS_ERROR,
    NEW_FAMILY,
    RDMA,
    ROUTE,
    attribute,
    attributes,
    flagged_attributes,
    parse_unsigned,
    whole_messages,
)
from probes.optics.eeprom import CMIS, MEMORY, SFF8472, SFF8636
from probes.redact.text import TextRedactor
from probes.text import ParseError, lazy_pattern

NEW_LINK, NEW_ADDRESS, NEW_STATISTICS, GET_DCB = 16, 20, 92, 78
BODY_BYTES = {NEW_LINK: 16, NEW_ADDRESS: 8, NEW_STATISTICS: 12, GET_DCB: 4, **dict.fromkeys(RDMA_QUESTIONS, 0)}
# linux/if_link.h, linux/if_addr.h: attributes that state numbers and words
LINK_NUMBERS = frozenset({4, 5, 10, 13, 16, 17, 27, 30, 31, 32, 33, 35, 37, 39, 43, 44, 47, 48, 50, 51, 57})
LINK_TEXTS = frozenset({3, 6, 38, 56})  # IFLA_IFNAME, QDISC, PHYS_PORT_NAME, PARENT_DEV_NAME
LINK_HARDWARE = frozenset({1, 2, 54})  # IFLA_ADDRESS, BROADCAST, PERM_ADDRESS
LINKINFO, INFO_KIND, INFO_DATA, ALT_NAMES, ALT_NAME = 18, 1, 2, 52, 53
INFO_NUMBERS = {b"bond": frozenset(range(1, 23)), b"vlan": frozenset({1, 2, 5})}
VLAN_MAPS = frozenset({3, 4})  # IFLA_VLAN_EGRESS_QOS, INGRESS_QOS: pairs of priorities
ADDRESS_TEXTS, ADDRESS_NUMBERS, ADDRESS_VALUES = frozenset({3}), frozenset({6, 8, 9, 11}), frozenset({1, 2, 4, 5, 7})
# linux/dcbnl.h: DCB_ATTR_IFNAME; IEEE, DCBX, CEE. rdma/rdma_netlink.h: no GUIDs, which nothing reads here
DCB_TEXTS, DCB_NUMBERS = frozenset({1}), frozenset({13, 14, 16})
RDMA_TEXTS, RDMA_NUMBERS = frozenset({2, 5, 51, 67}), frozenset({1, 3, 9, 10, 11, 12, 13, 50, 66})

EXTENDED_AT, SERIAL_CAPABILITY, SERIAL_BYTES = 0x100, 0x0003, 8
DUMP_LINE = lazy_pattern(r"^([0-9a-f]{2,3}): ((?:[0-9a-f]{2} ){15}[0-9a-f]{2})$", re.MULTILINE)

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


def rewrite_request(texts: TextRedactor, protocol: int, request: bytes) -> bytes:
    """The request, where it names an interface, with that name as it is written now."""
    named = protocol == ROUTE and len(request) >= HEADER.size and HEADER.unpack_from(request)[1] == GET_DCB
    return rewrite_netlink(texts, protocol, request) or request if named else request


def rewrite_netlink(texts: TextRedactor, protocol: int, reply: bytes) -> bytes | None:
    """The reply with pseudonyms; None where it is of a kind that is not understood."""
    parts = []
    for kind, _, message in whole_messages(reply):
        if kind in (IS_ERROR, IS_DONE):  # an errno, and in an error the question
            parts.append(message + bytes(-len(message) % 4))
            continue
        if not _is_understood(protocol, kind):
            return None
        start = HEADER.size + BODY_BYTES[kind]
        rest = _rewrite_attributes(message[start:], _values(texts)[kind])
        length = start + len(rest)
        parts.append(struct.pack("=I", length) + message[4:start] + rest)
    return b"".join(parts)


def rewrite_config_space(texts: TextRedactor, content: bytes) -> bytes:
    """A function's configuration space with another device serial number."""
    at = serial_at(content)
    if at is None:
        return content
    serial = texts.names.guid(content[at : at + SERIAL_BYTES][::-1])[::-1]
    return content[:at] + serial + content[at + SERIAL_BYTES :]


def serial_at(content: bytes) -> int | None:
    """Where the device serial number of a configuration space begins; its lowest byte is first."""
    at = EXTENDED_AT
    for _ in range((4096 - EXTENDED_AT) // 8):  # as many capabilities as there is room for: then it is a loop
        if not EXTENDED_AT <= at <= len(content) - 4 - SERIAL_BYTES:
            return None
        (header,) = struct.unpack_from("<I", content, at)
        if header & 0xFFFF == SERIAL_CAPABILITY:
            return at + 4
        at = header >> 20 & 0xFFC
    return None


def rewrite_lspci_dumps(texts: TextRedactor, text: str) -> str:
    """The output of lspci -xxxx, each function's dump with another device serial number."""
    return "\n\n".join(_dump(texts, block) if DUMP_LINE.search(block) else block for block in text.split("\n\n"))


def _dump(texts: TextRedactor, block: str) -> str:
    content = b"".join(bytes.fromhex(match[2]) for match in DUMP_LINE.finditer(block))
    new = rewrite_config_space(texts, content)
    rows = (new[i : i + 16].hex(" ") for i in range(0, len(new), 16))
    return DUMP_LINE.sub(lambda match: f"{match[1]}: {next(rows)}", block)


def _values(texts: TextRedactor) -> dict[int, Value]:
    def link(number: int, value: bytes) -> bytes | None:
        if number in LINK_HARDWARE:
            return _hardware(texts, value)
        if number in LINK_TEXTS:
            return texts.content(value)
        if number == ALT_NAMES:
            return _rewrite_attributes(value, lambda inner, name: texts.content(name) if inner == ALT_NAME else None)
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


def _hardware(texts: TextRedactor, value: bytes) -> bytes | None:
    ways = {6: texts.names.mac, 8: texts.names.guid, 20: texts.names.infiniband, 4: texts.names.ipv4}
    return ways[len(value)](value) if len(value) in ways else None


def _information(value: bytes) -> bytes:
    """What kind of software interface it is, and the numbers of bonds and VLANs: others hold addresses."""
    kind = dict(_attributes(value)).get(INFO_KIND, b"").rstrip(b"\0")
    maps = VLAN_MAPS if kind == b"vlan" else frozenset[int]()
    numbers = INFO_NUMBERS.get(kind, frozenset()) | maps

    def inner(number: int, data: bytes) -> bytes | None:
        if number == INFO_DATA:
            return _rewrite_attributes(
                data, lambda code, it: it if code in numbers and (len(it) <= 8 or code in maps) else None
            )
        return data if number == INFO_KIND else None

    return _rewrite_attributes(value, inner)


def _bodies(protocol: int, reply: bytes) -> Iterator[tuple[int, bytes]]:
    for kind, _, message in whole_messages(reply):
        if _is_understood(protocol, kind):
            yield kind, message[HEADER.size + BODY_BYTES[kind] :]


def _rewrite_attributes(data: bytes, new: Value) -> bytes:
    parts = []
    for number, value, kind in flagged_attributes(data):
        attribute_bytes = new(number, value)
        if attribute_bytes is not None:
            parts.append(attribute(kind, attribute_bytes))
    return b"".join(parts)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    return ((number, value) for number, value, _ in flagged_attributes(data))


DRIVER_INFO, DRIVER_TEXT_BYTES, DRIVER_TEXTS = 0x03, 32, 5  # GDRVINFO: driver, version, firmware, bus, ROM
MODULE_SERIAL_BYTES = 16
UPPER = 128  # page 0, where the names and numbers of QSFP and later modules are
KEPT = {  # attributes but the header and the module's memory, by the reply's command
    genl.LINKMODES_REPLY: frozenset(range(2, 11)),
    genl.PAUSE_REPLY: frozenset(range(2, 7)),
    genl.FEC_REPLY: frozenset(range(2, 6)),
    genl.EEPROM_REPLY: frozenset(),
}
FAMILY_KEPT = frozenset(range(1, 6))  # CTRL_ATTR_FAMILY_ID to MAXATTR


def rewrite_generic_netlink(texts: TextRedactor, request: bytes, reply: bytes) -> bytes | None:
    """A reply of generic netlink with pseudonyms; None where it is of a kind that is not understood."""
    parts = []
    for kind, _, message in whole_messages(reply):
        if kind in (IS_ERROR, IS_DONE):
            parts.append(message + bytes(-len(message) % 4))
            continue
        start = HEADER.size + GENERIC_HEAD.size
        try:
            rest = _rewrite_generic(texts, request, kind, message[HEADER.size : start], message[start:])
        except ParseError:
            return None
        if rest is None:
            return None
        parts.append(struct.pack("=I", start + len(rest)) + message[4:start] + rest)
    return b"".join(parts)


def rewrite_ioctl(texts: TextRedactor, request: bytes, reply: bytes) -> bytes:
    """An answer to an ioctl with pseudonyms: only what a driver states of itself holds words."""
    if request[:4] != struct.pack("=I", DRIVER_INFO):
        return reply
    new = reply
    for place in range(4, 4 + DRIVER_TEXTS * DRIVER_TEXT_BYTES, DRIVER_TEXT_BYTES):
        text = reply[place : place + DRIVER_TEXT_BYTES].split(b"\0", 1)[0]
        field = texts.content(text)[: DRIVER_TEXT_BYTES - 1].ljust(DRIVER_TEXT_BYTES, b"\0")
        new = new[:place] + field + new[place + DRIVER_TEXT_BYTES :]
    return new[: len(reply)]


def module_serial(request: bytes, reply: bytes) -> str | None:
    """The serial number in a part of a module's memory; None where it has none there."""
    try:
        data = genl.parse_eeprom(reply)
        at = _module_serial_at(request, data)
    except ParseError:
        return None
    return data[at : at + MODULE_SERIAL_BYTES].decode("latin-1").strip(" \0") if at else None


def _rewrite_generic(texts: TextRedactor, request: bytes, kind: int, head: bytes, body: bytes) -> bytes | None:
    command = head[0] if head else None
    if kind == CONTROL:
        return _filter_attributes(body, FAMILY_KEPT) if command == NEW_FAMILY else None
    if command not in KEPT:
        return None
    payloads = attributes(body)
    inner = attributes(payloads.get(genl.HEADER, b""))
    header = _attribute_or_nothing(genl.DEVICE_INDEX, inner.get(genl.DEVICE_INDEX, b""))
    header += _attribute_or_nothing(genl.DEVICE_NAME, texts.content(inner.get(genl.DEVICE_NAME, b"")))
    new = _attribute_or_nothing(genl.HEADER | genl.NESTED, header) + _filter_attributes(body, KEPT[command])
    data = payloads.get(genl.EEPROM_DATA) if command == genl.EEPROM_REPLY else None
    if not data:
        return new
    at = _module_serial_at(request, data)
    if at is None:
        return None
    if at:
        field = data[at : at + MODULE_SERIAL_BYTES].decode("latin-1").strip(" \0")
        named = texts.names.serial(field) if field else ""
        data = (
            data[:at]
            + named.encode("latin-1")[:MODULE_SERIAL_BYTES].ljust(MODULE_SERIAL_BYTES)
            + data[at + MODULE_SERIAL_BYTES :]
        )
    return new + _attribute_or_nothing(genl.EEPROM_DATA, data)


def _module_serial_at(request: bytes, data: bytes) -> int | None:
    """Where the serial number begins in what was read; 0: there is none; None: that is not known."""
    payloads = attributes(request, HEADER.size + GENERIC_HEAD.size)
    page, offset, address = (
        parse_unsigned(payloads.get(kind)) for kind in (genl.EEPROM_PAGE, genl.EEPROM_OFFSET, genl.EEPROM_ADDRESS)
    )
    if address != MEMORY or page != 0:
        return 0
    identifier = data[0]
    if offset == UPPER and identifier in CMIS:
        return 38
    if (offset == UPPER and identifier in SFF8636) or (offset == 0 and identifier in SFF8472 and len(data) >= 84):
        return 68
    return 0 if offset == 0 and len(data) <= UPPER else None


def _filter_attributes(body: bytes, numbers: frozenset[int]) -> bytes:
    """Attributes as they stand, with their flags, without those that are not kept."""
    return b"".join(attribute(kind, value) for number, value, kind in flagged_attributes(body) if number in numbers)


def _attribute_or_nothing(kind: int, value: bytes) -> bytes:
    return attribute(kind, value) if value else b""
