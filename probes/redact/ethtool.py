"""Identities in ethtool's answers: the serial number in a module's memory, and names of interfaces.

What is not understood is left out, as with all netlink replies.
"""

from __future__ import annotations

import struct

from probes.ethtool import netlink as genl
from probes.netlink import (
    CONTROL,
    GENERIC_HEAD,
    HEADER,
    IS_DONE,
    IS_ERROR,
    NEW_FAMILY,
    attribute,
    attributes,
    flagged_attributes,
    whole_messages,
)
from probes.optics.eeprom import CMIS, MEMORY, SFF8472, SFF8636
from probes.redact.text import Texts
from probes.text import Unparsable

DRIVER_INFO, DRIVER_TEXT_BYTES, DRIVER_TEXTS = 0x03, 32, 5  # GDRVINFO: driver, version, firmware, bus, ROM
SERIAL_BYTES = 16
UPPER = 128  # page 0, where the names and numbers of QSFP and later modules are
KEPT = {  # attributes but the header and the module's memory, by the reply's command
    genl.LINKMODES_REPLY: frozenset(range(2, 11)),
    genl.PAUSE_REPLY: frozenset(range(2, 7)),
    genl.FEC_REPLY: frozenset(range(2, 6)),
    genl.EEPROM_REPLY: frozenset(),
}
FAMILY_KEPT = frozenset(range(1, 6))  # CTRL_ATTR_FAMILY_ID to MAXATTR


def netlink(texts: Texts, request: bytes, reply: bytes) -> bytes | None:
    """A reply of generic netlink with pseudonyms; None where it is of a kind that is not understood."""
    parts = []
    for kind, _, message in whole_messages(reply):
        if kind in (IS_ERROR, IS_DONE):
            parts.append(message + bytes(-len(message) % 4))
            continue
        start = HEADER.size + GENERIC_HEAD.size
        try:
            rest = _body(texts, request, kind, message[HEADER.size : start], message[start:])
        except Unparsable:
            return None
        if rest is None:
            return None
        parts.append(struct.pack("=I", start + len(rest)) + message[4:start] + rest)
    return b"".join(parts)


def ioctl(texts: Texts, request: bytes, reply: bytes) -> bytes:
    """An answer to an ioctl with pseudonyms: only what a driver says of itself holds words."""
    if request[:4] != struct.pack("=I", DRIVER_INFO):
        return reply
    new = reply
    for place in range(4, 4 + DRIVER_TEXTS * DRIVER_TEXT_BYTES, DRIVER_TEXT_BYTES):
        text = reply[place : place + DRIVER_TEXT_BYTES].split(b"\0", 1)[0]
        field = texts.content(text)[: DRIVER_TEXT_BYTES - 1].ljust(DRIVER_TEXT_BYTES, b"\0")
        new = new[:place] + field + new[place + DRIVER_TEXT_BYTES :]
    return new[: len(reply)]


def serial(request: bytes, reply: bytes) -> str | None:
    """The serial number in a part of a module's memory; None where it has none there."""
    try:
        data = genl.parse_eeprom(reply)
        at = _serial_at(request, data)
    except Unparsable:
        return None
    return data[at : at + SERIAL_BYTES].decode("latin-1").strip(" \0") if at else None


def _body(texts: Texts, request: bytes, kind: int, head: bytes, body: bytes) -> bytes | None:
    command = head[0] if head else None
    if kind == CONTROL:
        return _kept(body, FAMILY_KEPT) if command == NEW_FAMILY else None
    if command not in KEPT:
        return None
    said = attributes(body)
    inner = attributes(said.get(genl.HEADER, b""))
    header = _one(genl.DEVICE_INDEX, inner.get(genl.DEVICE_INDEX, b""))
    header += _one(genl.DEVICE_NAME, texts.content(inner.get(genl.DEVICE_NAME, b"")))
    new = _one(genl.HEADER | genl.NESTED, header) + _kept(body, KEPT[command])
    data = said.get(genl.EEPROM_DATA) if command == genl.EEPROM_REPLY else None
    if not data:
        return new
    at = _serial_at(request, data)
    if at is None:
        return None
    if at:
        field = data[at : at + SERIAL_BYTES].decode("latin-1").strip(" \0")
        named = texts.names.serial(field) if field else ""
        data = data[:at] + named.encode("latin-1")[:SERIAL_BYTES].ljust(SERIAL_BYTES) + data[at + SERIAL_BYTES :]
    return new + _one(genl.EEPROM_DATA, data)


def _serial_at(request: bytes, data: bytes) -> int | None:
    """Where the serial number begins in what was read; 0: there is none; None: that is not known."""
    asked = attributes(request, HEADER.size + GENERIC_HEAD.size)
    page, offset, address = (
        genl.unsigned(asked.get(kind)) for kind in (genl.EEPROM_PAGE, genl.EEPROM_OFFSET, genl.EEPROM_ADDRESS)
    )
    if address != MEMORY or page != 0:
        return 0
    identifier = data[0]
    if offset == UPPER and identifier in CMIS:
        return 38
    if (offset == UPPER and identifier in SFF8636) or (offset == 0 and identifier in SFF8472 and len(data) >= 84):
        return 68
    return 0 if offset == 0 and len(data) <= UPPER else None


def _kept(body: bytes, numbers: frozenset[int]) -> bytes:
    """Attributes as they stand, with their flags, without those that are not kept."""
    return b"".join(attribute(kind, value) for number, value, kind in flagged_attributes(body) if number in numbers)


def _one(kind: int, value: bytes) -> bytes:
    return attribute(kind, value) if value else b""
