"""What a run leaves for later ones, and what it makes of what earlier ones left. Data in, data out: no file, no clock.

Time is the host's own since boot: a clock that does not jump. Nothing is compared over a reboot but what lasts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.history.deltas import ALL, Moves, is_count, moves
from agent.history.identity import identities
from agent.model.counters import Counted, counted
from agent.model.report import CountersWindow, Report

STATE = "fabricscope.state/1"
WINDOW_SECONDS = 60.0  # counters are compared over this time at least
SPACING_SECONDS = 30.0  # samples are kept this far apart: four are enough for runs of any frequency
MOST_ROWS = 8000  # of the window's two tables: a report has a limit
RUNNING = ("live", "rooted")  # sources that are a host as it is now, never an older one

Counters = Mapping[str, Mapping[str, int]]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one run."""

    uptime_seconds: float
    at: str
    counters: dict[str, dict[str, int]]  # subject -> counter -> value
    identity: dict[str, str]  # subject -> what lasts of it


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that earlier runs on one host left."""

    schema: str = STATE
    hostname: str | None = None
    serial: str | None = None
    boot_id: str | None = None
    last_run: str | None = None
    runs: int = 0
    samples: list[Sample] = []  # of one boot, the oldest first


def sample(report: Report) -> Sample | None:
    """The counters of a report; None where it does not say how long its host had run."""
    up = report.node.uptime_seconds
    if up is None:
        return None
    rows = {each.subject: _counts(each) for each in counted(report.topology)}
    rows = {subject: counters for subject, counters in rows.items() if counters}
    lasting = identities(report.topology)
    return Sample(
        uptime_seconds=up,
        at=seen_at(report),
        counters=rows,
        identity={subject: own for subject, own in lasting.items() if subject in rows},
    )


def seen_at(report: Report) -> str:
    """When the host was seen, by its own clock where the source has it."""
    return report.observed_at or report.generated_at


def window(state: State | None, report: Report) -> CountersWindow:
    """The counters of a report against those of an earlier run."""
    base = _base(state, report)
    return between(base, report) if isinstance(base, Sample) else CountersWindow(reset_reason=base)


def between(base: Sample, report: Report) -> CountersWindow:
    """The counters of a report against an earlier sample of the same boot."""
    seconds = (report.node.uptime_seconds or 0.0) - base.uptime_seconds
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    lasting = identities(report.topology)
    before = {(subject.partition(":")[0], own): subject for subject, own in base.identity.items()}
    rows = 0
    for now in counted(report.topology):
        if not now.counters:
            continue
        was = _subject_then(now.subject, lasting.get(now.subject), base, before)
        if was is None:
            made = Moves({}, {ALL: "not in the earlier sample, or another device stands there now"})
        else:
            made = moves(base.counters[was], now)
        if rows + len(made.moved) + len(made.gaps) > MOST_ROWS:
            made = Moves({}, {ALL: "more counters moved than a report can hold"})
        rows += len(made.moved) + len(made.gaps)
        if made.moved:
            moved[now.subject] = dict(sorted(made.moved.items()))
        if made.gaps:
            gaps[now.subject] = dict(sorted(made.gaps.items()))
    return CountersWindow(since=base.at, seconds=round(seconds, 3), moved=moved, not_compared=gaps)


def compared(state: State | None, report: Report) -> Report:
    """The report with what earlier runs know of its host."""
    return msgspec.structs.replace(report, counters_window=window(state, report))


def remember(state: State | None, report: Report) -> State:
    """What the next run shall know."""
    state = state or State()
    made = sample(report)
    samples = state.samples if _same_boot(state, report) else []
    return State(
        hostname=report.node.hostname,
        serial=report.node.serial or state.serial,
        boot_id=report.node.boot_id,
        last_run=seen_at(report),
        runs=state.runs + 1,
        samples=_kept(samples, made) if made else samples,
    )


def _kept(samples: list[Sample], new: Sample) -> list[Sample]:
    """The samples that a later run may need: the newest that is old enough, and what will be in time."""
    older = [each for each in samples if each.uptime_seconds < new.uptime_seconds]
    recent = bool(older) and new.uptime_seconds - older[-1].uptime_seconds < WINDOW_SECONDS
    if recent and len(older) > 1 and older[-1].uptime_seconds - older[-2].uptime_seconds < SPACING_SECONDS:
        older.pop()
    ready = [each for each in older if new.uptime_seconds - each.uptime_seconds >= WINDOW_SECONDS]
    return [*ready[-1:], *older[len(ready) :], new]


def _base(state: State | None, report: Report) -> Sample | str:
    """The sample to compare with, or why there is none."""
    if state is None or not state.runs:
        return "the first run that is remembered: the next one has something to compare with"
    if report.node.boot_id is None or state.boot_id is None:
        return "the source does not say of which boot its counters are"
    if not _same_boot(state, report):
        return "the host was started anew since the last run"
    up = report.node.uptime_seconds
    if up is None or not state.samples:
        return "the source does not say for how long its host has run"
    old = [each for each in state.samples if up - each.uptime_seconds >= WINDOW_SECONDS]
    if old:
        return old[-1]
    ago = up - state.samples[0].uptime_seconds
    if ago <= 0:
        return "the last run saw this host at a later time than this one"
    return f"the last run was {ago:.0f} s ago: counters are compared over {WINDOW_SECONDS:.0f} s at least"


def _same_boot(state: State, report: Report) -> bool:
    return state.boot_id is not None and state.boot_id == report.node.boot_id


def _counts(each: Counted) -> dict[str, int]:
    return {name: count for name, count in each.counters.items() if is_count(count)}


def _subject_then(subject: str, own: str | None, base: Sample, before: Mapping[tuple[str, str], str]) -> str | None:
    """What the subject was called in a sample; None where it was not there, or another stood in its place."""
    if own and (was := before.get((subject.partition(":")[0], own))):
        return was
    if subject not in base.counters:
        return None
    other = base.identity.get(subject)
    return None if own and other and own != other else subject
