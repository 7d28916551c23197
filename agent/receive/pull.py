"""Fetching reports by the user's own ssh: one process per host, bounded in number, time and bytes.

A host name is one argument after `--`, with letters, digits and -._ only: neither a shell of this host nor ssh's
options can see anything else in it.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from agent.model.report import REPORT_LIMIT_BYTES
from agent.reports import replace_file
from agent.ship.payload import BadPayload, compress, decompress, parse_payload

ERROR_BYTES = 4096  # of what ssh and the command print
_KILL_SECONDS = 2.0
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_READ_BYTES = 1 << 16


class BadHost(ValueError):
    """A name that cannot be handed to ssh."""


class PullOptions(NamedTuple):
    """What the command line sets."""

    ssh: tuple[str, ...]  # the program and its options
    command: str  # for the shell of the host
    jobs: int
    seconds: float  # for one host


class Pulled(NamedTuple):
    """What became of one host."""

    host: str
    node: str = ""  # that the report names
    problem: str = ""


def check_hosts(hosts: Iterable[str]) -> list[str]:
    """The hosts. Raises BadHost for the first that is no host name."""
    names = list(hosts)
    for name in names:
        if not _HOST.fullmatch(name):
            raise BadHost(f"{name!r:.80} is no host name")
    return names


def pull(hosts: list[str], folder: str, options: PullOptions) -> Iterator[Pulled]:
    """Fetch the report of each host into a folder; results as they arrive. No process is left, however it ends."""
    waiting = list(reversed(hosts))
    running: dict[int, _Fetch] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < options.jobs:
                    fetch = _Fetch(waiting.pop(), options, selector)
                    running[id(fetch)] = fetch
                for key, _ in selector.select(0.2):
                    key.data()
                for fetch in [fetch for fetch in running.values() if fetch.is_over()]:
                    del running[id(fetch)]
                    yield fetch.finish(folder)
        finally:
            for fetch in running.values():
                fetch.kill()


class _Fetch:
    """One ssh."""

    def __init__(self, host: str, options: PullOptions, selector: selectors.BaseSelector) -> None:
        self.host = host
        self._seconds = options.seconds
        self._until = time.monotonic() + options.seconds
        self._out, self._error = bytearray(), bytearray()
        self._problem = ""
        self._selector = selector
        self._process = subprocess.Popen(  # noqa: S603  # the user's ssh
            [*options.ssh, "--", host, options.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # it asks no terminal, and what it starts ends with it
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._open = {
            self._process.stdout.fileno(): (self._out, REPORT_LIMIT_BYTES + 1),
            self._process.stderr.fileno(): (self._error, ERROR_BYTES),
        }
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ, self._reader(descriptor))

    def _reader(self, descriptor: int) -> Callable[[], None]:
        def read() -> None:
            buffer, limit = self._open[descriptor]
            try:
                data = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            buffer += data[: limit - len(buffer)]
            if not data:
                self._forget(descriptor)
            elif buffer is self._out and len(buffer) >= limit:
                self._problem = f"more than a report can have ({REPORT_LIMIT_BYTES} bytes)"

        return read

    def is_over(self) -> bool:
        """Whether it has ended, or has to."""
        if self._problem:
            return True
        if not self._open:
            return self._process.poll() is not None or self._is_late()
        return self._is_late()

    def _is_late(self) -> bool:
        if time.monotonic() < self._until:
            return False
        self._problem = f"no answer within {self._seconds:g} s"
        return True

    def finish(self, folder: str) -> Pulled:
        """Write its report."""
        code = self._process.poll()
        self.kill()
        if self._problem:
            return Pulled(self.host, problem=self._problem)
        last = next((line for line in reversed(self._error.decode("utf-8", "replace").splitlines()) if line), "")
        if code or not self._out.strip():
            what = f"exit {code}" if code else "nothing was printed"
            return Pulled(self.host, problem=f"{what}{f': {last.strip()[:200]}' if last else ''}")
        first = self._out.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        if first.isprintable() and first[:1] != "{":  # a greeting of the shell, or of a command of one's own
            return Pulled(self.host, problem=f"not a report: its first line is {first[:80]!r}")
        try:
            payload = parse_payload(decompress(bytes(self._out)))
        except BadPayload as error:
            return Pulled(self.host, problem=str(error))
        path = os.path.join(folder, payload.file_name("gzip"))
        try:
            replace_file(path, compress(payload.data, "gzip"))
        except OSError as error:
            return Pulled(self.host, problem=f"{path}: {error.strerror}")
        return Pulled(self.host, payload.node)

    def kill(self) -> None:
        """End it with all that it started, and close its pipes."""
        for descriptor in list(self._open):
            self._forget(descriptor)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_SECONDS)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def _forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        del self._open[descriptor]
