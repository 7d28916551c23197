"""Saved outputs of `ethtool -m`, found by the names of the interfaces that the source shows: SFP, QSFP and CMIS modules
alike (ethtool(8)).
"""

from __future__ import annotations

import re

from probes.ethtool.saved import read_saved_interface
from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.optics.eeprom import CMIS
from probes.optics.facts import IDENTIFIERS, LEVELS, NO_LIGHT_DBM, LaneReading, ModuleReading, lanes_in_use
from probes.optics.probe import ModuleSocket, OpticsFacts
from probes.probe import Reading
from probes.text import lazy_pattern
from probes.visible_interfaces import interfaces

_CODE = lazy_pattern(r"0x([0-9a-fA-F]{2})\b")
_DBM = lazy_pattern(r"(-?[0-9]{1,4}\.[0-9]{1,4}|-inf) ?dBm")
_STANDARD = lazy_pattern(r"100G Base-([A-Z]{2}4)\b")
_NUMBER = lazy_pattern(r"-?[0-9]{1,6}(?:\.[0-9]{1,6})?")
_LANE = lazy_pattern(r"\(?(?:[Cc]h(?:an(?:nel)?)?|[Ll]ane)[ #.]?([0-8])\b")
_SIGNALS = {
    "Rx loss of signal": "rx_los",
    "Tx loss of signal": "tx_los",
    "Rx loss of lock": "rx_lol",
    "Tx loss of lock": "tx_lol",
    "Tx fault": "tx_fault",
}
_COPPER_WORDS = (
    *("Passive Cable", "Copper Passive", "Copper pigtail", "passive equalized"),
    *("Copper cable unequalized", "Copper cable, unequalized"),  # SFF-8636, CMIS
)
_ACTIVE_WORDS = ("limiting active", "linear active", "Active Copper")
_STATES = {
    "ModuleLowPwr": "low_power",
    "ModulePwrUp": "powering_up",
    "ModuleReady": "ready",
    "ModulePwrDn": "powering_down",
    "ModuleFault": "fault",
}
_WHAT = (  # how lines begin -> what they show; the first that fits
    (
        r"(?:Laser )?rx[ _]power|Rcvr signal avg optical power|Receiver signal (?:average )?(?:OMA|optical power)",
        "rx_power",
    ),
    (r"Laser output power|Transmit avg optical power|Laser tx power|Tx[ _]power", "tx_power"),
    (r"Laser (?:tx )?bias(?: current)?|Tx bias", "tx_bias"),
    (r"Module temperature", "temperature"),
    (r"Module (?:supply )?voltage", "voltage"),
)
_SUBJECT = lazy_pattern("|".join(f"(?P<w{at}>{pattern})" for at, (pattern, _) in enumerate(_WHAT)), re.IGNORECASE)
_LEVEL = lazy_pattern(r"(high|low) (alarm|warning)( threshold)?", re.IGNORECASE)
_UNITS = {"rx_power": "dbm", "tx_power": "dbm", "tx_bias": "ma", "temperature": "c", "voltage": "v"}


def parse(text: str) -> ModuleReading | None:
    r"""The module; None for a text that neither names its kind nor has what it measures: an excerpt has that alone.

    >>> said = parse("Identifier : 0x03 (SFP)\nVendor PN : UDC-2\nModule temperature : 36.75 degrees C\n")
    >>> said.identifier, said.part, said.temperature_c
    ('SFP', 'UDC-2', 36.75)
    """
    lines = (line.partition(":") for line in text.splitlines())
    every = [(label.strip(), value.strip()) for label, colon, value in lines if colon and label.strip()]
    values = dict(reversed(every))  # of a key that comes twice, the first
    code = _CODE.search(values.get("Identifier", ""))
    if not code:
        measured = _add_measurements(ModuleReading(media="unknown"), every, lanes_are_flagged=False)
        return measured if measured.lanes or measured.flags else None
    media = _media([value for _, value in every], values)
    state = next((word for key, word in _STATES.items() if key in values.get("Module State", "")), None)
    length = values.get("Length (Copper or Active cable)") or values.get("Cable assembly length")
    if media in ("copper", "active_copper"):
        length = length or values.get("Length (Copper)")
    module = ModuleReading(
        identifier=IDENTIFIERS.get(int(code[1], 16), f"0x{code[1].lower()}"),
        media=media,
        vendor=values.get("Vendor name") or None,
        part=values.get("Vendor PN") or None,
        serial=values.get("Vendor SN") or None,
        length_m=_number(length) or None,
        standard=_standard(values.get("Transceiver type", "")),
        state=state,
    )
    if media in ("copper", "active_copper"):
        return module
    return _add_measurements(module, every, lanes_are_flagged=int(code[1], 16) not in CMIS)


def _add_measurements(module: ModuleReading, every: list[tuple[str, str]], lanes_are_flagged: bool) -> ModuleReading:
    """Monitors and flags. Of CMIS modules no limits of lanes are trusted to be flagged: ethtool (6.1, and its
    source of 2025) tests the lane's number for its bit, so a flag of lane 1 is printed at lane 2, one of lane 4 never.
    """
    alone: dict[str, float] = {}
    lanes: dict[int, dict[str, float]] = {}
    flags: dict[int, list[str]] = {}
    limits: dict[str, float] = {}
    first = 0 if any("(Channel 0)" in key for key, _ in every) else 1  # some count from 0
    for key, value in every:
        if key in _SIGNALS:  # "None", or "[ Yes, No, No, No ]"
            for lane, word in enumerate(value.strip("[] ").split(","), 1):
                if word.strip() == "Yes":
                    flags.setdefault(lane, []).append(_SIGNALS[key])
        subject = _SUBJECT.match(key)
        if not subject:
            continue
        what = _WHAT[int((subject.lastgroup or "w0")[1:])][1]
        lane = int(match[1]) + 1 - first if (match := _LANE.search(key)) else 1 if _UNITS[what] in ("dbm", "ma") else 0
        level = _LEVEL.search(key)
        number = _value(what, value)
        if level is None:
            if number is not None and not lane:
                alone[what] = number
            elif number is not None:
                lanes.setdefault(lane, {})[what] = number
        elif level[3]:
            if number is not None:
                limits[f"{what}_{level[1].lower()}_{level[2].lower()}_{_UNITS[what]}"] = number
        elif value.startswith("On") and (lanes_are_flagged or not lane):
            flags.setdefault(lane, []).append(f"{what}_{level[1].lower()}_{level[2].lower()}")
    return module._replace(
        temperature_c=alone.get("temperature"),
        voltage_v=alone.get("voltage"),
        thresholds=_select_known(limits),
        flags=tuple(flags.get(0, ())),
        lanes=lanes_in_use(
            [
                LaneReading(
                    lane,
                    values.get("rx_power"),
                    values.get("tx_power"),
                    values.get("tx_bias"),
                    tuple(flags.get(lane, ())),
                )
                for lane, values in sorted(lanes.items())
            ]
        ),
    )


def _select_known(limits: dict[str, float]) -> dict[str, float]:
    """Without those of a thing whose four limits are all zero or no light: the module has none."""
    limit_values = dict(limits)
    for what, unit in _UNITS.items():
        names = [f"{what}_{level}_{unit}" for level in LEVELS]
        if all(limits.get(name) in (None, 0.0, NO_LIGHT_DBM) for name in names):
            for name in names:
                limit_values.pop(name, None)
    return limit_values


def _value(what: str, value: str) -> float | None:
    if _UNITS[what] != "dbm":
        return _number(value)
    match = _DBM.search(value)
    return None if not match else NO_LIGHT_DBM if match[1] == "-inf" else float(match[1])


def _number(value: str | None) -> float | None:
    match = _NUMBER.match(value or "")
    return float(match[0]) if match else None


def _standard(transceiver_type: str) -> str | None:
    """The Ethernet standard of 100 Gb/s.

    >>> _standard("100G Ethernet: 100G Base-LR4"), _standard("10G Ethernet: 10G Base-SR")
    ('100GBASE-LR4', None)
    """
    match = _STANDARD.search(transceiver_type)
    return f"100GBASE-{match[1]}" if match else None


def _media(values: list[str], fields: dict[str, str]) -> str:
    if any(word in value for value in values for word in _ACTIVE_WORDS):
        return "active_copper"
    if any(word in value for value in values for word in _COPPER_WORDS) or "CR4" in fields.get("Transceiver type", ""):
        return "copper"
    known = (
        "Laser wavelength" in fields
        or "Laser" in fields.get("Transmitter technology", "")
        or "VCSEL" in " ".join(values)
    )
    return "optical" if known else "unknown"


def read_saved(host: Host) -> Reading:
    """The modules whose memory was printed. Raises Absent where none was."""
    reader = HostReader(host)
    modules = ((name, read_saved_interface(reader, parse, "ethtool", "-m", name)) for name in interfaces(reader))
    sockets = tuple(ModuleSocket(name, module) for name, module in modules if module)
    if not sockets:
        raise Absent("no saved output of ethtool -m")
    return Reading(OpticsFacts(sockets), reader.sources, reader.missing)
