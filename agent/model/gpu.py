"""GPUs and other accelerators, their links and ports, NVSwitches."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent.model.nic import TransceiverModule
from agent.model.peers import equal, free, unique, usual


class GpuPcie(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's own view of the GPU's PCIe link."""

    generation: Annotated[int | None, free("power")] = None
    width: Annotated[int | None, equal("PCIe width", "lanes")] = None
    max_generation: Annotated[int | None, free("derived")] = None
    max_width: Annotated[int | None, free("derived")] = None


class Mig(msgspec.Struct, frozen=True, kw_only=True):
    """Multi-instance GPU."""

    current: Annotated[bool | None, equal("MIG mode")] = None
    pending: Annotated[bool | None, equal("MIG mode after the next reset", after="current")] = None
    instances: Annotated[list[str], free("use")] = []


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """The far end of a direct link."""

    kind: Annotated[str, free("place")]  # gpu | switch | cpu | network | unknown
    id: Annotated[str | None, free("place")] = None
    link: Annotated[int | None, free("place")] = None


class GpuLink(msgspec.Struct, frozen=True, kw_only=True):
    """One direct link. `signal_gbyte_s`: signalling rate, one direction (payload is 16/17 of it on NVLink 4 and 5)."""

    protocol: Annotated[str, free("identity")] = "nvlink"  # nvlink | xgmi | hccs | sio | ub | gaudi | neuron
    link: Annotated[int, free("place")]
    state: Annotated[str, free("intent")]  # active | inactive | sleep | unknown
    version: Annotated[str | None, equal("link version")] = None
    signal_gbyte_s: Annotated[float | None, free("derived")] = None
    remote: Remote | None = None
    errors: Annotated[dict[str, int], free("counter")] = {}


def link_name(links: list[GpuLink]) -> str:
    """What people call the links of one GPU: that of their protocol, NVLink where there are none."""
    return {"xgmi": "XGMI", "hccs": "HCCS", "gaudi": "GAUDI", "neuron": "NEURON"}.get(
        links[0].protocol if links else "", "NVLink"
    )


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """Fabric registration."""

    state: Annotated[str | None, equal("fabric state")] = None  # not_supported | not_started | in_progress | completed
    status: Annotated[str | None, equal("fabric status")] = None
    clique: Annotated[int | None, equal("fabric clique")] = None
    cluster_uuid: Annotated[str | None, equal("fabric cluster")] = None
    health: Annotated[dict[str, str], free("state")] = {}


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """As how many GPUs the driver offers one (AMD). `expected`: as its compute mode means; null: not known."""

    compute: Annotated[str | None, equal("compute partition mode")] = None  # SPX | DPX | TPX | QPX | CPX
    memory: Annotated[str | None, equal("memory partition mode")] = None  # NPS1 | NPS2 | NPS4 | NPS8
    count: Annotated[int | None, free("derived")] = None
    expected: Annotated[int | None, free("derived")] = None


class XgmiPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The XGMI ports of an AMD GPU as its firmware states them. Null: not stated."""

    width: Annotated[int | None, equal("XGMI width", "lanes")] = None  # lanes of each
    lane_gbit_s: Annotated[int | None, free("power")] = None
    # active | inactive | unknown, by hardware port; which peer one leads to is not stated
    states: Annotated[list[str], free("place")] = []


class C2c(msgspec.Struct, frozen=True, kw_only=True):
    """NVLink-C2C between a Grace CPU and its GPU."""

    enabled: Annotated[bool | None, equal("NVLink-C2C")] = None
    links: Annotated[list[str], free("state")] = []  # state of each: active | inactive | ..
    # of all links together, one direction
    max_gbyte_s: Annotated[float | None, equal("NVLink-C2C bandwidth", "GB/s")] = None
    errors: Annotated[dict[str, int], free("counter")] = {}  # cumulative


class GpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Memory errors, repairs, clocks and power, as the driver reports them."""

    # why clocks are not higher now: idle, sw_power_cap, hw_thermal_slowdown, ..
    clock_limits: Annotated[list[str] | None, free("clock")] = None
    sm_clock_mhz: Annotated[int | None, free("clock")] = None
    sm_clock_max_mhz: Annotated[int | None, equal("highest SM clock", "MHz")] = None
    # what was set for applications
    application_clock_mhz: Annotated[int | None, equal("application clock", "MHz")] = None
    application_clock_default_mhz: Annotated[int | None, equal("default application clock", "MHz")] = None
    utilization_percent: Annotated[int | None, free("traffic")] = None
    power_limit_watts: Annotated[float | None, equal("power limit", "W")] = None  # in force
    power_limit_requested_watts: Annotated[float | None, free("derived")] = None
    power_limit_default_watts: Annotated[float | None, equal("default power limit", "W")] = None
    persistence: Annotated[bool | None, equal("persistence mode")] = None
    ecc: Annotated[bool | None, equal("ECC mode")] = None
    ecc_pending: Annotated[bool | None, equal("ECC mode after the next reset", after="ecc")] = None
    uncorrectable_volatile: Annotated[int | None, free("counter")] = None  # ECC errors since the driver was loaded
    uncorrectable_aggregate: Annotated[int | None, free("counter")] = None  # in the life of the GPU
    sram_threshold_exceeded: Annotated[bool | None, free("state")] = None
    # that wait for a reset: row_remap, page_retirement, channel, tpc
    repairs_pending: Annotated[list[str] | None, free("state")] = None
    repairs_failed: Annotated[list[str] | None, free("state")] = None  # row_remap, memory


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or accelerator: of the bus, of the driver, or of both."""

    id: Annotated[str, free("identity")]
    label: Annotated[str, free("name")]
    index: Annotated[int | None, free("name")] = None
    uuid: Annotated[str | None, unique("UUID")] = None
    serial: Annotated[str | None, unique("serial number", shared=True)] = None
    minor: Annotated[int | None, free("name")] = None
    name: Annotated[str | None, usual("model name")] = None
    vendor: Annotated[str | None, free("identity")] = None
    pci: Annotated[str | None, free("place")] = None
    numa_node: Annotated[int | None, free("place")] = None
    memory_numa_node: Annotated[int | None, free("place")] = None
    architecture: Annotated[str | None, free("derived")] = None
    compute_capability: Annotated[str | None, equal("compute capability")] = None
    vbios: Annotated[str | None, usual("VBIOS version")] = None
    memory_mib: Annotated[int | None, equal("memory", "MiB")] = None
    bar1_mib: Annotated[int | None, equal("BAR1", "MiB")] = None
    module_id: Annotated[int | None, free("place")] = None
    pstate: Annotated[str | None, free("power")] = None  # "P0"
    pcie: GpuPcie | None = None
    mig: Mig | None = None
    virtualization: Annotated[str | None, equal("virtualization mode")] = None  # none | passthrough | vgpu | ...
    driver_state: Annotated[str, free("state")] = (
        "unknown"  # open: the driver lists it; not_open: on the bus, not listed; no_driver; vfio; error; unknown
    )
    driver_error: Annotated[str | None, free("evidence")] = None
    partition: Partition | None = None
    # the GPUs that XGMI joins (AMD); "0": it is in none; null: not known
    hive: Annotated[str | None, free("place")] = None
    # ids of the GPUs that it reaches over PCIe (AMD); null: not known
    pcie_peers: Annotated[list[str] | None, free("place")] = None
    xgmi: XgmiPorts | None = None  # AMD
    links: list[GpuLink] = []
    links_known: Annotated[bool, free("evidence")] = False
    links_reason: Annotated[str | None, free("evidence")] = None  # why links are not known, or why there are none
    fabric: Fabric | None = None
    c2c: C2c | None = None
    addressing_mode: Annotated[str | None, equal("addressing mode")] = None
    p2p: Annotated[dict[str, dict[str, str]] | None, free("place")] = None
    recovery_action: Annotated[str | None, free("state")] = None
    nvlink_bandwidth_mode: Annotated[str | None, equal("NVLink bandwidth mode")] = None  # of this GPU: full | reduced
    health: GpuHealth | None = None
    # "xgmi_wafl.correctable", "hard_resets": cumulative since the driver was loaded
    error_counts: Annotated[dict[str, int], free("counter")] = {}
    # of the GPU's own PCIe link, cumulative since the driver was loaded
    pcie_counters: Annotated[dict[str, int], free("counter")] = {}


class NvSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """One NVSwitch that this host sees on PCI."""

    id: Annotated[str, free("identity")]
    pci: Annotated[str, free("place")]


class NpuPort(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the RoCE port inside an Ascend NPU, which is no interface of the host. Null: not known, or unset."""

    npu: Annotated[int, free("identity")]  # the physical id that hccn_tool and /etc/hccn.conf use
    # id of the GPU row; null: which NPU has this number is not known
    gpu: Annotated[str | None, free("identity")] = None
    nic: Annotated[str | None, free("identity")] = None  # id of the row in nics that has state, rate and counters
    address: Annotated[str | None, unique("address")] = None
    netmask: Annotated[str | None, equal("netmask")] = None
    gateway: Annotated[str | None, free("place")] = None
    detect_address: Annotated[str | None, free("place")] = None
    mtu: Annotated[int | None, equal("MTU")] = None
    pfc: Annotated[list[int] | None, equal("PFC priorities")] = None  # priorities
    tls: Annotated[bool | None, equal("TLS switch")] = None
    fec: Annotated[str | None, equal("FEC")] = None
    health: Annotated[str | None, free("state")] = None  # as hccn_tool -net_health prints it
    switch_port: Annotated[str | None, free("place")] = None  # of LLDP
    module: TransceiverModule | None = None  # as hccn_tool -optical prints it
    settings: Annotated[dict[str, str], free("place")] = {}  # the other keys of /etc/hccn.conf


class RankDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of an HCCL rank table."""

    server: Annotated[str, free("host")]
    npu: Annotated[int, free("identity")]
    address: Annotated[str | None, free("identity")] = None
    source: Annotated[str, free("evidence")]  # the file


class Ascend(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver of Ascend NPUs shows beside each NPU."""

    device_nodes: Annotated[int | None, free("host")] = None  # /dev/davinciN
    driver_version: Annotated[str | None, free("host")] = None
    firmware_version: Annotated[str | None, free("host")] = None
    # /etc/hccn.conf: read | empty | why it could not be read
    configuration: Annotated[str | None, free("evidence")] = None
    ports: list[NpuPort] = []  # by number
    rank_tables: list[RankDevice] = []
