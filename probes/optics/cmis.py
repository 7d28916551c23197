"""The memory of OSFP, QSFP-DD and other modules as CMIS lays it out (OIF-CMIS-05.2), 400G and above."""

from __future__ import annotations

from collections.abc import Mapping

from probes.optics.facts import (
    LEVELS,
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

STATES = {1: "low_power", 2: "powering_up", 3: "ready", 4: "powering_down", 5: "fault"}
MODULE_FLAGS = tuple(f"{what}_{level}" for what in ("temperature", "voltage") for level in LEVELS)
FLAT = 0x80  # byte 2: there are no other pages
COPPER, ACTIVE_COPPER = (0x0A, 0x0B), (0x0C, 0x0D, 0x0E, 0x0F)  # media interface technology
MEDIA_TYPES = {1: "optical", 2: "optical", 3: "copper"}  # byte 85; 4 is an active cable of either kind
LENGTH_UNITS = (0.1, 1.0, 10.0, 100.0)
LANES = range(1, 9)
LEVELS_FROM = {"tx_power": 139, "tx_bias": 143, "rx_power": 149}  # bytes of page 11h, a level after the other
LANE_FLAGS = {
    "tx_fault": 135,
    "tx_los": 136,
    "tx_lol": 137,
    "rx_los": 147,
    "rx_lol": 148,
    **{f"{what}_{level}": first + at for what, first in LEVELS_FROM.items() for at, level in enumerate(LEVELS)},
}
TX_POWER, TX_BIAS, RX_POWER = 154, 170, 186


def is_paged(lower: bytes) -> bool:
    """Whether there are pages beyond the first."""
    return not lower[2] & FLAT


def parse(lower: bytes, upper: bytes, pages: Mapping[int, bytes]) -> ModuleReading:
    """The module. `lower` and `upper` have 128 bytes; of `pages` those of 1, 2 and 0x11 that could be read."""
    media = _media(lower, upper)
    reading = ModuleReading(
        identifier=identifier(lower[0]),
        media=media,
        vendor=text(upper[1:17]),
        part=text(upper[20:36]),
        serial=text(upper[38:54]),
        length_m=_length(upper[74]),
        state=STATES.get(lower[3] >> 1 & 7),
    )
    advertised = pages.get(1, b"")
    if media in ("copper", "active_copper") or not is_paged(lower) or len(advertised) < 128:
        return reading
    monitors, lane_monitors = advertised[159 - 128], advertised[160 - 128]
    temperature, voltage = bool(monitors & 1), bool(monitors & 2)
    return reading._replace(
        temperature_c=celsius(lower[14:16]) if temperature else None,
        voltage_v=volts(lower[16:18]) if voltage else None,
        flags=tuple(
            name
            for bit, name in enumerate(MODULE_FLAGS)
            if lower[9] >> bit & 1 and (temperature if bit < 4 else voltage)
        ),
        thresholds=_thresholds(pages.get(2, b""), monitors, lane_monitors),
        lanes=_lanes(pages.get(0x11, b""), advertised, upper[82]),
    )


def _thresholds(page: bytes, monitors: int, lane_monitors: int) -> dict[str, float]:
    if len(page) < 128:
        return {}
    scale = _bias_scale(lane_monitors)
    bias = thresholds("tx_bias", "ma", page[56:64]) if lane_monitors & 1 and scale else {}
    return {
        **(thresholds("temperature", "c", page[0:8]) if monitors & 1 else {}),
        **(thresholds("voltage", "v", page[8:16]) if monitors & 2 else {}),
        **(thresholds("tx_power", "dbm", page[48:56]) if lane_monitors & 2 else {}),
        **{name: round(value * (scale or 1), 3) for name, value in bias.items()},
        **(thresholds("rx_power", "dbm", page[64:72]) if lane_monitors & 4 else {}),
    }


def _lanes(page: bytes, advertised: bytes, absent: int) -> tuple[LaneReading, ...]:
    """Lanes that the module has: bits of `absent` are those that it has not."""
    monitors = advertised[160 - 128]
    if len(page) < 128 or not monitors & 7:
        return ()
    lanes = [lane for lane in LANES if not absent >> lane - 1 & 1]
    flags = read_flags(
        {name: page[at - 128] for name, at in LANE_FLAGS.items() if _has(name, advertised)},
        lanes,
    )
    scale = _bias_scale(monitors)
    return lanes_in_use(
        [
            LaneReading(
                lane=lane,
                rx_power_dbm=dbm(_word(page, RX_POWER, lane)) if monitors & 4 else None,
                tx_power_dbm=dbm(_word(page, TX_POWER, lane)) if monitors & 2 else None,
                tx_bias_ma=round(milliamperes(_word(page, TX_BIAS, lane)) * scale, 3)
                if monitors & 1 and scale
                else None,
                flags=flags[lane],
            )
            for lane in lanes
        ]
    )


def _has(flag: str, advertised: bytes) -> bool:
    """Whether the module has that flag: what it does not advertise reads as anything."""
    tx, rx, monitors = advertised[157 - 128], advertised[158 - 128], advertised[160 - 128]
    plain = {"tx_fault": tx & 1, "tx_los": tx & 2, "tx_lol": tx & 4, "rx_los": rx & 2, "rx_lol": rx & 4}
    of_monitor = {"tx_bi": monitors & 1, "tx_po": monitors & 2, "rx_po": monitors & 4}
    return bool(plain[flag] if flag in plain else of_monitor[flag[:5]])


def _bias_scale(monitors: int) -> int | None:
    """How often 2 microamperes a step of the bias is."""
    return (1, 2, 4, None)[monitors >> 3 & 3]


def _word(page: bytes, first: int, lane: int) -> bytes:
    at = first - 128 + 2 * (lane - 1)
    return page[at : at + 2]


def _media(lower: bytes, upper: bytes) -> str:
    technology = upper[84]
    if technology in COPPER:
        return "copper"
    if technology in ACTIVE_COPPER:
        return "active_copper"
    if lower[85] in MEDIA_TYPES:
        return MEDIA_TYPES[lower[85]]
    return "optical" if lower[85] == 4 else "unknown"  # an active cable that is no copper


def _length(byte: int) -> float | None:
    """Base and unit; 0: no cable assembly."""
    metres = round((byte & 0x3F) * LENGTH_UNITS[byte >> 6], 1)
    return metres or None
