"""A bound for work in this process: opening a source, and probes of one that is recorded.

What they read is of any size, and slow disks are read, too: a check at each step would be at hundreds of places. So a
timer interrupts them where they are, also a read that waits. What can block in the kernel for good is bounded by
children (worker.py): a signal does not reach that.
"""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType

_AGAIN_SECONDS = 0.5  # an exception that is raised in a destructor is lost
_LEAST_SECONDS, _MOST_SECONDS = 1e-3, 1e6  # zero would be no timer; the kernel's own limit is years


class TimeIsUp(BaseException):
    """The limit has passed. No error of a probe: nothing between may take it for one."""


class TimeLimit:
    """Raises TimeIsUp in what is done within it, once time.monotonic() has passed a moment; in the main thread only.

    A timer that was set before goes on afterwards.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._is_set = False

    def __enter__(self) -> None:
        self._began = time.monotonic()
        try:
            self._handler = signal.signal(signal.SIGALRM, self._expire)
        except ValueError:  # another thread has no signals
            return
        self._is_set = True
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))
        left = min(max(self._until - self._began, _LEAST_SECONDS), _MOST_SECONDS)
        self._timer = signal.setitimer(signal.ITIMER_REAL, left, _AGAIN_SECONDS)

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        if not self._is_set:
            return
        self._is_set = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler)
        left, interval = self._timer
        if left:
            spent = time.monotonic() - self._began
            signal.setitimer(signal.ITIMER_REAL, max(left - spent, _LEAST_SECONDS), interval)

    def _expire(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_set:
            raise TimeIsUp
