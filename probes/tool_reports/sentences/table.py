"""Sentences in which tools, plugins and hypervisors state a fault: one row each, read by `stated.py`.

Two kinds of rows. With a tool: the sentence stands in place of that tool's output, and of these the first of the table
counts, as a library that does not fit explains that no device was found. Without one: it states a fault wherever it
stands, in a log, in quotes, in the JSON of a log collector, and each counts.

Sources: ROCm/rocm_smi_lib python_smi_tools/rocm_smi.py, ROCm/amdsmi amdsmi_cli, rocminfo.cc; linux-rdma/rdma-core
libibverbs (init.c, examples/devinfo.c), librdmacm (examples/rping.c) and infiniband-diags (ibstat.c, sminfo.c),
linux-rdma/perftest; openucx/ucx uct/ib/base/ib_md.c, ucp/core/ucp_context.c; NVIDIA/gdrcopy tests/; kmod
tools/modprobe.c; dkms; libfabric util/info.c; Mellanox/k8s-rdma-shared-dev-plugin pkg/resources;
k8snetworkplumbingwg/ib-sriov-cni and sriov-network-operator; Mellanox/mstflint; CUDA 13 driver_types.h, PyTorch 2
torch/csrc/cuda/Module.cpp, torch/cuda/__init__.py; QEMU hw/vfio/pci.c, hw/vfio/container.c, hw/pci/pci.c; libvirt
src/util/virpci.c, src/qemu/qemu_hostdev.c; Proxmox qemu-server PVE/QemuServer/PCI.pm; VMware KB 2142307 and Dell KB
000199172; wilicc/gpu-burn gpu_burn-drv.cpp; NVIDIA/DCGM dcgmlib/dcgm_errors.h, leptonai/gpud;
NVIDIA/k8s-driver-manager, NVIDIA/k8s-device-plugin internal/rm, NVIDIA/libnvidia-container src/cli,
NVIDIA/nvidia-container-toolkit, moby daemon, containerd and CRI-O (runtime handlers),
tags.cncf.io/container-device-interface.
The sources of npu-smi and neuron-ls are closed: public threads.
"""

from __future__ import annotations

from probes.tool_reports.sentences.cluster import CLUSTER
from probes.tool_reports.sentences.gpu import DCGM, DCGM_CODES, NVIDIA, OTHER_MAKERS, PCIE_LINKS, STATES
from probes.tool_reports.sentences.network import COLLECTIVES, FIRMWARE, INFINIBAND, INTERFACES, VERBS
from probes.tool_reports.sentences.sentence import BDF, DEVICE, ToolSentence, row, rows_of
from probes.tool_reports.sentences.verbs import PROGRAMS, STATUSES

_MODULES = r"nvidia[a-z_-]*|amdgpu|amdkfd|mlx[45]_\w+|ib_\w+|bnxt_\w+|irdma|ice|efa|ena|habanalabs\w*|neuron"
_RDMA_MODULES = r"mlx[45]_\w+|ib_\w+|rdma_\w+|bnxt_re|irdma|efa"
_CUDA_CODES = (  # number of an error of CUDA, and its names in the runtime (helper_cuda.h) and in the driver
    ("cuda-versions", "803", "SystemDriverMismatch", "SYSTEM_DRIVER_MISMATCH"),
    ("cuda-compat", "804", "CompatNotSupportedOnDevice", "COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    ("cuda-memory", "214", "ECCUncorrectable", "ECC_UNCORRECTABLE"),
    ("cuda-nvlink", "220", "NvlinkUncorrectable", "NVLINK_UNCORRECTABLE"),
    ("cuda-busy", "46", "DevicesUnavailable", "DEVICE_UNAVAILABLE"),
    ("cuda-too-old", "35", "InsufficientDriver", "INSUFFICIENT_DRIVER"),
    ("cuda-no-device", "100", "NoDevice", "NO_DEVICE"),
    ("cuda-unknown", "3", "InitializationError", "NOT_INITIALIZED"),
    ("cuda-unknown", "999", "Unknown", "UNKNOWN"),
)
_SMINFO = r"^sminfo: sm (?P<part>lid \d{1,5}) sm guid \w{3,20}, activity count \d{1,12} priority \d{1,3} state \d "
UNKNOWN: tuple[ToolSentence, ...] = rows_of(  # how programs begin the line of an error that no other row is
    "program",
    ("unexplained-line",
     r"^(?P<what>(?:-E- |ibwarn: \[\d{1,10}\] \w{2,40}: (?=[^\n]{0,160}(?:fail|can't|tim(?:ed )?e?out|bad status))|"
     r"ibpanic: \[|\w{3,20}: iberror: failed: |libibverbs: Warning: (?!couldn't )|librdmacm: (?:Fatal|"
     r"Warning): |mlx5: (?=[^\n]{0,120}(?:[Ff]ail|[Ee]rror))|dcgmi: |RTNETLINK answers: (?!File exists)|nccl_ofi: |"
     r"ERR: {1,3}|hsa api call failure|Error: (?:Unable|unable|Cannot|Could not|Failed) )[^\n]{4,140})"),
    ("unexplained-line",
     r"^(?P<what>poll (?:CQ|on (?:Send|Receive) CQ) failed|Poll (?:send|Receive) CQ failed|Couldn't post )"),
    ("unexplained-line",
     r"Test (?P<what>(?:CUDA|NCCL) failure [^\n]{4,140})|Test failure (?P<at>\w[\w.]{2,40}:\d{1,6})"),
)  # fmt: skip

IN_PLACE: tuple[ToolSentence, ...] = (  # with a tool
    row("amd-no-driver", r"^.{0,80}?\(amdgpu not found in modules\)", "rocm-smi"),
    row("amd-no-driver", r"^.{0,40}?Unable to detect any GPU devices, check amdgpu", "amd-smi"),
    row("amd-no-gpu", r"^(?:WARNING: )?No AMD GPUs specified", "rocm-smi"),
    row("amd-no-driver", r"^.{0,40}?ROCk module is NOT loaded", "rocminfo"),
    row("npu-no-driver", r"^.{0,40}?dcmi module initialize failed", "npu-smi"),
    row("neuron-no-driver", r"^.{0,40}?Failed to discover neuron devices", "neuron-ls"),
    *rows_of(
        "ibv_devinfo",
        ("verbs-abi",
         r"^libibverbs: Warning: Driver (?P<driver>\w{2,20}) does not support the kernel ABI of (?P<wants>\d{1,5})\b"),
        ("verbs-no-provider",  # no driver of a NIC: of none
         r"^libibverbs: Warning: couldn't load driver '(?:\S{0,80}/)?(?!lib(?:vmw_pvrdma|rxe|"
         r"siw)-)(?P<what>[\w.-]{2,60})'"),
        ("verbs-no-provider",
         r"^libibverbs: Warning: no userspace device-specific driver found for \S{0,60}/(?P<what>\w{2,20})"),
        ("verbs-no-device", r"^No IB devices found"),
        ("verbs-no-device", r"^(?:ls|find|stat): (?:cannot access )?'?(?P<what>/dev/infiniband)\S{0,40}: No such file"),
        ("verbs-no-device", r"^Failed to get IB devices list: "),
    ),
    row("verbs-no-device", r"^Unable to find the Infiniband/RoCE device", "ib_write_bw"),
    row("verbs-no-device",
         r"^Fatal error: {1,4}device '.{1,40}': sys files not found \(/sys/class/infiniband/", "ibstatus"),
    row("verbs-not-passed", r"^Failed to open device", "ibv_devinfo"),
    row("verbs-device-gone",
         r"^ibpanic: \[\d{1,10}\] main: stat of IB device '(?P<what>[\w.-]{2,40})' failed", "ibstat"),
    row("efa-memory",
         r"EFA internal error: \(\d{1,6}\) (?P<what>Failure to post internal receive buffers)", "fi_info"),
    row("efa-no-device", r"^fi_getinfo: -61\b|EFA libfabric provider not detected", "fi_info"),
    row("module-unsigned",
         rf"^.{{0,160}}?could not insert '(?P<what>(?:{_MODULES}))': (?:Key was rejected by service|Required key not)",
         "modprobe"),
    row("module-refused", rf"^.{{0,160}}?could not insert '(?P<what>(?:{_MODULES})': [\w ().]{{4,80}})", "modprobe"),
    *rows_of(
        "ibv_reg_mr",
        ("memory-not-locked",
         r"ibv_reg_mr\(.{0,200}?max locked memory(?:.{0,200}?\(current: (?P<what>\d{1,12} kbytes)\))?"),
        ("memory-not-locked", r"libibverbs: Warning: RLIMIT_MEMLOCK is (?P<what>\d{1,12} bytes)"),
    ),
    *rows_of(
        "ib_write_bw",
        ("perftest-port", r"^Port number \d{1,3} state is (?!Active)(?P<what>\w{2,20})"),
        ("perftest-memory", r"^Couldn't allocate MR\b"),
        ("perftest-queue", r"^Unable to create QP"),
        ("perftest-queue", r"^Couldn't get device attributes"),
        *STATUSES,
        ("perftest-not-ready", r"^Failed status 13\b"),
        ("verbs-retries", r"^Failed status 12\b"),
        ("verbs-retries", r"^Failed status transport retry counter exceeded \(12\)"),
        ("perftest-route", r"^Failed to modify QP (?:\w{1,12} )?to RTR"),
    ),
    *rows_of(
        "rping",
        ("rdma-address", r"RDMA_CM_EVENT_(?P<what>ADDR_ERROR|ROUTE_ERROR)\b"),
        ("rdma-address", r"^rdma_resolve_addr: (?P<what>[A-Z][\w ]{4,60})"),
    ),
    row("rdma-address", r"^Received 10 times ADDR_ERROR", "ib_write_bw"),
    row("rdma-refused", r"RDMA_CM_EVENT_(?P<what>UNREACHABLE|REJECTED)\b", "rping"),
    *rows_of(
        "ibping",
        ("mad-unanswered",
         r"^ibwarn: \[\d{1,10}\] mad_rpc(?:_rmpp)?: _do_madrpc failed; dport \((?P<what>[\w ;:.]{2,60})\)"),
        ("mad-unanswered", r"^ibwarn: \[\d{1,10}\] _do_madrpc: recv failed"),
        ("mad-unanswered", r"^\w{3,20}: iberror: failed: can't resolve destination port"),
    ),
    *rows_of(
        "ucx_info",
        ("ucx-device", rf"network device '{DEVICE}(?::\d{{1,2}})?' is not available, please use one or more of: "),
        ("ucx-no-gdr", rf"\bUCX +\w+ +{DEVICE}: cuda GPUDirect RDMA is disabled"),
    ),
    row("firmware-tool",
         r"^-E- (?:Cannot|Failed to) open (?:D|d)evice:? ?(?P<what>\S{1,60}?\.? .{0,80}\bMFE_\w{2,40})", "mstflint"),
    row("tcpx-gpus",
         r"Number of GPUs detected in the PCI tree (?P<what>\d{1,3} is not equal to the actual number of "
         r"GPUs reported by CUDA \d{1,3})", "rxdm"),
    row("firmware-psid", r"^-E- PSID mismatch. (?P<what>The PSID on flash .{4,120})", "mstflint"),
    *rows_of(
        "openibd",
        ("stack-modules", r"^Module (?P<what>mlx5_\w{2,10}) does not exist, skipping"),
        ("stack-failed",
         r"^Loading (?P<what>[\w ]{0,30})HCA driver(?: and Access Layer)?:[ \t]{0,60}\[ {0,4}FAILED"),
    ),
    row("stack-modules", r"^No OFED driver found for kernel (?P<what>\d[\w.-]{2,60})", "ofed-driver"),
    row("module-missing", rf"^modprobe: FATAL: Module (?P<what>{_RDMA_MODULES}) not found in ", "modprobe"),
    row("rdma-netns", r"incorrect RDMA subsystem network namespace", "rdma-shared-dp"),
    row("no-answer", r"^From \S{2,80}(?: \S{3,60})?:? .{0,30}? Destination Host Unreachable", "ping"),
    *rows_of(
        "nvshmem",
        ("gdr-no-peermem", r"neither nv_peer_mem, or nvidia_peermem detected"),
        ("ibgda-failed", rf"device {DEVICE} is not enumerated as an mlx5 device"),
        ("ibgda-failed", r"cannot allocate mlx5dv_devx_uar|init failed for transport: IBGDA"),
    ),
    *rows_of(
        "gdrcopy",
        ("gdrcopy-unloaded", r"^gdr_open error: Is gdrdrv driver installed and loaded\?"),
        ("gdrcopy-unloaded", r"unable to open GDR driver, is gdrdrv\.ko loaded\?"),
    ),
    row("file-system",
        r"^(?:[\w./-]{1,60}: ){1,2}(?:(?:cannot|error|failed|unable|can't)[a-z ']{2,40}? )?['\"\u2018]?"
        r"(?P<what>(?!/(?:dev|sys|proc)/)/[^'\":\u2019\n]{1,120}['\"\u2019]?: (?:Stale (?:NFS )?file handle|"
        r"Disk quota exceeded|Transport endpoint is not connected|Read-only file system|Input/output error|"
        r"No space left on device))",
        "program"),
    row("gds-file", r"GPUDirect Storage not supported on current file", "gdsio"),
    *rows_of(
        "mooncake",
        ("gid-none", rf"No suitable GID found on {DEVICE}"),
        ("gid-none", rf"Failed to query GID \d{{1,3}} on {DEVICE}/?: No data available"),
    ),
    *rows_of(
        "kubelet",
        ("plugin-no-umad",
         r"missing RDMA device spec for device (?P<device>[0-9a-f]{4}:[0-9a-f:.]{7}), RDMA device "
         r"\\?\"(?P<what>\w{2,20})\\?\" not found"),
        ("cni-no-guid", r"\bVF (?P<what>[\w.-]{2,20}) GUID is not valid"),
        ("cni-failed", r"error adding container to network \\?\"(?P<what>[\w.-]{1,60}\\?\": .{4,120})"),
        ("sriov-sync", r"lastSyncError: (?![\"']{2}\s*$|null\b)(?P<what>\S.{3,120})"),
    ),
    *rows_of(
        "CUDA",
        ("cuda-versions", r"unsupported display driver / cuda driver combination"),
        ("cuda-compat", r"forward compatibility was attempted on non[- ]supported HW"),
        ("cuda-memory", r"uncorrectable ECC error encountered"),
        ("cuda-nvlink", r"ncorrectable NVLink error"),
        ("cuda-stack", r"hardware stack error"),
        ("cuda-busy", r"CUDA-capable device(?:\(s\) is/|s )are busy or unavailable"),
        ("cuda-no-device", r"no CUDA-capable device is detected"),
        ("cuda-no-driver", r"Found no NVIDIA driver on your system|libcuda\.so\.1: cannot open"),
        ("cuda-too-old", r"CUDA driver version is insufficient for CUDA runtime"),
        ("cuda-too-old",
         r"NVIDIA driver on your system is too old(?:.{0,40}?found version (?P<what>\d{4,6}))?"),
        ("cuda-unknown", r"CUDA unknown error - this may be due to"),
        *(
            (code, rf"\bcudaError{name}\b|\bCUDA_ERROR_{driver}\b|cudaGetDeviceCount returned {number}[ \t]*$")
            for code, number, name, driver in _CUDA_CODES
        ),
    ),
    *rows_of(
        "sminfo",
        ("umad-closed", r"^(?:ibwarn: \[\d{1,10}\] )?mad_rpc_open_port: can't open UMAD port"),
        ("sm-silent", r"^sminfo: iberror: failed: query"),
        ("sm-standby", _SMINFO + r"(?P<what>SMINFO_STANDBY)"),
        ("sm-not-master", _SMINFO + r"(?P<what>SMINFO_(?!MASTER)[A-Z]{4,16})"),
    ),
    *VERBS,
    *PROGRAMS,
    *FIRMWARE,
    *INFINIBAND,
    *COLLECTIVES,
    *INTERFACES,
    *NVIDIA,
    *OTHER_MAKERS,
    *UNKNOWN,
)  # fmt: skip

ANYWHERE: tuple[ToolSentence, ...] = (  # without one: the first that fits a line
    row("guest-asleep", rf"vfio(?: {BDF})?: [Uu]nable to power on device, stuck in D3"),
    row("guest-asleep", r"pci_irq_handler: Assertion \W?0 <= irq_num"),
    row("guest-group", rf"(?:{BDF}: |\berror, )?(?P<what>group \d{{1,5}}) is not viable"),
    row("guest-no-iommu", rf"{BDF}: (?:error )?no iommu_group found"),
    row("guest-no-iommu", r"host doesn't support (?:\S{1,12} )?passthrough of host PCI"),
    row("guest-no-iommu", r"cannot prepare PCI pass-?through, IOMMU not present"),
    row("guest-memory", r"(?:VFIO_MAP_DMA|vfio\w{0,20}_dma_map)\b[^\n]{0,160}Cannot allocate memory"),
    row("guest-reset", rf"[Cc]annot reset device {BDF}, no available reset mechanism"),
    row("guest-reset", rf"able to reset PCI device {BDF}: (?P<what>[^\n\"]{{4,80}})"),
    row("guest-reset", rf"can't reset PCI device '{BDF}'"),
    row("guest-taken", rf"PCI device '?{BDF}'? already in use by (?P<what>VMID '?\d{{1,9}})"),
    row("guest-refused",
         rf"vfio {BDF}: [^\n]{{0,120}}?[Ff]ailed to open (?P<what>/dev/vfio/[\w/]{{1,40}}(?:: [A-Z][\w ]{{4,40}})?)"),
    row("guest-refused",
         r"vfio: (?:error|failed) (?:to open|opening) (?P<what>/dev/vfio/[\w/]{1,40}: [A-Z][\w ]{4,40})"),
    row("guest-taken", rf"PCI device {BDF} is in use by driver \w{{1,20}}, (?P<what>domain \S{{1,40}})"),
    row("guest-taken", rf"(?:Cannot bind|Failed to bind PCI device) '?{BDF}'? to vfio"),
    row("guest-window",
         r"PCIPassthru: total number of (?P<what>pages needed \(\d{1,12}\) exceeds limit \(\d{1,12}\))"),
    row("guest-power-on", r"(?P<what>Device [\d:.]{5,16} is not a passthrough device)"),
    row("guest-power-on", r"Module '?DevicePowerOn'? power on failed"),
    row("module-not-built", r"Bad return status for module build on kernel: (?P<what>\S{3,80})"),
    row("module-absent",
         r"FATAL: Module (?P<what>(?:nvidia|amdgpu|habanalabs|neuron|gdrdrv)[\w-]{0,30} not found in directory "
         r"\S{3,120})"),
    row("burn-faulty", r"^GPU (?P<gpu>\d{1,3}): FAULTY[ \t]*$"),
    row("burn-died", r"errors: [^\n]{0,400}?\(DIED!\)"),
    row("metric-xid", r"Detected XID (?P<xid>\d{1,3}) for GPU (?P<gpu>\d{1,3})\b"),
    row("check-xid",
         r"\bXID (?P<xid>\d{1,3})\b[^\n]{0,160} detected on (?:GPU )?"
         r"PCI:(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})\b"),
    row("driver-in-use", r"Could not unload NVIDIA driver kernel modules, driver is in use"),
    row("plugin-too-old", r"error getting device memory: Not Supported"),
    row("guest-window", r"failed allocating new MMIO range: (?P<what>\S{3,60})"),
    row("imex-unready",
         r"\bDCGM_FR_IMEX_UNHEALTHY\b(?:[^\n]{0,80}?IMEX daemon status is (?P<what>-?\d{1,3}))?"),
    row("imex-unready", r"\bIMEX (?:daemon|domain) status is (?P<what>-?\d{1,3} \(not \w{2,12}\))"),
    *DCGM,
    row("nvml-lost",
         r"(?:\b(?P<part>GPU-[0-9a-f-]{8,36})\b[^\n]{0,120}?)?"
         r"\b(?:NVMLError_GpuIsLost|(?:NVML_)?ERROR_GPU_IS_LOST|GPUIsLost)\b"),
    *DCGM_CODES,
    *PCIE_LINKS,
    *STATES,
    row("container-version", r"driver/library version mismatch"),
    row("container-no-driver", r"nvml error: driver not loaded"),
    row("driver-unreachable",  # within a line; as a line of its own it is an output of nvidia-smi
        r"[^\n]{9}NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"),
    row("container-no-driver", r"nvidia-container-cli: initialization error: load library failed: libnvidia-ml"),
    row("container-timeout", r"driver error: timed out"),
    row("container-no-device", r"device error: (?P<device>\S{1,60}): unknown device"),
    row("container-cuda", r"unsatisfied condition: (?P<wants>cuda ?[<>=]{1,2} ?[\d.]{1,8})"),
    row("container-no-runtime",
         r"could not select device driver(?:.{0,80}?capabilities: \[\[(?P<wants>[\w ,-]{1,40})\]\])?"),
    row("container-no-runtime", r"unknown or invalid runtime name: nvidia|no runtime for \"nvidia\" is configured"),
    row("container-no-cdi", r"unresolvable CDI devices (?P<wants>[\w./=:, -]{1,80})"),
    row("container-cgroup", r"Failed to initialize NVML: Unknown Error"),
    row("container-nvml", r"nvidia-container-cli: initialization error"),
    row("kube-allocate",
         r"Allocate failed due to.{0,400}?unavailable for (?P<wants>[\w./-]{1,60}\. Requested: \d{1,6}, Available: "
         r"\d{1,6})"),
    row("kube-xid", r"XidCriticalError: Xid=(?P<xid>\d{1,4}) on Device=(?P<device>[\w-]{1,60})"),
    row("kube-marked", r"device marked unhealthy: (?P<device>[\w-]{1,60})"),
    row("kube-no-nic", r"creating empty resource server for (?P<wants>[\w./-]{1,60})"),
    row("plugin-no-driver", r"If this is a GPU node, did you |nvml init failed: "),
    row("kube-endpoint", r"could not be found for endpoint (?P<wants>[\w./-]{1,60})"),
    row("psm-no-device", r"psm2:core:psmx2_\w{3,30}\(\):\d{1,6}<\w{4,6}> (?P<what>no PSM2 device is active)"),
    *CLUSTER,
)  # fmt: skip
