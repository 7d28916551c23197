"""Which reports go first, how often a try is repeated, and when a run gives up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from agent.ship.answer import Answer, Kind, Target
from agent.ship.parcel import BadParcel, Parcel
from agent.ship.state import Say

_CHANCE = random.SystemRandom()  # nodes of one image must not wait in step


class Patience(NamedTuple):
    """How one run tries."""

    tries: int = 5
    first_seconds: float = 1.0  # the most that is waited before the second try; doubled for each further one
    most_seconds: float = 20.0
    try_seconds: float = 20.0  # for one try
    failures: int = 2  # reports in a row that do not pass, after which the endpoint is believed to be down
    refusals: int = 3  # reports in a row that are refused, and none taken, after which the fault is not the reports'


class Letter(NamedTuple):
    """A report that is to go, wherever it lies."""

    name: str
    load: Callable[[], Parcel]  # raises BadParcel, OSError
    done: Callable[[], None]  # it is theirs; raises OSError
    aside: Callable[[str], None]  # it will never be


class Delivered(NamedTuple):
    """What a run came to."""

    taken: int = 0
    why: str | None = None  # what stopped it, or kept a report
    wait: float | None = None  # seconds that the endpoint asked for


def deliver(letters: Iterable[Letter], target: Target, until: float, patience: Patience, say: Say) -> Delivered:
    """Hand over one after another, not past `until` (monotonic).

    A report on which the endpoint stumbles (500) must not keep the others: the next one is tried, once. One that it
    refuses is set aside only where it took another in the same run: a proxy that refuses all is no reason to give any
    of them up.
    """
    taken, failures, why = 0, 0, None
    refused: list[tuple[Letter, str]] = []
    for letter in letters:
        if not taken and len(refused) >= patience.refusals:
            break
        try:
            made = letter.load()
        except BadParcel as error:
            letter.aside(str(error))
            continue
        except OSError as error:
            why = f"{letter.name}: {error.strerror}"
            say(why)
            continue
        answer = _insist(target, made, until, patience, patience.tries if not failures else 1)
        if answer.kind is Kind.TAKEN:
            taken, failures = taken + 1, 0
            try:
                letter.done()
            except OSError as error:
                say(f"{letter.name}: handed over, and cannot be removed: {error.strerror}")
            continue
        why = answer.why
        if answer.kind is Kind.REFUSED:
            refused.append((letter, answer.why))
            continue
        failures += 1
        if answer.kind is Kind.BLOCKED or answer.wait is not None or failures >= patience.failures:
            return _ended(Delivered(taken, why, answer.wait), refused)
    return _ended(Delivered(taken, why), refused)


def _ended(made: Delivered, refused: list[tuple[Letter, str]]) -> Delivered:
    if made.taken:
        for letter, why in refused:
            letter.aside(f"refused: {why}")
    return made


def _insist(target: Target, made: Parcel, until: float, patience: Patience, tries: int) -> Answer:
    """Try until it passes, or will not, or the time is up; full jitter between tries, after what the server asked."""
    most = patience.first_seconds
    for count in range(1, tries + 1):
        if time.monotonic() >= until:
            return Answer(Kind.BLOCKED, "out of time")
        answer = target.hand_over(made, min(until, time.monotonic() + patience.try_seconds))
        if answer.kind is not Kind.AGAIN:
            return answer
        pause = (answer.wait or 0.0) + _CHANCE.uniform(0, most)
        most = min(most * 2, patience.most_seconds)
        if count == tries or time.monotonic() + pause >= until:
            return answer
        time.sleep(pause)
    return answer
