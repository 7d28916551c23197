"""What a cable or optical module shows of itself, whatever memory layout it has; and numbers as modules write them."""

import math
from collections.abc import Mapping, Sequence

from probes.named_tuple import NamedTuple

NO_LIGHT_DBM = -40.0  # what 0 stands for: less than the smallest step, 0.1 microwatt
LEVELS = ("high_alarm", "low_alarm", "high_warning", "low_warning")  # the order of all three layouts
IDENTIFIERS = {  # SFF-8024 table 4-1
    0x03: "SFP",
    0x0C: "QSFP",
    0x0D: "QSFP+",
    0x11: "QSFP28",
    0x18: "QSFP-DD",
    0x19: "OSFP",
    0x1A: "SFP-DD",
    0x1B: "DSFP",
    0x1E: "QSFP+ CMIS",
}


STANDARDS = {  # SFF-8024 table 4-4, those of 100 Gb/s over one module
    0x02: "100GBASE-SR4",
    0x03: "100GBASE-LR4",
    0x04: "100GBASE-ER4",
    0x06: "100G CWDM4",
    0x07: "100G PSM4",
    0x0B: "100GBASE-CR4",
}


class LaneReading(NamedTuple):
    """One lane as the module measures it; None: the module does not measure it."""

    lane: int
    rx_power_dbm: float | None = None
    tx_power_dbm: float | None = None
    tx_bias_ma: float | None = None
    flags: tuple[str, ...] = ()


class ModuleReading(NamedTuple):
    """A cable or module. Thresholds are its own, by name: "rx_power_low_alarm_dbm". None: it does not show it."""

    identifier: str | None = None
    media: str | None = None  # copper | active_copper | optical | unknown
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None
    length_m: float | None = None  # of a cable assembly
    standard: str | None = None  # "100GBASE-LR4"
    state: str | None = None  # CMIS: low_power | powering_up | ready | powering_down | fault
    temperature_c: float | None = None
    voltage_v: float | None = None
    thresholds: Mapping[str, float] = {}
    flags: tuple[str, ...] = ()
    lanes: tuple[LaneReading, ...] = ()


def identifier(code: int) -> str:
    """The form factor's name.

    >>> identifier(0x19), identifier(0x7F)
    ('OSFP', '0x7f')
    """
    return IDENTIFIERS.get(code, f"0x{code:02x}")


def text(raw: bytes) -> str | None:
    r"""ASCII, padded with blanks (some write NULs).

    >>> text(b"Mellanox        "), text(bytes(16)), text(b"\xff" * 16)
    ('Mellanox', None, None)
    """
    printable = "".join(chr(byte) for byte in raw if 0x20 <= byte < 0x7F).strip()
    return printable or None


def celsius(raw: bytes) -> float:
    """1/256 degree, signed."""
    return round(int.from_bytes(raw, "big", signed=True) / 256, 3)


def volts(raw: bytes) -> float:
    """100 microvolts."""
    return round(int.from_bytes(raw, "big") / 10_000, 3)


def milliamperes(raw: bytes) -> float:
    """2 microamperes."""
    return round(int.from_bytes(raw, "big") / 500, 3)


def dbm(raw: bytes) -> float:
    """0.1 microwatt as dBm; no light is NO_LIGHT_DBM.

    >>> dbm((10_000).to_bytes(2, "big")), dbm(bytes(2))
    (0.0, -40.0)
    """
    power = int.from_bytes(raw, "big")
    return round(10 * math.log10(power / 10_000), 2) if power else NO_LIGHT_DBM


def thresholds(what: str, unit: str, raw: bytes) -> dict[str, float]:
    """Four limits of two bytes each. All zero or all ones: the module has none.

    >>> thresholds("voltage", "v", bytes.fromhex("8dcc 7404 875a 7a76"))["voltage_high_alarm_v"]
    3.63
    """
    if len(raw) < 8 or not any(raw) or set(raw) == {0xFF}:
        return {}
    values = {"c": celsius, "v": volts, "ma": milliamperes, "dbm": dbm}[unit]
    return {f"{what}_{level}_{unit}": values(raw[2 * at : 2 * at + 2]) for at, level in enumerate(LEVELS)}


def lanes_in_use(lanes: Sequence[LaneReading]) -> tuple[LaneReading, ...]:
    """Without lanes that do not exist: no light, no laser current, no fault (one wavelength in a module of four lanes).

    >>> lanes = LaneReading(1, -1.0, 0.5, 7.0), LaneReading(2, -40.0, -40.0, 0.0), LaneReading(3, -40.0, 0.4, 7.0)
    >>> [lane.lane for lane in lanes_in_use(lanes)]
    [1, 3]
    """
    return tuple(
        lane
        for lane in lanes
        if "tx_fault" in lane.flags
        or (lane.rx_power_dbm, lane.tx_power_dbm) != (NO_LIGHT_DBM, NO_LIGHT_DBM)
        or lane.tx_bias_ma
    )


def read_flags(names: Mapping[str, int], lanes: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Flags by lane, of bytes in which bit 0 is lane 1.

    >>> read_flags({"rx_los": 0b10, "tx_fault": 0}, (1, 2))
    {1: (), 2: ('rx_los',)}
    """
    return {lane: tuple(name for name, bits in names.items() if bits >> lane - 1 & 1) for lane in lanes}
