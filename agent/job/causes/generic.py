"""Causes that need no reader of their own: one per row, with its words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, first_of
from agent.job.causes.unexplained import describe_unsure, is_repeating, split_named, suspect_parts
from agent.job.causes.words import collect_words, fill
from agent.job.evidence import Evidence, LineEvent
from agent.job.named_parts import find_device

_NO_CAUSES = frozenset(("fact", "noise"))  # roles
_ABOVE, _BOX = 3, 12  # lines of a message of Open MPI, above and below the one that names the failure


def find_generic(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """One candidate for all lines of a row and role, with the ranks that wrote them."""
    by_role: dict[str, list[LineEvent]] = defaultdict(list)
    for event in events:
        by_role[event.role].append(event)
    for role, rows in by_role.items():
        if role in _NO_CAUSES or rows[0].row.id == "unwinding":
            continue
        is_unsure = is_repeating(rows[0].row)
        if is_unsure:
            named, rows = split_named(rows)
            yield from suspect_parts(evidence, named)
            if not rows:
                continue
        row, first = rows[0].row, first_of(rows)
        candidate = PossibleCause(row.form_of or row.id, role, row.fault, "", row.judge(role))
        candidate.is_plain = row.plain
        candidate.add_events(evidence, rows)
        candidate.nic = first.groups.get("nic") or None
        if candidate.nic and first.groups.get("port", "").isdecimal():
            candidate.port = int(first.groups["port"])
        candidate.ranks |= {int(task): None for event in rows if (task := event.groups.get("task", "")).isdecimal()}
        candidate.facts |= {name: first.groups[name] for name in ("how", "kind") if name in first.groups}
        named_hosts = {name: None for event in rows if (name := event.groups.get("hosts"))}
        written = {event.line.host for event in rows}
        candidate.hosts = {name: None for name in candidate.hosts if name in written or not named_hosts} | named_hosts
        for event in rows:
            host = evidence.ranks.find_host(event.groups.get("peer", ""))
            if host is not None:
                candidate.peers.setdefault(host)
        describe(evidence, candidate, first)
        if is_unsure:
            describe_unsure(evidence, candidate, first)
        yield candidate


def find_boxed(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """Messages of Open MPI in a box, whose host and error are lines of their own."""
    box = evidence.find_events("mpi-local-host")
    for candidate in find_generic(evidence, events):
        file, number = candidate.first_line or (0, 0)
        near = [row for row in box if row.line.file == file and -_ABOVE <= row.line.number - number <= _BOX]
        candidate.blame(hosts=(row.groups["hosts"].partition(".")[0] for row in near if "hosts" in row.groups))
        error = next((row.groups["error"] for row in near if "error" in row.groups), "")
        if near:
            describe(evidence, candidate, first_of(events), meaning=error, **({"error": error} if error else {}))
        yield candidate


def describe(evidence: Evidence, candidate: PossibleCause, event: LineEvent, **more: str) -> dict[str, str]:
    """Summary and next steps of the event's row; `more`: further words for their placeholders. Returns all words."""
    words = collect_words(evidence, candidate, event) | more
    candidate.summary = fill(event.row.summary, words)
    candidate.next = [fill(text, words) for text in event.row.next]
    part = find_device(event.line.text) if event.row.fault == "hardware" else None
    if part is not None and part.lower().replace(" ", "") not in candidate.summary.lower():
        candidate.summary += f" ({part})"
    return words
