"""ethtool by ioctl (SIOCETHTOOL): the structs of linux/ethtool.h as bytes, requests made and replies read.

Statistics have no other way for all drivers; pause and FEC are asked so where the kernel has no ethtool netlink.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from probes.ethtool.netlink import Fec, Pause
from probes.text import Unparsable

GDRVINFO, GPAUSEPARAM, GSTRINGS, GSTATS, GSSET_INFO, GFECPARAM = 0x03, 0x12, 0x1B, 0x1D, 0x37, 0x50
STATISTICS_SET = 1  # ETH_SS_STATS
NAME_BYTES = 32  # ETH_GSTRING_LEN
MOST_COUNTERS = 32_768

DRIVER = struct.Struct("=I32s32s32s32s32s12s5I")
SET_INFO = struct.Struct("=IIQI")
STRINGS = struct.Struct("=III")  # command, set, how many; then the names
COUNTS = struct.Struct("=II")  # command, how many; then 64-bit numbers
PAUSE = struct.Struct("=IIII")  # command, autoneg, rx, tx
FEC = struct.Struct("=IIII")  # command, active, configured, reserved
FEC_BITS = {0x04: "off", 0x08: "rs", 0x10: "baser", 0x20: "llrs"}
FEC_AUTO = 0x02


class DriverInfo(NamedTuple):
    """What the driver says of itself."""

    driver: str | None
    version: str | None
    firmware: str | None


def driver_request() -> bytes:
    """GDRVINFO."""
    return struct.pack("=I", GDRVINFO).ljust(DRIVER.size, b"\0")


def count_request() -> bytes:
    """GSSET_INFO: how many counters the driver has."""
    return SET_INFO.pack(GSSET_INFO, 0, 1 << STATISTICS_SET, 0)


def names_request(count: int) -> bytes:
    """GSTRINGS: the names of the counters. The kernel may be told how many are expected."""
    return STRINGS.pack(GSTRINGS, STATISTICS_SET, count)


def values_request(count: int) -> bytes:
    """GSTATS: the counters."""
    return COUNTS.pack(GSTATS, count)


def pause_request() -> bytes:
    """GPAUSEPARAM."""
    return PAUSE.pack(GPAUSEPARAM, 0, 0, 0)


def fec_request() -> bytes:
    """GFECPARAM."""
    return FEC.pack(GFECPARAM, 0, 0, 0)


def parse_driver(reply: bytes) -> DriverInfo:
    """GDRVINFO's answer. Raises Unparsable."""
    _, driver, version, firmware, *_ = _unpacked(DRIVER, reply)
    return DriverInfo(_text(driver), _text(version), _text(firmware))


def parse_count(reply: bytes) -> int:
    """GSSET_INFO's answer: 0 where the driver has no counters. Raises Unparsable."""
    _, _, sets, count = _unpacked(SET_INFO, reply)
    if count > MOST_COUNTERS:
        raise Unparsable(f"ethtool: {count} counters")
    return int(count) if sets & 1 << STATISTICS_SET else 0


def parse_counters(names: bytes, values: bytes) -> dict[str, int]:
    """Counters by the driver's names, of the answers to GSTRINGS and GSTATS. Raises Unparsable where they differ in
    length: the driver was set up anew in between."""
    (_, _, named), (_, counted) = _unpacked(STRINGS, names), _unpacked(COUNTS, values)
    if named != counted or len(names) < STRINGS.size + named * NAME_BYTES or len(values) < COUNTS.size + counted * 8:
        raise Unparsable(f"ethtool: {named} names of counters and {counted} values")
    each = (_text(names[at : at + NAME_BYTES]) for at in range(STRINGS.size, STRINGS.size + named * NAME_BYTES, 32))
    numbers = struct.unpack_from(f"={counted}Q", values, COUNTS.size)
    return {name: number for name, number in zip(each, numbers, strict=True) if name}


def parse_pause(reply: bytes) -> Pause:
    """GPAUSEPARAM's answer. Raises Unparsable."""
    _, autoneg, rx, tx = _unpacked(PAUSE, reply)
    return Pause(bool(rx), bool(tx), bool(autoneg))


def parse_fec(reply: bytes) -> Fec:
    """GFECPARAM's answer. Raises Unparsable."""
    _, active, configured, _ = _unpacked(FEC, reply)
    words: Mapping[int, str] = FEC_BITS
    return Fec(
        active=words.get(active),
        configured=tuple(word for bit, word in words.items() if configured & bit),
        auto=bool(configured & FEC_AUTO),
    )


def _unpacked(form: struct.Struct, reply: bytes) -> tuple[int, ...]:
    if len(reply) < form.size:
        raise Unparsable(f"ethtool: an answer of {len(reply)} bytes where {form.size} are due")
    return form.unpack_from(reply)


def _text(raw: bytes | int) -> str | None:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip() or None if isinstance(raw, bytes) else None
