"""Reading and writing reports: encoded in a fixed order, read back from untrusted files, written atomically."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from agent.model.report import REPORT_LIMIT_BYTES, SCHEMA, Report


class ReportError(Exception):
    """Not a usable report; the message names the file and the problem."""


class _Head(msgspec.Struct):
    """The field that distinguishes a report from other JSON."""

    schema: str = ""


def encode_report(report: Report) -> bytes:
    """JSON, keys in schema order, maps sorted by key, with a final newline. Raises ReportError.

    Indented by 2; on one line if only that fits the size limit (some 3,000 functions).
    """
    compact = encode_line(report)
    indented = msgspec.json.format(compact, indent=2) + b"\n"
    return indented if len(indented) <= REPORT_LIMIT_BYTES else compact


def encode_line(report: Report) -> bytes:
    """The same JSON on one line, with a final newline. Raises ReportError."""
    data = msgspec.json.encode(report, order="deterministic") + b"\n"
    if len(data) > REPORT_LIMIT_BYTES:
        raise ReportError(
            f"the report of this machine has {len(data)} bytes, and at most {REPORT_LIMIT_BYTES} can be kept"
        )
    return data


def read_report(path: str) -> Report:
    """Read a report from a file (plain or gzip). Raises ReportError. Fields of later minor versions are ignored."""
    try:
        with open(path, "rb") as file:
            data = file.read(REPORT_LIMIT_BYTES + 1)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from error
    if data[:2] == b"\x1f\x8b":
        data = _decompress(path, data)
    if len(data) > REPORT_LIMIT_BYTES:
        raise ReportError(f"{path}: larger than a report can be ({REPORT_LIMIT_BYTES} bytes)")
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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


def write_atomically(path: str, data: bytes) -> None:
    """Write a file atomically, as `open_atomically` does. Raises OSError."""
    with open_atomically(path) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(path: str) -> Iterator[BinaryIO]:
    """Open a file to be replaced atomically: temporary name beside it, sync, rename. Raises OSError.

    A link is followed. A special file (/dev/stdout, /dev/null, a named pipe) is written to, never replaced.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        with open(path, "wb") as device:
            yield device
        return
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp")  # hidden: readers of the folder skip it
    with _replacing(path, temporary) as file:
        yield file


def replace_file(path: str, temporary: str, data: bytes) -> None:
    """Replace a file by a synced new one of that temporary name. Raises OSError and leaves nothing behind."""
    with _replacing(path, temporary) as file:
        file.write(data)


@contextlib.contextmanager
def _replacing(path: str, temporary: str) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except FileExistsError:  # not ours
        raise
    except BaseException:  # also an interrupt leaves nothing half-written
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _decompress(path: str, data: bytes) -> bytes:
    import zlib

    inflate = zlib.decompressobj(wbits=31)
    try:
        out = inflate.decompress(data, REPORT_LIMIT_BYTES + 1)
    except zlib.error as error:
        raise ReportError(f"{path}: damaged gzip: {error}") from error
    if not inflate.eof and len(out) <= REPORT_LIMIT_BYTES:
        raise ReportError(f"{path}: truncated gzip")
    return out
