"""Events of the report: what the kernel log reports about devices, whatever the log's source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts
from agent.assemble.sort_key import sort_key
from agent.model.node import Event

if TYPE_CHECKING:
    from probes.kernel.log_facts import KernelLogFacts


def build_events(facts: ProbeFacts) -> list[Event]:
    """One row for equal lines, sorted by subject, kind and code."""
    log: KernelLogFacts | None = facts.get("kernel_log")
    if log is None:
        return []
    rows = [
        Event(
            kind=event.kind,
            text=event.text,
            source=log.source,
            at=event.at,
            subject=event.subject,
            code=event.code,
            count=event.count,
            first_at=event.first_at,
            logged=event.logged,
            detail=dict(event.detail),
            times=list(event.times),
        )
        for event in log.events
    ]
    return sorted(rows, key=lambda row: (sort_key(row.subject or ""), row.kind, row.code or "", row.text))
