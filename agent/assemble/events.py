"""Dated evidence of the report: what the kernel's log says of devices, and nothing about its source's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.assemble.facts import Facts
from agent.assemble.identity import identity
from agent.model.node import Event

if TYPE_CHECKING:
    from probes.kernel.log import KernelLogFacts


def events_of(facts: Facts) -> list[Event]:
    """One row for equal lines, in the order of their subjects, kinds and codes."""
    log: KernelLogFacts | None = facts.told("kernel_log")
    if log is None:
        return []
    rows = [
        Event(
            kind=each.kind,
            text=each.text,
            source=log.source,
            at=each.at,
            subject=each.subject,
            code=each.code,
            count=each.count,
            first_at=each.first_at,
            logged=each.logged,
            detail=dict(each.detail),
        )
        for each in log.events
    ]
    return sorted(rows, key=lambda row: (identity(row.subject or ""), row.kind, row.code or "", row.text))
