"""What drivers write into the kernel log of a fault: one row per sentence, with the source that prints it.

A row makes an event of a line: its kind and code, the part that the line names, and details. What an event means is a
matter of rules. Rows are tried in order, the first that fits is the event. `docs/log-sentences.md` is made of it.
"""

import re

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

BDF = r"(?P<bdf>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
DRIVER, STARTED = "driver", "started"

_BDF_OR_SHORT = rf"(?:{BDF}|(?P<short>[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]))"
_PORT = rf"pcieport {BDF}: (?:AER: )?"
_MLX5 = rf"mlx5_core {BDF}:"
_BNXT = rf"bnxt_en {BDF}\b"
_OTHER_NICS = rf"(?:bnxt_en|ice|i40e|ixgbe|tg3) {BDF} (?P<name>\S+?): NIC Link is"
_GAUDI = r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): "
_AMDGPU = rf"amdgpu {BDF}: (?:amdgpu: )?"
_NIC_DRIVERS = "mlx4_core|mlx4_en|mlx5_core|bnxt_en|ice|i40e|ena|ionic|hns3|qede|cxgb4"
TOOLS = (  # and services, as the kernel names their processes
    r"nvidia-smi|nvidia-persiste\w{0,2}|nv-hostengine|nv-fabricmanag\w{0,2}|nvidia-imex|nvlsm|rocm-smi|amd-smi|npu-smi|"
    r"hl-smi|neuron-\w{1,10}|ibstat|opensm"
)
_DRIVERS = "nvidia|nouveau|vfio-pci|mlx5_core|bnxt_en|ice|ena|efa|ionic|amdgpu|habanalabs|neuron"
# A function of a NIC on the auxiliary bus (mlx5_core.rdma.0, ice.roce.1), to the probe of which Linux 6.10 and newer
# gives another form
_AUXILIARY = r"(?P<name>(?P<parent>mlx5_core|bnxt_en|ice|i40e|idpf|ionic|mana)"
_PROBE_ENDS = r"(?:: probe with driver \S{1,40})? failed with error (?P<error>-\d{1,5})"


def address(text: str) -> str:
    """A PCI address as ours; a message of the driver leaves the function out.

    >>> address("0018:01:00"), address("00000000:3B:00.0"), address("10000:e1:00.0")
    ('0018:01:00.0', '0000:3b:00.0', '10000:e1:00.0')
    """
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}" + ("" if "." in rest else ".0")


class Sentence(NamedTuple):
    """One sentence. Named groups of its pattern: bdf, name, code; others are details."""

    kind: str
    code: str | None  # None: the group of that name
    module: str  # that writes it
    needle: str  # a literal that every such line contains
    pattern: re.Pattern[str]
    source: str


def _row(kind: str, code: str | None, module: str, needle: str, pattern: str, source: str) -> Sentence:
    return Sentence(kind, code, module, needle, lazy_pattern(pattern), source)


# Files of the open driver (595.45.04) and of Linux (6.12), where no other is named
_OSINIT, _OSAPI = "open-gpu-kernel-modules 595 nvalloc/unix/src/osinit.c", "open-gpu-kernel-modules 595 osapi.c"
_NV_PCI, _NV_C = "open-gpu-kernel-modules 595 nvidia/nv-pci.c", "open-gpu-kernel-modules 595 nvidia/nv.c"
_GSP, _OPEN = "open-gpu-kernel-modules 580 gsp/kernel_gsp.c", "open-gpu-kernel-modules 595"
_OS_INTERFACE = f"{_OPEN} nvidia/os-interface.c"
_RAS = "Linux amdgpu/amdgpu_ras.c"
_NVIDIA_FS, _HABANA = "gds-nvidia-fs 2.28.4 src/nvfs-core.c", "Linux habanalabs/common/device.c"

_NVIDIA = (
    _row("xid", None, "nvidia", "Xid", rf"(?:NVRM: |\A)Xid \((?:PCI:)?{BDF}\): (?P<code>\d{{1,4}})\b", _OSINIT),
    _row(
        "sxid", None, "nvidia", "SXid",
        rf"(?P<switch>nvidia-nvswitch\d+): SXid \((?:PCI:)?{BDF}\): (?P<code>\d{{1,6}}), "
        r"(?:(?P<severity>Fatal|Non-fatal)|Severity \d|Data \{)",  # the two others go with a line before them
        "open-gpu-kernel-modules 595 nvswitch/kernel/inc/common_nvswitch.h",
    ),
    _row(
        "gpu_lost", None, "nvidia", "fallen off the bus",
        rf"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?{BDF}:? .*fallen off the bus", _OSINIT,
    ),
    _row(
        DRIVER, "power-cable", "nvidia", "necessary power cables",
        rf"NVRM: GPU (?:at )?(?:PCI:)?{BDF}:? .{{0,40}}does not have the necessary power cables", _OSINIT,
    ),
    _row("gpu_init", None, "nvidia", "RmInitAdapter", rf"NVRM: GPU {BDF}: (?P<code>RmInitAdapter failed)", _OSINIT),
    _row(
        DRIVER, "open-modules", "nvidia", "NVIDIA open kernel modules",
        r"NVRM: .{0,60}requires use of the NVIDIA open kernel modules", "NVIDIA driver 570 (closed modules), nvidia.ko",
    ),
    _row(
        DRIVER, "closed-modules", "nvidia", "not supported by open",
        r"NVRM: .{0,60}\bnot supported by open\b", _OSAPI,
    ),
    _row(
        DRIVER, "closed-modules", "nvidia", "vGPU host system is not supported by",
        r"NVRM: installed in this vGPU host system is not supported by", _OSAPI,
    ),
    _row(
        DRIVER, "unsupported-gpu", "nvidia", "not supported by the",
        r"NVRM: .{0,60}\bis not supported by the\s*(?:NVIDIA|\d|$)", _OSAPI,
    ),
    _row(DRIVER, "legacy-gpu", "nvidia", "legacy GPU", rf"NVRM: ignoring the legacy GPU {BDF}", _NV_PCI),
    _row(
        DRIVER, "bar-missing", "nvidia", "NVRM: BAR",
        rf"NVRM: BAR(?P<bar>\d) is (?P<size>\d{{1,12}})M @ 0x[0-9a-f]{{1,16}} \((?:PCI:)?{BDF}\)", _NV_PCI,
    ),
    _row(DRIVER, "bar-missing", "nvidia", "re-allocate BAR1", r"NVRM: FATAL: Failed to re-allocate BAR1", _NV_PCI),
    _row(DRIVER, "registers-taken", "nvidia", "request_mem_region", r"NVRM: request_mem_region failed for", _NV_PCI),
    _row(DRIVER, "no-interrupt", "nvidia", "find an IRQ", r"NVRM: Can't find an IRQ for your NVIDIA card", _NV_PCI),
    _row(
        DRIVER, "no-interrupt", "nvidia", "No interrupts of any type",
        rf"NVRM: GPU {BDF}: No interrupts of any type are available", _NV_C,
    ),
    _row(
        DRIVER, "no-interrupt", "nvidia", "Tried to get IRQ",
        rf"NVRM: GPU {BDF}: Tried to get IRQ \d{{1,6}}, but another driver", _NV_C,
    ),
    _row(
        DRIVER, "memory-online", "nvidia", "GPU memory onlining",
        r"NVRM: Failing GPU memory onlining as the onlining zone is not movable", _OS_INTERFACE,
    ),
    _row(
        DRIVER, "memory-online", "nvidia", "auto onlining failed",
        r"NVRM: GPU memory zone movable auto onlining failed", _OS_INTERFACE,
    ),
    _row(
        DRIVER, "removed-in-use", "nvidia", "non-zero usage count",
        rf"NVRM: Attempting to remove device {BDF} with non-zero usage count", _NV_PCI,
    ),
    _row(
        DRIVER, "nvlink-degraded", "nvidia", "marked Degraded",
        r"NVRM: .{0,80}\b(?P<unit>GPU\d{1,4}) marked Degraded\. Error originated on linkId (?P<link>\d{1,3})",
        f"{_OPEN} nvlink/kernel_nvlinkstate.c",
    ),
    _row(
        DRIVER, "held", "nvidia", "already bound to",
        rf"NVRM: GPU {BDF} is already bound to (?P<holder>[\w-]{{1,40}})", _NV_PCI,
    ),
    _row(
        DRIVER, "held", "nvidia", "was not called for",
        r"NVRM: The NVIDIA probe routine was not called for (?P<devices>\d{1,4}) device", _NV_C,
    ),
    _row(
        DRIVER, "nouveau", "nouveau", ": NVIDIA G",
        rf"nouveau {BDF}: NVIDIA (?P<chip>G[PVAHB]10[0-3]) \([0-9a-f]{{8}}\)",
        "Linux nouveau/nvkm/engine/device/base.c",
    ),
    _row(
        DRIVER, "gsp-firmware-missing", "nvidia", "No firmware image found",
        r"NVRM: .{0,60}No firmware image found", _OSINIT,
    ),
    _row(
        DRIVER, "gsp-firmware-missing", "nvidia", "irect firmware load",
        rf"nvidia {BDF}: Direct firmware load for (?P<file>nvidia/\S{{1,100}}) failed with error (?P<error>-\d{{1,5}})",
        "Linux drivers/base/firmware_loader/main.c",
    ),
    _row(
        DRIVER, "gsp-not-started", "nvidia", "GSP",
        r"NVRM: .{0,60}(?:Cannot initialize GSP firmware RM|Failed to boot GSP|Fatal GSP-FMC Error: |"
        r"GSP-FMC reported an error|GSP-RM proxy boot command failed|Timeout waiting for GSP target mask release|"
        r"Timed out waiting for GSP falcon reset)",
        "open-gpu-kernel-modules 595 osinit.c, kernel_gsp_tu102.c",
    ),
    _row(
        DRIVER, "gsp-not-started", "nvidia", "lockdown release",
        r"NVRM: .{0,60}Timeout waiting for lockdown release\.", f"{_OPEN} kernel_gsp_gh100.c",
    ),
    _row(
        DRIVER, "gsp-not-started", "nvidia", "Booter Load",
        r"NVRM: .{0,60}failed to execute Booter Load", f"{_OPEN} kernel_gsp_tu102.c",
    ),
    _row(
        DRIVER, "needs-reset", "nvidia", "WPR2 already up",
        r"NVRM: .{0,60}unexpected WPR2 already up, cannot proceed", f"{_OPEN} gsp/kernel_gsp.c",
    ),
    _row(
        DRIVER, "gfw-boot", "nvidia", "VBIOS boot failed",
        r"NVRM: .{0,60}VBIOS boot failed!!", f"{_OPEN} kernel_bif_gh100.c",
    ),
    _row(
        DRIVER, "gfw-boot", "nvidia", "bar firewall to lower",
        r"NVRM: failed to wait for bar firewall to lower", _NV_PCI,
    ),
    _row(
        DRIVER, "gfw-boot", "nvidia", "wait for GFW boot",
        r"NVRM: .{0,60}\bfailed to wait for GFW boot complete", "open-gpu-kernel-modules 595 kernel_gsp_tu102.c",
    ),
    _row(
        DRIVER, "gsp-silent", "nvidia", "eartbeat timed out",
        r"NVRM: (?P<unit>GPU\d{1,4}) _?kgsp\w{1,40}: .{0,40}[Hh]eartbeat timed out", _GSP,
    ),
    _row(
        DRIVER, "gsp-silent", "nvidia", "** GSP Timeout **",
        r"NVRM: (?P<unit>GPU\d{1,4}) _kgspLogRpcTimeout: \*{1,60} GSP Timeout ", _GSP,
    ),
    _row(
        DRIVER, "probe-failed", "nvidia", "probe routine failed",
        r"NVRM: The NVIDIA probe routine failed for (?P<devices>\d{1,4}) device", _NV_C,
    ),
    _row(
        DRIVER, "probe-failed", "nvidia", "None of the NVIDIA devices",
        r"NVRM: None of the NVIDIA devices were initialized", _NV_C,
    ),
    _row(
        DRIVER, "probe-failed", "nvidia", "No NVIDIA devices probed", r"NVRM: No NVIDIA devices probed", _NV_C,
    ),
    _row(DRIVER, "api-mismatch", "nvidia", "API mismatch", r"NVRM: API mismatch: (?P<what>.{0,160})", _OSAPI),
    _row(
        DRIVER, "module-versions", "nvidia-modeset", "Version mismatch",
        r"nvidia-(?:modeset:|drm\]) Version mismatch: (?P<what>.{0,160})",
        "open-gpu-kernel-modules 595 nvidia-modeset-linux.c, nvidia-drm.c",
    ),
    _row(
        DRIVER, "switch-versions", "nvidia-nvswitch", "Version mismatch",
        r"nvidia-nvswitch: Version mismatch, (?P<what>kernel version \S{1,40} user version \S{1,40})",
        "open-gpu-kernel-modules 595 nvidia/linux_nvswitch.c",
    ),
    _row(
        DRIVER, "switch-not-started", "nvidia-nvswitch", "nvidia-nvswitch",
        r"(?P<name>nvidia-nvswitch\d{1,4}): ?Failed (?:to (?:register device|initialize (?:device|interrupt|"
        r"background tasks)|enable PCI device|request memory regions|map BAR0 region)|during device post init) : -?\d",
        f"{_OPEN} nvidia/linux_nvswitch.c",
    ),
    _row(
        DRIVER, "uvm-assert", "nvidia-uvm", "global fatal error",
        r"nvidia-uvm: .{0,80}Encountered a global fatal error: ", f"{_OPEN} nvidia-uvm/uvm_global.c",
    ),
    _row(
        DRIVER, "uvm-assert", "nvidia-uvm", "Assert failed",
        r"nvidia-uvm: .{1,160}Assert failed, condition ", "open-gpu-kernel-modules 595 nvidia-uvm/uvm_common.h",
    ),
    _row(
        DRIVER, "gds-module", "nvidia-fs", "modules probe failed",
        r"nvidia-fs:\s?nvfs modules probe failed with error ?:(?P<error>-\d{1,5})", _NVIDIA_FS,
    ),
    _row(
        DRIVER, "gds-pin", "nvidia-fs", "nvidia_p2p_get_pages",
        r"nvidia-fs:.{1,80}Error ret (?P<error>-\d{1,5}) invoking nvidia_p2p_get_pages", _NVIDIA_FS,
    ),
)  # fmt: skip

_PCI = (
    _row("dpc", "containment", "pcieport", "DPC: containment",
         _PORT + r"DPC: containment event, status:(?P<status>0x[0-9a-f]+)", "Linux pci/pcie/dpc.c"),
    _row("dpc", "containment", "pcieport", "DPC: unmasked",
         _PORT + r"DPC: (?P<what>unmasked uncorrectable error detected)", "Linux pci/pcie/dpc.c"),
    _row("hotplug", None, "pciehp", "pciehp",
         _PORT + r"pciehp: Slot\((?P<slot>[^)]{1,32})\): (?P<code>Link Down|Card not present)",
         "Linux pci/hotplug/pciehp_ctrl.c"),
    _row("aer", "no-recovery", "pcieport", "device recovery failed",
         rf"pcieport {BDF}: (?:AER: )?device recovery failed", "Linux pci/pcie/err.c"),
    _row("aer", "no-recovery", "pcieport", "subordinate device reset failed",
         rf"pcieport {BDF}: (?:AER: )?subordinate device reset failed", "Linux pci/pcie/err.c"),
    _row("aer", "no-recovery", "pcieport", "can't recover",
         rf"(?P<driver>[\w-]{{1,32}}) {BDF}: (?:AER: )?can't recover \(no error_detected callback\)",
         "Linux pci/pcie/err.c"),
    _row(DRIVER, "inaccessible", "pci", "ower state from D3",
         rf"(?P<driver>{_DRIVERS}|pci) {BDF}: (?:Unable to|can't) change power state from (?P<state>D3\w{{1,6}}) to D0"
         r"(?:, device inaccessible| \(config space inaccessible\))", "Linux pci/pci.c"),
    _row(DRIVER, "inaccessible", "pci", "ower state, currently in D3",
         rf"(?P<driver>{_DRIVERS}|pci) {BDF}: Refused to change power state, currently in (?P<state>D3\w{{0,6}})",
         "Linux 3.10 to 5.4 pci/pci.c"),
    _row(DRIVER, "reset-unanswered", "pci", "; giving up",
         rf"(?P<driver>{_DRIVERS}|pci) {BDF}: not ready \d{{1,7}}ms after (?P<what>[\w ]{{2,40}}); giving up",
         "Linux pci/pci.c (pci_dev_wait)"),
    _row(DRIVER, "bar-unassigned", "pci", "failed to assign",
         rf"\bpci {BDF}: (?:BAR (?P<bar>[0-5])(?: \[mem[^\]]{{0,60}}\]: failed to assign|: failed to assign \[mem))",
         "Linux 4.2 to 6.12 pci/setup-res.c"),
    _row(DRIVER, "bar-unassigned", "pci", "; can't enable device",
         rf"(?P<driver>{_DRIVERS}) {BDF}: BAR (?P<bar>[0-5])(?: \[mem[^\]]{{0,60}}\])?: not (?:assigned|claimed); "
         r"can't enable device", "Linux 3.18 to 6.12 pci/setup-res.c"),
    _row(DRIVER, "vf-bar", "pci", "SR-IOV",
         rf"\b(?P<driver>{_DRIVERS}) {BDF}: (?:not enough MMIO resources for SR-IOV|SR-IOV: IOV BARS not allocated)",
         "Linux pci/iov.c"),
    _row(DRIVER, "vf-bar", "pci", "failed to assign",
         rf"\bpci {BDF}: (?:VF BAR [0-5]|BAR (?:7|10|11))(?: \[mem[^\]]{{0,60}}\]: failed to assign|: failed to assign"
         r" \[mem)", "Linux 4.2 to 6.12 pci/setup-res.c"),  # 8 and 9 may be windows of a bridge
    _row(DRIVER, "region-taken", "pci", "can't reserve",
         rf"(?P<driver>{_DRIVERS}) {BDF}: BAR (?P<bar>[0-5])(?: \[mem[^\]]{{0,60}}\])?: can't reserve",
         "Linux pci/pci.c (pci_request_region)"),
    _row(DRIVER, "reserved-memory", "dmar", "platform RMRR requirement",
         rf"(?P<driver>{_DRIVERS}) {BDF}: Device is ineligible for IOMMU domain attach due to platform RMRR",
         "Linux iommu/intel/iommu.c"),
    _row("pcie_bandwidth", None, "pci", "available PCIe bandwidth",
         rf"{BDF}: (?P<available>[\d.]+) Gb/s available PCIe bandwidth, "
         r"limited by (?P<limit>[\d.]+ GT/s(?: PCIe)? x\d+) link at (?P<hop>[0-9a-fA-F:.]+) "
         r"\(capable of (?P<capable>[\d.]+) Gb/s", "Linux pci/pci.c (__pcie_print_link_status)"),
    _row(DRIVER, "iommu-fault", "dmar", "DMAR:",
         r"DMAR: \[(?:DMA (?:Read|Write)|INTR-REMAP)[^\]]{0,20}\] Request device "
         r"\[(?P<short>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\]",
         "Linux iommu/intel/dmar.c"),
    _row(DRIVER, "iommu-fault", "AMD-Vi", "IO_PAGE_FAULT",
         rf"AMD-Vi: Event logged \[IO_PAGE_FAULT device={_BDF_OR_SHORT}",
         "Linux iommu/amd/iommu.c"),
    _row(DRIVER, "iommu-fault", "AMD-Vi", "IO_PAGE_FAULT",
         rf"(?P<driver>[\w-]{{1,32}}) {BDF}: AMD-Vi: Event logged \[IO_PAGE_FAULT", "Linux iommu/amd/iommu.c"),
    _row(DRIVER, "iommu-fault", "AMD-Vi", "INVALID_DEVICE_REQUEST",
         rf"AMD-Vi: Event logged \[INVALID_DEVICE_REQUEST device={_BDF_OR_SHORT}",
         "Linux iommu/amd/iommu.c"),
    _row(DRIVER, "iommu-fault", "arm-smmu-v3", " client: ",
         rf"arm-smmu-v3 \S{{1,60}}: event: F_(?:TRANSLATION|ADDR_SIZE|ACCESS|PERMISSION) client: {BDF} ",
         "Linux 6.15 iommu/arm/arm-smmu-v3/arm-smmu-v3.c"),
    _row(DRIVER, "iommu-timeout", "arm-smmu-v3", "CMD_SYNC timeout",
         r"arm-smmu-v3 \S{1,60}: CMD_SYNC timeout at ", "Linux iommu/arm/arm-smmu-v3/arm-smmu-v3.c"),
    _row(DRIVER, "iommu-timeout", "AMD-Vi", "IOTLB_INV_TIMEOUT",
         rf"AMD-Vi: Event logged \[IOTLB_INV_TIMEOUT device={_BDF_OR_SHORT}",
         "Linux iommu/amd/iommu.c"),
    _row(DRIVER, "iommu-timeout", "AMD-Vi", "Completion-Wait loop",
         r"AMD-Vi: (?:IOMMU \S{1,16}: )?Completion-Wait loop timed out", "Linux iommu/amd/iommu.c"),
    _row(DRIVER, "iommu-timeout", "dmar", "Invalidation Time-out Error:",
         r"DMAR: VT-d detected Invalidation Time-out Error: SID (?!ffff\b)", "Linux iommu/intel/dmar.c"),
    _row(DRIVER, "probe-error", "driver core", "failed with error",
         rf"(?P<driver>{_DRIVERS})(?:: probe of {BDF}) failed with error (?P<error>-\d{{1,5}})",
         "Linux drivers/base/dd.c"),
    _row(DRIVER, "probe-error", "driver core", "failed with error",
         rf"(?P<driver>{_DRIVERS}) {BDF}: probe with driver \S{{1,40}} failed with error (?P<error>-\d{{1,5}})",
         "Linux drivers/base/dd.c"),
    _row(DRIVER, "rdma-probe", "driver core", " failed with error",
         rf"(?:: probe of |^|\s){_AUXILIARY}\.(?:rdma|roce|iwarp)\.\d{{1,4}}){_PROBE_ENDS}", "Linux drivers/base/dd.c"),
    _row(DRIVER, "interface-probe", "driver core", " failed with error",
         rf"(?:: probe of |^|\s){_AUXILIARY}\.eth\.\d{{1,4}}){_PROBE_ENDS}", "Linux drivers/base/dd.c"),
    _row("peermem", "symbol", "nvidia_peermem", "ib_register_peer_memory_client",
         r"(?P<module>nvidia_peermem|nv_peer_mem): (?:Unknown symbol|disagrees about version of symbol) "
         r"(?P<symbol>ib_register_peer_memory_client)", "Linux kernel/module/main.c"),
    _row("peermem", "register", "nvidia_peermem", "error while registering",
         r"nvidia-peermem .{0,60}\berror while registering \w{1,20} client",
         f"{_OPEN} nvidia-peermem/nvidia-peermem.c"),
    _row(DRIVER, "module-symbols", "kernel", " symbol ",
         r"(?P<module>nvidia|nvidia_uvm|nvidia_fs|amdgpu|mlx5_core|mlx5_ib|ib_core|ib_uverbs|bnxt_re|irdma|efa|"
         r"habanalabs|neuron): "
         r"(?:Unknown symbol|disagrees about version of symbol) (?P<symbol>\w{1,80})", "Linux kernel/module/main.c"),
    _row(DRIVER, "module-kernel", "kernel", "version magic",
         r"(?P<module>nvidia|amdgpu|mlx5_core|mlx5_ib|bnxt_re|irdma|efa|habanalabs|neuron): version magic "
         r"'(?P<built>[^']{1,80})' should be '(?P<running>[^']{1,80})'", "Linux kernel/module/main.c"),
    _row(DRIVER, "vfio-memlock", "vfio", "RLIMIT_MEMLOCK",
         r"\bvfio_\w{1,40}: .{0,60}RLIMIT_MEMLOCK \(\d{1,20}\) exceeded", "Linux vfio/vfio_iommu_type1.c"),
    _row(DRIVER, "task-hung", "kernel", "blocked for more than",
         rf"INFO: task (?P<task>{TOOLS}):\d{{1,10}} blocked for more than \d{{1,7}} seconds",
         "Linux kernel/hung_task.c"),
    _row(DRIVER, "tool-crashed", "kernel", "segfault at",
         rf"(?P<task>{TOOLS})\[\d{{1,10}}\]: segfault at ", "Linux arch/x86/mm/fault.c"),
    _row(DRIVER, "memory-uncorrected", "edac", "EDAC MC",
         r"EDAC MC(?P<controller>\d{1,3}): \d{1,9} UE (?P<what>.{0,80}? on \S{1,80})", "Linux drivers/edac/edac_mc.c"),
    _row(DRIVER, "memory-corrected", "edac", "EDAC MC",
         r"EDAC MC(?P<controller>\d{1,3}): \d{1,9} CE (?P<what>.{0,80}? on \S{1,80})", "Linux drivers/edac/edac_mc.c"),
    _row(DRIVER, "cpu-hot", "mce", "temperature above threshold",
         r"CPU\d{1,5}: (?P<what>Core|Package) temperature above threshold", "Linux x86 thermal/intel/therm_throt.c"),
    _row(DRIVER, "hugepages", "kernel", "HugeTLB: allocating",
         r"HugeTLB: allocating (?P<asked>\d{1,9}) of page size .{1,40}failed\. +Only allocated (?P<got>\d{1,9})",
         "Linux mm/hugetlb.c"),
    _row(DRIVER, "module-unsigned", "kernel", "odule",
         r"Loading of (?:unsigned module|module with (?:unavailable key|unsupported crypto)) is rejected"
         r"|Lockdown: \S{1,40}: unsigned module loading is restricted", "Linux kernel/module/signing.c"),
)  # fmt: skip

_MELLANOX = (
    _row("mlx5", "slot-power", "mlx5_core", "insufficient power",
         _MLX5 + r".*Detected insufficient power on the PCIe slot \((?P<watts>\d+)W\)", "Linux mlx5/core/events.c"),
    _row("mlx5", "module", "mlx5_core", "Port module event",
         _MLX5 + r".* Port module event(?:\[error\])?: module (?P<module>\d+), "
         r"(?P<what>[^\n]{0,80}(?:[Ee]rror|High [Tt]emp)[^\n]{0,80})", "Linux mlx5/core/events.c"),
    _row("mlx5", "temperature", "mlx5_core", "temp_warn", _MLX5 + r".*temp_warn.*High temperature",
         "Linux mlx5/core/events.c"),
    _row("mlx5", "access-reg", "mlx5_core", "ACCESS_REG", _MLX5 + r".*ACCESS_REG\((?P<register>0x805)\).*failed",
         "Linux mlx5/core/cmd.c"),
    _row("mlx5", "health", "mlx5_core", "Fatal error", _MLX5 + r".*poll_health.*(?P<what>Fatal error \d+ detected)",
         "Linux mlx5/core/health.c"),
    _row("mlx5", "health", "mlx5_core", "health",
         _MLX5 + r".*(?P<what>device's health compromised|health recovery failed)", "Linux mlx5/core/health.c"),
    _row("mlx5", "health", "mlx5_core", "Health issue observed",  # by the severity that the firmware gives it
         _MLX5 + r".*Health issue observed, (?P<what>[\w ]{3,60}), severity\([0-3]\)", "Linux 5.15 mlx5/core/health.c"),
    _row("mlx5", "health", "mlx5_core", "synd 0x",
         _MLX5 + r".*print_health_info.*\bsynd 0x0?[1-9a-f][0-9a-f]?: (?!High temperature)(?P<what>[\w ]{3,60}?) *$",
         "Linux 4.18 to 5.14 mlx5/core/health.c"),
    _row("mlx5", "command", "mlx5_core", "leak of a command", _MLX5 + r".*Will cause a leak of a command resource",
         "Linux mlx5/core/cmd.c"),
    _row("mlx5", "command", "mlx5_core", "while waiting for",
         _MLX5 + r".*\b[A-Z_]{4,40}\(0x[0-9a-f]{1,4}\) (?:timed out while waiting for a slot|timeout while "
         r"waiting for command semaphore)", "Linux 5.10 to 6.12 mlx5/core/cmd.c"),
    _row("mlx5", "reset-failed", "mlx5_core", "PCI reads still not working",
         _MLX5 + r".*(?P<what>(?:health recovery|reset reload) flow aborted, PCI reads still not working)",
         "Linux mlx5/core/health.c, fw_reset.c"),
    _row("mlx5", "reset-failed", "mlx5_core", "PCI link not ready",
         _MLX5 + r".*(?P<what>PCI link not ready) \(0x[0-9a-f]{4}\) after", "Linux mlx5/core/fw_reset.c"),
    _row("mlx5", "reset-failed", "mlx5_core", "irmware is not responsive",
         _MLX5 + r".*(?P<what>Firmware is not responsive) \(0x[0-9a-f]{4}\) after", "Linux mlx5/core/fw_reset.c"),
    _row("mlx5", "tx-timeout", "mlx5_core", "TX timeout", rf"mlx5_core {BDF}.*TX timeout detected",
         "Linux mlx5/core/en_main.c"),
    _row("mlx5", "firmware-init", "mlx5_core", "initializing state",
         _MLX5 + r".*Firmware over \d{1,9} MS in (?:pre-)?initializing state, aborting", "Linux mlx5/core/main.c"),
    _row("mlx5", "recovered", "mlx5_core", "health recovery succeeded", _MLX5 + r".*health recovery succeeded",
         "Linux mlx5/core/health.c"),
    _row("mlx5", STARTED, "mlx5_core", "firmware version:",
         _MLX5 + r".*\bfirmware version: (?!65535)\d+\.\d+\.\d+", "Linux mlx5/core/main.c"),
    _row("mlx5", "load", "mlx5_core", "failed with error",
         _MLX5 + r".*(?:load_one|init_one|probe_one|pci_init).*(?P<what>failed with error (?:code )?-?\d+)",
         "Linux mlx5/core/main.c"),
    _row(DRIVER, "limits", "mlx5_core", "limits exceeded",
         _MLX5 + r".*\b(?P<command>[A-Z_]{4,40})\(0x[0-9a-f]{1,4}\) op_mod\(0x[0-9a-f]{1,4}\) failed, "
         r"status limits exceeded\(0x8\)", "Linux mlx5/core/cmd.c"),
    _row(DRIVER, "limits", "mlx5_core", "no resources",
         _MLX5 + r".*\b(?P<command>[A-Z_]{4,40})\(0x[0-9a-f]{1,4}\) op_mod\(0x[0-9a-f]{1,4}\) failed, "
         r"status no resources\(0xf\)", "Linux mlx5/core/cmd.c"),
    _row(DRIVER, "rdma-probe", "mlx5_core", " failed to load",
         _MLX5 + r".*Device\[\d{1,2}\] \(rdma\) failed to load", "Linux mlx5/core/dev.c"),
    _row(DRIVER, "interface-probe", "mlx5_core", " failed to load",
         _MLX5 + r".*Device\[\d{1,2}\] \(eth\) failed to load", "Linux mlx5/core/dev.c"),
    _row(DRIVER, "no-mkey", "mlx5_ib", " failed",
         r"(?:mlx5_core " + BDF + r":|infiniband) .{0,40}?(?P<name>mlx5_\w{1,20})?\b.{0,80}"
         r"(?:[Cc]reate mkey failed,?|async (?:reg mr|create_mkey) failed\. status) (?P<error>-12)\b",
         "Linux 4.0 to 6.12 mlx5_ib/mr.c"),
    _row("link_down", None, "mlx5_core", "Link ",
         rf"mlx5_core {BDF}:? (?P<name>\S+?):? (?:Port: \d+ )?Link (?:down|DOWN)\b",
         "Linux mlx5/core/en_main.c"),
    _row("link_up", None, "mlx5_core", "Link ",
         rf"mlx5_core {BDF}:? (?P<name>\S+?):? (?:Port: \d+ )?Link (?:up|ACTIVE)\b",
         "Linux mlx5/core/en_main.c"),
)  # fmt: skip

_OTHER = (
    _row("nic_firmware", "reset-failed", "bnxt_en", "Firmware reset aborted",
         _BNXT + r".*Firmware reset aborted(?P<what>.{0,100})", "Linux bnxt/bnxt.c"),
    _row("nic_firmware", "reset", "bnxt_en", "reset event",
         rf"bnxt_en {BDF} .*\b(?:Fatal firmware|Firmware fatal) reset event\b", "Linux 5.4 to 6.12 bnxt/bnxt.c"),
    _row("nic_firmware", "command", "bnxt_en", "Error (timeout: ",
         _BNXT + r".{0,40}: Error \(timeout: \d{1,10}\) msg \{0x", "Linux bnxt/bnxt_hwrm.c"),
    _row("nic_firmware", "health", "bnxt_en", "irmware not responding",
         _BNXT + r".{0,40}: Firmware not responding, status: 0x", "Linux bnxt/bnxt.c"),
    _row("nic_firmware", "health", "bnxt_re", "FW STALL", _BNXT + r".{0,80}FW STALL Detected",
         "Linux bnxt_re/qplib_rcfw.c"),
    _row("nic_firmware", "reset-failed", "bnxt_en", "during FW reset",
         _BNXT + r".{0,40}: (?P<what>(?:bnxt_open\(\) failed|RESET_DONE not set) during FW reset)",
         "Linux bnxt/bnxt.c"),
    _row("nic_firmware", "reset-failed", "bnxt_en", "firmware reset",
         _BNXT + r".{0,40}: (?P<what>Failed to reinitialize after aborted firmware reset|A previous firmware reset "
         r"has not completed)", "Linux bnxt/bnxt.c"),
    _row("nic_firmware", "reset", "bnxt_en", "firmware fatal condition",
         _BNXT + r".{0,40}: Detected firmware fatal condition, initiating reset", "Linux bnxt/bnxt.c"),
    _row("nic_firmware", "command", "bnxt_re", "timedout",
         _BNXT + r".{0,40}: cmdq\[0x[0-9a-f]{1,8}\]=0x[0-9a-f]{1,8} timedout ", "Linux bnxt_re/qplib_rcfw.c"),
    _row(DRIVER, "limits", "bnxt_re", "max exceeded",
         rf"(?:bnxt_en {BDF} |infiniband )(?P<name>bnxt_re\d{{1,3}}): .{{0,40}}\b(?P<command>QP|CQ) "
         r"(?:failed )?- ?max exceeded",
         "Linux bnxt_re/ib_verbs.c"),
    _row(DRIVER, "pause-storm", "bnxt_en", "Pause Storm", _BNXT + r".{0,40}: Pause Storm detected",
         "Linux bnxt/bnxt.c"),
    _row(DRIVER, "doorbells", "bnxt_en", "doorbells dropped",
         _BNXT + r".{0,40}: One or more MMIO doorbells dropped", "Linux bnxt/bnxt.c"),
    _row(DRIVER, "nic-hot", "bnxt_en", "thermal threshold",
         _BNXT + r".{0,40}: Chip temperature has gone above the (?P<what>critical|fatal|shutdown) thermal threshold",
         "Linux 6.8 bnxt/bnxt.c"),
    _row(DRIVER, "rdma-port", "ib_core", "Couldn't ",
         r"infiniband (?P<name>\S{1,40}): Couldn't (?:start port|register device with |create per-port data"
         r"|set up InfiniBand P_Key/GID cache)", "Linux infiniband/core/mad.c, device.c"),
    _row(DRIVER, "module-refused", "bnxt_en", " module ",
         _BNXT + r".{0,40}: (?:Unqualified SFP\+ module detected|SFP\+ module is shutdown)", "Linux bnxt/bnxt.c"),
    _row(DRIVER, "module-refused", "ice", "module",
         rf"\b(?:ice|i40e) {BDF}\b.{{0,40}}: (?:Rx/Tx is disabled on this device because an unsupported .{{0,8}}module"
         r"|The module's power requirements exceed the device's power supply"
         r"|The installed module is incompatible with the device's NVM image)",
         "Linux ice/ice_main.c, i40e/i40e_main.c"),
    _row("nic_firmware", "reset-failed", "ice", "Rebuild failed",
         rf"\bice {BDF}: Rebuild failed, unload and reload driver", "Linux ice/ice_main.c"),
    _row("nic_firmware", "reset-failed", "ice", "unrecoverable state",
         rf"\bice {BDF}\b.{{0,80}}device is in unrecoverable state", "Linux ice/ice_main.c"),
    _row("nic_firmware", "reset-failed", "ice", "device is unrecoverable",
         rf"\bice {BDF}: .{{0,60}}failed, device is unrecoverable", "Linux ice/ice_main.c"),
    _row(DRIVER, "firmware-recovery", "ice", "irmware recovery mode",
         rf"\bice {BDF}: Firmware recovery mode detected", "Linux ice/ice_main.c"),
    _row(DRIVER, "safe-mode", "ice", "afe Mode", rf"\bice {BDF}: .{{0,120}}[Ee]ntering Safe Mode",
         "Linux ice/ice_ddp.c"),
    _row(DRIVER, "driver-too-old", "ice", "NVM image is newer",
         rf"\bice {BDF}: .{{0,60}}driver for the device stopped because the NVM image is newer",
         "Linux ice/ice_main.c"),
    _row("nic_firmware", "reset", "ena", "eep alive watchdog timeout",
         rf"\bena {BDF}\b.{{0,40}}[Kk]eep alive watchdog timeout",
         "Linux ena/ena_netdev.c"),
    _row("nic_firmware", "reset", "ena", "reset is ",
         rf"\bena {BDF}\b.{{0,40}}(?:Trigger reset is on|device has detected an unhealthy state, reset is requested)",
         "Linux ena/ena_netdev.c"),
    _row("nic_firmware", "health", "ena", "isn't responsive",
         rf"\bena {BDF}\b.{{0,40}}FW isn't responsive", "ena 2.17 ena_netdev.c"),
    _row("nic_firmware", "reset-failed", "ena", "eset attempt failed",
         rf"\bena {BDF}\b.{{0,40}}Reset attempt failed\. Can not reset the device", "Linux ena/ena_netdev.c"),
    _row("nic_firmware", "command", "efa", "completion",
         rf"\befa {BDF}\b.{{0,40}}(?:Wait for completion \(polling\) timeout|device didn't send any completion for )",
         "Linux efa/efa_com.c"),
    _row("nic_firmware", "command", "efa", "Reading register timed out",
         rf"\befa {BDF}\b.{{0,40}}Reading register timed out", "Linux efa/efa_com.c"),
    _row("nic_firmware", "reset-failed", "efa", "Reset indication didn't",
         rf"\befa {BDF}\b.{{0,40}}Reset indication didn't turn o", "Linux efa/efa_com.c"),
    _row("nic_firmware", "reset-failed", "efa", "can't reset device",
         rf"\befa {BDF}\b.{{0,40}}Device isn't ready, can't reset device", "Linux efa/efa_com.c"),
    _row(DRIVER, "limits", "efa", "Failed to process command",
         rf"(?:\befa {BDF} |infiniband )(?P<name>\w{{1,40}}): Failed to process command (?P<command>[A-Z_]{{1,40}}) "
         r"\(opcode \d{1,4}\) .{0,24}err -12\b", "Linux 5.2 to 6.12 efa/efa_com.c"),
    _row("nic_firmware", "health", "ionic", "FW heartbeat stalled", rf"\bionic {BDF}\b.{{0,40}}FW heartbeat stalled",
         "Linux ionic/ionic_dev.c"),
    _row("nic_firmware", "reset-failed", "ionic", "LIFs restart failed",
         rf"\bionic {BDF}\b.{{0,40}}FW Up: LIFs restart failed", "Linux ionic/ionic_lif.c"),
    _row("nic_firmware", "command", "ionic", "DEVCMD",
         rf"\bionic {BDF}\b.{{0,40}}DEVCMD \S{{1,40}} \(\d{{1,5}}\) timeout after",
         "Linux ionic/ionic_main.c"),
    _row(DRIVER, "rdma-probe", "irdma", "FAIL",
         rf"\b(?:ice|idpf|i40e) {BDF}: (?:IRDMA hardware initialization FAILED|HW runtime init FAIL) ",
         "Linux irdma/hw.c"),
    _row("nic_firmware", "reset", "irdma", "Requesting a reset",
         rf"\b(?:ice|idpf|i40e) {BDF} \S{{1,40}}: Requesting a reset", "Linux irdma/main.c, 6.16 irdma/icrdma_if.c"),
    _row(DRIVER, "queue-stalled", "net", "NETDEV WATCHDOG",
         rf"NETDEV WATCHDOG: (?P<name>\S{{1,15}}) \((?P<driver>{_NIC_DRIVERS})\): transmit queue \d{{1,5}} timed out",
         "Linux 2.6.27 to 6.11 net/sched/sch_generic.c"),
    _row(DRIVER, "queue-stalled", "net", "NETDEV WATCHDOG",
         rf"(?P<driver>{_NIC_DRIVERS}) {BDF} (?P<name>\S{{1,15}}): NETDEV WATCHDOG: CPU: \d{{1,5}}: transmit queue "
         r"\d{1,5} timed out", "Linux 6.12 net/sched/sch_generic.c"),
    _row(DRIVER, "queue-stalled", "bnxt_en", "TX timeout detected",
         rf"(?P<driver>bnxt_en) {BDF} (?P<name>\S{{1,15}}): TX timeout detected, starting reset task",
         "Linux bnxt/bnxt.c"),
    _row(DRIVER, "ipoib-join", "ib_ipoib", "multicast join failed",
         r"(?:\S{1,24}: )?(?P<name>ib\S{1,13}): multicast join failed for [0-9a-f:]{4,60}, status (?P<error>-\d{1,5})",
         "Linux infiniband/ulp/ipoib/ipoib_multicast.c"),
    _row("link_down", None, "ethernet", "NIC Link is", _OTHER_NICS + r" Down", "Linux bnxt/bnxt.c, ice/ice_main.c"),
    _row("link_up", None, "ethernet", "NIC Link is", _OTHER_NICS + r" [Uu]p", "Linux bnxt/bnxt.c, ice/ice_main.c"),
)  # fmt: skip

_ACCELERATORS = (
    _row("amd_ras", None, "amdgpu", "hardware errors detected",
         _AMDGPU + r"(?:\{\d{1,20}\} ?)?socket: (?P<socket>\d{1,4}),.{0,40} \d{1,20} new "
         r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?P<code>\w{1,32}) block",
         _RAS),
    _row("amd_ras", None, "amdgpu", "hardware errors detected",  # a sum; a GPU that sleeps reads as 1048560 and more
         _AMDGPU + r"(?:\{\d{1,20}\} ?)?(?:socket: (?P<socket>\d{1,4})(?:, die: \d{1,4})?,? )?\d{1,5} "
         r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?:total in )?"
         r"(?P<code>\w{1,32}) block", "Linux 5.7 to 6.12 amdgpu/amdgpu_ras.c"),
    _row("amd_fatal", None, "amdgpu", "uncorrectable hardware error",
         _AMDGPU + r".{0,40}uncorrectable hardware error ?\((?P<code>\w{1,48})\) detected", _RAS),
    _row("amd_bad_pages", None, "amdgpu", "threshold",
         _AMDGPU + r"(?:Saved bad pages.{0,24} reaches threshold|RAS records: ?\d{1,9} exceed threshold)\b", _RAS),
    _row("amd_reset", None, "amdgpu", "GPU reset begin!", _AMDGPU + r"GPU reset begin!",
         "Linux amdgpu/amdgpu_device.c"),
    _row("amd_reset_failed", None, "amdgpu", "GPU reset",
         _AMDGPU + r"GPU reset(?:\(\d{1,9}\) failed| end with ret = (?P<error>-\d{1,5}))",
         "Linux amdgpu/amdgpu_device.c"),
    _row("amd_reset_failed", None, "amdgpu", "GPU Recovery Failed",
         _AMDGPU + r"GPU Recovery Failed: (?P<error>-\d{1,5})", "Linux amdgpu/amdgpu_device.c"),
    _row("amd_reset_failed", None, "amdgpu", "reset failed",
         _AMDGPU + r"(?:ASIC reset failed with error, (?P<error>-\d{1,5})|GPU mode1 reset failed|Mode2 reset failed!)",
         "Linux amdgpu/amdgpu_device.c, aldebaran.c, pm/swsmu/amdgpu_smu.c"),
    _row("amd_reset_failed", None, "amdgpu", "PCIe error recovery failed",
         rf"(?:{_AMDGPU}|\[amdgpu\]\] \*ERROR\* )PCIe error recovery failed, err:(?P<error>-\d{{1,5}})",
         "Linux amdgpu/amdgpu_device.c"),  # older kernels name no GPU
    _row(DRIVER, "amd-overheat", "amdgpu", "detected!",
         _AMDGPU + r"ERROR: GPU (?:over temperature range ?\(SW CTF\)|HW Critical Temperature Fault ?\(aka CTF\)) "
         r"detected!",
         "Linux amdgpu/pm/swsmu/amdgpu_smu.c, smu13/smu_v13_0.c"),
    _row(DRIVER, "amd-bad-pages-near", "amdgpu", "of threshold",
         _AMDGPU + r"RAS records: ?\d{1,9} exceeds 90% of threshold", "Linux amdgpu/amdgpu_ras_eeprom.c"),
    _row("amd_vram_lost", None, "amdgpu", "VRAM is lost", rf"(?:{_AMDGPU}|\[drm\] )VRAM is lost due to GPU reset!",
         "Linux amdgpu/amdgpu_device.c"),  # older kernels name no GPU
    _row("amd_init", None, "amdgpu", "Fatal error during GPU init", _AMDGPU + r"(?P<code>Fatal error during GPU init)",
         "Linux amdgpu/amdgpu_device.c"),
    _row(DRIVER, "firmware-missing", "amdgpu", "irect firmware load",
         rf"amdgpu {BDF}: Direct firmware load for (?P<file>amdgpu/\S{{1,100}}) failed with error "
         r"(?P<error>-\d{1,5})",
         "Linux drivers/base/firmware_loader/main.c"),
    _row(DRIVER, "no-atomics", "amdkfd", "PCI rejects atomics",
         r"\bkfd: (?:amdgpu: )?skipped device (?P<device>[0-9a-f:.]{4,16}), PCI rejects atomics",
         "Linux amdkfd/kfd_device.c"),
    _row(DRIVER, "amd-power-controller", "amdgpu", "previous command",
         _AMDGPU + r"SMU: I'm not done with your previous command", "Linux amdgpu/pm/swsmu/smu_cmn.c"),
    _row(DRIVER, "amd-queues-stuck", "amdkfd", "unrecoverable state",
         rf"(?:{_AMDGPU}|\bamdgpu: |\bkfd: )(?:[Tt]he cp|MES) might be in (?:an )?unrecoverable state",
         "Linux amdkfd/kfd_device_queue_manager.c"),  # older kernels name no GPU
    _row(DRIVER, "amd-lost", "amdgpu", "device lost from bus!", _AMDGPU + r"device lost from bus!",
         "Linux amdgpu/amdgpu_device.c"),
    _row(DRIVER, "kfd-not-added", "amdkfd", "NOT added due to errors",
         r"\bkfd(?: kfd)?: (?:amdgpu: )?device (?P<device>[0-9a-f]{4}:[0-9a-f]{4}) NOT added due to errors",
         "Linux amdkfd/kfd_device.c"),
    _row(DRIVER, "kfd-not-added", "amdkfd", "KFD is disabled",
         r"\bkfd: (?:amdgpu: )?KFD is disabled due to module initialization failure", "Linux amdkfd/kfd_module.c"),
    _row(DRIVER, "amd-queues-stuck", "amdkfd", "Queue preemption time out",
         r"\b(?:kfd|amdgpu): .{0,80}HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out",
         "Linux amdkfd/kfd_device_queue_manager.c"),
    _row(DRIVER, "amd-ring-timeout", "amdgpu", "timeout, signaled seq",
         rf"(?:{_AMDGPU}|amdgpu_job_timedout \[amdgpu\]\] \*ERROR\* )ring (?P<ring>\S{{1,32}}) timeout, signaled seq=",
         "Linux amdgpu/amdgpu_job.c"),  # older kernels name no GPU
    _row(DRIVER, "amd-block", "amdgpu", "of IP block <",
         rf"(?:{_AMDGPU}|\[amdgpu\]\] \*ERROR\* )(?:hw|sw|early)_init of IP block <(?P<block>\w{{1,32}})> failed "
         r"(?P<error>-\d{1,5})", "Linux amdgpu/amdgpu_device.c"),
    _row(DRIVER, "amd-block", "amdgpu", "PSP ",
         rf"(?:{_AMDGPU}|\[amdgpu\]\] \*ERROR\* )(?P<block>PSP) "
         r"(?:create ring|load \w{1,16}|firmware loading) failed",
         "Linux amdgpu/amdgpu_psp.c"),
    _row(DRIVER, "amd-page-fault", "amdgpu", "page fault (",
         _AMDGPU + r"\[\w{4,12}\] (?:retry |no-retry )?page fault \(src_id:", "Linux amdgpu/gmc_v9_0.c, gmc_v11_0.c"),
    _row("xgmi", None, "amdgpu", "XGMI:",
         _AMDGPU + r"XGMI: (?P<code>Failed to add node|Set topology failure|Get topology failure)",
         "Linux amdgpu/amdgpu_xgmi.c"),
    _row(DRIVER, "gaudi-heartbeat", "habanalabs", "heartbeat failed",
         r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): Device heartbeat failed!", _HABANA),
    _row(DRIVER, "gaudi-heartbeat", "habanalabs", "Device CPU packet timeout",
         rf"{_GAUDI}Device CPU packet timeout", "Linux habanalabs/common/firmware_if.c"),
    _row(DRIVER, "gaudi-boot", "habanalabs", "Device boot error - ",
         rf"{_GAUDI}Device boot error - (?P<what>DRAM initialization failed|FIT image corrupted|Thermal Sensor "
         r"initialization failed|security failure|eFuse failure|PLL failure|NIC F/W initialization failed)",
         "Linux habanalabs/common/firmware_if.c"),
    _row(DRIVER, "gaudi-boot", "habanalabs", "Device boot progress - ",
         rf"{_GAUDI}Device boot progress - (?P<what>Stuck in[^,\n]{{1,60}}|Cannot boot|DRAM initialization failed|"
         r"Thermal Sensor initialization failed)", "Linux habanalabs/common/firmware_if.c"),
    _row(DRIVER, "gaudi-overheat", "habanalabs", "CATTRIP",
         rf"{_GAUDI}HBM catastrophic temperature error \(CATTRIP\)", "Linux habanalabs/gaudi2/gaudi2.c"),
    _row(DRIVER, "gaudi-memory", "habanalabs", "System Critical Error Interrupt",
         rf"{_GAUDI}System Critical Error Interrupt - HBM\((?P<hbm>\d{{1,2}})\)", "Linux habanalabs/gaudi2/gaudi2.c"),
    _row(DRIVER, "gaudi-reset", "habanalabs", "oing to ",
         r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): Going to (?:reset device|RESET device!)", _HABANA),
    _row(DRIVER, "device-unusable", "habanalabs", "is NOT usable",
         rf"habanalabs[ :].{{0,80}}Failed to initialize (?:accel|hl)\d{{1,3}}\. Device {BDF} is NOT usable", _HABANA),
    _row(DRIVER, "device-unusable", "habanalabs", "is NOT usable",
         rf"habanalabs {BDF}: Failed to initialize (?P<name>(?:accel|hl)\d{{1,3}})\. Device is NOT usable",
         "Linux 5.15 habanalabs/common/device.c"),
    _row(DRIVER, "device-unusable", "habanalabs", "is NOT usable",
         r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): .{0,40}Failed to reset! Device is NOT usable",
         _HABANA),
    _row("npu_heartbeat", "heartbeat-lost", "ascend", "Heartbeat lost!",
         r"\[ascend\] .{0,200}Heartbeat lost! \(device=(?P<device>\d{1,5});", "Ascend driver"),
    _row("npu_fault", None, "ascend", "vent",
         r"\[ascend\] .{0,400}\b[Ee]vent[ _]id(?:=| ?: {0,4}\[)(?P<code>0x[0-9a-fA-F]{8})\b", "Ascend driver"),
    _row(DRIVER, "neuron-dma", "neuron", "DMA completion timeout",
         r"\bDMA completion timeout on (?P<name>nd\d{1,3}) for ", "aws-neuron-driver 2.24 neuron_dma.c"),
    _row(DRIVER, "neuron-miswired", "neuron", "ultraserver link is miss-wired",
         r"\b(?P<name>nd\d{1,3}): (?P<what>left|right) ultraserver link is miss-wired",
         "aws-neuron-driver 2.24 v3/neuron_pelect.c"),
    _row("neuron_hw", None, "neuron", "NEURON_HW_ERR",
         r"NEURON_HW_ERR=(?P<code>[A-Z_]{1,64}) .{0,300}?\bnd-id=(?P<device>\d{1,4}) nc-id=(?P<core>\d{1,4})\b"
         r"(?:.{0,80}?\baction=(?P<action>[A-Z_]{1,40}))?", "aws-neuronx-dkms"),
)  # fmt: skip

SENTENCES: tuple[Sentence, ...] = (*_NVIDIA, *_ACCELERATORS, *_PCI, *_MELLANOX, *_OTHER)
