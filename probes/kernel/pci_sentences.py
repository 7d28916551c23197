"""Sentences of the PCI core, the IOMMU and the kernel itself. Files of Linux (6.12), where no other is named."""

from probes.kernel.sentence import BDF, DRIVER, DRIVERS, TOOLS, row

_BDF_OR_SHORT = rf"(?:{BDF}|(?P<short>[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]))"
_PORT = rf"pcieport {BDF}: (?:AER: )?"
# A function of a NIC on the auxiliary bus (mlx5_core.rdma.0, ice.roce.1), to the probe of which Linux 6.10 and newer
# gives another form
_AUXILIARY = r"(?P<name>(?P<parent>mlx5_core|bnxt_en|ice|i40e|idpf|ionic|mana)"
_PROBE_ENDS = r"(?:: probe with driver \S{1,40})? failed with error (?P<error>-\d{1,5})"

PCI = (
    row("dpc", "containment", "pcieport", "DPC: containment",
        _PORT + r"DPC: containment event, status:(?P<status>0x[0-9a-f]+)", "Linux pci/pcie/dpc.c"),
    row("dpc", "containment", "pcieport", "DPC: unmasked",
        _PORT + r"DPC: (?P<what>unmasked uncorrectable error detected)", "Linux pci/pcie/dpc.c"),
    row("hotplug", None, "pciehp", "pciehp",
        _PORT + r"pciehp: Slot\((?P<slot>[^)]{1,32})\): (?P<code>Link Down|Card not present)",
        "Linux pci/hotplug/pciehp_ctrl.c"),
    row("aer", "no-recovery", "pcieport", "device recovery failed",
        rf"pcieport {BDF}: (?:AER: )?device recovery failed", "Linux pci/pcie/err.c"),
    row("aer", "no-recovery", "pcieport", "subordinate device reset failed",
        rf"pcieport {BDF}: (?:AER: )?subordinate device reset failed", "Linux pci/pcie/err.c"),
    row("aer", "no-recovery", "pcieport", "can't recover",
        rf"(?P<driver>[\w-]{{1,32}}) {BDF}: (?:AER: )?can't recover \(no error_detected callback\)",
        "Linux pci/pcie/err.c"),
    row(DRIVER, "inaccessible", "pci", "ower state from D3",
        rf"(?P<driver>{DRIVERS}|pci) {BDF}: (?:Unable to|can't) change power state from (?P<state>D3\w{{1,6}}) to D0"
        r"(?:, device inaccessible| \(config space inaccessible\))", "Linux pci/pci.c"),
    row(DRIVER, "inaccessible", "pci", "ower state, currently in D3",
        rf"(?P<driver>{DRIVERS}|pci) {BDF}: Refused to change power state, currently in (?P<state>D3\w{{0,6}})",
        "Linux 3.10 to 5.4 pci/pci.c"),
    row(DRIVER, "reset-unanswered", "pci", "; giving up",
        rf"(?P<driver>{DRIVERS}|pci) {BDF}: not ready \d{{1,7}}ms after (?P<what>[\w ]{{2,40}}); giving up",
        "Linux pci/pci.c (pci_dev_wait)"),
    row(DRIVER, "bar-unassigned", "pci", "failed to assign",
        rf"\bpci {BDF}: (?:BAR (?P<bar>[0-5])(?: \[mem[^\]]{{0,60}}\]: failed to assign|: failed to assign \[mem))",
        "Linux 4.2 to 6.12 pci/setup-res.c"),
    row(DRIVER, "bar-unassigned", "pci", "; can't enable device",
        rf"(?P<driver>{DRIVERS}) {BDF}: BAR (?P<bar>[0-5])(?: \[mem[^\]]{{0,60}}\])?: not (?:assigned|claimed); "
        r"can't enable device", "Linux 3.18 to 6.12 pci/setup-res.c"),
    row(DRIVER, "vf-bar", "pci", "SR-IOV",
        rf"\b(?P<driver>{DRIVERS}) {BDF}: (?:not enough MMIO resources for SR-IOV|SR-IOV: IOV BARS not allocated)",
        "Linux pci/iov.c"),
    row(DRIVER, "vf-bar", "pci", "failed to assign",
        rf"\bpci {BDF}: (?:VF BAR [0-5]|BAR (?:7|10|11))(?: \[mem[^\]]{{0,60}}\]: failed to assign|: failed to assign"
        r" \[mem)", "Linux 4.2 to 6.12 pci/setup-res.c"),  # 8 and 9 may be windows of a bridge
    row(DRIVER, "region-taken", "pci", "can't reserve",
        rf"(?P<driver>{DRIVERS}) {BDF}: BAR (?P<bar>[0-5])(?: \[mem[^\]]{{0,60}}\])?: can't reserve",
        "Linux pci/pci.c (pci_request_region)"),
    row(DRIVER, "reserved-memory", "dmar", "platform RMRR requirement",
        rf"(?P<driver>{DRIVERS}) {BDF}: Device is ineligible for IOMMU domain attach due to platform RMRR",
        "Linux iommu/intel/iommu.c"),
    row("pcie_bandwidth", None, "pci", "available PCIe bandwidth",
        rf"{BDF}: (?P<available>[\d.]+) Gb/s available PCIe bandwidth, "
        r"limited by (?P<limit>[\d.]+ GT/s(?: PCIe)? x\d+) link at (?P<hop>[0-9a-fA-F:.]+) "
        r"\(capable of (?P<capable>[\d.]+) Gb/s", "Linux pci/pci.c (__pcie_print_link_status)"),
    row(DRIVER, "iommu-fault", "dmar", "DMAR:",
        r"DMAR: \[(?:DMA (?:Read|Write)|INTR-REMAP)[^\]]{0,20}\] Request device "
        r"\[(?P<short>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\]",
        "Linux iommu/intel/dmar.c"),
    row(DRIVER, "iommu-fault", "AMD-Vi", "IO_PAGE_FAULT",
        rf"AMD-Vi: Event logged \[IO_PAGE_FAULT device={_BDF_OR_SHORT}",
        "Linux iommu/amd/iommu.c"),
    row(DRIVER, "iommu-fault", "AMD-Vi", "IO_PAGE_FAULT",
        rf"(?P<driver>[\w-]{{1,32}}) {BDF}: AMD-Vi: Event logged \[IO_PAGE_FAULT", "Linux iommu/amd/iommu.c"),
    row(DRIVER, "iommu-fault", "AMD-Vi", "INVALID_DEVICE_REQUEST",
        rf"AMD-Vi: Event logged \[INVALID_DEVICE_REQUEST device={_BDF_OR_SHORT}",
        "Linux iommu/amd/iommu.c"),
    row(DRIVER, "iommu-fault", "arm-smmu-v3", " client: ",
        rf"arm-smmu-v3 \S{{1,60}}: event: F_(?:TRANSLATION|ADDR_SIZE|ACCESS|PERMISSION) client: {BDF} ",
        "Linux 6.15 iommu/arm/arm-smmu-v3/arm-smmu-v3.c"),
    row(DRIVER, "iommu-timeout", "arm-smmu-v3", "CMD_SYNC timeout",
        r"arm-smmu-v3 \S{1,60}: CMD_SYNC timeout at ", "Linux iommu/arm/arm-smmu-v3/arm-smmu-v3.c"),
    row(DRIVER, "iommu-timeout", "AMD-Vi", "IOTLB_INV_TIMEOUT",
        rf"AMD-Vi: Event logged \[IOTLB_INV_TIMEOUT device={_BDF_OR_SHORT}",
        "Linux iommu/amd/iommu.c"),
    row(DRIVER, "iommu-timeout", "AMD-Vi", "Completion-Wait loop",
        r"AMD-Vi: (?:IOMMU \S{1,16}: )?Completion-Wait loop timed out", "Linux iommu/amd/iommu.c"),
    row(DRIVER, "iommu-timeout", "dmar", "Invalidation Time-out Error:",
        r"DMAR: VT-d detected Invalidation Time-out Error: SID (?!ffff\b)", "Linux iommu/intel/dmar.c"),
    row(DRIVER, "probe-error", "driver core", "failed with error",
        rf"(?P<driver>{DRIVERS})(?:: probe of {BDF}) failed with error (?P<error>-\d{{1,5}})",
        "Linux drivers/base/dd.c"),
    row(DRIVER, "probe-error", "driver core", "failed with error",
        rf"(?P<driver>{DRIVERS}) {BDF}: probe with driver \S{{1,40}} failed with error (?P<error>-\d{{1,5}})",
        "Linux drivers/base/dd.c"),
    row(DRIVER, "rdma-probe", "driver core", " failed with error",
        rf"(?:: probe of |^|\s){_AUXILIARY}\.(?:rdma|roce|iwarp)\.\d{{1,4}}){_PROBE_ENDS}", "Linux drivers/base/dd.c"),
    row(DRIVER, "interface-probe", "driver core", " failed with error",
        rf"(?:: probe of |^|\s){_AUXILIARY}\.eth\.\d{{1,4}}){_PROBE_ENDS}", "Linux drivers/base/dd.c"),
    row("peermem", "symbol", "nvidia_peermem", "ib_register_peer_memory_client",
        r"(?P<module>nvidia_peermem|nv_peer_mem): (?:Unknown symbol|disagrees about version of symbol) "
        r"(?P<symbol>ib_register_peer_memory_client)", "Linux kernel/module/main.c"),
    row("peermem", "register", "nvidia_peermem", "error while registering",
        r"nvidia-peermem .{0,60}\berror while registering \w{1,20} client",
        "open-gpu-kernel-modules 595 nvidia-peermem/nvidia-peermem.c"),
    row(DRIVER, "module-symbols", "kernel", " symbol ",
        r"(?P<module>nvidia|nvidia_uvm|nvidia_fs|amdgpu|mlx5_core|mlx5_ib|ib_core|ib_uverbs|bnxt_re|irdma|efa|"
        r"habanalabs|neuron): "
        r"(?:Unknown symbol|disagrees about version of symbol) (?P<symbol>\w{1,80})", "Linux kernel/module/main.c"),
    row(DRIVER, "module-kernel", "kernel", "version magic",
        r"(?P<module>nvidia|amdgpu|mlx5_core|mlx5_ib|bnxt_re|irdma|efa|habanalabs|neuron): version magic "
        r"'(?P<built>[^']{1,80})' should be '(?P<running>[^']{1,80})'", "Linux kernel/module/main.c"),
    row(DRIVER, "vfio-memlock", "vfio", "RLIMIT_MEMLOCK",
        r"\bvfio_\w{1,40}: .{0,60}RLIMIT_MEMLOCK \(\d{1,20}\) exceeded", "Linux vfio/vfio_iommu_type1.c"),
    row(DRIVER, "task-hung", "kernel", "blocked for more than",
        rf"INFO: task (?P<task>{TOOLS}):\d{{1,10}} blocked for more than \d{{1,7}} seconds",
        "Linux kernel/hung_task.c"),
    row(DRIVER, "tool-crashed", "kernel", "segfault at",
        rf"(?P<task>{TOOLS})\[\d{{1,10}}\]: segfault at ", "Linux arch/x86/mm/fault.c"),
    row(DRIVER, "memory-uncorrected", "edac", "EDAC MC",
        r"EDAC MC(?P<controller>\d{1,3}): \d{1,9} UE (?P<what>.{0,80}? on \S{1,80})", "Linux drivers/edac/edac_mc.c"),
    row(DRIVER, "memory-corrected", "edac", "EDAC MC",
        r"EDAC MC(?P<controller>\d{1,3}): \d{1,9} CE (?P<what>.{0,80}? on \S{1,80})", "Linux drivers/edac/edac_mc.c"),
    row(DRIVER, "cpu-hot", "mce", "temperature above threshold",
        r"CPU\d{1,5}: (?P<what>Core|Package) temperature above threshold", "Linux x86 thermal/intel/therm_throt.c"),
    row(DRIVER, "hugepages", "kernel", "HugeTLB: allocating",
        r"HugeTLB: allocating (?P<asked>\d{1,9}) of page size .{1,40}failed\. +Only allocated (?P<got>\d{1,9})",
        "Linux mm/hugetlb.c"),
    row(DRIVER, "module-unsigned", "kernel", "odule",
        r"Loading of (?:unsigned module|module with (?:unavailable key|unsupported crypto)) is rejected"
        r"|Lockdown: \S{1,40}: unsigned module loading is restricted", "Linux kernel/module/signing.c"),
)  # fmt: skip
