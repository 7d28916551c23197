"""What each code of the tools' outputs means: severity, words, impact, and the part of the page with its steps.

The readers are in `probes/tool_reports`. What another rule finds from the same output by a fact of its own (ECC counts,
lost GPUs of nvidia-smi) is not here.
"""

from __future__ import annotations

from agent.rules.host.cluster_tool_meanings import CLUSTER_MEANINGS, MONITORING_MEANINGS
from agent.rules.host.failure_words import WORDS_MEANINGS
from agent.rules.host.gpu_tool_meanings import GPU_MEANINGS
from agent.rules.host.meaning import ToolMeaning
from agent.rules.host.network_tool_meanings import NETWORK_MEANINGS, NO_TRAFFIC, RESENT
from agent.rules.host.switch_meanings import SWITCH_MEANINGS

_MAY_FAIL = "Jobs on it can fail or hang: the tool states a fault, but not its extent."
_WHICH = "Which GPU it is, the lines do not state. Jobs on it can meet bad memory."
_NO_RDMA = (
    "It depends on where it ran: in a container the devices may not be passed in; on a host their driver is missing."
)
_GAUDI_PORTS = "Collectives of jobs over these ports fail or hang."
_NO_GPU_IN_CONTAINER = "The container does not start, or has no GPU."
_FEWER = "Pods that ask for all devices of the node are not placed on it."
_NO_GUEST = "The virtual machine that gets the device does not start."
_LOGGED = "What it means now depends on its date, and on what was done since: a BMC keeps its log until it is cleared."
_NO_JOBS = "No job starts on it. Whether the reason still holds depends on what was done since; Slurm keeps it."
MEANINGS = {
    "sensors-unreadable": ToolMeaning(
        "error", "nvidia-smi reads ERR!", "The GPU's own processor does not answer: jobs on it hang or end.", "reset",
    ),
    "fan-unreadable": ToolMeaning(
        "warning", "nvidia-smi reads ERR! for the fan", "The GPU may get too hot and slow down, or lose its driver.",
        "fan",
    ),
    "power-unreadable": ToolMeaning(
        "warning", "nvidia-smi reads ERR! for the power",
        "Seen for a moment on GPUs that work. One that stays: the GPU does not answer for its power management.",
        "power-reading",
    ),
    "npu-critical": ToolMeaning("critical", "npu-smi reports Health Critical", "The NPU must not be used.", "npu"),
    "npu-alarm": ToolMeaning("error", "npu-smi reports Health Alarm", _MAY_FAIL, "npu"),
    "npu-warning": ToolMeaning("warning", "npu-smi reports Health Warning", _MAY_FAIL, "npu"),
    "npu-unknown": ToolMeaning(
        "warning", "npu-smi reports Health UNKNOWN", "The NPU does not answer its driver.", "npu",
    ),
    "gaudi-events": ToolMeaning(
        "error", "hl-smi counts uncorrectable errors", "An uncorrectable error ends the job that meets it.", "memory",
    ),
    "amd-uncorrectable": ToolMeaning(
        "error", "uncorrectable errors", "An uncorrectable error ends the job that meets it.", "memory",
    ),
    "count-memory": ToolMeaning(
        "error", "uncorrectable errors are counted", "An uncorrectable error ends the job that meets it.", "memory",
    ),
    "count-link": ToolMeaning(
        "warning", "errors of the PCIe link are counted",
        "Each is sent again: the link is slower. Where the counts grow under load, jobs end at last.",
        "count-link", "low",
    ),
    "amd-pages-unreservable": ToolMeaning(
        "error", "bad pages that the driver could not take out of use", "Jobs can get the bad memory again.", "memory",
    ),
    "amd-pages-pending": ToolMeaning(
        "warning", "bad pages wait for a reset of the GPU", "Until then jobs can meet the bad memory.", "memory",
    ),
    "dcgm-diag-failure": ToolMeaning("error", "dcgmi diag fails", _MAY_FAIL, "diagnostic"),
    "dcgm-health-failure": ToolMeaning("error", "dcgmi health reports Failure", _MAY_FAIL, "diagnostic"),
    "dcgm-health-warning": ToolMeaning("warning", "dcgmi health reports Warning", _MAY_FAIL, "diagnostic"),
    "dcgm-link-down": ToolMeaning("error", "dcgmi reports NVLinks that are down", _MAY_FAIL, "nvlink"),
    "dcgm-links-down": ToolMeaning(
        "warning", "dcgmi reports all NVLinks down",
        "What it means depends on the GPU: a card without an NVLink bridge has none that is up.", "nvlink", "low",
    ),
    "amd-silent": ToolMeaning(
        "warning", "rocm-smi reads no sensor of this GPU, and those of others",
        "The GPU does not answer its driver, or is asleep: jobs on it hang or end.", "silent-gpu", "low",
    ),
    "nvlink-counted": ToolMeaning(
        "warning", "nvidia-smi counts errors on NVLinks, and none on others",
        "What they mean depends on when they came: they are counted since the driver was loaded. If they still grow, "
        "collectives wait for this link.", "counted", "low",
    ),
    "nvlink-counted-everywhere": ToolMeaning(
        "info", "nvidia-smi counts errors on NVLinks",
        "What they mean depends on when they came: they are counted since the driver was loaded.", "counted", "low",
    ),
    "metric-remap-failed": ToolMeaning(
        "error", "DCGM reports that remapping a row of GPU memory failed", "Jobs on it can meet bad memory.", "metric",
    ),
    "metric-ecc": ToolMeaning(
        "error", "DCGM counts uncorrectable errors of GPU memory since the driver was loaded", _MAY_FAIL, "metric",
    ),
    "metric-remap-pending": ToolMeaning(
        "warning", "DCGM reports rows of GPU memory that wait for a reset to be remapped",
        "Until then jobs can meet the bad memory.", "metric",
    ),
    "metric-slowdown": ToolMeaning(
        "warning", "DCGM reports that heat or its hardware slows a GPU down",
        "A job runs at the pace of its slowest GPU.", "slowdown",
    ),
    "metric-off": ToolMeaning(
        "warning", "monitoring reports something as off that is on for the other GPUs",
        "What it means depends on what the metric is about.", "sheet", "low",
    ),
    "metric-xid": ToolMeaning(
        "warning", "monitoring reports an Xid of the GPU",
        "What it means depends on when it came: exporters keep the last one.", "xid", "low",
    ),
    "metric-width": ToolMeaning(
        "warning", "an exporter reports a PCIe link with fewer lanes than GPU and slot have",
        "Copies between host and GPU, and traffic with NICs, are slower.", "measured", "low",
    ),
    "amd-xgmi-errors": ToolMeaning(
        "warning", "rocm-smi reports errors of the GPU's XGMI links since they were last read",
        "Packets are sent again while collectives wait. What it means depends on whether more come.", "xgmi", "low",
    ),
    "amd-link-down": ToolMeaning(
        "warning", "more XGMI links are down than on the other GPUs",
        "What it means depends on the board: where it wires them, collectives take a longer way or fail.", "xgmi-down",
    ),
    "c2c-down": ToolMeaning(
        "error", "nvidia-smi reports links between the GPU and its CPU that are inactive",
        "Copies between the memories of the two take as much longer.", "c2c",
    ),
    "amd-no-driver": ToolMeaning(
        "error", "the ROCm tools find no loaded amdgpu driver", "No job on this node sees a GPU.", "unloaded",
    ),
    "amd-no-gpu": ToolMeaning(
        "error", "rocm-smi finds no GPU that amdgpu drives", "No job on this node sees a GPU.", "unloaded",
    ),
    "npu-no-driver": ToolMeaning(
        "error", "npu-smi cannot reach the driver of the NPUs", "No job on this node sees an NPU.", "unloaded-npu",
    ),
    "neuron-no-driver": ToolMeaning(
        "error", "a Neuron device cannot be opened", "The program that asks for it does not start.", "unloaded-neuron",
    ),
    "verbs-abi": ToolMeaning(
        "error", "the RDMA library is of another version than the kernel's driver of the NIC",
        "Programs with this library have no RDMA; in a container only those of its image.", "library",
    ),
    "verbs-no-device": ToolMeaning("warning", "a program finds no RDMA device", _NO_RDMA, "hidden", "low"),
    "verbs-retries": ToolMeaning(
        "warning", "a transfer ended because its peer did not answer (status 12, retries exceeded)",
        "RDMA between these two hosts fails: NCCL ends with the same error.", "path", "low",
    ),
    "efa-no-device": ToolMeaning("warning", "libfabric finds no EFA device", _NO_RDMA, "hidden", "low"),
    "module-refused": ToolMeaning(
        "warning", "the kernel refused a module",
        "The kernel log states why. Without the module its devices, or RDMA to GPU memory, do not work.", "module",
    ),
    "memory-not-locked": ToolMeaning(
        "warning", "a program may lock too little memory for RDMA",
        "The program registers no memory with the NIC: it ends, or goes on without RDMA.", "memlock",
    ),
    "perftest-port": ToolMeaning(
        "warning", "the port that a program of perftest was to use is not active", NO_TRAFFIC, "port",
    ),
    "perftest-memory": ToolMeaning(
        "warning", "a program of RDMA could not register memory with the NIC",
        "What it means depends on the memory: for that of the host the limit on locked memory is too small; for that "
        "of a GPU (--use_cuda, --use_rocm) the NIC cannot reach it: no peer memory module and no DMA-BUF.",
        "registration", "low",
    ),
    "perftest-not-ready": ToolMeaning(
        "info", "the other side of a transfer had no buffer ready (status 13)",
        "The receiver did not keep up, or waits for something else; a job rarely has this.", "path", "low",
    ),
    "perftest-route": ToolMeaning(
        "warning", "a program of RDMA could not connect its queue pair to the other side",
        "What it means depends on the addresses: the GID index of each side must be of the same RoCE version and of a "
        "network that reaches the other.", "path", "low",
    ),
    "measured-slow": ToolMeaning(
        "warning", "a benchmark measured far less bandwidth than for the other GPUs",
        "Collectives run at the speed of this GPU's links. What limits it, a PCIe link, NVLinks or a longer path, the "
        "figures do not state.", "measured",
    ),
    "nvsm-unhealthy": ToolMeaning("warning", "nvsm reports UnHealthy", _MAY_FAIL, "nvsm"),
    "mad-unanswered": ToolMeaning(
        "warning", "a tool of InfiniBand got no answer from another port",
        "What it means depends on the other end: a host that is off, a link that is down, no route, or an ibping that "
        "no server answers.", "manager", "low",
    ),
    "cuda-memory": ToolMeaning(
        "error", "CUDA met an error of GPU memory that cannot be corrected", _WHICH, "cuda-hardware",
    ),
    "cuda-nvlink": ToolMeaning(
        "error", "CUDA met an NVLink error that cannot be corrected", "The job ended; others can meet it.",
        "cuda-hardware",
    ),
    "cuda-stack": ToolMeaning(
        "warning", "CUDA met an error of a GPU's hardware, or of the program (hardware stack error)",
        "What it means depends on the kernel log: an Xid of that time names the GPU and the cause.",
        "cuda-hardware", "low",
    ),
    "cuda-versions": ToolMeaning(
        "error", "the CUDA library (libcuda) does not fit the loaded kernel module",
        "No CUDA program with this library starts: on the host, or in one container.", "cuda-versions",
    ),
    "cuda-compat": ToolMeaning(
        "warning", "a CUDA compatibility library is used on a GPU that does not support it, or with an older module",
        "No CUDA program with this library starts: on the host, or in one container.", "cuda-versions",
    ),
    "cuda-too-old": ToolMeaning(
        "warning", "a program needs a newer NVIDIA driver than the loaded one",
        "That program does not start; others work.", "image",
    ),
    "cuda-no-driver": ToolMeaning(
        "warning", "a program finds no NVIDIA driver",
        "It depends on where it ran: in a container the GPUs may not be passed in; on a host the driver is not loaded.",
        "cuda-hidden", "low",
    ),
    "cuda-no-device": ToolMeaning(
        "warning", "CUDA finds no GPU",
        "It depends on where it ran: CUDA_VISIBLE_DEVICES or the container may leave out all GPUs; on a host the "
        "driver may have none.", "cuda-hidden", "low",
    ),
    "cuda-busy": ToolMeaning(
        "warning", "CUDA finds the GPU busy or unavailable",
        "It depends on the GPU: it is used exclusively, is in MIG mode without instances, or needs a reset.",
        "cuda-hidden", "low",
    ),
    "cuda-unknown": ToolMeaning(
        "warning", "CUDA does not start and does not state why",
        "It depends on the host: without the module nvidia_uvm and its device file no CUDA program starts.",
        "cuda-hidden", "low",
    ),
    "sm-silent": ToolMeaning(
        "warning", "no subnet manager answered a tool of InfiniBand",
        "What it means depends on the port: one without a link reaches none. Without a subnet manager no new port "
        "becomes active.", "manager", "low",
    ),
    "umad-closed": ToolMeaning(
        "info", "a tool could not open the management port of a NIC",
        "It asks for root, for the module ib_umad, and for a NIC with InfiniBand. For RoCE no action is needed.",
        "manager", "low",
    ),
    "unnamed-remap-failed": ToolMeaning(
        "error", "nvidia-smi reports that remapping a row of GPU memory failed", _WHICH, "rows",
    ),
    "unnamed-sram": ToolMeaning(
        "error", "nvidia-smi reports that errors of a GPU's SRAM exceeded their threshold", _WHICH, "rows",
    ),
    "unnamed-ecc": ToolMeaning(
        "error", "nvidia-smi counts uncorrectable errors of a GPU since its driver was loaded", _WHICH, "rows",
    ),
    "unnamed-action": ToolMeaning(
        "error", "nvidia-smi names an action that a GPU needs to recover",
        "Which GPU it is, the lines do not state. Until then jobs on it end or hang.", "filtered",
    ),
    "unnamed-slowdown": ToolMeaning(
        "warning", "nvidia-smi reports that hardware slows a GPU down",
        "Which GPU it is, the lines do not state. A job runs at the pace of its slowest GPU.", "slowdown",
    ),
    "file-link": ToolMeaning(
        "info", "the kernel states a PCIe link below what the device supports",
        "What it means depends on the slot, which the files do not show: one with fewer lanes is no fault.",
        "measured", "low",
    ),
    "unnamed-width-busy": ToolMeaning(
        "warning", "nvidia-smi reports a PCIe link at full speed with fewer lanes than the GPU has",
        "What it means depends on the slot: some have fewer lanes than cards. Copies between host and GPU, and traffic "
        "with NICs, are slower.", "measured", "low",
    ),
    "unnamed-width": ToolMeaning(
        "info", "nvidia-smi reports a PCIe link with fewer lanes than the GPU has",
        "Which GPU it is, the lines do not state. What it means depends on the slot: many have fewer lanes than cards.",
        "filtered", "low",
    ),
    "unnamed-remap-pending": ToolMeaning(
        "warning", "nvidia-smi reports rows of GPU memory that wait for a reset to be remapped", _WHICH, "rows",
    ),
    "unnamed-fabric-failed": ToolMeaning(
        "error", "nvidia-smi reports that a GPU could not be registered with its NVLink fabric",
        "CUDA ends with error 802 on it. Which GPU it is, the lines do not state; the fabric manager logs why.",
        "filtered",
    ),
    "unnamed-fabric-unhealthy": ToolMeaning(
        "warning", "nvidia-smi reports that the NVLink fabric of a GPU is not healthy",
        "Which GPU it is, the lines do not state; the fabric manager logs why.", "filtered",
    ),
    "unnamed-fabric": ToolMeaning(
        "warning", "nvidia-smi reports that a GPU is not registered with its NVLink fabric yet (In Progress)",
        "CUDA ends with error 802 on it until it is. If it stays so for minutes, the fabric manager does not run.",
        "filtered", "low",
    ),
    "modules-nouveau": ToolMeaning(
        "warning", "lsmod shows nouveau in use, and no NVIDIA driver",
        "What it means depends on the GPU that it drives: one for the display alone needs no other driver; one for "
        "computing runs no CUDA with it.", "nouveau", "low",
    ),
    "unnamed-acs": ToolMeaning(
        "info", "lspci shows ACS that redirects requests",
        "What it means depends on the ports and on the IOMMU: at a PCIe switch, traffic between the GPUs and NICs "
        "below it takes the way through the root port; where the IOMMU translates, direct traffic between GPUs can "
        "hang, also below root ports.", "filtered-bus", "low",
    ),
    "unnamed-acs-translated": ToolMeaning(
        "warning", "lspci shows ACS that redirects requests, and the kernel log an IOMMU that translates",
        "What it means depends on the ports: direct traffic between two GPUs below them can hang or arrive corrupt.",
        "redirected", "low",
    ),
    "cmdline-iommu": ToolMeaning(
        "info", "the kernel command line turns the IOMMU on, without iommu=pt",
        "What it means depends on the kernel's default and on where GPUs and NICs are: where the IOMMU translates, "
        "direct traffic between them is slower, and between two GPUs can hang.", "cmdline", "low",
    ),
    "file-odd": ToolMeaning(
        "warning", "one of several ports differs from the others",
        "What it means depends on which port it is, and on what it is for: collectives wait for the slowest rail.",
        "odd-file", "low",
    ),
    "line-odd": ToolMeaning(
        "warning", "one of several devices differs from the others",
        "What it means depends on which device it is, and on what it is for: collectives wait for the slowest one.",
        "odd-line", "low",
    ),
    "row-odd": ToolMeaning(
        "info", "one of several parts has another value than all others",
        "What it means depends on what the value is and on what the part is for: no check judges it alone.",
        "odd-value", "low",
    ),
    "loop-odd": ToolMeaning(
        "info", "one of several devices or hosts has another value than all others",
        "What it means depends on what the value is: of parts that do the same work a setting, a version or a place is "
        "mostly the same.",
        "odd-value", "low",
    ),
    "outputs-differ": ToolMeaning(
        "info", "two outputs contradict each other",
        "Only one of them can be so now: it changed between the two (a link that comes and goes), one of them is what "
        "was set and not what is in force, or they are of two hosts. Checks that need it used one of them.",
        "two-outputs", "low",
    ),
    "unnamed-nvlink": ToolMeaning(
        "warning", "nvidia-smi shows an NVLink that is down",
        "Which GPU it is, the lines do not state. Where its other links are up, collectives run at the pace of what is "
        "left of it; links that lead nowhere are inactive by design.", "filtered", "low",
    ),
    "unnamed-nvlink-errors": ToolMeaning(
        "info", "nvidia-smi counts errors of an NVLink",
        "Which GPU it is, and since when they count, the lines do not state.", "filtered", "low",
    ),
    "unnamed-fatal": ToolMeaning(
        "info", "lspci shows errors that a PCI function has recorded and that cannot be corrected",
        "Which function it is, the lines do not state, nor when it was: they stay until the power is cut or the driver "
        "clears them.", "filtered-bus", "low",
    ),
    "numa-none": ToolMeaning(
        "info", "the firmware states no NUMA node of PCI functions (numa_node is -1)",
        "What it means depends on the host: with one NUMA node nothing; with several, processes and memory are not "
        "placed near their GPU or NIC.", "numa", "low",
    ),
    "unnamed-link": ToolMeaning(
        "info", "lspci shows links below what their device supports",
        "What it means depends on the device and its slot, and a GPU slows its link when idle.", "filtered-bus", "low",
    ),
    "bmc-pcie": ToolMeaning("warning", "the BMC logs an uncorrectable PCIe error", _LOGGED, "bmc", "low"),
    "bmc-slot": ToolMeaning("warning", "the BMC logs a fault of a slot", _LOGGED, "bmc", "low"),
    "bmc-memory": ToolMeaning(
        "warning", "the BMC logs an uncorrectable error of the host's memory", _LOGGED, "bmc-host", "low",
    ),
    "bmc-memory-off": ToolMeaning(
        "warning", "the BMC reports a memory module that is not used as it is fitted", _LOGGED, "bmc-host", "low",
    ),
    "bmc-processor": ToolMeaning("warning", "the BMC logs a machine check of a CPU", _LOGGED, "bmc-host", "low"),
    "sensor-critical": ToolMeaning(
        "warning", "the BMC reports a sensor outside of its critical limits",
        "What is cooled or fed by it slows down, or is switched off.", "bmc-sensor",
    ),
    "sensor-failed": ToolMeaning(
        "warning", "the BMC reports a failure", "What is cooled or fed by it slows down, or is switched off.",
        "bmc-sensor",
    ),
    "bmc-temperature": ToolMeaning(
        "warning", "the BMC logs a temperature outside of its critical limit", _LOGGED, "bmc-sensor", "low",
    ),
    "bmc-fan": ToolMeaning("warning", "the BMC logs a fan that fails or is too slow", _LOGGED, "bmc-sensor", "low"),
    "bmc-power": ToolMeaning(
        "warning", "the BMC logs a power supply that fails or has no input", _LOGGED, "bmc-sensor", "low",
    ),
    "bmc-voltage": ToolMeaning(
        "warning", "the BMC logs a value outside of its critical limits", _LOGGED, "bmc-sensor", "low",
    ),
    "bmc-critical": ToolMeaning("warning", "the BMC logs an event that it rates critical", _LOGGED, "bmc", "low"),
    "bmc-corrected": ToolMeaning("info", "the BMC logs corrected errors", _LOGGED, "bmc-host", "low"),
    "link-failure": ToolMeaning("warning", "no link, for a reason that the NIC states", NO_TRAFFIC, "no-link"),
    "link-suspect": ToolMeaning("warning", "the link is up, and the NIC states a fault of it", RESENT, "wire"),
    "link-errors": ToolMeaning("warning", "errors that the FEC does not correct", RESENT, "wire"),
    "link-closed": ToolMeaning("warning", "no link: a command closed the port", NO_TRAFFIC, "closed"),
    "link-unplugged": ToolMeaning("info", "no link: no cable, or nothing at its other end", NO_TRAFFIC, "no-link"),
    "reporter-error": ToolMeaning(
        "error", "devlink reports a fault of the NIC that its driver has not recovered",
        "Until it is recovered, the port can stay up while nothing passes.", "reporter",
    ),
    "fec-not-active": ToolMeaning(
        "warning", "FEC is configured, and not active",
        "What it means depends on the link: one that is down has no active FEC. A link of 100 Gb/s or more that is up "
        "without it loses packets.", "fec", "low",
    ),
    "fec-off": ToolMeaning(
        "info", "FEC is off",
        "What it means depends on the link: short cables of 25 Gb/s need none, most links of 100 Gb/s and more do not "
        "come up without it.", "fec", "low",
    ),
    "bond-member-down": ToolMeaning(
        "warning", "a member of a bond has no link", "The bond has less bandwidth, and nothing to fall back on.",
        "bond", "low",
    ),
    "bond-not-joined": ToolMeaning(
        "warning", "LACP did not join a member to the bond",
        "The member carries nothing: its switch port is in no or in another group.", "bond",
    ),
    "bond-flaps": ToolMeaning(
        "warning", "a member of a bond lost its link often since the bond was made",
        "Each time its traffic stops for seconds. What it means depends on when that was.", "wire", "low",
    ),
    **SWITCH_MEANINGS,
    "library-missing": ToolMeaning(
        "warning", "a program does not find libraries that it was linked with",
        "It does not start, or leaves out what needs them: an MPI without UCX uses TCP between hosts.",
        "libraries", "low",
    ),
    "switch-lossy-pause": ToolMeaning(
        "warning", "a switch receives pause frames for a class that it does not treat as lossless",
        "The peer of the port pauses a class in which the switch drops: both differ in their PFC priorities.", "pfc",
    ),
    "switch-port-fault": ToolMeaning("warning", "a switch reports a fault of a port's link", NO_TRAFFIC, "wire", "low"),
    "nic-port-down": ToolMeaning("warning", "a port of a NIC is down, others are up", NO_TRAFFIC, "no-link", "low"),
    "nic-pcie-narrow": ToolMeaning(
        "warning", "the PCIe link of a NIC is slower than those of the other NICs",
        "The NIC moves less than its port carries, and collectives wait for the slowest one.", "nic-pcie", "low",
    ),
    "module-beyond": ToolMeaning(
        "warning", "the module of a port measures what is beyond its own limits",
        "Too little light or too much heat comes before errors, and before the loss of the link.",
        "module-limits", "low",
    ),
    "opa-waits": ToolMeaning(
        "warning", "a port of Omni-Path has a link and is not active: no fabric manager set it up", NO_TRAFFIC,
        "opa-manager",
    ),
    "opa-lanes": ToolMeaning("warning", "a link of Omni-Path lost lanes, or is of poor quality", RESENT, "wire", "low"),
    "ufm-link-flaps": ToolMeaning(
        "warning", "UFM states that a link came and went",
        "Each change stops its traffic for seconds; jobs over this port end or wait.", "ufm", "low",
    ),
    "ufm-threshold": ToolMeaning(
        "warning", "UFM states that errors or a module of a port are beyond a threshold", RESENT, "ufm", "low",
    ),
    "ufm-link-down": ToolMeaning(
        "info", "UFM states that a link went down, and not that it came back",
        NO_TRAFFIC + " A host that was switched off looks like this, too.", "ufm", "low",
    ),
    "nic-ports-down": ToolMeaning("info", "a port of a NIC is down", NO_TRAFFIC, "no-link", "low"),
    "gaudi-ports-down": ToolMeaning(
        "warning", "the driver's script reports ports of a Gaudi card as down", _GAUDI_PORTS, "gaudi",
    ),
    "gaudi-no-interface": ToolMeaning(
        "warning", "the driver's script finds no network interface of the Gaudi cards", _GAUDI_PORTS, "gaudi", "low",
    ),
    "kube-marked": ToolMeaning("error", "the device plugin marked a device unhealthy", _FEWER, "plugin"),
    "kube-xid": ToolMeaning("error", "the device plugin met an Xid that it takes for critical", _FEWER, "plugin"),
    "ibdiagnet-errors": ToolMeaning(
        "warning", "a check of ibdiagnet ended with errors",
        "What it means depends on its lines, which are not in the source: they name the ports.", "ibdiagnet", "low",
    ),
    "plugin-no-driver": ToolMeaning(
        "warning", "the device plugin finds no NVIDIA driver",
        "It depends on the node: one without GPUs needs none. A node with GPUs offers none of them.", "runtime", "low",
    ),
    "kube-no-devices": ToolMeaning(
        "error", "Kubernetes has no GPU of a node that is labelled with GPUs", _FEWER, "plugin",
    ),
    "kube-unhealthy": ToolMeaning("error", "the device plugin marks devices as unhealthy", _FEWER, "plugin"),
    "kube-none": ToolMeaning(
        "warning", "the node offers none of a kind of network device, and has accelerators",
        "No pod that asks for one starts on this node.", "selectors", "low",
    ),
    "kube-allocate": ToolMeaning("error", "the kubelet could not give a pod its devices", _FEWER, "plugin"),
    "kube-no-nic": ToolMeaning(
        "warning", "the plugin for RDMA devices finds none that its selectors fit",
        "No pod on this node gets an RDMA device.", "selectors", "low",
    ),
    "kube-endpoint": ToolMeaning("error", "the kubelet lost the device plugin", _FEWER, "plugin"),
    "kube-not-ready": ToolMeaning("error", "Kubernetes reports the node as not Ready", "No pod starts on it.", "node"),
    "kube-pod": ToolMeaning(
        "warning", "a pod of the software for GPUs or NICs does not run",
        "What it means depends on the pod: its log states why. Without the driver, the toolkit or the device plugin a "
        "node offers no GPU.", "pod", "low",
    ),
    "kube-condition": ToolMeaning("warning", "a health check of Kubernetes reports a fault", _FEWER, "node"),
    "clock-free": ToolMeaning(
        "info", "the clock of the system follows no server of time",
        "Logs of several hosts do not compare, and certificates and tickets may be refused once it is minutes off.",
        "clock", "low",
    ),
    "kube-pressure": ToolMeaning(
        "warning", "Kubernetes reports that the node is short of a resource, or that its system has a fault",
        "No pod starts on it, and the kubelet may end those that run.", "pressure",
    ),
    "slurm-gpus": ToolMeaning(
        "error", "Slurm found fewer GPUs on the node than it is configured for",
        "No job starts on it. Either a GPU is missing, or gres.conf does not fit the node.", "slurm",
    ),
    "slurm-no-file": ToolMeaning(
        "error", "slurmd does not find the device file of a GPU that gres.conf names",
        "slurmd does not start, so no job starts on the node. Either a GPU is missing, or gres.conf does not fit it.",
        "gres",
    ),
    "nhc-failed": ToolMeaning(
        "warning", "the node health check of the site failed",
        "Schedulers that ask it take the node out of use. Whether the reason still holds, the line does not state.",
        "nhc", "low",
    ),
    "slurm-device": ToolMeaning(
        "warning", "Slurm gives the node no jobs, for a reason that names a device or a check", _NO_JOBS,
        "slurm", "low",
    ),
    "slurm-silent": ToolMeaning(
        "warning", "Slurm gives the node no jobs: it, or a job on it, did not answer", _NO_JOBS, "slurm", "low",
    ),
    "slurm-held": ToolMeaning("info", "Slurm gives the node no jobs", _NO_JOBS, "slurm", "low"),
    "burn-faulty": ToolMeaning(
        "error", "gpu-burn computed wrong results", "Jobs on it can compute wrong results, or end.", "burn",
    ),
    "burn-died": ToolMeaning(
        "warning", "gpu-burn could not go on with the test of a GPU (DIED)",
        "What it means depends on the log of the driver: the GPU has an error, or the program does not fit the driver.",
        "burn", "low",
    ),
    "burn-hot": ToolMeaning(
        "warning", "gpu-burn reads a temperature at which most GPUs slow down",
        "A job runs at the pace of its slowest GPU.", "slowdown", "low",
    ),
    "dmon-hot": ToolMeaning(
        "warning", "samples show a GPU that is held back by heat", "A job runs at the pace of its slowest GPU.",
        "slowdown",
    ),
    "dmon-slow": ToolMeaning(
        "warning", "a clock is far below that of the other GPUs while all are busy",
        "A job runs at the pace of its slowest GPU.", "slowdown",
    ),
    "amd-slow": ToolMeaning(
        "warning", "a clock is far below that of the other GPUs while all are busy",
        "A job runs at the pace of its slowest GPU.", "slow-amd",
    ),
    "smi-slowed-alone": ToolMeaning(
        "warning", "nvidia-smi counts time in which hardware slowed this GPU, far more than for the others",
        "A job ran at the pace of this GPU, and does again under the same load.", "slowdown", "low",
    ),
    "smi-slowed": ToolMeaning(
        "info", "nvidia-smi counts time in which hardware slowed this GPU since its driver was loaded",
        "None now, unless it still grows: run the command twice under load.", "slowdown", "low",
    ),
    "banks-spent": ToolMeaning(
        "info", "nvidia-smi shows banks of memory without a spare row",
        "None now. The next uncorrectable error in such a bank cannot be repaired.", "banks",
    ),
    "smi-hot": ToolMeaning(
        "warning", "nvidia-smi shows a GPU at a limit of its temperature", "A job runs at the pace of its slowest GPU.",
        "slowdown",
    ),
    "dimm-uneven": ToolMeaning(
        "warning", "one CPU has fewer memory modules than another",
        "What it means depends on how the server was ordered: a module that fails its test at boot is left out. Memory "
        "of that CPU is then smaller, and slower for programs and for copies to GPUs.", "dimm", "low",
    ),
    "dimm-slow": ToolMeaning(
        "info", "memory modules run below the rate that they are made for",
        "None where the CPU supports no more, or two modules share a channel; else copies from and to host memory are "
        "slower than they could be.", "dimm", "low",
    ),
    "imex-node": ToolMeaning(
        "error", "the IMEX daemon of a node is not ready",
        "Jobs that reach it over NVLink from other nodes of its domain do not start.", "imex",
    ),
    "imex-unready": ToolMeaning(
        "info", "DCGM reports that the IMEX daemon is not ready",
        "None on a server with NVSwitches of its own, where IMEX has no task, and none on a tray of an NVLink rack "
        "(GB200, GB300) while no job spans trays: it is started for such a job.", "imex", "low",
    ),
    "dcgm-code": ToolMeaning("warning", "DCGM reports", _MAY_FAIL, "code", "low"),
    "measured-narrow": ToolMeaning(
        "info", "direct copies between two GPUs are slow",
        "What it means depends on their slots: so little is what 4 lanes of PCIe 4.0, or 8 of PCIe 3.0, carry.",
        "measured", "low",
    ),
    "module-not-built": ToolMeaning(
        "warning", "DKMS could not build a module for a kernel",
        "With that kernel the module is missing: if it is the driver of the GPUs or NICs, they cannot be used.",
        "dkms", "low",
    ),
    "module-absent": ToolMeaning(
        "warning", "a driver's module is not there for the kernel that runs",
        "Without the module its devices cannot be used.", "dkms",
    ),
    "measured-host": ToolMeaning(
        "info", "copies between the host and a GPU are slow",
        "What it means depends on the slot: so little is what 4 lanes of PCIe 4.0, or 8 of PCIe 3.0, carry.",
        "measured", "low",
    ),
    "driver-in-use": ToolMeaning(
        "warning", "a new NVIDIA driver is not loaded because the old one is in use",
        "Until the node is drained, the pod of the driver does not start, and no pod that waits for it.", "in-use",
    ),
    "plugin-too-old": ToolMeaning(
        "warning", "the device plugin does not know GPUs that share the host's memory",
        "The plugin ends, and the node offers no GPU.", "plugin-version",
    ),
    "guest-asleep": ToolMeaning(
        "warning",
        "a device that a guest gets does not answer: it does not leave a sleep state (D3), or fell off the bus",
        "The guest does not start, or ends.", "guest-asleep",
    ),
    "guest-no-iommu": ToolMeaning(
        "warning", "the host has no IOMMU in use, which a guest with a PCI device needs", _NO_GUEST, "guest-iommu",
    ),
    "guest-group": ToolMeaning(
        "warning", "devices of one IOMMU group are not all given up by the host", _NO_GUEST, "guest-group",
    ),
    "guest-window": ToolMeaning(
        "warning", "a guest has too little address space for the memory of its GPU", _NO_GUEST, "guest-window",
    ),
    "guest-memory": ToolMeaning(
        "warning", "the memory of a guest cannot be mapped for its devices", _NO_GUEST, "guest-memory",
    ),
    "guest-taken": ToolMeaning(
        "warning", "a device for a guest is used by another one, or by the host", _NO_GUEST, "guest-group",
    ),
    "guest-refused": ToolMeaning(
        "warning", "a virtual machine monitor cannot open a device of VFIO",
        "What it means depends on the reason: rights, another guest that has it, or a kernel without this interface.",
        "guest-group", "low",
    ),
    "guest-power-on": ToolMeaning(
        "warning", "a guest with a PCI device does not start",
        "What it means depends on the lines before it, which name the reason.", "guest-window", "low",
    ),
    "guest-reset": ToolMeaning(
        "warning", "a device that a guest gets cannot be reset",
        "The guest can meet what the last one left in it, or does not start.", "guest-asleep", "low",
    ),
    "container-version": ToolMeaning(
        "error", "the driver's library is of another version than its module", _NO_GPU_IN_CONTAINER, "driver",
    ),
    "container-no-driver": ToolMeaning(
        "error", "the NVIDIA driver is not loaded on the host", _NO_GPU_IN_CONTAINER, "driver",
    ),
    "container-timeout": ToolMeaning(
        "error", "the NVIDIA driver did not answer libnvidia-container in time", _NO_GPU_IN_CONTAINER, "silent",
    ),
    "container-no-device": ToolMeaning(
        "error", "a container asks for a GPU that does not exist", _NO_GPU_IN_CONTAINER, "device",
    ),
    "container-cuda": ToolMeaning(
        "warning", "an image needs a newer driver than the host's", "Containers of that image do not start.", "image",
    ),
    "container-no-runtime": ToolMeaning(
        "warning", "the container runtime has no support for GPUs", _NO_GPU_IN_CONTAINER, "runtime",
    ),
    "container-no-cdi": ToolMeaning(
        "warning", "the runtime has no CDI device of that name", _NO_GPU_IN_CONTAINER, "runtime",
    ),
    "container-cgroup": ToolMeaning(
        "warning", "a running container lost its GPUs", "CUDA fails in that container until it is started again.",
        "lost",
    ),
    "container-nvml": ToolMeaning("error", "libnvidia-container cannot use the driver", _NO_GPU_IN_CONTAINER, "driver"),
    **GPU_MEANINGS,
    **CLUSTER_MEANINGS,
    **NETWORK_MEANINGS,
    **MONITORING_MEANINGS,
    **WORDS_MEANINGS,
}  # fmt: skip
