"""One run of `ship`: take the reports into the spool, hand over what waits, and only then see what does not fit.

    read -> spool (no room: it stays in its file for now) -> hand over, the most worth first
         -> what had no room and was not handed over: into the spool for what is worth less, or given up and counted

Nothing is dropped before it was tried to hand it over in the same run.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from agent.ship.answer import WAIT_LIMIT_SECONDS, Target
from agent.ship.deliver import Delivered, Letter, Patience, deliver
from agent.ship.ledger import now
from agent.ship.parcel import BadParcel, Parcel, read_parcel
from agent.ship.spool import FULL, Entry, Spool, entry_of
from agent.ship.state import Say

ROUNDS = 10  # of reports that a scan puts in place while we run
LAST_SECONDS = 5.0  # beyond the time of a run, to keep what could not be handed over


class Shipped(NamedTuple):
    """What a run came to."""

    taken: int
    waiting: int
    dropped: dict[str, int]  # by kind, in this run
    dropped_ever: int
    since: str
    why: str | None  # what keeps reports waiting
    bad: list[str]  # a line for each file that is no report
    left: int = 0  # reports that stand where they stood: another run held the spool, or the time was up

    @property
    def all_gone(self) -> bool:
        """Whether every report was handed over."""
        return not self.waiting and not self.left and not sum(self.dropped.values())


def ship(
    reports: list[str], target: Target | None, spool: Spool, until: float, patience: Patience, say: Say
) -> Shipped:
    """The run, not past `until` (monotonic). No target: reports are kept. Raises OSError where no spool can be."""
    with spool.held(until) as held:
        if not held:
            return _late(reports, spool)
        taking = _Taking(spool, until, say)
        bad = taking.take_in(reports)
        made = Delivered()
        for count in range(ROUNDS):
            if target is not None and made.why is None and (not count or time.monotonic() < until):
                more = _handed_over(taking, target, spool, until, patience, say)
                made = more._replace(taken=made.taken + more.taken)
            if not (newer := taking.newer()):
                break
            taking.take_in(newer)
        taking.make_room()
        state = spool.ledger.state
        state.last_run = now()
        state.last_failure = made.why
        waiting = spool.close()
        ever = state.dropped
        total = ever.healthy + ever.not_judged + ever.with_findings + ever.set_aside
        why = made.why or ("out of time" if taking.left else None)
        return Shipped(made.taken, waiting, spool.ledger.dropped, total, state.since, why, bad, taking.left)


class _Taking:
    """The files that were named: in the spool, or still where they lie because there is no room for them."""

    def __init__(self, spool: Spool, until: float, say: Say) -> None:
        self.loose: dict[str, Entry] = {}  # path -> what it would be in the spool
        self.left = 0  # not read, or not kept, for want of time: thousands may be named
        self._until = until
        self._read: dict[str, tuple[int, int, int]] = {}  # path -> what the file was when it was read
        self._spool, self._say = spool, say

    def take_in(self, reports: list[str]) -> list[str]:
        """Into the spool, without dropping anything. A line for each that is no report."""
        bad: list[str] = []
        for count, path in enumerate(reports):
            if count and time.monotonic() >= self._until:
                self.left += len(reports) - count
                break
            try:
                self._read[path] = _stamp(path)
                made = read_parcel(path)
            except BadParcel as error:
                bad.append(f"{path}: {error}")
                continue
            except OSError as error:
                bad.append(f"{path}: {error.strerror}")
                continue
            if path in self.loose:
                self._gone(path)
            try:
                if not self._spool.put(made, drop=False):
                    self.loose[path] = entry_of(made, 0)
            except OSError as error:
                self._say(f"{path}: cannot be kept in {self._spool.path}: {error.strerror}")
                self.loose[path] = entry_of(made, 0)
        return bad

    def newer(self) -> list[str]:
        """The files that are others by now: a scan that ends while we run starts no second run of ours."""
        changed = []
        for path, stamp in self._read.items():
            with contextlib.suppress(OSError):
                if _stamp(path) != stamp:
                    changed.append(path)
        return changed

    def load(self, path: str) -> Parcel:
        """A report that lies where it was named. Raises BadParcel, OSError."""
        made = read_parcel(path)
        if entry_of(made, 0) != self.loose[path]:
            self._gone(path)
            raise OSError(0, "there was no room to keep it, and now it is another report")
        return made

    def done(self, path: str) -> None:
        """It is handed over."""
        del self.loose[path]

    def make_room(self) -> None:
        """Keep what could not be handed over, for what is worth less; else it is given up, and counted."""
        for count, path in enumerate(list(self.loose)):
            if count and time.monotonic() >= self._until + LAST_SECONDS:
                self.left += len(self.loose)
                break
            try:
                made = self.load(path)
            except (BadParcel, OSError) as error:
                self._say(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
                if path in self.loose:
                    self._gone(path)
                continue
            try:
                if self._spool.put(made, drop=True):
                    del self.loose[path]
                    continue
            except OSError as error:
                if error.errno not in FULL:
                    self._say(f"{path}: cannot be kept in {self._spool.path}: {error.strerror}")
            self._gone(path)

    def _gone(self, path: str) -> None:
        entry = self.loose.pop(path)
        self._spool.ledger.count(entry.kind, entry.name)


def _stamp(path: str) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns, found.st_size


def _handed_over(
    taking: _Taking, target: Target, spool: Spool, until: float, patience: Patience, say: Say
) -> Delivered:
    """Hand over, unless the endpoint asked for more time."""
    state = spool.ledger.state
    wait = (state.not_before or 0.0) - time.time()
    if state.not_before_of == target.shown and 0 < wait <= WAIT_LIMIT_SECONDS:
        return Delivered(0, f"{target.shown}: it asked to be left alone for {wait:.0f} s more")
    made = deliver(_letters(taking, spool), target, until, patience, say)
    state.not_before, state.not_before_of = None, None
    if made.wait:
        state.not_before, state.not_before_of = round(time.time() + made.wait, 3), target.shown
    if made.taken:
        state.handed_over += made.taken
        state.last_handed_over = now()
    return made._replace(why=f"{target.shown}: {made.why}") if made.why else made


def _letters(taking: _Taking, spool: Spool) -> Iterator[Letter]:
    """The newest of all first: it is what the node is like now. Then what is worth most, newest first: what would be
    dropped first goes last. Then what another run has put there meanwhile."""
    seen: set[str] = set()
    waiting = sorted(spool.waiting(), reverse=True)
    newest = max(waiting, key=lambda each: each.when, default=None)
    for path in list(taking.loose):
        yield _loose_letter(path, taking)
    while waiting:
        if newest is not None:
            yield _letter(newest, spool)
        for entry in waiting:
            if entry is not newest:
                yield _letter(entry, spool)
        seen |= {entry.name for entry in waiting}
        newest, waiting = None, [each for each in spool.waiting() if each.name not in seen]


def _letter(entry: Entry, spool: Spool) -> Letter:
    return Letter(
        entry.name,
        lambda: spool.load(entry),
        lambda: spool.done(entry),
        lambda why: spool.set_aside(entry, why),
    )


def _loose_letter(path: str, taking: _Taking) -> Letter:
    """One that is refused stays what it is: the spool sets it aside in its turn."""
    return Letter(path, lambda: taking.load(path), lambda: taking.done(path), lambda _: None)


def _late(reports: list[str], spool: Spool) -> Shipped:
    """Another run holds the spool all the time that we have: the reports are left with it."""
    bad, left = [], 0
    for path in reports:
        try:
            spool.put_late(read_parcel(path))
        except BadParcel as error:
            bad.append(f"{path}: {error}")
        except OSError as error:
            bad.append(f"{path}: {error.strerror}")
            left += 1
    waiting = len([name for name in os.listdir(os.path.join(spool.path, "waiting")) if not name.startswith(".")])
    return Shipped(0, waiting, {}, 0, "", f"another run holds {spool.path}", bad, left)
