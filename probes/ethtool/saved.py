"""Saved outputs of ethtool, found by the names of the interfaces that the source shows.

How `ethtool` prints what it knows: a key, a colon, a value, with any blanks between (ethtool(8)).

What `ethtool` prints, where a source holds it: settings, pause, FEC, statistics, driver (ethtool(8)).

Formats: plain `ethtool IF`, -a, --show-fec, -S, -i. What a text does not say stays None; a text of another kind says
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from probes.ethtool.ioctl import NOT_KNOWN, DriverInfo, select_wanted
from probes.ethtool.netlink import FecReading, LinkModes, PauseReading
from probes.ethtool.probe import Ethernet, EthtoolFacts
from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.probe import Reading
from probes.visible_interfaces import interfaces

KEY_CHARACTERS = 80
_BLANKS = " \t\r"


def parse_pair(line: str) -> tuple[str, str] | None:
    r"""Key and value of a line; None where it has no key.

    >>> parse_pair("\tAuto-negotiation: on"), parse_pair("\t\t200000baseCR4/Full")
    (('Auto-negotiation', 'on'), None)
    """
    key, colon, value = line.partition(":")
    key = key.strip(_BLANKS)
    return (key, value.strip(_BLANKS)) if colon and 0 < len(key) <= KEY_CHARACTERS else None


def parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Of every line that has a key."""
    return (pair for line in text.splitlines() if (pair := parse_pair(line)) is not None)


_COUNTER = re.compile(r"[ \t]*(\S{1,80}):[ \t]*([0-9]{1,20})[ \t]*\r?")
_SPEED = re.compile(r"\b([0-9]{2,7})base[A-Za-z0-9_]+/(?:Full|Half)\b")
_RUNS = re.compile(r"([1-9][0-9]{0,7})Mb/s.{0,40}")
_FEC = {"none": "off", "off": "off", "rs": "rs", "baser": "baser", "llrs": "llrs"}
_SWITCH = {"on": True, "off": False}
_OF_MLX5 = frozenset({"rx_discards_phy", "rx_prio0_bytes", "rx_prio7_bytes"})  # of a physical port


def parse_settings(text: str) -> LinkModes | None:
    r"""The answer to plain `ethtool IF`.

    >>> parse_settings("\tSupported link modes:   100000baseSR4/Full\n\t\t200000baseCR4/Full\n\tAuto-negotiation: on\n")
    LinkModes(autoneg=True, max_speed_mbit_s=200000, fec_supported=(), speed_mbit_s=None)
    """
    sections = _sections(text)
    speeds = [int(speed) for speed in _SPEED.findall(sections.get("Supported link modes", ""))]
    fec = tuple(_FEC[word] for word in sections.get("Supported FEC modes", "").lower().split() if word in _FEC)
    autoneg = _SWITCH.get(sections.get("Auto-negotiation", "").lower())
    runs = _RUNS.fullmatch(sections.get("Speed", ""))
    if not speeds and not fec and autoneg is None and runs is None:
        return None
    return LinkModes(autoneg, max(speeds, default=None), fec if fec != ("off",) else (), int(runs[1]) if runs else None)


def parse_pause(text: str) -> PauseReading | None:
    r"""The answer to `ethtool -a IF`: what is set, not what was negotiated.

    >>> parse_pause("Pause parameters for ens6f0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\nRX negotiated: off\n")
    PauseReading(rx=True, tx=False, autoneg=True)
    """
    values = {key: _SWITCH.get(value.lower()) for key, value in parse_pairs(text)}
    pause = PauseReading(values.get("RX"), values.get("TX"), values.get("Autonegotiate"))
    return pause if pause != PauseReading() else None


def parse_fec(text: str) -> FecReading | None:
    r"""The answer to `ethtool --show-fec IF`.

    >>> parse_fec("Supported/Configured FEC encodings: Auto RS BaseR\nActive FEC encoding: RS\n")
    FecReading(active='rs', configured=('rs', 'baser'), auto=True, counters={})
    """
    values = dict(parse_pairs(text))
    configured = next((values[key] for key in values if key.endswith("onfigured FEC encodings")), "").lower().split()
    active = next((values[key] for key in values if key.startswith("Active FEC encoding")), "").lower()
    if not configured and not active:
        return None
    every = {f"fec_{name}": value for name, value in _counters(text).items() if name.startswith(("corr", "uncorr"))}
    counters = {name: value for name, value in every.items() if value != NOT_KNOWN}
    modes = tuple(_FEC[word] for word in configured if word in _FEC)
    return FecReading(_FEC.get(active), modes, "auto" in configured if configured else None, counters)


def parse_statistics(text: str) -> dict[str, int] | None:
    r"""The answer to `ethtool -S IF`, as far as we keep it; None where there is no counter at all.

    >>> parse_statistics("NIC statistics:\n     rx_packets: 5\n     rx_discards_phy: 3\n")
    {'rx_discards_phy': 3}
    """
    every = _counters(text)
    return select_wanted(every) if every else None


def parse_flow_control(text: str) -> tuple[tuple[bool, ...], bool] | None:
    r"""PFC by priority, and whether global pause is on in any direction, of a port of mlx5; None for any other driver.

    mlx5 has a counter `rx_prio3_pause` only while PFC is on for priority 3, and `rx_global_pause` only while global
    pause is on (drivers/net/ethernet/mellanox/mlx5/core/en_stats.c, mlx5e_grp_per_prio_pfc_get_num_stats).

    >>> parse_flow_control("rx_discards_phy: 0\nrx_prio0_bytes: 7\nrx_prio7_bytes: 0\nrx_prio3_pause: 0\n")
    ((False, False, False, True, False, False, False, False), False)
    """
    every = _counters(text)
    if not every.keys() >= _OF_MLX5:
        return None
    return tuple(f"rx_prio{priority}_pause" in every for priority in range(8)), "rx_global_pause" in every


def parse_driver(text: str) -> DriverInfo | None:
    r"""The answer to `ethtool -i IF`.

    >>> parse_driver("driver: mlx5_core\nversion: 5.0-0\nfirmware-version: 14.23.1020 (MT_2420110034)\n").driver
    'mlx5_core'
    """
    values = dict(parse_pairs(text))
    if not values.get("driver"):
        return None
    return DriverInfo(values["driver"], values.get("version") or None, values.get("firmware-version") or None)


def _sections(text: str) -> dict[str, str]:
    """Values by their keys; lines without a key go on with the last."""
    sections: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        pair = parse_pair(line)
        if pair:
            last = pair[0]
            sections[last] = pair[1]
        elif last:
            sections[last] += f" {line.strip()}"
    return sections


def _counters(text: str) -> dict[str, int]:
    return {match[1]: int(match[2]) for line in text.splitlines() if (match := _COUNTER.fullmatch(line))}


T = TypeVar("T")


def read_saved(host: Host) -> Reading:
    """What was saved of every interface. Raises Absent where nothing was."""
    reader = HostReader(host)
    saved = []
    for name in interfaces(reader):
        driver = read_saved_interface(reader, parse_driver, "ethtool", "-i", name)
        ethernet = Ethernet(
            name=name,
            pause=read_saved_interface(reader, parse_pause, "ethtool", "-a", name) or _no_pause(reader, name),
            fec=read_saved_interface(reader, parse_fec, "ethtool", "--show-fec", name),
            modes=read_saved_interface(reader, parse_settings, "ethtool", name),
            counters=read_saved_interface(reader, parse_statistics, "ethtool", "-S", name),
            driver=driver.driver if driver else None,
            version=driver.version if driver else None,
            firmware=driver.firmware if driver else None,
        )
        if ethernet != Ethernet(name):
            saved.append(ethernet)
    if not saved:
        raise Absent("no saved output of ethtool")
    return Reading(EthtoolFacts(tuple(saved)), reader.sources, reader.missing)


def _no_pause(reader: HostReader, name: str) -> PauseReading | None:
    """That global pause is off, where the counters show it; which direction is on they do not."""
    control = read_saved_interface(reader, parse_flow_control, "ethtool", "-S", name)
    return PauseReading(rx=False, tx=False) if control is not None and not control[1] else None


def read_saved_interface(reader: HostReader, parse: Callable[[str], T | None], *argv: str) -> T | None:
    """What a saved output says; None where there is none, or where it says nothing."""
    text = reader.output(*argv) if reader.host.has_output(*argv) else None
    return parse(text) if text else None
