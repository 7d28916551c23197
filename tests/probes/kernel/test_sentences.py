"""Every sentence of the kernel log: a line that it is, the part that it names, and a line like it that it is not."""

from __future__ import annotations

import pytest

from probes.kernel.log_events import events
from probes.kernel.log_lines import lines
from probes.kernel.sentence import Sentence
from probes.kernel.sentences import SENTENCES
from tests.probes.kernel.device_samples import ACCELERATOR_SAMPLES, INTEL_SAMPLES, NVIDIA_SAMPLES, PCI_SAMPLES
from tests.probes.kernel.host_samples import HOST_SAMPLES
from tests.probes.kernel.sample import GPU, NIC, PORT, Sample


def _nvidia(code: str, line: str, subject: str | None, unlike: str) -> Sample:
    return Sample("driver", code, line, subject, unlike)


_NAMED = f"NVRM: The NVIDIA GPU {GPU} (PCI ID: 10de:2b85)\n"
SAMPLES = (
    Sample("xid", "79", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", GPU, "NVRM: Xid info is on"),
    Sample("sxid", "24007", f"nvidia-nvswitch3: SXid (PCI:{NIC}): 24007, Fatal, Link 44 error", NIC,
           f"nvidia-nvswitch3: SXid (PCI:{NIC}): severity unknown"),
    Sample("gpu_lost", None, f"NVRM: GPU {GPU}: GPU has fallen off the bus.", GPU,
           "NVRM: a GPU has fallen off the bus"),
    _nvidia("power-cable", f"NVRM: GPU {GPU}: GPU does not have the necessary power cables connected.", GPU,
            "the manual lists the necessary power cables"),
    Sample("gpu_init", "RmInitAdapter failed", f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x22:0x56:884)", GPU,
           f"NVRM: GPU {GPU}: RmInitAdapter succeeded!"),
    _nvidia("open-modules", _NAMED + "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            GPU, "NVRM: loading NVIDIA open kernel modules 570"),
    _nvidia("closed-modules", _NAMED + "NVRM: installed in this system is not supported by open", GPU,
            "NVRM: the option is not supported by openrm"),
    _nvidia("closed-modules", _NAMED + "NVRM: installed in this vGPU host system is not supported by", GPU,
            "the vGPU host system is not supported by us"),
    _nvidia("unsupported-gpu", _NAMED + "NVRM: installed in this system is not supported by the",
            GPU, "NVRM: the clock is not supported by the card"),
    _nvidia("legacy-gpu", f"NVRM: ignoring the legacy GPU {GPU}", GPU, "NVRM: a legacy GPU was found"),
    _nvidia("bar-missing", f"NVRM: BAR1 is 0M @ 0x0 (PCI:{GPU})", GPU, f"NVRM: BAR1 is already mapped (PCI:{GPU})"),
    _nvidia("bar-invalid", "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", None,
            "NVRM: PCI I/O region assigned to your NVIDIA device"),
    _nvidia("bar-missing", f"NVRM: FATAL: Failed to re-allocate BAR1.\nNVRM: GPU {GPU}: RmInitAdapter failed!", GPU,
            "NVRM: no need to re-allocate BAR1"),
    _nvidia("registers-taken", "NVRM: request_mem_region failed for 16M @ 0xf6000000. This can", None,
            "sr: request_mem_region succeeded NVRM"),
    _nvidia("no-interrupt", "NVRM: Can't find an IRQ for your NVIDIA card!", None, "pci: cannot find an IRQ nvidia"),
    _nvidia("no-interrupt", f"NVRM: GPU {GPU}: No interrupts of any type are available. Cannot use this GPU.", GPU,
            "nvidia: No interrupts of any type are lost"),
    _nvidia("no-interrupt", f"NVRM: GPU {GPU}: Tried to get IRQ 44, but another driver", GPU,
            "nvidia: Tried to get IRQ 44, and has it"),
    _nvidia("memory-online", "NVRM: Failing GPU memory onlining as the onlining zone is not movable. pa: 0x1 size: 0x2",
            None, "NVRM: GPU memory onlining is done"),
    _nvidia("memory-online", "NVRM: GPU memory zone movable auto onlining failed!", None,
            "memory: auto onlining failed, NVRM"),
    _nvidia("removed-in-use", f"NVRM: Attempting to remove device {GPU} with non-zero usage count!", GPU,
            "NVRM: a non-zero usage count is usual"),
    _nvidia("nvlink-degraded", "NVRM: GPU2 knvlinkSetDegradedMode_IMPL: GPU2 marked Degraded. Error originated on "
            "linkId 11!", None, "NVRM: GPU2: no GPU is marked Degraded"),
    _nvidia("held", f"NVRM: GPU {GPU} is already bound to nouveau.", GPU, "nvidia-nvlink: already bound to a device"),
    _nvidia("held", "NVRM: The NVIDIA probe routine was not called for 2 device(s).", None,
            "nvidia: the hook was not called for resume"),
    Sample("driver", "nouveau", f"nouveau {GPU}: NVIDIA GA100 (170000a1)", GPU,
           f"nouveau {GPU}: NVIDIA GP107 (137000a1)"),
    _nvidia("gsp-firmware-missing", f"NVRM: GPU0 RmFetchGspRmImages: No firmware image found\n"
            f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x61:0x56:1697)", GPU, "nvidia-uvm: No firmware image found"),
    _nvidia("gsp-firmware-missing",
            f"nvidia {GPU}: Direct firmware load for nvidia/570.86/gsp_ga10x.bin failed with error -2", GPU,
            f"nvidia {GPU}: Direct firmware load for nvidia/570.86/gsp_ga10x.bin took 2 s"),
    _nvidia("gsp-not-started", f"NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM\n"
            f"NVRM: GPU {GPU}: rm_init_adapter failed", None, "NVRM: GPU0 GSP firmware RM is initialized"),
    _nvidia("gsp-not-started", "NVRM: GPU0 kgspBootstrap_GH100: Timeout waiting for lockdown release. It's also "
            f"possible\nNVRM: GPU {GPU}: RmInitAdapter failed! (0x62:0x65:2015)", GPU, "NVRM: lockdown release is on"),
    _nvidia("gsp-not-started", "NVRM: GPU0 kgspExecuteBooterLoad_TU102: failed to execute Booter Load: 0x65\n"
            f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x62:0x65:2015)", GPU, "NVRM: Booter Load is done"),
    _nvidia("needs-reset", "NVRM: GPU0 _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP\n"
            f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x62:0x40:2015)", GPU, "NVRM: WPR2 already up is expected"),
    _nvidia("gfw-boot", "NVRM: GPU0 kbifWaitForSecureBoot: VBIOS boot failed!!\n"
            f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x62:0x65:2015)", GPU, "nvidia: VBIOS boot failed once"),
    _nvidia("gfw-boot", "NVRM: failed to wait for bar firewall to lower\n"
            f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x62:0x65:2015)", GPU, "NVRM: bar firewall to lower"),
    _nvidia("gfw-boot", "NVRM: kgspWaitForGfwBootOk_TU102: failed to wait for GFW boot complete: 0x65 VBIOS\n"
            f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x62:0x65:1697)", GPU, "NVRM: will wait for GFW boot"),
    _nvidia("gsp-silent", "NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 8", None,
            "NVRM: GPU6 osInit: the heartbeat timed out once"),
    _nvidia("gsp-silent", "NVRM: GPU6 _kgspLogRpcTimeout: ******** GSP Timeout ********", None,
            "NVRM: ** GSP Timeout ** is set"),
    _nvidia("probe-failed", "NVRM: The NVIDIA probe routine failed for 1 device(s).", None,
            "nvidia: the probe routine failed over"),
    _nvidia("probe-failed", "NVRM: None of the NVIDIA devices were initialized.", None,
            "nvidia: None of the NVIDIA devices sleeps"),
    _nvidia("probe-failed", "NVRM: No NVIDIA devices probed.", None, "nvidia: No NVIDIA devices probed yet"),
    _nvidia("api-mismatch", "NVRM: API mismatch: the client has the version 440.100, but", None,
            "nvidia: API mismatch is impossible"),
    _nvidia("module-versions", "nvidia-modeset: Version mismatch: nvidia.ko(418.152) nvidia-modeset.ko(430.64)", None,
            "nvidia-fs: Version mismatch"),
    _nvidia("switch-versions", "nvidia-nvswitch: Version mismatch, kernel version 570.86 user version 570.124", None,
            "nvidia-nvswitch: Version mismatch is impossible"),
    _nvidia("switch-not-started", "nvidia-nvswitch3: Failed to initialize device : -5", "nvidia-nvswitch3",
            "nvidia-nvswitch3: using MSI-X"),
    _nvidia("uvm-assert", "nvidia-uvm: uvm_global.c:404 uvm_global_set_fatal_error_impl[pid:771] Encountered a global "
            "fatal error: RC_ERROR", None, "nvidia-uvm: no global fatal error"),
    _nvidia("uvm-assert", "nvidia-uvm: uvm_va_block.c:21 block_map[pid:771] Assert failed, condition x not true", None,
            "nvidia: Assert failed, condition x not true"),
    _nvidia("gds-module", "nvidia-fs:nvfs modules probe failed with error :-95", None, "modules probe failed, NVRM"),
    _nvidia("gds-pin", "nvidia-fs:nvfs_map_gpu_info:1320 Error ret -12 invoking nvidia_p2p_get_pages", None,
            "nvidia-fs:nvfs nvidia_p2p_get_pages is there"),
    Sample("amd_ras", "gfx", f"amdgpu {GPU}: amdgpu: socket: 0, die: 0 1 new uncorrectable hardware errors detected in "
           "gfx block", GPU, f"amdgpu {GPU}: amdgpu: no hardware errors detected"),
    Sample("amd_ras", "umc", f"amdgpu {GPU}: {{1}}socket: 5 3 uncorrectable hardware errors detected in umc block",
           GPU, f"amdgpu {GPU}: amdgpu: 1048560 uncorrectable hardware errors detected in umc block"),
    Sample("amd_fatal", "ERREVENT_ATHUB_INTERRUPT", f"amdgpu {GPU}: amdgpu: uncorrectable hardware error"
           "(ERREVENT_ATHUB_INTERRUPT) detected!", GPU, f"amdgpu {GPU}: amdgpu: no uncorrectable hardware error"),
    Sample("amd_bad_pages", None, f"amdgpu {GPU}: amdgpu: RAS records:128 exceed threshold:128", GPU,
           f"amdgpu {GPU}: amdgpu: threshold is 128"),
    Sample("amd_reset", None, f"amdgpu {GPU}: amdgpu: GPU reset begin!", GPU, "amdgpu: GPU reset begin!"),
    Sample("amd_reset_failed", None, f"amdgpu {GPU}: amdgpu: GPU reset(2) failed", GPU,
           f"amdgpu {GPU}: amdgpu: GPU reset(2) succeeded!"),
    Sample("amd_reset_failed", None, f"amdgpu {GPU}: amdgpu: GPU Recovery Failed: -19", GPU,
           "amdgpu: GPU Recovery Failed once"),
    Sample("amd_reset_failed", None, f"amdgpu {GPU}: amdgpu: ASIC reset failed with error, -62 for drm dev, {GPU}", GPU,
           f"amdgpu {GPU}: amdgpu: no reset failed"),
    Sample("amd_reset_failed", None, f"amdgpu {GPU}: amdgpu: PCIe error recovery failed, err:-62", GPU,
           "amdgpu: PCIe error recovery failed once"),
    Sample("driver", "amd-overheat", f"amdgpu {GPU}: amdgpu: ERROR: GPU over temperature range(SW CTF) detected!", GPU,
           f"amdgpu {GPU}: amdgpu: a GPU is detected!"),
    Sample("driver", "amd-bad-pages-near", f"amdgpu {GPU}: amdgpu: RAS records:116 exceeds 90% of threshold:128", GPU,
           f"amdgpu {GPU}: amdgpu: RAS records:12, 9% of threshold:128"),
    Sample("amd_vram_lost", None, "[drm] VRAM is lost due to GPU reset!", None, "amdgpu: VRAM is lost in thought"),
    Sample("amd_init", "Fatal error during GPU init", f"amdgpu {GPU}: amdgpu: Fatal error during GPU init", GPU,
           "amdgpu: Fatal error during GPU init"),
    Sample("driver", "firmware-missing",
           f"amdgpu {GPU}: Direct firmware load for amdgpu/psp_13_0_6_sos.bin failed with error -2", GPU,
           f"amdgpu {GPU}: Direct firmware load for amdgpu/psp_13_0_6_sos.bin"),
    Sample("driver", "no-atomics", "kfd kfd: amdgpu: skipped device 1002:73bf, PCI rejects atomics 730<0", None,
           "amdgpu: PCI rejects atomics of another"),
    Sample("driver", "amd-power-controller",
           f"amdgpu {GPU}: amdgpu: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x12", GPU,
           "amdgpu: SMU: the previous command is done"),
    Sample("driver", "amd-queues-stuck", f"amdgpu {GPU}: amdgpu: MES might be in unrecoverable state, issue a",
           GPU, "fans might be in an unrecoverable state"),
    Sample("driver", "amd-lost", f"amdgpu {GPU}: amdgpu: device lost from bus!", GPU, "usb 1-1: device lost from bus!"),
    Sample("driver", "kfd-not-added", "kfd kfd: amdgpu: device 1002:74a1 NOT added due to errors", None,
           "the rule was NOT added due to errors"),
    Sample("driver", "kfd-not-added", "kfd: amdgpu: KFD is disabled due to module initialization failure", None,
           "amdgpu: KFD is disabled by hand"),
    Sample("driver", "amd-queues-stuck",
           "amdgpu: HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out", None,
           "amdgpu: Queue preemption time out is 9 s"),
    Sample("driver", "amd-ring-timeout", f"amdgpu {GPU}: amdgpu: ring sdma0 timeout, signaled seq=1, emitted seq=3",
           GPU, "amdgpu: no timeout, signaled seq=1"),
    Sample("driver", "amd-block", f"amdgpu {GPU}: amdgpu: hw_init of IP block <psp> failed -22", GPU,
           "amdgpu: the name of IP block <psp> is known"),
    Sample("driver", "amd-block", "[drm:psp_hw_start [amdgpu]] *ERROR* PSP create ring failed!", None,
           "[drm] PSP is resuming..."),
    Sample("driver", "amd-page-fault", f"amdgpu {GPU}: amdgpu: [gfxhub0] page fault (src_id:0 ring:24)", GPU,
           "amdgpu: a page fault (none)"),
    Sample("xgmi", "Failed to add node", f"amdgpu {GPU}: amdgpu: XGMI: Failed to add node 0, hive 1", GPU,
           f"amdgpu {GPU}: amdgpu: XGMI: Add node 0, hive 1"),
    Sample("driver", "gaudi-heartbeat", "accel accel3: Device heartbeat failed! PCI link is broken", "accel3",
           "accel accel3: no heartbeat failed"),
    Sample("driver", "gaudi-heartbeat", "habanalabs hl3: Device CPU packet timeout (0x0)", "hl3",
           "habanalabs: Device CPU packet timeout is 10 s"),
    Sample("driver", "gaudi-boot", "habanalabs hl3: Device boot error - DRAM initialization failed", "hl3",
           "habanalabs hl3: Device boot error - Skipped waiting for BMC"),
    Sample("driver", "gaudi-boot", "habanalabs hl3: Device boot progress - Stuck in Preboot", "hl3",
           "habanalabs hl3: Device boot progress - ready"),
    Sample("driver", "gaudi-overheat", "habanalabs hl3: HBM catastrophic temperature error (CATTRIP) cause 0x1", "hl3",
           "habanalabs hl3: CATTRIP is off"),
    Sample("driver", "gaudi-memory", "accel accel3: System Critical Error Interrupt - HBM(2) MC(1) MC_CH(0) MC_PC(0). "
           "Error cause: x", "accel3", "accel accel3: System Critical Error Interrupt is masked"),
    Sample("driver", "gaudi-reset", "habanalabs hl3: Going to reset device", "hl3",
           "habanalabs hl3: not going to reset"),
    Sample("driver", "device-unusable", f"habanalabs: Failed to initialize accel3. Device {GPU} is NOT usable!", GPU,
           "habanalabs: the option is NOT usable"),
    Sample("driver", "device-unusable", f"habanalabs {GPU}: Failed to initialize hl2. Device is NOT usable !", GPU,
           f"habanalabs {GPU}: hl2 is NOT usable"),
    Sample("driver", "device-unusable", "habanalabs hl2: Failed to reset! Device is NOT usable", "hl2",
           "habanalabs hl2: is NOT usable yet"),
    Sample("npu_heartbeat", "heartbeat-lost", "[ascend] [drv_devmng] Heartbeat lost! (device=2; x)", None,
           "[ascend] Heartbeat lost! no"),
    Sample("npu_fault", "0x80e01801", "[ascend] [devmng] Receive event_id=0x80e01801", None,
           "[ascend] event ids: none"),
    Sample("driver", "neuron-dma", "neuron:ndma_memcpy_wait_for_completion: DMA completion timeout on nd03 for udma-5 "
           "q0 desc count 2", "nd03", "neuron: DMA completion timeout is 9 s"),
    Sample("driver", "neuron-miswired", "neuron:npe_elect: nd05: left ultraserver link is miss-wired to nd07",
           "nd05", "neuron: no ultraserver link is miss-wired"),
    Sample("neuron_hw", "HBM_UE", "NEURON_HW_ERR=HBM_UE instance nd-id=3 nc-id=1 action=x", None,
           "NEURON_HW_ERR= none"),
    Sample("dpc", "containment", f"pcieport {PORT}: DPC: containment event, status:0x1f01 source:0x0000", PORT,
           "DPC: containment is on"),
    Sample("dpc", "containment", f"pcieport {PORT}: DPC: unmasked uncorrectable error detected", PORT,
           "DPC: unmasked errors are none"),
    Sample("hotplug", "Link Down", f"pcieport {PORT}: pciehp: Slot(9): Link Down", PORT,
           f"pcieport {PORT}: pciehp: Slot(9): Link Up"),
    Sample("aer", "no-recovery", f"pcieport {PORT}: AER: device recovery failed", PORT,
           f"nvme {PORT}: device recovery failed AER"),
    Sample("aer", "no-recovery", f"pcieport {PORT}: AER: subordinate device reset failed", PORT,
           f"nvme {PORT}: subordinate device reset failed AER"),
    Sample("aer", "no-recovery", f"nvidia {GPU}: AER: can't recover (no error_detected callback)", GPU,
           f"nvidia {GPU}: AER: can't recover yet"),
    Sample("driver", "inaccessible", f"nvidia {GPU}: Unable to change power state from D3cold to D0, device "
           "inaccessible", GPU, f"nvme {GPU}: Unable to change power state from D3cold to D0, device inaccessible"),
    Sample("driver", "inaccessible", f"nvidia {GPU}: Refused to change power state, currently in D3", GPU,
           f"nvme {GPU}: Refused to change power state, currently in D3"),
    Sample("driver", "reset-unanswered", f"nvidia {GPU}: not ready 65535ms after bus reset; giving up", GPU,
           f"nvidia {GPU}: not ready 1023ms after bus reset; waiting, never; giving up"),
    Sample("driver", "bar-unassigned", f"pci {GPU}: BAR 2 [mem size 0x10000000 64bit pref]: failed to assign", GPU,
           f"pci {GPU}: BAR 0: failed to assign [io  size 0x1000]"),
    Sample("driver", "bar-unassigned", f"nvidia {GPU}: BAR 1 [mem size 0x2000000000 64bit pref]: not assigned; can't "
           "enable device", GPU, f"ahci {GPU}: BAR 5 [mem size 0x800]: not assigned; can't enable device"),
    Sample("driver", "vf-bar", f"mlx5_core {NIC}: not enough MMIO resources for SR-IOV", NIC,
           f"mlx5_core {NIC}: SR-IOV is off"),
    Sample("driver", "vf-bar", f"pci {NIC}: BAR 7: failed to assign [mem size 0x01000000 64bit pref]", NIC,
           f"pci {PORT}: BAR 7: failed to assign [io  size 0x1000]"),
    Sample("driver", "region-taken", f"vfio-pci {GPU}: BAR 1: can't reserve [mem 0x80000000-0x8fffffff 64b]", GPU,
           f"ahci {GPU}: nvidia BAR 5: can't reserve [mem 0x80000000-0x800007ff]"),
    Sample("driver", "reserved-memory", f"vfio-pci {NIC}: Device is ineligible for IOMMU domain attach due to platform "
           "RMRR requirement.  Contact your platform vendor.", NIC, "DMAR: a platform RMRR requirement was met"),
    Sample("pcie_bandwidth", None, f"pci {GPU}: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link "
           f"at {PORT} (capable of 126.024 Gb/s with 8.0 GT/s PCIe x16 link)", GPU,
           f"pci {GPU}: 63.008 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x8 link)"),
    Sample("driver", "iommu-fault", "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x1000", GPU,
           "DMAR: Intel(R) Virtualization Technology for Directed I/O"),
    Sample("driver", "iommu-fault", f"AMD-Vi: Event logged [IO_PAGE_FAULT device={GPU} domain=0x0]", GPU,
           "AMD-Vi: IO_PAGE_FAULT reporting is on"),
    Sample("driver", "iommu-fault", f"nvidia {GPU}: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0]", GPU,
           "nvidia: AMD-Vi: IO_PAGE_FAULT reporting is on"),
    Sample("driver", "iommu-fault", f"AMD-Vi: Event logged [INVALID_DEVICE_REQUEST device={GPU} pasid=0x00000]", GPU,
           "AMD-Vi: INVALID_DEVICE_REQUEST reporting is on"),
    Sample("driver", "iommu-fault", f"arm-smmu-v3 smmu.9.auto: event: F_TRANSLATION client: {GPU} sid: 0x300", GPU,
           "arm-smmu-v3 smmu.9.auto: event: C_BAD_STE client: (unassigned sid) sid: 0x300"),
    Sample("driver", "iommu-timeout", "arm-smmu-v3 smmu.9.auto: CMD_SYNC timeout at 0x00000a5b [hwprod 0x1]", None,
           "arm-smmu-v3: CMD_SYNC timeout is 1 s"),
    Sample("driver", "iommu-timeout", f"AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device={GPU} address=0x1]", GPU,
           "AMD-Vi: IOTLB_INV_TIMEOUT is logged"),
    Sample("driver", "iommu-timeout", "AMD-Vi: IOMMU 0000:c0:00.2: Completion-Wait loop timed out", None,
           "AMD-Vi: Completion-Wait loop ended"),
    Sample("driver", "iommu-timeout", "DMAR: VT-d detected Invalidation Time-out Error: SID 5300", None,
           "DMAR: VT-d detected Invalidation Time-out Error: SID ffff"),
    Sample("driver", "probe-error", f"mlx5_core: probe of {NIC} failed with error -22", NIC,
           "snd: probe of x failed with error -22"),
    Sample("driver", "probe-error", f"amdgpu {GPU}: probe with driver amdgpu failed with error -12", GPU,
           "snd 0000:3b:00.1: probe with driver snd failed with error -12"),
    Sample("driver", "rdma-probe", "mlx5_ib.rdma: probe of mlx5_core.rdma.3 failed with error -12",
           "mlx5_core.rdma.3", "snd: probe of snd.rdma.3 failed with error -12 infiniband "),
    Sample("driver", "interface-probe", "mlx5_core.eth mlx5_core.eth.1: probe with driver mlx5_core.eth failed with "
           "error -22", "mlx5_core.eth.1", "mlx5_core.vdpa mlx5_core.vdpa.1: x failed with error -22"),
    Sample("peermem", "symbol", "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)", None,
           "ib_register_peer_memory_client: nvidia is registered"),
    Sample("peermem", "register", "nvidia-peermem nv_mem_client_init:512 ERROR error while registering nc client", None,
           "bnxt_re: error while registering the device"),
    Sample("driver", "module-symbols", "nvidia: Unknown symbol drm_gem_object_free (err -2)", None,
           "zfs: Unknown symbol spl_x (err -2)"),
    Sample("driver", "module-foreign", "lnd_xyz: disagrees about version of symbol __ib_alloc_cq", None,
           "lnd_xyz: disagrees about version of symbol inet_bind"),
    Sample("driver", "module-kernel", "nvidia: version magic '6.8.0-40 SMP' should be '6.8.0-48 SMP'", None,
           "zfs: version magic '6.8.0-40 SMP' should be '6.8.0-48 SMP'"),
    Sample("driver", "vfio-memlock", "vfio_pin_pages_remote: RLIMIT_MEMLOCK (65536) exceeded", None,
           "io_uring: RLIMIT_MEMLOCK (65536) exceeded"),
    Sample("driver", "task-hung", "INFO: task nvidia-smi:48213 blocked for more than 122 seconds.", None,
           "INFO: task kworker/0:2:4821 blocked for more than 122 seconds."),
    Sample("driver", "tool-crashed", "nvidia-smi[9870]: segfault at 0 ip 00007f sp 00007f error 4 in libnvidia", None,
           "python3[9870]: segfault at 0 ip 00007f sp 00007f error 4 in libtorch.so"),
    Sample("driver", "memory-uncorrected", "EDAC MC1: 1 UE memory read error on CPU_SrcID#1_DIMM#0 (channel:1)", None,
           "EDAC MC1: Giving out device to module skx_edac"),
    Sample("driver", "memory-corrected", "EDAC MC0: 2 CE memory read error on CPU_SrcID#0_DIMM#0 (channel:1)", None,
           "EDAC MC: Ver: 3.0.0"),
    Sample("driver", "cpu-hot", "mce: CPU12: Package temperature above threshold, cpu clock throttled", None,
           "temperature above threshold of a disk"),
    Sample("driver", "hugepages", "HugeTLB: allocating 1024 of page size 2.00 MiB failed.  Only allocated 512 pages.",
           None, "HugeTLB: allocating pages of module x"),
    Sample("driver", "module-unsigned", "Loading of unsigned module is rejected", None,
           "nvidia: module verification failed: signature and/or required key missing - tainting kernel"),
    Sample("mlx5", "slot-power", f"mlx5_core {NIC}: x: Detected insufficient power on the PCIe slot (27W).", NIC,
           f"mlx5_core {NIC}: insufficient power is unknown"),
    Sample("mlx5", "module", f"mlx5_core {NIC}: x: Port module event[error]: module 0, Cable error, Bad cable", NIC,
           f"mlx5_core {NIC}: x: Port module event: module 0, Cable plugged"),
    Sample("mlx5", "temperature", f"mlx5_core {NIC}: temp_warn_event: High temperature on sensors", NIC,
           f"mlx5_core {NIC}: temp_warn is off"),
    Sample("mlx5", "access-reg", f"mlx5_core {NIC}: mlx5_cmd_check: ACCESS_REG(0x805) op_mod(0x1) failed", NIC,
           f"mlx5_core {NIC}: mlx5_cmd_check: ACCESS_REG(0x805) op_mod(0x1) is fine"),
    Sample("mlx5", "health", f"mlx5_core {NIC}: poll_health:739: Fatal error 1 detected", NIC,
           f"mlx5_core {NIC}: Fatal error reporting is on"),
    Sample("mlx5", "health", f"mlx5_core {NIC}: print_health_info: device's health compromised - reached miss count",
           NIC, f"mlx5_core {NIC}: health is good"),
    Sample("mlx5", "health",
           f"mlx5_core {NIC}: x: Health issue observed, firmware internal error, severity(3) ERROR:", NIC,
           f"mlx5_core {NIC}: x: Health issue observed, High temperature, severity(4) WARNING:"),
    Sample("mlx5", "health", f"mlx5_core {NIC}: print_health_info:406:(pid 0): synd 0x8: unrecoverable hardware error",
           NIC, f"mlx5_core {NIC}: print_health_info:406:(pid 0): synd 0x0: "),
    Sample("mlx5", "command",
           f"mlx5_core {NIC}: wait_func: CMD(0x936) timeout. Will cause a leak of a command resource",
           NIC, "mlx5: no leak of a command"),
    Sample("mlx5", "command",
           f"mlx5_core {NIC}: cmd_work_handler:951:(pid 7): ACCESS_REG(0x805) timed out while waiting for a slot.", NIC,
           f"mlx5_core {NIC}: idle while waiting for a slot"),
    Sample("mlx5", "reset-failed",
           f"mlx5_core {NIC}: health recovery flow aborted, PCI reads still not working", NIC,
           "mlx5: PCI reads still not working"),
    Sample("mlx5", "reset-failed", f"mlx5_core {NIC}: link_toggle:362: PCI link not ready (0xffff) after 4000 ms",
           NIC, "mlx5_core: PCI link not ready"),
    Sample("mlx5", "reset-failed", f"mlx5_core {NIC}: link_toggle:379: Firmware is not responsive (0xffff) after "
           "4000 ms", NIC, f"mlx5_core {NIC}: firmware is not responsive yet"),
    Sample("mlx5", "tx-timeout", f"mlx5_core {NIC} ens1: TX timeout detected", NIC, "mlx5_core: TX timeout is 5 s"),
    Sample("mlx5", "firmware-init", f"mlx5_core {NIC}: Firmware over 120000 MS in pre-initializing state, aborting",
           NIC,
           f"mlx5_core {NIC}: firmware is in initializing state"),
    Sample("mlx5", "recovered", f"mlx5_core {NIC}: x: health recovery succeeded", NIC,
           "mlx5_core: health recovery succeeded"),
    Sample("mlx5", "started", f"mlx5_core {NIC}: firmware version: 28.39.1002", NIC,
           f"mlx5_core {NIC}: firmware version: 65535.65535.65535"),
    Sample("mlx5", "load", f"mlx5_core {NIC}: mlx5_load_one failed with error code -110", NIC,
           f"mlx5_core {NIC}: query failed with error code -110"),
    Sample("driver", "limits", f"mlx5_core {NIC}: mlx5_cmd_check:816:(pid 0): CREATE_MKEY(0x200) op_mod(0x0) failed, "
           "status limits exceeded(0x8), syndrome (0x59c8a4)", NIC,
           f"mlx5_core {NIC}: mlx5_cmd_check:816: limits exceeded is status 0x8"),
    Sample("driver", "limits", f"mlx5_core {NIC}: mlx5_cmd_check:810:(pid 9): CREATE_QP(0x500) op_mod(0x0) failed, "
           "status no resources(0xf), syndrome (0x1)", NIC, f"mlx5_core {NIC}: no resources"),
    Sample("driver", "rdma-probe", f"mlx5_core {NIC}: mlx5_rescan_drivers:352: Device[1] (rdma) failed to load", NIC,
           f"mlx5_core {NIC}: Device[1] (vdpa) failed to load"),
    Sample("driver", "interface-probe", f"mlx5_core {NIC}: mlx5_rescan_drivers:352: Device[0] (eth) failed to load",
           NIC, f"mlx5_core {NIC}: Device[1] (vdpa) failed to load"),
    Sample("driver", "no-mkey", "infiniband mlx5_0: create_mkey_callback:146:(pid 1): async reg mr failed. status -12",
           "mlx5_0", "infiniband mlx5_0: create_mkey_callback:146:(pid 1): async reg mr failed. status -11"),
    Sample("link_down", None, f"mlx5_core {NIC} ens1f0: Link down", NIC, f"mlx5_core {NIC}: Link training"),
    Sample("link_up", None, f"mlx5_core {NIC} ens1f0: Link up", NIC, f"mlx5_core {NIC}: Link training"),
    Sample("nic_firmware", "reset-failed", f"bnxt_en {NIC} ens1: Firmware reset aborted, rc -19", NIC,
           "bnxt_en: Firmware reset aborted"),
    Sample("nic_firmware", "reset", f"bnxt_en {NIC} ens1: Fatal firmware reset event, data1: 0x1", NIC,
           f"bnxt_en {NIC} ens1: Non-fatal firmware reset event, data1: 0x1"),
    Sample("nic_firmware", "command", f"bnxt_en {NIC}: Error (timeout: 5000015) msg {{0x41 0x2f}} len:0", NIC,
           f"bnxt_en {NIC}: Error (timeout: 500) of a test"),
    Sample("nic_firmware", "health", f"bnxt_en {NIC} ens1: Firmware not responding, status: 0x2000", NIC,
           "bnxt_en: Firmware not responding"),
    Sample("nic_firmware", "health", f"bnxt_en {NIC}: QPLIB: bnxt_re_is_fw_stalled: FW STALL Detected. cmdq[0xe]=0x3",
           NIC, "bnxt_en: FW STALL counter"),
    Sample("nic_firmware", "reset-failed", f"bnxt_en {NIC} ens1: bnxt_open() failed during FW reset", NIC,
           f"bnxt_en {NIC} ens1: quiet during FW reset"),
    Sample("nic_firmware", "reset-failed",
           f"bnxt_en {NIC} ens1: A previous firmware reset has not completed, aborting", NIC,
           f"bnxt_en {NIC} ens1: Solicited firmware reset event"),
    Sample("nic_firmware", "reset", f"bnxt_en {NIC} ens1: Detected firmware fatal condition, initiating reset", NIC,
           f"bnxt_en {NIC} ens1: no firmware fatal condition"),
    Sample("nic_firmware", "command", f"bnxt_en {NIC}: cmdq[0x1a]=0x3 timedout (20000)msec", NIC,
           f"bnxt_en {NIC}: nothing timedout"),
    Sample("driver", "limits", f"bnxt_en {NIC} bnxt_re0: Create CQ failed - max exceeded", NIC,
           f"bnxt_en {NIC} bnxt_re0: no max exceeded"),
    Sample("driver", "pause-storm", f"bnxt_en {NIC} ens1: Pause Storm detected!", NIC,
           f"bnxt_en {NIC} ens1: Pause Storm mitigation is on"),
    Sample("driver", "doorbells", f"bnxt_en {NIC} ens1: One or more MMIO doorbells dropped by the device!", NIC,
           f"bnxt_en {NIC} ens1: no doorbells dropped"),
    Sample("driver", "nic-hot", f"bnxt_en {NIC} ens1: Chip temperature has gone above the critical thermal threshold!",
           NIC, f"bnxt_en {NIC} ens1: Chip temperature has gone below the critical thermal threshold!"),
    Sample("driver", "rdma-port", "infiniband bnxt_re0: Couldn't start port", "bnxt_re0",
           "infiniband: Couldn't start port"),
    Sample("driver", "module-refused", f"bnxt_en {NIC} ens1: Unqualified SFP+ module detected on Port 2", NIC,
           f"bnxt_en {NIC} ens1: SFP+ module is there"),
    Sample("driver", "module-refused", f"ice {NIC}: The module's power requirements exceed the device's power supply. "
           "Cannot start link.", NIC, f"ice {NIC}: a module was plugged"),
    Sample("nic_firmware", "reset-failed", f"ice {NIC}: Rebuild failed, unload and reload driver", NIC,
           f"ice {NIC}: Rebuild failed once"),
    Sample("nic_firmware", "reset-failed", f"ice {NIC} ens1: tx_timeout recovery unsuccessful, device is in "
           "unrecoverable state.", NIC, "ice 0: unrecoverable state is none"),
    Sample("nic_firmware", "reset-failed", f"ice {NIC}: ice_pci_err_slot_reset failed, device is unrecoverable", NIC,
           f"ice {NIC}: no device is unrecoverable"),
    Sample("driver", "firmware-recovery", f"ice {NIC}: Firmware recovery mode detected. Limiting functionality.", NIC,
           f"ice {NIC}: firmware recovery mode is off"),
    Sample("driver", "safe-mode", f"ice {NIC}: The DDP package file was not found or could not be read. Entering Safe "
           "Mode", NIC, f"ice {NIC}: Safe Mode is off"),
    Sample("driver", "driver-too-old",
           f"ice {NIC}: The driver for the device stopped because the NVM image is newer than "
           "expected.", NIC, f"ice {NIC}: the NVM image is newer"),
    Sample("driver", "cloud-nic-silent", f"ena {NIC} ens5: Keep alive watchdog timeout.", NIC,
           "ena 0: keep alive watchdog timeout"),
    Sample("driver", "cloud-nic-reset", f"ena {NIC} ens5: Trigger reset is on", NIC, f"ena {NIC} ens5: reset is done"),
    Sample("nic_firmware", "health", f"ena {NIC} ens5: FW isn't responsive, skipping reset routine", NIC,
           "ena 0: FW isn't responsive"),
    Sample("nic_firmware", "reset-failed", f"ena {NIC} ens5: Reset attempt failed. Can not reset the device", NIC,
           f"ena {NIC} ens5: Reset attempt failed once"),
    Sample("nic_firmware", "command", f"efa {NIC} efa_0: Wait for completion (polling) timeout", NIC,
           f"efa {NIC} efa_0: completion (polling)"),
    Sample("nic_firmware", "command", f"efa {NIC} efa_0: Reading register timed out. expected: req id[7] offset[0x10]",
           NIC, "efa 0: Reading register timed out"),
    Sample("nic_firmware", "reset-failed", f"efa {NIC} efa_0: Reset indication didn't turn on", NIC,
           "efa 0: Reset indication didn't"),
    Sample("nic_firmware", "reset-failed", f"efa {NIC} efa_0: Device isn't ready, can't reset device", NIC,
           "efa 0: can't reset device"),
    Sample("driver", "limits", f"efa {NIC} efa_0: Failed to process command ALLOC_PD (opcode 14) comp_status 1 err -12",
           NIC, f"efa {NIC} efa_0: Failed to process command REG_MR (opcode 7) comp_status 3 err -22"),
    Sample("nic_firmware", "health", f"ionic {NIC}: FW heartbeat stalled at 1234", NIC, "ionic : FW heartbeat stalled"),
    Sample("nic_firmware", "reset-failed", f"ionic {NIC}: FW Up: LIFs restart failed - err -110", NIC,
           "ionic : LIFs restart failed"),
    Sample("nic_firmware", "command", f"ionic {NIC}: DEVCMD IDENTIFY (1) timeout after 10 secs", NIC,
           f"ionic {NIC}: DEVCMD IDENTIFY (1) done after 1 secs"),
    Sample("driver", "rdma-probe", f"ice {NIC}: IRDMA hardware initialization FAILED init_state=9 status=-110", NIC,
           f"ice {NIC}: IRDMA self test FAIL"),
    Sample("nic_firmware", "reset", f"ice {NIC} irdma0: Requesting a reset", NIC, f"ice {NIC}: Requesting a reset"),
    Sample("driver", "queue-stalled", "NETDEV WATCHDOG: ens1np0 (mlx5_core): transmit queue 7 timed out 5350 ms",
           "ens1np0", "NETDEV WATCHDOG: wlan0 (iwlwifi): transmit queue 7 timed out"),
    Sample("driver", "queue-stalled",
           f"ice {NIC} ens1: NETDEV WATCHDOG: CPU: 12: transmit queue 7 timed out 5350 ms", NIC,
           f"r8169 {NIC} eth0: NETDEV WATCHDOG: CPU: 12: transmit queue 7 timed out 5350 ms"),
    Sample("driver", "queue-stalled", f"bnxt_en {NIC} ens1: TX timeout detected, starting reset task!", NIC,
           f"tg3 {NIC} eth0: TX timeout detected"),
    Sample("driver", "ipoib-join", "mlx5_0: ib0: multicast join failed for ff12:401b:ffff::0001, status -22", "ib0",
           "eth0: multicast join failed for ff12::1, status -22"),
    Sample("driver", "queue-stalled", f"ixgbe {NIC} ens1: Detected Tx Unit Hang", NIC,
           f"wifi {NIC} ens1: Detected Tx Unit Hang"),
    Sample("driver", "queue-stalled", f"i40e {NIC} ens1: tx_timeout: VSI_seid: 390, Q 7, NTC: 0x1", NIC,
           "net: no tx_timeout: VSI"),
    Sample("driver", "cloud-nic-stalled", f"ena {NIC} ens5: Found a Tx that wasn't completed on time, qid 3, index 9.",
           NIC, f"ena {NIC} ens5: all were completed on time"),
    Sample("driver", "nic-gone", f"ixgbe {NIC}: Adapter removed", NIC, "usb 1-1: Adapter removed"),
    Sample("driver", "nic-gone", f"igb {NIC} eno1: PCIe link lost, device now detached", NIC, "igb: no PCIe link lost"),
    Sample("driver", "nic-hot", f"ixgbe {NIC} ens1: Network adapter has been stopped because it has over heated.", NIC,
           f"ixgbe {NIC} ens1: it has not over heated"),
    Sample("driver", "nic-hot", f"ixgbe {NIC} ens1: Fan has stopped, replace the adapter", NIC,
           "ixgbe: Fan has stopped, replace the adapter"),
    Sample("driver", "malformed-requests", f"ice {NIC}: Malicious Driver Detection event 4 on TX queue 9 PF# 1 VF# 0",
           NIC, f"ice {NIC}: enables Malicious Driver Detection"),
    Sample("driver", "port-mtu", f"ice {NIC} rocep59s0: MTU setting [512] too low for RDMA traffic. Minimum MTU is 576",
           NIC, f"ice {NIC}: the link is too low for RDMA"),
    Sample("driver", "port-mtu",
           f"mlx5_core {NIC} ens1: mlx5e_set_dev_port_mtu: VPort MTU 1500 is different than netdev mtu 9000", NIC,
           f"mlx5_core {NIC} ens1: this is different than netdev mtu"),
    Sample("driver", "reset-incomplete", f"mlx5_core {NIC}: mlx5_sync_reset_x:12:(pid 9): Sync reset did not complete, "
           "state=1", NIC, "mlx5_core : Sync reset did not complete"),
    Sample("driver", "interrupt-missed", f"mlx5_core {NIC}: cmd_x:12:(pid 9): Recovered 4 EQEs on cmd_eq", NIC,
           f"mlx5_core {NIC}: cmd_x:12:(pid 9): Recovered 0 EQEs on cmd_eq"),
    Sample("driver", "interrupt-missed", f"mlx5_core {NIC} ens1: Recovered 4 eqes on EQ 0x1a", NIC,
           f"mlx5_core {NIC} ens1: Recovered 0 eqes on EQ 0x1a"),
    Sample("driver", "interrupt-missed", f"efa {NIC} rdmap0s6: The device sent a completion but the driver "
           "didn't receive any MSI-X interrupt for admin cmd CREATE_QP(1)", NIC, f"efa {NIC}: it didn't receive"),
    Sample("driver", "queue-error", f"ice {NIC} rocep94s0: abnormal ae_id = 0x50a bool qp=1 qp_id = 12, ae_src=1", NIC,
           "ice : no abnormal ae_id"),
    Sample("driver", "queue-error", f"irdma {NIC} rocep94s0: ICRDMA: abnormal ae_id = 0x502 (AE_LLP_TOO_MANY_RETRIES) "
           "bool qp=1 qp_id = 7, ae_src=1", NIC, f"irdma {NIC} rocep94s0: no abnormal ae_id"),
    Sample("link_down", None, f"bnxt_en {NIC} ens1: NIC Link is Down", NIC, f"bnxt_en {NIC} ens1: NIC Link is slow"),
    Sample("link_up", None, f"ice {NIC} ens1: NIC Link is up 100 Gbps Full Duplex", NIC, "ice 0: NIC Link is slow"),
    Sample("driver", "lacp-silent", "bond0: Warning: No 802.3ad response from the link partner for any adapters in the "
           "bond", "bond0", "the log has No 802.3ad response"),
    Sample("driver", "network-loop", "bond0: (slave ens1): An illegal loopback occurred on slave", "bond0",
           "bond0: no illegal loopback"),
    Sample("driver", "network-loop", "br0: received packet on bond0 with own address as source address "
           "(addr:b8:3f:d2:00:11:22, vlan:0)", "br0", "br0: packets with own address as source are dropped"),
    Sample("driver", "address-duplicate", "IPv6: ens1: IPv6 duplicate address fd00::12 used by b8:3f:d2:00:11:22 "
           "detected!", "ens1", "IPv6: wlan0: IPv6 duplicate address fd00::12 detected!"),
    Sample("driver", "neighbor-table", "neighbour: arp_cache: neighbor table overflow!", None,
           "nvidia: table overflow"),
    Sample("driver", "conntrack-full", "nf_conntrack: nf_conntrack: table full, dropping packet", None,
           "table full, dropping packet"),
    Sample("driver", "checksum-failure", "ens1: hw csum failure", "ens1", "no interface has had a hw csum failure"),
    Sample("driver", "rdma-refused", "cm_destroy_id_wait_timeout: cm_id=00000000a1b2c3d4 timed out. state 7 -> 0, "
           "refcnt=1", None, "infiniband : it timed out. state unknown"),
    Sample("driver", "queue-stalled", "ib0: transmit timeout: latency 4100 msecs", "ib0",
           "eth0: transmit timeout: latency 4100 msecs"),
    Sample("driver", "queue-error", "mlx5_0: ibp94s0: failed send event (status=12, wrid=9 vend_err 0x81)", "ibp94s0",
           "ib0: failed send event (status=5, wrid=9 vend_err 0xf9)"),
    Sample("driver", "storage-link", "LNetError: 211:0:(o2iblnd_cb.c:3457:kiblnd_check_txs_locked()) Timed out tx: "
           "active_txs(WSQ:100), 2(s) expired, peer 10.9.8.7@o2ib", "10.9.8.7@o2ib",
           "LNet: 211:0:(o2iblnd.c:1:kiblnd_startup()) 10.9.8.7@o2ib is up"),
)  # fmt: skip
ALL_SAMPLES = (
    *SAMPLES, *NVIDIA_SAMPLES, *ACCELERATOR_SAMPLES, *INTEL_SAMPLES, *PCI_SAMPLES, *HOST_SAMPLES,
)  # fmt: skip


def _first_row(line: str) -> Sentence | None:
    texts = (line if "\n" not in line else part for part in line.split("\n"))
    return next((row for text in texts for row in SENTENCES if row.needle in text and row.pattern.search(text)), None)


def _read(text: str) -> list[tuple[str, str | None, str | None]]:
    dated = "\n".join(f"[   12.500000] {line}" for line in text.split("\n"))
    return [(event.kind, event.code, event.subject) for event in events(lines(dated, None))[0]]


def test_each_sentence_has_a_sample() -> None:
    """Of each row at least one."""
    assert set(map(repr, SENTENCES)) == {repr(_first_row(sample.line)) for sample in ALL_SAMPLES}


@pytest.mark.parametrize("sample", ALL_SAMPLES, ids=lambda item: f"{item.kind} {item.code}")
def test_each_sentence_is_read(sample: Sample) -> None:
    """It names the part."""
    if sample.code == "started":
        return  # an event only after a failure

    assert (sample.kind, sample.code, sample.subject) in _read(sample.line)


@pytest.mark.parametrize("sample", ALL_SAMPLES, ids=lambda item: f"{item.kind} {item.code}")
def test_a_line_with_the_same_words_is_not_that_sentence(sample: Sample) -> None:
    """The literal alone finds nothing: the pattern decides."""
    row = _first_row(sample.line)
    assert row is not None
    assert row.needle in sample.unlike
    assert (sample.kind, sample.code) not in [event[:2] for event in _read(sample.unlike)]


BAR = f"pci {NIC}: VF BAR 0 [mem size 0x02000000 64bit pref]: failed to assign"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BAR, [("driver", "vf-bar", NIC)]),
        (f"{BAR}\nmlx5_core {NIC}: VF BAR 0 [mem 0x4000000-0x5ffffff 64bit pref]: assigned", []),
        (f"{BAR}\npci {NIC}: BAR 0 [mem 0x4000000-0x5ffffff 64bit pref]: assigned", [("driver", "vf-bar", NIC)]),
        (f"pci {NIC}: BAR 0 [mem 0x40-0x5f]: assigned\n{BAR}", [("driver", "vf-bar", NIC)]),
        (
            f"nvidia-nvswitch3: SXid (PCI:{NIC}): 24007, Data {{0x00000007}}\n"
            f"nvidia-nvswitch3: SXid (PCI:{NIC}): 24008, Fatal, Link 44 error\n"
            f"nvidia-nvswitch3: SXid (PCI:{NIC}): 24008, Severity 5 Engine instance 44",
            [("sxid", "24007", NIC), ("sxid", "24008", NIC)],
        ),
    ],
    ids=["failed", "assigned in the end", "another region", "assigned before", "the rest of an SXid"],
)
def test_what_several_lines_state_together(text: str, expected: list[tuple[str, str | None, str | None]]) -> None:
    assert expected == _read(text)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("irdma: probe of ice.roce.0 failed with error -5", "rdma-probe"),
        ("irdma.gen_2 ice.iwarp.1: probe with driver irdma.gen_2 failed with error -110", "rdma-probe"),
        ("bnxt_re bnxt_en.rdma.0: probe with driver bnxt_re failed with error -12", "rdma-probe"),
        (f"nvidia {GPU}: BAR 0 [mem 0x8000-0x8fff 64bit pref]: can't reserve", "region-taken"),
        (f"i40e {NIC}: Rx/Tx is disabled on this device because an unsupported SFP module type was detected.",
         "module-refused"),
        (f"ice {NIC}: The installed module is incompatible with the device's NVM image. Cannot start link.",
         "module-refused"),
        (f"bnxt_en {NIC} ens1: SFP+ module is shutdown", "module-refused"),
        ("infiniband rocep1s0: Couldn't register device with driver model", "rdma-port"),
        ("infiniband irdma1: Couldn't set up InfiniBand P_Key/GID cache", "rdma-port"),
        ("INFO: task ibstat:4711 blocked for more than 122 seconds.", "task-hung"),
        ("ib1: multicast join failed for ff12:401b:ffff::0001, status -110", "ipoib-join"),
        (f"pci {GPU}: not ready 65535ms after FLR; giving up", "reset-unanswered"),
        ("kfd: skipped device 1002:7300, PCI rejects atomics", "no-atomics"),
        ("NVRM: GPU0 kgspInitRm_IMPL: GSP-FMC reported an error while attempting to boot GSP: 0x57", "gsp-not-started"),
        ("NVRM: GPU0 kgspHealthCheck_TU102: GSP RM heartbeat timed out", "gsp-silent"),
        ("NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out", "gsp-silent"),
        ("NVRM kfspSendBootCommands_GH100: FSP boot cmds failed. RM cannot boot.", "gsp-not-started"),
        ("NVRM: kfspPollForResponse_IMPL: FSP command timed out", "gsp-not-started"),
        ("NVRM: _memmgrMemReadOrWriteWithGsp: Fatal error detected in GSP-DMA encrypt: 0x25!", "confidential-compute"),
        ("NVRM: knvlinkUpdatePostRxDetectLinkMask_GH100: Failed to update Rx Detect Link mask!", "nvlink-not-trained"),
        (f"bnxt_en {NIC} ens1: RESET_DONE not set during FW reset.", "reset-failed"),
        (f"bnxt_en {NIC} ens1: Failed to reinitialize after aborted firmware reset", "reset-failed"),
        ("infiniband bnxt_re0: Create QP failed - max exceeded!", "limits"),
        ("infiniband bnxt_re0: Failed to create CQ -max exceeded", "limits"),
        (f"mlx5_core {NIC}: CREATE_MKEY(0x200) timeout while waiting for command semaphore.", "command"),
        (f"mlx5_core {NIC}: reset reload flow aborted, PCI reads still not working", "reset-failed"),
        (f"mlx5_core {NIC}: probe_one:1716:(pid 1): mlx5_pci_init failed with error code -12", "load"),
        (f"ena {NIC} ens5: The device has detected an unhealthy state, reset is requested", "cloud-nic-reset"),
        (f"ice {NIC}: HW runtime init FAIL status = -110 last cmpl = 3", "rdma-probe"),
        (f"amdgpu {GPU}: amdgpu: ERROR: GPU HW Critical Temperature Fault(aka CTF) detected!", "amd-overheat"),
        (f"amdgpu {GPU}: amdgpu: GPU mode1 reset failed", None),
        (f"pci {NIC}: Refused to change power state, currently in D3", "inaccessible"),
        (f"mlx5_core {NIC}: SR-IOV: IOV BARS not allocated", "vf-bar"),
        (f"amdgpu {GPU}: BAR 0: not claimed; can't enable device", "bar-unassigned"),
        ("nvidia-nvswitch0: Failed during device post init : -3", "switch-not-started"),
    ],
)  # fmt: skip
def test_other_forms_of_a_sentence(line: str, code: str) -> None:
    assert [code] == [event[1] for event in _read(line)]


STUCK = "[drm:atom_op_jump [amdgpu]] *ERROR* atombios stuck in loop"
FATAL = f"amdgpu {GPU}: amdgpu: Fatal error during GPU init"
HCA = f"mlx5_core {NIC}: handle_hca_cap failed"
QUIET = "\n".join(f"usb 1-{number}: new device" for number in range(20)).replace("usb", "infiniband")


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (f"{STUCK}\namdgpu {GPU}: amdgpu: amdgpu_device_ip_init failed\n{FATAL}", STUCK),
        (f"{HCA}\n{FATAL}", None),
        (FATAL, None),
        (f"{STUCK}\n{QUIET}\n{FATAL}", None),
        (f"{STUCK}\namdgpu {GPU}: amdgpu: MEM ECC is active.\n{FATAL}", STUCK),
        (f"{STUCK}\n{FATAL}\n{FATAL.replace('3b', '3c')}", None),
        (f"{HCA}\nmlx5_core {NIC}: mlx5_load_one failed with error code -22", HCA),
        (f"{HCA}\nmlx5_core: probe of {NIC} failed with error -22", HCA),
    ],
    ids=["the first", "another driver", "none", "long before", "one between", "another device", "mlx5", "driver core"],
)
def test_a_start_that_failed_has_the_line_where_the_trouble_began(text: str, before: str | None) -> None:
    dated = "\n".join(f"[   12.500000] {line}" for line in text.split("\n"))
    found = [event for event in events(lines(dated, None))[0] if event.kind != "unexplained"]
    assert before == dict(found[-1].detail).get("before")


RECORD = (
    "{{7}}[Hardware Error]:  Error 0, type: {severity}\n{{7}}[Hardware Error]:   section_type: PCIe error\n"
    "{{7}}[Hardware Error]:   port_type: 4, root port\n{{7}}[Hardware Error]:   device_id: 0000:3a:01.0"
)


@pytest.mark.parametrize(
    ("severity", "expected", "words"),
    [
        ("corrected", "corrected", "Corrected"),
        ("info", "corrected", "Corrected"),
        ("recoverable", "nonfatal", "(Non-Fatal)"),
        ("fatal", "fatal", "(Fatal)"),
    ],
)
def test_a_pcie_error_of_the_firmware_is_one_of_the_kernel(severity: str, expected: str, words: str) -> None:
    text = RECORD.format(severity=severity)
    dated = "\n".join(f"[   12.500000] {line}" for line in text.split("\n"))
    (event,) = events(lines(dated, None))[0]

    assert ("aer", PORT, None, (("severity", expected),)) == (event.kind, event.subject, event.code, event.detail)
    assert words in event.text


@pytest.mark.parametrize("line", ["section_type: unknown", "device_id: 0000:3a:01.0"])
def test_another_record_of_the_firmware_is_no_pcie_error(line: str) -> None:
    assert [] == _read(f"{{7}}[Hardware Error]:  Error 0, type: fatal\n{{7}}[Hardware Error]:   {line}")


@pytest.mark.parametrize(
    ("severity", "section", "code"),
    [
        ("corrected", "memory error", "memory-corrected"),
        ("recoverable", "memory error", "memory-uncorrected"),
        ("fatal", "general processor error", "machine-check"),
        ("corrected", "ARM processor error", "cpu-corrected"),
    ],
)
def test_records_of_the_firmware_about_the_host(severity: str, section: str, code: str) -> None:
    rows = (
        f"Error 0, type: {severity}", "fru_text: Card03, ChnF, DIMM0", f"section_type: {section}",
        "physical_address: 0x0000003f2a1b0c40",
    )  # fmt: skip
    text = "\n".join(f"[   12.500000] {{3}}[Hardware Error]:  {row}" for row in rows)
    (event,) = events(lines(text, None))[0]

    assert ("driver", code, {"what": "Card03, ChnF, DIMM0"}) == (event.kind, event.code, dict(event.detail))

    place = "\n[   12.500000] {3}[Hardware Error]:   DIMM location: P1 DIMMF1"
    (event,) = events(lines(text + place, None))[0]
    assert {"what": "P1 DIMMF1"} == dict(event.detail)


CALL = " ? mlx5_cmd_exec+0x21/0x30 [mlx5_core]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"watchdog: BUG: soft lockup - CPU#7 stuck for 26s! [sh:12]\nRIP: 0010:x+0x1/0x20\n{CALL}",
         [("cpu-lockup", "mlx5_core")]),
        ("BUG: kernel NULL pointer dereference, address: 48\nRIP: 0010:nv_x+0x1/0x20 [nvidia]",
         [("kernel-oops", "nvidia")]),
        ("BUG: kernel NULL pointer dereference, address: 48\nRIP: 0010:x+0x1/0x20", [("kernel-oops", None)]),
        (f"INFO: task python3:12 blocked for more than 122 seconds.\n{CALL}", [("hung-in-driver", "mlx5_core")]),
        ("INFO: task python3:12 blocked for more than 122 seconds.\n x+0x1/0x20", [("task-blocked", None)]),
        ("INFO: task python3:12 blocked for more than 122 seconds.\n nfs_x+0x1/0x20 [nfs]",
         [("hung-in-driver", "nfs")]),
        ("INFO: task nvidia-smi:12 blocked for more than 122 seconds.\n x+0x1/0x20", [("task-hung", None)]),
    ],
)  # fmt: skip
def test_a_call_names_the_driver_of_a_stall(text: str, expected: list[tuple[str, str | None]]) -> None:
    dated = "\n".join(f"[   12.500000] {line}" for line in text.split("\n"))
    found = events(lines(dated, None))[0]

    assert expected == [(event.code, dict(event.detail).get("module")) for event in found]


def test_a_card_that_one_line_names_with_its_address_is_one_device() -> None:
    """The driver of Gaudi counts its cards, and states which is at which address when it gives one up."""
    text = "habanalabs hl4: failed to initialize the H/W\n"
    text += "habanalabs 0000:9a:00.0: Failed to initialize hl4. Device is NOT usable !"

    assert {subject for _, _, subject in _read(text)} == {"0000:9a:00.0"}
