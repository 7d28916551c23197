"""ethtool over generic netlink: requests built, replies parsed. The socket is in `probes/host/netlink_socket.py`.

Headers: linux/genetlink.h, linux/ethtool_netlink.h, linux/ethtool.h (link modes by their bits); kernel page
Documentation/networking/ethtool-netlink.rst. Requests name an interface by its index, so that no name is in a
recording's questions.
"""

import struct
from collections.abc import Iterable, Mapping

from probes.named_tuple import NamedTuple
from probes.netlink import GENERIC_HEAD, IS_REQUEST, attribute, attributes, generic_attributes, parse_unsigned, request
from probes.text import require

FEC_MODES = {49: "off", 50: "rs", 51: "baser", 74: "llrs"}
SPEEDS_MBIT_S = {
    10: (0, 1, 92, 99, 100, 101, 102),
    100: (2, 3, 67, 90, 91),
    1_000: (4, 5, 17, 41, 68),
    2_500: (15, 47),
    5_000: (48,),
    10_000: (12, 18, 19, 20, *range(42, 47)),
    20_000: (21, 22),
    25_000: (31, 32, 33),
    40_000: range(23, 27),
    50_000: (34, 35, 40, *range(52, 57)),
    56_000: range(27, 31),
    100_000: (*range(36, 40), *range(57, 62), *range(75, 80)),
    200_000: (*range(62, 67), *range(80, 85), *range(103, 109)),
    400_000: (*range(69, 74), *range(85, 90), *range(109, 115)),
    800_000: (*range(93, 99), *range(115, 121)),
    1_600_000: range(121, 125),
}
_SPEED_OF = {bit: speed for speed, bits in SPEEDS_MBIT_S.items() for bit in bits}
BITS_LIMIT = 1024


def set_bits(raw: bytes) -> frozenset[int]:
    """Numbers of the bits that are set in a bitmap of 32-bit words.

    >>> sorted(set_bits((1 << 50 | 1 << 6).to_bytes(8, "little")))
    [6, 50]
    """
    import sys

    words = (int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, min(len(raw), BITS_LIMIT // 8), 4))
    return frozenset(32 * place + bit for place, word in enumerate(words) for bit in range(32) if word >> bit & 1)


def fastest(modes: Iterable[int]) -> int | None:
    """Mbit/s of the fastest mode; None where no mode is known.

    >>> fastest({6, 13, 38, 66}), fastest({6})
    (200000, None)
    """
    return max((_SPEED_OF[bit] for bit in modes if bit in _SPEED_OF), default=None)


FAMILY = "ethtool"

LINKMODES_GET, PAUSE_GET, FEC_GET, EEPROM_GET = 4, 21, 29, 31
LINKMODES_REPLY, PAUSE_REPLY, FEC_REPLY, EEPROM_REPLY = 4, 22, 30, 32

HEADER, DEVICE_INDEX, DEVICE_NAME, FLAGS = 1, 1, 2, 3  # ETHTOOL_A_*_HEADER, ETHTOOL_A_HEADER_*
COMPACT, WITH_STATISTICS = 1, 4  # ETHTOOL_FLAG_*
NESTED = 0x8000
BITS_SIZE, BITS_VALUE, BITS_MASK = 2, 4, 5  # ETHTOOL_A_BITSET_*
PAUSE_AUTONEG, PAUSE_RX, PAUSE_TX = 2, 3, 4
MODES_AUTONEG, MODES_OURS, MODES_SPEED = 2, 3, 5
FEC_CONFIGURED, FEC_AUTO, FEC_ACTIVE, FEC_STATISTICS = 2, 3, 4, 5
FEC_COUNTERS = {2: "fec_corrected_blocks", 3: "fec_uncorrectable_blocks", 4: "fec_corrected_bits"}
EEPROM_OFFSET, EEPROM_LENGTH, EEPROM_PAGE, EEPROM_BANK, EEPROM_ADDRESS, EEPROM_DATA = 2, 3, 4, 5, 6, 7
NOT_KNOWN = 2**64 - 1  # ETHTOOL_STAT_NOT_SET: a counter that the driver could not read


class LinkModes(NamedTuple):
    """What a port can do, by its driver. None: not reported."""

    autoneg: bool | None = None
    max_speed_mbit_s: int | None = None
    fec_supported: tuple[str, ...] = ()
    speed_mbit_s: int | None = None  # what runs, of a saved output: on a live host the kernel states it elsewhere
    has_link: bool | None = None  # of a saved output, likewise


class PauseReading(NamedTuple):
    """Global pause."""

    rx: bool | None = None
    tx: bool | None = None
    autoneg: bool | None = None


class FecReading(NamedTuple):
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
    attributes_sent = b"".join(attribute(kind, value) for kind, value in enumerate(numbers, EEPROM_OFFSET))
    return request(family, IS_REQUEST, GENERIC_HEAD.pack(EEPROM_GET, 1, 0) + _header(index, 0) + attributes_sent)


def parse_pause(reply: bytes) -> PauseReading:
    """PAUSE_GET's reply. Raises ParseError."""
    values = generic_attributes(reply, PAUSE_REPLY)
    return PauseReading(_flag(values.get(PAUSE_RX)), _flag(values.get(PAUSE_TX)), _flag(values.get(PAUSE_AUTONEG)))


def parse_link_modes(reply: bytes) -> LinkModes:
    """LINKMODES_GET's reply: the mask of "ours" is what the port supports, the value what it offers. Raises
    ParseError."""
    values = generic_attributes(reply, LINKMODES_REPLY)
    supported = set_bits(attributes(values.get(MODES_OURS, b"")).get(BITS_MASK, b""))
    fec = tuple(word for bit, word in FEC_MODES.items() if bit in supported)
    return LinkModes(_flag(values.get(MODES_AUTONEG)), fastest(supported), fec)


def parse_fec(reply: bytes) -> FecReading:
    """FEC_GET's reply. Raises ParseError."""
    values = generic_attributes(reply, FEC_REPLY)
    modes = set_bits(attributes(values.get(FEC_CONFIGURED, b"")).get(BITS_VALUE, b""))
    counters: dict[str, int] = {}
    for kind, value in attributes(values.get(FEC_STATISTICS, b"")).items():
        if kind in FEC_COUNTERS and len(value) >= 8:  # the sum; then a number a lane
            (number,) = struct.unpack_from("=Q", value)
            counters |= {FEC_COUNTERS[kind]: number} if number != NOT_KNOWN else {}
    return FecReading(
        active=FEC_MODES.get(parse_unsigned(values.get(FEC_ACTIVE)) or 0),
        configured=tuple(word for bit, word in FEC_MODES.items() if bit in modes),
        auto=_flag(values.get(FEC_AUTO)),
        counters=counters,
    )


def parse_eeprom(reply: bytes) -> bytes:
    """MODULE_EEPROM_GET's bytes. Raises ParseError."""
    data = generic_attributes(reply, EEPROM_REPLY).get(EEPROM_DATA)
    return require(data, "ethtool: no bytes of the module in the answer")


def _header(index: int, flags: int) -> bytes:
    inner = attribute(DEVICE_INDEX, struct.pack("=I", index))
    inner += attribute(FLAGS, struct.pack("=I", flags)) if flags else b""
    return attribute(HEADER | NESTED, inner)


def _flag(raw: bytes | None) -> bool | None:
    number = parse_unsigned(raw)
    return None if number is None else bool(number)
