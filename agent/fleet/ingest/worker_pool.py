"""Several processes that work on tasks; or none but this one.

They are copies of this process (fork), which has all modules, where it is one without threads; else they are started
afresh (spawn): a copy of a process that has threads or an object store open would be none that works.
A worker that finds its pipe closed ends by itself, so that nothing is left where this process is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from agent.fleet.collection import without_collection
from agent.fleet.dataset import BadDataset
from agent.fleet.ingest.sources import Item
from agent.fleet.ingest.worker import IngestWorker, ReportBatch, Result, Setup, Task
from probes.child import begin_child, get_copying_context, hold_stop_signals

_GRACE_SECONDS = 2.0
_PIPE_BYTES = 1 << 20
_ALLOCATOR = "jemalloc_bg_thd"


class WorkerLost(Exception):
    """A worker ended before its task; the message states how."""


class InProcessWorker:
    """All work in this process."""

    def __init__(self, setup: Setup) -> None:
        self._worker = IngestWorker(setup)
        self.count = 1

    def each(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results, as they come. Raises OSError."""
        for task in tasks:
            yield self._worker.do(task)

    def all(self, task: Task) -> Iterator[Result]:
        """One task for every worker."""
        yield self._worker.do(task)

    def renew(self) -> None:
        """Nothing to be done: this process goes on."""

    def close(self) -> None:
        """Nothing runs."""


class Workers:
    """Processes that get a task each as soon as they have done one."""

    def __init__(self, setup: Setup, count: int, remote: bool = False) -> None:
        """`remote`: an object store may be open."""
        self._setup, self.count, self._remote = setup, count, remote
        self._start()

    def _start(self) -> None:
        copied = not self._remote and _is_without_threads()
        context: Any = get_copying_context() if copied else multiprocessing.get_context("spawn")
        self._idle: list[Connection[Any, Any]] = []
        self._processes: dict[Connection[Any, Any], Any] = {}
        self._data: dict[Connection[Any, Any], Connection[Any, Any]] = {}
        with _away_from_current_folder(), _holding_interrupts(copied):
            for _ in range(self.count):
                ours, theirs = context.Pipe()
                their_data, our_data = context.Pipe(duplex=False)
                with contextlib.suppress(OSError):
                    fcntl.fcntl(our_data, getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE_BYTES)  # of Linux
                inherited = [*self._processes, *self._data.values(), ours, our_data] if copied else []
                process = context.Process(
                    target=_run_worker, args=(self._setup, theirs, their_data, inherited), daemon=True
                )
                process.start()
                theirs.close()
                their_data.close()
                self._processes[ours], self._data[ours] = process, our_data
                self._idle.append(ours)

    def each(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results, as they come. Raises OSError, WorkerLost."""
        busy: list[Connection[Any, Any]] = []
        for task in tasks:
            if not self._idle:
                yield from self._read_results(busy)
            free = self._idle.pop()
            self._send(free, task)
            busy.append(free)
        while busy:
            yield from self._read_results(busy)

    def all(self, task: Task) -> Iterator[Result]:
        """One task for every worker. Raises OSError, WorkerLost."""
        yield from self.each([task] * self.count)

    def renew(self) -> None:
        """Others in their place, where none has work to do: Python gives hardly any memory back."""
        self.close()
        self._start()

    def close(self) -> None:
        """End them."""
        for pipe, process in self._processes.items():
            pipe.close()
            self._data[pipe].close()
            process.terminate()
        for process in self._processes.values():
            process.join(_GRACE_SECONDS)
            if process.is_alive():
                process.kill()

    def _send(self, pipe: Connection[Any, Any], task: Task) -> None:
        try:
            if isinstance(task, ReportBatch):
                pipe.send(
                    (ReportBatch([item._replace(data=b"") for item in task.items]), [len(i.data) for i in task.items])
                )
                for item in task.items:
                    _write(self._data[pipe].fileno(), item.data)
            else:
                pipe.send((task, []))
        except OSError:
            raise self._make_lost(pipe) from None

    def _read_results(self, busy: list[Connection[Any, Any]]) -> Iterator[Result]:
        for pipe in wait(list(busy)):
            assert isinstance(pipe, Connection)
            try:
                kind, value = pipe.recv()
            except (EOFError, OSError):
                raise self._make_lost(pipe) from None
            if kind == "dataset":
                raise BadDataset(value)
            if kind == "disk":
                raise OSError(*value)
            if kind == "fault":
                raise RuntimeError(value)
            busy.remove(pipe)
            self._idle.append(pipe)
            yield value

    def _make_lost(self, pipe: Connection[Any, Any]) -> WorkerLost:
        process = self._processes[pipe]
        process.join(_GRACE_SECONDS)
        code = process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return WorkerLost(f"a worker process was ended by {signal.Signals(-code).name} (out of memory?)")
        return WorkerLost(f"a worker process ended (exit code {code})")


@contextlib.contextmanager
def _holding_interrupts(copied: bool) -> Iterator[None]:
    """Ctrl-C waits, here; a process that is started meanwhile does not get it at all: its Python would show where."""
    if copied:  # which sets its own handlers before it lets any through
        with hold_stop_signals():
            yield
        return
    resource_tracker.ensure_running()  # as it starts it lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_without_threads() -> bool:
    """But for one of pyarrow, whose allocator expects to be copied."""
    try:
        threads = [f"/proc/self/task/{thread}/comm" for thread in os.listdir("/proc/self/task")]
        names = [Path(thread).read_text().strip() for thread in threads]
    except OSError:  # it ended just now, or this is not Linux
        return False
    return len(names) - names.count(_ALLOCATOR) == 1


@contextlib.contextmanager
def _away_from_current_folder() -> Iterator[None]:
    """A Python that is started takes its first modules from the current folder, which may be another user's, or gone.
    It stays where it was started: the paths of stores are absolute."""
    before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir("/")
        yield
    finally:
        os.fchdir(before)
        os.close(before)


class _WithoutPandas:
    """pyarrow imports pandas where it is installed, to see whether a list is one of its; it takes half a second."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Of the import system."""
        if name == "pandas":
            raise ImportError(name)


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _read(descriptor: int, size: int) -> bytes:
    """Raises EOFError."""
    parts = []
    while size:
        part = os.read(descriptor, size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make_task(pipe: Connection[Any, Any], data: Connection[Any, Any]) -> Task:
    """The bytes of reports come by a pipe of their own: a connection's way of reading takes several times as long."""
    task: Task
    task, sizes = pipe.recv()
    if isinstance(task, ReportBatch):
        items: list[Item] = [
            item._replace(data=_read(data.fileno(), size)) if size else item
            for item, size in zip(task.items, sizes, strict=True)
        ]
        return ReportBatch(items)
    return task


def _run_worker(
    setup: Setup, pipe: Connection[Any, Any], data: Connection[Any, Any], inherited: list[Connection[Any, Any]]
) -> None:
    """The process: Ctrl-C is for its parent (_holding_interrupts). `inherited`: the parent's ends of all pipes: a copy
    of one would hide that it ended."""
    if inherited:
        begin_child(numbers=(signal.SIGTERM, signal.SIGHUP))
    for end in inherited:
        end.close()
    sys.meta_path.insert(0, _WithoutPandas())
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError), without_collection():
        try:
            worker = IngestWorker(setup)
            gc.freeze()  # what is imported is no circle: each epoch it would be gone through
            while True:
                pipe.send(("done", worker.do(_make_task(pipe, data))))
        except EOFError:
            raise
        except BadDataset as error:
            pipe.send(("dataset", str(error)))
        except OSError as error:
            pipe.send(("disk", (error.errno or 0, error.strerror or str(error)[:200], error.filename)))
        except Exception:  # noqa: BLE001  # reported by the other side
            pipe.send(("fault", traceback.format_exc()))
