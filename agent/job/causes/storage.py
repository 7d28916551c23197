"""Storage that did not answer for a while, by lines of the kernel between those of the job."""

from __future__ import annotations

from collections.abc import Iterator

from agent.job.candidate import PossibleCause
from agent.job.catalogue import ENDING
from agent.job.causes.generic import find_generic
from agent.job.evidence import Evidence, LineEvent

_OFTEN = 3  # times that a server came back and was lost again


def find_lost_storage(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """What a job failed by, where a server was lost, and is not back; a server that is lost often makes it slow."""
    back = {event.groups.get("peer"): event.line for event in evidence.find_events("storage-back")}
    has_failed = any(event.role in ENDING for event in evidence.events.values())
    for candidate in find_generic(evidence, events):
        is_evicted = candidate.id == "storage-evicted"
        gone = [event for event in events if is_evicted or event.groups.get("peer") not in back]
        if gone and has_failed and not (is_evicted and evidence.ended_well):
            candidate.role = "hard"
        elif not evidence.ended_well and (gone or candidate.count >= _OFTEN):
            candidate.role = "slow"
        else:
            candidate.role = "note"
        if candidate.role == "slow" and candidate.count > 1:
            candidate.summary += f" ({candidate.count} times)"
        yield candidate
