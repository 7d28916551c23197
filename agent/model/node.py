"""The node: what machine this is, and the software that runs it."""

from __future__ import annotations

import msgspec


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """Processors, all sockets alike."""

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    name: str | None = None
    sockets: int | None = None


class NumaNode(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA node. `cpus` is a cpulist; "" is a node without CPUs (GPU or CXL memory), null is not known."""

    id: int
    cpus: str | None = None
    memory_mib: int | None = None
    distances: list[int] = []


class Chassis(msgspec.Struct, frozen=True, kw_only=True):
    """Where the node sits (rack products say slot and tray)."""

    serial: str | None = None
    slot: str | None = None
    tray: str | None = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One operating system on one machine."""

    hostname: str | None = None
    machine_id: str | None = None
    boot_id: str | None = None
    kernel: str | None = None
    os: str | None = None
    arch: str | None = None
    virtualization: str | None = None  # null: bare metal, or not known (virtualization_known tells)
    virtualization_known: bool = False
    container: str | None = None
    vendor: str | None = None
    product: str | None = None
    chassis: Chassis = Chassis()
    serial: str | None = None
    cmdline: str | None = None
    cpu: Cpu = Cpu()
    numa_nodes: list[NumaNode] = []
    memory_mib: int | None = None
    uptime_seconds: float | None = None


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """What kind of node this is recognized to be."""

    profile: str | None = None
    confidence: str = "none"  # exact | likely | none
    evidence: list[str] = []


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """The GPU driver."""

    version: str | None = None
    open: bool | None = None  # open kernel modules
    cuda: str | None = None


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded kernel module."""

    name: str
    version: str | None = None


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A system service: active | inactive | failed | not_installed | unknown."""

    name: str
    state: str
    version: str | None = None


class RdmaStack(msgspec.Struct, frozen=True, kw_only=True):
    """Whose RDMA kernel modules these are."""

    kind: str = "unknown"  # inbox | ofed | unknown
    version: str | None = None


class NcclSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One NCCL setting and where it was found."""

    key: str
    value: str
    source: str


class Nccl(msgspec.Struct, frozen=True, kw_only=True):
    """NCCL on this node."""

    libraries: list[str] = []
    settings: list[NcclSetting] = []


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """Drivers, modules, services."""

    driver: Driver = Driver()
    modules: list[Module] = []
    services: list[Service] = []
    rdma_stack: RdmaStack = RdmaStack()
    peer_memory_clients: list[str] = []
    nccl: Nccl = Nccl()
    limits: dict[str, str] = {}
    kernel_log_since: str | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One dated line of evidence since boot."""

    kind: str  # xid | sxid | aer | mlx5 | nvlink | peermem | ...
    text: str
    source: str
    at: str | None = None
    subject: str | None = None
    code: str | None = None
