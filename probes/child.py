"""A child process, from the fork to its end: no code of the parent goes on in it, whatever signal comes when."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterator
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], Any] | signal.Handlers


@contextlib.contextmanager
def hold_stop_signals() -> Iterator[None]:
    """They wait until the end of the block: a fork in it is noted down before a handler can raise."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork_child(run: Callable[[], object], on_stop: Handler = signal.SIG_DFL) -> int:
    """The process id of a child that does this and ends; its exit code is 0 where that returned. Raises OSError.

    `on_stop`: what a signal that ends a process does in the child. Signals wait until that is in force: a handler of
    the parent's could raise, and what the parent does after the fork would be done twice.
    """
    with hold_stop_signals():
        pid = os.fork()
        if pid == 0:
            _run_and_exit(run, on_stop)
        return pid


def get_copying_context() -> Any:
    """Of multiprocessing, whose processes are copies of this one: started while `hold_stop_signals`, each begins with
    `begin_child`."""
    import multiprocessing  # lazy: of all children only those of an ingest are started so

    return multiprocessing.get_context("fork")


def begin_child(on_stop: Handler = signal.SIG_DFL, numbers: Collection[signal.Signals] = STOP_SIGNALS) -> None:
    """In a child whose signals are held: handlers of its own in place of the parent's, then these signals come."""
    for number in numbers:
        signal.signal(number, on_stop)
    signal.set_wakeup_fd(-1)  # the parent's
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def _run_and_exit(run: Callable[[], object], on_stop: Handler) -> None:
    code = 1
    try:
        begin_child(on_stop)
        run()
        code = 0
    finally:
        os._exit(code)
