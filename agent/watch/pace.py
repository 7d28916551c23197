"""When to judge, and for what reasons: a burst is one judging, and nothing is judged without end. Pure: no clock here.

Every moment is in seconds of one clock that only goes forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.watch.touched import TOUCHED
from probes.kernel.events import Event

LONGEST = 10  # times the quiet time: a link that flaps for ever is judged all the same
SHARE = 9  # rest after a judging, in times of what it took: a tenth of the time is spent at most
REST_SECONDS = 60.0  # the most that a kind rests after a judging that found a change
IDLE_SECONDS = 300.0  # the same where it found none, again and again
MOST_REASONS = 20  # that are told of one judging

START, TIME, ASKED = "start", "time", "asked"  # reasons that are no event: always a full scan


class Reason(NamedTuple):
    """Why it is judged: an event, and how often it came."""

    event: Event
    times: int = 1


class Turn(NamedTuple):
    """One judging that is due."""

    full: bool
    kinds: frozenset[str]
    reasons: tuple[Reason, ...]
    more: int  # reasons that are not listed


class Pace:
    """Collects events, and says when what was collected is to be judged."""

    def __init__(self, settle_seconds: float, every_seconds: float) -> None:
        self._settle = settle_seconds
        self._every = every_seconds
        self._next_full = 0.0
        self._waiting: dict[str, dict[Event, int]] = {}  # by kind
        self._first: dict[str, float] = {}  # when each kind was heard first
        self._last = 0.0
        self._rest: dict[str, float] = {}
        self._rested: dict[str, float] = {}  # until when each kind rests
        self._more: dict[str, int] = {}

    def heard(self, events: Iterable[Event], now: float) -> None:
        """Something happened."""
        for event in events:
            if not TOUCHED.get(event.kind, True):
                continue
            waiting = self._waiting.setdefault(event.kind, {})
            self._first.setdefault(event.kind, now)
            self._last = now
            if event in waiting or len(waiting) < MOST_REASONS:
                waiting[event] = waiting.get(event, 0) + 1
            else:
                self._more[event.kind] = self._more.get(event.kind, 0) + 1

    def due(self) -> float:
        """The moment of the next judging."""
        return min([self._next_full, *(self._due(kind) for kind in self._waiting)])

    def turn(self, now: float) -> Turn | None:
        """What is to be judged now; None: nothing yet. A full scan answers for everything that waits."""
        if now >= self._next_full:
            why = Event(TIME, None, f"{self._every:g} s since the last full scan", "clock")
            return self.all(why, now)
        kinds = [kind for kind in self._waiting if now >= self._due(kind)]
        if not kinds:
            return None
        ready = [kind for kind in self._waiting if now >= self._rested.get(kind, now)]
        full = any(kind not in TOUCHED for kind in ready)
        return self._taken(list(self._waiting) if full else ready, full, ())

    def all(self, why: Event, now: float) -> Turn:
        """A full scan for that reason, now."""
        self._next_full = now + self._every
        return self._taken(list(self._waiting), True, (Reason(why),))

    def judged(self, turn: Turn, changed: bool, seconds: float, now: float) -> None:
        """A judging is over that took so long. Where nothing changes again and again, it rests longer and longer."""
        if turn.full:
            self._next_full = now + self._every
        for kind in turn.kinds:
            rest = min(SHARE * seconds, REST_SECONDS)
            if not changed:
                lately = now - seconds - self._rested.get(kind, now) < IDLE_SECONDS
                rest = min(max(2 * self._rest.get(kind, 0.0) * lately, rest, self._settle), IDLE_SECONDS)
            self._rest[kind], self._rested[kind] = rest, now + rest

    def _due(self, kind: str) -> float:
        quiet = min(self._last + self._settle, self._first[kind] + LONGEST * self._settle)
        return max(quiet, self._rested.get(kind, quiet))

    def _taken(self, kinds: list[str], full: bool, first: tuple[Reason, ...]) -> Turn:
        found = [Reason(event, times) for kind in kinds for event, times in self._waiting.pop(kind).items()]
        more = sum(self._more.pop(kind, 0) for kind in kinds) + max(len(found) - MOST_REASONS, 0)
        for kind in kinds:
            del self._first[kind]
        return Turn(full, frozenset(kinds), (*first, *found[:MOST_REASONS]), more)
