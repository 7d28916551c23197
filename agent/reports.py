"""Reading and writing reports: encoded in a fixed order, read back from untrusted files, written atomically."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from agent.model.report import REPORT_LIMIT_BYTES, SCHEMA, Report
from probes.ending_signals import unwinding_at_signals
from probes.planted import PathUse, check_not_planted, follow_links
from probes.text import lazy_pattern

PUBLIC, PRIVATE = 0o644, 0o640  # of new files; PUBLIC: what another program of this host is to read
# of a file that holds one report, in a folder of many hosts: host, time, digest
REPORT_FILE = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}_[0-9]{8}T[0-9]{6}Z_[0-9a-f]{16}\.json(?:\.gz|\.zst)?")
PIPE_SECONDS = 60.0  # between two pieces: a scan on another host takes 30


class ReportError(Exception):
    """Not a usable report; the message names the file and the problem."""


class _Head(msgspec.Struct):
    """The field that distinguishes a report from other JSON."""

    schema: str = ""


def encode_report(report: Report) -> bytes:
    """JSON, keys in schema order, maps sorted by key, with a final newline. Raises ReportError.

    Indented by 2; on one line if only that fits the size limit (some 3,000 functions).
    """
    return encode_indented(report) + b"\n"


def encode_indented(report: Report) -> bytes:
    """The same without a final newline: to add it copies what of a large bus is a megabyte."""
    compact = encode_compact(report)
    indented = msgspec.json.format(compact, indent=2)
    return indented if len(indented) < REPORT_LIMIT_BYTES else compact


def encode_compact(report: Report) -> bytes:
    """The same JSON on one line; of very many GPUs without their pairs. Raises ReportError."""
    data = msgspec.json.encode(report, order="deterministic")
    if len(data) >= REPORT_LIMIT_BYTES:
        data = msgspec.json.encode(_without_gpu_pairs(report), order="deterministic")
    if len(data) >= REPORT_LIMIT_BYTES:
        raise ReportError(
            f"the report of this machine has {len(data) + 1} bytes, and at most {REPORT_LIMIT_BYTES} can be kept"
        )
    return data


def _without_gpu_pairs(report: Report) -> Report:
    """The report without its rows of two GPUs, which grow with the square, and with their number in its `left_out`."""
    gpus = {gpu.id for gpu in report.topology.gpus}
    paths = [path for path in report.topology.paths if not (path.a in gpus and path.b in gpus)]
    count = len(report.topology.paths) - len(paths)
    if not count:
        return report
    topology = msgspec.structs.replace(report.topology, paths=paths)
    named = [] if report.left_out is msgspec.UNSET else report.left_out
    return msgspec.structs.replace(
        report, topology=topology, left_out=[*named, f"topology.paths: {count} pairs of GPUs"]
    )


def read_report(path: str) -> Report:
    """Read a report from a file (plain or gzip). Raises ReportError. Fields of later minor versions are ignored."""
    from probes.compression import DamagedData, decompress  # lazy: a scan reads none

    try:
        data = _read_start(path)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from error
    try:
        data = decompress(data, REPORT_LIMIT_BYTES + 1)
    except DamagedData as error:
        raise ReportError(f"{path}: {error}") from error
    if len(data) > REPORT_LIMIT_BYTES:
        raise ReportError(f"{path}: larger than a report can be ({REPORT_LIMIT_BYTES} bytes)")
    if not data.strip():
        raise ReportError(f"{path}: it is empty")
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if data.lstrip()[:15].lower() == b"<!doctype html>":
            raise ReportError(f"{path}: a page, not a report: use the JSON of the same scan (report.json)") from error
        raise ReportError(f"{path}: not a report: {_with_line(str(error), data)}") from error
    if head.schema != SCHEMA:
        problem = f"its schema is {head.schema!r:.60}" if head.schema else "it has no schema field"
        raise ReportError(f"{path}: not a report that this version reads ({SCHEMA}): {problem}")
    try:
        report = msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReportError(f"{path}: a damaged report: {_with_line(str(error), data)}") from error
    twice = _duplicate_id(report)
    if twice:
        raise ReportError(f"{path}: a damaged report: it has {twice!r:.60} twice")
    return report


def _read_start(path: str) -> bytes:
    """As much as a report can have, and a byte; of a pipe (`<(zcat x)`) what comes without a long pause: one without a
    writer never ends."""
    import select  # lazy: a scan reads no report

    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:
        data = bytearray()
        while len(data) <= REPORT_LIMIT_BYTES:
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode) and not select.select([file], [], [], PIPE_SECONDS)[0]:
                raise OSError(errno.ETIMEDOUT, f"a pipe to which nothing is written for {PIPE_SECONDS:g} s")
            more = file.read(REPORT_LIMIT_BYTES + 1 - len(data))
            if not more:
                break
            data += more
    return bytes(data)


def _with_line(message: str, data: bytes) -> str:
    """The message of a JSON reader, with the line in place of the byte; fields as `source.kind`."""
    at = re.search(r" \(byte (\d{1,9})\)$", message)
    if at:
        return f"{message[: at.start()]} (line {data[: int(at[1])].count(10) + 1})"
    return message.replace(" - at `$.", " - at `").replace("`$`", "the top level")


def _duplicate_id(report: Report) -> str | None:
    """An id that two rows of one kind share: all references in the report use ids."""
    topology = report.topology
    for rows in (topology.pci, topology.gpus, topology.nvswitches, topology.nics):
        seen: set[str] = set()
        for row in rows:
            if row.id in seen:
                return row.id
            seen.add(row.id)
    return None


def is_report(path: str) -> bool:
    """Whether a file holds a report, intact or damaged: JSON that names the schema. False if it cannot be read."""
    if not os.path.isfile(path):  # a pipe may never have a writer
        return False
    from probes.compression import DamagedData, decompress

    try:
        with open(path, "rb") as file:
            data = file.read(REPORT_LIMIT_BYTES)
    except OSError:
        return False
    try:
        data = decompress(data, REPORT_LIMIT_BYTES)
    except DamagedData:
        return False
    return data.lstrip()[:1] == b"{" and SCHEMA.partition("/")[0].encode() in data


def write_atomically(path: str, data: bytes, mode: int = PRIVATE) -> None:
    """Write a file atomically, as `open_atomically` does. Raises OSError."""
    with open_atomically(path, mode) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(path: str, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Open a file to be replaced atomically: temporary name beside it, sync, rename. Raises OSError.

    A file that is there keeps its owner and mode; a new one has `mode`, less the umask. A link is followed by the
    kernel's rule for shared folders. A special file (/dev/stdout, a named pipe) is written to, never replaced.
    """
    target = follow_links(path, PathUse.REPLACE)
    is_descriptor = target.startswith("/proc/")  # /dev/stdout: its link leads to no path
    special = path if is_descriptor else target
    with contextlib.suppress(FileNotFoundError):
        file_stat = os.stat(special, follow_symlinks=is_descriptor)
        if not (stat.S_ISREG(file_stat.st_mode) or stat.S_ISDIR(file_stat.st_mode)):
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if is_descriptor else os.O_NOFOLLOW)
            descriptor = os.open(special, flags)  # a pipe without a reader: ENXIO
            with os.fdopen(descriptor, "wb") as device:
                if not is_descriptor:
                    check_not_planted(target, os.fstat(descriptor))
                os.set_blocking(descriptor, True)
                yield device
            return
    with _replacing(target, mode, sole=False) as file:
        yield file


def replace_file(path: str, data: bytes, mode: int = PRIVATE, sole: bool = False) -> None:
    """Replace a file by a synced new one. Raises OSError and leaves nothing behind.

    `sole`: one process at a time writes this file, so that what a killed one left is replaced.
    """
    with _replacing(path, mode, sole) as file:
        file.write(data)


def sync_folder(path: str) -> None:
    """Let new names survive a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _replacing(path: str, mode: int, sole: bool) -> Iterator[BinaryIO]:
    with unwinding_at_signals(), _written_beside(path, mode, sole) as file:
        yield file


@contextlib.contextmanager
def _written_beside(path: str, mode: int, sole: bool) -> Iterator[BinaryIO]:
    from probes.own_files import create_temporary, remove_own_file  # lazy: most scans are printed

    before = _stat_file(path)
    descriptor, temporary = create_temporary(path, 0o600 if before else mode, sole)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if before:
                _keep_owner_and_mode(descriptor, before)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # also an interrupt leaves nothing half-written
        remove_own_file(temporary)
        raise


def _stat_file(path: str) -> os.stat_result | None:
    """Of the file that is replaced, whose owner and mode are kept. Raises OSError for one that was just planted."""
    try:
        file_stat = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(file_stat.st_mode):
        return None
    check_not_planted(path, file_stat)
    return file_stat


def _keep_owner_and_mode(descriptor: int, before: os.stat_result) -> None:
    """As the file was that is replaced; where its group cannot be kept, no group may read it."""
    mode = before.st_mode & 0o777
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(descriptor, before.st_uid, before.st_gid)
        except OSError:
            try:
                os.fchown(descriptor, -1, before.st_gid)
            except OSError:
                mode &= ~0o070
    os.fchmod(descriptor, mode)
