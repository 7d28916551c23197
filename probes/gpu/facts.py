"""What is reported of GPUs and other accelerators, by any source: the shared facts of all probes that give "gpu"."""

from collections.abc import Iterable, Mapping

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern, require


class NvLink(NamedTuple):
    """One NVLink of one GPU, by link number."""

    link: int
    state: str  # active | inactive | sleep | unknown
    version: str | None = None  # "4.0"
    speed_gbyte_s: float | None = None  # signalling rate of one direction, as nvidia-smi nvlink -s prints it (26.562)
    remote_kind: str | None = None  # gpu | switch | cpu | network | unknown
    remote_address: str | None = None  # PCI address of the far end, normalized
    remote_link: int | None = None
    errors: Mapping[str, int] | None = None  # cumulative since the driver was loaded; names: LINK_ERRORS
    capabilities: Mapping[str, bool] | None = None  # nvidia-smi nvlink -c: {"P2P is supported": True}
    protocol: str = "nvlink"  # nvlink | xgmi | hccs | ..


class GpuFabric(NamedTuple):
    """Fabric registration (nvmlGpuFabricInfo)."""

    state: str | None  # not_supported | not_started | in_progress | completed
    status: str | None = None  # "success", or the NVML error's name; only meaningful when completed
    clique: int | None = None
    cluster_uuid: str | None = None
    health: Mapping[str, str] | None = (
        None  # {"degraded_bandwidth": "true"|"false"|"not_supported", ..., "summary": "healthy"}
    )


class GpuHealth(NamedTuple):
    """Memory errors, repairs, clocks and power of one GPU. None: not supported, or not read."""

    clock_limits: tuple[str, ...] | None = None  # why its clocks are not higher now; names: CLOCK_LIMITS
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    application_clock_mhz: int | None = None  # what was set for applications, and what it comes with
    application_clock_default_mhz: int | None = None
    utilization_percent: int | None = None
    power_limit_watts: float | None = None  # in force; what was asked for; what the GPU comes with
    power_limit_requested_watts: float | None = None
    power_limit_default_watts: float | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None  # after the next reset
    uncorrectable_volatile: int | None = None  # ECC errors since the driver was loaded
    uncorrectable_aggregate: int | None = None  # in the life of the GPU
    sram_threshold_exceeded: bool | None = None
    repairs_pending: tuple[str, ...] | None = None  # wait for a reset: row_remap, page_retirement, channel, tpc
    repairs_failed: tuple[str, ...] | None = None  # row_remap, memory


class XgmiPorts(NamedTuple):
    """The XGMI ports of one AMD GPU, all together. Width and rate are those of each. None: not stated."""

    width: int | None = None  # lanes
    lane_gbit_s: int | None = None
    states: tuple[str, ...] = ()  # by hardware port: active, inactive (on, without data), unknown (off, or not stated)


class Gpu(NamedTuple):
    """One GPU as the driver or nvidia-smi sees it. None: not supported, or not reported."""

    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which no fact needs
    address: str | None = None  # "0000:1b:00.0"
    uuid: str | None = None
    serial: str | None = None
    minor: int | None = None
    name: str | None = None
    architecture: str | None = None  # "Hopper"
    compute_capability: str | None = None  # "9.0"
    vbios: str | None = None
    memory_mib: int | None = None
    bar1_mib: int | None = None
    module_id: int | None = None
    pstate: int | None = None  # 0..15; the same before and after the link was read, else None
    utilization_percent: int | None = None
    link_generation: int | None = None
    link_width: int | None = None
    link_max_generation: int | None = None  # min(GPU, system)
    link_max_width: int | None = None
    replays: int | None = None
    health: GpuHealth | None = None
    numa_node: int | None = None  # nearest CPU node ("NUMA Affinity"), where one is named
    memory_numa_node: int | None = None  # the GPU's own memory as a NUMA node (coherent platforms)
    cpu_affinity: str | None = None  # cpulist, of a matrix of topology
    mig_current: bool | None = None
    mig_pending: bool | None = None
    mig_instances: tuple[str, ...] = ()  # MIG UUIDs
    virtualization: str | None = None  # none | passthrough | vgpu | host_vgpu | vsga
    nvlink_supported: bool | None = None  # False: "does not have or support Nvlink"; None: not known (MIG, denied)
    nvlink_reason: str | None = None  # why nvlinks are not known
    nvlinks: tuple[NvLink, ...] = ()
    nvlinks_unread: int = 0  # of AMD: links that the driver has beside them, and that could not be read
    fabric: GpuFabric | None = None
    c2c_enabled: bool | None = None
    c2c_links: tuple[str, ...] = ()  # state of every C2C link
    addressing_mode: str | None = None  # none | hmm | ats
    recovery_action: str | None = None  # none | reset | reboot | drain_p2p | drain_and_reset | ...: nvml_words
    pcie_counters: Mapping[str, int] | None = None  # cumulative since the driver was loaded; names: nvml_words
    c2c_max_gbyte_s: float | None = None  # of all C2C links together, one direction
    c2c_errors: Mapping[str, int] | None = None  # of all C2C links together, cumulative
    nvlink_bandwidth_mode: str | None = None  # of this GPU (Blackwell and later): full | reduced
    chassis_serial: str | None = None  # of the rack's chassis
    slot: str | None = None  # in that chassis, switch trays counted
    tray: str | None = None  # among compute trays
    vendor: str = "0x10de"  # of the PCI function
    device: str | None = None  # its id, where the source states it: "0x74a1"
    partitions: int | None = None  # as how many GPUs the driver offers this one (AMD)
    compute_partition: str | None = None  # SPX | DPX | TPX | QPX | CPX
    memory_partition: str | None = None  # NPS1 | NPS2 | NPS4 | NPS8
    hive: str | None = None  # of AMD: the GPUs that XGMI joins, hexadecimal; "0": it is in none
    pcie_peers: tuple[str, ...] | None = None  # of AMD: GPUs that it reaches over PCIe, by the driver's graph
    xgmi: XgmiPorts | None = None  # of AMD: what its firmware states of its own ports
    error_counts: Mapping[str, int] | None = None  # by block of the GPU: "xgmi_wafl.correctable", "hard_resets"
    error: str | None = None  # the GPU is there and the driver could not open it: "GPU_IS_LOST"


class PairCell(NamedTuple):
    """One cell of a topology matrix: `a` and `b` are "GPU0", "NIC3", a device name ("mlx5_0") or a PCI address."""

    a: str
    b: str
    kind: str  # NV<n> XGMI HCCS GAUDI NEURON PIX PXB PHB NODE SYS C2C PSB


class GpuFacts(NamedTuple):
    """GPUs of one source, with the driver it speaks for."""

    gpus: tuple[Gpu, ...]
    driver_version: str | None = None
    cuda_version: str | None = None
    pairs: tuple[PairCell, ...] = ()  # the matrix: each unordered pair once, a before b
    nic_names: Mapping[str, str] | None = None  # {"NIC0": "mlx5_0"}
    p2p: Mapping[tuple[int, int], Mapping[str, str]] | None = None  # (i, j) -> {"read": "OK", "write": "CNS", ...}
    bandwidth_mode: str | None = None  # NVLink bandwidth mode: full | off | min | half | 3quarter
    confidential_computing: bool | None = None
    attached: int | None = None  # how many GPUs the source states there are (may be more than it describes)
    vendor: str = "0x10de"  # whose driver this is, by PCI vendor
    settings: Mapping[str, str] | None = None  # of the kernel, that this vendor's GPUs depend on
    told_by: str | None = None  # "nccl-topo": a file about some GPUs; None: the driver's own list of all that it has


# nvmlClocksEventReason*: bit -> name
CLOCK_LIMITS: Mapping[int, str] = {
    0x1: "idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}

# The names in NvLink.errors, by the label of `nvidia-smi nvlink -e`. The first three are of links up to Hopper, the
# others of NVLink 5. A `_ber_packed` is a bit error rate as NVML packs it: bits 0-7 exponent, bits 8-11 mantissa,
# rate = mantissa * 10**-exponent (nvml.h; nvidia-smi prints "15e-255").
LINK_ERRORS: Mapping[str, str] = {
    "Replay Errors": "replay",
    "Recovery Errors": "recovery",
    "CRC Errors": "crc",
    "Malformed packet Errors": "malformed_packets",
    "Buffer overrun Errors": "buffer_overruns",
    "Rx Errors": "receive",
    "Rx remote Errors": "receive_remote",
    "Rx General Errors": "receive_general",
    "Local link integrity Errors": "local_link_integrity",
    "Tx discards": "transmit_discards",
    "Link recovery successful events": "recoveries_successful",
    "Link recovery failed events": "recoveries_failed",
    "Total link recovery events": "recoveries",
    "Effective Errors": "effective",
    "Effective BER": "effective_ber_packed",
    "Symbol Errors": "symbol",
    "Symbol BER": "symbol_ber_packed",
}

_ADDRESS = lazy_pattern(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([01][0-9A-Fa-f])\.([0-7])")


def with_known_remotes(gpus: Iterable[Gpu]) -> list[Gpu]:
    """The GPUs, with every NVLink whose far end is another of them marked so, where its source did not."""
    gpus = list(gpus)
    addresses = {gpu.address for gpu in gpus if gpu.address}

    def marked(link: NvLink) -> NvLink:
        known = link.remote_kind is None and link.remote_address in addresses
        return link._replace(remote_kind="gpu") if known else link

    return [gpu._replace(nvlinks=tuple(map(marked, gpu.nvlinks))) for gpu in gpus]


def normal_address(text: str) -> str:
    """A PCI address as the kernel spells it, from NVML's eight-digit, upper-case form. Raises ParseError.

    >>> normal_address("00000000:1B:00.0"), normal_address("00010000:E1:00.0")
    ('0000:1b:00.0', '10000:e1:00.0')
    """
    return require(find_address(text), f"not a PCI address: {text[:40]!r}")


def find_address(text: str) -> str | None:
    """The same; None for a text that is no address."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()
