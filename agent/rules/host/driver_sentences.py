"""Why a driver does not drive a device, as the driver itself states it in the kernel log.

The sentences are rows of `probes/kernel/sentences.py`; here stands what each of them means. The sentence decides the
cause and its steps: rules about the hardware fold into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from agent.model.nic import Nic
from agent.model.node import Event
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, quote_log, severity_by_role
from agent.rules.node_wide import merge_if_on_all
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import count_of, join_labels


class Meaning(msgspec.Struct, frozen=True):
    """What one sentence means."""

    severity: str
    says: str
    impact: str = "The device cannot be used by jobs."
    of_start: bool = True  # over where the driver drives the device now
    confidence: str = "high"
    alone: bool = True  # False: it says that, and not why; it counts where nothing else explains the failure


_NO_GDS = "Reads from storage into GPU memory go through the host's memory."
_NO_GPU = "The GPU cannot be used: no job on this node sees it."
MEANINGS = {
    "open-modules": Meaning("critical", "this GPU needs the open kernel modules; the closed ones are loaded", _NO_GPU),
    "closed-modules": Meaning("critical", "the open kernel modules do not support this GPU", _NO_GPU),
    "power-cable": Meaning("critical", "a power cable of the card is not connected", _NO_GPU),
    "unsupported-gpu": Meaning("critical", "this release of the NVIDIA driver does not support the GPU", _NO_GPU),
    "bar-missing": Meaning("critical", "the BIOS gave the GPU no valid memory region (BAR)", _NO_GPU),
    "registers-taken": Meaning("critical", "another driver or region holds the registers of the GPU", _NO_GPU),
    "no-interrupt": Meaning("critical", "the GPU has no interrupt", _NO_GPU),
    "gsp-firmware-missing": Meaning("critical", "the firmware of its GSP is not installed with the driver", _NO_GPU),
    "inaccessible": Meaning("critical", "its config space cannot be read: it does not leave a sleep state"),
    "legacy-gpu": Meaning("warning", "the loaded driver ignores this GPU: it needs an older release", _NO_GPU),
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
    "safe-mode": Meaning(
        "error", "it runs in safe mode: the package of its pipeline (DDP) was not loaded",
        "Safe mode has one queue and no RDMA.", False,
    ),
    "driver-too-old": Meaning("error", "its firmware is newer than its driver, which stopped"),
    "iommu-fault": Meaning(
        "warning", "the IOMMU blocked DMA of this device",
        "Data of that transfer was lost: hangs and wrong data in GPU-to-GPU and GPUDirect transfers.", False,
    ),
    "amd-power-controller": Meaning(
        "error", "the GPU's power controller (SMU) no longer answers",
        "Clocks and temperatures are not controlled, and the next reset of the GPU fails or hangs.", False, "medium",
    ),
    "amd-ring-timeout": Meaning(
        "warning", "work on the GPU did not end in time", "The job on it was ended.", False, "medium", alone=False,
    ),
    "amd-page-fault": Meaning(
        "info", "a program accessed GPU memory that it has not mapped, mostly an error of the program",
        "That program ends with an error.", False,
    ),
    "gaudi-heartbeat": Meaning("critical", "its firmware no longer answers (heartbeat)", _NO_GPU, False),
    "switch-versions": Meaning(
        "error", "a program (fabric manager) uses an NVSwitch library of another version than the loaded module",
        "The NVLink fabric is not managed: CUDA ends with error 802.", False, "medium",
    ),
    "uvm-assert": Meaning(
        "warning", "the module for CUDA's memory (nvidia-uvm) met an internal error",
        "Programs that use GPUs may fail until the node is rebooted.", False, "medium",
    ),
    "gds-module": Meaning(
        "warning", "GPUDirect Storage does not fit a module of storage or RDMA", _NO_GDS, False, "medium"
    ),
    "gds-pin": Meaning("warning", "GPUDirect Storage could not pin GPU memory", _NO_GDS, False, "medium"),
    "hugepages": Meaning(
        "warning", "the kernel reserved fewer huge pages than asked for",
        "Programs that need huge pages do not start, or run slower.", False, "medium",
    ),
    "gsp-not-started": Meaning("critical", "the GPU's own processor (GSP) did not start", _NO_GPU, alone=False),
    "probe-failed": Meaning(
        "critical", "the NVIDIA driver could not start its GPUs and does not state why", _NO_GPU, alone=False
    ),
    "amd-block": Meaning("critical", "a part of the AMD GPU did not start", _NO_GPU, alone=False),
    "device-unusable": Meaning("critical", "the driver took the accelerator out of use", _NO_GPU, alone=False),
    "probe-error": Meaning("warning", "its driver failed to start", alone=False),
}  # fmt: skip
_ORDER = list(MEANINGS)  # of several sentences about one device the first is the cause
_ON_PURPOSE = "vfio"
_UNLESS_GEAR = ("inaccessible", "iommu-fault")  # which every device has, also those that no job uses
_DRIVERS_OF_JOBS = ("nvidia", "amdgpu", "habanalabs", "neuron", "mlx5_core")
_MISMATCH = "version mismatch"  # NVML's error 18, and nvidia-smi's sentence
_NAMES_VERSIONS = ("module-versions", "switch-versions")
_SHOWN = 6


@rule("driver-reports-failure")
def driver_reports_failure(case: RuleContext) -> Iterator[Result]:
    groups: dict[str, list[Event]] = {}
    for event in case.events:
        if event.kind == "driver" and event.code in MEANINGS and _counts(case, event):
            groups.setdefault(_find_address(case, event), []).append(event)
    faults = [fault for address in sorted(groups) for fault in _judge(case, address, groups[address])]
    gpus = [gpu for gpu in case.topology.gpus if gpu.vendor == "NVIDIA"]
    of_gpus = [fault for fault in faults if fault.subject.startswith("gpu:")]
    if len(of_gpus) == len(gpus) and len({fault.cause for fault in of_gpus}) == 1:
        yield from merge_if_on_all(of_gpus, len(gpus), MEANINGS[of_gpus[0].cause].says)
    else:
        yield from of_gpus
    yield from (fault for fault in faults if fault not in of_gpus)
    if not faults:
        unread = case.probe_failure("kernel_log")
        if not case.has_devices and not case.bus_unread:
            yield NotApplicable("node", Reason("no-such-device", detail="no GPU and no NIC"))
        else:
            yield Unknown("node", Reason("log-not-read", why=unread)) if unread else Pass("node")


def _find_address(case: RuleContext, event: Event) -> str:
    """The PCI address of the part; of an RDMA device that only its name identifies, that of its NIC; "" for none."""
    subject = event.subject or ""
    named = next((nic.pci for nic in case.topology.nics if nic.rdma_device == subject), None)
    return named or subject


def _counts(case: RuleContext, event: Event) -> bool:
    """Whether a sentence is about a part that runs jobs, and is not overtaken by what the host shows now."""
    address, code = _find_address(case, event), event.code or ""
    meaning = MEANINGS[code]
    if not meaning.alone and _is_explained(case, event):
        return False
    gpu, nic, function = case.gpu_by_pci.get(address), case.nic_by_pci.get(address), case.functions.get(address)
    if function is not None and function.physical_function:
        return False
    if code == "api-mismatch" and _MISMATCH in (case.probe_failure("gpu") or "").lower():
        return False  # gpu-driver-unusable has both versions
    if gpu is not None:
        return not (meaning.of_start and gpu.driver_state == "open")
    if nic is not None:
        works = bool(nic.rdma_device) or any(port.netdevs for port in nic.ports)
        return not (meaning.of_start and code != "rdma-port" and works) and severity_by_role("error", nic) is not None
    driver = event.detail.get("driver")
    is_of_jobs = driver in _DRIVERS_OF_JOBS or code not in _UNLESS_GEAR
    if function is not None or not is_of_jobs or driver in ("nouveau", "vfio-pci"):
        return False
    return bool(address) or not meaning.of_start or not _any_gpu_works(case)


def _any_gpu_works(case: RuleContext) -> bool:
    """Of a sentence that names no device: it is over, or about devices that are kept for something else."""
    nvidia = {function.driver for function in case.topology.pci if function.vendor == "0x10de"}
    held = any(_ON_PURPOSE in (driver or "") for driver in nvidia)
    return held or any(gpu.driver_state == "open" for gpu in case.topology.gpus)


def _is_explained(case: RuleContext, event: Event) -> bool:
    """Whether another line of the log says why. The firmware of amdgpu counts only where its start failed: many files
    are optional."""
    others = [one for one in case.events if event.subject in (None, one.subject)]
    if event.code == "firmware-missing":
        return not any(one.kind == "amd_init" for one in others)
    return any(
        one.kind in ("gpu_lost", "gpu_init", "amd_init", "amd_reset") or (one.kind, one.code) == ("mlx5", "load")
        or (one.kind == "driver" and one.code in MEANINGS and _is_before(one, event))
        for one in others
    )  # fmt: skip


def _is_before(one: Event, other: Event) -> bool:
    return _ORDER.index(one.code or "") < _ORDER.index(other.code or "")


def _judge(case: RuleContext, address: str, events: Sequence[Event]) -> Iterator[Fail]:
    """One finding per device; of the node one per sentence."""
    if address:
        yield _fail(case, address, sorted(events, key=lambda event: _ORDER.index(event.code or "")))
        return
    for code in _ORDER:
        if rows := [event for event in events if event.code == code]:
            yield _fail(case, "", rows)


def _fail(case: RuleContext, address: str, events: Sequence[Event]) -> Fail:
    first = events[0]
    meaning = MEANINGS[first.code or ""]
    gpu, nic = case.gpu_by_pci.get(address), case.nic_by_pci.get(address)
    details = _describe_details(first)
    on_bus = address.count(":") == 2
    subject = f"gpu:{gpu.id}" if gpu else f"pci:{address}" if on_bus else "node"
    return Fail(
        subject=subject,
        label=device_label(case, address) if on_bus else address or "node",
        summary=f"the driver states: {meaning.says}{f' ({details})' if details else ''}",
        impact=meaning.impact,
        evidence=tuple(quote_log(event) for event in events[:_SHOWN]),
        severity=_find_severity(first, meaning, nic),
        confidence=meaning.confidence,
        cause=f"{first.code}{f' {address}' if address and not on_bus else ''}",
        situation=first.code or "",
        places=frozenset({address} if on_bus else _list_places(case, first, address)),
        covers=None if meaning.confidence == "high" else frozenset(),
    )


def _find_severity(event: Event, meaning: Meaning, nic: Nic | None) -> str:
    if _ON_PURPOSE in event.detail.get("holder", ""):
        return "info"
    if nic is not None:
        return severity_by_role(meaning.severity, nic) or "info"
    return meaning.severity


def _list_places(case: RuleContext, event: Event, name: str) -> set[str]:
    """Of a sentence about the driver as a whole: the GPUs of its maker, and the place of findings about the node."""
    if name:
        return {f"driver {event.code}", name}  # of a NIC that nothing lists: no GPU is a part of it
    maker = "AMD" if event.code in ("no-atomics", "firmware-missing") else "NVIDIA"
    return {f"driver {event.code}", *(gpu.id for gpu in case.topology.gpus if gpu.vendor == maker)}


def _describe_details(event: Event) -> str:
    """What else the line states that a person needs."""
    detail = event.detail
    rows = [
        detail.get("name"),
        f"held by {detail['holder']}" if "holder" in detail else None,
        count_of(int(detail["devices"]), "devices") if detail.get("devices", "").isdecimal() else None,
        f"BAR{detail['bar']} of {detail['size']} MB" if "bar" in detail and "size" in detail else None,
        detail.get("command"),
        f"{detail['got']} of {detail['asked']}" if "got" in detail else None,
        detail.get("file"),
        detail.get("block"),
        f"module {detail['module']}" if "module" in detail else None,
        detail.get("what") if event.code in _NAMES_VERSIONS else None,
        f"error {detail['error']}" if "error" in detail else None,
    ]
    return join_labels([row for row in rows if row])
