"""What every question accepts besides the tables, and which nodes are stale."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import Pending, query


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The same values give the same answers: no question looks at a clock."""

    stale_after_seconds: float = 86_400.0  # a node whose last report arrived longer ago is stale
    now: datetime | None = None  # UTC without a zone; None: when the newest report arrived
    fewest: int = 5  # nodes that a group needs before it has a usual value
    majority: float = 0.8  # share of a group from which on a value is the usual one


ORDINARY = Options()
NODE_STATES = ("critical", "error", "warning", "unknown", "stale", "ok", "nothing_to_check")  # of a node, worst first


def find_state(verdict: str | None, stale: bool, lost_gpus: str | None = None) -> str:
    """The one state that a node counts as in every output.

    A node that was bad when last seen stays bad, but nothing that is old or could not be judged counts as ok.
    `lost_gpus`: the state of a node that had more GPUs before, where it has another one than its verdict.

    >>> find_state("error", True), find_state("ok", True), find_state("unknown", False), find_state("ok", False)
    ('error', 'stale', 'unknown', 'ok')
    >>> find_state("nothing_to_check", False), find_state(None, False), find_state("ok", True, "error")
    ('nothing_to_check', 'unknown', 'error')
    """
    if verdict in ("critical", "error", "warning"):
        return verdict
    if lost_gpus is not None:
        return lost_gpus
    if stale:
        return "stale"
    return verdict if verdict in ("ok", "nothing_to_check") else "unknown"


NEWEST = query("fleet", "newest")
STALE = query("fleet", "stale_nodes")


def read_dataset_time(tables: Tables, of_these: datetime | None) -> datetime | None:
    """Its time, UTC without a zone. `of_these`: the same of the nodes that are asked about, known already."""
    if tables.whole is tables:
        return of_these
    ((_, newest),) = tables.whole.rows(NEWEST)
    newest_time: datetime | None = newest
    return newest_time


def find_reference_time(newest: datetime, options: Options) -> datetime:
    """The moment that reports are stale against: now, or the newest arrival where the whole dataset gets none."""
    if options.now is None or is_silent(newest, options):
        return newest
    return max(options.now, newest)


def is_silent(newest: datetime, options: Options) -> bool:
    """Whether no node's report arrived for longer than one may take."""
    return options.now is not None and options.now - newest > timedelta(seconds=options.stale_after_seconds)


def find_stale_cut(newest: datetime, options: Options) -> datetime:
    """Reports that arrived before it are stale."""
    return subtract_time(find_reference_time(newest, options), timedelta(seconds=options.stale_after_seconds))


def subtract_time(moment: datetime, by: timedelta) -> datetime:
    """A moment before another; the first that there is, where there is none so early."""
    try:
        return moment - by
    except OverflowError:
        return datetime.min  # noqa: DTZ901  # times of a dataset have no zone


def format_stamp(moment: datetime) -> str:
    """RFC 3339 of a UTC time that has no zone."""
    return moment.isoformat(timespec="seconds") + "Z"


def submit_stale_nodes(tables: Tables, options: Options) -> Pending:
    """Nodes whose last report arrived longer ago than the options allow."""
    ((_, newest),) = tables.whole.rows(NEWEST)
    return list if newest is None else tables.submit(STALE.bind(moment=find_stale_cut(newest, options)))
