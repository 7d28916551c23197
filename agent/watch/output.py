"""What an evaluation prints: lines for people, or one JSON object per evaluation for machines."""

from __future__ import annotations

import re

import msgspec

from agent.diff.ledger import Change
from agent.diff.page import MARKS, sentence
from agent.history.window import time_of
from agent.model.finding import Summary
from agent.outputs.text.lines import clean
from agent.watch.debounce import REQUESTED, START, Batch, EventReason
from agent.watch.evaluate import Evaluation

SCHEMA = "fabricscope.watch/1"
LINE_LIMIT = 50  # of one evaluation; the report and ndjson have all
SHOWN_REASONS = 3  # reasons in one line
_PROCESS_ID = re.compile(r"\bpid='?(\d{1,9})\b")
ALWAYS_REPORTED = (START, REQUESTED)  # one line in any case


class WatchReason(msgspec.Struct, frozen=True, kw_only=True):
    """One reason for an evaluation."""

    kind: str  # start, time, asked; interface, pci, xid, ... ; missed
    subject: str | None
    text: str
    source: str  # rtnetlink | uevents | /dev/kmsg | clock | signal
    times: int


class WatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation. `changes` are those of `fabricscope.diff/1`, findings that came or went first."""

    schema: str = SCHEMA
    time: str  # when the host was seen, RFC 3339
    why: list[WatchReason]
    more_reasons: int
    full: bool  # everything was read; else what `read` lists
    read: list[str]
    duration_seconds: float
    verdict: str
    verdict_before: str | None
    counts: dict[str, int]
    notes: list[str]
    changes: list[Change]


def format_ndjson(batch: Batch, evaluation: Evaluation) -> bytes:
    """One object, one line."""
    report = evaluation.report
    record = WatchRecord(
        time=time_of(report),
        why=[WatchReason(times=reason.times, **reason.event._asdict()) for reason in batch.reasons],
        more_reasons=batch.more,
        full=batch.full,
        read=evaluation.read,
        duration_seconds=report.duration_seconds,
        verdict=report.summary.verdict,
        verdict_before=evaluation.verdict_before,
        counts=report.summary.counts,
        notes=evaluation.notes,
        changes=evaluation.changes,
    )
    return msgspec.json.encode(record, order="deterministic") + b"\n"


def format_text(batch: Batch, evaluation: Evaluation) -> list[str]:
    """One line for the verdict and the reason, then one per change. Nothing where nothing changed and no one asked."""
    report = evaluation.report
    if not evaluation.changes and not any(reason.event.kind in ALWAYS_REPORTED for reason in batch.reasons):
        return []
    time = time_of(report)
    verdict = report.summary.verdict
    verdict_change = (
        f"{evaluation.verdict_before} -> {verdict}" if evaluation.verdict_before not in (None, verdict) else verdict
    )
    verdict_change = verdict_change.replace("_", " ")
    lines = [f"{time}  {verdict_change}  {format_counts(report.summary)}; {format_reasons(batch)}"]
    lines += [f"{time}  ! {note}" for note in evaluation.notes]
    changes = evaluation.changes[:LINE_LIMIT]
    lines += [f"{time}    {MARKS.get(change.kind, '~')} {sentence(change)}" for change in changes]
    if len(evaluation.changes) > LINE_LIMIT:
        lines.append(f"{time}  and {len(evaluation.changes) - LINE_LIMIT} more changes")
    return [clean(line) for line in lines]


def format_reasons(batch: Batch) -> str:
    """Why it was evaluated, in a few words."""
    texts = [_format_reason(reason) for reason in batch.reasons[:SHOWN_REASONS]]
    rest = len(batch.reasons) - len(texts) + batch.more
    return clean(", ".join(texts) + (f" and {rest} more" if rest else ""))


def describe_processes(batch: Batch) -> list[str]:
    """The processes that the driver's errors name and that still run: whose job it is. Live facts, in no report."""
    named: dict[tuple[str, int], None] = {}  # by number: described again, its state may be another one
    for reason in batch.reasons:
        _, xid, rest = reason.event.text.partition("NVRM: Xid ")
        if xid and (match := _PROCESS_ID.search(rest)):
            named[f"{reason.event.kind} {reason.event.subject}", int(match[1])] = None
    if not named:
        return []
    from probes.host.process import describe_process

    described = ((where, describe_process(number)) for where, number in named)
    return [clean(f"{where}: {process}") for where, process in described if process]


def format_counts(summary: Summary) -> str:
    """The findings by severity.

    >>> format_counts(Summary(verdict="error", counts={"error": 2, "warning": 1, "info": 0}))
    '2 error, 1 warning'
    """
    order = ("critical", "error", "warning", "info")
    counts = [f"{summary.counts[severity]} {severity}" for severity in order if summary.counts.get(severity)]
    counts += [f"{summary.silenced} silenced"] if summary.silenced else []
    return ", ".join(counts) or "no findings"


def _format_reason(reason: EventReason) -> str:
    times = f" ({reason.times} times)" if reason.times > 1 else ""
    return f"{reason.event.text}{times}"
