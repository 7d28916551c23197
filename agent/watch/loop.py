"""The loop: waits for all descriptors at once, collects events, evaluates when it is time. One thread, and no tick."""

from __future__ import annotations

import errno
import math
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Protocol

from agent.model.profile import BadProfile
from agent.model.report import Report
from agent.watch.debounce import REQUESTED, START, Batch, Debouncer, is_relevant
from agent.watch.evaluate import MINOR_GROUPS, Evaluation, Evaluator, SignalGuard
from probes.host.interface import ReadError
from probes.kernel.events import KernelEvent, Listener

HANGUP = select.POLLHUP | select.POLLNVAL
STDOUT = 1

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SCAN_SIGNAL = signal.SIGUSR1


class StopSignal(BaseException):
    """A signal to end came while probes ran."""


class WatchSignals(SignalGuard):
    """Takes the signals of this process while it is entered; those that were ignored (nohup) stay so."""

    def __init__(self, *more_stop_signals: signal.Signals) -> None:
        self._stop_signals = (*STOP_SIGNALS, *more_stop_signals)
        self.ended = False
        self._scan_requested = False
        self._interruptible_depth = 0  # how deep in interruptible()
        self._uninterruptible_depth = 0  # how deep in uninterruptible()
        self._has_raised = False
        self._pid = os.getpid()

    def __enter__(self) -> WatchSignals:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._handlers = {number: signal.getsignal(number) for number in (*self._stop_signals, SCAN_SIGNAL)}
        for number, handler in self._handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        """Can be read when a signal came."""
        return self._reader.fileno()

    def take_scan_request(self) -> bool:
        """Whether a full scan was requested since."""
        with suppress(BlockingIOError):  # what is there does not count: children write there too
            while self._reader.recv(64):
                pass
        is_requested, self._scan_requested = self._scan_requested, False
        return is_requested

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """See SignalGuard.interruptible."""
        self._interruptible_depth += 1
        try:
            if self.ended:  # it came before this was open
                raise StopSignal
            yield
        finally:
            self._interruptible_depth -= 1

    @contextmanager
    def uninterruptible(self) -> Iterator[None]:
        """See SignalGuard.uninterruptible."""
        self._uninterruptible_depth += 1
        try:
            yield
        finally:
            self._uninterruptible_depth -= 1
        if self.ended and self._interruptible_depth and not self._has_raised:
            self._has_raised = True
            raise StopSignal

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._pid:  # a child that has just been forked, and has no handler of its own yet
            os._exit(128 + number)
        if number == SCAN_SIGNAL:
            self._scan_requested = True
            return
        self.ended = True
        if self._interruptible_depth and not self._uninterruptible_depth and not self._has_raised:
            self._has_raised = True  # once: the children of the evaluation are being ended
            raise StopSignal


class WatchOutput(Protocol):
    """Where results go."""

    def write_report(self, report: Report) -> None:
        """The current report, whole: no signal breaks in."""

    def write_changes(self, batch: Batch, evaluation: Evaluation) -> None:
        """What changed. A reader may let it wait; a signal ends that."""

    def warn(self, text: str) -> None:
        """A line about the watch itself."""


class WatchScreen(Protocol):
    """A view that is there all the time, and has keys."""

    def fileno(self) -> int:
        """Can be read when a key was pressed."""

    def take_keys(self) -> None:
        """Do what the pressed keys stand for. Raises BrokenPipeError where no one looks any more."""

    def show_events(self, events: Sequence[KernelEvent]) -> None:
        """What the kernel reported, before it is evaluated."""

    def show_scan(self, batch: Batch | None) -> None:
        """An evaluation begins; None: it ended."""

    def attend(self) -> float | None:
        """Called before each wait: the seconds after which to call it again; None: when something happens."""


class Watch:
    """Listens, evaluates and reports until a signal ends it."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        debouncer: Debouncer,
        evaluator: Evaluator,
        signals: WatchSignals,
        output: WatchOutput,
        screen: WatchScreen | None = None,
    ) -> None:
        self._screen = screen
        self._listeners = {listener.fileno(): listener for listener in listeners}
        self._debouncer = debouncer
        self._evaluator = evaluator
        self._signals = signals
        self._output = output
        self._poll = select.poll()

    def run(self) -> None:
        """Until a signal to end. Raises what `output` raises."""
        for number in self._listeners:
            self._poll.register(number, select.POLLIN)  # and errors: an overrun is one
        self._poll.register(self._signals.fileno(), select.POLLIN)
        if _is_pipe(STDOUT):
            self._poll.register(STDOUT, 0)  # reported only when no one reads it any more
        if self._screen:
            self._poll.register(self._screen.fileno(), select.POLLIN)
        try:
            self._run_batch(
                self._debouncer.full_batch(KernelEvent(START, None, "watch was started", "clock"), time.monotonic())
            )
            while not self._signals.ended:
                self._wait()
        except StopSignal:
            pass

    def _wait(self) -> None:
        """Wait for whatever comes first, take it in, and evaluate what is due."""
        left = max(self._debouncer.next_due() - time.monotonic(), 0.0)
        if self._screen:
            with self._signals.interruptible():  # a terminal that is stopped by Ctrl-S takes nothing
                until_drawn = self._screen.attend()
            left = left if until_drawn is None else min(left, until_drawn)
        for number, flags in self._poll.poll(math.ceil(min(left, 1e6) * 1000)):
            if number in self._listeners:
                self._receive(number, flags)
            elif self._screen and number == self._screen.fileno():
                with self._signals.interruptible():
                    self._screen.take_keys()
            elif number == STDOUT:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        is_requested = self._signals.take_scan_request()
        if self._signals.ended:
            return
        now = time.monotonic()
        batch = (
            self._debouncer.full_batch(KernelEvent(REQUESTED, None, "SIGUSR1", "signal"), now)
            if is_requested
            else self._debouncer.due_batch(now)
        )
        if batch is not None:
            self._run_batch(batch)

    def _receive(self, number: int, flags: int) -> None:
        listener = self._listeners[number]
        try:
            events = listener.heard()
            self._debouncer.add(events, time.monotonic())
            if self._screen and (relevant := [event for event in events if is_relevant(event)]):
                self._screen.show_events(relevant)
            why = "it was closed" if flags & HANGUP else None
        except ReadError as error:
            why = error.reason
        if why:  # reported once; the rest works, and so does the full scan
            self._output.warn(f"{listener.name} is no longer watched: {why}")
            self._poll.unregister(number)
            self._listeners.pop(number).close()

    def _run_batch(self, batch: Batch) -> None:
        names = None if batch.full else self._evaluator.affected_probes(batch.kinds)
        started = time.monotonic()
        changed = False
        if names is None or names:
            self._show_scan(batch)
            try:
                evaluation = self._evaluator.evaluate(names)
            except BadProfile as error:
                self._output.warn(f"not judged: {error}")
            else:
                changed = any(change.group not in MINOR_GROUPS for change in evaluation.changes)
                with self._signals.interruptible():
                    with self._signals.uninterruptible():
                        self._output.write_report(evaluation.report)
                    self._output.write_changes(batch, evaluation)
            self._show_scan(None)
        ended = time.monotonic()
        self._debouncer.finish(batch, changed, ended - started, ended)

    def _show_scan(self, batch: Batch | None) -> None:
        if self._screen:
            with self._signals.interruptible():
                self._screen.show_scan(batch)


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode)
