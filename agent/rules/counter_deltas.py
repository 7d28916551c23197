"""How counters moved over the window: sums over a driver's names, limits a minute or an hour, and words for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.reasons import Reason
from agent.rules.context import SETTLE_SECONDS, RuleContext
from agent.rules.devices import severity_by_role
from agent.rules.pages import Threshold, read_limit
from agent.rules.rule import Fail, NamedSubject, NotApplicable, Result, Unknown
from agent.rules.wording import count_of, join_labels

MINUTE, HOUR = 60.0, 3600.0
SINCE_CLEARED = "since the counters were last cleared"
ANY = 0.0  # as the time of a limit: so many in a window of any length
_TIMES = {"per_second": 1.0, "per_minute": MINUTE, "per_hour": HOUR, "in_10_minutes": 600.0}
_UNITS = {1.0: "/s", MINUTE: "/min", HOUR: "/h", ANY: ""}


class CountedSubject(NamedSubject, frozen=True):
    """What counters are of."""

    nic: Nic | None = None  # None: no role makes it less severe

    def severity(self, worst: str) -> str:
        """How severe a fault is here that has that severity on a rail."""
        return (severity_by_role(worst, self.nic) or "info") if self.nic else worst


class Counters(msgspec.Struct, frozen=True):
    """Counters of one subject of the window, and where a person reads each."""

    subject: str
    now: Mapping[str, int]
    source: Callable[[str], str]
    unread: Reason | None = None  # why some of them are not here


class CounterDelta(msgspec.Struct, frozen=True):
    """By how much some counters moved together."""

    parts: Mapping[str, int]  # those that moved
    evidence: tuple[Evidence, ...]
    gap: Reason | None = None  # why it may have been more

    @property
    def total(self) -> int:
        """All of them together."""
        return sum(self.parts.values())


class Limit(msgspec.Struct, frozen=True):
    """So many in so many seconds are a fault of that severity (on a rail)."""

    threshold: Threshold
    severity: str
    seconds: float = ANY


def limit(name: str, severity: str) -> Limit:
    """A limit as the page of its rule declares it; the end of its name states its time: "ib-symbol-errors.per_hour"."""
    return Limit(read_limit(name), severity, next((_TIMES[end] for end in _TIMES if name.endswith(end)), ANY))


class Count(msgspec.Struct, frozen=True):
    """Counters that are judged as one, the limits of their sum (most severe first), and what is reported over them."""

    names: tuple[str, ...]
    limits: tuple[Limit, ...]
    what: str  # "ACK timeouts"
    impact: str
    confidence: str = "high"
    cause: str = ""
    remedy: str = ""  # as of `Fail`

    def judge(self, context: RuleContext, place: CountedSubject, counters: Counters) -> Result:
        """Their sum over the window against its limits."""
        return self.judge_delta(context, place, delta(context, counters, self.names))

    def judge_delta(self, context: RuleContext, place: CountedSubject, count: CounterDelta | Result) -> Result:
        """The same of a sum that is known."""
        if not isinstance(count, CounterDelta):
            return with_subject(place, count)
        reached = exceeded_limit(context, count.total, self.limits)
        if isinstance(reached, Limit):
            return self.fail(context, place, count, reached)
        why = reached or count.gap
        return place.unknown(why) if why else place.passes()

    def fail(self, context: RuleContext, place: CountedSubject, count: CounterDelta, limit: Limit) -> Fail:
        """What a count over its limit is reported as: the count, the window, the limit."""
        return place.fail(
            f"{count_of(count.total, self.what)} {in_window(context)}"
            + ("" if context.assumed_window else f", limit {format_limit(context, limit)}"),
            self.impact,
            remedy=self.remedy,
            evidence=count.evidence,
            severity=place.severity(limit.severity),
            confidence=self.confidence,
            cause=self.cause,
        )


def delta(context: RuleContext, counters: Counters, names: Iterable[str]) -> CounterDelta | Result:
    """The sum of these counters; not applicable where the driver has none of them, unknown where none were read."""
    there = [name for name in names if name in counters.now]
    if not there:
        if counters.unread or not counters.now:
            return Unknown(counters.subject, counters.unread or Reason("not-read", fact="its counters"))
        return NotApplicable(counters.subject, Reason("not-measured", detail="its driver does not count this"))
    early = why_settling(context)
    moves = {name: context.counter_delta(counters.subject, name, counters.now) for name in there}
    gaps = [context.why_no_delta(counters.subject, name) for name, move in moves.items() if move is None]
    parts = {name: move for name, move in moves.items() if move}
    rows = tuple(Evidence(name, format_move(context, move), counters.source(name)) for name, move in parts.items())
    return CounterDelta({}, (), early) if early else CounterDelta(parts, rows, gaps[0] if gaps else None)


def sum_deltas(*deltas: CounterDelta | Result) -> CounterDelta | Result:
    """Several sums as one: of what can be counted, else the first answer that states why nothing can."""
    sums = [one for one in deltas if isinstance(one, CounterDelta)]
    if not sums:
        return next((one for one in deltas if isinstance(one, Unknown)), deltas[0])
    parts: dict[str, int] = {}
    for one in sums:
        parts.update(one.parts)
    rows = tuple(row for one in sums for row in one.evidence)
    return CounterDelta(parts, rows, next((one.gap for one in sums if one.gap), None))


def why_settling(context: RuleContext) -> Reason | None:
    """Why the window holds moves that every boot brings; None where it began late enough, or it is unknown."""
    up, seconds = context.node.uptime_seconds, context.window.seconds if context.window else None
    if up is None or seconds is None or up - seconds >= SETTLE_SECONDS:
        return None
    minutes = max(up - seconds, 0) / 60
    text = f"the earlier sample is of {minutes:.0f} min after boot: links and drivers settled then"
    return Reason("still-settling", detail=text)


def exceeded_limit(context: RuleContext, count: int, limits: Sequence[Limit]) -> Limit | Reason | None:
    """The most severe limit that a count reaches (most severe first); text where the window is too short; else None.

    A limit of ten an hour is reached by ten at least: two in a minute are not sixty in the hour.
    """
    short = None
    for limit in limits:
        value = context.threshold(limit.threshold)
        if count < 1 or scale_count(context, count, limit.seconds) < value:
            continue
        if count >= value:
            return limit
        text = f"{count} in {format_window(context)}: too short a window for a limit of {format_limit(context, limit)}"
        short = Reason("sample-too-small", detail=text)
    return short


def scale_count(context: RuleContext, count: float, seconds: float) -> float:
    """How many that is in so many seconds; the count itself where the limit has no time."""
    window = context.window.seconds if context.window else None
    return count * seconds / window if window and seconds else count


def with_subject(place: CountedSubject, answer: Result) -> Result:
    """The same answer of another subject: a counter's is its interface, the rule's is the port."""
    return replace(answer, subject=place.subject)


def format_limit(context: RuleContext, limit: Limit) -> str:
    """A limit in words: "10/h", "10/min", "100 in 10 min", "1"."""
    unit = _UNITS.get(limit.seconds, f" in {format_seconds(limit.seconds)}")
    return f"{context.threshold(limit.threshold):g}{unit}"


def format_window(context: RuleContext) -> str:
    """The window in words."""
    return format_seconds((context.window.seconds if context.window else None) or 0)


def in_window(context: RuleContext) -> str:
    """The window in words, behind what happened in it."""
    return context.assumed_window or f"in {format_window(context)}"


def format_move(context: RuleContext, move: int) -> str:
    """By how much a counter moved, as evidence."""
    return str(move) if context.assumed_window == SINCE_CLEARED else f"+{move} {in_window(context)}"


def format_seconds(seconds: float) -> str:
    """A time for people.

    >>> format_seconds(12), format_seconds(720), format_seconds(5400), format_seconds(86400 * 2)
    ('12 s', '12 min', '90 min', '48 h')
    """
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.0f} h"


def merge_if_widespread(faults: Sequence[Fail], judged_count: int, summary: str, cause: str) -> list[Fail]:
    """One finding where half of all, and two at least, have the fault at once: what they share is suspected."""
    if len(faults) < 2 or 2 * len(faults) < judged_count:
        return list(faults)
    grave = max(faults, key=lambda fault: ("info", "warning", "error", "critical").index(fault.severity or "info"))
    return [
        replace(
            grave,
            subject="node",
            label="node",
            summary=f"{summary}: {join_labels([fault.label for fault in faults])}",
            evidence=tuple(row for fault in faults for row in fault.evidence),
            cause=cause,
            ids=frozenset().union(*(fault.ids for fault in faults)),
            parts=tuple(faults),
        )
    ]
