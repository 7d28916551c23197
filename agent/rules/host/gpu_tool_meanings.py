"""What codes mean that tools, libraries and installers state about accelerators, and health checks about them."""

from __future__ import annotations

from agent.rules.host.meaning import ToolMeaning

_BAD_MEMORY = "An uncorrectable error ends the job that meets it; others can meet the same memory."
_COLLECTIVES = "Collectives wait for the slowest link; a link that is gone can end jobs with NCCL errors."
_NOT_STARTED = "No program uses these GPUs until it is repaired."
_ONE_PROGRAM = "The program ended; others on other devices go on."
_MODULES = "Without the module for this kernel no program uses the GPUs."
_NO_CHANGE = "Nothing was changed on the GPU."
GPU_MEANINGS = {
    "gpu-off-bus": ToolMeaning(
        "error", "a health check states that a GPU has fallen off the bus", "Jobs on it end; no new one gets it.",
        "missing",
    ),
    "dcgm-recovery": ToolMeaning(
        "error", "a health check states what a GPU needs to recover from a fault",
        "Until then jobs on it can end or hang.", "reset",
    ),
    "dcgm-memory": ToolMeaning("error", "a health check states memory errors of a GPU", _BAD_MEMORY, "memory"),
    "fabric-state": ToolMeaning(
        "error", "a health check states a fault of a GPU's NVLink fabric", _COLLECTIVES, "fabric",
    ),
    "cc-not-ready": ToolMeaning(
        "warning", "confidential computing is on, and the GPUs are not set ready",
        "No CUDA program starts until the guest attested the GPUs and set them ready.", "confidential",
    ),
    "fabric-partition": ToolMeaning(
        "error", "the NVLink controller reports a partition of the rack that is not whole", _COLLECTIVES, "fabric",
    ),
    "dcgm-switch": ToolMeaning("error", "a health check states a fault of an NVSwitch", _COLLECTIVES, "nvlink"),
    "dcgm-link": ToolMeaning("error", "a health check states a fault of NVLinks", _COLLECTIVES, "nvlink"),
    "dcgm-peer": ToolMeaning(
        "error", "a diagnostic wrote from one GPU to another, and other data arrived",
        "Jobs over this pair compute wrong results.", "measured",
    ),
    "imex-unhealthy": ToolMeaning(
        "info", "DCGM finds no IMEX daemon that is ready",
        "Jobs that use NVLink between nodes need it; a single server does not, and with ComputeDomains it runs while "
        "one is active.", "imex", "low",
    ),
    "dcgm-memory-pending": ToolMeaning(
        "warning", "a health check states memory of a GPU that waits for a reset to be replaced",
        "Until then jobs can meet the bad memory.", "memory",
    ),
    "dcgm-pcie": ToolMeaning(
        "warning", "a health check states a PCIe link of a GPU that is too slow, or repeats packets",
        "Copies between host and GPU, and traffic with NICs, are slower.", "measured",
    ),
    "stated-link": ToolMeaning(
        "warning", "the text states a PCIe link below what it could carry",
        "What it means depends on the slot and on what ran: an idle GPU slows its link, and many slots have fewer "
        "lanes than cards.", "measured", "low",
    ),
    "dcgm-hot": ToolMeaning(
        "warning", "a health check states a GPU that is slowed down by heat or power",
        "A job runs at the pace of its slowest GPU.", "slowdown",
    ),
    "dcgm-slow": ToolMeaning(
        "warning", "a diagnostic measured less of a GPU than it must reach",
        "What it means depends on what else ran: a job, a power limit or low clocks have the same result.",
        "diagnostic", "low",
    ),
    "dcgm-unreadable": ToolMeaning(
        "warning", "a health check could not read or open a GPU",
        "What it means depends on the GPU: it may be lost, in use exclusively, or in MIG mode.", "cuda-hidden", "low",
    ),
    "dcgm-field": ToolMeaning(
        "warning", "a health check counted more than it allows",
        "What it means depends on the counter, which the line names.", "diagnostic", "low",
    ),
    "inforom": ToolMeaning(
        "warning", "the InfoROM of a GPU is corrupt",
        "The GPU computes; its serial number, error counts and settings can be lost at each start.", "inforom",
    ),
    "dcgm-settings": ToolMeaning(
        "info", "a diagnostic names a setting or a program that is in its way", "It affects the diagnostic first.",
        "settings",
    ),
    "driver-nvlink-off": ToolMeaning(
        "warning", "an option of the NVIDIA driver switches NVLink off",
        "None on cards without a bridge, and where each program has one GPU alone. Else GPUs exchange data over PCIe, "
        "at a tenth of the bandwidth.", "driver-option", "low",
    ),
    "driver-excluded": ToolMeaning(
        "info", "an option of the NVIDIA driver leaves GPUs out", "No program sees these GPUs.", "driver-option",
    ),
    "persistence-off": ToolMeaning(
        "info", "nvidia-smi notes that persistence mode is off", "The driver starts the GPU again for each program.",
        "settings",
    ),
    "dcgm-unreachable": ToolMeaning(
        "info", "dcgmi cannot reach its host engine", "GPUs are not monitored from here; jobs are not affected.",
        "hostengine",
    ),
    "dcgm-refused": ToolMeaning(
        "info", "DCGM refused a request", "Its answer is missing; jobs are not affected.", "hostengine", "low",
    ),
    "nvml-lost": ToolMeaning(
        "error", "NVML states that a GPU is lost", "Jobs on it end; no new one gets it until the node is rebooted.",
        "missing",
    ),
    "gpu-silent": ToolMeaning(
        "error", "nvidia-smi cannot read a GPU", "The GPU does not answer its driver: jobs on it hang or end.", "reset",
    ),
    "driver-unusable": ToolMeaning(
        "warning", "NVML cannot be used where the program ran",
        "What it means depends on where that was: a container, a user without rights, or a host without the library.",
        "cuda-hidden", "low",
    ),
    "driver-unreachable": ToolMeaning(
        "error", "nvidia-smi cannot reach the NVIDIA driver",
        "Where it ran, no program uses a GPU: the driver is not loaded, or does not fit.", "driver",
    ),
    "gpu-not-reset": ToolMeaning(
        "warning", "a GPU could not be reset", "What the reset was to repair is still there.", "reset-refused", "low",
    ),
    "mig-refused": ToolMeaning(
        "warning", "MIG is not set up as it was asked for", "GPU instances are missing, or the old ones stay.", "mig",
    ),
    "smi-refused": ToolMeaning("info", "nvidia-smi could not change a setting", _NO_CHANGE, "refused", "low"),
    "installer-nouveau": ToolMeaning(
        "warning", "the NVIDIA driver was not installed, as nouveau drives the GPU", _NOT_STARTED, "nouveau",
    ),
    "module-unsigned": ToolMeaning(
        "warning", "the kernel refuses the driver's module: it is not signed with a key that it trusts", _MODULES,
        "signing",
    ),
    "driver-unsupported": ToolMeaning(
        "warning", "this release or flavor of the NVIDIA driver does not support a GPU of the host", _NOT_STARTED,
        "flavor",
    ),
    "driver-too-old": ToolMeaning(
        "warning", "a plugin needs a newer NVIDIA driver", "The plugin ends; what it offers is missing on the node.",
        "image",
    ),
    "installer-failed": ToolMeaning(
        "warning", "the installation of the NVIDIA driver failed", "The host has no driver, or parts of two releases.",
        "module", "low",
    ),
    "gdrcopy-old": ToolMeaning(
        "warning", "the module of GDRCopy is older than its library", "GDRCopy is not used.", "gdrcopy",
    ),
    "gdrcopy-pages": ToolMeaning(
        "warning", "GDRCopy could not map memory of a GPU",
        "What it means depends on the GPU: BAR1 is full or small, or the memory is not of a kind that can be mapped.",
        "gdrcopy", "low",
    ),
    "gds-unloaded": ToolMeaning(
        "warning", "GPUDirect Storage finds no driver: nvidia_fs is not loaded",
        "Reads go through the host's memory, or fail where that is not allowed.", "gds",
    ),
    "cuda-not-ready": ToolMeaning(
        "error", "CUDA is not ready: the NVLink fabric is not set up (error 802)", _NOT_STARTED, "fabric",
    ),
    "cuda-contained": ToolMeaning(
        "warning", "CUDA met an error of a peer's memory or of the hardware (contained)",
        "What it means depends on the kernel log of all GPUs of the job: an Xid of that time names the cause.",
        "cuda-hardware", "low",
    ),
    "cuda-external": ToolMeaning(
        "warning", "CUDA met a failure of another device", "The device at the other end, such as a NIC, failed.",
        "cuda-hardware", "low",
    ),
    "cuda-shared": ToolMeaning(
        "warning", "a program may not share GPU memory between nodes",
        "It needs a channel of IMEX (/dev/nvidia-caps-imex-channels): without it NVLink is used within the node alone.",
        "imex", "low",
    ),
    "cuda-peer": ToolMeaning(
        "info", "CUDA has no direct access between two GPUs",
        "What it means depends on the GPUs: consumer cards have none; between others ACS, the IOMMU or MIG is in the "
        "way.", "measured", "low",
    ),
    "cuda-mps": ToolMeaning(
        "info", "the MPS server does not take the program", "Programs of this user wait or end until the server runs.",
        "program", "low",
    ),
    "cuda-image": ToolMeaning(
        "info", "a program has no code for this GPU", "That program does not run; others do.", "image",
    ),
    "cuda-program": ToolMeaning(
        "info", "a program accessed memory that it may not, or ended on a GPU",
        "A fault of the program more often than of the GPU. An Xid other than 13, 31 or 43 of that time is of the GPU.",
        "program", "low",
    ),
    "amd-not-passed": ToolMeaning(
        "error", "there is no /dev/kfd where the program ran", "No program there sees an AMD GPU.", "rights",
    ),
    "amd-kfd-refused": ToolMeaning(
        "error", "amdgpu is loaded, and refuses to open /dev/kfd", "No program there uses an AMD GPU.", "kfd",
    ),
    "amd-no-rights": ToolMeaning(
        "warning", "a user may not open the GPUs (/dev/kfd)", "Programs of this user see no GPU.", "rights",
    ),
    "amd-hang": ToolMeaning("error", "a GPU hung, and its program ended", _ONE_PROGRAM, "amd-fault"),
    "amd-fault": ToolMeaning(
        "warning", "a program on a GPU accessed memory that is not there, or met a hardware exception",
        "A fault of the program more often than of the GPU; with ACS or a translating IOMMU it can be direct traffic.",
        "amd-fault", "low",
    ),
    "amd-restart": ToolMeaning(
        "error", "amdgpu did not start again after the memory partition was changed",
        "No GPU of the node can be used until the driver starts.", "amd-partition",
    ),
    "amd-page-list": ToolMeaning(
        "warning", "the list of bad memory pages that a GPU keeps cannot be read",
        "Pages that were taken out of use may be in use again.", "amd-pages",
    ),
    "amd-unanswered": ToolMeaning(
        "warning", "the driver or firmware of a GPU did not answer a tool",
        "What it means depends on whether others answer: a GPU that hangs ends jobs.", "accelerator", "low",
    ),
    "amd-setting-busy": ToolMeaning(
        "info", "a setting was refused, because a GPU is in use", "The setting is as before.", "amd-partition", "low",
    ),
    "amd-resources": ToolMeaning(
        "info", "the ROCm runtime could not allocate what a program asked for",
        "What it means depends on the host: memory, /dev/shm of a container, limits, or too many processes.",
        "rights", "low",
    ),
    "hip-no-device": ToolMeaning(
        "warning", "HIP finds no GPU",
        "It depends on where it ran: HIP_VISIBLE_DEVICES, a container without /dev/kfd, or no loaded driver.",
        "unloaded", "low",
    ),
    "gaudi-device": ToolMeaning(
        "warning", "a program could not get a Gaudi card", "It is in use, or failed to start: the kernel log names it.",
        "accelerator", "low",
    ),
    "gaudi-port": ToolMeaning(
        "warning", "a port of a Gaudi card is down", "Collectives of jobs over this port fail or hang.", "gaudi",
    ),
    "npu-memory": ToolMeaning("error", "an NPU met uncorrectable errors of its memory", _BAD_MEMORY, "npu"),
    "npu-device": ToolMeaning(
        "warning", "a program could not open an NPU",
        "What it means depends on the NPU: in use, not passed to the container, a driver of another release, or a "
        "fault.", "accelerator", "low",
    ),
    "npu-in-use": ToolMeaning(
        "warning", "npu-smi cannot open an NPU, as another container or process has it",
        "No program sees the NPUs where it ran; those that have them go on.", "accelerator",
    ),
    "npu-busy": ToolMeaning(
        "warning", "an earlier process still has the NPU's network", "The job does not start until it ends.",
        "accelerator",
    ),
    "neuron-memory": ToolMeaning(
        "error", "a Neuron device met uncorrectable errors of its memory", _BAD_MEMORY, "accelerator",
    ),
    "neuron-hardware": ToolMeaning(
        "error", "a Neuron device met an error of its hardware", _ONE_PROGRAM, "accelerator",
    ),
    "neuron-busy": ToolMeaning(
        "warning", "a program could not get the Neuron cores that it asked for",
        "Another process has them, or NEURON_RT_NUM_CORES asks for more than there are.", "accelerator", "low",
    ),
    "neuron-hang": ToolMeaning(
        "warning", "a Neuron device did not finish in time",
        "What it means depends on the job: one worker that waits for another one that ended has the same result.",
        "accelerator", "low",
    ),
}  # fmt: skip
