"""ethtool over generic netlink: requests made, replies read. No socket here; the door has that.

Headers: linux/genetlink.h, linux/ethtool_netlink.h; kernel page Documentation/networking/ethtool-netlink.rst. Requests
name an interface by its index, so that no name stands in a recording's questions.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from probes.ethtool.link_modes import FEC_MODES, fastest, set_bits
from probes.netlink import GENERIC_HEAD, IS_REQUEST, attribute, attributes, generic_attributes, request
from probes.text import Unparsable

FAMILY = "ethtool"

LINKMODES_GET, PAUSE_GET, FEC_GET, EEPROM_GET = 4, 21, 29, 31
LINKMODES_REPLY, PAUSE_REPLY, FEC_REPLY, EEPROM_REPLY = 4, 22, 30, 32

HEADER, DEVICE_INDEX, DEVICE_NAME, FLAGS = 1, 1, 2, 3  # ETHTOOL_A_*_HEADER, ETHTOOL_A_HEADER_*
COMPACT, WITH_STATISTICS = 1, 4  # ETHTOOL_FLAG_*
NESTED = 0x8000
BITS_SIZE, BITS_LIST, BITS_VALUE, BITS_MASK = 2, 3, 4, 5  # ETHTOOL_A_BITSET_*
PAUSE_AUTONEG, PAUSE_RX, PAUSE_TX = 2, 3, 4
MODES_AUTONEG, MODES_OURS, MODES_SPEED = 2, 3, 5
FEC_CONFIGURED, FEC_AUTO, FEC_ACTIVE, FEC_STATISTICS = 2, 3, 4, 5
FEC_COUNTERS = {2: "fec_corrected_blocks", 3: "fec_uncorrectable_blocks", 4: "fec_corrected_bits"}
EEPROM_OFFSET, EEPROM_LENGTH, EEPROM_PAGE, EEPROM_BANK, EEPROM_ADDRESS, EEPROM_DATA = 2, 3, 4, 5, 6, 7
NOT_KNOWN = 2**64 - 1  # ETHTOOL_STAT_NOT_SET


class LinkModes(NamedTuple):
    """What a port can do, by its driver. None: not said."""

    autoneg: bool | None = None
    max_speed_mbit_s: int | None = None
    fec_supported: tuple[str, ...] = ()
    speed_mbit_s: int | None = None  # what runs, of a saved output: on a live host the kernel says it elsewhere


class Pause(NamedTuple):
    """Global pause."""

    rx: bool | None = None
    tx: bool | None = None
    autoneg: bool | None = None


class Fec(NamedTuple):
    """Forward error correction: off | baser | rs | llrs."""

    active: str | None = None
    configured: tuple[str, ...] = ()
    auto: bool | None = None
    counters: Mapping[str, int] = {}  # FEC_COUNTERS


def get_request(family: int, command: int, index: int) -> bytes:
    """PAUSE_GET, LINKMODES_GET or FEC_GET (with its counters) of one interface."""
    flags = COMPACT | (WITH_STATISTICS if command == FEC_GET else 0)
    return request(family, IS_REQUEST, GENERIC_HEAD.pack(command, 1, 0) + _header(index, flags))


def eeprom_request(family: int, index: int, page: int, offset: int, length: int, address: int = 0x50) -> bytes:
    """Bytes of one page of the module; those of a page are 128 to 255, those of the lower memory 0 to 127."""
    numbers = struct.pack("=I", offset), struct.pack("=I", length), bytes([page]), bytes(1), bytes([address])
    asked = b"".join(attribute(kind, value) for kind, value in enumerate(numbers, EEPROM_OFFSET))
    return request(family, IS_REQUEST, GENERIC_HEAD.pack(EEPROM_GET, 1, 0) + _header(index, 0) + asked)


def parse_pause(reply: bytes) -> Pause:
    """PAUSE_GET's reply. Raises Unparsable."""
    said = generic_attributes(reply, PAUSE_REPLY)
    return Pause(_flag(said.get(PAUSE_RX)), _flag(said.get(PAUSE_TX)), _flag(said.get(PAUSE_AUTONEG)))


def parse_link_modes(reply: bytes) -> LinkModes:
    """LINKMODES_GET's reply: the mask of "ours" is what the port supports, the value what it offers. Raises
    Unparsable."""
    said = generic_attributes(reply, LINKMODES_REPLY)
    supported = set_bits(attributes(said.get(MODES_OURS, b"")).get(BITS_MASK, b""))
    fec = tuple(word for bit, word in FEC_MODES.items() if bit in supported)
    return LinkModes(_flag(said.get(MODES_AUTONEG)), fastest(supported), fec)


def parse_fec(reply: bytes) -> Fec:
    """FEC_GET's reply. Raises Unparsable."""
    said = generic_attributes(reply, FEC_REPLY)
    modes = set_bits(attributes(said.get(FEC_CONFIGURED, b"")).get(BITS_VALUE, b""))
    counters: dict[str, int] = {}
    for kind, value in attributes(said.get(FEC_STATISTICS, b"")).items():
        if kind in FEC_COUNTERS and len(value) >= 8:  # the sum; then a number a lane
            (number,) = struct.unpack_from("=Q", value)
            counters |= {FEC_COUNTERS[kind]: number} if number != NOT_KNOWN else {}
    return Fec(
        active=FEC_MODES.get(unsigned(said.get(FEC_ACTIVE)) or 0),
        configured=tuple(word for bit, word in FEC_MODES.items() if bit in modes),
        auto=_flag(said.get(FEC_AUTO)),
        counters=counters,
    )


def parse_eeprom(reply: bytes) -> bytes:
    """MODULE_EEPROM_GET's bytes. Raises Unparsable."""
    data = generic_attributes(reply, EEPROM_REPLY).get(EEPROM_DATA)
    if not data:
        raise Unparsable("ethtool: no bytes of the module in the answer")
    return data


def _header(index: int, flags: int) -> bytes:
    inner = attribute(DEVICE_INDEX, struct.pack("=I", index))
    inner += attribute(FLAGS, struct.pack("=I", flags)) if flags else b""
    return attribute(HEADER | NESTED, inner)


def unsigned(raw: bytes | None) -> int | None:
    """A number of one, two, four or eight bytes."""
    form = {1: "=B", 2: "=H", 4: "=I", 8: "=Q"}.get(len(raw)) if raw is not None else None
    return int(struct.unpack(form, raw)[0]) if form and raw is not None else None


def _flag(raw: bytes | None) -> bool | None:
    number = unsigned(raw)
    return None if number is None else bool(number)
