"""Signals of a process that waits: to end, and to scan now. A descriptor wakes poll(2); flags say what came.

SIGTERM, SIGINT and SIGHUP end it (a closed terminal must not leave it behind); SIGUSR1 asks for a full scan.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType

from agent.watch.judging import Guard

END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SCAN = signal.SIGUSR1


class Ended(BaseException):
    """A signal to end came while probes ran."""


class Signals(Guard):
    """Takes the signals of this process while it is entered; those that were ignored (nohup) stay so."""

    def __init__(self) -> None:
        self.ended = False
        self._asked = False
        self._open = 0  # how deep in interruptible()
        self._shut = 0  # how deep in whole()
        self._raised = False
        self._process = os.getpid()

    def __enter__(self) -> Signals:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.getsignal(number) for number in (*END, SCAN)}
        for number, before in self._before.items():
            if before is not signal.SIG_IGN:
                signal.signal(number, self._came)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        signal.set_wakeup_fd(self._wakeup)
        self._reader.close()
        self._writer.close()

    def fileno(self) -> int:
        """Can be read when a signal came."""
        return self._reader.fileno()

    def take(self) -> bool:
        """Whether a full scan was asked for since."""
        with suppress(BlockingIOError):  # what stands there does not count: children write there too
            while self._reader.recv(64):
                pass
        asked, self._asked = self._asked, False
        return asked

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """See Guard.interruptible."""
        self._open += 1
        try:
            if self.ended:  # it came before this was open
                raise Ended
            yield
        finally:
            self._open -= 1

    @contextmanager
    def whole(self) -> Iterator[None]:
        """See Guard.whole."""
        self._shut += 1
        try:
            yield
        finally:
            self._shut -= 1
        if self.ended and self._open and not self._raised:
            self._raised = True
            raise Ended

    def _came(self, number: int, _frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a child that has just been forked, and has no handler of its own yet
            os._exit(128 + number)
        if number == SCAN:
            self._asked = True
            return
        self.ended = True
        if self._open and not self._shut and not self._raised:
            self._raised = True  # once: the children of the judging are being ended
            raise Ended
