"""What a judging says: lines for people, or one JSON object a judging for machines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from agent.diff.change import Change
from agent.diff.page import MARKS, sentence
from agent.model.finding import Summary
from agent.watch.judging import Judged
from agent.watch.pace import ASKED, START, Reason, Turn

SCHEMA = "fabricscope.watch/1"
MOST_LINES = 50  # of one judging; the report and ndjson have all
MOST_SHOWN = 3  # reasons in one line
_XID_PROCESS = re.compile(r"NVRM: Xid .*?\bpid='?(\d{1,9})\b")
SPOKEN = (START, ASKED)  # answered by a line in any case


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for a judging."""

    kind: str  # start, time, asked; interface, pci, xid, ... ; missed
    subject: str | None
    text: str
    source: str  # rtnetlink | uevents | /dev/kmsg | clock | signal
    times: int


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One judging. `changes` are those of `fabricscope.diff/1`, findings that came or went first."""

    schema: str = SCHEMA
    time: str  # when the host was seen, RFC 3339
    why: list[Why]
    more_reasons: int
    full: bool  # everything was read; else what `read` lists
    read: list[str]
    duration_seconds: float
    verdict: str
    verdict_before: str | None
    counts: dict[str, int]
    notes: list[str]
    changes: list[Change]


def ndjson(turn: Turn, made: Judged) -> bytes:
    """One object, one line."""
    report = made.report
    told = Told(
        time=report.observed_at or report.generated_at,
        why=[Why(times=each.times, **each.event._asdict()) for each in turn.reasons],
        more_reasons=turn.more,
        full=turn.full,
        read=made.read,
        duration_seconds=report.duration_seconds,
        verdict=report.summary.verdict,
        verdict_before=made.was,
        counts=report.summary.counts,
        notes=made.notes,
        changes=made.changes,
    )
    return msgspec.json.encode(told, order="deterministic") + b"\n"


def text(turn: Turn, made: Judged) -> list[str]:
    """A line on the verdict and the reason, then a line a change. Nothing where nothing changed, and nobody asked."""
    report = made.report
    if not made.changes and not any(each.event.kind in SPOKEN for each in turn.reasons):
        return []
    at = report.observed_at or report.generated_at
    verdict = report.summary.verdict
    moved = f"{made.was} -> {verdict}" if made.was not in (None, verdict) else verdict
    lines = [f"{at}  {moved}  {counted(report.summary)}; {reasons(turn)}"]
    lines += [f"{at}  ! {note}" for note in made.notes]
    lines += [f"{at}  {told}" for told in _changes(made.changes[:MOST_LINES])]
    if len(made.changes) > MOST_LINES:
        lines.append(f"{at}  and {len(made.changes) - MOST_LINES} more changes")
    return [_one_line(each) for each in lines]


def reasons(turn: Turn) -> str:
    """Why it was judged, in a few words."""
    shown = [_reason(each) for each in turn.reasons[:MOST_SHOWN]]
    rest = len(turn.reasons) - len(shown) + turn.more
    return _one_line(", ".join(shown) + (f" and {rest} more" if rest else ""))


def describe_processes(turn: Turn) -> list[str]:
    """The processes that the driver's errors name and that still run: whose job it is. Live facts, in no report."""
    lines = []
    for reason in turn.reasons:
        if match := _XID_PROCESS.search(reason.event.text):
            from probes.host.process import describe_process

            if process := describe_process(int(match[1])):
                lines.append(_one_line(f"{reason.event.kind} {reason.event.subject}: {process}"))
    return list(dict.fromkeys(lines))


def counted(summary: Summary) -> str:
    """The findings by severity.

    >>> counted(Summary(verdict="error", counts={"error": 2, "warning": 1, "info": 0}))
    '2 error, 1 warning'
    """
    order = ("critical", "error", "warning", "info")
    found = [f"{summary.counts[each]} {each}" for each in order if summary.counts.get(each)]
    return ", ".join(found) or "no findings"


def _reason(reason: Reason) -> str:
    times = f" ({reason.times} times)" if reason.times > 1 else ""
    return f"{reason.event.text}{times}"


def _changes(changes: list[Change]) -> Iterator[str]:
    for change in changes:
        yield f"  {MARKS.get(change.kind, '~')} {sentence(change)}"


def _one_line(line: str) -> str:
    """Names and texts of a host stand in it: none of them makes a second line or speaks to a terminal."""
    return "".join(c if c.isprintable() else "?" for c in line)
