"""What `ethtool` prints, where a source holds it: settings, pause, FEC, statistics, driver (ethtool(8)).

Formats: plain `ethtool IF`, -a, --show-fec, -S, -i. What a text does not say stays None; a text of another kind says
nothing.
"""

from __future__ import annotations

import re

from probes.ethtool.counters import NOT_KNOWN, wanted
from probes.ethtool.ioctl import DriverInfo
from probes.ethtool.netlink import Fec, LinkModes, Pause
from probes.ethtool.text_lines import pair, pairs

_COUNTER = re.compile(r"[ \t]*(\S{1,80}):[ \t]*([0-9]{1,20})[ \t]*\r?")
_SPEED = re.compile(r"\b([0-9]{2,7})base[A-Za-z0-9_]+/(?:Full|Half)\b")
_RUNS = re.compile(r"([1-9][0-9]{0,7})Mb/s.{0,40}")
_FEC = {"none": "off", "off": "off", "rs": "rs", "baser": "baser", "llrs": "llrs"}
_SWITCH = {"on": True, "off": False}


def parse_settings(text: str) -> LinkModes | None:
    r"""The answer to plain `ethtool IF`.

    >>> parse_settings("\tSupported link modes:   100000baseSR4/Full\n\t\t200000baseCR4/Full\n\tAuto-negotiation: on\n")
    LinkModes(autoneg=True, max_speed_mbit_s=200000, fec_supported=(), speed_mbit_s=None)
    """
    said = _sections(text)
    speeds = [int(each) for each in _SPEED.findall(said.get("Supported link modes", ""))]
    fec = tuple(_FEC[word] for word in said.get("Supported FEC modes", "").lower().split() if word in _FEC)
    autoneg = _SWITCH.get(said.get("Auto-negotiation", "").lower())
    runs = _RUNS.fullmatch(said.get("Speed", ""))
    if not speeds and not fec and autoneg is None and runs is None:
        return None
    return LinkModes(autoneg, max(speeds, default=None), fec if fec != ("off",) else (), int(runs[1]) if runs else None)


def parse_pause(text: str) -> Pause | None:
    r"""The answer to `ethtool -a IF`: what is set, not what was negotiated.

    >>> parse_pause("Pause parameters for ens6f0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\nRX negotiated: off\n")
    Pause(rx=True, tx=False, autoneg=True)
    """
    said = {key: _SWITCH.get(value.lower()) for key, value in pairs(text)}
    pause = Pause(said.get("RX"), said.get("TX"), said.get("Autonegotiate"))
    return pause if pause != Pause() else None


def parse_fec(text: str) -> Fec | None:
    r"""The answer to `ethtool --show-fec IF`.

    >>> parse_fec("Supported/Configured FEC encodings: Auto RS BaseR\nActive FEC encoding: RS\n")
    Fec(active='rs', configured=('rs', 'baser'), auto=True, counters={})
    """
    said = dict(pairs(text))
    configured = next((said[key] for key in said if key.endswith("onfigured FEC encodings")), "").lower().split()
    active = next((said[key] for key in said if key.startswith("Active FEC encoding")), "").lower()
    if not configured and not active:
        return None
    every = {f"fec_{name}": value for name, value in _counters(text).items() if name.startswith(("corr", "uncorr"))}
    counters = {name: value for name, value in every.items() if value != NOT_KNOWN}
    modes = tuple(_FEC[word] for word in configured if word in _FEC)
    return Fec(_FEC.get(active), modes, "auto" in configured if configured else None, counters)


def parse_statistics(text: str) -> dict[str, int] | None:
    r"""The answer to `ethtool -S IF`, as far as we keep it; None where there is no counter at all.

    >>> parse_statistics("NIC statistics:\n     rx_packets: 5\n     rx_discards_phy: 3\n")
    {'rx_discards_phy': 3}
    """
    every = _counters(text)
    return wanted(every) if every else None


def parse_driver(text: str) -> DriverInfo | None:
    r"""The answer to `ethtool -i IF`.

    >>> parse_driver("driver: mlx5_core\nversion: 5.0-0\nfirmware-version: 14.23.1020 (MT_2420110034)\n").driver
    'mlx5_core'
    """
    said = dict(pairs(text))
    if not said.get("driver"):
        return None
    return DriverInfo(said["driver"], said.get("version") or None, said.get("firmware-version") or None)


def _sections(text: str) -> dict[str, str]:
    """Values by their keys; lines without a key go on with the last."""
    said: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        found = pair(line)
        if found:
            last = found[0]
            said[last] = found[1]
        elif last:
            said[last] += f" {line.strip()}"
    return said


def _counters(text: str) -> dict[str, int]:
    return {match[1]: int(match[2]) for line in text.splitlines() if (match := _COUNTER.fullmatch(line))}
