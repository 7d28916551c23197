"""Why a driver does not drive a device, as the driver itself states it in the kernel log.

The sentences are rows of `probes/kernel/sentences.py`; here stands what each of them means. The sentence decides the
cause and its steps: rules about the hardware fold into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import Event
from agent.rules.context import RuleContext
from agent.rules.devices import about_function, about_gpu, device_label, list_log_words, quote_log, severity_by_role
from agent.rules.node_wide import merge_if_on_all
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import count_of, join_labels


class Meaning(msgspec.Struct, frozen=True):
    """What one sentence means."""

    severity: str
    says: str
    impact: str = "The device cannot be used by jobs."
    of_start: bool = True  # over where the driver drives the device now
    confidence: str = "high"
    alone: bool = True  # False: it states that, and not why; it counts where nothing else explains the failure


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
        "critical", "an earlier start of its firmware still holds its memory (WPR2): it needs a reset", _NO_GPU
    ),
    "memory-online": Meaning(
        "critical", "the kernel does not put the GPU's memory online as movable (auto_online_blocks)", _NO_GPU
    ),
    "gsp-firmware-missing": Meaning("critical", "the firmware of its GSP is not installed with the driver", _NO_GPU),
    "inaccessible": Meaning("critical", "its config space cannot be read: it does not leave a sleep state"),
    "legacy-gpu": Meaning("warning", "the loaded driver ignores this GPU: it needs an older release", _NO_GPU),
    "reset-unanswered": Meaning("critical", "it did not come back after a reset"),
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
        "error", "the driver made no network interface of a function of the NIC", "No job can use that port."
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
    "bar-unassigned": Meaning(
        "error", "the kernel found no memory window for one of its regions", confidence="medium",
    ),
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
        "warning", "GPUDirect Storage does not fit a module of storage or RDMA", _NO_GDS, False, "medium"
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
        "warning", "the NIC dropped requests of programs (doorbells)",
        "Sends of a job may wait until they time out.", False, "medium",
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
    "neuron-dma": Meaning(
        "warning", "a DMA transfer of the accelerator did not end", "The job on it was ended.", False, "medium",
    ),
    "neuron-miswired": Meaning(
        "error", "a cable to the next server of the UltraServer ends at another accelerator",
        "Jobs of several servers do not start.", False,
    ),
    "hugepages": Meaning(
        "warning", "the kernel reserved fewer huge pages than asked for",
        "Programs that need huge pages do not start, or run slower.", False, "medium",
    ),
    "gsp-silent": Meaning(
        "error", "the GPU's own processor (GSP) stopped answering",
        "Jobs on the GPU hang, and nvidia-smi hangs or reports ERR!.", False, "medium", alone=False,
    ),
    "gsp-not-started": Meaning("critical", "the GPU's own processor (GSP) did not start", _NO_GPU, alone=False),
    "gfw-boot": Meaning("critical", "the firmware of the GPU did not finish its boot (GFW)", _NO_GPU, alone=False),
    "probe-failed": Meaning(
        "critical", "the NVIDIA driver could not start its GPUs and does not state why", _NO_GPU, alone=False
    ),
    "amd-block": Meaning("critical", "a part of the AMD GPU did not start", _NO_GPU, alone=False),
    "gaudi-boot": Meaning(
        "error", "its firmware does not finish its boot", _NO_GPU, True, "medium", alone=False,
    ),
    "device-unusable": Meaning("critical", "the driver took the accelerator out of use", _NO_GPU, alone=False),
    "gaudi-reset": Meaning(
        "warning", "the driver reset the accelerator", "The job on it was ended.", False, "medium", alone=False,
    ),
    "task-hung": Meaning(
        "warning", "a tool or service of the devices hangs in the kernel",
        "What asks the same device hangs, too: monitoring, jobs as they start or end.", False, "medium", alone=False,
    ),
    "hung-in-driver": Meaning(
        "warning", "a program hangs in a driver",
        "The program cannot be ended, and what asks the same device hangs, too.", False, "medium", alone=False,
    ),
    "tool-crashed": Meaning(
        "warning", "a tool or service of the devices crashed",
        "A service that crashed does not do its work until it is started again.", False, "medium", alone=False,
    ),
    "memory-uncorrected": Meaning(
        "error", "the host's memory has an error that cannot be corrected",
        "The program that uses this memory ends, or the node stops.", False, "medium",
    ),
    "memory-corrected": Meaning(
        "info", "the host's memory has errors that were corrected",
        "None as long as they are few: a module with many is about to fail.", False, "medium",
    ),
    "cpu-hot": Meaning(
        "info", "a CPU slows down because it is hot", "Programs on this CPU are slower while it is.", False, "medium",
    ),
    "probe-error": Meaning("warning", "its driver failed to start", alone=False),
}  # fmt: skip
_ORDER = list(MEANINGS)  # of several sentences about one device the first is the cause
_ON_PURPOSE = "vfio"
_UNLESS_GEAR = (
    "inaccessible",
    "iommu-fault",
    "reset-unanswered",
)  # which every device has, also those that no job uses
_OF_GUESTS = ("region-taken", "reserved-memory")  # what vfio-pci states of a device that is given to a guest
_AUXILIARY = ("rdma-probe", "interface-probe")
_DRIVERS_OF_JOBS = ("nvidia", "amdgpu", "habanalabs", "neuron", "mlx5_core")
_MISMATCH = "version mismatch"  # NVML's error 18, and nvidia-smi's sentence
_NAMES_VERSIONS = ("module-versions", "switch-versions")
_NAMES_WHAT = ("reset-unanswered", "gaudi-boot", "nic-hot", "neuron-miswired")
_OF_KERNEL = ("hung-in-driver", "tool-crashed", "memory-uncorrected", "memory-corrected", "cpu-hot")
_OF_MEMORY = ("memory-uncorrected", "memory-corrected")
_EXPLAINED_BY = {"gsp-silent": ("xid", "gpu_lost", "gpu_init"), "queue-stalled": ("mlx5", "nic_firmware")}
_SHOWN = 6


@rule("driver-reports-failure")
def driver_reports_failure(context: RuleContext) -> Iterator[Result]:
    groups: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind == "driver" and event.code in MEANINGS and _counts(context, event):
            groups.setdefault(_find_address(context, event), []).append(event)
    faults = [fault for address in sorted(groups) for fault in _judge(context, address, groups[address])]
    gpus = [gpu for gpu in context.topology.gpus if gpu.vendor == "NVIDIA"]
    of_gpus = [fault for fault in faults if fault.subject.startswith("gpu:")]
    if len(of_gpus) == len(gpus) and len({fault.cause for fault in of_gpus}) == 1:
        yield from merge_if_on_all(of_gpus, len(gpus), MEANINGS[of_gpus[0].cause].says)
    else:
        yield from of_gpus
    yield from (fault for fault in faults if fault not in of_gpus)
    notes: list[Fail] = []
    if any(event.kind == "unexplained" for event in context.events):
        from agent.rules.host.unexplained import find_unexplained  # lazy: few logs have such a line

        notes += find_unexplained(context)
    yield from notes
    if not faults and not notes:
        unread = context.why_probe_failed("kernel_log")
        if not context.has_devices and not context.why_bus_unread:
            yield NODE.not_applicable("no-such-device", detail="no GPU and no NIC")
        else:
            yield NODE.unknown("log-not-read", why=unread) if unread else NODE.passes()


def _find_address(context: RuleContext, event: Event) -> str:
    """The PCI address of the part; of an RDMA device or interface that only its name identifies, that of its NIC; ""
    for none."""
    subject = event.subject or ""
    named = next((nic.pci for nic in context.topology.nics if subject in _list_names(nic)), None)
    return named or subject


def _list_names(nic: Nic) -> set[str | None]:
    return {nic.rdma_device, *(name for port in nic.ports for name in port.netdevs)}


def _counts(context: RuleContext, event: Event) -> bool:
    """Whether a sentence is about a part that runs jobs, and is not overtaken by what the host shows now."""
    address, code = _find_address(context, event), event.code or ""
    meaning = MEANINGS[code]
    if not meaning.alone and _is_explained(context, event):
        return False
    gpu, nic, function = (
        context.gpu_by_pci.get(address),
        context.nic_by_pci.get(address),
        context.functions.get(address),
    )
    if function is not None and function.physical_function:
        return False
    if code == "api-mismatch" and _MISMATCH in (context.why_probe_failed("gpu") or "").lower():
        return False  # gpu-driver-unusable has both versions
    if gpu is not None:
        return not (meaning.of_start and gpu.driver_state == "open")
    if nic is not None:
        return not (meaning.of_start and _works_now(nic, code)) and severity_by_role("error", nic) is not None
    if code == "queue-stalled" and context.why_bus_unread is None:
        return False  # of an interface that has no RDMA
    if _may_be_anything(context, event):
        return True
    driver = event.detail.get("driver")
    is_of_jobs = driver in _DRIVERS_OF_JOBS or code not in _UNLESS_GEAR
    kept = driver == "nouveau" or (driver == "vfio-pci" and code not in _OF_GUESTS)
    if function is not None or not is_of_jobs or kept or (code in _AUXILIARY and _any_nic_works(context, event)):
        return False
    return bool(address) or not meaning.of_start or not _any_gpu_works(context)


def _works_now(nic: Nic, code: str) -> bool:
    """Whether the part of a NIC works now whose start a sentence is about."""
    has_rdma, has_interface = bool(nic.rdma_device), any(port.netdevs for port in nic.ports)
    parts = {"rdma-port": False, "rdma-probe": has_rdma, "interface-probe": has_interface}
    return parts.get(code, has_rdma or has_interface)


def _may_be_anything(context: RuleContext, event: Event) -> bool:
    """Whether a sentence that any device may have is about one that nothing lists, because nothing lists devices."""
    unlisted = (event.subject or "").count(":") == 2 and context.why_bus_unread is not None
    of_jobs = event.detail.get("driver") in (*_DRIVERS_OF_JOBS, "nouveau")
    return unlisted and not of_jobs and event.code in _UNLESS_GEAR and event.subject not in context.functions


def _any_nic_works(context: RuleContext, event: Event) -> bool:
    """Of a function of a NIC that only its driver's count identifies: whether NICs of that driver work now."""
    functions = {function.id for function in context.topology.pci if function.driver == event.detail.get("parent")}
    return any(nic.pci in functions and nic.rdma_device for nic in context.topology.nics)


def _any_gpu_works(context: RuleContext) -> bool:
    """Of a sentence that names no device: it is over, or about devices that are kept for something else."""
    nvidia = {function.driver for function in context.topology.pci if function.vendor == "0x10de"}
    held = any(_ON_PURPOSE in (driver or "") for driver in nvidia)
    return held or any(gpu.driver_state == "open" for gpu in context.topology.gpus)


def _is_explained(context: RuleContext, event: Event) -> bool:
    """Whether another line of the log states why. The firmware of amdgpu counts only where its start failed: many files
    are optional."""
    ids = (event.subject, _find_address(context, event))
    others = [one for one in context.events if event.subject is None or one.subject in ids]
    if event.code == "firmware-missing":
        return not any(one.kind == "amd_init" for one in others)
    if event.code in _EXPLAINED_BY:
        return any(one.kind in _EXPLAINED_BY[event.code] and one.code != "started" for one in others)
    return any(
        one.kind in ("gpu_lost", "gpu_init", "amd_init", "amd_reset") or (one.kind, one.code) == ("mlx5", "load")
        or (one.kind == "driver" and one.code in MEANINGS and _is_before(one, event))
        for one in others
    )  # fmt: skip


def _is_before(one: Event, other: Event) -> bool:
    return _ORDER.index(one.code or "") < _ORDER.index(other.code or "")


def _judge(context: RuleContext, address: str, events: Sequence[Event]) -> Iterator[Fail]:
    """One finding per device; of the node one per sentence."""
    if address:
        yield _fail(context, address, sorted(events, key=lambda event: _ORDER.index(event.code or "")))
        return
    for code in _ORDER:
        if rows := [event for event in events if event.code == code]:
            yield _fail(context, "", rows)


def _fail(context: RuleContext, address: str, events: Sequence[Event]) -> Fail:
    first = events[0]
    meaning = MEANINGS[first.code or ""]
    gpu, nic = context.gpu_by_pci.get(address), context.nic_by_pci.get(address)
    anything = gpu is None and nic is None and _may_be_anything(context, first)
    for_guest = first.detail.get("driver") == "vfio-pci"  # someone gives it to a virtual machine
    depends = f"What it means depends on what the device is: `lspci -nn -s {address}`. If jobs use it: "
    details = _describe_details(first)
    on_bus = address.count(":") == 2
    about = about_gpu(gpu) if gpu else about_function(context, address) if on_bus else NODE
    who = "kernel log" if first.code in _OF_KERNEL else "driver"
    return about.fail(
        label=device_label(context, address) if on_bus else address or "node",
        summary=f"the {who} states: {meaning.says}{f' ({details})' if details else ''}",
        impact=f"{depends if anything else ''}{meaning.impact}",
        evidence=tuple(quote_log(event) for event in events[:_SHOWN]),
        severity=("warning" if for_guest else "info") if anything else _find_severity(first, meaning, gpu, nic),
        confidence="low" if anything else meaning.confidence,
        cause=f"{first.code}{f' {address}' if address and not on_bus else ''}",
        situation=first.code or "",
        values=list_log_words(events),
        ids=frozenset({address} if on_bus else _list_places(context, first, address)),
        explains_ids=None if meaning.confidence == "high" else frozenset(),
    )


def _find_severity(event: Event, meaning: Meaning, gpu: Gpu | None, nic: Nic | None) -> str:
    if event.code == "bar-unassigned" and gpu is None and nic is None:
        return "info"  # of a device that may be anything
    if _ON_PURPOSE in event.detail.get("holder", ""):
        return "info"
    if nic is not None:
        return severity_by_role(meaning.severity, nic) or "info"
    return meaning.severity


def _list_places(context: RuleContext, event: Event, name: str) -> set[str]:
    """Of a sentence about the driver as a whole: the GPUs of its maker, and the place of findings about the node."""
    if name:
        return {f"driver {event.code}", name}  # of a NIC that nothing lists: no GPU is a part of it
    maker = "AMD" if event.code in ("no-atomics", "firmware-missing") else "NVIDIA"
    return {f"driver {event.code}", *(gpu.id for gpu in context.topology.gpus if gpu.vendor == maker)}


def _describe_details(event: Event) -> str:
    """What else the line states that a person needs."""
    detail = event.detail
    rows = [
        detail.get("name"),
        f"{detail['unit']} by the driver's own count" if "unit" in detail else None,
        f"held by {detail['holder']}" if "holder" in detail else None,
        count_of(int(detail["devices"]), "devices") if detail.get("devices", "").isdecimal() else None,
        f"BAR{detail['bar']} of {detail['size']} MB" if "bar" in detail and "size" in detail else None,
        f"BAR{detail['bar']}" if "bar" in detail and event.code in ("bar-unassigned", "region-taken") else None,
        detail.get("command"),
        f"{detail['got']} of {detail['asked']}" if "got" in detail else None,
        detail.get("file"),
        detail.get("chip"),
        detail.get("task"),
        detail.get("what") if event.code in _NAMES_WHAT else None,
        detail.get("block"),
        f"NVLink {detail['link']}" if "link" in detail else None,
        f"HBM {detail['hbm']}" if "hbm" in detail else None,
        f"module {detail['module']}" if "module" in detail else None,
        detail.get("what") if event.code in _OF_MEMORY else None,
        detail.get("what") if event.code in _NAMES_VERSIONS else None,
        f"error {detail['error']}" if "error" in detail else None,
        f"before it: {detail['before']}" if "before" in detail else None,
    ]
    return join_labels([row for row in rows if row])
