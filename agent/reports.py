"""Reports as bytes: written in a fixed order, read back from a file that may be anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from agent.model.report import REPORT_LIMIT_BYTES, SCHEMA, Report


class BadReport(Exception):
    """No report that can be kept or judged; the message names the file and what is wrong."""


class _Head(msgspec.Struct):
    """What tells a report from any other JSON."""

    schema: str = ""


def encode(report: Report) -> bytes:
    """JSON, keys in the order of the schema, maps sorted by key, a newline at the end. Raises BadReport.

    Indented by 2; on one line where that is what makes it small enough to be read again (some 3,000 functions).
    """
    compact = msgspec.json.encode(report, order="deterministic") + b"\n"
    indented = msgspec.json.format(compact, indent=2) + b"\n"
    data = indented if len(indented) <= REPORT_LIMIT_BYTES else compact
    if len(data) > REPORT_LIMIT_BYTES:
        raise BadReport(
            f"the report of this machine has {len(data)} bytes, and at most {REPORT_LIMIT_BYTES} can be kept"
        )
    return data


def read(path: str) -> Report:
    """A report from a file (plain or gzip). Raises BadReport. Fields of a later minor version are ignored."""
    try:
        with open(path, "rb") as file:
            data = file.read(REPORT_LIMIT_BYTES + 1)
    except OSError as error:
        raise BadReport(f"{path}: {error.strerror}") from error
    if data[:2] == b"\x1f\x8b":
        data = _inflated(path, data)
    if len(data) > REPORT_LIMIT_BYTES:
        raise BadReport(f"{path}: larger than a report can be ({REPORT_LIMIT_BYTES} bytes)")
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReport(f"{path}: not a report: {error}") from error
    if head.schema != SCHEMA:
        problem = f"its schema is {head.schema!r:.60}" if head.schema else "it has no schema field"
        raise BadReport(f"{path}: not a report that this version reads ({SCHEMA}): {problem}")
    try:
        report = msgspec.json.decode(data, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReport(f"{path}: a damaged report: {error}") from error
    twice = _twice(report)
    if twice:
        raise BadReport(f"{path}: a damaged report: it has {twice!r:.60} twice")
    return report


def _twice(report: Report) -> str | None:
    """An id that two rows of one kind have: everything else of the report refers to rows by it."""
    topology = report.topology
    for rows in (topology.pci, topology.gpus, topology.nvswitches, topology.nics):
        seen: set[str] = set()
        for row in rows:
            if row.id in seen:
                return row.id
            seen.add(row.id)
    return None


def is_report(path: str) -> bool:
    """Whether a file holds a report, whole or damaged: JSON that names our schema. False where it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(REPORT_LIMIT_BYTES)
    except OSError:
        return False
    if data[:2] == b"\x1f\x8b":
        import zlib

        try:
            data = zlib.decompressobj(wbits=31).decompress(data, REPORT_LIMIT_BYTES)
        except zlib.error:
            return False
    return data.lstrip()[:1] == b"{" and SCHEMA.partition("/")[0].encode() in data


def write(path: str, data: bytes) -> None:
    """Write a file as `written` does. Raises OSError."""
    with written(path) as file:
        file.write(data)


@contextlib.contextmanager
def written(path: str) -> Iterator[BinaryIO]:
    """A file that takes its place whole or not at all: temporary name beside it, sync, rename. Raises OSError.

    A link is followed. What is no file (/dev/stdout, /dev/null, a named pipe) is written to, and never replaced.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        with open(path, "wb") as device:
            yield device
        return
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp")  # hidden: who reads the folder leaves it out
    with _replacing(path, temporary) as file:
        yield file


def replace(path: str, temporary: str, data: bytes) -> None:
    """Let a new file of that temporary name take the place of another, synced. Raises OSError; then nothing is left."""
    with _replacing(path, temporary) as file:
        file.write(data)


@contextlib.contextmanager
def _replacing(path: str, temporary: str) -> Iterator[BinaryIO]:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # also an interrupt leaves nothing half-written
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _inflated(path: str, data: bytes) -> bytes:
    import zlib

    inflate = zlib.decompressobj(wbits=31)
    try:
        out = inflate.decompress(data, REPORT_LIMIT_BYTES + 1)
    except zlib.error as error:
        raise BadReport(f"{path}: damaged gzip: {error}") from error
    if not inflate.eof and len(out) <= REPORT_LIMIT_BYTES:
        raise BadReport(f"{path}: truncated gzip")
    return out
