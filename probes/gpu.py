"""What is said of GPUs, whoever says it (NVML, nvidia-smi): the shared facts of `nvml.py` and `nvidia_smi.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NvLink:
    """One NVLink of one GPU, by link number."""

    link: int
    state: str  # active | inactive | sleep | unknown
    version: str | None = None  # "4.0"
    speed_gbyte_s: float | None = None  # signalling rate of one direction, as nvidia-smi nvlink -s prints it (26.562)
    remote_kind: str | None = None  # gpu | switch | cpu | unknown
    remote_address: str | None = None  # PCI address of the far end, normalized
    remote_link: int | None = None
    errors: Mapping[str, int] | None = None  # cumulative: {"replay": 0, "recovery": 0, "crc_flit": 0, ...}


@dataclass(frozen=True, slots=True)
class Fabric:
    """Fabric registration (nvmlGpuFabricInfo)."""

    state: str | None  # not_supported | not_started | in_progress | completed
    status: str | None = None  # "success", or the NVML error's name; only meaningful when completed
    clique: int | None = None
    cluster_uuid: str | None = None
    health: Mapping[str, str] | None = None  # {"degraded_bandwidth": "true"|"false"|"not_supported", ..., "summary": "healthy"}


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver or nvidia-smi sees it. None: not supported, or not said."""

    index: int | None = None
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
    gpu_max_generation: int | None = None  # the GPU alone
    host_max_generation: int | None = None  # nvidia-smi "Host Max"
    replays: int | None = None
    persistence: bool | None = None
    numa_node: int | None = None  # nearest CPU node ("NUMA Affinity"), where one is named
    memory_numa_node: int | None = None  # the GPU's own memory as a NUMA node (coherent platforms)
    cpu_affinity: str | None = None  # cpulist
    mig_current: bool | None = None
    mig_pending: bool | None = None
    mig_instances: tuple[str, ...] = ()  # MIG UUIDs
    virtualization: str | None = None  # none | passthrough | vgpu | host_vgpu | vsga
    nvlink_supported: bool | None = None  # False: "does not have or support Nvlink"; None: not known (MIG, denied)
    nvlink_reason: str | None = None  # why nvlinks are not known
    nvlinks: tuple[NvLink, ...] = ()
    fabric: Fabric | None = None
    c2c_enabled: bool | None = None
    c2c_links: tuple[str, ...] = ()  # state of every C2C link
    addressing_mode: str | None = None  # none | hmm | ats
    recovery_action: str | None = None  # none | reset | reboot | drain_p2p | drain_and_reset
    error: str | None = None  # the GPU is there and the driver could not open it: "GPU_IS_LOST"


@dataclass(frozen=True, slots=True)
class PairCell:
    """One cell of a topology matrix: `a` and `b` are "GPU0", "NIC3" or a device name ("mlx5_0")."""

    a: str
    b: str
    kind: str  # NV<n> PIX PXB PHB NODE SYS C2C PSB


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """GPUs of one source, with the driver it speaks for."""

    gpus: tuple[Gpu, ...]
    driver_version: str | None = None
    cuda_version: str | None = None
    pairs: tuple[PairCell, ...] = ()  # the matrix: each unordered pair once, a before b
    nic_names: Mapping[str, str] | None = None  # {"NIC0": "mlx5_0"}
    p2p: Mapping[tuple[int, int], Mapping[str, str]] | None = None  # (i, j) -> {"read": "OK", "write": "CNS", ...}
    bandwidth_mode: str | None = None  # NVLink bandwidth mode: full | off | min | half | 3quarter
    attached: int | None = None  # how many GPUs the source says there are (may be more than it describes)
