"""Normalized JSON lines: facts of any switch that a site's own exporter writes, one object per line.

A row with `port` is a port of `switch`; one with `subject` "swport:SWITCH/PORT", `name` and `value` a counter; one with
`name` and `nos` a switch. docs/fleet-lossless.md has the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from probes.switches.facts import (
    EcnProfile,
    Headroom,
    PortFacts,
    SwitchFacts,
    SwitchNeighbor,
    load_json,
    parse_count,
    share_map,
)

_TEXTS = ("alias", "description", "fec_set", "fec_active", "dscp_map")
_WORDS = {
    "oper": ("up", "down"),
    "trust": ("dscp", "pcp", "both", "none"),
    "pause": ("rx", "tx", "both", "off"),
    "pfc_mode": ("on", "auto", "off"),
    "pfc_wd": ("on", "off"),
    "cnp_sched": ("strict", "dwrr"),
    "data_sched": ("strict", "dwrr"),
    "wd_action": ("drop", "forward", "alert", "errdisable"),
    "wd_state": ("operational", "stormed", "shut", "turned_off"),
}
_NUMBERS = {"mtu": 65536, "wd_detect_ms": 10**7, "cable_metres_assumed": 10**6, "speed_gbit_s": 10**5}
_OTHERS = {
    "switch", "port", "neighbor_name", "neighbor_port", "neighbor_chassis", "dscp_prio", "prio_queue", "prio_pg", "pfc",
    "pfc_active", "pfc_state", "asymmetric", "ecn", "ecn_active", "queue_sched",
    "data_weight", "headroom_bytes", "xoff_bytes", "headroom_shared", "observed_at",
}  # fmt: skip
_LONGEST = 1 << 16
MOST_PORTS, MOST_ROWS = 500_000, 20_000_000  # about 2.5 GB, and 3 GB for counters of their own rows
_SUBJECT = "swport:"


class BadRow(ValueError):
    """A line that is no row; the message states why."""


def looks_normalized(text: str) -> bool:
    """Whether the first line that is not blank is a row."""
    first = text.lstrip()[:_LONGEST].partition("\n")[0]
    if not first.startswith("{"):
        return False
    try:
        row = load_json(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and (
        ("switch" in row and "port" in row)
        or ("name" in row and "nos" in row)
        or str(row.get("subject", "")).startswith(_SUBJECT)
    )


@dataclass(slots=True)
class Room:
    """How much more is read of all files of a collection: what is kept of it takes memory."""

    ports: int = MOST_PORTS
    rows: int = MOST_ROWS

    def is_used_up(self) -> bool:
        """Whether nothing more is read."""
        return self.ports <= 0 or self.rows <= 0

    @property
    def reason(self) -> str:
        """Why not."""
        return f"more than {MOST_PORTS:,} ports or {MOST_ROWS:,} normalized lines in all: compare parts of the fabric"


def read_lines(text: str, source: str, switches: dict[str, SwitchFacts], room: Room) -> list[str]:
    """Add every row that there is room for; what could not be read, one line each."""
    problems: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if room.is_used_up():
            problems.insert(0, f"{source}: not read from line {number:,} on: {room.reason}")
            break
        room.rows -= 1
        try:
            _read_row(line, source, switches, room)
        except BadRow as error:
            cut = number == len(lines) and not line.rstrip().endswith("}")
            problems.append(f"{source}, line {number}: {'the file ends within a row' if cut else error}")
    return problems


def _read_row(line: str, source: str, switches: dict[str, SwitchFacts], room: Room) -> None:
    """Raises BadRow."""
    if len(line) > _LONGEST:
        raise BadRow(f"longer than {_LONGEST} characters")
    try:
        row = load_json(line)
    except (ValueError, RecursionError) as error:
        raise BadRow("no JSON") from error
    if not isinstance(row, dict):
        raise BadRow("no object")
    subject = row.get("subject")
    if isinstance(subject, str) and subject.startswith(_SUBJECT):
        name, _, port = subject.removeprefix(_SUBJECT).partition("/")
        value = parse_count(row.get("value"))
        if not name or not port or not isinstance(row.get("name"), str) or value is None:
            raise BadRow("a counter needs subject, name and value")
        _find_port(_find(switches, name, source), port, room).counters[_counter_name(row["name"])] = value
        return
    if isinstance(row.get("switch"), str) and isinstance(row.get("port"), str) and row["switch"] and row["port"]:
        switch = _find(switches, row["switch"], source)
        switch.configuration = True  # of what it states; a field that is null or absent stays unknown
        _read_port(switch, _find_port(switch, row["port"], room), row)
        return
    if isinstance(row.get("name"), str) and row["name"]:
        switch = _find(switches, row["name"], source)
        for key in ("nos", "model", "version", "chassis", "role", "observed_at"):
            if isinstance(row.get(key), str):
                setattr(switch, key, row[key][:200])
        return
    raise BadRow("neither a port, a counter nor a switch")


def _find(switches: dict[str, SwitchFacts], name: str, source: str) -> SwitchFacts:
    switch = switches.setdefault(name, SwitchFacts(name))
    if source not in switch.sources[-1:]:  # one file is read after the other
        switch.sources.append(source)
    return switch


def _find_port(switch: SwitchFacts, name: str, room: Room) -> PortFacts:
    room.ports -= name not in switch.ports
    return switch.port(name)


def _read_port(switch: SwitchFacts, port: PortFacts, row: Mapping[str, Any]) -> None:
    """Raises BadRow."""
    words = {key: _word(row, key) for key in _WORDS}
    numbers = {key: _number(row, key) for key in _NUMBERS}
    switch.unknown_columns += len(row.keys() - {*_TEXTS, *_WORDS, *_NUMBERS, *_OTHERS})
    for key in _TEXTS:
        if isinstance(row.get(key), str):
            setattr(port, key, row[key][:200])
    port.oper, port.trust = words["oper"] or port.oper, words["trust"] or port.trust
    port.mtu = int(numbers["mtu"]) if numbers["mtu"] else port.mtu
    port.speed_gbit_s = numbers["speed_gbit_s"] or port.speed_gbit_s
    port.watchdog_detect_ms = int(numbers["wd_detect_ms"]) if numbers["wd_detect_ms"] else port.watchdog_detect_ms
    metres = numbers["cable_metres_assumed"]
    port.cable_metres = int(metres) if metres is not None else port.cable_metres
    port.dscp_prio = _pairs(row, "dscp_prio", 64) or port.dscp_prio
    queues = _pairs(row, "prio_queue", 8)
    if queues is not None:
        port.pfc_queue = share_map(queues)
        if port.dscp_prio is not None:
            known = {dscp: queues[prio] for dscp, prio in port.dscp_prio.items() if prio in queues}
            port.dscp_queue = share_map(known)
    port.pfc, port.pfc_active = _pfc(row, "pfc", port.pfc), _pfc(row, "pfc_active", port.pfc_active)
    if words["pfc_mode"]:
        port.pfc_on = words["pfc_mode"] != "off"
    if isinstance(row.get("asymmetric"), bool):
        port.pfc_asymmetric = row["asymmetric"]
    if words["pause"]:
        port.global_pause = words["pause"] != "off"
    if words["pfc_wd"]:
        port.watchdog_configured = words["pfc_wd"] == "on"
        port.watchdog = port.pfc if port.watchdog_configured else frozenset()
    port.watchdog_action = words["wd_action"] or port.watchdog_action
    if words["wd_state"] and port.pfc:
        port.watchdog_state = dict.fromkeys(port.pfc, words["wd_state"])
    port.ecn = _read_ecn(port, row, "ecn", port.ecn)
    port.ecn_active = _read_ecn(port, row, "ecn_active", port.ecn_active)
    _read_schedulers(port, row)
    _read_neighbor(port, row)
    size, xoff = parse_count(row.get("headroom_bytes")), parse_count(row.get("xoff_bytes"))
    if port.pfc and (size is not None or xoff is not None):
        shared = row.get("headroom_shared")
        port.headroom = dict.fromkeys(port.pfc, Headroom(size, xoff, shared if isinstance(shared, bool) else None))


def _read_neighbor(port: PortFacts, row: Mapping[str, Any]) -> None:
    name, far, chassis = (
        row[key][:200] if isinstance(row.get(key), str) and row[key] else None
        for key in ("neighbor_name", "neighbor_port", "neighbor_chassis")
    )
    if name or far or chassis:
        port.neighbors = [SwitchNeighbor(name, far, None, chassis)]


def _read_schedulers(port: PortFacts, row: Mapping[str, Any]) -> None:
    """Raises BadRow. Of each queue "strict" or its weight."""
    value = row.get("queue_sched")
    if value is None:
        return
    if not isinstance(value, str):
        raise BadRow("queue_sched is no text")
    schedulers: dict[int, tuple[str, int | None]] = {}
    for part in value.split():
        queue, _, kind = part.partition(":")
        number, weight = parse_count(queue), parse_count(kind)
        if number is None or number > 15 or (kind != "strict" and weight is None):
            raise BadRow(f"queue_sched has no pair in {part[:20]!r}")
        schedulers[number] = ("strict", None) if kind == "strict" else ("dwrr", weight)
    port.scheduler = schedulers


def _read_ecn(
    port: PortFacts, row: Mapping[str, Any], field: str, before: Mapping[int, EcnProfile] | None
) -> Mapping[int, EcnProfile] | None:
    """Raises BadRow. By priority there, by queue here."""
    ecn = row.get(field)
    if ecn is None:
        return before
    if not isinstance(ecn, dict):
        raise BadRow(f"{field} is no object")
    profiles = {}
    for key, value in ecn.items():
        prio = parse_count(key)
        if prio is None or prio > 7 or not isinstance(value, dict):
            raise BadRow(f"{field} has a key that is no priority")
        in_bytes = value.get("unit", "bytes") == "bytes"
        low, high = (parse_count(value.get(f"{end}_bytes")) if in_bytes else None for end in ("min", "max"))
        percent = value.get("percent")
        queue = (port.pfc_queue or {}).get(prio, prio)
        profiles[queue] = EcnProfile(True, low, high, percent if isinstance(percent, (int, float)) else None)
    return profiles


def _pfc(row: Mapping[str, Any], field: str, before: frozenset[int] | None) -> frozenset[int] | None:
    value = row.get(field)
    if value is None:
        return before
    if not isinstance(value, str) or len(value) != 8 or set(value) - {"0", "1"}:
        raise BadRow(f"{field} is not eight digits of 0 and 1")
    return frozenset(at for at, digit in enumerate(value) if digit == "1")


def _pairs(row: Mapping[str, Any], key: str, limit: int) -> Mapping[int, int] | None:
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRow(f"{key} is no text")
    return _parse_pairs(value, key, limit)


@lru_cache(4096)
def _parse_pairs(value: str, key: str, limit: int) -> Mapping[int, int]:
    pairs = {}
    for part in value.split():
        left, _, right = part.partition(":")
        first, second = parse_count(left), parse_count(right)
        if first is None or second is None or first >= limit or second > 15:
            raise BadRow(f"{key} has no pair in {part[:20]!r}")
        pairs[first] = second
    return pairs


def _word(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is None:
        return None
    if value not in _WORDS[key]:
        raise BadRow(f"{key} is not one of {', '.join(_WORDS[key])}")
    return str(value)


def _number(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _NUMBERS[key]:
        raise BadRow(f"{key} is not a number up to {_NUMBERS[key]}")
    return value


def _counter_name(name: str) -> str:
    """The name of a counter in the form of the other readers.

    >>> [_counter_name(name) for name in ("pfc_rx_prio3", "ecn_marked_q3", "drop_queue3", "flaps")]
    ['pfc_rx_3', 'ecn_marked_3', 'drop_queue_3', 'flaps']
    """
    name = name[:64]
    if not name or not name[-1].isdigit():
        return name
    stem = name[:-1].removesuffix("_prio").removesuffix("_q").removesuffix("_")
    return f"{stem}_{name[-1]}"
