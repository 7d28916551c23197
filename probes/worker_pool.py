"""Probes on a live host: in children that take one after the other, none waited for without a bound."""

from __future__ import annotations

import select
import signal
import time
from importlib import import_module
from typing import TYPE_CHECKING

from probes.child import hold_stop_signals
from probes.host.process import condition
from probes.locks import LockHolder, StuckProcess, find_stuck, run_folder
from probes.named_tuple import NamedTuple
from probes.probe import ModuleReader, Probe, Status
from probes.scheduler import Scheduler
from probes.worker import KILL_SECONDS, TERM_SECONDS, Worker, describe_exit

if TYPE_CHECKING:
    from probes.worker import Answer

AT_ONCE = 4  # children; more would only wait for the same drivers
TICK_SECONDS = 0.05
SLOW_SECONDS = 0.1  # that a probe takes: the others are not kept waiting for it
STUCK_SECONDS = 1.0  # that a process sleeps in the kernel at every look, until it counts as stuck

_left_behind: list[Worker] = []  # reaped by a later run of this process, once the kernel lets them go


class _Suspect(NamedTuple):
    """What holds the lock of a probe though its run is over, since when it was seen, and which process hangs."""

    holder: LockHolder
    at: float
    process: StuckProcess | None


class WorkerPool(Scheduler):
    """A live host: probes in children that can be left behind.

    One child takes probe after probe; while one takes long, the others go on in a second child, up to a few at once.
    So a fork is paid for only where something is slow, and what hangs or dies takes no other probe with it.
    """

    def run(self) -> None:
        """See Scheduler.run."""
        for worker in list(_left_behind):
            if worker.reap() is not None:
                _left_behind.remove(worker)
        self.poll = select.poll()
        self.running: list[Worker] = []
        self.leaving: list[Worker] = []
        self.folder = run_folder()
        self.asked_for_lock: dict[str, float] = {}
        self.ask_again: dict[str, float] = {}  # when, for the locks that another run holds
        self.suspects: dict[str, _Suspect] = {}
        self.lock_numbers: dict[str, int] = {}  # of probes whose first lock a daemon holds
        for probe in self.waiting:  # once, here: each child would do it, and this process for what the child answers
            if isinstance(probe.read, ModuleReader) and not (probe.devices or probe.read.require):
                import_module(probe.read.module)
        try:
            while self.waiting or self._list_busy():
                self._start_some()
                by_descriptor = {worker.descriptor: worker for worker in self.running}
                for descriptor, _ in self.poll.poll(TICK_SECONDS * 1000):
                    self._receive(by_descriptor[descriptor])
                self._terminate_overdue()
                self.show([worker.probe.name for worker in self._list_busy() if worker.probe])
        finally:
            self._end_all()

    def _list_busy(self) -> list[Worker]:
        return [worker for worker in self.running if worker.probe]

    def _start_some(self) -> None:
        over = time.monotonic() > self.deadline
        for probe in list(self.waiting):
            if over:
                self.waiting.remove(probe)
                self.settle_unreached(probe)
            elif self.is_turn(probe) and (self.resolve_without_running(probe) or self._start(probe)):
                self.waiting.remove(probe)

    def _start(self, probe: Probe) -> bool:
        """Have a child run it, where one is free."""
        now = time.monotonic()
        if now < self.ask_again.get(probe.name, now):
            return False
        worker = next((worker for worker in self.running if not worker.probe), None) or self._fork(now)
        if worker is None:
            return False
        if worker.begin(probe, self.lock_numbers.get(probe.name, 1)):
            return True
        self._part_with(worker)
        return False

    def _fork(self, now: float) -> Worker | None:
        """Another child, where all of them have been at a probe for long, and there may be more."""
        if len(self.running) == AT_ONCE or any(now - worker.started < SLOW_SECONDS for worker in self.running):
            return None
        foreign = [descriptor for worker in self.running for descriptor in (worker.descriptor, worker.jobs)]
        with hold_stop_signals():
            worker = Worker(self.probes, self.host, self.record, self.folder, foreign)
            self.running.append(worker)
            self.poll.register(worker.descriptor, select.POLLIN)
        return worker

    def _is_locked(self, probe: Probe, holder: LockHolder) -> bool:
        """Someone has the lock: a healthy run is waited for; what an earlier one left is asked what it does."""
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
        if not worker.receive():
            return
        probe = worker.probe
        if probe is None:
            self._part_with(worker)
        elif worker.holder is not None:
            if not self._is_locked(probe, worker.holder):
                self.ask_again[probe.name] = time.monotonic() + TICK_SECONDS
                self.waiting.append(probe)
            worker.rest()
        elif worker.answer is None or worker.overdue is not None or _may_be_spoiled(probe, worker.answer):
            self._finish(worker, probe)
        else:
            self._keep_answer(worker.answer)
            worker.rest()

    def _terminate_overdue(self) -> None:
        now = time.monotonic()
        for worker in self._list_busy():
            whole_run = now > self.deadline and worker.overdue is None
            if not whole_run and now < worker.due:
                continue
            due = worker.due
            self._receive(worker)  # what came while this process had no CPU
            if worker not in self.running or worker.probe is None or worker.due != due:
                continue
            if not whole_run and worker.overdue is None and worker.is_busy(now):
                continue
            limit = self.timeout_seconds if now > self.deadline else worker.bound_seconds
            of_what = " of the whole run" if whole_run else ""
            if worker.press(now, f"no answer within {limit:g} s{of_what}"):
                self._finish(worker, worker.probe)
                self.leaving.remove(worker)
                _left_behind.append(worker)

    def _part_with(self, worker: Worker) -> None:
        """It gets no probe any more."""
        self.poll.unregister(worker.descriptor)
        worker.close()
        self.running.remove(worker)
        self.leaving.append(worker)

    def _finish(self, worker: Worker, probe: Probe) -> None:
        """The outcome of its last probe is known: from its answer, from its death, or from its silence."""
        self._part_with(worker)
        if worker.answer is not None:
            self._keep_answer(worker.answer)
        elif worker.overdue is not None:
            self.settle(probe, Status.TIMED_OUT, worker.overdue, worker.seconds, worker.is_hung)
        else:
            self.settle(probe, Status.FAILED, self._death_of(worker), worker.seconds)

    def _keep_answer(self, answer: Answer) -> None:
        outcome, recording = answer
        self.keep(outcome)
        if self.recording is not None and recording is not None:
            self.recording.merge(recording)

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
        busy = self._list_busy()
        for worker in busy:
            worker.signal(signal.SIGTERM)
        for worker in self.running:
            worker.close()
        left = _wait_for([*self.running, *self.leaving], TERM_SECONDS if busy else KILL_SECONDS)
        for worker in left:
            worker.signal(signal.SIGKILL)
        _left_behind.extend(_wait_for(left, KILL_SECONDS))


def _may_be_spoiled(probe: Probe, answer: Answer) -> bool:
    """Whether a vendor's library was loaded into the child, whose faults are not to be those of the next probe."""
    return probe.loads_library and answer[0].status not in (Status.SKIPPED, Status.ABSENT)


def _wait_for(workers: list[Worker], seconds: float) -> list[Worker]:
    """Those that are still there after a bounded wait."""
    until = time.monotonic() + seconds
    while (workers := [worker for worker in workers if worker.reap() is None]) and time.monotonic() < until:
        time.sleep(TICK_SECONDS / 10)
    return workers
