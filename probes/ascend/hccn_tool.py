"""Outputs of hccn_tool about the RoCE ports of NPUs: one of one NPU, or many one after the other below their commands.

Formats: hicann/driver, src/custom/network/hccn; public transcripts. What another person edited is still read line by
line: each line has its name, and a command or a `devid` before it has the NPU. Loops are given to their NPUs by the
splitter of pasted texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern, require

MOST_NPUS = 64
_LINES = 20_000
_COMMAND = lazy_pattern(r"[^\n]{0,80}?\bhccn_tool +(?:-g +)?-i +(\d{1,2}|\"?\$\{?\w{1,8}\}?\"?) +-([a-z_]{2,20})")
_DEVICE = lazy_pattern(  # of the tool, and of an `echo` before its line
    r"(?:\[?dev_?id[: ]*(?P<id>\d{1,2})\]?,?"
    r"|(?i:npu|dev(?:ice)?|card|chip)[ _#-]?(?P<label>\d{1,2}) ?(?:[:|]|[-=]>?)) *"
)
_ADDRESS = r"(\d{1,3}(?:\.\d{1,3}){3})"
# Facts of a port: how each line begins, and how its value is read
_FORMS: tuple[tuple[str, re.Pattern[str], Callable[[str], Any]], ...] = (
    ("address", lazy_pattern(rf"ipaddr: *{_ADDRESS}"), str),
    ("netmask", lazy_pattern(rf"netmask: *{_ADDRESS}"), str),
    ("gateway", lazy_pattern(rf"default gateway: *{_ADDRESS}"), str),
    ("detect_address", lazy_pattern(rf"netdetect address: *{_ADDRESS}"), str),
    ("state", lazy_pattern(r"link status: *(UP|DOWN)"), str.lower),
    ("speed_mbit_s", lazy_pattern(r"Speed: *(\d{1,7}) *Mb/s"), int),
    ("health", lazy_pattern(r"net health status: *([A-Za-z][A-Za-z ]{1,30})"), str.strip),
    ("fec", lazy_pattern(r"fec mode: *(\w{2,8}) FEC mode"), str),
    ("tls", lazy_pattern(r"tls switch\[([01])\]"), lambda flag: flag == "1"),
    ("switch_port", lazy_pattern(r"Ifname: *(\S{1,60})"), str),
    ("pfc", lazy_pattern(r"enabled +([01](?: +[01]){7})"), lambda row: _find_ones(row.split())),
)
_COUNTER = lazy_pattern(
    r"((?:mac|roce|nic)_[a-z0-9_]{3,60}) *: *(\d{1,20})|(tx_pfc\d_duration_(?:warn|err)_cnt) *: *(\d{1,20})"
)
_PAUSED = lazy_pattern(r"((?:tx|rx)_pfc[0-7]_duration)_time *[=:] *(\d{1,12})(?:\.(\d{1,6}))? *ms")
_OPTICAL = lazy_pattern(
    r"(present|temperature|high power enable reg|vendor (?:name|part number|serial number)|xsfp identifier|Vcc"
    r"|[TR]x Power[0-7]|(?:[TR]xPower|Temp) (?:High|Low) Thres|Tx Bias[0-7]|[TR]x Los Flag) *: *(.{1,40})"
)
_WITH_UNIT = lazy_pattern(  # the unit beside the name
    r"(?P<name>[A-Z][A-Za-z]{1,12}(?: [A-Za-z0-9]{1,5}){0,2}) ?\((?P<unit>mW|mA|mV|C)\) *: *(?P<value>-?[\d.]{1,12})"
)
_QUANTITY = lazy_pattern(r"(-?\d{1,6}(?:\.\d{1,6})?) *(?:mW|mA|mV|C)")
_NO_LIGHT_MW = 0.0001  # the smallest step of a module, which stands for less
_DOWNS = lazy_pattern(r"link down count *: *(\d{1,9})")


def _find_ones(flags: list[str]) -> tuple[int, ...]:
    return tuple(priority for priority, flag in enumerate(flags) if flag == "1")


class PortOptics(NamedTuple):
    """The module of one port. Powers by lane and limits in dBm. None: it does not show it."""

    present: bool
    high_power: bool | None = None  # False: it stays in low power
    identifier: str | None = None
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None
    temperature_c: float | None = None
    voltage_v: float | None = None
    limits: Mapping[str, float] = {}  # as names of thresholds: "rx_power_low_alarm_dbm"
    rx_power_dbm: Mapping[int, float] = {}
    tx_power_dbm: Mapping[int, float] = {}
    tx_bias_ma: Mapping[int, float] = {}
    flags: tuple[str, ...] = ()  # rx_los, tx_los; which lanes a bit is of depends on the module


class PortOutput(NamedTuple):
    """What outputs have of one NPU's port. None: no such output."""

    npu: int | None  # None: the text does not state it
    address: str | None = None
    netmask: str | None = None
    gateway: str | None = None
    detect_address: str | None = None
    state: str | None = None  # up | down
    speed_mbit_s: int | None = None
    health: str | None = None
    fec: str | None = None
    tls: bool | None = None
    switch_port: str | None = None
    pfc: tuple[int, ...] | None = None
    counters: dict[str, int] | None = None
    optics: PortOptics | None = None


class _Collector:
    """The values of each NPU, and of which NPU the lines are that are read now."""

    def __init__(self, npu: int | None) -> None:
        self.values: dict[int | None, dict[str, Any]] = {}
        self.npu = npu
        self.is_known = True  # False: behind a loop that the splitter of sources could not give to its NPUs

    def begin(self, npu: int | None, is_known: bool = True) -> None:
        """A command, or a line that states its NPU."""
        self.npu, self.is_known = npu, is_known

    def take(self, name: str, value: Any) -> None:
        """A value of the NPU."""
        if not self.is_known or (self.npu is not None and self.npu >= MOST_NPUS):
            return
        values = self.values.setdefault(self.npu, {})
        if isinstance(value, dict):
            values.setdefault(name, {}).update(value)
        else:
            values.setdefault(name, value)


def parse_hccn(text: str, npu: int | None = None) -> list[PortOutput]:
    """Ports by NPU. `npu`: whose output it is, where no command in the text states it. Raises ParseError.

    >>> parse_hccn("link status: DOWN\\n", 3)[0].state
    'down'
    >>> [(port.npu, port.state) for port in parse_hccn("# hccn_tool -i 5 -link -g\\nlink status: UP\\n")]
    [(5, 'up')]
    """
    collector = _Collector(npu)
    for line in text.splitlines()[:_LINES]:
        line = line[:400].strip()
        if command := _COMMAND.match(line):
            is_number = command[1].isdecimal()
            collector.begin(int(command[1]) if is_number else None, is_number)
            continue
        if line.startswith(("/", "#", "$")):  # another command
            collector.begin(npu)
            continue
        if device := _DEVICE.match(line):
            collector.begin(int(device["id"] or device["label"]))
            line = line[device.end() :]
        _take_line(collector, line)
    ports = [_port(number, values) for number, values in collector.values.items()]
    require(ports, "no line that hccn_tool prints about a port")
    return sorted(ports, key=lambda port: -1 if port.npu is None else port.npu)


def _take_line(collector: _Collector, line: str) -> None:
    if counter := _COUNTER.fullmatch(line):
        name, count = counter[1] or counter[3], counter[2] or counter[4]
        collector.take("counters", {name: int(count)})
        return
    if paused := _PAUSED.fullmatch(line):
        microseconds = int(paused[2]) * 1000 + int((paused[3] or "0").ljust(3, "0")[:3])
        collector.take("counters", {f"{paused[1]}_us": microseconds})
        return
    if downs := _DOWNS.fullmatch(line):
        collector.take("counters", {"link_down_events": int(downs[1])})
        return
    if with_unit := _WITH_UNIT.fullmatch(line):
        name = re.sub(r"xPower(?=\d)", "x Power", re.sub(r" (?=\d$)", "", with_unit["name"]))
        line = f"{name.replace('Temperature', 'temperature')}: {with_unit['value']}{with_unit['unit']}"
    if field := _OPTICAL.fullmatch(line):
        collector.take(f"optical {field[1]}", field[2].strip())
        return
    for name, form, read in _FORMS:
        if match := form.match(line):
            collector.take(name, read(match[1]))
            return


def _port(npu: int | None, values: dict[str, Any]) -> PortOutput:
    optical = {name[8:]: value for name, value in values.items() if name.startswith("optical ")}
    own = {name: value for name, value in values.items() if not name.startswith("optical ")}
    return PortOutput(npu, **own, optics=_optics(optical))


def _optics(rows: dict[str, str]) -> PortOptics | None:
    """What `-optical` prints of a module; of fields that are NA or not supported nothing."""
    if rows.get("present") not in ("present", "not present"):
        return None
    heat = {f"temperature_{end.lower()}_alarm_c": _quantity(rows, f"Temp {end} Thres") for end in ("High", "Low")}
    light = {
        f"{way.lower()}_power_{end.lower()}_alarm_dbm": _to_dbm(power)
        for way in ("Rx", "Tx")
        for end in ("High", "Low")
        if (power := _quantity(rows, f"{way}Power {end} Thres"))
    }
    millivolts = _quantity(rows, "Vcc")
    los = [way for way in ("Rx", "Tx") if re.fullmatch(r"0x0*[1-9a-f][0-9a-f]*", rows.get(f"{way} Los Flag", ""))]
    return PortOptics(
        present=rows["present"] == "present",
        high_power={"enabled": True, "not enabled": False}.get(rows.get("high power enable reg", "")),
        identifier=_name(rows, "xsfp identifier"),
        vendor=_name(rows, "vendor name"),
        part=_name(rows, "vendor part number"),
        serial=_name(rows, "vendor serial number"),
        temperature_c=_quantity(rows, "temperature"),
        voltage_v=round(millivolts / 1000, 3) if millivolts else None,
        limits={name: value for name, value in {**heat, **light}.items() if value is not None},
        rx_power_dbm={lane: _to_dbm(power) for lane, power in _lanes(rows, "Rx Power")},
        tx_power_dbm={lane: _to_dbm(power) for lane, power in _lanes(rows, "Tx Power")},
        tx_bias_ma=dict(_lanes(rows, "Tx Bias")),
        flags=tuple(f"{way.lower()}_los" for way in los),
    )


def _name(rows: dict[str, str], field: str) -> str | None:
    text = rows.get(field, "NA")
    return None if text == "NA" else text


def _quantity(rows: dict[str, str], field: str) -> float | None:
    match = _QUANTITY.fullmatch(rows.get(field, ""))
    return float(match[1]) if match else None


def _lanes(rows: dict[str, str], field: str) -> list[tuple[int, float]]:
    """Lanes count from 1, as those of other modules."""
    powers = [(lane, _quantity(rows, f"{field}{lane}")) for lane in range(8)]
    return [(lane + 1, value) for lane, value in powers if value is not None]


def _to_dbm(milliwatts: float) -> float:
    """Power as dBm; 0 is less than the module's smallest step.

    >>> _to_dbm(1.0), _to_dbm(0.0)
    (0.0, -40.0)
    """
    return round(10 * math.log10(max(milliwatts, _NO_LIGHT_MW)), 2)
