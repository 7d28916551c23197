"""Sentences of the drivers of AMD GPUs, Gaudi, Ascend and Neuron. Files of Linux (6.12), where no other is named."""

from probes.kernel.sentence import BDF, DRIVER, row

_GAUDI = r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): "
_AMDGPU = rf"amdgpu {BDF}: (?:amdgpu: )?"
_RAS = "Linux amdgpu/amdgpu_ras.c"
_HABANA = "Linux habanalabs/common/device.c"

ACCELERATORS = (
    row("amd_ras", None, "amdgpu", "hardware errors detected",
        _AMDGPU + r"(?:\{\d{1,20}\} ?)?socket: (?P<socket>\d{1,4}),.{0,40} \d{1,20} new "
        r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?P<code>\w{1,32}) block",
        _RAS),
    row("amd_ras", None, "amdgpu", "hardware errors detected",  # a sum; a GPU that sleeps reads as 1048560 and more
        _AMDGPU + r"(?:\{\d{1,20}\} ?)?(?:socket: (?P<socket>\d{1,4})(?:, die: \d{1,4})?,? )?\d{1,5} "
        r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?:total in )?"
        r"(?P<code>\w{1,32}) block", "Linux 5.7 to 6.12 amdgpu/amdgpu_ras.c"),
    row("amd_fatal", None, "amdgpu", "uncorrectable hardware error",
        _AMDGPU + r".{0,40}uncorrectable hardware error ?\((?P<code>\w{1,48})\) detected", _RAS),
    row("amd_bad_pages", None, "amdgpu", "threshold",
        _AMDGPU + r"(?:Saved bad pages.{0,24} reaches threshold|RAS records: ?\d{1,9} exceed threshold)\b", _RAS),
    row("amd_reset", None, "amdgpu", "GPU reset begin!", _AMDGPU + r"GPU reset begin!",
        "Linux amdgpu/amdgpu_device.c"),
    row("amd_reset_failed", None, "amdgpu", "GPU reset",
        _AMDGPU + r"GPU reset(?:\(\d{1,9}\) failed| end with ret = (?P<error>-\d{1,5}))",
        "Linux amdgpu/amdgpu_device.c"),
    row("amd_reset_failed", None, "amdgpu", "GPU Recovery Failed",
        _AMDGPU + r"GPU Recovery Failed: (?P<error>-\d{1,5})", "Linux amdgpu/amdgpu_device.c"),
    row("amd_reset_failed", None, "amdgpu", "reset failed",
        _AMDGPU + r"(?:ASIC reset failed with error, (?P<error>-\d{1,5})|GPU mode1 reset failed|Mode2 reset failed!)",
        "Linux amdgpu/amdgpu_device.c, aldebaran.c, pm/swsmu/amdgpu_smu.c"),
    row("amd_reset_failed", None, "amdgpu", "PCIe error recovery failed",
        rf"(?:{_AMDGPU}|\[amdgpu\]\] \*ERROR\* )PCIe error recovery failed, err:(?P<error>-\d{{1,5}})",
        "Linux amdgpu/amdgpu_device.c"),  # older kernels name no GPU
    row(DRIVER, "amd-overheat", "amdgpu", "detected!",
        _AMDGPU + r"ERROR: GPU (?:over temperature range ?\(SW CTF\)|HW Critical Temperature Fault ?\(aka CTF\)) "
        r"detected!",
        "Linux amdgpu/pm/swsmu/amdgpu_smu.c, smu13/smu_v13_0.c"),
    row(DRIVER, "amd-bad-pages-near", "amdgpu", "of threshold",
        _AMDGPU + r"RAS records: ?\d{1,9} exceeds 90% of threshold", "Linux amdgpu/amdgpu_ras_eeprom.c"),
    row("amd_vram_lost", None, "amdgpu", "VRAM is lost", rf"(?:{_AMDGPU}|\[drm\] )VRAM is lost due to GPU reset!",
        "Linux amdgpu/amdgpu_device.c"),  # older kernels name no GPU
    row("amd_init", None, "amdgpu", "Fatal error during GPU init", _AMDGPU + r"(?P<code>Fatal error during GPU init)",
        "Linux amdgpu/amdgpu_device.c"),
    row(DRIVER, "firmware-missing", "amdgpu", "irect firmware load",
        rf"amdgpu {BDF}: Direct firmware load for (?P<file>amdgpu/\S{{1,100}}) failed with error "
        r"(?P<error>-\d{1,5})",
        "Linux drivers/base/firmware_loader/main.c"),
    row(DRIVER, "no-atomics", "amdkfd", "PCI rejects atomics",
        r"\bkfd: (?:amdgpu: )?skipped device (?P<device>[0-9a-f:.]{4,16}), PCI rejects atomics",
        "Linux amdkfd/kfd_device.c"),
    row(DRIVER, "amd-power-controller", "amdgpu", "previous command",
        _AMDGPU + r"SMU: I'm not done with your previous command", "Linux amdgpu/pm/swsmu/smu_cmn.c"),
    row(DRIVER, "amd-queues-stuck", "amdkfd", "unrecoverable state",
        rf"(?:{_AMDGPU}|\bamdgpu: |\bkfd: )(?:[Tt]he cp|MES) might be in (?:an )?unrecoverable state",
        "Linux amdkfd/kfd_device_queue_manager.c"),  # older kernels name no GPU
    row(DRIVER, "amd-lost", "amdgpu", "device lost from bus!", _AMDGPU + r"device lost from bus!",
        "Linux amdgpu/amdgpu_device.c"),
    row(DRIVER, "kfd-not-added", "amdkfd", "NOT added due to errors",
        r"\bkfd(?: kfd)?: (?:amdgpu: )?device (?P<device>[0-9a-f]{4}:[0-9a-f]{4}) NOT added due to errors",
        "Linux amdkfd/kfd_device.c"),
    row(DRIVER, "kfd-not-added", "amdkfd", "KFD is disabled",
        r"\bkfd: (?:amdgpu: )?KFD is disabled due to module initialization failure", "Linux amdkfd/kfd_module.c"),
    row(DRIVER, "amd-queues-stuck", "amdkfd", "Queue preemption time out",
        r"\b(?:kfd|amdgpu): .{0,80}HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out",
        "Linux amdkfd/kfd_device_queue_manager.c"),
    row(DRIVER, "amd-ring-timeout", "amdgpu", "timeout, signaled seq",
        rf"(?:{_AMDGPU}|amdgpu_job_timedout \[amdgpu\]\] \*ERROR\* )ring (?P<ring>\S{{1,32}}) timeout, signaled seq=",
        "Linux amdgpu/amdgpu_job.c"),  # older kernels name no GPU
    row(DRIVER, "amd-block", "amdgpu", "of IP block <",
        rf"(?:{_AMDGPU}|\[amdgpu\]\] \*ERROR\* )(?:hw|sw|early)_init of IP block <(?P<block>\w{{1,32}})> failed "
        r"(?P<error>-\d{1,5})", "Linux amdgpu/amdgpu_device.c"),
    row(DRIVER, "amd-block", "amdgpu", "PSP ",
        rf"(?:{_AMDGPU}|\[amdgpu\]\] \*ERROR\* )(?P<block>PSP) "
        r"(?:create ring|load \w{1,16}|firmware loading) failed",
        "Linux amdgpu/amdgpu_psp.c"),
    row(DRIVER, "amd-page-fault", "amdgpu", "page fault (",
        _AMDGPU + r"\[\w{4,12}\] (?:retry |no-retry )?page fault \(src_id:", "Linux amdgpu/gmc_v9_0.c, gmc_v11_0.c"),
    row("xgmi", None, "amdgpu", "XGMI:",
        _AMDGPU + r"XGMI: (?P<code>Failed to add node|Set topology failure|Get topology failure)",
        "Linux amdgpu/amdgpu_xgmi.c"),
    row(DRIVER, "gaudi-heartbeat", "habanalabs", "heartbeat failed",
        r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): Device heartbeat failed!", _HABANA),
    row(DRIVER, "gaudi-heartbeat", "habanalabs", "Device CPU packet timeout",
        rf"{_GAUDI}Device CPU packet timeout", "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-boot", "habanalabs", "Device boot error - ",
        rf"{_GAUDI}Device boot error - (?P<what>DRAM initialization failed|FIT image corrupted|Thermal Sensor "
        r"initialization failed|security failure|eFuse failure|PLL failure|NIC F/W initialization failed)",
        "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-boot", "habanalabs", "Device boot progress - ",
        rf"{_GAUDI}Device boot progress - (?P<what>Stuck in[^,\n]{{1,60}}|Cannot boot|DRAM initialization failed|"
        r"Thermal Sensor initialization failed)", "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-overheat", "habanalabs", "CATTRIP",
        rf"{_GAUDI}HBM catastrophic temperature error \(CATTRIP\)", "Linux habanalabs/gaudi2/gaudi2.c"),
    row(DRIVER, "gaudi-memory", "habanalabs", "System Critical Error Interrupt",
        rf"{_GAUDI}System Critical Error Interrupt - HBM\((?P<hbm>\d{{1,2}})\)", "Linux habanalabs/gaudi2/gaudi2.c"),
    row(DRIVER, "gaudi-reset", "habanalabs", "oing to ",
        r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): Going to (?:reset device|RESET device!)", _HABANA),
    row(DRIVER, "device-unusable", "habanalabs", "is NOT usable",
        rf"habanalabs[ :].{{0,80}}Failed to initialize (?:accel|hl)\d{{1,3}}\. Device {BDF} is NOT usable", _HABANA),
    row(DRIVER, "device-unusable", "habanalabs", "is NOT usable",
        rf"habanalabs {BDF}: Failed to initialize (?P<name>(?:accel|hl)\d{{1,3}})\. Device is NOT usable",
        "Linux 5.15 habanalabs/common/device.c"),
    row(DRIVER, "device-unusable", "habanalabs", "is NOT usable",
        r"(?:accel|habanalabs) (?P<name>accel\d{1,3}|hl\d{1,3}): .{0,40}Failed to reset! Device is NOT usable",
        _HABANA),
    row("npu_heartbeat", "heartbeat-lost", "ascend", "Heartbeat lost!",
        r"\[ascend\] .{0,200}Heartbeat lost! \(device=(?P<device>\d{1,5});", "Ascend driver"),
    row("npu_fault", None, "ascend", "vent",
        r"\[ascend\] .{0,400}\b[Ee]vent[ _]id(?:=| ?: {0,4}\[)(?P<code>0x[0-9a-fA-F]{8})\b", "Ascend driver"),
    row(DRIVER, "neuron-dma", "neuron", "DMA completion timeout",
        r"\bDMA completion timeout on (?P<name>nd\d{1,3}) for ", "aws-neuron-driver 2.24 neuron_dma.c"),
    row(DRIVER, "neuron-miswired", "neuron", "ultraserver link is miss-wired",
        r"\b(?P<name>nd\d{1,3}): (?P<what>left|right) ultraserver link is miss-wired",
        "aws-neuron-driver 2.24 v3/neuron_pelect.c"),
    row("neuron_hw", None, "neuron", "NEURON_HW_ERR",
        r"NEURON_HW_ERR=(?P<code>[A-Z_]{1,64}) .{0,300}?\bnd-id=(?P<device>\d{1,4}) nc-id=(?P<core>\d{1,4})\b"
        r"(?:.{0,80}?\baction=(?P<action>[A-Z_]{1,40}))?", "aws-neuronx-dkms"),
)  # fmt: skip
