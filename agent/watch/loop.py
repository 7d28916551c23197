"""The loop: waits for all descriptors at once, collects events, judges when it is time. One thread, and no tick."""

from __future__ import annotations

import errno
import math
import os
import select
import stat
import time
from collections.abc import Sequence
from typing import Protocol

from agent.model.profile import BadProfile
from agent.model.report import Report
from agent.watch.judging import Judge, Judged
from agent.watch.pace import ASKED, START, Pace, Turn
from agent.watch.signals import Ended, Signals
from probes.host.interface import Unanswered
from probes.kernel.events import Event, Listener

BROKEN = select.POLLHUP | select.POLLNVAL
STDOUT = 1

SLIGHT = ("counters", "evidence")  # groups of changes for which nobody needs to look again soon


class Told(Protocol):
    """Where everything goes that is told."""

    def keep(self, report: Report) -> None:
        """The current report, whole: no signal breaks in."""

    def tell(self, turn: Turn, made: Judged) -> None:
        """What changed. A reader may let it wait; a signal ends that."""

    def say(self, text: str) -> None:
        """A line about the watch itself."""


class Watch:
    """Listens, judges and tells until a signal ends it."""

    def __init__(self, listeners: Sequence[Listener], pace: Pace, judge: Judge, signals: Signals, told: Told) -> None:
        self._listeners = {each.fileno(): each for each in listeners}
        self._pace = pace
        self._judge = judge
        self._signals = signals
        self._told = told
        self._poll = select.poll()

    def run(self) -> None:
        """Until a signal to end. Raises what `told` raises."""
        for number in self._listeners:
            self._poll.register(number, select.POLLIN)  # and errors: an overrun is one
        self._poll.register(self._signals.fileno(), select.POLLIN)
        if _is_pipe(STDOUT):
            self._poll.register(STDOUT, 0)  # told only when nobody reads it any more
        try:
            self._turn(self._pace.all(Event(START, None, "watch was started", "clock"), time.monotonic()))
            while not self._signals.ended:
                self._wait()
        except Ended:
            pass

    def _wait(self) -> None:
        """Wait for whatever comes first, take it in, and judge what is due."""
        left = max(self._pace.due() - time.monotonic(), 0.0)
        for number, flags in self._poll.poll(math.ceil(min(left, 1e6) * 1000)):
            if number in self._listeners:
                self._hear(number, flags)
            elif number == STDOUT:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        asked = self._signals.take()
        if self._signals.ended:
            return
        now = time.monotonic()
        turn = self._pace.all(Event(ASKED, None, "SIGUSR1", "signal"), now) if asked else self._pace.turn(now)
        if turn is not None:
            self._turn(turn)

    def _hear(self, number: int, flags: int) -> None:
        listener = self._listeners[number]
        try:
            self._pace.heard(listener.heard(), time.monotonic())
            why = "it was closed" if flags & BROKEN else None
        except Unanswered as error:
            why = error.reason
        if why:  # told once; the rest works, and so does the full scan
            self._told.say(f"{listener.name} is not listened to any more: {why}")
            self._poll.unregister(number)
            self._listeners.pop(number).close()

    def _turn(self, turn: Turn) -> None:
        names = None if turn.full else self._judge.asked(turn.kinds)
        started = time.monotonic()
        changed = False
        if names is None or names:
            try:
                made = self._judge.judge(names)
            except BadProfile as error:
                self._told.say(f"not judged: {error}")
            else:
                changed = any(change.group not in SLIGHT for change in made.changes)
                with self._signals.interruptible():
                    with self._signals.whole():
                        self._told.keep(made.report)
                    self._told.tell(turn, made)
        ended = time.monotonic()
        self._pace.judged(turn, changed, ended - started, ended)


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode)
