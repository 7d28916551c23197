"""Sentences of tools, libraries and installers for accelerators of all makers.

Sources: NVIDIA/DCGM dcgmlib/dcgm_errors.h (4.x), dcgmi/; nvidia-smi (its manual, public threads);
NVIDIA/nvidia-installer; dkms; kmod; NVIDIA/gdrcopy src/; NVIDIA/nvbandwidth; NVIDIA/nccl-tests src/common.cu;
GPUDirect Storage (its troubleshooting guide); CUDA 13 driver_types.h; ROCm/rocminfo, ROCm/ROCR-Runtime hsa.h and
ROCm/clr rocdevice.cpp, ROCm/amdsmi; HabanaAI/hccl_demo and public threads of Gaudi, Ascend (aclrtSetDevice) and AWS
Neuron (nrt.h).
"""

from __future__ import annotations

from probes.text import RDMA_DEVICE
from probes.tool_reports.sentences.sentence import BDF, ToolSentence, row, rows_of

_GPU = r"GPU (?P<gpu>\d{1,3})\b"
_ANY_NUMBER = r"\d[\d.e+-]{0,20}"
_PART = (  # as people name it
    rf"\b(?:(?:GPU|gpu) ?#?(?P<gpu>\d{{1,3}})|{BDF}|(?P<part>{RDMA_DEVICE}|nvme\d{{1,3}}))\b"
)
_FEW_LANES, _ALL_LANES = r"(?:[xX][1248]|\b[1248][xX]|\b[1248] lanes)\b", r"(?:[xX]16|16[xX]|16(?: lanes)?)\b"
_SPEED = r"(?:(?:[Gg]en|[Gg]eneration|PCI[eE]) ?[1-6](?:\.0)?|\d{1,2}(?:\.\d)? ?GT/s)(?: ?[xX@]\d{1,2}[xX]?)?"
_NOT = r"[,;]? ?\(?(?:instead of|rather than|(?:and |but )?(?:expected|should be)):? (?:the |a |full |expected )?"
_BUSY = (
    r"(?:under (?:full |heavy |any )?load|while (?:busy|training|running)|during (?:training|the (?:job|benchmark)))"
)

_CODES = (  # of DCGM (DCGM_FR_...), by what they are about; the rest is reported by name
    ("gpu-off-bus", r"(?:GPU_)?FALLEN_OFF_BUS"),
    ("dcgm-memory",
     r"VOLATILE_DBE_DETECTED|UNCONTAINED_ERROR|ROW_REMAP_FAILURE|UNCORRECTABLE_ROW_REMAP|FAULTY_MEMORY|MEMORY_MISMATCH|"
     r"SRAM_THRESHOLD|L1TAG_MISCOMPARE|DBE_PENDING_PAGE_RETIREMENTS"),
    ("dcgm-memory-pending", r"PENDING_ROW_REMAP|PENDING_PAGE_RETIREMENTS|RETIRED_PAGES_\w{2,20}"),
    ("dcgm-link", r"NVLINK_(?:DOWN|CRC_\w{2,30}|ERROR_\w{2,20}|EFFECTIVE_BER_\w{2,20}|SYMBOL_BER_\w{2,20})"),
    ("dcgm-switch", r"NVSWITCH_\w{2,30}"),
    ("dcgm-recovery", r"GPU_RECOVERY_\w{2,30}"),
    ("fabric-state", r"FABRIC_\w{2,30}"),
    ("imex-unhealthy", r"IMEX_UNHEALTHY"),
)  # fmt: skip

DCGM_CODES: tuple[ToolSentence, ...] = tuple(
    row(code, rf"\bDCGM_FR_(?P<what>{names})\b(?:[^\n]{{0,80}}?\bGPU[: ]{{1,2}}(?P<gpu>\d{{1,3}})\b)?")
    for code, names in (*_CODES, ("dcgm-code", r"[A-Z][A-Z0-9_]{2,60}"))
)

DCGM: tuple[ToolSentence, ...] = (  # of checks and diagnostics; printed of faults alone
    row("dcgm-memory", r"(?P<what>\d{1,9} volatile double-bit ECC error)\(?s?\)? in " + _GPU),
    row("dcgm-memory",
        rf"{_GPU} (?P<what>had uncorrectable memory errors and row remapping failed|exceeded uncorrectable row remap "
        r"limit)"),
    row("dcgm-memory",
        r"(?P<what>SRAM Threshold Count exceeded|\d{1,12} faulty memory elements|memory mismatch was detected|"
        r"excess of \d{1,6} retired pages due to DBEs|double-bit ECC error has occur{1,2}ed)[^\n]{0,120}? "
        rf"(?:on |in ){_GPU}"),
    row("dcgm-memory",
        rf"Detected (?P<what>[1-9]\d{{0,12}} (?:ecc_dbe|retired_pages_dbe|row_remap_failure)\w{{0,30}}) for {_GPU}"),
    row("dcgm-memory",
        r"uncontained error \(XID 95\)|miscompare failure in the L1 cache|double-bit ECC error has violated"),
    row("dcgm-memory-pending",
        rf"{_GPU} (?P<what>had memory errors and row remappings are pending|had uncorrectable memory errors and "
        r"\d{1,6} rows were remapped)"),
    row("dcgm-memory-pending",
        r"(?P<what>pending retired page has been detected|or more retired pages have been detected|[Pp]ending page "
        rf"retirements together with a DBE were detected) (?:in|on) {_GPU}"),
    row("dcgm-memory-pending", rf"ECC memory for {_GPU} (?P<what>is in a pending state)"),
    row("dcgm-link",
        rf"{_GPU}'s NvLink (?P<what>link \d{{1,3}} is currently down)"),
    row("dcgm-link",
        rf"Detected \d{{1,18}} (?P<what>\w[\w ]{{1,40}} NvLink errors) on {_GPU}'s NVLink (?:\(should be 0\)|which "
        r"exceeds)"),
    row("dcgm-link",
        rf"(?P<what>(?:effective|symbol) BER {_ANY_NUMBER}) exceeds minimum threshold on {_GPU}'s NVLink"),
    row("dcgm-link", rf"NvLink errors found occur{{1,2}}ing per second on {_GPU}, (?P<what>exceeding the limit)"),
    row("dcgm-link", r"(?P<what>[Oo]nly \d{1,3} NvLinks are up out of the expected \d{1,3})"),
    row("dcgm-switch", r"Detected fatal NvSwitch (?P<what>SXID \d{3,6})"),
    row("dcgm-switch",
        r"(?P<what>(?:fatal|nonfatal) errors on NvSwitch \d{1,3} link \d{1,3}|N[Vv][Ss]witch (?:physical ID "
        r")?\d{1,3}'s NvLink (?:port )?\d{1,3} is (?:currently )?down)"),
    row("dcgm-pcie", rf"PCIe replays per minute for {_GPU}"),
    row("dcgm-pcie",
        rf"{_GPU} (?P<what>is running at PCI link (?:generation|width) \d{{1,2}}X?|host-side PCIe replay violation)"),
    row("dcgm-pcie", rf"Bandwidth of {_GPU} (?P<what>in direction \w{{1,12}} of [\d.]{{1,12}} did not exceed)"),
    row("dcgm-pcie", rf"Latency type \w{{1,20}} of {_GPU} (?P<what>value [\d.]{{1,12}} exceeded)"),
    row("dcgm-peer",
        rf"{_GPU} (?P<what>(?:was unsuccessfully written to|unsuccessfully wrote data) (?:by|to) GPU \d{{1,3}}(?: "
        r"over \w{2,8})? in a peer)"),
    row("dcgm-hot",
        rf"(?P<what>clocks event due to (?:thermal|power) violation) in {_GPU}"),
    row("dcgm-hot",
        rf"(?P<what>(?:[Tt]here were t|T)hermal violations totaling [\d.]{{1,12}} seconds)[^\n]{{0,60}} for ?{_GPU}"),
    row("dcgm-hot", rf"{_GPU} (?P<what>thermal margin -?\d{{1,3}}\s?°?C below HW slowdown)"),
    row("dcgm-hot", rf"Clocks event for {_GPU} (?P<what>because of clocks event)"),
    row("dcgm-hot", r"(?P<what>Temperature \d{1,4} of [\w ]{2,30} \d{1,3} exceeded user-specified maximum)"),
    row("dcgm-slow",
        r"(?P<what>Max (?:stress level|power) of [\d.]{1,12} did not reach desired)[^\n]{0,80}? for " + _GPU),
    row("dcgm-slow", rf"{_GPU} (?P<what>only achieved a memory bandwidth of [\d.]{{1,12}} GB/s)"),
    row("dcgm-slow", rf"Enforced power limit on {_GPU} set to (?P<what>[\d.]{{1,12}}), which is too low"),
    row("dcgm-unreadable",
        r"(?:Cannot reliably read the power usage|Could not query field \w{1,60}|stat \w{1,60}) for " + _GPU),
    row("dcgm-unreadable",
        rf"(?:corresponding CUDA device for|API call \w{{1,60}} failed for) {_GPU}: '(?P<what>[^'\n]{{2,80}})"),
    row("dcgm-unreadable",
        rf"{_GPU} failed to create a CUDA context(?P<what>[^\n]{{0,80}})|Cuda GPU (?P<cuda>\d{{1,3}}) is no longer "
        r"bound"),
    row("dcgm-unreadable", r"number of devices NVML returns is different than the number of devices in /dev"),
    row("dcgm-recovery",
        rf"{_GPU} (?P<what>requires a reset to recover|fault may have left the OS|requires peer-to-peer traffic to "
        r"be quiesced|operating at reduced capacity)"),
    row("gpu-off-bus", rf"{_GPU} has fallen off the bus"),
    row("fabric-state",
        r"Fabric Manager \(Cluster UUID: [\w-]{4,60}, Clique ID: \d{1,10}, Health Mask: \w{1,20}\): "
        r"(?P<what>[A-Z][^\n]{4,80})"),
    row("dcgm-pcie", rf"Detected (?P<what>[1-9]\d{{0,12}} pcie_replay\w{{0,20}}) for {_GPU}"),
    row("dcgm-field",
        r"Detected (?P<what>[1-9][\d.]{0,12} [a-z]{2,20}_\w{2,40}) for (?:GPU[: ](?P<gpu>\d{1,3})|\w{2,12}:\d{1,3})\b"),
    row("dcgm-field", r"(?P<what>[\w -]{3,60} met or exceeded the threshold of [\d.]{1,12} per second)"),
    row("inforom", rf"corrupt InfoROM has been detected in GPU (?P<gpu>\d{{1,3}})|infoROM is corrupted at gpu {BDF}"),
    row("dcgm-unreadable",
        r"Error (?:calling NVML|using CUDA) API (?P<what>\w{4,60}(?:: [^\n]{4,60})?)|Cannot get pointer to \w{4,60} "
        r"from libnvidia-ml"),
    row("dcgm-memory-pending", rf"More than \d{{1,9}} (?P<what>single-bit ECC error)\(?s?\)? detected in {_GPU}"),
    row("dcgm-slow", rf"(?P<what>\d{{1,12}} NaN-value memory elements) on {_GPU}"),
    row("dcgm-settings", rf"Persistence mode for {_GPU} is disabled"),
    row("dcgm-settings",
        r"processes with graphics contexts open running|Found driver on the denylist: (?P<what>\w{2,40})|Couldn't "
        r"allocate at least [\d.]{1,6}% of GPU memory"),
    row("metric-xid", r"XID error (?P<xid>\d{1,3}) has violated policy"),
)  # fmt: skip

PCIE_LINKS: tuple[ToolSentence, ...] = (  # what a person or a check states of a link: its part and two values
    row(
        "stated-link",
        r"(?<=[\"'`])LnkSta: ?(?P<what>Speed [\d.]{1,4}GT/s[^\n\"'`]{0,24}, Width x\d{1,2} \(downgraded\))",
    ),
    row("stated-link", rf"{_PART}[^\n.]{{0,80}}?(?P<what>{_FEW_LANES}{_NOT}{_ALL_LANES})"),
    row("stated-link", rf"{_PART}[^\n.]{{0,80}}?\b(?P<what>[xX][1248] of x16)\b"),
    row("stated-link", rf"{_PART}[^\n.]{{0,80}}?\b(?P<what>{_SPEED}{_NOT}(?:{_SPEED}|[1-6]\.0))"),
    row("stated-link", rf"{_PART}[^\n.]{{0,80}}?\b(?P<what>[Gg]en ?[12]\b(?: ?[xX]\d{{1,2}})? {_BUSY})"),
)

STATES: tuple[ToolSentence, ...] = (  # of what makes GPUs ready, as its manager or a health check prints it
    row("cc-not-ready", r"Confidential Compute GPUs? Ready state: *(?P<what>not[- ]ready)"),
    row("fabric-state",
        r"fabric state is not healthy\b[^\n]{0,80}?GPU (?P<part>GPU-[0-9a-f-]{8,36}): "
        r"(?P<what>state=[A-Z][\w ]{3,40})"),
    row("fabric-partition",
        r"^\d{1,5} {2,}(?P<what>[\w.-]{1,60} {2,20}\d{1,4} {1,20}(?:DEGRADED|UNHEALTHY)\w{0,30})\b"),
)  # fmt: skip

NVIDIA: tuple[ToolSentence, ...] = (
    *rows_of(
        "nvidia-smi",
        ("driver-unusable",
         r"^Failed to initialize NVML: (?P<what>GPU access blocked by the operating system|Insufficient Permissions)"),
        ("driver-unusable", r"^NVIDIA-SMI couldn't find (?P<what>libnvidia-ml\.so)"),
        ("gpu-not-reset",
         rf"^GPU {BDF}: (?P<what>(?:Unknown Error|In use by another client|Timeout)[^\n]{{0,40}})"),
        ("gpu-not-reset",
         rf"^Unable to reset this GPU|GPU Reset couldn't run because GPU {BDF} (?P<what>[^\n]{{4,60}})|GPUs could "
         r"not be reset"),
        ("gpu-not-reset", rf"^GPU {BDF} is currently in use by another process"),
        ("mig-refused",
         rf"^Unable to (?:enable|disable) MIG Mode for GPU {BDF}: ?(?P<what>[A-Z][\w ]{{4,60}})"),
        ("mig-refused", rf"^Warning: MIG mode is in (?P<what>pending (?:en|dis)able) state for GPU {BDF}"),
        ("mig-refused",
         r"^(?:Unable|Failed) to (?P<what>(?:create|destroy) (?:a )?(?:GPU|compute) instance)[^\n]{0,40}? (?:on |"
         r"from |GPU instance id \d{1,3} )GPU (?P<gpu>\d{1,3})\b"),
        ("smi-refused",
         rf"^(?:Unable to set|Setting|Changing|Resetting)[^\n]{{2,60}} for GPU:? {BDF}(?P<what>[^\n]{{0,60}})"),
        ("smi-refused",
         rf"^(?:Resetting) GPU {BDF} is not supported|^Setting [\w ]{{4,40}} is not supported for GPU "
         rf"{BDF.replace('bdf', 'other')}"),
        ("smi-refused", r"^Failed to (?P<what>\w[\w ]{2,40}: Insufficient Permissions)"),
        ("persistence-off", rf"^Warning: persistence mode is disabled on device {BDF}"),
        ("gpu-silent", rf"^GPU {BDF}: (?P<what>GPU is lost)"),
        ("gpu-silent",
         r"^Failed to (?:get device handle for gpu (?P<gpu>\d{1,3}): |retrieve nvlink information: "
         r")(?P<what>[A-Z][\w ]{4,40})"),
    ),
    *rows_of(
        "dcgmi",
        ("dcgm-unreachable",
         r"Unable to connect to host engine|unable to establish a connection to the specified host|Host engine "
         r"connection invalid"),
        ("dcgm-refused", r"[Pp]rofiling (?:module returned an unrecoverable error|is not supported for this group)"),
        ("dcgm-refused",
         r"^Error: (?P<what>Health watches not enabled|Unable to retrieve NvLink link status|Unable to (?:get|set|"
         r"start) [^\n]{4,80})"),
        ("dcgm-refused", r"Error when executing the diagnostic(?P<what>[^\n]{0,80})|Unable to set field watch"),
    ),
    *rows_of(
        "nvidia-installer",
        ("installer-nouveau", r"Nouveau kernel driver is currently in use by your system"),
        ("driver-in-use",
         r"An NVIDIA kernel module '(?P<what>[\w-]{4,20})' appears to be already loaded|rmmod: ERROR: Module "
         r"(?P<module>nvidia\w{0,12}) is in use|FATAL: Module (?P<name>nvidia\w{0,12}) is in use"),
        ("module-unsigned",
         r"kernel module failed to load[^\n]{0,20} because it was not signed by a key that is trusted"),
        ("module-not-built",
         r"Your kernel headers for kernel (?P<what>\S{3,80}) cannot be found|Unable to find the kernel source tree "
         r"for the currently|The kernel header file '/lib/modules/(?P<kernel>[^/\n]{3,60})/[^'\n]{4,120}' does not "
         r"exist"),
        ("module-not-built",
         r"Failed to run `\S{0,40}dkms build[^`\n]{0,120}-k (?P<what>[\w.-]{3,60})|Missing the module source "
         r"directory|Unable to locate package (?P<package>linux-headers-[\w.-]{3,60})|Diff between built and "
         r"installed module!|Could not resolve Linux kernel version"),
        ("module-not-built", r"depmod: ERROR: could not open directory (?P<what>/lib/modules/\S{3,60})"),
        ("driver-unsupported",
         r"do not appear to have an NVIDIA GPU supported by the (?P<what>[\d.]{5,16}) NVIDIA|requires the open GPU "
         r"kernel modules, but contains GPUs|kernel modules are incompatible with the GPU"),
        ("module-refused",
         r"could not insert module \S{0,60}?(?P<what>(?:nvidia\w{0,12}|gdrdrv|mlx5_\w{2,10}|amdgpu)\.ko: [\w ]{4,60})"),
        ("module-refused", r"Unable to load the kernel module '(?P<what>nvidia[\w.-]{0,16})'"),
        ("installer-failed",
         r"Installation has failed\.  Please see the file '(?P<what>/[^'\n]{4,80})'|Failed to install the kernel "
         r"module"),
    ),
    *rows_of(
        "gdrcopy",
        ("gdrcopy-unloaded",
         r"error opening driver \(errno=(?P<what>(?:2|6|13|19)/[\w ]{4,40})|gdrcopy requires gdrdrv or CUDA driver"),
        ("gdrcopy-old", r"gdrdrv (?:is too old|cannot fulfill)|gdrdrv might be too old"),
        ("gdrcopy-pages",
         r"nvidia_p2p_get_pages\([^\n]{0,120}failed \[ret = (?P<what>-\d{1,3})|while mapping handle|error "
         r"[^\n]{0,40}while mapping dma_buf"),
    ),
    *rows_of(
        "gdsio",
        ("gds-unloaded",
         r"(?:nvidia-fs(?:\.ko)? driver|NVFS driver|nvidia-fs\.ko driver) (?:is )?not loaded|cufile_driver open error"),
        ("gds-file",
         r"GDS not supported or disabled by config|unsupported file system type: (?P<what>\w{2,20})|error getting "
         r"volume attributes|No matching pair for network device to closest GPU|RDMA dev (?P<dev>\S{2,40}) not found|"
         r"not supports GDS"),
        ("gds-file", r"cuFileBufRegister error: (?P<what>[^\n]{4,60})|cuFileHandleRegister error"),
    ),
    *rows_of(
        "CUDA",
        ("cuda-contained",
         r"\bCUDA_ERROR_CONTAINED\b|\bcudaErrorContained\b|Invalid access of peer GPU memory over nvlink"),
        ("cuda-not-ready", r"\bCUDA_ERROR_SYSTEM_NOT_READY\b|\bcudaErrorSystemNotReady\b"),
        ("cuda-no-device", r"you might not have a CUDA gpu"),
        ("cuda-no-driver", r"NVML_ERROR: \[Driver Not Loaded"),
        ("cuda-shared",
         r"\bCUDA_ERROR_NOT_PERMITTED\b[^\n]{0,60}cuMemCreate|cuMemCreate[^\n]{0,60}CUDA_ERROR_NOT_PERMITTED|IMEX "
         r"driver: failed|fabric handle import failed"),
        ("cuda-peer", r"peer access is not supported between these two devices|\bcudaErrorPeerAccessUnsupported\b"),
        ("cuda-mps", r"MPS server is not ready to accept|\bcudaErrorMps(?P<what>[A-Z]\w{6,30})"),
        ("cuda-image",
         r"no kernel image is available for execution|\bhipErrorNoBinaryForGpu\b|(?:HIP|hip) error: invalid device "
         r"function"),
        ("cuda-external", r"\bcudaErrorExternalDevice\b|\bCUDA_ERROR_EXTERNAL_DEVICE\b"),
        ("cuda-unknown", r"CUDA error 304\b|OS call failed or operation not supported on this OS"),
        ("cuda-program",
         r"an illegal memory access was encountered|unspecified launch failure|\bCUDA_ERROR_LAUNCH_FAILED\b|"
         r"\bCUDA_ERROR_ILLEGAL_ADDRESS\b"),
    ),
)  # fmt: skip

OTHER_MAKERS: tuple[ToolSentence, ...] = (
    *rows_of(
        "rocminfo",
        ("amd-no-driver",
         r"\bAMDSMI_STATUS_(?:DRIVER_NOT_LOADED|NO_DRV)\b|\bRSMI_STATUS_INIT_ERROR\b|ROCk module is NOT live"),
        ("amd-no-rights",
         r"Unable to open /dev/kfd read-write: Permission denied|is not member of \"(?P<what>render|video)\""),
        ("amd-not-passed",
         r"Unable to open /dev/kfd read-write: (?P<what>No such file or directory|Operation not permitted)"),
        ("amd-kfd-refused", r"Unable to open /dev/kfd(?: read-write: (?P<what>[A-Z][\w ]{4,40}))?"),
        ("amd-uncorrectable", r"HW Exception by GPU node-\d{1,3}[^\n]{0,60}reason ?: ?(?P<what>ECC)"),
        ("amd-hang", r"HW Exception by GPU (?P<what>node-\d{1,3})"),
        ("amd-fault",
         r"Memory access fault by GPU (?P<what>node-\d{1,3})|\bHSA_STATUS_ERROR_(?P<status>MEMORY_FAULT|EXCEPTION|"
         r"MEMORY_APERTURE_VIOLATION)\b"),
        ("amd-resources", r"\bHSA_STATUS_ERROR_(?P<what>OUT_OF_RESOURCES)\b"),
        ("amd-restart", r"\bAMDSMI_STATUS_(?P<what>AMDGPU_RESTART_ERR)\b"),
        ("amd-page-list", r"\bAMDSMI_STATUS_(?P<what>CORRUPTED_EEPROM)\b"),
        ("amd-unanswered",
         r"\b(?P<what>AMDSMI_STATUS_(?:TIMEOUT|IO|DRM_ERROR|UNEXPECTED_DATA|ADDRESS_FAULT)|RSMI_STATUS_(?:UNEXPECTED_DATA|"
         r"INTERNAL_EXCEPTION))\b"),
        ("amd-setting-busy", r"\b(?P<what>(?:AMDSMI|RSMI)_STATUS_BUSY)\b"),
        ("hip-no-device", r"no ROCm-capable device is detected|No HIP GPUs are available"),
    ),
    *rows_of(
        "hl-smi",
        ("gaudi-device",
         r"synStatus ?=?(?:synStatus )?(?P<what>\d{1,3} \[[\w ]{4,40}\])\.? {0,2}Device (?:not )?acquire|"
         r"synDeviceAcquire\(?[^\n]{0,60}failed|Device acquire failed"),
        ("gaudi-port", r"\bHCL error: (?P<what>Port \d{1,3} is down)"),
    ),
    *rows_of(
        "npu-smi",
        ("npu-memory", r"\bHBM (?:multi-bit ECC|uncorrectable)|\b0x80E01801\b"),
        ("npu-device",
         r"(?:aclrtSetDevice|acl set device|SetDevice\(device_id_\)|rtSetDevice|open "
         r"device)[^\n]{0,120}?(?P<what>\b(?:507033|507010|507008|507899|107001)\b)"),
        ("npu-device",
         r"drv load failed: drvRet=(?P<what>\d{1,4})|aclrtGetDeviceCount[^\n]{0,60}error code is (?P<code>207004)"),
        ("npu-device", r"(?:Failed|failed) to get device health[.:]? ?\w{0,8} ?(?:is|code:) (?P<what>-80\d\d)"),
        ("npu-in-use", r"dcmi mod(?:el|ule) initiali[sz]ed? failed, because (?P<what>the device is used)"),
        ("npu-busy", r"\bEJ0001: [^\n]{0,80}HCCP process"),
    ),
    *rows_of(
        "neuron-ls",
        ("neuron-memory", r"\bNRT_EXEC_HW_ERR_(?P<what>(?:REPAIRABLE_)?HBM_UE)\b|Uncorrectable HBM error"),
        ("neuron-hardware", r"\bNRT_EXEC_HW_ERR_(?P<what>[A-Z_]{2,30})\b"),
        ("neuron-no-driver",
         r"Could not open the (?P<what>(?:device index:|nd)\d{1,3})|Neuron device /dev/neuron\d{1,3} not found|[Nn]o "
         r"[Nn]euron device found"),
        ("neuron-busy",
         r"NeuronCore\(s\) not available - Requested:(?P<what>\w{1,6} Available:\d{1,6})|\bNRT_INIT failed"),
        ("neuron-hang",
         r"\[hal\] (?P<what>request seq: \d{1,9}, cmd: \d{1,4}) timed out|Missing infer_status notification|"
         r"\bNRT_TIMEOUT\b"),
    ),
)  # fmt: skip
