"""Reports of one boot are in the order of the node's uptime: no clock that is set makes a new report an old one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from agent.fleet.ingest.spill import Entry

_MICROS = 1_000_000


class BootTime(NamedTuple):
    """A moment of a boot. `moment`: microseconds since 1970, by which history is ordered."""

    boot_id: str
    uptime_seconds: float
    moment: int


def boot_time_of(entry: Entry) -> BootTime | None:
    """None: the report does not have boot id and uptime."""
    if entry.boot_id is None or entry.uptime_seconds is None:
        return None
    return BootTime(entry.boot_id, entry.uptime_seconds, entry.observed)


def order_by_uptime(entries: Sequence[Entry], newest: BootTime | None) -> list[Entry]:
    """The entries of a node; the clock of one that is out of order counts on from its neighbor's by uptime.

    `newest`: of the newest report that the dataset has of the node.
    """
    ordered = [entry for entry in entries if boot_time_of(entry) is None]
    boots: defaultdict[str, list[tuple[BootTime, Entry]]] = defaultdict(list)
    for entry in entries:
        if (time := boot_time_of(entry)) is not None:
            boots[time.boot_id].append((time, entry))
    for boot_id, rows in boots.items():
        known = newest if newest is not None and newest.boot_id == boot_id else None
        ordered += _order_boot(sorted(rows, key=lambda row: row[0][1:]), known)
    return ordered


def _order_boot(rows: list[tuple[BootTime, Entry]], known: BootTime | None) -> Iterable[Entry]:
    before = known
    for time, entry in rows:
        moment = time.moment
        if known is not None and time.uptime_seconds < known.uptime_seconds:
            if moment >= known.moment:
                moment = _move(known, time)
        else:
            if before is not None and time.uptime_seconds > before.uptime_seconds and moment <= before.moment:
                moment = _move(before, time)
            before = time._replace(moment=moment)
        yield entry if moment == time.moment else replace(entry, observed=moment, corrected=True)


def _move(start: BootTime, time: BootTime) -> int:
    """The moment of a time by the clock of another and the uptime between them, at least one microsecond apart."""
    micros = round((time.uptime_seconds - start.uptime_seconds) * _MICROS)
    return max(start.moment + (micros or (1 if time.uptime_seconds > start.uptime_seconds else -1)), 0)
