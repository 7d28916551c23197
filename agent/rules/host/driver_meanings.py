"""What each sentence of a driver means: one row per code of `probes/kernel/sentences.py`.

Of several sentences about one device the first in this order is the cause.
"""

from agent.rules.host.host_meanings import HOST_MEANINGS
from agent.rules.host.meaning import Meaning
from agent.rules.host.network_driver_meanings import FAMILIES, NETWORK_MEANINGS

_NO_GDS = "Reads from storage into GPU memory go through the host's memory."
_NO_GPU = "The GPU cannot be used: no job on this node sees it."
MEANINGS = {
    "open-modules": Meaning("critical", "this GPU needs the open kernel modules; the closed ones are loaded", _NO_GPU),
    "closed-modules": Meaning("critical", "the open kernel modules do not support this GPU", _NO_GPU),
    "power-cable": Meaning("critical", "a power cable of the card is not connected", _NO_GPU),
    "unsupported-gpu": Meaning("critical", "this release of the NVIDIA driver does not support the GPU", _NO_GPU),
    "bar-missing": Meaning("critical", "the BIOS gave the GPU no valid memory region (BAR)", _NO_GPU),
    "registers-taken": Meaning("critical", "another driver or region holds the registers of the GPU", _NO_GPU),
    "region-taken": Meaning(
        "warning", "another driver or the firmware holds one of its memory regions",
        "The driver cannot use the device, or the virtual machine that it is given to.", True, "medium",
    ),
    "reserved-memory": Meaning(
        "warning", "the platform reserves memory for it (RMRR), so that no virtual machine can have it",
        "A virtual machine that it is given to does not start.",
    ),
    "no-interrupt": Meaning("critical", "the GPU has no interrupt", _NO_GPU),
    "needs-reset": Meaning(
        "critical", "an earlier start of its firmware still holds its memory (WPR2): it needs a reset", _NO_GPU,
    ),
    "memory-online": Meaning(
        "critical", "the kernel does not put the GPU's memory online as movable (auto_online_blocks)", _NO_GPU,
    ),
    "gsp-firmware-missing": Meaning("critical", "the firmware of its GSP is not installed with the driver", _NO_GPU),
    "inaccessible": Meaning("critical", "its config space cannot be read: it sleeps, or is off the bus"),
    "legacy-gpu": Meaning("warning", "the loaded driver ignores this GPU: it needs an older release", _NO_GPU),
    "reset-unanswered": Meaning("critical", "it did not come back after a reset, or did not answer at boot"),
    "gpu-not-back": Meaning("critical", "a GPU did not come back on the bus after a reset", _NO_GPU),
    "amd-lost": Meaning("critical", "the GPU fell off the bus", _NO_GPU, False),
    "held": Meaning("warning", "another driver holds NVIDIA devices", "They run no jobs of this host.", True, "medium"),
    "api-mismatch": Meaning(
        "error", "a program uses an NVIDIA library of another version than the loaded module",
        "CUDA fails at once in programs that use that library: of the host, or of one container.", True, "medium",
    ),
    "module-versions": Meaning(
        "error", "the loaded NVIDIA modules are of two versions", "Programs that need both modules fail.",
    ),
    "module-symbols": Meaning("error", "a driver module does not fit the other loaded modules"),
    "module-foreign": Meaning(
        "error", "a module that uses RDMA was built for another RDMA stack than the loaded one",
        "What it drives, such as storage over RDMA, does not start.",
    ),
    "module-kernel": Meaning("error", "a driver module was built for another kernel"),
    "module-unsigned": Meaning(
        "warning", "the kernel refused a module without a valid signature (secure boot)",
        "If it is the driver of a GPU or NIC, the device cannot be used; the line does not name the module.",
        True, "medium",
    ),
    "firmware-missing": Meaning("critical", "firmware that amdgpu needs is not installed", alone=False),
    "no-atomics": Meaning("error", "PCIe atomics are not available to the GPU, so it computes nothing (ROCm)", _NO_GPU),
    "limits": Meaning(
        "error", "the NIC has no more resources for new memory keys, queues or connections",
        "New registrations of memory and new connections fail: jobs that start now stop with an error.", False,
    ),
    "no-mkey": Meaning(
        "error", "the driver could not create memory keys: not enough memory or none left in the NIC",
        "Registration of memory fails: jobs that start now stop with an error.", False,
    ),
    "rdma-port": Meaning("error", "RDMA did not start on its port", "No job can use RDMA on this NIC."),
    "rdma-probe": Meaning("error", "RDMA did not start on a function of the NIC", "No job can use RDMA on it."),
    "interface-probe": Meaning(
        "error", "the driver made no network interface of a function of the NIC", "No job can use that port.",
    ),
    "module-refused": Meaning("warning", "the NIC refuses the module or cable in its port", "It has no link.", False),
    "nouveau": Meaning(
        "warning", "nouveau drives a GPU that is made for computing",
        "nouveau runs no CUDA, and the NVIDIA driver cannot take the GPU.", True, "medium",
    ),
    "safe-mode": Meaning(
        "error", "it runs in safe mode: the package of its pipeline (DDP) was not loaded",
        "Safe mode has one queue and no RDMA.", False,
    ),
    "driver-too-old": Meaning("error", "its firmware is newer than its driver, which stopped"),
    "iommu-fault": Meaning(
        "warning", "the IOMMU blocked DMA of this device",
        "Data of that transfer was lost: hangs and wrong data in GPU-to-GPU and GPUDirect transfers.", False,
    ),
    "iommu-timeout": Meaning(
        "warning", "the IOMMU waits in vain for a device",
        "Transfers of that device hang, and then programs and tools that use it; the line does not name the device.",
        False, "medium",
    ),
    "amd-power-controller": Meaning(
        "error", "the GPU's power controller (SMU) no longer answers",
        "Clocks and temperatures are not controlled, and the next reset of the GPU fails or hangs.", False, "medium",
    ),
    "kfd-not-added": Meaning(
        "error", "kfd did not take the GPU, so it computes nothing (ROCm)", _NO_GPU, True, "medium", alone=False,
    ),
    "amd-queues-stuck": Meaning(
        "error", "the GPU does not give up the work of its queues",
        "Jobs on the GPU hang; the driver resets it where it can.", False, "medium", alone=False,
    ),
    "amd-ring-timeout": Meaning(
        "warning", "work on the GPU did not end in time", "The job on it was ended.", False, "medium", alone=False,
    ),
    "amd-page-fault": Meaning(
        "info", "a program accessed GPU memory that it has not mapped, mostly an error of the program",
        "That program ends with an error.", False,
    ),
    "bar-unassigned": Meaning("error", "the kernel found no memory window for one of its regions", confidence="medium"),
    "vf-bar": Meaning(
        "info", "the kernel found no memory window for its virtual functions (SR-IOV)",
        "None, unless virtual functions are to be used: the kernel then cannot create them.", False,
    ),
    "queue-stalled": Meaning(
        "warning", "a transmit queue of the port stalled, and its driver resets it",
        "Traffic through this port pauses, and connections of jobs time out.", False, "medium", alone=False,
    ),
    "ipoib-join": Meaning(
        "info", "IPoIB could not join a multicast group: a setting of the partition, or the subnet manager",
        "IP over this port may not reach other nodes; RDMA does not need it.", False, "medium",
    ),
    "gaudi-heartbeat": Meaning("critical", "its firmware no longer answers (heartbeat)", _NO_GPU, False),
    "switch-versions": Meaning(
        "error", "a program (fabric manager) uses an NVSwitch library of another version than the loaded module",
        "The NVLink fabric is not managed: CUDA ends with error 802.", False, "medium",
    ),
    "switch-not-started": Meaning(
        "critical", "an NVSwitch did not start",
        "The fabric manager cannot set up the board: CUDA ends with error 802.", True, "medium",
    ),
    "nvlink-degraded": Meaning(
        "error", "after an error on one NVLink the driver uses none of the GPU's NVLinks",
        "Jobs that use NVLink on this GPU end, until it is reset.", False, "medium",
    ),
    "removed-in-use": Meaning(
        "error", "it was removed from the bus while programs use it",
        "The removal waits until these programs end, and tools that list devices wait with it.", False,
    ),
    "uvm-assert": Meaning(
        "warning", "the module for CUDA's memory (nvidia-uvm) met an internal error",
        "Programs that use GPUs may fail until the node is rebooted.", False, "medium",
    ),
    "gds-module": Meaning(
        "warning", "GPUDirect Storage does not fit a module of storage or RDMA", _NO_GDS, False, "medium",
    ),
    "gds-pin": Meaning("warning", "GPUDirect Storage could not pin GPU memory", _NO_GDS, False, "medium"),
    "vfio-memlock": Meaning(
        "warning", "a virtual machine may lock less memory than it needs for its devices",
        "That virtual machine does not start, or loses DMA.", False, "medium",
    ),
    "firmware-recovery": Meaning(
        "error", "its firmware is in recovery mode", "The NIC works with limited functions and without RDMA.", False,
    ),
    "pause-storm": Meaning(
        "warning", "the NIC detected a storm of pause frames on its port",
        "Lossless traffic of this port stands still: jobs hang or time out.", False,
    ),
    "doorbells": Meaning(
        "warning", "the NIC dropped requests of programs (doorbells)", "Sends of a job may wait until they time out.",
        False, "medium",
    ),
    "nic-hot": Meaning(
        "error", "its chip is above a temperature limit", "It slows down or shuts down: its links go down.", False,
    ),
    "amd-overheat": Meaning(
        "critical", "the GPU is above its highest temperature", "The GPU or the whole server shuts down.", False,
    ),
    "amd-bad-pages-near": Meaning(
        "warning", "the bad pages of its memory are above 90% of the limit",
        "At the limit the driver does not start the GPU.", False,
    ),
    "gaudi-overheat": Meaning(
        "critical", "its memory (HBM) is above its highest temperature", "The driver resets it: its job ends.", False,
    ),
    "gaudi-memory": Meaning(
        "error", "its memory (HBM) reports a critical error", "The driver resets it: its job ends.", False,
    ),
    "intel-wedged": Meaning(
        "critical", "the driver took the Intel GPU out of use (wedged): a reset did not bring it back", _NO_GPU, False,
    ),
    "intel-survivability": Meaning(
        "critical", "the Intel GPU is in survivability mode: its firmware did not start, and waits for a new one",
        _NO_GPU,
    ),
    "intel-memory": Meaning("critical", "the firmware did not start the memory of the Intel GPU", _NO_GPU),
    "intel-small-bar": Meaning(
        "warning", "the CPU, NICs and other GPUs reach a part of the memory of the Intel GPU alone: its BAR is small",
        "Copies are slower, and peers over PCIe may not reach it. Resizable BAR is off in the BIOS.", False, "medium",
        alone=False,
    ),
    "intel-firmware": Meaning("critical", "the scheduler (GuC) of the Intel GPU did not start", _NO_GPU, alone=False),
    "intel-reset": Meaning(
        "warning", "the driver reset a part of the Intel GPU: work on it did not end", "The job on it was ended.",
        False, "medium", alone=False,
    ),
    "intel-page-fault": Meaning(
        "info", "a program accessed memory of the Intel GPU that it has not mapped, mostly an error of the program",
        "That program ends with an error.", False, "medium", alone=False,
    ),
    "neuron-dma": Meaning(
        "warning", "a DMA transfer of the accelerator did not end", "The job on it was ended.", False, "medium",
    ),
    "neuron-miswired": Meaning(
        "error", "a cable to the next server of the UltraServer ends at another accelerator",
        "Jobs of several servers do not start.", False,
    ),
    "gpu-memory-path": Meaning(
        "critical", "the driver reads other data from the GPU's memory than it wrote", _NO_GPU,
        False, "medium", alone=False,
    ),
    "gpu-internal-error": Meaning(
        "error", "a processor of the GPU reports an error of its hardware",
        "Jobs on the GPU end or hang, until it is reset.", False, "medium", alone=False,
    ),
    "gpu-locked": Meaning(
        "warning", "work on a GPU does not end (watchdog of the driver)", "The job on it hangs until it is ended.",
        False, "medium", alone=False,
    ),
    "nvlink-not-trained": Meaning(
        "error", "an NVLink of a GPU does not come up", "NCCL uses fewer NVLinks, or the fabric refuses the GPU.",
        False, "medium", alone=False,
    ),
    "confidential-compute": Meaning(
        "critical", "confidential computing met a fatal error: encrypted transfers to the GPU fail", _NO_GPU,
        False, "medium",
    ),
    "memory-unreachable": Meaning(
        "error", "memory of the host is at an address that the GPU cannot reach",
        "The driver cannot start the GPU, or programs end when they allocate memory.", True, "medium",
    ),
    "fabric-service-ended": Meaning(
        "error", "the fabric manager or IMEX ended while programs used NVLink, and the driver ended these programs",
        "Jobs that use NVLink across it end, and new ones fail until the service runs.", False, "medium",
    ),
    "vgpu-versions": Meaning(
        "error", "the driver in this virtual machine does not fit the vGPU driver of its host", _NO_GPU,
    ),
    "no-gpu-found": Meaning(
        "info", "the NVIDIA driver found no GPU", "None on a node that has none.", True, "low", alone=False,
    ),
    "gpu-excluded": Meaning(
        "info", "the GPU is excluded from use by a setting of the driver", "No job on this node sees it.",
    ),
    "switch-silent": Meaning(
        "error", "the driver switched off the interrupts of an NVSwitch: too many came",
        "Errors of this switch are no longer reported, and its links no longer managed.", False, "medium",
    ),
    "link-not-trained": Meaning(
        "error", "the PCIe link below it does not come up at its speed",
        "The device below it is missing, or runs at the lowest speed.", False, "medium", alone=False,
    ),
    "payload-mismatch": Meaning(
        "warning", "its largest packet (Max Payload Size) differs from that of the port above it",
        "Larger packets are refused: DMA fails, and PCIe errors are reported.", False, "medium",
    ),
    "iommu-not-started": Meaning(
        "info", "the IOMMU, or its remapping of interrupts, did not start",
        "Devices cannot be given to virtual machines; a CPU number above 255 gets no interrupts.", False, "medium",
    ),
    "amd-poison": Meaning(
        "error", "data in the GPU's memory was bad (poison)", "The program that used it was ended, or the GPU reset.",
        False, "medium", alone=False,
    ),
    "amd-internal-error": Meaning(
        "error", "a part of the GPU reports an error of its hardware", "Jobs on the GPU end, until it is reset.",
        False, "medium", alone=False,
    ),
    "amd-ras-table": Meaning(
        "warning", "the table of bad pages of its memory could not be read or written",
        "Bad pages are used again after the next start of the driver.", False, "medium",
    ),
    "amd-interrupts": Meaning(
        "warning", "interrupts of the GPU do not arrive: the driver polls for the end of work",
        "Work on the GPU is slow.", False, "medium",
    ),
    "amd-partition": Meaning(
        "warning", "the partitions of the GPU (compute, memory) do not fit each other",
        "The GPU has other partitions than jobs expect, or none.", False, "medium",
    ),
    "amd-host-silent": Meaning(
        "error", "the host of this virtual machine does not answer about the GPU", _NO_GPU, True, "medium",
    ),
    "amd-oversubscribed": Meaning(
        "info", "programs created more queues than the GPU can run at once", "They take turns: work is slower.",
        False, "medium",
    ),
    "gaudi-shut-down": Meaning(
        "critical", "its board shut it down (CPLD): power or temperature", "The driver resets it: its job ends.",
        False, "medium",
    ),
    "gaudi-program": Meaning(
        "info", "an engine accessed memory that the program has not mapped, mostly an error of the program",
        "That program ends with an error.", False, "medium", alone=False,
    ),
    "neuron-unreadable": Meaning(
        "error", "an accelerator does not answer reads of its registers", _NO_GPU, False, "medium",
    ),
    "neuron-reset-failed": Meaning("error", "a reset of the accelerator failed", _NO_GPU, False, "medium"),
    "neuron-memory": Meaning(
        "error", "memory (HBM) of the accelerator could not be cleared", "Jobs on it do not start.", False, "medium",
    ),
    "neuron-links": Meaning(
        "error", "a link to the next server of the UltraServer does not work", "Jobs of several servers do not start.",
        False, "medium",
    ),
    "gsp-silent": Meaning(
        "error", "the GPU's own processor (GSP) stopped answering",
        "Jobs on the GPU hang, and nvidia-smi hangs or reports ERR!.", False, "medium", alone=False,
    ),
    "gsp-not-started": Meaning("critical", "the GPU's own processor (GSP) did not start", _NO_GPU, alone=False),
    "gfw-boot": Meaning("critical", "the firmware of the GPU did not finish its boot (GFW)", _NO_GPU, alone=False),
    "bar-invalid": Meaning(
        "critical", "the BIOS or the hypervisor gave a GPU no valid memory region (BAR)", _NO_GPU, alone=False,
    ),
    "probe-failed": Meaning(
        "critical", "the NVIDIA driver could not start its GPUs and does not state why", _NO_GPU, alone=False,
    ),
    "amd-block": Meaning("critical", "a part of the AMD GPU did not start", _NO_GPU, alone=False),
    "gaudi-boot": Meaning("error", "its firmware does not finish its boot", _NO_GPU, True, "medium", alone=False),
    "device-unusable": Meaning("critical", "the driver took the accelerator out of use", _NO_GPU, alone=False),
    "gaudi-reset": Meaning(
        "warning", "the driver reset the accelerator", "The job on it was ended.", False, "medium", alone=False,
    ),
    **HOST_MEANINGS,
    **NETWORK_MEANINGS,
    "probe-error": Meaning("warning", "its driver failed to start", alone=False),
    **FAMILIES,
}  # fmt: skip
