"""Failures that no row explains: named by their own words, never silent, and never sure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent.job.candidate import PossibleCause, first_of, name_ranks, sort_key
from agent.job.catalogue import ENDING, FailureRow, load_codes
from agent.job.causes.words import collect_words, fill
from agent.job.error_lines import has_lower_level
from agent.job.evidence import MANY_STEPS, Evidence, LineEvent
from agent.job.lines import LogLine, strip_header
from agent.job.named_parts import LineWords, find_device, read_words
from probes.text import lazy_pattern

PART = "part-failed"
_NEAR_THE_END, _BEFORE_EXIT = 3, 12  # lines
_FATAL = lazy_pattern(r"(?i)\bfatal (?:\w{1,12} )?error\b")
_RANK = lazy_pattern(r"\b[Rr]ank[ :=#]{1,2}(\d{1,7})\b")
_HOST = lazy_pattern(r"\b(?:[Hh]ost|[Nn]ode)(?:name)?[ :=]{1,2}((?=[\w.-]{0,63}\d)[A-Za-z][\w.-]{0,62})")
_FEW_OF = 4  # of so many writers of unusual lines one
_OUTLIVED = 3  # steps after an error
_SHOWN = 160  # characters of a line
_HEADING = "Traceback (most recent call last):"


def is_repeating(row: FailureRow) -> bool:
    """Whether a row has no more of a failure than that a program wrote of one."""
    return row.plain and (row.role in ("exception", "unexplained") or (row.role == "error" and row.confidence == "low"))


class NamedLine(NamedTuple):
    """A line that no row explains and that names a part, with what its words show."""

    line: LogLine
    text: str
    words: LineWords

    def list_steps(self, candidate: PossibleCause) -> list[str]:
        """What its words let one look at, on the host of the candidate."""
        return [step.replace("{host}", _place(candidate)) for step in self.words.next]


def _place(candidate: PossibleCause) -> str:
    return next(iter(candidate.hosts)) if len(candidate.hosts) == 1 else "the host"


def read_line(line: LogLine) -> NamedLine:
    """The message of a line, and its words."""
    text = strip_header(line.text)
    return NamedLine(line, text, read_words(text[:400]))


def split_named(events: Sequence[LineEvent]) -> tuple[list[NamedLine], list[LineEvent]]:
    """Lines whose words name a part, and the events of the others."""
    named, others = [], []
    for event in events:
        line = read_line(event.line)
        if line.words.parts:
            named.append(line)
        else:
            others.append(event)
    return named, others


def suspect_parts(evidence: Evidence, lines: Sequence[NamedLine]) -> Iterator[PossibleCause]:
    """Parts that lines name which no row explains: what fails of itself, and what follows from something."""
    for follows in (False, True):
        own = [line for line in lines if line.words.is_consequence is follows]
        if own:
            yield _suspect(evidence, own, "consequence" if follows else "network")


def _suspect(evidence: Evidence, lines: Sequence[NamedLine], role: str) -> PossibleCause:
    candidate = PossibleCause(PART, role, "unknown", "", "low")
    candidate.is_plain = True  # a row that has more of a line comes before it
    ordered = sorted(lines, key=lambda row: sort_key(row.line))
    shown: set[tuple[int | None, tuple[str, ...]]] = set()
    first = next((named for named in ordered if named.words.means), ordered[0])  # what shows most
    for named in (first, *(other for other in ordered if other is not first)):
        key = evidence.rank_of(named.line), named.words.parts
        candidate.add(evidence, named.line, show=key not in shown)
        shown.add(key)
    parts = list(dict.fromkeys(part for named in ordered for part in named.words.parts))
    nics = {named.words.nic for named in ordered}
    candidate.nic = nics.pop() if len(nics) == 1 else None
    names = ", ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
    means = f" ({first.words.means})" if first.words.means else ""
    who = candidate.name(evidence)
    verb = "report" if len(candidate.ranks) > 1 else "reports"
    candidate.summary = f"{who} {verb} an unexplained failure of {names}{means}: {first.text[:_SHOWN]}"
    candidate.next = [
        *first.list_steps(candidate),
        f"`fabricscope scan` on {_place(candidate)}: state, counters and findings of {names}; its kernel log at that "
        f"time",
        "the lines before this one, and what the program that wrote it was doing",
    ]
    return candidate


def describe_unsure(evidence: Evidence, candidate: PossibleCause, event: LineEvent) -> None:
    """A message that only repeats what a program wrote: by its words it may be of the fabric."""
    named = read_line(event.line)
    if not named.words.means:
        return
    if named.words.is_outside:
        candidate.fault, candidate.confidence = "unknown", "low"
    if candidate.confidence == "low":
        candidate.summary += f"; by its words: {named.words.means}"
        candidate.next = [*named.list_steps(candidate), *candidate.next]


def find_unexplained(evidence: Evidence, causes: Sequence[PossibleCause]) -> Iterator[PossibleCause]:
    """Warnings of NCCL, parts that errors name, what a process wrote before it exited, errors at the end of a log."""
    if evidence.unexplained:
        yield _warn(evidence, list(evidence.unexplained.values()))
    endings = [(file, errors) for file in sorted(evidence.errors) if (errors := _list_last_errors(evidence, file))]
    named = [row for _, errors in endings for row in map(read_line, errors) if row.words.parts]
    yield from suspect_parts(evidence, named)
    if any(not row.words.is_consequence for row in named):
        return
    exited = {rank for cause in causes if cause.id in ("exit-code", "aborted") for rank in cause.ranks}
    own = [line for _, errors in endings for line in errors if evidence.rank_of(line) in exited]
    if own:
        yield _describe(evidence, own, f"{name_ranks(evidence, [evidence.rank_of(own[0]) or 0], [])} reports")
        return
    yield from _find_ending(evidence, endings)


class _Sign(NamedTuple):
    """A line that shows something unusual, and whose it is, by its writer or by its own words."""

    line: LogLine
    rank: int | None
    host: str | None


def find_sign(evidence: Evidence, cause: PossibleCause) -> PossibleCause | None:
    """What one process wrote before a failure that shows no reason, however quiet it is: of those that the others did
    not wait for, the first."""
    rows = list(evidence.signs.values())
    writers = len({writer for lines in rows for writer in lines})
    few = [lines for lines in rows if len(lines) <= max(1, writers // _FEW_OF)]
    signs = [
        sign
        for lines in few
        for line in lines.values()
        if _is_early(evidence, cause, sign := _place_sign(evidence, line))
    ]
    are_many = len(cause.ranks) > 2
    first = min(signs, key=lambda sign: (not are_many and not _is_of(cause, sign), *sort_key(sign.line)), default=None)
    if first is None:
        return None
    candidate = PossibleCause("earlier-sign", "note", "unknown", "", "low")
    candidate.add(evidence, first.line)
    candidate.blame([] if first.rank is None else [first.rank], [first.host] if first.host else [])
    named = read_line(first.line)
    candidate.summary = f"before it {candidate.name(evidence)} wrote: {named.text[:_SHOWN]}"
    candidate.next = [
        *named.list_steps(candidate),
        f"what is behind this line on {_place(candidate)}: the lines around it, the kernel log of that time",
    ]
    return candidate


def find_reason(evidence: Evidence, cause: PossibleCause) -> PossibleCause | None:
    """The first line before a cause that states a failure of what the program depends on, with no step after it."""
    file, number = cause.first_line or (0, 0)
    after = max((step for step in evidence.last_steps.get(file, ()) if step < number), default=0)
    signs = [line for lines in evidence.signs.values() for line in lines.values()]
    early = [
        line
        for line in (*signs, *evidence.errors.get(file, ()))
        if line.file == file and after < line.number < number and not has_lower_level(line.whole)
    ]
    stated = [line for line in early if (words := read_line(line).words).means and not words.is_consequence]
    if not stated:
        return None
    sign = _place_sign(evidence, min(stated, key=lambda line: line.number))
    named = read_line(sign.line)
    candidate = PossibleCause("stated-reason", "error", "unknown", "", "medium")
    candidate.add(evidence, sign.line)
    if sign.line.host is None and sign.rank is None:  # the only host that a log names need not be its writer's
        own = _HOST.search(sign.line.text)
        candidate.hosts = {own[1]: None} if own else {}
    else:
        candidate.blame([] if sign.rank is None else [sign.rank], [sign.host] if sign.host else [])
    candidate.summary = f"{candidate.name(evidence)} wrote before the job was cancelled: {named.text[:_SHOWN]}"
    candidate.summary += f"; by its words: {named.words.means}"
    candidate.next = [*named.list_steps(candidate), f"the lines around it; the kernel log of {_place(candidate)}"]
    return candidate


def _place_sign(evidence: Evidence, line: LogLine) -> _Sign:
    rank, host = evidence.rank_of(line), evidence.host_of(line)
    own_rank, own_host = _RANK.search(line.text), _HOST.search(line.text)
    rank = int(own_rank[1]) if rank is None and own_rank else rank
    return _Sign(line, rank, own_host[1] if host is None and own_host else host)


def _is_of(cause: PossibleCause, sign: _Sign) -> bool:
    """Whether a line is of the process, or of a host, that a cause names as its own or as its peer."""
    return sign.rank in cause.ranks or sign.host in cause.hosts | cause.peers


def _is_early(evidence: Evidence, cause: PossibleCause, sign: _Sign) -> bool:
    """Whether a line of one process, for which others may have waited, is before a cause, and not long before."""
    line = sign.line
    is_named = sign.rank is not None or sign.host is not None or find_device(line.text) is not None
    if cause.first_line is None or not is_named or sign.rank in cause.waiting or _HEADING in line.text:
        return False
    file, number = cause.first_line
    if line.file == file and line.number >= number:
        return False
    if line.file != file and (line.at is None or cause.at is None or line.at.seconds > cause.at.seconds):
        return False
    return sum(step > line.number for step in evidence.last_steps.get(line.file, ())) < MANY_STEPS


def _list_last_errors(evidence: Evidence, file: int) -> list[LogLine]:
    """The errors in which a file ends; none where the job went on after them."""
    if evidence.is_output(file):
        return []  # of a host, not of the job
    steps = evidence.last_steps.get(file, ())
    errors = [line for line in evidence.errors[file] if sum(number > line.number for number in steps) < _OUTLIVED]
    if steps:  # what a command printed below the log is none of how it ended
        below = next((number for number in evidence.prompts.get(file, ()) if number > steps[-1]), None)
        errors = [line for line in errors if below is None or line.number < below]
    tail = evidence.tails.get(file)
    if not errors or tail is None:
        return []
    if steps and steps[-1] > errors[-1].number:
        return []
    last = max(errors[-1].number, _find_last_failure(evidence, file, with_exits=True))
    near = _BEFORE_EXIT if _FATAL.search(errors[-1].text) else _NEAR_THE_END
    return errors if evidence.find_end(file, last) - last <= near else []


def _find_last_failure(evidence: Evidence, file: int, with_exits: bool = False) -> int:
    """The last line of a file that a row explains as a failure; that MPI ended a process explains no line."""
    numbers = (
        event.line.number
        for event in evidence.events.values()
        if event.line.file == file and event.role in ENDING and (with_exits or not _is_abort(event))
    )
    return max(numbers, default=0)


def _find_ending(evidence: Evidence, endings: Sequence[tuple[int, list[LogLine]]]) -> Iterator[PossibleCause]:
    """A log that ends in an error: of many files the one whose first error is the earliest, else the rarest."""
    logs = [
        errors
        for file, errors in endings
        if _find_last_failure(evidence, file) < errors[-1].number and _is_last(evidence, errors[-1])
    ]
    if not logs:
        yield from _find_last_words(evidence)
        return
    forms = Counter(_form(_first_of(errors)) for errors in logs)
    are_timed = all(_first_of(errors).at is not None for errors in logs)

    def rank(errors: list[LogLine]) -> tuple[float, int]:
        first = _first_of(errors)
        return (first.at.seconds if are_timed and first.at else float(forms[_form(first)])), first.file

    errors = min(logs, key=rank)
    yield _describe(evidence, errors, f"{evidence.names[errors[0].file]} ends in")


def _is_abort(event: LineEvent) -> bool:
    """Whether a launcher only states that a program ended itself."""
    return event.row.id == "mpi-exit" or (event.role == "exit" and event.groups.get("how", "").startswith("Aborted"))


def _is_last(evidence: Evidence, error: LogLine) -> bool:
    """Whether a log ends with an error, or with how the process that wrote it exited."""
    near = _BEFORE_EXIT if _FATAL.search(error.text) else _NEAR_THE_END
    if evidence.find_end(error.file, error.number) - error.number <= near:
        return True
    exits = (event.line for event in evidence.events.values() if _is_abort(event))
    return any(line.file == error.file and 0 < line.number - error.number <= _BEFORE_EXIT for line in exits)


def _find_last_words(evidence: Evidence) -> Iterator[PossibleCause]:
    """A log whose last lines state that it cannot go on, in words that none calls an error."""
    for file, line in sorted(evidence.last_words.items()):
        is_last = evidence.find_end(file, line.number) - line.number < _NEAR_THE_END
        steps = evidence.last_steps.get(file, ())
        is_last &= not any(number > line.number for number in steps) and not evidence.is_output(file)
        if is_last and not evidence.ended_well and not _find_last_failure(evidence, file, with_exits=True):
            yield _describe(evidence, [line], f"{evidence.names[file]} ends in")
            return


def _first_of(errors: Sequence[LogLine]) -> LogLine:
    """The first that is a message."""
    return next((line for line in errors if not line.text.rstrip().endswith(_HEADING)), errors[-1])


def _describe(evidence: Evidence, errors: Sequence[LogLine], start: str) -> PossibleCause:
    """The first of errors that no row explains, and the last of them."""
    first, last = _first_of(errors), errors[-1]
    candidate = PossibleCause("ends-in-error", "unexplained", "unknown", "", "low")
    candidate.add(evidence, first)
    named = read_line(first)
    text = named.text[:_SHOWN]
    if last.number == first.number:
        candidate.summary = f"{start} an unexplained error: {text}"
    else:
        candidate.summary = f"{start} unexplained errors, the first in line {first.number}: {text}"
        candidate.show(evidence, last)
    if named.words.means:
        candidate.summary += f"; by its words: {named.words.means}"
    candidate.next = [*named.list_steps(candidate), "the lines before this error; the logs of the other ranks"]
    if text.endswith(_HEADING):
        candidate.next.insert(0, "the rest of this traceback: its last line has the error")
    return candidate


def _form(line: LogLine) -> str:
    return re.sub(r"\d+", "", line.text)[:_SHOWN]


def _warn(evidence: Evidence, events: list[LineEvent]) -> PossibleCause:
    first = first_of(events)
    candidate = PossibleCause("unexplained", "unexplained", "unknown", "", "low")
    candidate.add_events(evidence, events)
    text = first.line.text[:_SHOWN]
    place = (first.line.place or "").rpartition("/src/")[2]  # a build has a path before it
    part = next((entry for start, entry in load_codes()["place"].items() if place.startswith(start)), None)
    words = collect_words(evidence, candidate, first)
    what = f"NCCL warns of {part['means']}" if part else "NCCL warns of a failure"
    candidate.summary = f"{words['who']}: {what}, and the table of failures does not have it: {text}"
    candidate.next = ["the source of NCCL at the line's file and number; the lines around it"]
    candidate.nic = read_words(text).nic
    if part:
        candidate.next.insert(0, fill(part["check"], words))
    return candidate
