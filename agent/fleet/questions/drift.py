"""What became another since a moment: by what changed and from what to what, folded over the nodes that changed alike.

The state of that moment is compared with that of now; what changed and changed back is nothing. What was unknown and
is known, or the other way round, is no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Row, query
from agent.fleet.hostlist import fold
from agent.fleet.questions.deviations import LABELS
from agent.fleet.questions.drift_rows import (
    BAGS,
    GONE,
    MOVED,
    NEW,
    SUBJECTS,
    DriftSubject,
    compare_times,
    list_changed_columns,
)
from agent.fleet.questions.multisets import parse_words
from agent.fleet.questions.options import NEWEST, format_stamp
from agent.model.node import SWITCH_PREFIX

_MEMORY_SHARE = 0.02  # firmware gives a little more or less at each boot
_Place = tuple[str, str | None]  # node and device
_REMEMBERED = ("machine_id", "serial")  # of a host: they state which machine and which system it is


class DriftChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change on the nodes that have it alike. `old` and `new` are None where each node has its own."""

    subject: str  # "GPU", "kernel", ..
    what: str  # the column in words; "gone", "new"
    old: str | None = None
    new: str | None = None
    hosts: str
    nodes: int
    things: int  # devices, on all these nodes
    labels: list[str] = []
    first: str | None = None  # when it was first and last noticed, RFC 3339
    last: str | None = None


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `fleet drift`."""

    since: str
    newest: str | None = None
    changes: list[DriftChange] = []
    added: str = ""  # nodes that were not there at that moment, folded
    added_nodes: int = 0
    silent: str = ""  # nodes without a report since
    silent_nodes: int = 0
    reinstalled: str = ""  # the same machine, another system
    replaced: str = ""  # another machine by the same name
    compared_nodes: int = 0


class _Noticed(NamedTuple):
    subject: DriftSubject
    what: str
    old: str | None
    new: str | None
    node: str
    label: str | None
    at: datetime
    device: str | None
    identities: tuple[str | None, str | None] = (None, None)  # of a device that came, went or was replaced: then, now


def find_drift(tables: Tables, since: datetime) -> Drift:
    """What changed after `since`, which is UTC without a zone."""
    counted = tables.submit(NEWEST)
    earlier = tables.submit(SILENT.bind(moment=since))
    new, compared = compare_times(tables, since)
    ((nodes, newest),), silent = counted(), [node for (node,) in earlier()]
    noticed: list[_Noticed] = []
    for subject, at, rows in compared:
        noticed += _read_changes(subject, at, rows())
    moves, changes = take_moves(_join_devices(noticed))
    systems, machines = _find_replaced_hosts(changes)
    return Drift(
        since=format_stamp(since),
        newest=format_stamp(newest) if newest else None,
        changes=_sort_changes([*moves, *_fold_changes(changes)]),
        added=fold(new),
        added_nodes=len(new),
        silent=fold(silent),
        silent_nodes=len(silent),
        reinstalled=fold(systems - machines),
        replaced=fold(machines),
        compared_nodes=nodes - sum(not node.startswith(SWITCH_PREFIX) for node in new),
    )


def _read_changes(subject: DriftSubject, at: dict[str, datetime], rows: Iterable[Row]) -> Iterator[_Noticed]:
    columns = list_changed_columns(subject)
    width = len(columns)
    named = width + len(subject.key) + 1
    identity = next((at for at, column in enumerate(columns) if column.name == subject.identity), None)
    for row in rows:
        node, was, now = row[0], row[1 : 1 + named], row[1 + named :]
        if node not in at:
            continue
        keys = len(subject.key)
        there, here = (side[0 if keys else -1] is not None for side in (was, now))
        label, moment = (now if here else was)[-1], at[node]
        device = str((now if here else was)[0]) if subject.of_device else None
        identities = (None, None) if identity is None else (was[keys + identity], now[keys + identity])
        if there != here:
            key = [str(value) for value in (now if here else was)[:keys]]
            what = NEW if here else GONE
            yield _Noticed(subject, what, None, None, node, label or " ".join(key), moment, device, identities)
            continue
        for column, old, new in zip(columns, was[keys : keys + width], now[keys : keys + width], strict=True):
            if old is None or new is None or old == new or _is_little(column.name, old, new):
                continue
            for change in _compare_column(subject, column.name, old, new, node, label, moment):
                yield change._replace(device=device, identities=identities)


def _compare_column(
    subject: DriftSubject, column: str, old: Any, new: Any, node: str, label: str | None, at: datetime
) -> Iterator[_Noticed]:
    if column not in BAGS:
        yield _Noticed(subject, column, _format_text(old), _format_text(new), node, label, at, None)
        return
    was, now = parse_words(str(old)), parse_words(str(new))
    for name in sorted({*was, *now}):
        if was.get(name) != now.get(name):
            yield _Noticed(subject, column, was.get(name, "(absent)"), now.get(name, "(absent)"), node, label, at, None)


def _join_devices(noticed: list[_Noticed]) -> list[_Noticed]:
    """Without what follows from another: the parts of a device that came or went itself (port, link, address), and the
    role of a NIC where a GPU came or went, whose rail it was or is.
    """
    moved = {notice.node for notice in noticed if notice.what in (GONE, NEW) and notice.subject.table == "gpu"}
    order = {subject.table: place for place, subject in enumerate(SUBJECTS)}
    seen: dict[tuple[str, str, str], int] = {}
    for notice in noticed:
        if notice.what in (GONE, NEW) and notice.device:
            key = (notice.node, notice.what, notice.device)
            seen[key] = min(seen.get(key, len(SUBJECTS)), order[notice.subject.table])
    return [
        notice
        for notice in noticed
        if (
            notice.what not in (GONE, NEW)
            or not notice.device
            or seen[notice.node, notice.what, notice.device] == order[notice.subject.table]
        )
        and not (notice.what == "role" and notice.subject.table == "nic" and notice.node in moved)
    ]


SILENT = query("drift", "silent_nodes")


def _is_little(column: str, old: Any, new: Any) -> bool:
    return column == "memory_mib" and abs(new - old) <= _MEMORY_SHARE * max(abs(old), 1)


def _format_text(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _find_replaced_hosts(noticed: Iterable[_Noticed]) -> tuple[set[str], set[str]]:
    """Nodes with another machine-id, and with another serial number."""
    systems: set[str] = set()
    machines: set[str] = set()
    for notice in noticed:
        if notice.subject.table == "host" and notice.what in _REMEMBERED:
            (systems if notice.what == "machine_id" else machines).add(notice.node)
    return systems, machines


def take_moves(noticed: list[_Noticed]) -> tuple[list[DriftChange], list[_Noticed]]:
    """Devices that were in one place then and are in another now, and what of the changes is left to show."""
    places: dict[str, tuple[dict[_Place, _Noticed], dict[_Place, _Noticed]]] = {}
    for notice in noticed:
        then, now = notice.identities
        if then != now:
            for side, value in enumerate((then, now)):
                if value:
                    places.setdefault(value, ({}, {}))[side][notice.node, notice.device] = notice
    moves, arrived, left = [], set(), set()
    for value, (sources, targets) in places.items():
        if len(sources) == len(targets) == 1 and sources.keys() != targets.keys():
            ((source, before),), ((target, after),) = sources.items(), targets.items()
            arrived.add(target)
            left.add(source)
            moves.append(_move(value, before, after))
    explained = [
        one
        for one in noticed
        if one.identities == (None, None)
        or (
            not ((one.node, one.device) in arrived and one.what in (NEW, *one.subject.own))
            and not ((one.node, one.device) in left and one.what == GONE)
        )
    ]
    return moves, explained


def _move(value: str, before: _Noticed, after: _Noticed) -> DriftChange:
    replaced = after.identities[0]
    return DriftChange(
        subject=after.subject.one,
        what=MOVED,
        old=f"{before.node} {before.label}",
        new=f"{after.node} {after.label}{f' (before: {replaced})' if replaced else ''}",
        hosts=fold({before.node, after.node}),
        nodes=len({before.node, after.node}),
        things=1,
        labels=[value],
        first=format_stamp(min(before.at, after.at)),
        last=format_stamp(max(before.at, after.at)),
    )


def _fold_changes(noticed: Iterable[_Noticed]) -> list[DriftChange]:
    alike: dict[tuple[str, str, str | None, str | None, str | None], list[_Noticed]] = {}
    for notice in noticed:
        own = notice.what in notice.subject.own
        key = (notice.subject.one, notice.what, None if own else notice.old, None if own else notice.new)
        alike.setdefault((*key, notice.label if notice.subject.table == "finding" else None), []).append(notice)
    changes = []
    for (one, what, old, new, _), same in alike.items():
        labels = sorted({noticed.label for noticed in same if noticed.label and noticed.subject.key})
        nodes = {noticed.node for noticed in same}
        single = len(same) == 1
        changes.append(
            DriftChange(
                subject=one,
                what=what,
                old=same[0].old if single else old,
                new=same[0].new if single else new,
                hosts=fold(nodes),
                nodes=len(nodes),
                things=len(same),
                labels=labels if len(labels) <= LABELS else [],
                first=format_stamp(min(noticed.at for noticed in same)),
                last=format_stamp(max(noticed.at for noticed in same)),
            )
        )
    return changes


def _sort_changes(changes: list[DriftChange]) -> list[DriftChange]:
    order = {subject.one: place for place, subject in enumerate(SUBJECTS)}
    return sorted(
        changes, key=lambda c: (order[c.subject], -c.nodes, c.what, c.old or "", c.new or "", c.hosts, c.labels)
    )
