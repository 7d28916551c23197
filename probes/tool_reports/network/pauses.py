"""What counters of congestion state: interfaces that pause, or are paused, far more than the others of their host, by
`ethtool -S` of each; RDMA in a class that drops; marks of congestion that no notification answers.

Pauses alone are no fault: healthy hosts have them. Counters are cumulative since the driver was loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.host.commands import ETHTOOL_COUNTERS
from probes.host.interface import Host, ReadError
from probes.text import MOST_CHARACTERS, check_length, lazy_pattern, require
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
_MARKS, _NOTIFIED = "np_ecn_marked_roce_packets", "np_cnp_sent"
_MARK_COUNT = lazy_pattern(
    rf"\b(?P<name>{_MARKS}|{_NOTIFIED})\b[\"' \t:=]{{1,40}}(?:\n[ \t]{{0,8}})?(?P<count>\d{{1,19}})\b"
)
_OF_RDMA, _OF_CLASS = (
    lazy_pattern(r"rx_vport_rdma_unicast_(packets|bytes)"),
    lazy_pattern(r"rx_prio([1-7])_(?:packets|bytes)"),
)
_MANY, _MOSTLY = 10_000, 0.8  # marked packets; of what a class received


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


def list_unanswered_marks(text: str) -> list[ToolReport]:
    """Marks of congestion of ports that never sent a notification. Raises ParseError where these are not counted.

    >>> text = "np_cnp_sent:{}\\nnp_ecn_marked_roce_packets:774109\\n"
    >>> [len(list_unanswered_marks(text.format(count))) for count in (0, 12)]
    [1, 0]
    """
    counts: dict[str, list[int]] = {}
    for match in _MARK_COUNT.finditer(check_length(text)):
        counts.setdefault(match["name"], []).append(int(match["count"]))
    marks, sent = (require(counts.get(name), f"no counter {name}") for name in (_MARKS, _NOTIFIED))
    what = f"{_MARKS} {max(marks)}, {_NOTIFIED} 0"
    return [state_fault("marks-unanswered", None, what)] if not any(sent) and max(marks) >= _MANY else []


def list_lossy_class(text: str) -> list[ToolReport]:
    """RDMA of an interface that arrives in priority 0, which drops, while another class is empty. Raises ParseError
    where its traffic is not counted by class.

    >>> text = "rx_vport_rdma_unicast_bytes: 88\\nrx_prio0_bytes: 90\\nrx_prio0_discards: {}\\nrx_prio3_bytes: 0\\n"
    >>> [report.detail[0][1] for report in list_lossy_class(text.format(71))], list_lossy_class(text.format(0))
    (['rx_vport_rdma_unicast_bytes 88 of rx_prio0_bytes 90, rx_prio0_discards 71, rx_prio3_bytes 0'], [])
    """
    table = {match["name"]: int(match["count"]) for match in _COUNTER.finditer(check_length(text))}
    of_rdma = require(next(filter(None, map(_OF_RDMA.fullmatch, table)), None), "no traffic of RDMA")
    rdma, unit = of_rdma.group(0, 1)
    lost, own = table.get("rx_prio0_discards", 0), table.get(f"rx_prio0_{unit}", 0)
    empty = [name for name, count in table.items() if not count and _OF_CLASS.fullmatch(name)]
    if not empty or not lost or not table[rdma] >= _MOSTLY * own > 0:
        return []
    what = f"{rdma} {table[rdma]} of rx_prio0_{unit} {own}, rx_prio0_discards {lost}, {empty[0]} 0"
    return [state_fault("class-lossy", None, what)]
