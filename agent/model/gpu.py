"""GPUs and other accelerators, their links and ports, NVSwitches."""

from __future__ import annotations

import msgspec

from agent.model.nic import TransceiverModule


class GpuPcie(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's own view of the GPU's PCIe link."""

    generation: int | None = None
    width: int | None = None
    max_generation: int | None = None
    max_width: int | None = None


class Mig(msgspec.Struct, frozen=True, kw_only=True):
    """Multi-instance GPU."""

    current: bool | None = None
    pending: bool | None = None
    instances: list[str] = []


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """The far end of a direct link."""

    kind: str  # gpu | switch | cpu | network | unknown
    id: str | None = None
    link: int | None = None


class GpuLink(msgspec.Struct, frozen=True, kw_only=True):
    """One direct link. `signal_gbyte_s`: signalling rate, one direction (payload is 16/17 of it on NVLink 4 and 5)."""

    protocol: str = "nvlink"  # nvlink | xgmi | hccs | sio | ub | gaudi | neuron
    link: int
    state: str  # active | inactive | sleep | unknown
    version: str | None = None
    signal_gbyte_s: float | None = None
    remote: Remote | None = None
    errors: dict[str, int] = {}


def link_name(links: list[GpuLink]) -> str:
    """What people call the links of one GPU: that of their protocol, NVLink where there are none."""
    return {"xgmi": "XGMI", "hccs": "HCCS", "gaudi": "GAUDI", "neuron": "NEURON"}.get(
        links[0].protocol if links else "", "NVLink"
    )


class Fabric(msgspec.Struct, frozen=True, kw_only=True):
    """Fabric registration."""

    state: str | None = None  # not_supported | not_started | in_progress | completed
    status: str | None = None
    clique: int | None = None
    cluster_uuid: str | None = None
    health: dict[str, str] = {}


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """As how many GPUs the driver offers one (AMD). `expected`: as its compute mode means; null: not known."""

    compute: str | None = None  # SPX | DPX | TPX | QPX | CPX
    memory: str | None = None  # NPS1 | NPS2 | NPS4 | NPS8
    count: int | None = None
    expected: int | None = None


class XgmiPorts(msgspec.Struct, frozen=True, kw_only=True):
    """The XGMI ports of an AMD GPU as its firmware states them. Null: not stated."""

    width: int | None = None  # lanes of each
    lane_gbit_s: int | None = None
    states: list[str] = []  # active | inactive | unknown, by hardware port; which peer one leads to is not stated


class C2c(msgspec.Struct, frozen=True, kw_only=True):
    """NVLink-C2C between a Grace CPU and its GPU."""

    enabled: bool | None = None
    links: list[str] = []  # state of each: active | inactive | ..
    max_gbyte_s: float | None = None  # of all links together, one direction
    errors: dict[str, int] = {}  # cumulative


class GpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Memory errors, repairs, clocks and power, as the driver reports them."""

    clock_limits: list[str] | None = None  # why clocks are not higher now: idle, sw_power_cap, hw_thermal_slowdown, ..
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    application_clock_mhz: int | None = None  # what was set for applications
    application_clock_default_mhz: int | None = None
    utilization_percent: int | None = None
    power_limit_watts: float | None = None  # in force
    power_limit_requested_watts: float | None = None
    power_limit_default_watts: float | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None  # after the next reset
    uncorrectable_volatile: int | None = None  # ECC errors since the driver was loaded
    uncorrectable_aggregate: int | None = None  # in the life of the GPU
    sram_threshold_exceeded: bool | None = None
    repairs_pending: list[str] | None = None  # that wait for a reset: row_remap, page_retirement, channel, tpc
    repairs_failed: list[str] | None = None  # row_remap, memory


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or accelerator: of the bus, of the driver, or of both."""

    id: str
    label: str
    index: int | None = None
    uuid: str | None = None
    serial: str | None = None
    minor: int | None = None
    name: str | None = None
    vendor: str | None = None
    pci: str | None = None
    numa_node: int | None = None
    memory_numa_node: int | None = None
    architecture: str | None = None
    compute_capability: str | None = None
    vbios: str | None = None
    memory_mib: int | None = None
    bar1_mib: int | None = None
    module_id: int | None = None
    pstate: str | None = None  # "P0"
    pcie: GpuPcie | None = None
    mig: Mig | None = None
    virtualization: str | None = None  # none | passthrough | vgpu | ...
    driver_state: str = (
        "unknown"  # open: the driver lists it; not_open: on the bus, not listed; no_driver; vfio; error; unknown
    )
    driver_error: str | None = None
    partition: Partition | None = None
    hive: str | None = None  # the GPUs that XGMI joins (AMD); "0": it is in none; null: not known
    pcie_peers: list[str] | None = None  # ids of the GPUs that it reaches over PCIe (AMD); null: not known
    xgmi: XgmiPorts | None = None  # AMD
    links: list[GpuLink] = []
    links_known: bool = False
    links_reason: str | None = None  # why links are not known, or why there are none
    fabric: Fabric | None = None
    c2c: C2c | None = None
    addressing_mode: str | None = None
    p2p: dict[str, dict[str, str]] | None = None
    recovery_action: str | None = None
    nvlink_bandwidth_mode: str | None = None  # of this GPU: full | reduced
    health: GpuHealth | None = None
    error_counts: dict[str, int] = {}  # "xgmi_wafl.correctable", "hard_resets": cumulative since the driver was loaded
    pcie_counters: dict[str, int] = {}  # of the GPU's own PCIe link, cumulative since the driver was loaded


class NvSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """One NVSwitch that this host sees on PCI."""

    id: str
    pci: str


class NpuPort(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the RoCE port inside an Ascend NPU, which is no interface of the host. Null: not known, or unset."""

    npu: int  # the physical id that hccn_tool and /etc/hccn.conf use
    gpu: str | None = None  # id of the GPU row; null: which NPU has this number is not known
    nic: str | None = None  # id of the row in nics that has state, rate and counters
    address: str | None = None
    netmask: str | None = None
    gateway: str | None = None
    detect_address: str | None = None
    mtu: int | None = None
    pfc: list[int] | None = None  # priorities
    tls: bool | None = None
    fec: str | None = None
    health: str | None = None  # as hccn_tool -net_health prints it
    switch_port: str | None = None  # of LLDP
    module: TransceiverModule | None = None  # as hccn_tool -optical prints it
    settings: dict[str, str] = {}  # the other keys of /etc/hccn.conf


class RankDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of an HCCL rank table."""

    server: str
    npu: int
    address: str | None = None
    source: str  # the file


class Ascend(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver of Ascend NPUs shows beside each NPU."""

    device_nodes: int | None = None  # /dev/davinciN
    driver_version: str | None = None
    firmware_version: str | None = None
    configuration: str | None = None  # /etc/hccn.conf: read | empty | why it could not be read
    ports: list[NpuPort] = []  # by number
    rank_tables: list[RankDevice] = []
