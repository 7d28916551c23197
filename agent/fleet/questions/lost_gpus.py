"""Nodes that had more GPUs some days ago, and whose own report is content."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from agent.fleet.engines.query import Pending, query
from agent.fleet.questions.options import format_stamp, subtract_time

LOST = query("summary", "lost_gpus")
LOST_SINCE = timedelta(days=7)


class LostGpus(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose report by itself has nothing wrong, and that had more GPUs in a report of the last week."""

    node: str
    before: int
    now: int
    since: str  # of the first report with fewer
    hardware_class: str | None = None
    verdict: str = "ok"  # of its report
    stale: bool = False
    state: str = "error"  # what it counts as: "unknown" in a virtual machine, whose devices the hypervisor takes


def list_lost_gpus(lost: Pending, newest: datetime, cut: datetime | None = None) -> list[LostGpus]:
    """Those of the last week: what is longer ago is how the node is now. Stale are those that arrived before `cut`."""
    start = subtract_time(newest, LOST_SINCE)
    rows = sorted((row for row in lost() if row[3] >= start), key=lambda row: (row[2] - row[1], row[0]))
    return [
        LostGpus(
            node=node,
            before=before,
            now=now,
            since=format_stamp(at),
            hardware_class=name,
            verdict=verdict,
            state="unknown" if virtual else "error",
            stale=cut is not None and received < cut,
        )
        for node, before, now, at, name, verdict, virtual, received in rows
    ]


def describe_lost_node(lost: LostGpus) -> str:
    """In place of a finding."""
    return f"had {lost.before} GPUs, now {lost.now}"
