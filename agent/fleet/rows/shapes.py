# ruff: noqa: D101  # each is the class of that name in agent.model, where fields are explained
"""What is read of a report: the fields that tables have, everything else is skipped.

Lists whose members are the same on many nodes stay raw: they are decoded once for all nodes (`rows.Reader`).
Strict in types, lenient in fields: those of a later minor version are skipped, those of an earlier one are missing.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from agent.fleet.rows.device_shapes import NONE, Gpu, Int, Netdev, Nic


class Cpu(msgspec.Struct, frozen=True, gc=False):
    name: str | None = None
    sockets: Int | None = None


class Chassis(msgspec.Struct, frozen=True, gc=False):
    serial: str | None = None
    slot: str | None = None
    tray: str | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
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
    chassis: Chassis | None = None
    serial: str | None = None
    cmdline: str | None = None
    cpu: Cpu | None = None
    numa_nodes: list[Raw] = []
    memory_mib: Int | None = None
    uptime_seconds: float | None = None


class Driver(msgspec.Struct, frozen=True, gc=False):
    version: str | None = None
    open: bool | None = None
    cuda: str | None = None


class Stack(msgspec.Struct, frozen=True, gc=False):
    kind: str | None = None
    version: str | None = None


class Service(msgspec.Struct, frozen=True, gc=False):
    name: str
    state: str


class Setting(msgspec.Struct, frozen=True, gc=False):
    key: str
    value: str
    scope: str = "system"


class Library(msgspec.Struct, frozen=True, gc=False):
    version: str | None = None


class Nccl(msgspec.Struct, frozen=True, gc=False):
    libraries: list[Library] = []
    settings: list[Setting] = []
    searched: Raw = NONE


class Software(msgspec.Struct, frozen=True, gc=False):
    driver: Driver = Driver()
    services: list[Service] = []
    rdma_stack: Stack = Stack()
    nccl: Nccl = Nccl()


class Named(msgspec.Struct, frozen=True, gc=False):
    """Generator and source: the one word of each that is kept."""

    version: str | None = None
    kind: str | None = None


class Platform(msgspec.Struct, frozen=True, gc=False):
    profile: str | None = None


class Summary(msgspec.Struct, frozen=True, gc=False):
    verdict: str
    counts: dict[str, Int] = {}
    unknown_rules: list[Raw] = []


class Cost(msgspec.Struct, frozen=True, gc=False):
    collective: str | None = None
    nodes: Int | None = None
    gbyte_s: float | None = None
    percent: float | None = None


class Location(msgspec.Struct, frozen=True, gc=False):
    part: str | None = None
    serial: str | None = None


class Silenced(msgspec.Struct, frozen=True, gc=False):
    until: str | None = None


class Finding(msgspec.Struct, frozen=True, gc=False):
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
    cost: Cost | None = None
    location: Location | None = None
    silenced: Silenced | None = None


class UnknownSubject(msgspec.Struct, frozen=True, gc=False):
    reason: str | None = None


class Check(msgspec.Struct, frozen=True, gc=False):
    rule: str
    state: str
    passed: Int | None = None
    failed: Int | None = None
    unknown: Int | None = None
    not_applicable: Int | None = None
    reason: str | None = None
    unknown_subjects: list[UnknownSubject] = []


class Probe(msgspec.Struct, frozen=True, gc=False):
    name: str
    status: str
    reason: str | None = None
    duration_seconds: float | None = None
    hung: bool = False


class Topology(msgspec.Struct, frozen=True, gc=False):
    pci: Raw = NONE
    gpus: list[Gpu] = []
    nics: list[Nic] = []
    netdevs: list[Netdev] = []
    paths: Raw = NONE


class Report(msgspec.Struct, frozen=True, gc=False):
    """A report of any minor version of schema 1."""

    node: Node
    topology: Topology
    summary: Summary
    schema: str
    generated_at: str
    observed_at: str | None = None
    schema_minor: Int | None = None
    generator: Named = Named()
    source: Named = Named()
    duration_seconds: float | None = None
    platform: Platform = Platform()
    software: Software = Software()
    probes: list[Probe] = []
    checks: Raw = NONE
    findings: list[Finding] = []
