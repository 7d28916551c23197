"""How often a link went down: in the window by its counters, and in half a day by what earlier runs saw."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    CounterDelta,
    Subject,
    format_seconds,
    format_window,
    merge_if_widespread,
    with_subject,
)
from agent.rules.pages import Threshold
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown

_HALF_DAY = 12 * 3600.0
# What somebody changed and what takes the link down while it is changed
_BOUNCING = frozenset({"mtu", "pfc", "fec", "firmware", "trust", "dcbx", "pause_rx", "pause_tx"})


class FlapLimits(NamedTuple):
    """How often a link may go down."""

    half_day: Threshold
    day: Threshold
    job: Threshold  # in a window of ten minutes, while a job runs
    job_seconds: float = 600.0


class LinkDowns(NamedTuple):
    """How often one link went down, by the counters that see it (each alone), and what history holds of it."""

    place: Subject
    seen: CounterDelta | Result  # the counter that moved most
    history: Sequence[str]  # subjects under which earlier runs would have noted it


def largest_delta(*each: CounterDelta | Result) -> CounterDelta | Result:
    """Of counters of the same events the one that moved most: they are not added."""
    sums = [one for one in each if isinstance(one, CounterDelta)]
    if sums:
        return max(sums, key=lambda one: (one.total, one.gap is None))
    return next((one for one in each if isinstance(one, Unknown)), each[0])


def judge_flaps(
    case: RuleContext, found: Sequence[LinkDowns], limits: FlapLimits, impact: str, remedy: str
) -> list[Result]:
    """An answer for every link; one finding where several went down: then the switch is suspected."""
    answers = [_judge_link(case, each, limits, impact, remedy) for each in found]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    judged = sum(isinstance(answer, Pass | Fail) for answer in answers)
    others: list[Result] = [answer for answer in answers if not isinstance(answer, Fail)]
    summary = f"{len(faults)} of {judged} links went down in the same time: suspect the switch"
    return [*others, *merge_if_widespread(faults, judged, summary, "several")]


def _judge_link(case: RuleContext, each: LinkDowns, limits: FlapLimits, impact: str, remedy: str) -> Result:
    place, count = each.place, each.seen
    if not isinstance(count, CounterDelta):
        return with_subject(place, count)
    if not count.total:
        return Unknown(place.subject, count.gap) if count.gap else Pass(place.subject)
    changed = _changed_settings(case, each)
    if changed:
        return NotApplicable(place.subject, f"went down {count.total} times while its settings changed ({changed})")
    earlier = _earlier_downs(case, each)
    over = _exceeded_limit(case, count.total, earlier, limits)
    if over is None:
        return Pass(place.subject)
    before = tuple(Evidence(what="an earlier run saw it go down", value=at, source="state directory") for at in earlier)
    also = f", and {len(earlier)} times that earlier runs saw" if earlier else ""
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"went down {count.total} times in {format_window(case)}{also}; limit {over}",
        impact=impact,
        remedy=remedy,
        evidence=count.evidence + before[-4:],
        severity=place.severity("error"),
        places=place.places,
    )


def _exceeded_limit(case: RuleContext, count: int, earlier: Sequence[str], limits: FlapLimits) -> str | None:
    """The limit that is reached, in words."""
    seconds = (case.window.seconds if case.window else None) or 0.0
    in_job = case.threshold(limits.job)
    if seconds <= limits.job_seconds and (case.software.nccl.jobs or 0) > 0 and count >= in_job:
        return f"{in_job:g} in {format_seconds(limits.job_seconds)} while a job runs"
    half, day = case.threshold(limits.half_day), case.threshold(limits.day)
    if count * min(_HALF_DAY / seconds, 1.0) + len(earlier) >= half:
        return f"{half:g} in 12 h"
    if count * min(2 * _HALF_DAY / seconds, 1.0) >= day:
        return f"{day:g} in 24 h"
    return None


def _earlier_downs(case: RuleContext, each: LinkDowns) -> list[str]:
    """When earlier runs saw it go down: the twelve hours before the end of the window, without the window itself."""
    start, seconds = (
        _parse_time(case.window.since if case.window else None),
        case.window.seconds if case.window else None,
    )
    if case.history is None or start is None or seconds is None:
        return []
    try:
        first = start + timedelta(seconds=seconds - _HALF_DAY)
    except (OverflowError, ValueError):  # a report may hold any number
        return []
    found: list[list[str]] = [[]]
    for subject in each.history:  # a port and its interface are one link: what one of them says, not both
        dated = [(_parse_time(at), at) for at in case.history.link_downs.get(subject, ())]
        # What this run saw is in the window, also where the clock was set back meanwhile
        found.append([at for moment, at in dated if moment and first <= moment <= start and at != case.observed_at])
    return max(found, key=len)


def _changed_settings(case: RuleContext, each: LinkDowns) -> str:
    settings = case.history.settings if case.history else {}
    nic = (f"nic:{each.place.nic.id}",) if each.place.nic else ()
    names = {name for subject in (*each.history, *nic) for name in settings.get(subject, ())}
    return ", ".join(sorted(names & _BOUNCING))


def _parse_time(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else None
