"""Counters of one moment, and by how much they moved until another. Time is the host's own since boot: no clock jumps.

A window is over a minute at least, against the newest earlier sample that is as old as that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from agent.history.counter_deltas import WHOLE_SUBJECT, CounterDeltas, compute_deltas, is_count
from agent.model.counters import Counted, list_counted
from agent.model.identity import Earlier, identities
from agent.model.report import CountersWindow, Report

WINDOW_SECONDS = 60.0  # counters are compared over this time at least
SPACING_SECONDS = 30.0  # samples are kept this far apart: four are enough for runs of any frequency
ROW_LIMIT = 8000  # of the window's two tables together: a report has a limit


class CounterSample(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one run."""

    uptime_seconds: float
    at: str  # RFC 3339
    counters: dict[str, dict[str, int]]  # subject -> counter -> value
    identity: dict[str, str]  # subject -> what lasts of it


def take_sample(report: Report) -> CounterSample | None:
    """The counters of a report; None where it does not show for how long its host had run."""
    up = report.node.uptime_seconds
    if up is None:
        return None
    rows = {item.subject: _valid_counters(item) for item in list_counted(report.topology)}
    lasting = identities(report.topology)
    return CounterSample(
        uptime_seconds=up,
        at=time_of(report),
        counters={subject: counters for subject, counters in rows.items() if counters},
        identity={subject: own for subject, own in lasting.items() if rows.get(subject)},
    )


def time_of(report: Report) -> str:
    """When the host was seen, by its own clock where the source has it. RFC 3339."""
    return report.observed_at or report.generated_at


def compare_samples(base: CounterSample, report: Report, kinds: Collection[str] = ()) -> CountersWindow:
    """The counters of a report against an earlier sample of the same boot. `kinds`: of these subjects only."""
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    earlier = Earlier(base.identity, base.counters, report.topology)
    rows = 0
    for now in list_counted(report.topology):
        if not now.counters or (kinds and now.subject.partition(":")[0] not in kinds):
            continue
        was = earlier.subject(now.subject)
        if was is None:
            deltas = CounterDeltas({}, {WHOLE_SUBJECT: "not in the earlier sample, or another device stands there now"})
        else:
            deltas = compute_deltas(base.counters[was], now)
        if rows + len(deltas.moved) + len(deltas.gaps) > ROW_LIMIT:
            deltas = CounterDeltas({}, {WHOLE_SUBJECT: "more counters moved than a report can hold"})
        rows += len(deltas.moved) + len(deltas.gaps)
        if deltas.moved:
            moved[now.subject] = dict(sorted(deltas.moved.items()))
        if deltas.gaps:
            gaps[now.subject] = dict(sorted(deltas.gaps.items()))
    seconds = (report.node.uptime_seconds or 0.0) - base.uptime_seconds
    return CountersWindow(since=base.at, seconds=round(seconds, 3), moved=moved, not_compared=gaps)


def make_window(samples: Sequence[CounterSample], report: Report) -> CountersWindow:
    """The counters of a report against the samples of its boot, the oldest first; else why there is no window."""
    up = report.node.uptime_seconds
    if up is None:
        return CountersWindow(reset_reason="the source does not contain the uptime of its host")
    ready = [sample for sample in samples if up - sample.uptime_seconds >= WINDOW_SECONDS]
    if ready:
        return compare_samples(ready[-1], report)
    if not samples:
        return CountersWindow(reset_reason="no earlier sample of this boot")
    ago = up - samples[0].uptime_seconds
    least = f"counters are compared over {WINDOW_SECONDS:.0f} s at least"
    return CountersWindow(reset_reason=f"the last run was {ago:.0f} s ago: {least}")


def select_samples(samples: Sequence[CounterSample], new: CounterSample) -> list[CounterSample]:
    """The samples that a later run may need: the newest that is old enough, and what will be in time."""
    older = [sample for sample in samples if sample.uptime_seconds < new.uptime_seconds]
    recent = bool(older) and new.uptime_seconds - older[-1].uptime_seconds < WINDOW_SECONDS
    if recent and len(older) > 1 and older[-1].uptime_seconds - older[-2].uptime_seconds < SPACING_SECONDS:
        older.pop()
    ready = [sample for sample in older if new.uptime_seconds - sample.uptime_seconds >= WINDOW_SECONDS]
    return [*ready[-1:], *older[len(ready) :], new]


def _valid_counters(item: Counted) -> dict[str, int]:
    return {name: count for name, count in item.counters.items() if is_count(count)}


REPLACED_OR_GONE = "not there at the last full scan, or another device stands there now"


def carry_window(full: Report, report: Report) -> Report:
    """The report with the window of `full`, the last one for which everything was read; its subjects as named now."""
    window = full.counters_window
    if window is None:
        return msgspec.structs.replace(report, counters_window=None)
    then = {item.subject for item in list_counted(full.topology)}
    earlier = Earlier(identities(full.topology), then, report.topology)
    moved: dict[str, dict[str, int]] = {}
    gaps: dict[str, dict[str, str]] = {}
    for now in list_counted(report.topology):
        was = earlier.subject(now.subject)
        if was is None:
            if now.counters:
                gaps[now.subject] = {"*": REPLACED_OR_GONE}
            continue
        if was in window.moved:
            moved[now.subject] = window.moved[was]
        if was in window.not_compared:
            gaps[now.subject] = window.not_compared[was]
    carried: CountersWindow = msgspec.structs.replace(
        window, until=window.until or time_of(full), moved=moved, not_compared=gaps
    )
    return msgspec.structs.replace(report, counters_window=carried)
