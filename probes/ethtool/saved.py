"""Saved outputs of ethtool, found by the names of the interfaces that the source shows (ethtool(8)).

Plain `ethtool IF`, -a, --show-fec, -S, -i. What a text does not state is None; a text of another kind states nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from probes.ethtool.ioctl import DriverInfo, select_wanted
from probes.ethtool.netlink import NOT_KNOWN, FecReading, LinkModes, PauseReading
from probes.ethtool.probe import Ethernet, EthtoolFacts
from probes.host.interface import Absent, Host
from probes.host_reader import HostReader
from probes.layout import Field, Layout, read_layout, read_switch
from probes.probe import Reading
from probes.text import lazy_pattern
from probes.visible_interfaces import interfaces

_SPEED = lazy_pattern(r"\b([0-9]{2,7})base[A-Za-z0-9_]+/(?:Full|Half)\b")
_RUNS = lazy_pattern(r"([1-9][0-9]{0,7})Mb/s.{0,40}")
_FEC = {"none": "off", "off": "off", "rs": "rs", "baser": "baser", "llrs": "llrs"}
_TRAFFIC = ("rx_packets_phy", "rx_ucast_packets", "rx_unicast.nic", "rx_good_frames", "rx_packets")  # of a text
_DAMAGED = lazy_pattern(r"^(?:frames_)?rx_.*(?:crc|fcs)|symbol_err")
_OTHER_DAMAGED = lazy_pattern(  # of what is received, not of offloads, RoCE or FCoE
    r"(?i)(?!.*(?:tx|csum|checksum|icrc|roce|fcoe|fc_))(?:[\w.]{0,24}bad_?(?:crc|fcs)[\w.]{0,12}"
    r"|[\w.]{0,40}?(?:crc|fcs|frame_check_seq)[\w.]{0,24}?(?:err|bad)[\w.]{0,12})"
)
_OF_MLX5 = frozenset({"rx_discards_phy", "rx_prio0_bytes", "rx_prio7_bytes"})  # of a physical port


def _fec_modes(text: str) -> tuple[str, ...] | None:
    return tuple(_FEC[word] for word in text.lower().split() if word in _FEC) or None


_SETTINGS = Layout(
    {
        "Supported link modes": Field(
            "max_speed_mbit_s", lambda text: max(map(int, _SPEED.findall(text)), default=None)
        ),
        "Supported FEC modes": Field("fec_supported", _fec_modes),
        "Auto-negotiation": Field("autoneg", read_switch),
        "Link detected": Field("has_link", lambda text: {"yes": True, "no": False}.get(text.partition(" ")[0])),
        "Speed": Field("speed_mbit_s", lambda text: int(runs[1]) if (runs := _RUNS.fullmatch(text)) else None),
    },
    wrapped=True,
)
_PAUSE = Layout(
    {"RX": Field("rx", read_switch), "TX": Field("tx", read_switch), "Autonegotiate": Field("autoneg", read_switch)}
)
_CONFIGURED = Field("configured")
_FEC_OUTPUT = Layout(
    {
        "Supported/Configured FEC encodings": _CONFIGURED,
        "Configured FEC encodings": _CONFIGURED,
        "Active FEC encoding": Field("active", lambda text: text.lower() or None),
        "Active FEC encodings": Field("active", lambda text: text.lower() or None),
    },
)
_STATISTICS = Layout(row=lazy_pattern(r"(\S{1,80}):[ \t]*([0-9]{1,20})"))
_DRIVER = Layout({"driver": Field("driver"), "version": Field("version"), "firmware-version": Field("firmware")})
LABELS = frozenset((*_SETTINGS.fields, *_PAUSE.fields, *_FEC_OUTPUT.fields, *_DRIVER.fields))


def parse_settings(text: str) -> LinkModes | None:
    r"""The answer to plain `ethtool IF`.

    >>> parse_settings("\tSupported link modes:   100000baseSR4/Full\n\t\t200000baseCR4/Full\n\tAuto-negotiation: on\n")
    LinkModes(autoneg=True, max_speed_mbit_s=200000, fec_supported=(), speed_mbit_s=None, has_link=None)
    """
    modes = LinkModes(**read_layout(_SETTINGS, text).values())
    if modes == LinkModes():
        return None
    return modes._replace(fec_supported=()) if modes.fec_supported == ("off",) else modes


def parse_pause(text: str) -> PauseReading | None:
    r"""The answer to `ethtool -a IF`: what is set, not what was negotiated.

    >>> parse_pause("Pause parameters for ens6f0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\nRX negotiated: off\n")
    PauseReading(rx=True, tx=False, autoneg=True)
    """
    values = read_layout(_PAUSE, text).values()
    return PauseReading(**values) if values else None


def parse_fec(text: str) -> FecReading | None:
    r"""The answer to `ethtool --show-fec IF`.

    >>> parse_fec("Supported/Configured FEC encodings: Auto RS BaseR\nActive FEC encoding: RS\n")
    FecReading(active='rs', configured=('rs', 'baser'), auto=True, counters={})
    """
    values = read_layout(_FEC_OUTPUT, text).values()
    if not values:
        return None
    configured = values.get("configured")
    every = {
        f"fec_{name}": value for name, value in parse_counters(text).items() if name.startswith(("corr", "uncorr"))
    }
    return FecReading(
        _FEC.get(values.get("active", "")),
        _fec_modes(configured or "") or (),
        "auto" in configured.lower().split() if configured else None,
        {name: value for name, value in every.items() if value != NOT_KNOWN},
    )


def parse_statistics(text: str) -> dict[str, int] | None:
    r"""The answer to `ethtool -S IF`, as far as we keep it; None where there is no counter at all.

    >>> parse_statistics("NIC statistics:\n     rx_packets: 5\n     rx_discards_phy: 3\n     ch0_poll: 4\n")
    {'rx_discards_phy': 3, 'rx_packets': 5}
    """
    every = parse_counters(text)
    if not every:
        return None
    kept = select_wanted(every) | {name: every[name] for name in _TRAFFIC if name in every}
    if any(map(_DAMAGED.search, kept)):
        return kept
    others = {name: value for name, value in every.items() if _OTHER_DAMAGED.fullmatch(name) and value != NOT_KNOWN}
    if any(others.values()):  # of a driver whose names are not known
        return kept | {"rx_crc_errors": max(others.values())}
    return kept | ({"rx_errors": every["rx_errors"]} if "rx_errors" in every else {})


def parse_flow_control(text: str) -> tuple[tuple[bool, ...], bool] | None:
    r"""PFC by priority, and whether global pause is on in any direction, of a port of mlx5; None for any other driver.

    mlx5 has a counter `rx_prio3_pause` only while PFC is on for priority 3, and `rx_global_pause` only while global
    pause is on (drivers/net/ethernet/mellanox/mlx5/core/en_stats.c, mlx5e_grp_per_prio_pfc_get_num_stats).

    >>> parse_flow_control("rx_discards_phy: 0\nrx_prio0_bytes: 7\nrx_prio7_bytes: 0\nrx_prio3_pause: 0\n")
    ((False, False, False, True, False, False, False, False), False)
    """
    every = parse_counters(text)
    if not every.keys() >= _OF_MLX5:
        return None
    return tuple(f"rx_prio{priority}_pause" in every for priority in range(8)), "rx_global_pause" in every


def parse_driver(text: str) -> DriverInfo | None:
    r"""The answer to `ethtool -i IF`.

    >>> parse_driver("driver: mlx5_core\nversion: 5.0-0\nfirmware-version: 14.23.1020 (MT_2420110034)\n").driver
    'mlx5_core'
    """
    values = read_layout(_DRIVER, text).values()
    return DriverInfo(values["driver"], values.get("version"), values.get("firmware")) if "driver" in values else None


def parse_counters(text: str) -> dict[str, int]:
    r"""Every counter of `ethtool -S` by its name.

    >>> parse_counters("NIC statistics:\n     rx_packets: 5\n     rx_crc_errors.nic: 3\n")
    {'rx_packets': 5, 'rx_crc_errors.nic': 3}
    """
    return {row[1]: int(row[2]) for row in read_layout(_STATISTICS, text).rows}


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
    """What a saved output states; None where there is none, or where it reports nothing."""
    text = reader.saved(*argv)
    return parse(text) if text else None
