# ruff: noqa: D101  # each is a part of the class in agent.model that has its name without Fields, where fields are explained
"""What is read of a report: the fields that tables have, everything else is skipped.

Lists whose members are the same on many nodes stay raw: they are decoded once for all nodes (`rows.Reader`).
Strict in types, lenient in fields: those of a later minor version are skipped, those of an earlier one are missing.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from agent.fleet.rows.device_fields import NONE, GpuFields, Int, NetdevFields, NicFields, NpuPortFields


class CpuFields(msgspec.Struct, frozen=True, gc=False):
    name: str | None = None
    sockets: Int | None = None
    threads_per_core: Int | None = None


class ChassisFields(msgspec.Struct, frozen=True, gc=False):
    serial: str | None = None
    slot: str | None = None
    tray: str | None = None


class NumaNodeFields(msgspec.Struct, frozen=True, gc=False):
    memory_mib: Int | None = None


class NodeFields(msgspec.Struct, frozen=True, gc=False):
    hostname: str | None = None
    machine_id: str | None = None
    boot_id: str | None = None
    kernel: str | None = None
    os: str | None = None
    arch: str | None = None
    virtualization: str | None = None
    container: str | None = None
    vendor: str | None = None
    product: str | None = None
    bios_version: str | None = None
    chassis: ChassisFields | None = None
    serial: str | None = None
    cmdline: str | None = None
    cpu: CpuFields | None = None
    numa_nodes: list[NumaNodeFields] = []
    memory_mib: Int | None = None
    uptime_seconds: float | None = None


class DriverFields(msgspec.Struct, frozen=True, gc=False):
    version: str | None = None
    open: bool | None = None
    cuda: str | None = None
    parameters: dict[str, str] = {}


class StackFields(msgspec.Struct, frozen=True, gc=False):
    kind: str | None = None
    version: str | None = None


class ServiceFields(msgspec.Struct, frozen=True, gc=False):
    name: str
    state: str


class SettingFields(msgspec.Struct, frozen=True, gc=False):
    key: str
    value: str
    scope: str = "system"


class LibraryFields(msgspec.Struct, frozen=True, gc=False):
    version: str | None = None


class NcclFields(msgspec.Struct, frozen=True, gc=False):
    libraries: list[LibraryFields] = []
    settings: list[SettingFields] = []
    searched: Raw = NONE


class LoadedFields(msgspec.Struct, frozen=True, gc=False):
    """A kernel module."""

    name: str
    version: str | None = None


class SoftwareFields(msgspec.Struct, frozen=True, gc=False):
    driver: DriverFields = DriverFields()
    services: list[ServiceFields] = []
    rdma_stack: StackFields = StackFields()
    nccl: NcclFields = NcclFields()
    modules: list[LoadedFields] = []
    imex: dict[str, str] = {}
    limits: dict[str, str] = {}
    shared_memory_mib: Int | None = None


class NamedFields(msgspec.Struct, frozen=True, gc=False):
    """Generator and source: the one word of each that is kept."""

    version: str | None = None
    kind: str | None = None


class PlatformFields(msgspec.Struct, frozen=True, gc=False):
    profile: str | None = None


class SummaryFields(msgspec.Struct, frozen=True, gc=False):
    verdict: str
    counts: dict[str, Int] = {}
    unknown_rules: list[Raw] = []


class CostFields(msgspec.Struct, frozen=True, gc=False):
    collective: str | None = None
    nodes: Int | None = None
    gbyte_s: float | None = None
    percent: float | None = None


class LocationFields(msgspec.Struct, frozen=True, gc=False):
    part: str | None = None
    serial: str | None = None


class SilencedFields(msgspec.Struct, frozen=True, gc=False):
    until: str | None = None
    reason: str | None = None


class FindingFields(msgspec.Struct, frozen=True, gc=False):
    rule: str
    severity: str
    subject: str
    fingerprint: str
    label: str | None = None
    summary: str | None = None
    impact: str | None = None
    remedy: str | None = None
    evidence: Raw = NONE
    confidence: str | None = None
    cost: CostFields | None = None
    location: LocationFields | None = None
    devices: list[str] = []
    silenced: SilencedFields | None = None


class UnknownSubjectFields(msgspec.Struct, frozen=True, gc=False):
    reason: str | None = None
    reason_code: str | None = None


class CheckFields(msgspec.Struct, frozen=True, gc=False):
    rule: str
    state: str
    passed: Int | None = None
    failed: Int | None = None
    unknown: Int | None = None
    not_applicable: Int | None = None
    reason: str | None = None
    unknown_subjects: list[UnknownSubjectFields] = []
    reason_code: str | None = None


class ProbeFields(msgspec.Struct, frozen=True, gc=False):
    name: str
    status: str
    reason: str | None = None
    duration_seconds: float | None = None
    hung: bool = False


class WindowFields(msgspec.Struct, frozen=True, gc=False):
    seconds: float | None = None
    moved: Raw = NONE


class EventFields(msgspec.Struct, frozen=True, gc=False):
    kind: str
    text: str
    source: str | None = None
    at: str | None = None
    subject: str | None = None
    code: str | None = None
    count: Int = 1
    first_at: str | None = None
    boot: str | None = None
    logged: str | None = None
    times: list[str] = []


class AscendFields(msgspec.Struct, frozen=True, gc=False):
    driver_version: str | None = None
    firmware_version: str | None = None
    ports: list[NpuPortFields] = []


class TopologyFields(msgspec.Struct, frozen=True, gc=False):
    pci: Raw = NONE
    gpus: list[GpuFields] = []
    nics: list[NicFields] = []
    netdevs: list[NetdevFields] = []
    ascend: AscendFields | None = None
    paths: Raw = NONE


class ReportFields(msgspec.Struct, frozen=True, gc=False):
    """A report of any minor version of schema 1."""

    node: NodeFields
    topology: TopologyFields
    summary: SummaryFields
    schema: str
    generated_at: str
    observed_at: str | None = None
    schema_minor: Int | None = None
    generator: NamedFields = NamedFields()
    source: NamedFields = NamedFields()
    duration_seconds: float | None = None
    platform: PlatformFields = PlatformFields()
    software: SoftwareFields = SoftwareFields()
    probes: list[ProbeFields] = []
    checks: Raw = NONE
    findings: list[FindingFields] = []
    counters_window: WindowFields | None = None
    events: list[EventFields] = []
