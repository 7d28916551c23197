"""The answer about a job, as text: the headline, at most three causes, then the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from agent.model.job_answer import CannotTell, JobAnswer, JobCause, JobConsequence, JobTable, JoinedReport, OtherJob
from agent.outputs.text.lines import BLANK, Line, make_heading, make_line, wrap_all, wrap_paragraph
from agent.outputs.text.recommend_answers import render_log_answer

MOST_CAUSES = 3
_MOST_LINES = 4
_MOST_CHARACTERS = 220  # of a line
_MOST_ROWS = 8
_MOST_FINDINGS = 3
_FAULTS = {
    "rank": "this rank", "peer": "its peer", "wire": "the link", "fabric": "the fabric", "hardware": "the hardware",
    "software": "the software", "setting": "a setting", "unknown": "not known",
}  # fmt: skip
_ENDED = {"well": "normally"}
_STYLES = {"well": "ok", "failed": "error", "hung": "error", "killed": "error"}


def render_job(answer: JobAnswer, width: int) -> list[Line]:
    """The whole answer."""
    slow = answer.headline.startswith("Slow")
    style = "warning" if slow else _STYLES.get(answer.job.ended, "warning")
    lines = list(wrap_paragraph(answer.headline, width, "  ", style, first=""))
    lines += wrap_paragraph(describe_job(answer), width, "  ", "dim", first="")
    if answer.other_jobs:
        lines += wrap_paragraph(describe_jobs(answer), width, "  ", "warning", first="")
    for number, cause in enumerate(answer.causes[:MOST_CAUSES], 1):
        lines += [BLANK, *_cause(cause, number, width, is_headline=answer.headline.endswith(f": {cause.summary}"))]
    if len(answer.causes) > MOST_CAUSES:
        lines += [BLANK, make_heading(f"{len(answer.causes) - MOST_CAUSES} more")]
        lines += wrap_all((cause.summary for cause in answer.causes[MOST_CAUSES:]), width)
    for title, texts in _sections(answer):
        lines += [BLANK, make_heading(title)]
        lines += wrap_all(texts, width)
    if answer.machine is not None and (answer.machine.differences or answer.machine.machine):
        lines += [BLANK, make_heading("NCCL's choices")]
        machine = msgspec.structs.replace(answer.machine, log=msgspec.structs.replace(answer.machine.log, warnings=[]))
        lines += [tuple((f"  {text}" if number == 0 else text, style) for number, (text, style) in enumerate(line))
                  for line in render_log_answer(machine, width - 2)]  # fmt: skip
    return lines


def describe_jobs(answer: JobAnswer) -> str:
    """Which of several jobs this one is."""
    number = len(answer.other_jobs) + 1 + (answer.other_jobs_more or 0)
    return f"{number} jobs are in these files; this one is in {', '.join(answer.where[:4])}"


def describe_job(answer: JobAnswer) -> str:
    """The job in one line."""
    job = answer.job
    library = f"{job.library.name} {job.library.version or 'of unknown version'}" if job.library else None
    ranks = f"{job.ranks} rank{'s' if job.ranks != 1 else ''}" if job.ranks else None
    nodes = f"on {job.nodes} host{'s' if job.nodes != 1 else ''}" if job.nodes else None
    size = " ".join(part for part in (ranks, nodes) if part) or None
    read = sum(file.read_as is not None for file in answer.source.files) + (answer.source.files_more or 0)
    files = f"{read} file{'s' if read != 1 else ''} read"
    failed = f"first failure at {job.first_failure_at}" if job.first_failure_at else None
    return "  ·  ".join(
        part
        for part in (job.framework, library, size, f"ended: {_ENDED.get(job.ended, job.ended)}", failed, files)
        if part
    )


def _cause(cause: JobCause, number: int, width: int, is_headline: bool) -> Iterator[Line]:
    """One cause; the headline has the summary of the first already."""
    fault = f"  {describe_fault(cause)}, confidence {cause.confidence}"
    yield make_line((f"{number}. {cause.id}", "head"), (fault, "dim"))
    if not is_headline:
        yield from wrap_paragraph(cause.summary, width, "   ")
    for row in cause.evidence[:_MOST_LINES]:
        place = f"{row.source}:{row.line}" if row.line is not None else row.source
        yield from wrap_paragraph(f"{place}: {_cut(row.text)}", width, "       ", "dim", first="   | ")
    if len(cause.evidence) > _MOST_LINES:
        yield make_line((f"   | and {len(cause.evidence) - _MOST_LINES} more", "dim"))
    for step, text in enumerate(cause.next, 1):
        mark = "- " if len(cause.next) > 1 else ""
        first = ("   next: " if step == 1 else " " * len("   next: ")) + mark
        yield from wrap_paragraph(text, width, " " * len(first), first=first)


def describe_fault(cause: JobCause) -> str:
    """What is at fault, in words."""
    return f"at fault: {_FAULTS.get(cause.at_fault.kind, cause.at_fault.kind)}"


def list_unread(answer: JobAnswer) -> list[tuple[str, str]]:
    """The files that were not read, or only in part, and why."""
    return [
        (file.name, file.reason or "no data of a job in it")
        for file in answer.source.files
        if file.reason or not file.read_as
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} .."


def _sections(answer: JobAnswer) -> Iterator[tuple[str, list[str]]]:
    if answer.consequences:
        rows = [
            describe_consequence(row) + (f" [from {row.of}]" if row.of else "")
            for row in answer.consequences[:_MOST_ROWS]
        ]
        rest = len(answer.consequences) - len(rows)
        yield "What followed", [*rows, *([f"and {rest} more"] if rest else [])]
    settings = [f"{row.name}={row.value} ({row.where}): {row.reason}" for row in answer.settings if row.verdict != "ok"]
    if settings:
        yield "Settings", settings[: 2 * _MOST_ROWS]
    if answer.measured:
        yield "Measured", [describe_table(table) + _level(table.judged) for table in answer.measured[:_MOST_ROWS]]
    if answer.other_jobs:
        jobs = list(map(describe_other_job, answer.other_jobs))
        jobs += [f"and {answer.other_jobs_more} before them"] if answer.other_jobs_more else []
        yield "Other jobs in these files", jobs
    if answer.notes:
        yield "Notes", [row.summary for row in answer.notes[:_MOST_ROWS]]
    telling = [row for row in answer.reports if not row.joined or row.reason or row.findings] or answer.reports[:1]
    reports = [describe_report(row, _MOST_FINDINGS) for row in telling[:_MOST_ROWS]]
    more = len(answer.reports) - len(reports)
    if reports:
        yield "Reports", [*reports, *([f"and {more} more"] if more else [])]
    unread = list_unread(answer)
    if unread:
        yield "Not read, or only in part", [f"{name}: {why}" for name, why in unread[:_MOST_ROWS]]
    if answer.cannot_tell:
        yield "What these files do not show", list(map(describe_gap, answer.cannot_tell))


def describe_consequence(row: JobConsequence) -> str:
    """What followed, and in how many lines."""
    return f"{row.summary}{f' ({row.count} lines)' if row.count > 1 else ''}"


def describe_table(table: JobTable) -> str:
    """A measured table in one line."""
    size = f"{table.rows} rows of {table.tool}, {table.largest_gbyte_s:.3g} GB/s at the largest size"
    return "; ".join((f"{table.source}: {size}", *table.shapes))


def describe_other_job(other: OtherJob) -> str:
    """Another job of the same files."""
    return f"{', '.join(other.where[:4])}: {other.headline}"


def describe_report(row: JoinedReport, most_findings: int) -> str:
    """Whether a report was joined with the job, and its findings."""
    parts = ["joined" if row.joined else "not joined", *([row.reason] if row.reason else [])]
    parts += [f"{f.severity} {f.rule} on {f.label}: {f.summary}" for f in row.findings[:most_findings]]
    return f"{row.source}{f' ({row.host})' if row.host else ''}: {'; '.join(parts)}"


def describe_gap(row: CannotTell) -> str:
    """What is not in the files, and what to save."""
    return f"{row.what}{f'; save {row.save}' if row.save else ''}"


def _level(judged: list) -> str:  # type: ignore[type-arg]
    verdicts = Counter(row.verdict for row in judged if row.verdict != "not-judged")
    if not verdicts:
        return ""
    worst = next((row for row in judged if row.verdict in ("low", "above")), None)
    text = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    why = f"; {worst.reasons[0]}" if worst is not None and worst.reasons else ""
    return f"; against the machine: {text}{why}"
