"""The report: one host, one scan, one JSON document. `fabricscope.report/1`.

Every fact that a rule, an export or the fleet uses is a field here; judging a report again needs nothing else.
"""

from __future__ import annotations

import msgspec

from agent.model.finding import Check, Finding, Gpudirect, Summary
from agent.model.node import Event, Node, Platform, Software
from agent.model.topology import Topology

SCHEMA = "fabricscope.report/1"
SCHEMA_MINOR = 0
REPORT_LIMIT_BYTES = 4 << 20


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """What wrote the report."""

    name: str
    version: str


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at."""

    kind: str
    path: str | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator changed for this run, a line each."""

    changed: list[str] = []


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """How one probe ended: ok | partial | absent | denied | timed_out | failed | skipped."""

    name: str
    status: str
    reason: str | None = None
    sources: list[str] = []
    duration_seconds: float = 0.0
    hung: bool = False  # its process could not be killed and was left behind, now or by an earlier run


class CountersWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The span over which counters were compared."""

    since: str | None = None
    seconds: float | None = None
    reset_reason: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One finished scan."""

    schema: str = SCHEMA
    schema_minor: int = SCHEMA_MINOR
    generated_at: str
    observed_at: str | None = None
    generator: Generator
    source: Source
    duration_seconds: float = 0.0
    config: Config = Config()
    node: Node
    platform: Platform = Platform()
    probes: list[ProbeRun] = []
    software: Software = Software()
    events: list[Event] = []
    topology: Topology
    counters_window: CountersWindow | None = None
    gpudirect: list[Gpudirect] = []
    checks: list[Check] = []
    findings: list[Finding] = []
    summary: Summary
