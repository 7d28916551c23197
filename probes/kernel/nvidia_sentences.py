"""Sentences of the NVIDIA driver, of its modules and of nouveau.

Files of the open driver (595.45.04), where no other is named.
"""

from probes.kernel.sentence import BDF, DRIVER, row

_OSINIT, _OSAPI = "open-gpu-kernel-modules 595 nvalloc/unix/src/osinit.c", "open-gpu-kernel-modules 595 osapi.c"
_NV_PCI, _NV_C = "open-gpu-kernel-modules 595 nvidia/nv-pci.c", "open-gpu-kernel-modules 595 nvidia/nv.c"
_GSP, _OPEN = "open-gpu-kernel-modules 580 gsp/kernel_gsp.c", "open-gpu-kernel-modules 595"
_OS_INTERFACE = f"{_OPEN} nvidia/os-interface.c"
_NVIDIA_FS = "gds-nvidia-fs 2.28.4 src/nvfs-core.c"

# How releases of the driver begin an error: the GPU by its count and the function, or none of them
_UNIT = r"NVRM:? (?:(?P<unit>GPU\d{1,4}) )?(?:\w{1,80}: )?"

NVIDIA = (
    row("xid", None, "nvidia", "Xid", rf"(?:NVRM: |\A)Xid \((?:PCI:)?{BDF}\): (?P<code>\d{{1,4}})\b", _OSINIT),
    row(
        "sxid", None, "nvidia", "SXid",
        rf"(?P<switch>nvidia-nvswitch\d+): SXid \((?:PCI:)?{BDF}\): (?P<code>\d{{1,6}}), "
        r"(?:(?P<severity>Fatal|Non-fatal)|Severity \d|Data \{)",  # the two others go with a line before them
        "open-gpu-kernel-modules 595 nvswitch/kernel/inc/common_nvswitch.h",
    ),
    row(
        "gpu_lost", None, "nvidia", "fallen off the bus",
        rf"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?{BDF}:? .*fallen off the bus", _OSINIT,
    ),
    row(
        DRIVER, "power-cable", "nvidia", "necessary power cables",
        rf"NVRM: GPU (?:at )?(?:PCI:)?{BDF}:? .{{0,40}}does not have the necessary power cables", _OSINIT,
    ),
    row("gpu_init", None, "nvidia", "RmInitAdapter", rf"NVRM: GPU {BDF}: (?P<code>RmInitAdapter failed)", _OSINIT),
    row(
        DRIVER, "open-modules", "nvidia", "NVIDIA open kernel modules",
        r"NVRM: .{0,60}requires use of the NVIDIA open kernel modules", "NVIDIA driver 570 (closed modules), nvidia.ko",
    ),
    row(
        DRIVER, "closed-modules", "nvidia", "not supported by open",
        r"NVRM: .{0,60}\bnot supported by open\b", _OSAPI,
    ),
    row(
        DRIVER, "closed-modules", "nvidia", "vGPU host system is not supported by",
        r"NVRM: installed in this vGPU host system is not supported by", _OSAPI,
    ),
    row(
        DRIVER, "unsupported-gpu", "nvidia", "not supported by the",
        r"NVRM: .{0,60}\bis not supported by the\s*(?:NVIDIA|\d|$)", _OSAPI,
    ),
    row(DRIVER, "legacy-gpu", "nvidia", "legacy GPU", rf"NVRM: ignoring the legacy GPU {BDF}", _NV_PCI),
    row(
        DRIVER, "bar-missing", "nvidia", "NVRM: BAR",
        rf"NVRM: BAR(?P<bar>\d) is (?P<size>\d{{1,12}})M @ 0x[0-9a-f]{{1,16}} \((?:PCI:)?{BDF}\)", _NV_PCI,
    ),
    row(  # the line before the one that names the BAR
        DRIVER, "bar-invalid", "nvidia", "PCI I/O region assigned",
        r"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid", _NV_PCI,
    ),
    row(DRIVER, "bar-missing", "nvidia", "re-allocate BAR1", r"NVRM: FATAL: Failed to re-allocate BAR1", _NV_PCI),
    row(DRIVER, "registers-taken", "nvidia", "request_mem_region", r"NVRM: request_mem_region failed for", _NV_PCI),
    row(DRIVER, "no-interrupt", "nvidia", "find an IRQ", r"NVRM: Can't find an IRQ for your NVIDIA card", _NV_PCI),
    row(
        DRIVER, "no-interrupt", "nvidia", "No interrupts of any type",
        rf"NVRM: GPU {BDF}: No interrupts of any type are available", _NV_C,
    ),
    row(
        DRIVER, "no-interrupt", "nvidia", "Tried to get IRQ",
        rf"NVRM: GPU {BDF}: Tried to get IRQ \d{{1,6}}, but another driver", _NV_C,
    ),
    row(
        DRIVER, "memory-online", "nvidia", "GPU memory onlining",
        r"NVRM: Failing GPU memory onlining as the onlining zone is not movable", _OS_INTERFACE,
    ),
    row(
        DRIVER, "memory-online", "nvidia", "auto onlining failed",
        r"NVRM: GPU memory zone movable auto onlining failed", _OS_INTERFACE,
    ),
    row(
        DRIVER, "removed-in-use", "nvidia", "non-zero usage count",
        rf"NVRM: Attempting to remove device {BDF} with non-zero usage count", _NV_PCI,
    ),
    row(
        DRIVER, "nvlink-degraded", "nvidia", "marked Degraded",
        r"NVRM: .{0,80}\b(?P<unit>GPU\d{1,4}) marked Degraded\. Error originated on linkId (?P<link>\d{1,3})",
        f"{_OPEN} nvlink/kernel_nvlinkstate.c",
    ),
    row(
        DRIVER, "held", "nvidia", "already bound to",
        rf"NVRM: GPU {BDF} is already bound to (?P<holder>[\w-]{{1,40}})", _NV_PCI,
    ),
    row(
        DRIVER, "held", "nvidia", "was not called for",
        r"NVRM: The NVIDIA probe routine was not called for (?P<devices>\d{1,4}) device", _NV_C,
    ),
    row(
        DRIVER, "nouveau", "nouveau", ": NVIDIA G",
        rf"nouveau {BDF}: NVIDIA (?P<chip>G[PVAHB]10[0-3]) \([0-9a-f]{{8}}\)",
        "Linux nouveau/nvkm/engine/device/base.c",
    ),
    row(
        DRIVER, "gsp-firmware-missing", "nvidia", "No firmware image found",
        r"NVRM: .{0,60}No firmware image found", _OSINIT,
    ),
    row(
        DRIVER, "gsp-firmware-missing", "nvidia", "irect firmware load",
        rf"nvidia {BDF}: Direct firmware load for (?P<file>nvidia/\S{{1,100}}) failed with error (?P<error>-\d{{1,5}})",
        "Linux drivers/base/firmware_loader/main.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "GSP",
        r"NVRM: .{0,60}(?:Cannot initialize GSP firmware RM|Failed to boot GSP|Fatal GSP-FMC Error: |"
        r"GSP-FMC reported an error|GSP-RM proxy boot command failed|Timeout waiting for GSP target mask release|"
        r"Timed out waiting for GSP falcon reset)",
        "open-gpu-kernel-modules 595 osinit.c, kernel_gsp_tu102.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "lockdown release",
        r"NVRM: .{0,60}Timeout waiting for lockdown release\.", f"{_OPEN} kernel_gsp_gh100.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "Booter Load",
        r"NVRM: .{0,60}failed to execute Booter Load", f"{_OPEN} kernel_gsp_tu102.c",
    ),
    row(
        DRIVER, "needs-reset", "nvidia", "WPR2 already up",
        r"NVRM: .{0,60}unexpected WPR2 already up, cannot proceed", f"{_OPEN} gsp/kernel_gsp.c",
    ),
    row(
        DRIVER, "gfw-boot", "nvidia", "VBIOS boot failed",
        r"NVRM: .{0,60}VBIOS boot failed!!", f"{_OPEN} kernel_bif_gh100.c",
    ),
    row(
        DRIVER, "gfw-boot", "nvidia", "bar firewall to lower",
        r"NVRM: failed to wait for bar firewall to lower", _NV_PCI,
    ),
    row(
        DRIVER, "gfw-boot", "nvidia", "wait for GFW boot",
        r"NVRM: .{0,60}\bfailed to wait for GFW boot complete", "open-gpu-kernel-modules 595 kernel_gsp_tu102.c",
    ),
    row(
        DRIVER, "gsp-silent", "nvidia", "eartbeat timed out",
        r"NVRM:? (?:(?P<unit>GPU\d{1,4}) )?_?kgsp\w{1,40}: .{0,40}[Hh]eartbeat timed out", _GSP,
    ),
    row(
        DRIVER, "gsp-silent", "nvidia", "** GSP Timeout **",
        r"NVRM:? (?:(?P<unit>GPU\d{1,4}) )?_kgspLogRpcTimeout: \*{1,60} GSP Timeout ", _GSP,
    ),
    row(
        DRIVER, "probe-failed", "nvidia", "probe routine failed",
        r"NVRM: The NVIDIA probe routine failed for (?P<devices>\d{1,4}) device", _NV_C,
    ),
    row(
        DRIVER, "probe-failed", "nvidia", "None of the NVIDIA devices",
        r"NVRM: None of the NVIDIA devices were initialized", _NV_C,
    ),
    row(
        DRIVER, "probe-failed", "nvidia", "No NVIDIA devices probed", r"NVRM: No NVIDIA devices probed", _NV_C,
    ),
    row(DRIVER, "api-mismatch", "nvidia", "API mismatch", r"NVRM: API mismatch: (?P<what>.{0,160})", _OSAPI),
    row(
        DRIVER, "module-versions", "nvidia-modeset", "Version mismatch",
        r"nvidia-(?:modeset:|drm\]) Version mismatch: (?P<what>.{0,160})",
        "open-gpu-kernel-modules 595 nvidia-modeset-linux.c, nvidia-drm.c",
    ),
    row(
        DRIVER, "switch-versions", "nvidia-nvswitch", "Version mismatch",
        r"nvidia-nvswitch: Version mismatch, (?P<what>kernel version \S{1,40} user version \S{1,40})",
        "open-gpu-kernel-modules 595 nvidia/linux_nvswitch.c",
    ),
    row(
        DRIVER, "switch-not-started", "nvidia-nvswitch", "nvidia-nvswitch",
        r"(?P<name>nvidia-nvswitch\d{1,4}): ?Failed (?:to (?:register device|initialize (?:device|interrupt|"
        r"background tasks)|enable PCI device|request memory regions|map BAR0 region)|during device post init) : -?\d",
        f"{_OPEN} nvidia/linux_nvswitch.c",
    ),
    row(
        DRIVER, "uvm-assert", "nvidia-uvm", "global fatal error",
        r"nvidia-uvm: .{0,80}Encountered a global fatal error: ", f"{_OPEN} nvidia-uvm/uvm_global.c",
    ),
    row(
        DRIVER, "uvm-assert", "nvidia-uvm", "Assert failed",
        r"nvidia-uvm: .{1,160}Assert failed, condition ", "open-gpu-kernel-modules 595 nvidia-uvm/uvm_common.h",
    ),
    row(
        DRIVER, "gds-module", "nvidia-fs", "modules probe failed",
        r"nvidia-fs:\s?nvfs modules probe failed with error ?:(?P<error>-\d{1,5})", _NVIDIA_FS,
    ),
    row(
        DRIVER, "gds-pin", "nvidia-fs", "nvidia_p2p_get_pages",
        r"nvidia-fs:.{1,80}Error ret (?P<error>-\d{1,5}) invoking nvidia_p2p_get_pages", _NVIDIA_FS,
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "FSP",
        _UNIT + r"(?:(?:Preparing )?FSP boot cmds failed|FSP secure boot \S{1,20} |RM cannot boot with FSP missing|"
        r"FSP command timed out|FSP response reported error|"
        r"FSP fuse error check has failed|Error status 0x[0-9a-f]{1,16} while polling for FSP boot complete)",
        f"{_OPEN} fsp/arch/hopper/kern_fsp_gh100.c, kern_fsp_gb100.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "SPDM",
        _UNIT + r"(?:Failed to establish session with|Timeout waiting for|Failure when initializing) SPDM ",
        f"{_OPEN} kernel_gsp_gh100.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "Booter",
        _UNIT + r"(?:failed to execute Booter: status|Booter failed with non-zero error code)",
        f"{_OPEN} kernel_gsp_booter_tu102.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "VBIOS image",
        _UNIT + r"failed to (?:extract VBIOS image from ROM|parse FWSEC ucode|find BIT header in VBIOS image)",
        f"{_OPEN} kernel_gsp.c, kernel_gsp_fwsec.c",
    ),
    row(
        DRIVER, "gsp-not-started", "nvidia", "GSP-RM boot attempts", _UNIT + r"Max GSP-RM boot attempts exceeded", _GSP,
    ),
    row(
        DRIVER, "gsp-silent", "nvidia", "unresponsive", _UNIT + r".{0,30}(?:GSP-RM|GSP core) unresponsive", _GSP,
    ),
    row(
        DRIVER, "gsp-silent", "nvidia", "signal from GSP",
        _UNIT + r"Received signal from GSP (?:that PMU has halted|to trigger bugcheck)", _GSP,
    ),
    row(
        DRIVER, "gsp-silent", "nvidia", "GSP-",
        _UNIT + r".{0,40}GSP-(?:CrashCat Report|RM entered into ICD)", f"{_OPEN} kernel_gsp_tu102.c",
    ),
    row(
        DRIVER, "gpu-locked", "nvidia", "probably locked", _UNIT + r"RC watchdog: GPU is probably locked",
        f"{_OPEN} rc/kernel_rc_watchdog_callback.c",
    ),
    row(
        DRIVER, "gpu-not-back", "nvidia", "Timeout ",
        _UNIT + r"Timeout (?:GPU not back on the bus|polling GPU back on bus|waiting for GPU to appear on the bus)",
        f"{_OPEN} kernel_bif_gh100.c, kernel_bif.c",
    ),
    row(
        DRIVER, "gpu-memory-path", "nvidia", "returned garbage",
        _UNIT + r".{0,120}returned garbage 0x", f"{_OPEN} kern_bus_gm107.c, kern_bus_gh100.c",
    ),
    row(
        DRIVER, "gpu-memory-path", "nvidia", "NVRM: ",
        _UNIT + r"(?:kbusVerifyBar2_HAL\(\) keeps failing|L2 evict failed|Memory Subsystem Error detected)",
        f"{_OPEN} kern_bus_gm107.c, kern_gmmu.c",
    ),
    row(
        DRIVER, "nvlink-not-trained", "nvidia", "ALI ",
        _UNIT + r"(?:ALI Error for GPU \d{1,3}::linkId (?P<link>\d{1,3})|Failed to change ALI Links to active)",
        f"{_OPEN} kernel_nvlink_gh100.c, kernel_nvlink.c",
    ),
    row(
        DRIVER, "nvlink-not-trained", "nvidia", "ostRxDet",
        _UNIT + r"(?:Getting peer\d{1,3}'s postRxDetLinkMask failed|Failed to update (?:post )?Rx Detect Link mask)",
        f"{_OPEN} kernel_nvlink_gh100.c",
    ),
    row(
        DRIVER, "confidential-compute", "nvidia", "Fatal error",
        _UNIT + r"(?:ConfCompute: Fatal error hit|Fatal error detected in GSP-DMA \w{1,10})",
        f"{_OPEN} conf_compute/conf_compute.c, mem_utils.c",
    ),
    row(
        DRIVER, "memory-unreachable", "nvidia", "is not addressable by GPU",
        _UNIT + r"0x[0-9a-f]{1,16}-0x[0-9a-f]{1,16} is not addressable by GPU (?P<what>0x[0-9a-f]{1,8})",
        f"{_OPEN} mem_desc.c",
    ),
    row(
        DRIVER, "nvlink-degraded", "nvidia", "Degraded Mode",
        _UNIT + r"Failed to recover from uncontained NVLINK error\. Triggering Degraded Mode",
        f"{_OPEN} kernel_nvlink.c",
    ),
    row(
        DRIVER, "fabric-service-ended", "nvidia", "robust channel recovery",
        _UNIT + r"(?:Abrupt )?nvidia-(?P<service>fabricmanager|imex) daemon (?:shutdown detected|has invoked robust)"
        r"(?:.{0,60}for remote node: (?P<node>\d{1,5}))?",
        f"{_OPEN} fm_session_api.c, imex_session_api.c",
    ),
    row(
        DRIVER, "gpu-internal-error", "nvidia", "NV_PGSP_FALCON_",
        _UNIT + r"NV_PGSP_FALCON_(?P<what>ECC_STATUS_UNCORRECTED_ERR_\w{1,20}|IRQSTAT_FATAL_ERROR \S{1,40})",
        f"{_OPEN} kernel_gsp_gb100.c, kernel_gsp_ecc_gb100.c",
    ),
    row(
        DRIVER, "gpu-internal-error", "nvidia", "_FAULT: ", r"NVRM: .{0,80}\bSEC_(?:2_)?FAULT: (?P<what>\S[^\n]{0,60})",
        f"{_OPEN} kern_gpu_gb100.c, kern_gpu_gb202.c",
    ),
    row(
        DRIVER, "gpu-internal-error", "nvidia", "Stuck interrupt", _UNIT + r"(?P<what>Stuck interrupt) detected for",
        f"{_OPEN} intr.c",
    ),
    row(
        DRIVER, "vgpu-versions", "nvidia", "incompatible with host driver",
        r"NVRM: .{0,80}Guest driver is incompatible with host driver", f"{_OPEN} vgpu/rpc.c",
    ),
    row(DRIVER, "no-gpu-found", "nvidia", "No NVIDIA ", r"NVRM: No NVIDIA (?:GPU|PCI devices) found", _NV_C),
    row(
        DRIVER, "gpu-excluded", "nvidia", "for excluded", rf"NVRM: GPU {BDF}: open\(\) not permitted for excluded",
        _NV_C,
    ),
    row(
        DRIVER, "switch-silent", "nvidia-nvswitch", "nterrupts disabled to avoid",
        r"(?P<name>nvidia-nvswitch\d{1,4}): Interrupts disabled to avoid a storm", f"{_OPEN} nvidia/linux_nvswitch.c",
    ),
    row(
        DRIVER, "switch-not-started", "nvidia-nvswitch", "nvidia-nvswitch",
        r"(?P<name>nvidia-nvswitch\d{1,4}): (?:No supported interrupt mechanism was found|[Ff]ailed to get IRQ)",
        f"{_OPEN} nvidia/linux_nvswitch.c",
    ),
)  # fmt: skip
