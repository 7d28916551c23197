"""Rows of the host itself, and of what was found on it. Tuples are in the order of the table, without the node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

import msgspec
from msgspec import Raw

from agent.fleet import known_duplicates
from agent.fleet.rows.devices import Row
from agent.fleet.rows.report_fields import (
    ChassisFields,
    CheckFields,
    CostFields,
    CpuFields,
    EventFields,
    FindingFields,
    LocationFields,
    NumaNodeFields,
    ProbeFields,
    ReportFields,
    WindowFields,
)
from agent.fleet.tables import LONGEST_SECONDS
from agent.model.finding import HISTORY_SOURCE


class _EvidenceFields(msgspec.Struct, frozen=True, gc=False):
    what: str | None = None
    value: str | None = None
    source: str | None = None


_HISTORY_SOURCE, _EVIDENCE = HISTORY_SOURCE.encode(), msgspec.json.Decoder(list[_EvidenceFields])
_NO_COST, _NO_LOCATION = CostFields(), LocationFields()
_PROCESS = re.compile(r"pid [0-9]{1,10} \((.{1,64})\)")
_MOST_LIMITS = 64


class HostTotals(NamedTuple):
    """What the rest of a report states of the host."""

    gpus: int
    rails: int
    nics: int
    hardware_class: str
    identities: int
    digests: Sequence[int]  # of the tables in alike.COMPARED
    gpu_models: str | None = None
    part_settings: str | None = None


class Label(NamedTuple):
    """Whose report it is, of when."""

    node: str
    cluster: str | None
    observed_at: datetime
    generated_at: datetime
    digest: str  # SHA-256 of the report, hex
    received_at: datetime | None = None
    clock_skew_seconds: float | None = None
    boot_id: str | None = None
    uptime_seconds: float | None = None  # one that a host can have


def host_row(r: ReportFields, label: Label, counted: HostTotals) -> Row:
    """A row of table host."""
    n, s, counts = r.node, r.software, r.summary.counts
    chassis, cpu = n.chassis or ChassisFields(), n.cpu or CpuFields()
    nccl = s.nccl
    settings = sorted({f"{setting.key}={setting.value}" for setting in nccl.settings if setting.scope == "system"})
    read = bool(settings) or nccl.searched != b"[]"
    versions = sorted({library.version for library in nccl.libraries if library.version})
    return (
        label.observed_at,
        label.generated_at,
        label.cluster,
        n.hostname,
        n.machine_id,
        n.boot_id,
        n.serial,
        n.vendor,
        n.product,
        chassis.serial,
        chassis.slot,
        chassis.tray,
        counted.hardware_class,
        r.platform.profile,
        n.bios_version,
        n.kernel,
        n.os,
        n.arch,
        n.cmdline,
        n.cmdline and known_duplicates.common(n.cmdline),
        cpu.name,
        cpu.sockets,
        len(n.numa_nodes) or None,
        n.memory_mib,
        n.virtualization,
        n.container,
        s.driver.version,
        s.driver.open,
        s.driver.cuda,
        s.rdma_stack.kind,
        s.rdma_stack.version,
        " ".join(versions) or None,
        " ".join(settings) if read else None,
        " ".join(sorted(f"{service.name}={service.state}" for service in s.services)) or None,
        counted.gpus,
        counted.rails,
        counted.nics,
        counted.identities,
        r.summary.verdict,
        counts.get("critical", 0),
        counts.get("error", 0),
        counts.get("warning", 0),
        counts.get("info", 0),
        len(r.summary.unknown_rules),
        n.uptime_seconds,
        r.duration_seconds,
        r.source.kind,
        r.schema_minor,
        r.generator.version,
        label.digest[:32],
        label.received_at,
        label.clock_skew_seconds,
        cpu.threads_per_core,
        _numa_memory(n.numa_nodes),
        *counted.digests,
        s.shared_memory_mib,
        *_limits(s.limits),
        counted.gpu_models,
        window_seconds(r.counters_window),
        counted.part_settings,
    )


def window_seconds(window: WindowFields | None) -> float | None:
    """Between the samples of a window; None: there is none, or it cannot be right."""
    seconds = window.seconds if window is not None else None
    return seconds if seconds is not None and 0 < seconds <= LONGEST_SECONDS else None


def _limits(limits: dict[str, str]) -> tuple[str | None, str | None]:
    """Of services and users, and of processes, whose numbers are others at every look."""
    processes: dict[str, str] = {}
    others = {}
    for name, value in limits.items():
        kind, _, who = name.partition(" ")
        if kind != "memlock" or ";" in name or ";" in value:
            continue
        if match := _PROCESS.fullmatch(who):
            lowest = min(processes.get(match[1], value), value, key=_bytes)
            processes[match[1]] = lowest
        else:
            others[who] = value
    return _join_limits(others), _join_limits(processes)


def _bytes(value: str) -> float:
    return float(value) if value.isdecimal() else float("inf")


def _join_limits(limits: dict[str, str]) -> str | None:
    return "; ".join(f"{name}={value}" for name, value in sorted(limits.items())[:_MOST_LIMITS]) or None


def event_rows(events: Sequence[EventFields]) -> list[Row]:
    """Rows of table event."""
    return [
        (
            number,
            event.kind,
            event.subject,
            event.code,
            event.text,
            event.source,
            event.count,
            _moment(event.first_at or event.at),
            _moment(event.at),
            event.logged,
            event.boot,
            " ".join(event.times) or None,
        )
        for number, event in enumerate(events)
    ]


def _moment(text: str | None) -> datetime | None:
    """None: no time that a table can have."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
        return moment.astimezone(timezone.utc) if moment is not None and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _numa_memory(nodes: list[NumaNodeFields]) -> str | None:
    """In GiB: what firmware and kernel keep for themselves differs by a few MiB."""
    amounts = [node.memory_mib for node in nodes]
    return (
        " ".join(str(round(mib / 1024)) for mib in amounts if mib is not None)
        if amounts and None not in amounts
        else None
    )


def finding_rows(findings: Sequence[FindingFields]) -> list[Row]:
    """Rows of table finding; one that is there twice is once, and not silenced where it is so but once."""
    if len(findings) < 2:
        return [_finding_row(finding) for finding in findings]
    first: dict[tuple[str, str, str], FindingFields] = {}
    for one in sorted(findings, key=lambda finding: finding.silenced is not None):
        first.setdefault((one.rule, one.subject, one.fingerprint), one)
    return [_finding_row(finding) for finding in first.values()]


def _finding_row(f: FindingFields) -> Row:
    cost, location = f.cost or _NO_COST, f.location or _NO_LOCATION
    return (
        f.rule,
        f.severity,
        f.subject,
        f.label,
        f.summary,
        f.impact,
        f.remedy,
        bytes(f.evidence).decode(),
        f.confidence,
        f.fingerprint,
        cost.collective,
        cost.nodes,
        cost.gbyte_s,
        cost.percent,
        location.part,
        location.serial,
        " ".join(f.devices) or None,
        f.silenced is not None or None,
        f.silenced and f.silenced.reason,
        f.silenced and f.silenced.until,
        _fleet_window(f.evidence),
    )


def _fleet_window(evidence: bytes | Raw) -> str | None:
    """Where the fleet compared two reports: their times."""
    if _HISTORY_SOURCE not in bytes(evidence):
        return None
    try:
        rows = _EVIDENCE.decode(evidence)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return next((row.value for row in rows if (row.what, row.source) == ("window", HISTORY_SOURCE)), None)


def check_row(c: CheckFields) -> Row:
    """A row of table check; the reason is the rule's own, else that of most of its subjects."""
    reason = c.reason or (_find_common_reason(c) if c.unknown_subjects else None)
    return c.rule, c.state, c.passed, c.failed, c.unknown, c.not_applicable, reason


def _find_common_reason(c: CheckFields) -> str | None:
    reasons = Counter(subject.reason for subject in c.unknown_subjects if subject.reason)
    return min(reasons, key=lambda reason: (-reasons[reason], reason)) if reasons else None


def probe_row(p: ProbeFields) -> Row:
    """A row of table probe; a duration that none can have is not known."""
    seconds = p.duration_seconds
    took = seconds if seconds is not None and 0 <= seconds <= LONGEST_SECONDS else None
    return p.name, p.status, p.reason, took, p.hung
