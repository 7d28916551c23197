"""One run of `ship`: take the reports into the spool, hand over what waits, and only then see what does not fit.

    read -> spool (no room: it stays in its file for now) -> hand over, the most worth first
         -> what had no room and was not handed over: into the spool for what is worth less, or dropped and counted

Nothing is dropped before an attempt to hand it over in the same run.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent.ship.payload import BadPayload, Payload, read_payload
from agent.ship.spool import FULL, Spool, SpoolEntry, make_entry
from agent.ship.state import Warn, utc_now
from agent.ship.target import RETRY_AFTER_LIMIT_SECONDS, SendResult, SendStatus, Target

ROUNDS = 10  # of reports that a scan puts in place during the run
GRACE_SECONDS = 5.0  # beyond the time of a run, to keep what could not be handed over
_RANDOM = random.SystemRandom()  # nodes of one image must not wait in step


class RetryPolicy(NamedTuple):
    """How one run tries."""

    attempts: int = 5  # for one report
    first_pause_seconds: float = 1.0  # the longest pause before the second attempt; doubled for each further one
    longest_pause_seconds: float = 20.0
    attempt_seconds: float = 20.0
    failures: int = 2  # reports in a row that do not pass, after which the endpoint is considered down
    rejections: int = 3  # reports in a row that are rejected, and none accepted: the fault is not the reports'


class Upload(NamedTuple):
    """A report to hand over, wherever it lies."""

    name: str
    load: Callable[[], Payload]  # raises BadPayload, OSError
    finish: Callable[[], None]  # it is theirs; raises OSError
    set_aside: Callable[[str], None]  # it will never be


class UploadSummary(NamedTuple):
    """What the uploads of a run came to."""

    accepted: int = 0
    reason: str | None = None  # what stopped them, or kept a report
    retry_after: float | None = None  # seconds that the endpoint asked for


class RunResult(NamedTuple):
    """What a run came to."""

    accepted: int
    waiting: int
    dropped: dict[str, int]  # by kind, in this run
    dropped_ever: int
    since: str
    reason: str | None  # what keeps reports waiting
    bad: list[str]  # a line for each file that is no report
    left: int = 0  # reports that stay where they are: another run held the spool, or the time was up

    @property
    def all_handed_over(self) -> bool:
        """Whether every report was handed over."""
        return not self.waiting and not self.left and not sum(self.dropped.values())


def ship(
    reports: list[str], target: Target | None, spool: Spool, until: float, policy: RetryPolicy, warn: Warn
) -> RunResult:
    """The run, not past `until` (monotonic). No target: reports are kept. Raises OSError where no spool can be."""
    with spool.lock(until) as is_locked, contextlib.ExitStack() as stack:
        if target is not None:
            stack.callback(target.close)
        if not is_locked:
            return _leave_reports(reports, spool)
        intake = _Intake(spool, until, warn)
        bad = intake.take_in(reports)
        summary = UploadSummary()
        for count in range(ROUNDS):
            if target is not None and summary.reason is None and (not count or time.monotonic() < until):
                more = _hand_over(intake, target, spool, until, policy, warn)
                summary = more._replace(accepted=summary.accepted + more.accepted)
            if not (changed := intake.changed_files()):
                break
            intake.take_in(changed)
        intake.make_room()
        state = spool.journal.state
        state.last_run = utc_now()
        state.last_failure = summary.reason
        waiting = spool.close()
        ever = state.dropped
        total = ever.healthy + ever.not_judged + ever.with_findings + ever.set_aside
        reason = summary.reason or ("out of time" if intake.left else None)
        return RunResult(summary.accepted, waiting, spool.journal.dropped, total, state.since, reason, bad, intake.left)


class _Intake:
    """The files that were named: in the spool, or still where they lie because there is no room for them."""

    def __init__(self, spool: Spool, until: float, warn: Warn) -> None:
        self.unspooled: dict[str, SpoolEntry] = {}  # path -> what it would be in the spool
        self.left = 0  # not read, or not kept, because the time was over: thousands may be named
        self._until = until
        self._stamps: dict[str, tuple[int, int, int]] = {}  # path -> what the file was when it was read
        self._spool, self._warn = spool, warn

    def take_in(self, reports: list[str]) -> list[str]:
        """Into the spool, without dropping anything. A line for each that is no report."""
        bad: list[str] = []
        for count, path in enumerate(reports):
            if count and time.monotonic() >= self._until:
                self.left += len(reports) - count
                break
            try:
                self._stamps[path] = _file_stamp(path)
                payload = read_payload(path)
            except BadPayload as error:
                bad.append(f"{path}: {error}")
                continue
            except OSError as error:
                bad.append(f"{path}: {error.strerror}")
                continue
            if path in self.unspooled:
                self._count_drop(path)
            try:
                if not self._spool.put(payload, drop=False):
                    self.unspooled[path] = make_entry(payload, 0)
            except OSError as error:
                self._warn(f"{path}: cannot be kept in {self._spool.path}: {error.strerror}")
                self.unspooled[path] = make_entry(payload, 0)
        return bad

    def changed_files(self) -> list[str]:
        """The files that are others by now: a scan that ends during the run starts no second one."""
        changed = []
        for path, stamp in self._stamps.items():
            with contextlib.suppress(OSError):
                if _file_stamp(path) != stamp:
                    changed.append(path)
        return changed

    def load(self, path: str) -> Payload:
        """A report that lies where it was named. Raises BadPayload, OSError."""
        payload = read_payload(path)
        if make_entry(payload, 0) != self.unspooled[path]:
            self._count_drop(path)
            raise OSError(0, "there was no room to keep it, and now it is another report")
        return payload

    def finish(self, path: str) -> None:
        """It is handed over."""
        del self.unspooled[path]

    def make_room(self) -> None:
        """Keep what could not be handed over, for what is worth less; else it is dropped, and counted."""
        for count, path in enumerate(list(self.unspooled)):
            if count and time.monotonic() >= self._until + GRACE_SECONDS:
                self.left += len(self.unspooled)
                break
            try:
                payload = self.load(path)
            except (BadPayload, OSError) as error:
                self._warn(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
                if path in self.unspooled:
                    self._count_drop(path)
                continue
            try:
                if self._spool.put(payload, drop=True):
                    del self.unspooled[path]
                    continue
            except OSError as error:
                if error.errno not in FULL:
                    self._warn(f"{path}: cannot be kept in {self._spool.path}: {error.strerror}")
            self._count_drop(path)

    def _count_drop(self, path: str) -> None:
        entry = self.unspooled.pop(path)
        self._spool.journal.count_drop(entry.kind, entry.name)


def _file_stamp(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size


def _hand_over(
    intake: _Intake, target: Target, spool: Spool, until: float, policy: RetryPolicy, warn: Warn
) -> UploadSummary:
    """Hand over, unless the endpoint asked for more time."""
    state = spool.journal.state
    wait = (state.not_before or 0.0) - time.time()
    if state.not_before_of == target.label and 0 < wait <= RETRY_AFTER_LIMIT_SECONDS:
        return UploadSummary(0, f"{target.label}: it asked to wait {wait:.0f} s more")
    summary = upload(_list_uploads(intake, spool), target, until, policy, warn)
    state.not_before, state.not_before_of = None, None
    if summary.retry_after:
        state.not_before, state.not_before_of = round(time.time() + summary.retry_after, 3), target.label
    if summary.accepted:
        state.handed_over += summary.accepted
        state.last_handed_over = utc_now()
    return summary._replace(reason=f"{target.label}: {summary.reason}") if summary.reason else summary


def upload(uploads: Iterable[Upload], target: Target, until: float, policy: RetryPolicy, warn: Warn) -> UploadSummary:
    """Hand over one after another, not past `until` (monotonic).

    A report on which the endpoint fails (500) must not keep the others: the next one is tried, once. One that it
    rejects is set aside only where it accepted another in the same run: a proxy that rejects all is no reason to give
    any of them up.
    """
    accepted, failures, reason, retry_after = 0, 0, None, None
    rejected: list[tuple[Upload, str]] = []
    for item in uploads:
        if not accepted and len(rejected) >= policy.rejections:
            break
        try:
            payload = item.load()
        except BadPayload as error:
            item.set_aside(str(error))
            continue
        except OSError as error:
            reason = f"{item.name}: {error.strerror}"
            warn(reason)
            continue
        result = _send_repeatedly(target, payload, until, policy, policy.attempts if not failures else 1)
        if result.status is SendStatus.ACCEPTED:
            accepted, failures = accepted + 1, 0
            try:
                item.finish()
            except OSError as error:
                warn(f"{item.name}: handed over, and cannot be removed: {error.strerror}")
            continue
        reason = result.reason
        if result.status is SendStatus.REJECTED:
            rejected.append((item, result.reason))
            continue
        failures += 1
        if result.status is SendStatus.BLOCKED or result.retry_after is not None or failures >= policy.failures:
            retry_after = result.retry_after
            break
    if accepted:
        for item, why in rejected:
            item.set_aside(f"refused: {why}")
    return UploadSummary(accepted, reason, retry_after)


def _send_repeatedly(target: Target, payload: Payload, until: float, policy: RetryPolicy, attempts: int) -> SendResult:
    """Try until it passes, or will not, or the time is up; full jitter after what the server asked between attempts."""
    longest = policy.first_pause_seconds
    for count in range(1, attempts + 1):
        if time.monotonic() >= until:
            return SendResult(SendStatus.BLOCKED, "out of time")
        result = target.hand_over(payload, min(until, time.monotonic() + policy.attempt_seconds))
        if result.status is not SendStatus.RETRY:
            return result
        pause = (result.retry_after or 0.0) + _RANDOM.uniform(0, longest)
        longest = min(longest * 2, policy.longest_pause_seconds)
        if count == attempts or time.monotonic() + pause >= until:
            return result
        time.sleep(pause)
    return result


def _list_uploads(intake: _Intake, spool: Spool) -> Iterator[Upload]:
    """The newest of all first: it is what the node is like now. Then what is worth most, newest first: what would be
    dropped first goes last. Then what another run has put there meanwhile."""
    seen: set[str] = set()
    waiting = sorted(spool.waiting(), reverse=True)
    newest = max(waiting, key=lambda entry: entry.timestamp, default=None)
    for path in list(intake.unspooled):
        yield _unspooled_upload(path, intake)
    while waiting:
        if newest is not None:
            yield _spooled_upload(newest, spool)
        for entry in waiting:
            if entry is not newest:
                yield _spooled_upload(entry, spool)
        seen |= {entry.name for entry in waiting}
        newest, waiting = None, [entry for entry in spool.waiting() if entry.name not in seen]


def _spooled_upload(entry: SpoolEntry, spool: Spool) -> Upload:
    return Upload(
        entry.name,
        lambda: spool.load(entry),
        lambda: spool.remove(entry),
        lambda why: spool.set_aside(entry, why),
    )


def _unspooled_upload(path: str, intake: _Intake) -> Upload:
    """One that is rejected stays what it is: the spool sets it aside in its turn."""
    return Upload(path, lambda: intake.load(path), lambda: intake.finish(path), lambda _: None)


def _leave_reports(reports: list[str], spool: Spool) -> RunResult:
    """Another run holds the spool all the time that we have: the reports are left with it."""
    bad, left = [], 0
    for path in reports:
        try:
            spool.put_unlocked(read_payload(path))
        except BadPayload as error:
            bad.append(f"{path}: {error}")
        except OSError as error:
            bad.append(f"{path}: {error.strerror}")
            left += 1
    waiting = len([name for name in os.listdir(os.path.join(spool.path, "waiting")) if not name.startswith(".")])
    return RunResult(0, waiting, {}, 0, "", f"another run holds {spool.path}", bad, left)
