"""One finished report as it is handed over: its bytes, and what its names are made of."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from datetime import datetime, timezone
from typing import NamedTuple

import msgspec

from agent.model.node import choose_node_name
from agent.model.report import REPORT_LIMIT_BYTES, SCHEMA
from probes import compression
from probes.own_files import PRIVATE_MODE

SUFFIXES = {"gzip": ".json.gz", "zstd": ".json.zst", "none": ".json"}
CONTENT_TYPES = {"gzip": "application/gzip", "zstd": "application/zstd", "none": "application/json"}
_SCHEMA_FAMILY = SCHEMA.partition("/")[0]
_VERDICTS = ("ok", "unknown", "warning", "error", "critical")
_NAME_CHARACTERS = 64  # of a node in a file's name
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class BadPayload(Exception):
    """No report that can be handed over; the message states what is wrong, without the file's name."""


class _Node(msgspec.Struct):
    hostname: str | None = None
    machine_id: str | None = None
    serial: str | None = None


class _Summary(msgspec.Struct):
    verdict: str = "unknown"


class _ReportHead(msgspec.Struct):
    """What is read of a report: the fleet reads the rest, which may be of a later version than this one."""

    schema: str = ""
    generated_at: str = ""
    observed_at: str | None = None
    node: _Node | None = None
    summary: _Summary | None = None


class Payload(NamedTuple):
    """A report, and what its names are made of."""

    data: bytes  # the report, as it was written
    digest: str  # SHA-256 of `data`, hex: the same for ever, whatever the compression
    schema: str  # "1"
    timestamp: str  # of what it states, UTC: "20260115T080000Z"
    verdict: str  # of its name: "nothing_to_check" counts as "ok"
    node: str  # the name by which the fleet keeps its node; "" where it names none
    host: str  # the same, fit for a file name
    machine_id: str  # machine id, else serial, else host name; fit for a file name
    mode: int = PRIVATE_MODE  # of its file; a copy is never for more users

    def object_key(self, compression: str) -> str:
        """Its key in an object store: the same report always lands on the same place."""
        day = f"{self.timestamp[:4]}-{self.timestamp[4:6]}-{self.timestamp[6:8]}"
        return f"raw/schema={self.schema}/dt={day}/{self.machine_id}/{self.digest}{SUFFIXES[compression]}"

    def file_name(self, compression: str) -> str:
        """Its name in a folder of many hosts; `agent.reports.REPORT_FILE` recognizes it."""
        return f"{self.host}_{self.timestamp}_{self.digest[:16]}{SUFFIXES[compression]}"


def parse_payload(data: bytes) -> Payload:
    """Read what is needed of a report's bytes; all of it has to be JSON. Raises BadPayload."""
    try:
        head = msgspec.json.decode(data, type=_ReportHead)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadPayload(f"not a report: {error}") from error
    family, _, version = head.schema.partition("/")
    if family != _SCHEMA_FAMILY or not re.fullmatch(r"[0-9]{1,4}", version):
        raise BadPayload(f"not a report: its schema is {head.schema!r:.60}")
    if head.node is None or head.summary is None:
        raise BadPayload("a damaged report: it has no node or no summary")
    verdict = "ok" if head.summary.verdict == "nothing_to_check" else head.summary.verdict
    verdict = verdict if verdict in _VERDICTS else "unknown"
    node = head.node
    name = choose_node_name((node.hostname, node.machine_id, node.serial))
    machine = fit_file_name(choose_node_name((node.machine_id, node.serial, node.hostname)))
    timestamp = _format_utc(head.observed_at or head.generated_at)
    return Payload(
        data, hashlib.sha256(data).hexdigest(), version, timestamp, verdict, name, fit_file_name(name), machine
    )


def read_payload(path: str) -> Payload:
    """A report's file, which may be compressed. Raises BadPayload, OSError."""
    data, mode = read_bytes(path)
    return parse_payload(decompress(data))._replace(mode=mode & PRIVATE_MODE)


def read_bytes(path: str) -> tuple[bytes, int]:
    """A regular file, at most as large as a report can be, and its mode. Raises BadPayload, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is not waited for
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise BadPayload("exists and is not a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(REPORT_LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > REPORT_LIMIT_BYTES:
        raise BadPayload(f"larger than a report can be ({REPORT_LIMIT_BYTES} bytes)")
    return data, mode


def decompress(data: bytes) -> bytes:
    """The bytes of a report that may be compressed. Raises BadPayload."""
    try:
        out = compression.decompress(data, REPORT_LIMIT_BYTES + 1)
    except compression.DamagedData as error:
        raise BadPayload(str(error)) from error
    if len(out) > REPORT_LIMIT_BYTES:
        raise BadPayload(f"larger than a report can be ({REPORT_LIMIT_BYTES} bytes)")
    return out


def compress(data: bytes, form: str) -> bytes:
    """Compressed by gzip, zstd or none; no time is in it: the same bytes give the same."""
    if form == "gzip":
        deflate = zlib.compressobj(6, zlib.DEFLATED, 31)
        return deflate.compress(data) + deflate.flush()
    if form == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=3).compress(data)
    return data


def _format_utc(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        moment = moment.astimezone(timezone.utc) if moment.tzinfo else moment
    except (ValueError, OverflowError) as error:
        raise BadPayload(f"a damaged report: its time is {text!r:.40}") from error
    return moment.strftime("%Y%m%dT%H%M%SZ").rjust(16, "0")


def fit_file_name(name: str) -> str:
    """A name of a node without what could lead out of a folder, be hidden in it or pass for an option; two names never
    become one.

    >>> fit_file_name("gpu001"), fit_file_name("gpu 001"), fit_file_name("-rf")
    ('gpu001', 'gpu_001-99d9930907fda', 'rf-686c39acd6327')
    """
    safe = _UNSAFE.sub("_", name).lstrip(".-")
    if safe == name and len(name) <= _NAME_CHARACTERS:
        return name or "unknown"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:13]
    return f"{safe[: _NAME_CHARACTERS - 14] or '_'}-{digest}"
