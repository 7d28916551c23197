"""A process that runs probes one after the other and can be left behind, from the fork to the reaping.

Why a process: a system call into a driver that hangs cannot be ended, nor can the thread that made it. Nothing of a
driver is ever loaded in the parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import time
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

try:
    import _pickle as pickle  # the module that is documented has the same in Python, too, and takes 1 ms to import
except ImportError:  # not CPython
    import pickle  # type: ignore[no-redef]

from probes.child import fork_child
from probes.host.interface import Host
from probes.host.process import condition, is_running, is_uninterruptible
from probes.locks import LOCKS, Lock, LockHolder, acquire_lock
from probes.probe import Outcome, Probe, Status, outcome_of

if TYPE_CHECKING:
    from probes.host.recording import Recording

    Answer = tuple[Outcome, Recording | None]

ANSWER_LIMIT_BYTES = 64 << 20
TERM_SECONDS = 1.0  # longer than a tool gets that the probe has started: the child ends it first
KILL_SECONDS = 0.3
DYING_SECONDS = 5.0  # that a killed process may take to end where only a CPU is missing; one in D never gets them
PATIENCE = 3  # bounds that a child may take while it is at work
CHUNK_BYTES = 1 << 20

_NEWEST_PROTOCOL = -1
_LENGTH = struct.Struct("=Q")
_JOB = struct.Struct("=HB")  # the position of a probe in the run's list, and the number of the lock that it takes


class WorkerStopped(BaseException):
    """The child was asked to end; on its way out it ends the tools that it started."""


class Worker:
    """The parent's view. `answer`, `holder` and `ended` state what has come from the probe that it runs; `due` is when
    the next step against it is."""

    def __init__(
        self, probes: Sequence[Probe], host: Host, record: bool, folder: str | None, foreign: Iterable[int]
    ) -> None:
        """Fork. `probes`: what it may be asked to run. `folder`: of the locks. `foreign`: descriptors of the parent
        that are not this child's business."""
        self.probes = probes
        self.probe: Probe | None = None  # that it runs now
        self.started = self.due = time.monotonic()
        self.answer: Answer | None = None
        self.holder: LockHolder | None = None  # another process has the lock: the probe did not run
        self.ended: str | None = None
        self.overdue: str | None = None
        self.is_hung = False  # left behind in an uninterruptible sleep
        self._killed: float | None = None  # when
        self._data = bytearray()
        self.descriptor, send = os.pipe()
        jobs, self.jobs = os.pipe()
        others = (*foreign, self.descriptor, self.jobs)
        self.pid = fork_child(lambda: _serve(probes, host, record, folder, jobs, send, others), _stop)
        os.close(send)
        os.close(jobs)
        os.set_blocking(self.descriptor, False)

    def begin(self, probe: Probe, lock_number: int) -> bool:
        """Have it run a probe; False where it has ended. `lock_number` past the last one: without a lock."""
        try:
            os.write(self.jobs, _JOB.pack(self.probes.index(probe), lock_number))
        except BrokenPipeError:
            return False
        self.probe = probe
        self.started = time.monotonic()
        self.due = self.started + probe.bound_seconds
        return True

    def rest(self) -> None:
        """What came from its probe is taken: it waits for the next one."""
        self.probe = self.answer = self.holder = None

    @property
    def bound_seconds(self) -> float:
        """Of the probe that it runs."""
        return self.probe.bound_seconds if self.probe else 0.0

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return round(time.monotonic() - self.started, 3)

    def is_busy(self, now: float) -> bool:
        """Whether a child that is due is at work, or at its answer: slow on a loaded machine, not hung. Then it is
        looked at again, and three bounds are the end."""
        if now - self.started > PATIENCE * self.bound_seconds or not (self._data or is_running(self.pid)):
            return False
        self.due = now + self.bound_seconds / 10
        return True

    def receive(self) -> bool:
        """Take what the pipe holds; whether nothing more will come."""
        with contextlib.suppress(BlockingIOError):
            while not self._take_answer():
                chunk = os.read(self.descriptor, CHUNK_BYTES)
                if not chunk:
                    self.ended = "it ended without an answer"
                    return True
                self._data += chunk
            return True
        return False

    def _take_answer(self) -> bool:
        """Whether the answer of the probe that runs has come whole."""
        if len(self._data) < _LENGTH.size:
            return False
        (length,) = _LENGTH.unpack_from(self._data)
        end = _LENGTH.size + length
        if len(self._data) < end:
            return False
        answer: Answer | LockHolder = pickle.loads(self._data[_LENGTH.size : end])  # noqa: S301 - our own child's words
        del self._data[:end]
        if isinstance(answer, LockHolder):
            self.holder = answer
        else:
            self.answer = answer
        return True

    def press(self, now: float, why: str) -> bool:
        """The next step against a child that is due: TERM, KILL, then it is left behind, which is reported by True."""
        if self.overdue is None:
            self.overdue = f"{why}: {condition(self.pid)}"
            self.signal(signal.SIGTERM)
            self.due = now + TERM_SECONDS
            return False
        if self._killed is None:
            self._killed = now
            self.signal(signal.SIGKILL)
            self.due = now + KILL_SECONDS
            return False
        if now - self._killed < DYING_SECONDS and not is_uninterruptible(self.pid):
            self.due = now + KILL_SECONDS  # on a loaded machine it takes its time: that is no hang
            return False
        self.is_hung = is_uninterruptible(self.pid)
        ending = "it cannot be killed" if self.is_hung else f"it has not ended {DYING_SECONDS:g} s after it was killed"
        self.overdue += f"; {ending} and was left behind"
        return True

    def reap(self) -> int | None:
        """The wait status once the process is gone; None while it is not. Never waits."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # reaped by another process (SIGCHLD ignored by the one that started us)
            return 0
        return status if pid else None

    def close(self) -> None:
        """The parent's ends of the pipes: a child that runs no probe ends by that."""
        os.close(self.descriptor)
        os.close(self.jobs)

    def signal(self, number: signal.Signals) -> None:
        """To the child and what is in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:  # it has not made its own session yet
                os.kill(self.pid, number)


def describe_exit(status: int) -> str:
    """A wait status for people.

    >>> describe_exit(11), describe_exit(256)
    ('its process died of SIGSEGV', 'its process ended with exit code 1 and no answer')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        names = {signal.value: signal.name for signal in signal.Signals}
        return f"its process died of {names.get(number, f'signal {number}')}"
    return f"its process ended with exit code {os.waitstatus_to_exitcode(status)} and no answer"


def _serve(
    probes: Sequence[Probe],
    host: Host,
    record: bool,
    folder: str | None,
    jobs: int,
    send: int,
    foreign: Iterable[int],
) -> None:
    """What the child does."""
    os.setsid()
    for descriptor in foreign:
        os.close(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # what a driver's library prints is not our data
        os.dup2(null, descriptor)
    while job := os.read(jobs, _JOB.size):
        position, number = _JOB.unpack(job)
        _run(probes[position], host, record, folder, number, send)


def _run(probe: Probe, host: Host, record: bool, folder: str | None, lock_number: int, send: int) -> None:
    """One probe, under its lock: until it has answered, and for as long as a tool that it started goes on."""
    lock = _lock(probe, folder, lock_number)
    if isinstance(lock, LockHolder):
        _send(send, pickle.dumps(lock, _NEWEST_PROTOCOL))
        return
    _send(send, _answer(probe, host, record))
    if lock is not None:
        lock.close()


def _lock(probe: Probe, folder: str | None, number: int) -> Lock | LockHolder | None:
    """The lock of a probe, made to be inherited by the tools that it starts, or which process has it."""
    if not folder or number > LOCKS:
        return None
    try:
        lock = acquire_lock(folder, probe.name, number)
    except OSError:  # no place for locks: better a probe without one than no probe
        return None
    if isinstance(lock, Lock):
        os.set_inheritable(lock.descriptor, True)
        lock.name_holder(os.getpid(), probe.bound_seconds)
    return lock


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise WorkerStopped


def _answer(probe: Probe, host: Host, record: bool) -> bytes:
    recording = None
    if record:
        from probes.host.recording import RecordingHost  # lazy: most runs record nothing

        host = tee = RecordingHost(host)
        recording = tee.recording
    outcome = outcome_of(probe, host)
    try:
        data = pickle.dumps((outcome, recording), _NEWEST_PROTOCOL)
        if len(data) <= ANSWER_LIMIT_BYTES:
            return data
        why = f"its answer has {len(data)} bytes; {ANSWER_LIMIT_BYTES} are the most"
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        why = f"its answer cannot be handed over: {error}"
    failed = Outcome(probe.name, Status.FAILED, None, why, (), outcome.seconds)
    return pickle.dumps((failed, None), _NEWEST_PROTOCOL)


def _send(descriptor: int, data: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(descriptor, left) :]
