"""Sentences of the drivers of AMD GPUs, Gaudi, Ascend, Neuron and GPUs of Intel. Files of Linux (6.12), where no other
is named; of Intel's drivers, i915 and xe, those of Linux 6.14 drivers/gpu/drm, and of intel-gpu-i915-backports.
"""

from probes.kernel.sentence import BDF, DRIVER, Sentence, row

_GAUDI = r"(?:accel|habanalabs) (?:[0-9a-f:]{7,12}\.0 )?(?P<name>accel\d{1,3}|hl\d{1,3}): "
_AMDGPU = rf"amdgpu {BDF}: (?:amdgpu: )?"
# drm's macros name no GPU, newer ones after its address; pr_err() names the driver alone
_AMD = rf"(?:{_AMDGPU}(?:\[drm\] \*ERROR\* )?|\[amdgpu\]\] \*ERROR\* |\bamdgpu: )"
_NEURON = r"\bneuron:\w{1,60}: .{0,40}?"
_RAS = "Linux amdgpu/amdgpu_ras.c"
_HABANA = "Linux habanalabs/common/device.c"

ACCELERATORS = (
    row("amd_ras", None, "amdgpu", "hardware errors detected",
        _AMDGPU + r"(?:\{\d{1,20}\} ?)?socket: (?P<socket>\d{1,4}),.{0,40} \d{1,20} new "
        r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?P<code>\w{1,32}) block",
        _RAS),
    row("amd_ras", None, "amdgpu", "hardware errors detected",  # a sum; a GPU that sleeps reads as 1048560 and more
        _AMDGPU + r"(?:\{\d{1,20}\} ?)?(?:socket: (?P<socket>\d{1,4})(?:, die: \d{1,4})?,? )?\d{1,5} (?:new )?"
        r"(?P<severity>correctable|uncorrectable|deferred) hardware errors detected in (?:total in )?"
        r"(?P<code>\w{1,32}) block", "Linux 5.7 to 6.12 amdgpu/amdgpu_ras.c"),
    row("amd_fatal", None, "amdgpu", "uncorrectable hardware error",
        _AMDGPU + r".{0,40}uncorrectable hardware error ?\((?P<code>\w{1,48})\) detected", _RAS),
    row("amd_bad_pages", None, "amdgpu", "threshold",
        _AMDGPU + r"(?:Saved bad pages.{0,24} reaches threshold|RAS records: ?\d{1,9} exceed threshold)\b", _RAS),
    row("amd_bad_pages", None, "amdgpu", "in BAD status", _AMDGPU + r"This GPU is in BAD status",
        "Linux amdgpu/amdgpu_ras_eeprom.c"),
    row("amd_reset", None, "amdgpu", "GPU reset begin!", _AMDGPU + r"GPU reset begin!",
        "Linux amdgpu/amdgpu_device.c"),
    row("amd_reset_failed", None, "amdgpu", "GPU reset",
        _AMDGPU + r"GPU reset(?:\(\d{1,9}\) failed| end with ret = (?P<error>-\d{1,5}))",
        "Linux amdgpu/amdgpu_device.c"),
    row("amd_reset_failed", None, "amdgpu", "GPU Recovery Failed",
        _AMDGPU + r"GPU Recovery Failed: (?P<error>-\d{1,5})", "Linux amdgpu/amdgpu_device.c"),
    row("amd_reset_failed", None, "amdgpu", "reset failed",
        _AMD + r"(?:ASIC reset failed with error, (?P<error>-\d{1,5})|GPU mode[12] reset failed|Mode2 reset failed!|"
        r"GPU pre asic reset failed with err)",
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
        rf"{_AMD}(?:(?:hw|sw|early|late)_init|resume) of IP block <(?P<block>\w{{1,32}})> failed "
        r"(?P<error>-\d{1,5})", "Linux amdgpu/amdgpu_device.c"),
    row(DRIVER, "amd-block", "amdgpu", "PSP ",
        rf"{_AMD}(?P<block>PSP) (?:create ring|ring init|tmr init|resume|load [\w ]{{1,20}}|firmware loading) failed",
        "Linux amdgpu/amdgpu_psp.c"),
    row(DRIVER, "amd-block", "amdgpu", "ucode",
        _AMD + r"(?:failed to load ucode (?P<block>\w{1,32})|GFX ucode load failed|rlc autoload: gc ucode autoload "
        r"timeout)",
        "Linux amdgpu/amdgpu_psp.c, aldebaran.c"),
    row(DRIVER, "amd-block", "amdgpu", "test failed",
        _AMD + r"(?:(?:kiq )?ring (?P<ring>\S{1,32} )?test failed|(?:ring \S{1,32} )?ib (?:ring )?test failed|IB test "
        r"failed on )", "Linux amdgpu/amdgpu_ring.c, amdgpu_ib.c"),
    row(DRIVER, "amd-block", "amdgpu", "init failed",
        _AMD + r"(?:amdgpu_device_ip_(?:late_)?|amdgpu asic |asic atom )init failed", "Linux amdgpu/amdgpu_device.c"),
    row(DRIVER, "amd-block", "amdgpu", "amdgpu",
        _AMD + r"(?:gpu post error!|asic reset on init failed|XCD \d{1,2} KCQ enable failed|K[CG]Q enable failed|"
        r"Unable to locate a BIOS ROM|Bootloader wait timed out|Failed to wait for trust OS ready|SMC engine is not "
        r"correctly up)",
        "Linux amdgpu/amdgpu_device.c, amdgpu_bios.c, psp_v13_0.c"),
    row(DRIVER, "amd-block", "amdgpu", "discovery",
        _AMD + r"(?:(?:get )?invalid ip (?P<block>discovery) (?:binary|data table) (?:signature|checksum)|discovery "
        r"failed: (?P<error>-\d{1,5}))", "Linux amdgpu/amdgpu_discovery.c"),
    row(DRIVER, "amd-queues-stuck", "amdgpu", "preemption",
        _AMD + r"(?:XCC \d{1,2}: )?(?:cp queue (?:pipe \d{1,3} queue \d{1,3} )?preemption (?:failed|time out)|Queue "
        r"preemption failed for)",
        "Linux amdgpu/amdgpu_amdkfd_gfx_v10.c, kfd_mqd_manager.c"),
    row(DRIVER, "amd-queues-stuck", "amdgpu", "amdgpu",
        _AMD + r"(?:CP HQD (?:IQ timer status|dequeue request) time out|fail to wait on hqd deactive?|MES(?:\(\d\))? "
        r"failed to respond to msg=|Timeout waiting for (?:VM flush|sem acquire in VM flush)|timeout waiting for kiq "
        r"fence|TLB flush failed for PASID|qcm fence wait loop timeout expired|unmap queue failed)",
        "Linux amdgpu/mes_v11_0.c, gmc_v9_0.c, amdgpu_gmc.c, kfd_device_queue_manager.c"),
    row(DRIVER, "amd-queues-stuck", "amdgpu", "queue",
        _AMD + r"(?:Failed to (?:evict|restore|remove|suspend|resume) (?:process )?queues?\b|(?:Evicting|Suspending|"
        r"Resuming) (?:process|all) queues failed|failed to (?:add|remove|reset) hardware queue)",
        "Linux amdkfd/kfd_device_queue_manager.c"),
    row(DRIVER, "amd-power-controller", "amdgpu", "SMU",
        _AMD + r"(?:SMU is in hanged state|SMU: (?:I'm very busy for your command|No response from))",
        "Linux amdgpu/pm/swsmu/smu_cmn.c"),
    row(DRIVER, "amd-power-controller", "amdgpu", "Failed to ",
        _AMD + r"Failed to (?:setup smc hw|enable requested dpm features|transfer pptable to SMC)!",
        "Linux amdgpu/pm/swsmu/amdgpu_smu.c"),
    row(DRIVER, "amd-poison", "amdgpu", "oison",
        _AMDGPU + r"(?:\{\d{1,20}\} ?)?(?:[Pp]oison is (?:consumed by client|created)|GPU reset for "
        r"(?P<block>\w{1,16}) RAS "
        r"poison consumption)", "Linux amdgpu/amdgpu_ras.c, amdkfd/kfd_int_process_v9.c"),
    row(DRIVER, "amd-poison", "amdgpu", "Send SIGBUS", _AMDGPU + r"Send SIGBUS to process (?P<task>[^(\n]{1,40})\(",
        "Linux amdkfd/kfd_events.c"),
    row(DRIVER, "amd-internal-error", "amdgpu", " err detected at instance",
        _AMD + r"(?P<what>GCEA|MMHUB EA) err detected at instance", "Linux amdgpu/gfx_v9_4.c, mmhub_v1_7.c"),
    row(DRIVER, "amd-internal-error", "amdgpu", "RAS Intr triggered",
        _AMD + r"(?P<what>RAS interrupt|RAS Intr) triggered, device disabled", "Linux amdgpu/amdgpu_kms.c"),
    row(DRIVER, "amd-ras-table", "amdgpu", "EEPROM",
        _AMD + r"(?:Failed to (?:save|load|read|write) EEPROM table|EEPROM failed reading records)",
        "Linux amdgpu/amdgpu_ras_eeprom.c"),
    row(DRIVER, "amd-ras-table", "amdgpu", "RAS ", _AMD + r"RAS (?:[Tt]able incorrect checksum|header invalid)",
        "Linux amdgpu/amdgpu_ras_eeprom.c"),
    row(DRIVER, "amd-interrupts", "amdgpu", "Fence fallback timer",
        _AMD + r"Fence fallback timer expired on ring (?P<ring>\S{1,32})", "Linux amdgpu/amdgpu_fence.c"),
    row(DRIVER, "amd-ring-timeout", "amdgpu", "but soft recovered",
        _AMD + r"ring (?P<ring>\S{1,32}) timeout, but soft recovered", "Linux amdgpu/amdgpu_job.c"),
    row(DRIVER, "amd-partition", "amdgpu", "mode",
        _AMD + r"(?:Mismatch in compute partition mode|Invalid config, no compatible compute partition mode|NPS config "
        r"mismatch)", "Linux amdgpu/aqua_vanjaram.c, amdgpu_gmc.c"),
    row(DRIVER, "amd-host-silent", "amdgpu", "from pf", _AMD + r"Doesn't get .{1,40} from pf",
        "Linux amdgpu/mxgpu_ai.c, mxgpu_nv.c"),
    row(DRIVER, "amd-oversubscribed", "amdkfd", "getting oversubscribed",
        _AMD + r"Runlist is getting oversubscribed", "Linux amdkfd/kfd_packet_manager.c"),
    row(DRIVER, "kfd-not-added", "amdkfd", "kfd kfd: ",
        r"\bkfd kfd: (?:amdgpu: )?Error (?:adding device to topology|in starting scheduler|starting queue manager|"
        r"initializing (?:KFD node|queue manager|interrupts|doorbell aperture|gtt sub-allocator))",
        "Linux amdkfd/kfd_device.c"),
    row(DRIVER, "firmware-missing", "amdgpu", "firmware \"",
        _AMD + r"(?:gfx\d{1,2}: )?(?:Failed to (?:load|get gpu_info)|can't load) firmware \"(?P<file>[^\"\n]{1,80})\"",
        "Linux amdgpu/amdgpu_device.c, amdgpu_discovery.c"),
    row(DRIVER, "amd-page-fault", "amdgpu", "command stream",
        _AMD + r"Illegal (?:register access|opcode|instruction) in (?:SDMA )?command stream",
        "Linux amdgpu/gfx_v9_0.c, sdma_v4_4_2.c"),
    row(DRIVER, "amd-page-fault", "amdgpu", "page fault (",
        _AMDGPU + r"\[\w{4,12}\] (?:retry |no-retry )?page fault \(src_id:", "Linux amdgpu/gmc_v9_0.c, gmc_v11_0.c"),
    row("xgmi", None, "amdgpu", "XGMI:",
        _AMDGPU + r"XGMI: (?P<code>Failed to (?:add node|get (?:hive|node) id|initialize xgmi session)|"
        r"[SG]et topology failure|Get topology for extended data failure)",
        "Linux amdgpu/amdgpu_xgmi.c"),
    row(DRIVER, "gaudi-heartbeat", "habanalabs", "heartbeat failed",
        rf"{_GAUDI}Device heartbeat failed!", _HABANA),
    row(DRIVER, "gaudi-heartbeat", "habanalabs", "Device CPU packet timeout",
        rf"{_GAUDI}Device CPU packet timeout", "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-boot", "habanalabs", "Device boot error - ",
        rf"{_GAUDI}Device boot error - (?!Skipped|Serdes|Failed to )(?P<what>[^\n]{{3,60}})",
        "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-boot", "habanalabs", "Device boot progress - ",
        rf"{_GAUDI}Device boot progress - (?P<what>Stuck in[^,\n]{{1,60}}|Cannot boot|DRAM initialization failed|"
        r"Thermal Sensor initialization failed|BTL/ROM did NOT run|Invalid or unexpected status code -?\d{1,5})",
        "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-boot", "habanalabs", "ailed to ",
        rf"{_GAUDI}(?P<what>[Ff]ailed to (?:load (?:boot fit|Linux|firmware to device)|wait for (?:boot|Linux)))",
        "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-boot", "habanalabs", "accel",
        rf"{_GAUDI}(?P<what>Timeout waiting for boot fit load ack|Device reports FIT image is corrupted|Errors in "
        rf"device boot|Firmware file \S{{1,80}} is not found)", "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "gaudi-heartbeat", "habanalabs", "eartbeat",
        rf"{_GAUDI}(?:EQ heartbeat event was not received|FW reported EQ fault during heartbeat)", _HABANA),
    row(DRIVER, "gaudi-heartbeat", "habanalabs", "CPU ", rf"{_GAUDI}(?:CPU queue test failed|F/W failed processing "
        rf"CPU packet)",
        "Linux habanalabs/common/firmware_if.c"),
    row(DRIVER, "device-unusable", "habanalabs", "ailed",
        rf"{_GAUDI}(?:[Ff]ailed to (?:initialize the H/W|do compute reset|detect if device is alive)|Failed late init"
        r"(?:ialization)?\b)", _HABANA),
    row(DRIVER, "device-unusable", "habanalabs", "stopping hard reset", rf"{_GAUDI}.{{0,40}}stopping hard reset",
        _HABANA),
    row(DRIVER, "gaudi-memory", "habanalabs", "ECC ",
        rf"{_GAUDI}(?:ECC error detected\. address: .{{1,160}}critical 1|Beat\d ECC DERR: )",
        "Linux habanalabs/gaudi2/gaudi2.c"),
    row(DRIVER, "gaudi-shut-down", "habanalabs", "CPLD shutdown", rf"{_GAUDI}CPLD shutdown (?:cause|event)",
        "Linux habanalabs/gaudi2/gaudi2.c"),
    row(DRIVER, "gaudi-program", "habanalabs", "accel",
        rf"{_GAUDI}.{{0,60}}(?:RAZWI (?:interrupt|SHARED|[A-Z]{{2,4}} )|page fault on va|access error on va 0x|"
        rf"Received TPC assert)", "Linux habanalabs/gaudi2/gaudi2.c"),
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
    row(DRIVER, "neuron-dma", "neuron", "neuron:",
        _NEURON + r"(?:dma memcpy (?:wait )?failed|[A-Z]?DMA (?:ENG|BCAST):\d{1,3} init failed|failed to (?:start|"
        r"prepare) DMA descriptor|DMA (?:eng\d{1,3} )?init failed|q\d{1,3} failed to reset)",
        "aws-neuron-driver 2.24 neuron_ring.c"),
    row(DRIVER, "neuron-unreadable", "neuron", "neuron:",
        _NEURON + r"(?:register read failure|Could not retrieve device index|failed to read device ready state|seq: "
        r"\d{1,9}, cmd: \d{1,4} timed out)", "aws-neuron-driver 2.24 neuron_fw_io.c, neuron_dhal_v2.c"),
    row(DRIVER, "neuron-reset-failed", "neuron", " reset request ",
        r"\b(?P<name>nd\d{1,3}): reset request \d{1,10} (?:failed|was initiated, but failed)",
        "aws-neuron-driver 2.24 neuron_reset.c"),
    row(DRIVER, "neuron-memory", "neuron", "Scrub failed", r"Scrub failed for (?P<name>nd\d{1,3}) HBM (?P<hbm>\d{1,2})",
        "aws-neuron-driver 2.24 neuron_cdev.c"),
    row(DRIVER, "neuron-links", "neuron", "neuron:",
        _NEURON + r"(?P<name>nd\d{1,3}): (?:election failed\. (?P<what>left|right) neighbor reported bad|Serial "
        r"numbers on \w{1,8} link pair don't match|Read ultraserver neighbor .{1,60} failed)",
        "aws-neuron-driver 2.24 v3/neuron_pelect.c"),
    row(DRIVER, "neuron-links", "neuron", "reported good links", _NEURON + r"Only \d{1,3} out of \d{1,3} secondary "
        "devices",
        "aws-neuron-driver 2.24 v3/neuron_pelect.c"),
    row("neuron_hw", None, "neuron", "NEURON_HW_ERR",
        r"NEURON_HW_ERR=(?P<code>[A-Z_]{1,64}) .{0,300}?\bnd-id=(?P<device>\d{1,4}) nc-id=(?P<core>\d{1,4})\b"
        r"(?:.{0,80}?\baction=(?P<action>[A-Z_]{1,40}))?", "aws-neuronx-dkms"),
)  # fmt: skip

# Cards alone, not the graphics inside a CPU (at 00:02.0)
_CARD = r"(?:i915|xe) (?P<bdf>(?!0000:00:02\.)[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): "
_LINE = rf"{_CARD}(?:\[drm\] )?(?:\*ERROR\* )?(?:CRITICAL: )?(?:Tile\d{{1,2}}: )?(?:GT\d{{1,2}}: )?(?:GUC: )?"


def _intel(code: str, needle: str, pattern: str, source: str) -> Sentence:
    return row(DRIVER, code, "i915, xe", needle, _LINE + pattern, source)


INTEL: tuple[Sentence, ...] = (
    _intel("intel-wedged", "wedged", r"(?:Xe has declared device \S{1,40} as wedged|[^\n]{0,80}declaring it wedged)",
           "xe/xe_device.c, i915/gt/intel_gt.c"),
    _intel("intel-wedged", "in-flight rendering", r"GPU recovery timed out, cancelling all in-flight rendering",
           "i915/gt/intel_reset.c"),
    _intel("intel-wedged", "reset",
           r"(?:Failed to reset chip|Failed to initialise HW following reset|(?:GT )?reset failed)\b",
           "i915/gt/intel_reset.c, xe/xe_gt.c"),
    _intel("intel-survivability", "urvivability", r"[^\n]{0,60}\b[Ss]urvivability [Mm]ode\b(?! (?:not|is off))",
           "xe/xe_survivability_mode.c"),
    _intel("intel-firmware", "fetch failed",
           r"GuC firmware (?P<file>\S{1,80}): fetch failed (?:with error )?(?P<error>-\w{1,12})",
           "i915/gt/uc/intel_uc_fw.c, xe/xe_uc_fw.c"),
    _intel("intel-firmware", "uC ",
           r"(?P<what>GuC) (?:load failed|initialization failed|init failed|CT communication[^\n]{0,40}fail)",
           "i915/gt/uc/intel_guc_fw.c, xe/xe_guc.c"),
    _intel("intel-firmware", "Enabling uc failed", r"Enabling uc failed \((?P<error>-\d{1,5})\)",
           "i915/gt/uc/intel_uc.c"),
    _intel("intel-memory", "by firmware", r"(?:LMEM|VRAM) not initialized by firmware",
           "i915/intel_uncore.c, xe/xe_device.c"),
    _intel("intel-small-bar", "BAR", r"(?:Small BAR device|Using a reduced BAR size of (?P<what>\d{1,6} ?MiB))",
           "xe/xe_vram.c, i915/gt/intel_region_lmem.c"),
    _intel("intel-reset", "reset", r"Engine (?:memory CAT error|reset): engine_class=(?P<what>\w{2,8})",
           "xe/xe_guc_submit.c"),
    _intel("intel-reset", "esetting ", r"Resetting (?P<what>chip|[a-z]{3,5}\d) for ", "i915/gt/intel_reset.c"),
    _intel("intel-reset", "GPU HANG", r"GPU HANG: ecode \S{3,40}", "i915/i915_gpu_error.c"),
    _intel("intel-reset", "imedout job", r"Timedout job: seqno=", "xe/xe_guc_submit.c"),
    _intel("intel-page-fault", "Fault response", r"Fault response: Unsuccessful", "xe/xe_gt_pagefault.c"),
)  # fmt: skip
