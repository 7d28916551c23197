"""The node: what machine this is, and the software that runs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from agent.model.peers import free, usual

SWITCH_PREFIX = "switch:"  # before the name of a switch where a node's name is


def choose_node_name(names: Iterable[str | None]) -> str:
    """The first name that is not blank, as it is bound to a client, counted, filed and shown; "" where none is.

    A slash ends the name of a cluster, and SWITCH_PREFIX begins a switch's: no node has either in its own.

    >>> choose_node_name([None, " gpu001 "]), choose_node_name(["a\\x1bb"]), choose_node_name(["a/gpu1"])
    ('gpu001', 'a?b', 'a?gpu1')
    >>> choose_node_name(["switch:leaf1"])
    'switch?leaf1'
    """
    name = next((text for name in names if name and (text := name.strip())), "").replace("/", "?")
    if name.startswith(SWITCH_PREFIX):
        name = name.replace(":", "?", 1)
    return name if name.isprintable() else "".join(c if c.isprintable() else "?" for c in name)


def shorten_host(name: str) -> str:
    """A host's name without its domain; an address whole, as a part of it is no name.

    >>> shorten_host("n7.example.org"), shorten_host("10.0.0.7")
    ('n7', '10.0.0.7')
    """
    return name if name.replace(".", "").isdecimal() or ":" in name else name.partition(".")[0]


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """Processors, all sockets alike."""

    vendor: Annotated[str | None, free("host")] = None
    family: Annotated[int | None, free("host")] = None
    model: Annotated[int | None, free("host")] = None
    name: Annotated[str | None, free("host")] = None
    sockets: Annotated[int | None, free("host")] = None
    threads_per_core: Annotated[int | None, free("host")] = None


class NumaNode(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA node. `cpus` is a cpulist; "" is a node without CPUs (GPU or CXL memory), null is not known."""

    id: Annotated[int, free("identity")]
    cpus: Annotated[str | None, free("place")] = None
    memory_mib: Annotated[int | None, usual("memory", "MiB", tolerance=0.05)] = None
    distances: Annotated[list[int], free("place")] = []


class Chassis(msgspec.Struct, frozen=True, kw_only=True):
    """Where the node sits (rack products state slot and tray)."""

    serial: Annotated[str | None, free("host")] = None
    slot: Annotated[str | None, free("host")] = None
    tray: Annotated[str | None, free("host")] = None


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One operating system on one machine."""

    hostname: Annotated[str | None, free("host")] = None
    machine_id: Annotated[str | None, free("host")] = None
    boot_id: Annotated[str | None, free("host")] = None
    kernel: Annotated[str | None, free("host")] = None
    os: Annotated[str | None, free("host")] = None
    arch: Annotated[str | None, free("host")] = None
    # null: bare metal, or not known (virtualization_known shows)
    virtualization: Annotated[str | None, free("host")] = None
    virtualization_known: Annotated[bool, free("host")] = False
    container: Annotated[str | None, free("host")] = None
    # "Slurm job 4711": devices of the host may be hidden from the process that looked
    job_limit: Annotated[str | None, free("host")] = None
    vendor: Annotated[str | None, free("host")] = None
    product: Annotated[str | None, free("host")] = None
    bios_version: Annotated[str | None, free("host")] = None
    chassis: Chassis = Chassis()
    serial: Annotated[str | None, free("host")] = None
    cmdline: Annotated[str | None, free("host")] = None
    cpu: Cpu = Cpu()
    numa_nodes: list[NumaNode] = []
    memory_mib: Annotated[int | None, free("host")] = None
    uptime_seconds: Annotated[float | None, free("host")] = None


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
    library: str | None = None  # version of libnvidia-ml on disk
    packages: list[str] = []  # versions whose sources DKMS has
    built: bool | None = None  # a module for this kernel is on disk; null: it is loaded, or not known
    parameters: dict[str, str] = {}  # /proc/driver/nvidia/params, those that matter for links
    confidential_computing: bool | None = None


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
    """One setting of NCCL or its kin (UCX, libfabric, NVSHMEM), as the program that reads the file takes it.

    `key` and `value` are the literal text before and after the first "=": a stray blank stays where it is.
    """

    key: str
    value: str
    source: str  # "/etc/nccl.conf:3", "environment of pid 4711 (python3)"
    scope: str = "system"  # system | user | service | job
    line: str | None = None  # the whole line of a file; null for an environment


class NcclLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """One libnccl (or network plugin) that is installed or that a process has mapped."""

    path: str
    version: str | None = None
    used_by: int = 0  # how many running processes have it mapped


class Nccl(msgspec.Struct, frozen=True, kw_only=True):
    """NCCL on this node. What was looked at, so that a missing setting can be distinguished from an unread one."""

    libraries: list[NcclLibrary] = []
    plugins: list[NcclLibrary] = []
    helpers: list[NcclLibrary] = []  # libraries that state what jobs use besides: gdrapi, cufile, NVSHMEM, libfabric
    settings: list[NcclSetting] = []
    not_settings: list[NcclSetting] = []  # lines of its files that set nothing: key is "", line the text
    searched: list[str] = []  # files and environments that were read, or are not there
    unread: list[str] = []  # what could not be read, and why
    jobs: int | None = None  # running processes that use a GPU or NCCL; null: not known
    jobs_hidden: str | None = None  # why it is not known which processes run
    jobs_unread: int | None = None  # of these, how many may not be looked into
    files: list[str] = []  # files that settings name (NCCL_TOPO_FILE) and that are there; searched: looked for
    topology_devices: dict[str, list[str]] = {}  # of topology files: "0x0302 0001:00:00.0", GPUs and NICs


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """Drivers, modules, services."""

    driver: Driver = Driver()
    modules: list[Module] = []
    services: list[Service] = []
    rdma_stack: RdmaStack = RdmaStack()
    peer_memory_clients: list[str] = []
    kernel_settings: dict[str, str] = {}  # that AMD GPUs depend on: numa_balancing, CONFIG_PCI_P2PDMA, ..
    nccl: Nccl = Nccl()
    limits: dict[
        str, str
    ] = {}  # "memlock slurmd.service" -> bytes or "unlimited"; "memlock pid 4711 (python3)"; "exempt .."
    device_nodes: list[str] | None = None  # of /dev: infiniband/uverbs0, gdrdrv, nvidia-caps-imex-channels/channel0
    shared_memory_mib: int | None = None  # size of /dev/shm
    rdma_namespaces: str | None = None  # shared | exclusive
    imex: dict[str, str] = {}  # NVLink over several nodes: "domain", "node", "nodes_config"
    kernel_log_since: str | None = None  # the oldest line that is left of this boot, RFC 3339 or seconds since boot
    kernel_log_whole: bool | None = None  # from the first line of this boot on


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Dated lines of evidence since boot; equal ones are one row."""

    kind: (
        str  # xid | sxid | aer | dpc | pcie_bandwidth | mlx5 | nic_firmware | peermem | link_down | tool | ib_port | ..
    )
    text: str  # the last of them
    source: str
    at: str | None = None  # the last of them, RFC 3339; null: the log has no date
    subject: str | None = None  # PCI address as ours, or an interface's name
    code: str | None = None  # Xid or SXid number, the word of the message
    count: int = 1
    first_at: str | None = None
    boot: str | None = None  # null: this boot; "-1": the one before, "earlier": one of those before
    logged: str | None = None  # what the log states of the last one's time, where that gives no moment
    detail: dict[str, str] = {}  # what else the line states: link, severity, "fatal"
    times: list[str] = []  # of links that went down or came up: the last 32, as `at` or `logged`
