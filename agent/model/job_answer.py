"""What `job` answers: why a job failed, hung or was slow. `fabricscope.job/1`.

Times are those of the log without a zone: "2026-11-03T04:12:09", or "11-03T04:12:09" where the log has no year.
"""

from __future__ import annotations

import msgspec

from agent.model.recommend_answers import JudgedMeasurement, LogAnswer
from agent.model.report import Generator

SCHEMA_JOB = "fabricscope.job/1"
ENDED = ("well", "failed", "hung", "killed", "cut", "unknown")
FAULT_KINDS = ("rank", "peer", "wire", "fabric", "hardware", "software", "setting", "unknown")


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was given."""

    name: str
    read_as: str | None = None  # "NCCL log", "flight recorder", ..; null: not read
    lines: int | None = None
    reason: str | None = None  # why it was not read, or not as a whole


class JobSource(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    files: list[JobFile] = []
    files_more: int | None = None  # files beyond those that are listed


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """The library of collectives."""

    name: str  # NCCL | RCCL | HCCL | HCL
    version: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The job as its files show it. Null: they do not."""

    framework: str | None = None  # PyTorch | nccl-tests | ..
    library: Library | None = None
    nodes: int | None = None
    ranks: int | None = None
    ended: str = "unknown"  # one of ENDED
    first_failure_at: str | None = None


class RankGpu(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU of a rank."""

    index: int | None = None
    pci: str | None = None
    uuid: str | None = None


class RankLast(msgspec.Struct, frozen=True, kw_only=True):
    """The last collective of a rank that is known."""

    group: str | None = None
    sequence: int | None = None
    collective: str | None = None


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of the largest communicator."""

    rank: int
    host: str | None = None
    gpu: RankGpu | None = None
    nics: list[str] = []
    state: str = "unknown"  # ok | failed | behind | waiting | ended | slow | unknown
    last: RankLast | None = None


class AtFault(msgspec.Struct, frozen=True, kw_only=True):
    """Who or what is at fault."""

    kind: str = "unknown"  # one of FAULT_KINDS
    ranks: list[int] = []
    host: str | None = None
    gpu: str | None = None
    nic: str | None = None
    port: int | None = None


class JobEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """One line that shows it."""

    text: str
    source: str  # the file, or the report
    line: int | None = None


class JobCause(msgspec.Struct, frozen=True, kw_only=True):
    """One cause. The list of them is sorted; the first is the headline."""

    id: str
    confidence: str = "high"  # high | medium | low
    at_fault: AtFault = AtFault()
    summary: str
    at: str | None = None  # of the first line that shows it
    evidence: list[JobEvidence] = []
    next: list[str] = []  # what to check or do, in order
    findings: list[str] = []  # fingerprints in the joined report


class JobConsequence(msgspec.Struct, frozen=True, kw_only=True):
    """What followed from a cause."""

    summary: str
    of: str | None = None  # id of the cause
    ranks: list[int] = []
    count: int = 1
    evidence: list[JobEvidence] = []


class JobSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of the job."""

    name: str
    value: str
    where: str  # "environment of rank 3", "launch command", ..
    verdict: str = "ok"  # ok | out_of_range | misspelt | removed | too_new | risky | uneven | unknown
    reason: str | None = None


class JobTable(msgspec.Struct, frozen=True, kw_only=True):
    """One measured table."""

    source: str
    tool: str
    rows: int
    largest_gbyte_s: float
    shapes: list[str] = []  # what its shape shows, the most specific first
    judged: list[JudgedMeasurement] = []  # with a machine
    machine: str | None = None  # that it is judged against: of a report or a profile, or the board of its GPUs


class CannotTell(msgspec.Struct, frozen=True, kw_only=True):
    """What these files cannot show, and what to save so that they would."""

    what: str
    save: str | None = None


class JoinedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a joined report."""

    fingerprint: str
    rule: str
    severity: str
    label: str
    summary: str


class JoinedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report, and whether the job's ranks are joined with it."""

    host: str | None
    source: str
    observed_at: str | None = None
    joined: bool
    reason: str | None = None
    findings: list[JoinedFinding] = []


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the job."""

    at: str
    ranks: list[int] = []
    host: str | None = None
    text: str
    role: str  # cause | consequence | hang | fact


class OtherJob(msgspec.Struct, frozen=True, kw_only=True):
    """Another job that the same files hold, in short."""

    where: list[str] = []  # "run.log, lines 120 to 340"
    headline: str
    job: Job
    causes: list[JobCause] = []


class JobAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    schema: str = SCHEMA_JOB
    schema_minor: int = 0
    generated_at: str
    generator: Generator
    headline: str
    source: JobSource
    job: Job
    ranks: list[Rank] = []
    causes: list[JobCause] = []
    consequences: list[JobConsequence] = []
    settings: list[JobSetting] = []
    measured: list[JobTable] = []
    where: list[str] = []  # of several jobs: where this one is in the files
    other_jobs: list[OtherJob] = []
    other_jobs_more: int | None = None
    machine: LogAnswer | None = None  # what of NCCL's choices differs from what the machine should give
    reports: list[JoinedReport] = []
    timeline: list[TimelineEntry] = []
    notes: list[JobConsequence] = []  # worth knowing, and no failure
    cannot_tell: list[CannotTell] = []
