"""The memory of SFP, SFP+ and SFP28 modules as SFF-8472 rev 12.4 lays it out: up to 25G a lane."""

from __future__ import annotations

from probes.optics.facts import (
    LEVELS,
    Lane,
    Module,
    celsius,
    dbm,
    identifier,
    milliamperes,
    text,
    thresholds,
    volts,
)

PASSIVE, ACTIVE = 0x04, 0x08  # byte 8: copper cable
MONITORS, CALIBRATED = 0x40, 0x20  # byte 92: it measures, and its numbers need no further calculation
COPPER_PIGTAIL = 0x21
STATUS_RX_LOS, STATUS_TX_FAULT = 0x02, 0x04  # byte 110 of the second address


def has_monitors(serial: bytes) -> bool:
    """Whether the second address is worth reading: not for cables, nor where calibration is left to the host."""
    return serial[92] & (MONITORS | CALIBRATED) == MONITORS | CALIBRATED and not serial[8] & PASSIVE


def parse(serial: bytes, diagnostics: bytes) -> Module:
    """The module, of 96 bytes of the first address and 120 of the second (empty where not read)."""
    media = "copper" if serial[8] & PASSIVE else "active_copper" if serial[8] & ACTIVE else "optical"
    if serial[2] == COPPER_PIGTAIL and media == "optical":
        media = "copper"
    said = Module(
        identifier=identifier(serial[0]),
        media=media,
        vendor=text(serial[20:36]),
        part=text(serial[40:56]),
        serial=text(serial[68:84]),
        length_m=float(serial[18]) if media != "optical" and serial[18] else None,  # else: how far OM4 fibre may go
    )
    if media != "optical" or len(diagnostics) < 120 or not has_monitors(serial):
        return said
    module_flags = _flags(diagnostics, (("temperature", 112, 7), ("voltage", 112, 5)))
    lane_flags = _flags(diagnostics, (("tx_power", 112, 1), ("tx_bias", 112, 3), ("rx_power", 113, 7)))
    plain = (("rx_los", STATUS_RX_LOS), ("tx_fault", STATUS_TX_FAULT))
    lane_flags += [name for name, bit in plain if diagnostics[110] & bit]
    return said._replace(
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
            Lane(
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
