"""Probes on a live host: each in a child of its own, a few at once, none waited for without a bound."""

from __future__ import annotations

import selectors
import signal
import time
from typing import NamedTuple

from probes.host.process import condition
from probes.locks import LOCKS, Lock, LockHolder, StuckProcess, acquire_lock, find_stuck, run_folder
from probes.probe import Probe, Status
from probes.scheduler import Scheduler
from probes.worker import KILL_SECONDS, TERM_SECONDS, Worker, describe_exit

AT_ONCE = 4  # children; more would only wait for the same drivers
TICK_SECONDS = 0.05
STUCK_SECONDS = 1.0  # that a process sleeps in the kernel at every look, until it counts as stuck

_left_behind: list[Worker] = []  # reaped by a later run of this process, once the kernel lets them go


class _Suspect(NamedTuple):
    """What holds the lock of a probe though its run is over, since when it was seen, and which process hangs."""

    holder: LockHolder
    at: float
    process: StuckProcess | None


class WorkerPool(Scheduler):
    """A live host: every probe in a child that can be left behind, a few at once."""

    def run(self) -> None:
        """See Run.run."""
        for worker in list(_left_behind):
            if worker.reap() is not None:
                _left_behind.remove(worker)
        self.selector = selectors.DefaultSelector()
        self.running: list[Worker] = []
        self.leaving: list[Worker] = []
        self.folder = run_folder()
        self.asked_for_lock: dict[str, float] = {}
        self.suspects: dict[str, _Suspect] = {}
        self.lock_numbers: dict[str, int] = {}  # of probes whose first lock a daemon holds
        try:
            while self.waiting or self.running:
                self._start_some()
                for key, _ in self.selector.select(TICK_SECONDS):
                    self._receive(key.data)
                self._press_the_late()
                self.show([worker.probe.name for worker in self.running])
        finally:
            self._end_all()
            self.selector.close()

    def _start_some(self) -> None:
        over = time.monotonic() > self.deadline
        for probe in list(self.waiting):
            if over:
                self.waiting.remove(probe)
                self.settle_unreached(probe)
            elif self.is_turn(probe) and (self.is_superfluous(probe) or self._start(probe)):
                self.waiting.remove(probe)

    def _start(self, probe: Probe) -> bool:
        """Start it, unless its lock is held; whether it needs to wait no more."""
        if len(self.running) == AT_ONCE:
            return False
        lock = self._lock(probe)
        if isinstance(lock, LockHolder):
            return self._is_locked(probe, lock)
        foreign = [worker.descriptor for worker in self.running]
        worker = Worker(probe, self.host, self.record, lock, [*foreign, self.selector.fileno()])
        self.running.append(worker)
        self.selector.register(worker.descriptor, selectors.EVENT_READ, worker)
        return True

    def _lock(self, probe: Probe) -> Lock | LockHolder | None:
        number = self.lock_numbers.get(probe.name, 1)
        try:
            return acquire_lock(self.folder, probe.name, number) if self.folder and number <= LOCKS else None
        except OSError:  # no place for locks: better a probe without one than no probe
            return None

    def _is_locked(self, probe: Probe, holder: LockHolder) -> bool:
        """Somebody has the lock: a healthy run is waited for; what an earlier one left is asked what it does."""
        if holder.is_over:
            return self._is_stuck(probe, holder)
        now = time.monotonic()
        since = self.asked_for_lock.setdefault(probe.name, now)
        if now - since > probe.bound_seconds:
            why = f"another run is still at it ({condition(holder.pid)})"
            self.settle(probe, Status.TIMED_OUT, why, round(now - since, 3))
            return True
        return False

    def _is_stuck(self, probe: Probe, holder: LockHolder) -> bool:
        """Of what outlived its run: a process that sleeps in the kernel is a hang; of any other the next lock is taken.

        Each is seen more than once: between taking the lock and writing its name a new holder shows the name of the
        one before, and every process that reads a disk sleeps so for a moment.
        """
        now = time.monotonic()
        suspect = self.suspects.get(probe.name)
        if suspect is None or suspect.holder != holder:
            self.suspects[probe.name] = _Suspect(holder, now, None)
        elif suspect.process is None:
            number = self.lock_numbers.get(probe.name, 1)
            process = find_stuck(self.folder or "", probe.name, number, holder)
            if process is None:
                self.lock_numbers[probe.name] = number + 1
            self.suspects[probe.name] = suspect._replace(process=process)
        elif not suspect.process.is_asleep:
            del self.suspects[probe.name]
        elif now - suspect.at > STUCK_SECONDS:
            self.settle(probe, Status.TIMED_OUT, f"an earlier run's child is {suspect.process.story}", hung=True)
            return True
        return False

    def _receive(self, worker: Worker) -> None:
        if worker.receive():
            self._finish(worker)

    def _press_the_late(self) -> None:
        now = time.monotonic()
        for worker in list(self.running):
            whole_run = now > self.deadline and worker.overdue is None
            if not whole_run and now < worker.due:
                continue
            if worker.receive():  # what came while this process had no CPU
                self._finish(worker)
                continue
            if not whole_run and worker.overdue is None and worker.is_busy(now):
                continue
            limit = self.timeout_seconds if now > self.deadline else worker.probe.bound_seconds
            of_what = " of the whole run" if whole_run else ""
            if worker.press(now, f"no answer within {limit:g} s{of_what}"):
                self._finish(worker)
                self.leaving.remove(worker)
                _left_behind.append(worker)

    def _finish(self, worker: Worker) -> None:
        """Its outcome is known: from its answer, from its death, or from its silence."""
        self.selector.unregister(worker.descriptor)
        worker.close()
        self.running.remove(worker)
        self.leaving.append(worker)
        if worker.answer is not None:
            outcome, recording = worker.answer
            self.keep(outcome)
            if self.recording is not None and recording is not None:
                self.recording.merge(recording)
        elif worker.overdue is not None:
            self.settle(worker.probe, Status.TIMED_OUT, worker.overdue, worker.seconds, worker.is_hung)
        else:
            self.settle(worker.probe, Status.FAILED, self._death_of(worker), worker.seconds)

    def _death_of(self, worker: Worker) -> str:
        """Its pipe is closed: how it ended is known at once, or it hangs in its exit."""
        until = time.monotonic() + KILL_SECONDS
        while (status := worker.reap()) is None:
            if time.monotonic() > until:
                return f"its process ended without an answer ({condition(worker.pid)})"
            time.sleep(TICK_SECONDS / 10)
        self.leaving.remove(worker)
        return describe_exit(status)

    def _end_all(self) -> None:
        """No child outlives the run, but for one that the kernel does not let go: that one is left behind."""
        for worker in self.running:
            worker.signal(signal.SIGTERM)
            worker.close()
        left = _wait_for([*self.running, *self.leaving], TERM_SECONDS if self.running else KILL_SECONDS)
        for worker in left:
            worker.signal(signal.SIGKILL)
        _left_behind.extend(_wait_for(left, KILL_SECONDS))


def _wait_for(workers: list[Worker], seconds: float) -> list[Worker]:
    """Those that are still there after a bounded wait."""
    until = time.monotonic() + seconds
    while (workers := [worker for worker in workers if worker.reap() is None]) and time.monotonic() < until:
        time.sleep(TICK_SECONDS / 10)
    return workers
