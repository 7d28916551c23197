"""What a worker does: read reports into epochs, then merge buckets. The same in this process and in others."""

from __future__ import annotations

import contextlib
import gc
import os
import stat
import zlib
from datetime import datetime
from hashlib import sha256
from io import FileIO
from typing import Any

import msgspec
import pyarrow as pa

from agent.fleet.dataset import File, Manifest
from agent.fleet.ingest.files import HistoryFiles, Staging
from agent.fleet.ingest.known import KnownReports, ReadFile, read_file
from agent.fleet.ingest.merging import Merged, MergeJob, merge
from agent.fleet.ingest.quarantine import RefusedBytes, RefusedItem
from agent.fleet.ingest.sources import Item
from agent.fleet.ingest.spill import Epoch, Spilled, SpilledBlock
from agent.fleet.ingest.texts import TextCopies, TextPlace
from agent.fleet.ingest.windows import WindowJudge
from agent.fleet.reading import Naming, ReadReport, Unfit, read, unpack
from agent.fleet.rows import SwitchRecord
from agent.fleet.rows.verdicts import Label
from agent.fleet.store import Folder, ObjectStore, Store, identity_of, open_no_link, store_of
from agent.model.report import REPORT_LIMIT_BYTES

_POOL = pa.system_memory_pool()  # the others keep what is freed, a third of what a worker holds
_FEW_REPORTS = 200  # of an epoch: to look for circles among all objects takes longer than to read so many


class Setup(msgspec.Struct, frozen=True):
    """What every worker is given."""

    dataset: str  # URL
    staging: Staging
    spill: str  # folder
    naming: Naming
    now: datetime
    manifest: Manifest = Manifest()  # before this ingest


class ReportBatch(msgspec.Struct, frozen=True):
    """Reports to be read."""

    items: list[Item]


class SwitchBatch(msgspec.Struct, frozen=True):
    """Switches whose outputs were read and judged."""

    records: list[SwitchRecord]


class Rest(msgspec.Struct, frozen=True):
    """No more reports: what is held goes to disk."""


class End(msgspec.Struct, frozen=True):
    """No more buckets: files of history are closed."""


class BatchDone(msgspec.Struct):
    """What became of a batch."""

    reports: int = 0
    nodes: set[int] = msgspec.field(default_factory=set)  # checksums of names: how many there are, about
    blocks: list[SpilledBlock] = msgspec.field(default_factory=list)
    refused: list[RefusedItem] = msgspec.field(default_factory=list)
    known: int = 0  # reports that the dataset has already
    files: list[ReadFile] = msgspec.field(
        default_factory=list
    )  # that need not be read again while they stay as they are
    vanished: list[str] = msgspec.field(default_factory=list)
    unread: list[str] = msgspec.field(default_factory=list)
    unread_files: set[str] = msgspec.field(default_factory=set)


class Closed(msgspec.Struct):
    """New files of history."""

    history: list[tuple[str, File]]


Task = ReportBatch | SwitchBatch | Rest | MergeJob | End
Result = BatchDone | Merged | Closed


class IngestWorker:
    """Raises OSError where the dataset cannot be written."""

    def __init__(self, setup: Setup) -> None:
        pa.set_memory_pool(_POOL)
        self._setup = setup
        self._store = store_of(setup.dataset)
        self._stores: dict[str, Store] = {}
        self._parts: FileIO | None = None
        self._epoch = Epoch()
        self._epochs = 0
        self._refused = RefusedBytes(os.path.join(setup.spill, f"{os.getpid()}-refused"))
        self._spilled = Spilled()
        self._history = HistoryFiles(setup.staging, self._store)
        self._known = KnownReports(self._store, setup.manifest, setup.naming.cluster)
        self._texts = TextCopies(os.path.join(setup.spill, f"{os.getpid()}-texts"))
        self._windows = WindowJudge(self._store, self._spilled, setup.spill, setup.naming, setup.now)

    def do(self, task: Task) -> Result:
        """One task."""
        if isinstance(task, ReportBatch):
            return self._read(task)
        if isinstance(task, SwitchBatch):
            return self._add_switches(task)
        if isinstance(task, Rest):
            return BatchDone(blocks=self._spill())
        if isinstance(task, MergeJob):
            merged = merge(task, self._store, self._spilled, self._history, self._windows)
            _POOL.release_unused()
            return merged
        return Closed(self._history.close())

    def _read(self, batch: ReportBatch) -> BatchDone:
        done = BatchDone()
        for item in batch.items:
            done.reports += 1
            data = item.data
            try:
                data, file_stat = self._read_bytes(item)
                if item.trouble:
                    raise Unfit(item.trouble)
                text = unpack(data)
                file = read_file(item.file, file_stat, text.digest) if file_stat and item.identity else None
                if text.digest in self._known:
                    done.known += 1
                    done.files += [file] if file else []
                    continue
                read_report = read(text, self._epoch.reader, self._setup.naming, self._setup.now, item.modified)
            except Unfit as error:
                done.refused.append(self._refused.keep(item.name, item.within, item.number, str(error), data))
            except _Unread as error:
                (done.vanished if error.vanished else done.unread).append(str(error))
                done.unread_files.add(item.file)
            else:
                self._epoch.add(
                    read_report, self._keep_text(item, data, text.digest) if read_report.made.pending else None
                )
                done.files += [file] if file else []
                done.nodes.add(zlib.crc32(read_report.label.node.encode()))
            if self._epoch.full:
                done.blocks += self._spill()
        return done

    def _add_switches(self, batch: SwitchBatch) -> BatchDone:
        """Of the same outputs and hops once, whenever they were judged."""
        done = BatchDone()
        for record in batch.records:
            done.reports += 1
            digest = sha256(msgspec.msgpack.encode(record, order="deterministic")).hexdigest()
            if digest in self._known:
                done.known += 1
                continue
            made = self._epoch.reader.read_switch(record)
            self._epoch.add(ReadReport(Label(record.node, None, record.observed_at, self._setup.now, digest), made))
            if self._epoch.full:
                done.blocks += self._spill()
        return done

    def _keep_text(self, item: Item, data: bytes, digest: str) -> TextPlace:
        return self._texts.keep(item, self._stores.get(item.store) if item.store else None, data, digest)

    def _read_bytes(self, item: Item) -> tuple[bytes, os.stat_result | None]:
        """And what its file was before it was read, where it is all of a local one. Raises _Unread."""
        if not item.store:
            return item.data, None
        if item.store not in self._stores:
            self._stores[item.store] = store_of(item.store)
        store = self._stores[item.store]
        try:
            if not isinstance(store, Folder):
                return _read_store(store, item.path), None
            if item.size:
                return self._read_part(store.full(item.path), item), None
            return _read_local(store, item.path, item.follow)
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            raise _Unread(f"{item.name}: {error.strerror or str(error)[:200]}", gone) from error

    def _read_part(self, path: str, item: Item) -> bytes:
        """Of a file that the last item was of, too, mostly."""
        if self._parts is None or self._parts.name != path:
            if self._parts is not None:
                self._parts.close()
            opener = None if item.follow else open_no_link
            self._parts = open(path, "rb", buffering=0, opener=opener)  # noqa: SIM115  # until another is asked for
        return os.pread(self._parts.fileno(), item.size, item.offset)

    def _spill(self) -> list[SpilledBlock]:
        if not self._epoch.reports:
            self._epoch.reader.clear()
            return []
        self._epochs += 1
        many = self._epoch.reports > _FEW_REPORTS
        blocks = self._epoch.write(os.path.join(self._setup.spill, f"{os.getpid()}-{self._epochs}"))
        if many:
            gc.collect()
            _POOL.release_unused()
        return blocks


class _Unread(Exception):
    """A file that was listed, and could not be read."""

    def __init__(self, why: str, vanished: bool) -> None:
        super().__init__(why)
        self.vanished = vanished


def _read_local(store: Folder, path: str, follow: bool) -> tuple[bytes, os.stat_result]:
    """A regular file, at most a byte more than a report can have; a pipe is not waited for."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(store.full(path), flags) if follow else open_no_link(store.full(path), flags)
    try:
        file_stat = os.fstat(descriptor)
        if not stat.S_ISREG(file_stat.st_mode):
            raise OSError(0, "exists and is not a file")
        data = os.read(descriptor, min(file_stat.st_size, REPORT_LIMIT_BYTES) + 1)
        while len(data) <= REPORT_LIMIT_BYTES and len(data) != file_stat.st_size:  # else that was all of it
            more = os.read(descriptor, REPORT_LIMIT_BYTES + 1 - len(data))
            if not more:
                break
            data += more
        if identity_of(os.fstat(descriptor)) != identity_of(file_stat):
            raise OSError(0, "changed while it was read: the next ingest reads it")
        return data, file_stat
    finally:
        os.close(descriptor)


def _read_store(store: Store, path: str) -> bytes:
    assert isinstance(store, ObjectStore)

    def read_start() -> bytes:
        with contextlib.closing(store.filesystem.open_input_stream(store.at(path), compression=None)) as stream:
            data: Any = stream.read(REPORT_LIMIT_BYTES + 1)
            return bytes(data)

    return store.within(read_start, path)
