"""How often a link went down: in the window by its counters, in half a day by what earlier runs saw, and by the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.rules.context import SETTLE_SECONDS, RuleContext, parse_time, read_since_boot
from agent.rules.counter_deltas import (
    SINCE_CLEARED,
    CountedSubject,
    CounterDelta,
    format_seconds,
    format_window,
    in_window,
    merge_if_widespread,
    with_subject,
)
from agent.rules.devices import about_function, find_unlisted
from agent.rules.pages import Threshold, read_limit
from agent.rules.rule import Fail, NotApplicable, Result, Unknown
from agent.rules.wording import count_of

_HALF_DAY = 12 * 3600.0
_LINK = ("link_down", "link_up")
_EXCERPT = 20  # events that someone chose
_LOST = "It carries nothing until the link is up again: jobs over it end after their retries."
_OUTAGE = "outage"  # cause of an info: one outage, and a long one
# What someone changed and what takes the link down while it is changed
_BOUNCING = frozenset({"mtu", "pfc", "fec", "firmware", "trust", "dcbx", "pause_rx", "pause_tx"})


class FlapLimits(msgspec.Struct, frozen=True):
    """How often a link may go down."""

    half_day: Threshold
    day: Threshold
    job: Threshold  # in a window of ten minutes, while a job runs
    outage: Threshold  # minutes of a single one
    job_seconds: float = 600.0


def read_limits(rule: str) -> FlapLimits:
    """The limits that the page of a rule declares."""
    half_day, day, job, outage = (
        read_limit(f"{rule}.{name}") for name in ("in_12_hours", "in_24_hours", "in_job", "outage_minutes")
    )
    return FlapLimits(half_day, day, job, outage)


class LinkDowns(msgspec.Struct, frozen=True):
    """How often one link went down, by the counters that see it (each alone), and what history holds of it."""

    place: CountedSubject
    seen: CounterDelta | Result  # the counter that moved most
    history: Sequence[str]  # subjects under which earlier runs would have noted it
    function: str | None = None  # the PCI function that the kernel log names


def largest_delta(*answers: CounterDelta | Result) -> CounterDelta | Result:
    """Of counters of the same events the one that moved most: they are not added."""
    sums = [one for one in answers if isinstance(one, CounterDelta)]
    if sums:
        return max(sums, key=lambda one: (one.total, one.gap is None))
    return next((one for one in answers if isinstance(one, Unknown)), answers[0])


def judge_flaps(context: RuleContext, all_downs: Sequence[LinkDowns], limits: FlapLimits, impact: str) -> list[Result]:
    """An answer for every link; one finding where several went down: then the switch is suspected."""
    answers = [_judge_link(context, downs, limits, impact) for downs in all_downs]
    faults = [answer for answer in answers if isinstance(answer, Fail) and answer.cause != _OUTAGE]
    outages = [answer for answer in answers if isinstance(answer, Fail) and answer.cause == _OUTAGE]
    judged = len(all_downs) - sum(isinstance(answer, NotApplicable) for answer in answers)
    others: list[Result] = [answer for answer in answers if not isinstance(answer, Fail)]
    summary = f"{len(faults)} of {judged} links went down in the same time: suspect the switch"
    return [
        *others,
        *merge_if_widespread(faults, judged, summary, "several"),
        *merge_if_widespread(outages, judged, f"{len(outages)} of {judged} links were down for minutes", _OUTAGE),
    ]


def _judge_link(context: RuleContext, downs: LinkDowns, limits: FlapLimits, impact: str) -> Result:
    counted = _judge_count(context, downs, limits, impact)
    changed = _changed_settings(context, downs)
    if isinstance(counted, Fail) or changed:
        return counted
    logged = _judge_log(context, downs, limits, impact)
    return logged or _judge_noted(context, downs, limits, impact) or counted


def _judge_count(context: RuleContext, downs: LinkDowns, limits: FlapLimits, impact: str) -> Result:
    place, count = downs.place, downs.seen
    if not isinstance(count, CounterDelta):
        return with_subject(place, count)
    if not count.total:
        return place.unknown(count.gap) if count.gap else place.passes()
    changed = _changed_settings(context, downs)
    if changed:
        times = count_of(count.total, "times")
        return place.not_applicable("not-in-use", detail=f"went down {times} while its settings changed ({changed})")
    earlier = _earlier_downs(context, downs)
    if context.assumed_window == SINCE_CLEARED:
        return place.fail(
            f"went down {count_of(count.total, 'times')} {in_window(context)}",
            impact,
            evidence=count.evidence,
            severity=place.severity("error"),
        )
    over = _exceeded_limit(context, count.total, earlier, limits)
    if over is None:
        return place.passes()
    before = tuple(Evidence("an earlier run saw it go down", at, "state directory") for at in earlier)
    also = f", and {count_of(len(earlier), 'times')} that earlier runs saw" if earlier else ""
    return place.fail(
        f"went down {count_of(count.total, 'times')} in {format_window(context)}{also}; limit {over}",
        impact,
        evidence=count.evidence + before[-4:],
        severity=place.severity("error"),
    )


def _judge_noted(context: RuleContext, downs: LinkDowns, limits: FlapLimits, impact: str) -> Fail | None:
    """What was counted since the window ended: `watch` keeps the window of its last full scan; None: no fault."""
    noted, limit = _later_downs(context, downs), context.threshold(limits.half_day)
    if len(noted) < limit:
        return None
    return downs.place.fail(
        f"went down {len(noted)} times since the last full scan; limit {limit:g} in 12 h",
        impact,
        evidence=(Evidence("times it went down, noted at", noted[-1], "counters of the port"),),
        severity=downs.place.severity("error"),
    )


def _judge_log(context: RuleContext, port_downs: LinkDowns, limits: FlapLimits, impact: str) -> Fail | None:
    """What the kernel log has of the link in the last day, without the first minutes after boot; None: no fault."""
    downs, ups = (_logged_ages(context, kind, port_downs.function) for kind in ("link_down", "link_up"))
    recent, day = sum(age <= _HALF_DAY for age in downs), sum(age <= 2 * _HALF_DAY for age in downs)
    place = port_downs.place
    evidence = _log_evidence(context, port_downs.function)
    fault = place.fail("", impact, evidence=evidence, severity=place.severity("error"))
    if recent >= context.threshold(limits.half_day):
        return replace(fault, summary=f"went down {recent} times in 12 h; limit {context.threshold(limits.half_day):g}")
    if day >= context.threshold(limits.day):
        return replace(fault, summary=f"went down {day} times in 24 h; limit {context.threshold(limits.day):g}")
    longest = max(((down - up, up) for down, up in _pair_outages(downs, ups)), default=(0.0, 0.0))
    if longest[0] < 60 * context.threshold(limits.outage):
        return None
    return replace(
        fault,
        summary=f"was down for {format_seconds(longest[0])}, until {format_seconds(longest[1])} before this scan",
        impact="None now; jobs that ran at that time lost this link.",
        severity="info",
        cause=_OUTAGE,
        situation=_OUTAGE,
    )


def judge_unlisted(context: RuleContext, limits: FlapLimits, impact: str) -> Iterator[Fail]:
    """Links of devices that a log alone names: how often they went down by its own times, or by the number of lines."""
    software = context.software
    started = (_log_seconds(software.kernel_log_since or "") if software.kernel_log_whole else None) or 0.0
    for pci in find_unlisted(context, ("link_down",), (None,)):
        downs = [event for event in context.events if event.kind == "link_down" and event.subject == pci]
        count = sum(event.count for event in downs)
        times = (_log_seconds(time) for event in downs for time in event.times)
        most, span = _count_together(sorted(at for at in times if at is not None and at > started + SETTLE_SECONDS))
        limit, severity, impact_of_it = context.threshold(limits.half_day), "warning", impact
        if most >= limit:
            summary = f"went down {most:d} times within {format_seconds(span)}, by the log"
        elif not any(event.times for event in downs) and count > limit:  # a start has two, and a change of the MTU one
            summary = f"went down {count} times, by lines without a date"
        elif _stayed_down(context, pci):
            summary, severity, impact_of_it = "went down, and no later line shows it up again", "info", _LOST
        else:
            continue
        about = about_function(context, pci)
        name = next((event.detail["name"] for event in downs if "name" in event.detail), None)
        yield about.fail(
            label=name or about.label,
            summary=summary,
            impact="What this means here depends on when it was, on what was done then, and on what the port is for. "
            f"If GPU jobs use it: {impact_of_it[:1].lower()}{impact_of_it[1:]}",
            evidence=_log_evidence(context, pci),
            severity=severity,
            confidence="low",
            situation="log",
            values=(("INTERFACE", name),) if name else (),
        )


def _stayed_down(context: RuleContext, pci: str) -> bool:
    """Whether the last line about the link of a device, in an excerpt of a log, is that it went down. A whole log has
    the ports, too, that no one uses."""
    software = context.software
    rows = [event for event in context.events if event.kind in _LINK and event.subject == pci]
    if software.kernel_log_whole or sum(event.count for event in context.events) > _EXCERPT:
        return False
    if all(event.kind == "link_down" for event in rows):
        return not any(is_of_start(time) for event in rows for time in event.times)
    dated = [(at, event.kind) for event in rows for time in event.times if (at := _log_seconds(time)) is not None]
    return max(dated, default=(0.0, ""))[1] == "link_down" and not any(
        event.kind == _LINK[1] and not event.times for event in rows
    )


def _count_together(seconds: Sequence[float]) -> tuple[int, float]:
    """The most times within half a day, and how far apart their first and last are."""
    windows = [[at for at in seconds if first <= at <= first + _HALF_DAY] for first in seconds]
    most = max(windows, key=len, default=[])
    return len(most), most[-1] - most[0] if most else 0.0


def is_of_start(time: str | None) -> bool:
    """Whether a time of the log is of the first minutes after the kernel started."""
    since_boot = read_since_boot(time)
    return since_boot is not None and since_boot <= SETTLE_SECONDS


def _log_seconds(time: str) -> float | None:
    """A time of the log on a scale of its own; None where it states none."""
    since_boot = read_since_boot(time)
    if since_boot is not None:
        return since_boot
    for form, text in (("%Y %b %d %H:%M:%S", f"2000 {time}"), ("%a %b %d %H:%M:%S %Y", time)):
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=timezone.utc).timestamp()
    moment = parse_time(time)
    return moment.timestamp() if moment else None


def _pair_outages(downs: Sequence[float], ups: Sequence[float]) -> list[tuple[float, float]]:
    """Ages at which the link went down and came up again, of the last day; both sorted, the oldest first."""
    outages = []
    for up in ups:
        before = [down for down in downs if down >= up]
        if before and up <= 2 * _HALF_DAY:
            outages.append((before[-1], up))
    return outages


def _logged_ages(context: RuleContext, kind: str, function: str | None) -> list[float]:
    """Seconds before this scan of every such line about a function; the oldest first."""
    times = [
        time for event in context.events if event.kind == kind and event.subject == function for time in event.times
    ]
    up = context.node.uptime_seconds
    ages = [age for time in times if (age := _age(context, time)) is not None and age >= 0]
    return sorted((age for age in ages if up is None or age <= up - SETTLE_SECONDS), reverse=True)


def _age(context: RuleContext, time: str) -> float | None:
    """Seconds between a line of the log and this scan; None where that is not known."""
    since_boot, up = read_since_boot(time), context.node.uptime_seconds
    if since_boot is not None:
        return None if up is None else up - since_boot
    now, then = parse_time(context.observed_at), parse_time(time)
    return None if now is None or then is None else (now - then).total_seconds()


def _log_evidence(context: RuleContext, function: str | None) -> tuple[Evidence, ...]:
    rows = [event for event in context.events if event.kind in ("link_down", "link_up") and event.subject == function]
    return tuple(
        Evidence(
            f"kernel log, {event.count} times, last {event.at or event.logged or 'without a date'}",
            event.text,
            event.source,
        )
        for event in rows[:4]
    )


def _exceeded_limit(context: RuleContext, count: int, earlier: Sequence[str], limits: FlapLimits) -> str | None:
    """The limit that is reached, in words."""
    seconds = (context.window.seconds if context.window else None) or 0.0
    in_job = context.threshold(limits.job)
    if seconds <= limits.job_seconds and (context.software.nccl.jobs or 0) > 0 and count >= in_job:
        return f"{in_job:g} in {format_seconds(limits.job_seconds)} while a job runs"
    half, day = context.threshold(limits.half_day), context.threshold(limits.day)
    if count * min(_HALF_DAY / seconds, 1.0) + len(earlier) >= half:
        return f"{half:g} in 12 h"
    if count * min(2 * _HALF_DAY / seconds, 1.0) >= day:
        return f"{day:g} in 24 h"
    return None


def _earlier_downs(context: RuleContext, downs: LinkDowns) -> list[str]:
    """When earlier runs saw it go down: the twelve hours before the end of the window, without the window itself."""
    start = parse_time(context.window.since if context.window else None)
    seconds = context.window.seconds if context.window else None
    if context.history is None or start is None or seconds is None:
        return []
    try:
        first = start + timedelta(seconds=seconds - _HALF_DAY)
    except (OverflowError, ValueError):  # a report may hold any number
        return []
    runs: list[list[str]] = [[]]
    for subject in downs.history:  # a port and its interface are one link: what one of them states, not both
        dated = [(parse_time(at), at) for at in context.history.link_downs.get(subject, ())]
        # What this run saw is in the window, also where the clock was set back meanwhile
        runs.append([at for moment, at in dated if moment and first <= moment <= start and at != context.observed_at])
    return max(runs, key=len)


def _later_downs(context: RuleContext, downs: LinkDowns) -> list[str]:
    """When it was seen to go down after the window ended, where that is no more than twelve hours ago."""
    if context.history is None:
        return []
    end = parse_time(context.window.until if context.window else context.history.last_run)
    now = parse_time(context.observed_at)
    if end is None or now is None or (now - end).total_seconds() > _HALF_DAY:
        return []
    dated = [[(parse_time(at), at) for at in context.history.link_downs.get(subject, ())] for subject in downs.history]
    return max(([at for moment, at in rows if moment and end < moment <= now] for rows in dated), key=len, default=[])


def _changed_settings(context: RuleContext, downs: LinkDowns) -> str:
    settings = context.history.settings if context.history else {}
    nic = (f"nic:{downs.place.nic.id}",) if downs.place.nic else ()
    names = {name for subject in (*downs.history, *nic) for name in settings.get(subject, ())}
    return ", ".join(sorted(names & _BOUNCING))
