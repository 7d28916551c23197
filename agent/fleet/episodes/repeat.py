"""Parts that fail again and again: by serial number, else by node and device; the list for an RMA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row, key_types, lookup, matching
from agent.fleet.episodes import Episode, episodes, gravest
from agent.fleet.episodes.silences import NONE, Silences
from agent.fleet.hostlist import fold
from agent.fleet.questions.options import format_stamp
from agent.model.finding import SEVERITIES

_PORT = key_types("port", ("node", "nic", "port"))
FAR_PORTS = lookup(_PORT, "episodes", "far_ports", matching=matching(_PORT))
FAR_INTERFACES = lookup(key_types("netdev", ("node",)), "episodes", "far_interfaces")


class Offender(msgspec.Struct, frozen=True, kw_only=True):
    """One part or device. `episodes`: at how many moments a finding about it began; `hours`: how long any was there."""

    serial: str | None
    part: str | None
    label: str | None
    hosts: str
    severity: str  # the most severe
    episodes: int
    open: bool
    hours: float
    first: str
    last: str
    rules: list[tuple[str, int]]  # with the episodes of each, the most frequent first
    far_end: str | None = None  # of a port's cable


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet repeat`."""

    format: str = "fabricscope.repeat/1"
    since: str
    times: int
    offenders: list[Offender] = []
    silenced: int = 0


def repeats(
    tables: Tables, since: datetime, now: datetime, times: int = 2, least: str = "warning", silences: Silences = NONE
) -> Repeats:
    """Parts with at least so many episodes that were there after a moment, the worst first."""
    groups: dict[tuple[str, ...], list[Episode]] = {}
    silenced = 0
    for episode in episodes(tables, since, least):
        if silences.find(episode) is not None:
            silenced += 1
            continue
        groups.setdefault(_identity(episode), []).append(episode)
    often = [group for group in groups.values() if _count(group) >= times]
    far = _far_ends(tables, [episode for group in often for episode in group])
    offenders = [_offender(group, since, now, far) for group in often]
    return Repeats(since=format_stamp(since), times=times, offenders=sorted(offenders, key=_rank), silenced=silenced)


def _count(group: Iterable[Episode]) -> int:
    """Another severity is no other episode, and what one report was the first to have began at once."""
    return len({(episode.node, episode.began) for episode in group if not episode.is_continuation})


def _identity(episode: Episode) -> tuple[str, ...]:
    """A part that moves to another node stays the same; a device without a serial number is its node's."""
    if episode.part_serial:
        return ("serial", episode.part_serial)
    return episode.node, episode.subject


def _offender(group: list[Episode], since: datetime, now: datetime, far: dict[tuple[str, str], str]) -> Offender:
    rules = Counter(episode.rule for episode in group if not episode.is_continuation)
    last = max(group, key=lambda episode: episode.began)
    return Offender(
        serial=last.part_serial,
        part=last.part,
        label=last.label,
        hosts=fold(episode.node for episode in group),
        severity=gravest(episode.severity for episode in group),
        episodes=_count(group),
        open=any(episode.ended is None for episode in group),
        hours=round(_sum_open_time(group, since, now) / timedelta(hours=1), 1),
        first=format_stamp(min(episode.began for episode in group)),
        last=format_stamp(last.began),
        rules=sorted(rules.items(), key=lambda item: (-item[1], item[0])),
        far_end=next(
            (far[episode.node, episode.subject] for episode in group if (episode.node, episode.subject) in far), None
        ),
    )


def _sum_open_time(group: Iterable[Episode], since: datetime, now: datetime) -> timedelta:
    """The time in which at least one was there."""
    covered, until = timedelta(), since
    for began, ended in sorted((episode.began, episode.ended or now) for episode in group):
        start = max(began, until)
        if ended > start:
            covered += ended - start
            until = ended
    return covered


def _rank(offender: Offender) -> tuple[int, int, str]:
    return -offender.episodes, -SEVERITIES.index(offender.severity), offender.hosts


def _far_ends(tables: Tables, episode_list: list[Episode]) -> dict[tuple[str, str], str]:
    """What the cables of ports among the subjects lead to, by node and subject."""
    ports: dict[tuple[str, str, int], str] = {}
    nodes: dict[tuple[str], None] = {}
    for episode in episode_list:
        kind, _, rest = episode.subject.partition(":")
        nic, _, number = rest.rpartition("/")
        if kind == "port" and number.isdecimal() and len(number) < 6:
            ports[episode.node, nic, int(number)] = episode.subject
        if kind in ("port", "netdev"):
            nodes[episode.node,] = None
    ends: dict[tuple[str, str], str] = {}
    for node, interface, nic, system, port in tables.fetch_by_keys(FAR_INTERFACES, nodes):
        for subject in (f"netdev:{interface}", *(s for (n, c, _), s in ports.items() if (n, c) == (node, nic))):
            ends[node, subject] = _place(system, port)
    row: Row
    for row in tables.fetch_by_keys(FAR_PORTS, ports):
        if row[3] is not None and row[4] is not None:
            ends[row[0], ports[row[:3]]] = _place(row[3], row[4])
    return ends


def _place(system: str | None, port: object) -> str:
    return f"{system or 'a switch'}/{port}"
