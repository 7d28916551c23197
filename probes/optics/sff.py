"""The memory of QSFP+, QSFP28 and QSFP56 modules as SFF-8636 rev 2.11 lays it out (40G to 200G), and of SFP, SFP+ and
SFP28 modules as SFF-8472 rev 12.4 does (up to 25G a lane).
"""

from __future__ import annotations

from collections.abc import Mapping

from probes.optics.facts import (
    LEVELS,
    STANDARDS,
    LaneReading,
    ModuleReading,
    celsius,
    dbm,
    identifier,
    lanes_in_use,
    milliamperes,
    read_flags,
    text,
    thresholds,
    volts,
)

EXTENDED = 0x80  # byte 131: its kind is in byte 192
FLAT = 0x04  # byte 2: there are no other pages
COPPER, ACTIVE_COPPER = (0xA, 0xB), (0xC, 0xD, 0xE, 0xF)  # upper half of byte 147
CABLE_CONNECTORS = (0x21, 0x23)  # copper pigtail, no separable connector
TX_POWER_MONITORED = 0x04  # byte 220
LANES = (1, 2, 3, 4)
RX_POWER, TX_BIAS, TX_POWER = 34, 42, 50


def is_paged(lower: bytes) -> bool:
    """Whether there are pages beyond the first."""
    return not lower[2] & FLAT


def parse_sff8636(lower: bytes, upper: bytes, pages: Mapping[int, bytes]) -> ModuleReading:
    """The module. `lower` and `upper` have 128 bytes; `pages` may hold page 3."""
    media = _media(upper)
    cable = media != "optical" or upper[2] in CABLE_CONNECTORS
    reading = ModuleReading(
        identifier=identifier(lower[0]),
        media=media,
        vendor=text(upper[20:36]),
        part=text(upper[40:56]),
        serial=text(upper[68:84]),
        length_m=float(upper[18]) if cable and upper[18] else None,
        standard=STANDARDS.get(upper[64]) if upper[3] & EXTENDED else None,
    )
    if media in ("copper", "active_copper") or not any(lower[22:58]):
        return reading  # measures nothing
    temperature, voltage, tx_power = any(lower[22:24]), any(lower[26:28]), bool(upper[92] & TX_POWER_MONITORED)
    # an active cable may not measure what it receives; where all light is gone, the loss of signal shows it
    rx_power, bias = any(lower[RX_POWER:TX_BIAS]), any(lower[TX_BIAS:TX_POWER])
    return reading._replace(
        temperature_c=celsius(lower[22:24]) if temperature else None,
        voltage_v=volts(lower[26:28]) if voltage else None,
        flags=tuple(_module_flags(lower, temperature, voltage)),
        thresholds=_thresholds(pages.get(3, b""), tx_power),
        lanes=_lanes(lower, upper, rx_power, tx_power, bias),
    )


def _module_flags(lower: bytes, temperature: bool, voltage: bool) -> list[str]:
    known = ((temperature, "temperature", lower[6]), (voltage, "voltage", lower[7]))
    return [
        f"{what}_{level}"
        for has, what, bits in known
        for at, level in enumerate(LEVELS)
        if has and bits >> (7 - at) & 1
    ]


def _thresholds(page: bytes, tx_power: bool) -> dict[str, float]:
    if len(page) < 128:
        return {}
    return {
        **thresholds("temperature", "c", page[0:8]),
        **thresholds("voltage", "v", page[16:24]),
        **thresholds("rx_power", "dbm", page[48:56]),
        **thresholds("tx_bias", "ma", page[56:64]),
        **(thresholds("tx_power", "dbm", page[64:72]) if tx_power else {}),
    }


def _lanes(lower: bytes, upper: bytes, rx_power: bool, tx_power: bool, bias: bool) -> tuple[LaneReading, ...]:
    lock, signal = upper[194 - 128], upper[195 - 128]  # which flags it has; that of lost light has no bit
    plain = {
        "tx_fault": lower[4] & 0xF if signal & 0x08 else 0,
        "tx_los": lower[3] >> 4 if signal & 0x02 else 0,
        "tx_lol": lower[5] >> 4 if lock & 0x20 else 0,
        "rx_los": lower[3] & 0xF,
        "rx_lol": lower[5] & 0xF if lock & 0x10 else 0,
    }
    levels: dict[str, int] = {}
    for what, first, has in (("tx_power", 13, tx_power), ("tx_bias", 11, bias), ("rx_power", 9, rx_power)):
        if has:
            levels |= {f"{what}_{level}": _level_bits(lower[first : first + 2], at) for at, level in enumerate(LEVELS)}
    flags = read_flags(plain | levels, LANES)
    return lanes_in_use(
        [
            LaneReading(
                lane=lane,
                rx_power_dbm=dbm(_word(lower, RX_POWER, lane)) if rx_power else None,
                tx_power_dbm=dbm(_word(lower, TX_POWER, lane)) if tx_power else None,
                tx_bias_ma=milliamperes(_word(lower, TX_BIAS, lane)) if bias else None,
                flags=flags[lane],
            )
            for lane in LANES
        ]
    )


def _level_bits(two: bytes, level: int) -> int:
    """One level of the four lanes as bits 0 to 3: the upper half of a byte is lane 1 or 3, the lower 2 or 4."""
    halves = (two[0] >> 4, two[0] & 0xF, two[1] >> 4, two[1] & 0xF)
    return sum((half >> (3 - level) & 1) << lane for lane, half in enumerate(halves))


def _word(lower: bytes, first: int, lane: int) -> bytes:
    return lower[first + 2 * (lane - 1) : first + 2 * lane]


def _media(upper: bytes) -> str:
    technology = upper[19] >> 4
    if technology in COPPER:
        return "copper"
    return "active_copper" if technology in ACTIVE_COPPER else "optical"


PASSIVE, ACTIVE = 0x04, 0x08  # byte 8: copper cable
MONITORS, CALIBRATED = 0x40, 0x20  # byte 92: it measures, and its numbers need no further calculation
COPPER_PIGTAIL = 0x21
STATUS_RX_LOS, STATUS_TX_FAULT = 0x02, 0x04  # byte 110 of the second address


def has_monitors(serial: bytes) -> bool:
    """Whether the second address is worth reading: not for cables, nor where calibration is left to the host."""
    return serial[92] & (MONITORS | CALIBRATED) == MONITORS | CALIBRATED and not serial[8] & PASSIVE


def parse_sff8472(serial: bytes, diagnostics: bytes) -> ModuleReading:
    """The module, of 96 bytes of the first address and 120 of the second (empty where not read)."""
    media = "copper" if serial[8] & PASSIVE else "active_copper" if serial[8] & ACTIVE else "optical"
    if serial[2] == COPPER_PIGTAIL and media == "optical":
        media = "copper"
    reading = ModuleReading(
        identifier=identifier(serial[0]),
        media=media,
        vendor=text(serial[20:36]),
        part=text(serial[40:56]),
        serial=text(serial[68:84]),
        length_m=float(serial[18]) if media != "optical" and serial[18] else None,  # else: how far OM4 fibre may go
    )
    if media != "optical" or len(diagnostics) < 120 or not has_monitors(serial):
        return reading
    module_flags = _flags(diagnostics, (("temperature", 112, 7), ("voltage", 112, 5)))
    lane_flags = _flags(diagnostics, (("tx_power", 112, 1), ("tx_bias", 112, 3), ("rx_power", 113, 7)))
    plain = (("rx_los", STATUS_RX_LOS), ("tx_fault", STATUS_TX_FAULT))
    lane_flags += [name for name, bit in plain if diagnostics[110] & bit]
    return reading._replace(
        temperature_c=celsius(diagnostics[96:98]),
        voltage_v=volts(diagnostics[98:100]),
        flags=tuple(module_flags),
        thresholds={
            **thresholds("temperature", "c", diagnostics[0:8]),
            **thresholds("voltage", "v", diagnostics[8:16]),
            **thresholds("tx_bias", "ma", diagnostics[16:24]),
            **thresholds("tx_power", "dbm", diagnostics[24:32]),
            **thresholds("rx_power", "dbm", diagnostics[32:40]),
        },
        lanes=(
            LaneReading(
                lane=1,
                rx_power_dbm=dbm(diagnostics[104:106]),
                tx_power_dbm=dbm(diagnostics[102:104]),
                tx_bias_ma=milliamperes(diagnostics[100:102]),
                flags=tuple(lane_flags),
            ),
        ),
    )


def _flags(page: bytes, known: tuple[tuple[str, int, int], ...]) -> list[str]:
    """Alarms stand two bits a thing, high then low; warnings four bytes further in the same places."""
    return [
        f"{what}_{level}"
        for what, byte, bit in known
        for at, level in enumerate(LEVELS)
        if page[byte + 4 * (at // 2)] >> (bit - at % 2) & 1
    ]
