"""The report: one host, one scan, one JSON document. `fabricscope.report/1`.

Every fact that a rule, an export or the fleet uses is a field here; judging a report again needs nothing else.
"""

from __future__ import annotations

import msgspec

from agent.model.finding import Check, Finding, Gpudirect, Summary
from agent.model.node import Event, Node, Platform, Software
from agent.model.reasons import ReasonRow
from agent.model.topology import Topology

SCHEMA = "fabricscope.report/1"
SCHEMA_MINOR = 12
REPORT_LIMIT_BYTES = 4 << 20


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """What wrote the report."""

    name: str
    version: str


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of saved outputs, or one output in a text of several."""

    name: str  # as given; in a text of several "issue.md, line 12"
    read_as: str | None = None  # the command whose output it is taken for; null: it is not read
    reason: str | None = None  # why it is not read, or why only a part of it counts
    read_by: str | None = None  # the other command of fabricscope that reads it: job


class SourceHost(msgspec.Struct, frozen=True, kw_only=True):
    """Outputs that belong together, in a source that holds outputs of several hosts or times."""

    name: str | None = None
    named_by: str | None = None  # output | prompt: a prompt is a hint
    files: list[str] = []  # names of `files`
    facts: list[str] = []  # by which they differ from the others: "host name n7", "0000:61:00.0 is a GPU"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at."""

    kind: str
    path: str | None = None
    files: list[SourceFile] | None = None  # of saved outputs, unread ones first; null: another kind of source
    files_more: int | None = None  # how many more there are
    hosts: list[SourceHost] | None = None  # outputs contradict each other: nothing is joined; null: none do


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator changed for this run, a line each."""

    changed: list[str] = []


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """How one probe ended: ok | partial | absent | denied | timed_out | failed | skipped."""

    name: str
    status: str
    reason: str | None = None
    reason_code: str | None = (
        None  # no-device | list-cut | needs-root | left-out | log-unread | service-log-unread, by which others decide
    )
    sources: list[str] = []
    duration_seconds: float = 0.0
    hung: bool = False  # its process could not be killed and was left behind, now or by an earlier run
    observed_at: str | None = None  # RFC 3339: read then by `watch` and kept since; null: read when the report states


class CountersWindow(msgspec.Struct, frozen=True, kw_only=True):
    """By how much counters moved between an earlier sample and this one.

    Subjects are those of findings ("pci:..", "gpu:..", "link:GPU/7", "port:NIC/1", "netdev:.."), names those of
    agent/model/counters.py ("correctable.RxErr"). A counter that both samples hold and that is in neither table did
    not move.
    """

    since: str | None = None  # of the earlier sample, RFC 3339; null with counters: both are outputs of one source
    until: str | None = None  # of the later one, where it is of `watch`'s last full scan; null: of this report
    seconds: float | None = None  # between the two, of a clock that does not jump
    reset_reason: str | None = None  # why there is nothing to compare with: "the host was restarted"
    moved: dict[str, dict[str, int]] = {}
    not_compared: dict[str, dict[str, str]] = {}  # subject -> counter -> reason; counter "*": the whole subject


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the last good run saw."""

    subject: str  # "gpu:0000:19:00.0", "nic:..", "nvswitch:..", "link:GPU/7", "port:NIC/1"
    label: str
    identity: str | None = None  # UUID, GUID, serial: what stays when it is moved or renamed
    detail: str | None = None  # "NVIDIA H100 80GB HBM3", "ConnectX-7": what to look for
    role: str | None = None  # of a NIC, and of its ports
    rate_gbit_s: float | None = None  # of a port: the fastest at which it was active
    above: list[str] = []  # ports above it, the nearest first: what is lost with one of them is one fault


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What earlier runs left in the state directory."""

    last_good: str | None = None  # when the inventory was taken, RFC 3339
    last_run: str | None = None
    runs: int = 0
    inventory: list[Known] = []
    link_downs: dict[str, list[str]] = {}  # "port:..", "netdev:.." -> times at which a run saw that it had gone down
    settings: dict[str, dict[str, str]] = {}  # subject -> what it was in the last run, where it is another now
    reason: str | None = None  # why there is nothing of an earlier run: the first one, another host, a damaged file


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
    history: History | None = None
    gpudirect: list[Gpudirect] = []
    checks: list[Check] = []
    reasons: list[ReasonRow] = []  # every reason of a check, once
    findings: list[Finding] = []
    summary: Summary
    left_out: list[str] | msgspec.UnsetType = msgspec.UNSET  # what a report has no room for, by field: only where it is

    @property
    def open_findings(self) -> list[Finding]:
        """The findings that are not silenced."""
        return [finding for finding in self.findings if finding.silenced is None]


def schema_text() -> str:
    """JSON Schema, draft 2020-12, indented, a newline at the end."""
    import inspect

    (whole,), parts = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    for part in parts.values():  # msgspec dedents it from some versions on
        if "description" in part:
            part["description"] = inspect.cleandoc(part["description"])
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}.{SCHEMA_MINOR}",
        "title": SCHEMA,
        **whole,
        "$defs": parts,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
