"""What a target is, what one attempt to send to it came to, and the process in which it is sent."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from agent.reports import replace_file, sync_folder
from agent.ship.payload import Payload, compress
from probes.child import fork_child, hold_stop_signals
from probes.planted import PathUse, follow_links

RETRY_AFTER_LIMIT_SECONDS = 86400.0  # a wrong header of a server must not silence a node for longer
_REAP_SECONDS = 0.3
_GRACE_SECONDS = 1.0  # after which a worker whose parent was killed ends by itself
_PIPE_BYTES = 4096  # what a pipe takes without blocking once it is writable (Linux: PIPE_BUF)
_INTERIM, _FINAL = 0, 1


class SendStatus(Enum):
    """What to do next."""

    ACCEPTED = "accepted"  # the report is theirs now
    REJECTED = "rejected"  # they will not have this report; others may pass
    RETRY = "retry"  # it may pass in a while
    BLOCKED = "blocked"  # nothing passes until someone fixes the address, the credentials or the server


class SendResult(NamedTuple):
    """One attempt."""

    status: SendStatus
    reason: str = ""  # for people; no secret, and nothing of a server's page
    retry_after: float | None = None  # seconds that the server asked for


class Attempt(NamedTuple):
    """One attempt as `Target.send` sees it."""

    until: float  # of the monotonic clock
    set_timeout_result: Callable[[SendResult], None]  # what it came to if it is killed from here on


class BadTarget(Exception):
    """The target, or a secret that it needs, cannot be used; the message is one line and holds no secret."""


class Target:
    """Where reports go. `send` runs in one worker process, which is killed when an attempt has used up its time.

    No timeout of a library reaches a resolver that does not answer, a folder on a server that is gone, or a server that
    sends a byte a second: the end of a process does. A worker in D state cannot be killed and is abandoned
    (docs/decisions/0002). A worker lives until its first timeout, so that it keeps its connection for the next report.
    """

    def __init__(self, label: str) -> None:
        self.label = label  # for people: no query, no secret
        self._worker: _Worker | None = None

    def send(self, payload: Payload, attempt: Attempt) -> SendResult:
        """Try once, in the worker, without a thought for the time."""
        raise NotImplementedError

    def hand_over(self, payload: Payload, until: float) -> SendResult:
        """Try once, not past `until` (of the monotonic clock)."""
        if self._worker is None:
            self._worker = _Worker(self.send)
        try:
            result = self._worker.run(payload, until)
        except BaseException:  # also an interrupt leaves no process behind
            self.close()
            raise
        if not self._worker.is_idle:
            self.close()
        return result

    def close(self) -> None:
        """End the worker; the next attempt starts another."""
        if self._worker is not None:
            self._worker.kill()
        self._worker = None


class _Worker:
    """A child process that runs one function for one payload after another."""

    def __init__(self, send: Callable[[Payload, Attempt], SendResult]) -> None:
        self.is_idle = True
        job_reader, self._jobs = os.pipe()
        self._results, result_writer = os.pipe()
        with hold_stop_signals():
            self._pid = fork_child(lambda: _serve(send, job_reader, result_writer))
        os.close(job_reader)
        os.close(result_writer)

    def run(self, payload: Payload, until: float) -> SendResult:
        """The result of one payload; where the time is up, the last interim one."""
        self.is_idle = False
        result = SendResult(SendStatus.RETRY, "no answer in time")
        try:
            self._write(_frame((until, payload)), until)
            while not self.is_idle:
                size = int.from_bytes(self._read(8, until), "big")
                kind, result = msgspec.msgpack.decode(self._read(size, until), type=tuple[int, SendResult])
                self.is_idle = kind == _FINAL
        except TimeoutError:
            return result
        except (BrokenPipeError, EOFError):
            return SendResult(SendStatus.RETRY, "it ended without an answer")
        return result

    def kill(self) -> None:
        """End it; one that cannot be killed is left."""
        os.close(self._jobs)
        os.close(self._results)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        until = time.monotonic() + _REAP_SECONDS
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0) and time.monotonic() < until:
            time.sleep(0.005)

    def _write(self, data: bytes, until: float) -> None:
        view = memoryview(data)
        while view:
            if not select.select([], [self._jobs], [], max(until - time.monotonic(), 0))[1]:
                raise TimeoutError
            view = view[os.write(self._jobs, view[:_PIPE_BYTES]) :]

    def _read(self, size: int, until: float) -> bytes:
        data = b""
        while len(data) < size:
            if not select.select([self._results], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError
            more = os.read(self._results, size - len(data))
            if not more:
                raise EOFError
            data += more
        return data


def _serve(send: Callable[[Payload, Attempt], SendResult], jobs: int, results: int) -> None:
    """The child. It holds nothing else open, so that one which hangs keeps neither the spool's lock nor a pipe."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    low, high = sorted((jobs, results))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, 65536)

    def write(kind: int, result: SendResult) -> None:
        data = _frame((kind, result))
        while data:
            data = data[os.write(results, data) :]

    def write_interim(result: SendResult) -> None:
        write(_INTERIM, result)

    with os.fdopen(jobs, "rb") as file:
        while header := file.read(8):  # its end: the parent has closed it, or was killed
            job = msgspec.msgpack.decode(file.read(int.from_bytes(header, "big")), type=tuple[float, Payload])
            until, payload = job
            seconds = max(until - time.monotonic(), 0) + _GRACE_SECONDS
            signal.setitimer(signal.ITIMER_REAL, seconds)  # the kernel ends us, whatever became of the parent
            result = send(payload, Attempt(until, write_interim))
            signal.setitimer(signal.ITIMER_REAL, 0)
            write(_FINAL, result)


def _frame(message: object) -> bytes:
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(8, "big") + data


_REJECTED = (400, 413, 422)
_RETRY = (408, 409, 425, 429)
_BLOCKED = (501, 505, 511)  # not implemented, HTTP version, a network's login page: no retry fixes these


def result_of_status(status: int, retry_after: str | None = None) -> SendResult:
    """What an HTTP status means: docs/ship.md has the table."""
    if 200 <= status < 300:
        return SendResult(SendStatus.ACCEPTED)
    if status in _REJECTED:
        return SendResult(SendStatus.REJECTED, describe_status(status))
    if status in _RETRY or (500 <= status < 600 and status not in _BLOCKED):
        return SendResult(SendStatus.RETRY, describe_status(status), parse_retry_after(retry_after))
    return SendResult(SendStatus.BLOCKED, describe_status(status))


def describe_status(status: int) -> str:
    """A status with its name, of our own table: what a server calls it is not repeated."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def parse_retry_after(header: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date; None where it is neither.

    >>> parse_retry_after("120")
    120.0
    >>> parse_retry_after("Fri, 31 Dec 1999 23:59:59 GMT")
    0.0
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), RETRY_AFTER_LIMIT_SECONDS)
    from email.utils import parsedate_to_datetime  # brings sockets, which a folder has no need of

    try:
        until = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError, OSError):
        return None
    return min(max(until - time.time(), 0.0), RETRY_AFTER_LIMIT_SECONDS)


_TEMPORARY_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EINTR)


class FolderTarget(Target):
    """A folder that exists; it is not created, because what is missing may be a mount."""

    def __init__(self, path: str, compression: str) -> None:
        super().__init__(path)
        self.path = path
        self.compression = compression

    def send(self, payload: Payload, attempt: Attempt) -> SendResult:
        """Write the file; a file server that is gone would hold this process for ever."""
        attempt.set_timeout_result(SendResult(SendStatus.BLOCKED, "writing there hangs"))
        try:
            data = compress(payload.data, self.compression)
            self.write(payload.file_name(self.compression), data, payload.mode)
        except OSError as error:
            status = SendStatus.RETRY if error.errno in _TEMPORARY_ERRORS else SendStatus.BLOCKED
            return SendResult(status, f"{error.strerror}")
        return SendResult(SendStatus.ACCEPTED)

    def write(self, name: str, data: bytes, mode: int) -> None:
        """Whole or not at all. Raises OSError."""
        folder = follow_links(self.path, PathUse.FOLDER)
        replace_file(os.path.join(folder, name), data, mode, sole=True)
        sync_folder(folder)
