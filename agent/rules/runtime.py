"""How counters moved over the window: sums over a driver's names, limits a minute or an hour, and words for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.rules.case import SETTLE_SECONDS, Case
from agent.rules.counting import named
from agent.rules.devices import by_role
from agent.rules.pages import Threshold
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown

MINUTE, HOUR = 60.0, 3600.0
ANY = 0.0  # as the time of a limit: so many in a window of any length
_UNITS = {1.0: "/s", MINUTE: "/min", HOUR: "/h", ANY: ""}


class Place(NamedTuple):
    """What a finding is about."""

    subject: str
    label: str
    places: frozenset[str]
    nic: Nic | None = None  # None: no role makes it less grave

    def severity(self, worst: str) -> str:
        """How grave a fault is here that has that severity on a rail."""
        return (by_role(worst, self.nic) or "info") if self.nic else worst


class Counters(NamedTuple):
    """Counters of one subject of the window, and where a person reads each."""

    subject: str
    now: Mapping[str, int]
    source: Callable[[str], str]
    unread: str | None = None  # why some of them are not here


class Moved(NamedTuple):
    """By how much some counters moved together."""

    parts: Mapping[str, int]  # those that moved
    evidence: tuple[Evidence, ...]
    gap: str | None = None  # why it may have been more

    @property
    def total(self) -> int:
        """All of them together."""
        return sum(self.parts.values())


class Limit(NamedTuple):
    """So many in so many seconds are a fault of that severity (on a rail)."""

    threshold: Threshold
    severity: str
    seconds: float = ANY


class Words(NamedTuple):
    """What is said of a count that is over its limit."""

    what: str  # "ACK timeouts"
    impact: str
    remedy: str
    confidence: str = "high"
    cause: str = ""


def moved(case: Case, counters: Counters, names: Iterable[str]) -> Moved | Answer:
    """The sum of these counters; not applicable where the driver has none of them, unknown where none were read."""
    there = [name for name in names if name in counters.now]
    if not there:
        if counters.unread or not counters.now:
            return Unknown(counters.subject, counters.unread or "its counters could not be read")
        return NotApplicable(counters.subject, "its driver does not count this")
    early = unsettled(case)
    moves = {name: case.moved(counters.subject, name, counters.now) for name in there}
    gaps = [case.not_moved(counters.subject, name) for name, move in moves.items() if move is None]
    parts = {name: move for name, move in moves.items() if move}
    rows = tuple(
        Evidence(what=name, value=f"+{move} in {span(case)}", source=counters.source(name))
        for name, move in parts.items()
    )
    return Moved({}, (), early) if early else Moved(parts, rows, gaps[0] if gaps else None)


def together(*each: Moved | Answer) -> Moved | Answer:
    """Several sums as one: of what can be counted, else the first answer that says why nothing can."""
    sums = [one for one in each if isinstance(one, Moved)]
    if not sums:
        return next((one for one in each if isinstance(one, Unknown)), each[0])
    parts: dict[str, int] = {}
    for one in sums:
        parts.update(one.parts)
    rows = tuple(row for one in sums for row in one.evidence)
    return Moved(parts, rows, next((one.gap for one in sums if one.gap), None))


def unsettled(case: Case) -> str | None:
    """Why the window holds moves that every boot brings; None where it began late enough, or nobody knows."""
    up, seconds = case.node.uptime_seconds, case.window.seconds if case.window else None
    if up is None or seconds is None or up - seconds >= SETTLE_SECONDS:
        return None
    return f"the earlier sample is of {max(up - seconds, 0) / 60:.0f} min after boot: links and drivers settled then"


def over(case: Case, count: int, limits: Sequence[Limit]) -> Limit | str | None:
    """The gravest limit that a count reaches (gravest first); text where the window is too short to say; else None.

    A limit of ten an hour is reached by ten at least: two in a minute are not sixty in the hour.
    """
    short = None
    for limit in limits:
        value = case.threshold(limit.threshold)
        if count < 1 or rate(case, count, limit.seconds) < value:
            continue
        if count >= value:
            return limit
        short = f"{count} in {span(case)}: too short a window for a limit of {told(case, limit)}"
    return short


def rate(case: Case, count: float, seconds: float) -> float:
    """How many that is in so many seconds; the count itself where the limit has no time."""
    window = case.window.seconds if case.window else None
    return count * seconds / window if window and seconds else count


def judged(case: Case, place: Place, count: Moved | Answer, limits: Sequence[Limit], words: Words) -> Answer:
    """One count against its limits."""
    if not isinstance(count, Moved):
        return of(place, count)
    reached = over(case, count.total, limits)
    if not isinstance(reached, Limit):
        why = reached or count.gap
        return Unknown(place.subject, why) if why else Pass(place.subject)
    return fault(case, place, count, reached, words)


def fault(case: Case, place: Place, count: Moved, limit: Limit, words: Words) -> Fail:
    """What a count over its limit is told as: the count, the window, the limit."""
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"{count.total} {words.what} in {span(case)}, limit {told(case, limit)}",
        impact=words.impact,
        remedy=words.remedy,
        evidence=count.evidence,
        severity=place.severity(limit.severity),
        confidence=words.confidence,
        cause=words.cause,
        places=place.places,
    )


def of(place: Place, answer: Answer) -> Answer:
    """The same answer of another subject: a counter's is its interface, the rule's is the port."""
    return answer._replace(subject=place.subject)


def told(case: Case, limit: Limit) -> str:
    """A limit in words: "10/h", "10/min", "100 in 10 min", "1"."""
    unit = _UNITS.get(limit.seconds, f" in {in_words(limit.seconds)}")
    return f"{case.threshold(limit.threshold):g}{unit}"


def span(case: Case) -> str:
    """The window in words."""
    return in_words((case.window.seconds if case.window else None) or 0)


def in_words(seconds: float) -> str:
    """A time for people.

    >>> in_words(12), in_words(720), in_words(5400), in_words(86400 * 2)
    ('12 s', '12 min', '90 min', '48 h')
    """
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.0f} h"


def several(faults: Sequence[Fail], judged_count: int, summary: str, cause: str) -> list[Fail]:
    """One finding where half of all, and two at least, have the fault at once: what they share is suspected."""
    if len(faults) < 2 or 2 * len(faults) < judged_count:
        return list(faults)
    grave = max(faults, key=lambda each: ("info", "warning", "error", "critical").index(each.severity or "info"))
    return [
        grave._replace(
            subject="node",
            label="node",
            summary=f"{summary}: {named([each.label for each in faults])}",
            evidence=tuple(row for each in faults for row in each.evidence),
            cause=cause,
            places=frozenset().union(*(each.places for each in faults)),
            parts=tuple(faults),
        )
    ]
