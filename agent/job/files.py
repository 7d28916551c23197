"""Reads the files and folders that a user gives, each by what it holds, whatever its name."""

from __future__ import annotations

import codecs
import io
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import BinaryIO, NamedTuple

import msgspec

from agent.job.dumps.flight_recorder import DumpError, Dumps
from agent.job.dumps.inspector import Inspector
from agent.job.dumps.inspector_metrics import IN_HEAD, InspectorMetrics
from agent.job.dumps.plain_pickle import LIMIT_BYTES
from agent.job.dumps.ras import read_json
from agent.job.evidence import Evidence
from agent.job.lines import WHOLE, Part
from agent.job.log_reader import LogReader
from agent.job.streams import LARGEST, close_holes, gather, inflate, is_text, is_wrapped, split_lines, unwrap
from agent.model.job_answer import JobFile
from agent.model.labels import natural
from probes.compression import find_compression
from probes.host.files import open_saved
from probes.planted import PathUse, follow_links
from probes.time_limit import TimeIsUp, TimeLimit

HEAD_BYTES = 1 << 16
_MOST_FILES = 100_000
_SNAPSHOT_BYTES = 16 << 20  # of RAS: 30 times as much in memory where it is hostile
_PASTE_BYTES = 64 << 10
_MOST_PASTES = 8
_REPORT = b'"fabricscope.report/'
_DEEPEST = 16


class Given(NamedTuple):
    """One file that was found."""

    path: str
    name: str  # as it is shown
    size: int
    is_found: bool = False  # in a folder: no link is followed, no pipe waited for
    reason: str | None = None  # why it is not read
    is_cut: bool = False  # a copy of its begin, for the time limit


class OtherFile(NamedTuple):
    """A file that is no job's: a saved output, or a finished report."""

    path: str
    name: str
    is_report: bool
    is_found: bool = False


class ReadLimit(NamedTuple):
    """Until when files are read."""

    until: float  # of time.monotonic()
    seconds: float  # as it was given, for people

    def describe(self) -> str:
        """For the reason of a file."""
        return f"the time limit of {self.seconds:.3g} s was reached"


UNLIMITED = ReadLimit(float("inf"), float("inf"))


class UnreadableError(Exception):
    """Nothing can be read of what was given; one line."""


def list_files(paths: Sequence[str]) -> list[Given]:
    """All files of the paths, in the order of their names. Raises UnreadableError."""
    given: list[Given] = []
    for path in paths:
        try:
            follow_links(path, PathUse.READ)
            path_stat = os.stat(path)
        except OSError as error:
            raise UnreadableError(f"{path}: {error.strerror or error}") from error
        if stat.S_ISDIR(path_stat.st_mode):
            if all(os.path.exists(os.path.join(path, name)) for name in ("manifest.json", "files")):
                raise UnreadableError(f"{path}: is the capture of a host, which `fabricscope scan` reads")
            found = sorted(_Walk(path, _MOST_FILES - len(given)).list_files(), key=lambda row: natural(row.name))
            given += found if len(paths) == 1 else [row._replace(name=os.path.join(path, row.name)) for row in found]
        elif stat.S_ISREG(path_stat.st_mode) or stat.S_ISFIFO(path_stat.st_mode):
            given.append(Given(path, path, path_stat.st_size))
        else:
            raise UnreadableError(f"{path}: neither a file nor a folder")
        if len(given) > _MOST_FILES:
            raise _too_many(path)
    return given


def _too_many(path: str) -> UnreadableError:
    return UnreadableError(f"{path}: more than {_MOST_FILES} files and folders")


class _Walk:
    """The files below a folder: only regular ones are read, as a pipe would block, and a link may lead anywhere."""

    def __init__(self, folder: str, most: int) -> None:
        self._folder = folder
        self._left = most  # files and folders that may still come

    def list_files(self, below: str = "", depth: int = 0) -> Iterator[Given]:
        """All of them, by folder. Raises UnreadableError, before a folder without end is in memory."""
        path = os.path.join(self._folder, below)
        try:
            with os.scandir(path) as listing:
                entries = sorted(islice(listing, self._left + 1), key=lambda entry: entry.name)
        except OSError as error:
            yield Given(path, below or self._folder, 0, True, error.strerror or str(error))
            return
        self._left -= len(entries)
        if self._left < 0:
            raise _too_many(self._folder)
        for entry in entries:
            name = os.path.join(below, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST:
                    yield from self.list_files(name, depth + 1)
                else:
                    yield Given(entry.path, name, 0, True, f"a folder more than {_DEEPEST} levels deep")
            else:
                yield self._describe(entry, name)

    def _describe(self, entry: os.DirEntry[str], name: str) -> Given:
        try:
            file_stat = entry.stat(follow_symlinks=False)
        except OSError as error:  # it is gone by now
            return Given(entry.path, name, 0, True, error.strerror or str(error))
        if stat.S_ISREG(file_stat.st_mode):
            return Given(entry.path, name, file_stat.st_size, True)
        is_link = stat.S_ISLNK(file_stat.st_mode)
        reason = "a symbolic link, which is not followed" if is_link else "not a regular file"
        return Given(entry.path, name, 0, True, reason)


def open_given(path: str, is_found: bool) -> BinaryIO:
    """A file of a folder, whatever is in its place by now, or one that was named. Raises OSError."""
    return open_saved(path) if is_found else open(path, "rb")


class FileReader:
    """Reads files into the evidence of one job."""

    def __init__(
        self, evidence: Evidence, progress: Callable[[int], None] | None = None, limit: ReadLimit = UNLIMITED
    ) -> None:
        self.evidence = evidence
        self._limit = limit
        self._is_cut = False  # the file that is read, by the limit
        self.others: list[OtherFile] = []
        self._log = LogReader(evidence)
        self._part = WHOLE
        self._progress = progress or (lambda size: None)

    def read(self, given: Given, part: Part = WHOLE) -> None:
        """One file, or the lines of it that are of one job; what cannot be read has its reason in the answer."""
        self._part = part
        self._is_cut = given.is_cut
        if given.reason is not None:
            self.evidence.files.append(JobFile(name=given.name, reason=given.reason))
            return
        try:
            if time.monotonic() > self._limit.until:
                raise TimeIsUp
            with TimeLimit(self._limit.until):  # a pipe may have no writer
                file = open_given(given.path, given.is_found)
                head = file.read(HEAD_BYTES)
        except OSError as error:
            row = JobFile(name=given.name, reason=error.strerror or str(error))
        except TimeIsUp:
            self._is_cut = True
            row = JobFile(name=given.name)
        else:
            with file:
                row = self._read_stream(given, head, file)
        if self._is_cut:  # its last line is no end of a log
            self.evidence.limit_seconds = self._limit.seconds
            what = f"only the first {row.lines} lines were read" if row.read_as and row.lines else "not read"
            row = msgspec.structs.replace(row, reason=f"{what}: {self._limit.describe()}")
            if self.evidence.names[-1:] == [given.name]:
                self.evidence.tails.pop(len(self.evidence.names) - 1, None)
        self.evidence.files.append(row)

    def _read_stream(self, given: Given, head: bytes, file: BinaryIO) -> JobFile:
        """One open file, of which the head is read."""
        self._progress(len(head))
        if not head:
            return JobFile(name=given.name, reason="it is empty")
        chunks = self._chunks(file)
        if (kind := find_compression(head)) is None:
            return self._read_kind(given, head, self._until_limit(chunks))
        chunks = self._until_limit(inflate(chain((head,), chunks), kind))
        head = next(chunks, b"")
        return (
            self._read_kind(given, head, chunks) if head else JobFile(name=given.name, reason=f"it is damaged {kind}")
        )

    def _read_kind(self, given: Given, head: bytes, rest: Iterator[bytes]) -> JobFile:
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # of PowerShell
            decoded = codecs.iterdecode(chain((head,), rest), "utf-16", "replace")
            rest = (text.encode() for text in decoded)
            head = next(rest, b"")
        if head[:1] == b"\x80" and b"\x02" <= head[1:2] <= b"\x05":  # a pickle, by its protocol
            return self._read_dump(given, head, rest)
        if b"\0" in head:
            head = next((piece for chunk in chain((head,), rest) if (piece := close_holes(chunk))), b"")
            if not is_text(head):
                return JobFile(name=given.name, reason="it is not a text file")
            head = head.replace(b"\0", b"")
        rest = (chunk.replace(b"\0", b"") for chunk in rest)
        start = head.lstrip()[:4096]
        if start[:1] in (b"{", b"["):
            return self._read_json(given, head, rest)
        if head.lstrip().startswith((b"nccl_", b"# HELP nccl_", b"# TYPE nccl_")) and any(w in head for w in IN_HEAD):
            self.evidence.metrics = self.evidence.metrics or InspectorMetrics()
            return _read_records(given, "Inspector metrics", self.evidence.metrics, split_lines(head, rest))
        if len(head) < HEAD_BYTES and self.evidence.ranks.read_hosts(head.decode("utf-8", "replace").splitlines()):
            return JobFile(name=given.name, read_as="list of hosts", lines=head.count(b"\n"))
        return self._read_log(given, head, rest)

    def _read_json(self, given: Given, head: bytes, rest: Iterator[bytes]) -> JobFile:
        if _REPORT in head[:4096]:
            self.others.append(OtherFile(given.path, given.name, True, given.is_found))
            return JobFile(name=given.name, read_as="report")
        if b'"coll_perf"' in head or b'"p2p_perf"' in head or (b'"header"' in head and b'"n_ranks"' in head):
            self.evidence.inspector = self.evidence.inspector or Inspector()
            return _read_records(given, "Inspector", self.evidence.inspector, split_lines(head, rest))
        if b'"pg_config"' in head or b'"entries"' in head or b'"record_id"' in head or b'"pg_status"' in head:
            return self._read_dump(given, head, rest)
        if b'"communicators' in head or b'"collective_counts"' in head:
            data = gather(head, rest, _SNAPSHOT_BYTES)
            if data is None:
                return JobFile(name=given.name, reason=f"RAS: larger than {_SNAPSHOT_BYTES >> 20} MiB")
            try:
                self.evidence.snapshots.append(read_json(given.name, data))
            except (ValueError, RecursionError):  # cut, or several in turn
                return self._log.read_file(given.name, data.splitlines(keepends=True), self._part)
            return JobFile(name=given.name, read_as="RAS")
        if is_wrapped(head):
            return self._log.read_file(given.name, unwrap(split_lines(head, rest)), self._part)
        return self._read_log(given, head, rest)

    def _read_dump(self, given: Given, head: bytes, rest: Iterator[bytes]) -> JobFile:
        data = gather(head, rest, LIMIT_BYTES)
        if data is None:
            return JobFile(name=given.name, reason=f"flight recorder: larger than {LIMIT_BYTES >> 20} MiB")
        dumps = self.evidence.dumps or Dumps()
        try:
            dumps.read(given.name, data)
        except DumpError as error:
            return JobFile(name=given.name, reason=f"flight recorder: {error}")
        self.evidence.dumps = dumps
        self.evidence.framework["PyTorch"] += 1
        if self.evidence.library is None and dumps.versions:
            self.evidence.library = ("NCCL", next(iter(dumps.versions)))
        return JobFile(name=given.name, read_as="flight recorder")

    def _read_log(self, given: Given, head: bytes, rest: Iterator[bytes]) -> JobFile:
        file = self._log.read_file(given.name, split_lines(head, rest), self._part)
        # a paste may have outputs of commands beside a log
        is_paste = 0 < given.size <= _PASTE_BYTES and len(self.others) < _MOST_PASTES
        if is_paste or file.read_as in (None, "log", "kernel log", "log of a service"):
            self.others.append(OtherFile(given.path, given.name, False, given.is_found))
        return file

    def _until_limit(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """These, until the time is up; what one of them costs is bounded by its size."""
        for chunk in chunks:
            if time.monotonic() > self._limit.until:
                self._is_cut = True
                return
            yield chunk

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        size = 0
        try:
            while chunk := self._read_chunk(file):
                size += len(chunk)
                self._progress(len(chunk))
                if size > LARGEST:
                    return
                yield chunk
        except TimeIsUp:
            self._is_cut = True

    def _read_chunk(self, file: BinaryIO) -> bytes:
        """What is there next; raises TimeIsUp."""
        with TimeLimit(self._limit.until):
            return file.read1(1 << 20) if isinstance(file, io.BufferedReader) else file.read(1 << 20)


def _read_records(
    given: Given, read_as: str, records: Inspector | InspectorMetrics, content: Iterator[bytes]
) -> JobFile:
    """A file of records, a line each, of which some may be damaged."""
    lines, damaged = records.read(given.name, content)
    reason = f"{damaged} line{'s' if damaged > 1 else ''} cut or damaged" if damaged else None
    return JobFile(name=given.name, read_as=read_as if damaged < lines else None, lines=lines, reason=reason)
