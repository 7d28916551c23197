"""What a file that is being written needs: a signal that ends the process lets it tidy up first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def unwinding_at_signals() -> Iterator[None]:
    """Within it a signal whose default would end the process here and now first unwinds the stack, then ends it."""
    import signal  # lazy: a scan to stdout writes no file
    import threading

    received: list[int] = []

    def unwind(number: int, _: object) -> None:
        received.append(number)
        if len(received) == 1:  # a second one does not stop the tidying up
            raise _Ended

    if threading.current_thread() is not threading.main_thread():  # signals go to the main thread
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGHUP)
    defaults = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in defaults:
            signal.signal(number, unwind)
        yield
    except _Ended:
        pass
    finally:
        for number in defaults:
            signal.signal(number, signal.SIG_DFL)
        if received:
            signal.raise_signal(received[0])


class _Ended(BaseException):
    """A signal has come that ends the process."""
