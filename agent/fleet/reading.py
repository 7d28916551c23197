"""Bytes of a report, however they came -> rows, or the reason why it cannot be taken."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from hashlib import sha256
from typing import NamedTuple

import msgspec

from agent.fleet.dataset import HOSTNAME, NodeKey
from agent.fleet.known_duplicates import placeholder
from agent.fleet.receipt import receive
from agent.fleet.rows import DamagedPart, Reader, ReportRows
from agent.fleet.rows.recent import Cut, is_hole
from agent.fleet.rows.report_fields import NodeFields, ReportFields
from agent.fleet.rows.verdicts import Label
from agent.fleet.tables import LONGEST_SECONDS
from agent.model.node import choose_node_name
from agent.model.report import REPORT_LIMIT_BYTES, SCHEMA
from probes.compression import DamagedData, decompress

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
NAME_LIMIT = 253  # of a host, as DNS bounds it
_BEHIND = "trailing characters"  # what is reported of a document with something behind it
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)  # no clock of a node shows less
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_REPLACEMENT = rb"\1\\ufffd"


class Unfit(Exception):
    """Bytes that are no report which can be taken; the message states why, without their name."""


class _Identity(msgspec.Struct):
    schema: str = ""


class Naming(NamedTuple):
    """How a node is named: the prefix of its cluster, and by what it is known."""

    cluster: str | None = None
    key: NodeKey = HOSTNAME


class ReadReport(NamedTuple):
    """One report."""

    label: Label
    made: ReportRows


_HEAD, _REPORT = msgspec.json.Decoder(_Identity), msgspec.json.Decoder(ReportFields)


class Text(NamedTuple):
    """The JSON of a report, and its SHA-256 in hex."""

    text: bytes
    digest: str


def unpack(data: bytes) -> Text:
    """The text of a report: JSON, plain, gzip or zstd. Raises Unfit."""
    text = decompress_report(data)
    if len(text) > REPORT_LIMIT_BYTES:
        raise Unfit(f"larger than a report can be ({REPORT_LIMIT_BYTES} bytes)")
    if not text or text.isspace():
        raise Unfit("empty")
    return Text(text, sha256(text).hexdigest())


def read(given: Text, reader: Reader, naming: Naming, now: datetime, modified: float = 0.0) -> ReadReport:
    """Rows of a report. `modified`: when its file was written, seconds since 1970. Raises Unfit."""
    text, digest = given
    cut = reader.cut(text)
    if b"\\" in cut.text and b"\\u0000" in cut.text:  # the first alone is far faster, and mostly enough
        text = _NUL.sub(_REPLACEMENT, text)  # known lists have none
        cut = reader.cut(text)
    known = cut.known
    report = _decode_cut(cut) if known else None
    if report is None:
        known, report = {}, _decode(text)
    label = _label(report, naming, digest, now, modified)
    try:
        return ReadReport(label, reader.read(report, label, text, known))
    except DamagedPart as error:
        raise Unfit(f"a damaged report: {error}") from error


def _decode_cut(cut: Cut) -> ReportFields | None:
    """None: it is to be decoded whole, as one of its lists was another than that of its name, or it is damaged."""
    try:
        report = _REPORT.decode(cut.text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    topology, links = report.topology, cut.known.get("links", ())
    lists = {"pci": topology.pci, "paths": topology.paths, "checks": report.checks}
    as_cut = all(name == "links" or is_hole(lists[name]) for name in cut.known)
    as_cut = as_cut and sum(is_hole(gpu.links) for gpu in topology.gpus) == len(links)
    return report if as_cut and report.schema == SCHEMA else None


def _decode(text: bytes) -> ReportFields:
    """Raises Unfit, for JSON that is no report of ours by its schema."""
    try:
        report = _REPORT.decode(text)
        if report.schema == SCHEMA:
            return report
        schema, fault = report.schema, ""
    except msgspec.ValidationError as error:
        schema, fault = _schema(text), str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        several = "; several reports are read from a file named .ndjson, one a line" if _BEHIND in str(error) else ""
        raise Unfit(f"not JSON, or damaged: {error}{several}") from error
    if schema == SCHEMA:
        raise Unfit(f"a damaged report: {fault}")
    problem = f"its schema is {schema!r:.60}" if schema else "it has no schema field"
    raise Unfit(f"not a report that this version reads ({SCHEMA}): {problem}")


def _schema(text: bytes) -> str:
    try:
        return _HEAD.decode(text).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def decompress_report(data: bytes) -> bytes:
    """Without gzip or zstd, the forms that a client may send; a byte more than a report can have, where it has more.
    Raises Unfit."""
    if not data.startswith((GZIP, ZSTD)):
        return data
    try:
        return decompress(data, REPORT_LIMIT_BYTES + 1)
    except DamagedData as error:
        raise Unfit(str(error)) from error


def _name(node: NodeFields, key: NodeKey) -> str:
    """What a node is known by; without that key by the next, so that its report is not lost. Raises Unfit."""
    names = {"hostname": node.hostname, "machine-id": node.machine_id, "serial": node.serial}
    first = (names.pop(key) or "").strip()
    if key != HOSTNAME and placeholder(first):  # many machines have the same one
        first = ""
    name = choose_node_name((first, *names.values()))
    if not name:
        raise Unfit("it names no node: no host name, machine id or serial")
    longest = max(name, (node.hostname or "").strip(), key=len)
    if len(longest) > NAME_LIMIT:
        what = "host name" if longest == (node.hostname or "").strip() else "machine id or serial"
        raise Unfit(f"its {what} has {len(longest)} characters")
    return name


def _label(report: ReportFields, naming: Naming, digest: str, now: datetime, modified: float) -> Label:
    node, cluster = _name(report.node, naming.key), naming.cluster
    generated = _time(report.generated_at, "generated_at") if report.generated_at or not report.observed_at else None
    observed = _time(report.observed_at, "observed_at") if report.observed_at else generated
    assert observed is not None
    times = receive(observed, modified, now)
    uptime = report.node.uptime_seconds
    return Label(
        f"{cluster}/{node}" if cluster else node,
        cluster,
        times.observed_at,
        generated or observed,
        digest,
        times.received_at,
        times.skew_seconds,
        report.node.boot_id,
        uptime if uptime is not None and 0 <= uptime <= LONGEST_SECONDS else None,
    )


def _time(text: str, name: str) -> datetime:
    """UTC where it states no zone. Raises Unfit."""
    try:
        moment = msgspec.convert(text, datetime)
        moment = moment.astimezone(timezone.utc) if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    except (msgspec.ValidationError, OverflowError, ValueError) as error:
        raise Unfit(f"a damaged report: {name} is no time: {text!r:.40}") from error
    if moment < EARLIEST:
        raise Unfit(f"its time is before 1970: {name} is {text!r:.40}")
    return moment
