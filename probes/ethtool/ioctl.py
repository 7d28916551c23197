"""ethtool by ioctl (SIOCETHTOOL): the structs of linux/ethtool.h as bytes, requests made and replies read.

Statistics have no other way for all drivers; pause and FEC are asked so where the kernel has no ethtool netlink. Of a
driver's thousands of counters those are kept that report links, pause and loss, by the names in the kernel's
Documentation/networking/device_drivers and in the sources of mlx5, bnxt_en, ice, i40e; not those of single queues,
rings and channels.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from probes.ethtool.netlink import NOT_KNOWN, FecReading, PauseReading
from probes.named_tuple import NamedTuple
from probes.text import ParseError, lazy_pattern, require

MOST = 512
_PRIORITY = "[0-7]"
_WANTED = lazy_pattern(
    "|".join(
        (
            # mlx5
            rf"[rt]x_prio{_PRIORITY}_(?:bytes|packets|discards|buf_discard|cong_discard|marked)",
            rf"[rt]x_prio{_PRIORITY}_pause(?:_duration|_transition)?",
            r"[rt]x_global_pause(?:_duration|_transition)?",
            r"tx_pause_storm_(?:warning|error)_events",
            r"[rt]x_(?:packets|bytes|discards|errors|crc_errors|symbol_err|pcs_symbol_err|corrected_bits|bits)_phy",
            r"[rt]x_(?:pause_ctrl|oversize_pkts|undersize_pkts|in_range_len_errors|unsupported_op)_phy",
            r"rx_(?:pcs_)?(?:fc_fec|rs_fec)[a-z_]*_phy(?:_lane[0-9])?|rx_err_lane_[0-7]_phy|fec_[a-z_]{1,40}",
            r"rx_buffer_passed_thres_phy|link_down_events(?:_phy)?",
            r"(?:rx|dev)_out_of_buffer|rx_steer_missed_packets|dev_internal_queue_oob",
            r"module_(?:unplug|bus_stuck|high_temp|bad_shorted)",
            r"outbound_pci_[a-z_]{1,40}|[rt]x_pci_signal_integrity",
            r"[rt]x_vport_rdma_(?:uni|multi)cast_(?:packets|bytes)",
            # bnxt_en
            r"[rt]x_pause_frames|[rt]x_pfc_frames|[rt]x_pfc_ena_frames_pri[0-7]|pfc_pri[0-7]_[rt]x_(?:duration_us|transitions)",
            r"continuous_(?:roce_)?pause_events|resume_(?:roce_)?pause_events",
            r"rx_roce_(?:discards|good_(?:bytes|packets)|error[a-z_]*)|rx_discard_(?:bytes|packets)_cos[0-7]",
            r"rx_fec_(?:corrected|uncorrectable)_blocks|rx_pcs_symbol_err|rx_corrected_bits|rx_fcs_err_frames",
            r"[rt]x_(?:bytes|packets)_(?:pri|cos)[0-7]|link_down_events",
            # ionic
            r"frames_rx_bad_fcs",
            # ice, i40e
            r"[rt]x_priority_[0-7]_x(?:on|off)(?:_2_xoff)?(?:\.nic)?|port\.[rt]x_priority_[0-7]_x(?:on|off)(?:_[rt]x)?",
            r"link_x(?:on|off)_[rt]x(?:\.nic)?|port\.link_x(?:on|off)_[rt]x",
            r"(?:rx_crc_errors|rx_dropped|tx_dropped_link_down|illegal_bytes|mac_(?:local|remote)_faults)(?:\.nic)?",
            r"port\.(?:rx_crc_errors|rx_dropped|tx_dropped_link_down|illegal_bytes|mac_(?:local|remote)_faults)",
        )
    )
)


def select_wanted(counters: Mapping[str, int]) -> dict[str, int]:
    """Those that the report keeps, by the driver's names; at most MOST.

    >>> select_wanted({"rx_prio3_pause": 7, "ch0_poll": 12, "rx0_packets": 9, "rx_discards_phy": 2**64 - 1})
    {'rx_prio3_pause': 7}
    >>> select_wanted({"frames_rx_bad_fcs": 1, "frames_rx_bad_all": 1})
    {'frames_rx_bad_fcs': 1}
    """
    wanted_counters = (
        (name, value) for name, value in counters.items() if _WANTED.fullmatch(name) and value != NOT_KNOWN
    )
    return dict(sorted(wanted_counters)[:MOST])


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
    """What the driver states of itself."""

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
    """GSTRINGS: the names of the counters. The kernel may be given how many are expected."""
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
    """GDRVINFO's answer. Raises ParseError."""
    _, driver, version, firmware, *_ = _unpack(DRIVER, reply)
    return DriverInfo(_text(driver), _text(version), _text(firmware))


def parse_count(reply: bytes) -> int:
    """GSSET_INFO's answer: 0 where the driver has no counters. Raises ParseError."""
    _, _, sets, count = _unpack(SET_INFO, reply)
    require(count <= MOST_COUNTERS, f"ethtool: {count} counters")
    return int(count) if sets & 1 << STATISTICS_SET else 0


def parse_counters(names: bytes, values: bytes) -> dict[str, int]:
    """Counters by the driver's names, of the answers to GSTRINGS and GSTATS. Raises ParseError where they differ in
    length: the driver was set up again in between."""
    (_, _, named), (_, counted) = _unpack(STRINGS, names), _unpack(COUNTS, values)
    if named != counted or len(names) < STRINGS.size + named * NAME_BYTES or len(values) < COUNTS.size + counted * 8:
        raise ParseError(f"ethtool: {named} names of counters and {counted} values")
    names_read = (
        _text(names[at : at + NAME_BYTES]) for at in range(STRINGS.size, STRINGS.size + named * NAME_BYTES, 32)
    )
    numbers = struct.unpack_from(f"={counted}Q", values, COUNTS.size)
    return {name: number for name, number in zip(names_read, numbers, strict=True) if name}


def parse_pause(reply: bytes) -> PauseReading:
    """GPAUSEPARAM's answer. Raises ParseError."""
    _, autoneg, rx, tx = _unpack(PAUSE, reply)
    return PauseReading(bool(rx), bool(tx), bool(autoneg))


def parse_fec(reply: bytes) -> FecReading:
    """GFECPARAM's answer. Raises ParseError."""
    _, active, configured, _ = _unpack(FEC, reply)
    words: Mapping[int, str] = FEC_BITS
    return FecReading(
        active=words.get(active),
        configured=tuple(word for bit, word in words.items() if configured & bit),
        auto=bool(configured & FEC_AUTO),
    )


def _unpack(form: struct.Struct, reply: bytes) -> tuple[int, ...]:
    require(len(reply) >= form.size, f"ethtool: an answer of {len(reply)} bytes where {form.size} are due")
    return form.unpack_from(reply)


def _text(raw: bytes | int) -> str | None:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip() or None if isinstance(raw, bytes) else None
