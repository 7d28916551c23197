"""Work that may hang where no timeout reaches: in a child that is left behind (docs/decisions/0002)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

import msgspec

_LAST_WAIT_SECONDS = 0.3
_FAILED, _DONE = b"E", b"R"


def apart(work: Callable[[], bytes], until: float) -> bytes:
    """What `work` returns, not past `until` (monotonic). Raises TimeoutError, and OSError as the work did.

    For a resolver that does not answer, and for a folder on a server that is gone.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, writer)
    os.close(writer)
    try:
        data = _read(reader, until)
    finally:
        os.close(reader)
        _end(child)
    if data[:1] == _DONE:
        return data[1:]
    if data[:1] == _FAILED:
        number, text = msgspec.json.decode(data[1:], type=tuple[int, str])
        raise OSError(number, text)
    raise OSError(0, "it ended without an answer")


def _work(work: Callable[[], bytes], writer: int) -> None:
    """The child: it holds nothing of ours open, so that one which hangs keeps neither the spool's lock nor a pipe."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.closerange(3, writer)
        os.closerange(writer + 1, 65536)
        try:
            data = _DONE + work()
        except OSError as error:
            data = _FAILED + msgspec.json.encode((error.errno or 0, error.strerror or type(error).__name__))
        while data:
            data = data[os.write(writer, data) :]
    finally:
        os._exit(0)


def _read(reader: int, until: float) -> bytes:
    data = b""
    while True:
        ready, _, _ = select.select([reader], [], [], max(until - time.monotonic(), 0))
        if not ready:
            raise TimeoutError("no answer in time")
        more = os.read(reader, 1 << 16)
        if not more:
            return data
        data += more


def _end(child: int) -> None:
    """Collect the child; one that cannot be killed is left."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    until = time.monotonic() + _LAST_WAIT_SECONDS
    while os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < until:
        time.sleep(0.005)
