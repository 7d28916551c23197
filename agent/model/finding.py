"""What rules say: checks (every rule, every run) and findings (what is wrong)."""

from __future__ import annotations

import msgspec

SEVERITIES = ("info", "warning", "error", "critical")  # rising
VERDICTS = ("critical", "error", "warning", "unknown", "ok", "nothing_to_check")  # worst first


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One observation and the file, command or call with which a person can repeat it."""

    what: str
    value: str
    source: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault on one subject."""

    rule: str
    severity: str
    subject: str
    label: str
    summary: str
    evidence: list[Evidence] = []
    impact: str
    remedy: str
    confidence: str = "high"  # high | medium | low
    absorbs: list[str] = []  # "rule subject" lines that this cause explains
    fingerprint: str


class UnknownSubject(msgspec.Struct, frozen=True, kw_only=True):
    """A subject that could not be judged, and why."""

    subject: str
    reason: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's tally over its subjects."""

    rule: str
    state: str  # fail | unknown | pass | not_applicable | disabled
    passed: int = 0
    failed: int = 0
    unknown: int = 0
    not_applicable: int = 0
    reason: str | None = None  # why the whole rule is unknown, not applicable or disabled
    unknown_subjects: list[UnknownSubject] = []


class Gpudirect(msgspec.Struct, frozen=True, kw_only=True):
    """GPUDirect RDMA of one GPU with one of its rails."""

    gpu: str
    nic: str
    verdict: str  # ready | degraded | blocked | unknown
    via: str = "unknown"  # dma-buf | peermem | data-direct | none | unknown
    causes: list[str] = []


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, and how many findings of each severity."""

    verdict: str  # ok | warning | error | critical | unknown | nothing_to_check
    counts: dict[str, int]
    unknown_rules: list[str] = []
    devices_unread: str | None = None  # why GPUs or NICs may exist that are not listed; null: all of them are
