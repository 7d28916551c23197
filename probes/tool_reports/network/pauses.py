"""Interfaces of a host that pause, or are paused, far more than its others: `ethtool -S` of each, side by side.

Pauses alone are no fault: healthy hosts have them. Counters are cumulative since the driver was loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.host.commands import ETHTOOL_COUNTERS
from probes.host.interface import Host, ReadError
from probes.text import MOST_CHARACTERS, lazy_pattern
from probes.tool_reports.facts import ToolReport, state_fault

_COUNTER = lazy_pattern(r"(?m)^[ \t]*(?P<name>[\w.]{4,48}):[ \t]*(?P<count>\d{1,19})[ \t\r]*$")
_PAUSES = lazy_pattern(
    r"(?P<way>[rt]x)_(?:prio\d_pause|global_pause|pause_ctrl_phy|pause_frames|pfc_ena_frames_pri\d|"
    r"priority_\d_xoff(?:\.nic)?)"
)
_FRAMES = ("{}_packets_phy", "{}_prio{}_packets", "{}_ucast_packets", "{}_unicast.nic", "{}_packets")
_OTHER_WAY = {"tx": "rx", "rx": "tx"}  # a host pauses what it receives, and is paused in what it sends
_PEERS = 3  # beside the one
_LEAST, _TIMES = 1_000_000, 100  # frames, and times those of each other interface


def list_odd_pauses(host: Host) -> list[tuple[str, ToolReport]]:
    """Each with the command that shows it: where traffic does not explain it, and with another code where the outputs
    do not count traffic."""
    tables = dict(_read_tables(host))
    if len(tables) <= _PEERS:
        return []
    names = dict.fromkeys(name for table in tables.values() for name in table if _PAUSES.fullmatch(name))
    reports: dict[tuple[str, str], tuple[str, ToolReport]] = {}
    for name in names:
        counts = {interface: table[name] for interface, table in tables.items() if name in table}
        if len(counts) > _PEERS and (most := max(counts, key=lambda interface: counts[interface])):
            others = max(count for interface, count in counts.items() if interface != most)
            way = name[:2]
            if counts[most] >= max(_LEAST, _TIMES * others) and (code := _find_code(tables, counts, most, name)):
                what = f"{name} {counts[most]}, others at most {others}"
                report = state_fault(code, most, what, f"{name}: {counts[most]}")
                reports.setdefault((most, way), (" ".join((*ETHTOOL_COUNTERS, most)), report))
    return list(reports.values())


def _find_code(tables: Mapping[str, Mapping[str, int]], counts: Mapping[str, int], most: str, name: str) -> str | None:
    """What it is; None where the interface carries as many times the traffic of the others."""
    way = name[:2]
    traffic = {interface: _count_frames(tables[interface], _OTHER_WAY[way], name) for interface in counts}
    if not all(traffic.values()):
        return f"pauses-{way}-unweighed"
    shares = {interface: counts[interface] / (frames or 1) for interface, frames in traffic.items()}
    others = max(share for interface, share in shares.items() if interface != most)
    return f"pauses-{way}" if shares[most] >= _TIMES * others else None


def _count_frames(table: Mapping[str, int], way: str, name: str) -> int:
    priority = next((character for character in name if character.isdecimal()), "0")
    return next((count for form in _FRAMES if (count := table.get(form.format(way, priority), 0))), 0)


def _read_tables(host: Host) -> Iterator[tuple[str, dict[str, int]]]:
    for interface in host.saved_arguments(*ETHTOOL_COUNTERS):
        try:
            text = host.run(*ETHTOOL_COUNTERS, interface).stdout
        except ReadError:
            continue
        if len(text) <= MOST_CHARACTERS:
            yield interface, {row["name"]: int(row["count"]) for row in _COUNTER.finditer(text)}
