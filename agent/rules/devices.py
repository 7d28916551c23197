"""What a device of a case is, and how much a fault on it matters: what rules of several families ask."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import Event
from agent.model.pci import PciFunction
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.rule import NotApplicable, Pass, Result, Unknown

NVIDIA, AMD, MELLANOX = "0x10de", "0x1002", "0x15b3"

# GPUs that hang on their CPU by NVLink-C2C (GH200, GB200, GB300), where PCIe is a side way, and the B300 board, for
# which DCGM accepts x1 and nobody says why: their PCIe width proves nothing (diag-skus.yaml of DCGM; pci.ids).
TRAY_GPUS = frozenset({"0x2941", "0x31c2", "0x31c3"})  # GB200, GB300
C2C_GPUS = TRAY_GPUS | {"0x2342", "0x2345", "0x2348", "0x237f"}
# Nor that of a die of an Atlas A3, whose link to the host is HCCS (hicann/driver, devdrv_pci.h).
WIDTH_PROVES_NOTHING = C2C_GPUS | {"0x3182", "0xd803"}

_CX8 = "0x1023"
DATA_DIRECT = "0x2100"  # the second DMA function of a ConnectX-8
_NIC_SWITCHES = frozenset({"0x1979", "0x197b", "0x197c", "0x197d"})

_LOWER = {"critical": "error", "error": "warning", "warning": "info", "info": "info"}


def severity_by_role(severity: str, nic: Nic) -> str | None:
    """How grave a fault of that severity is on this NIC; None where nobody would notice it.

    Rails as the rule says; storage and management NICs, and those of unknown use, one lower; unused and auxiliary
    ones, and those that a fabric manager or software owns, not at all.
    """
    if nic.software or nic.limited or nic.role in ("unused", "auxiliary"):
        return None
    return severity if nic.role == "rail" else one_level_lower(severity)


def one_level_lower(severity: str) -> str:
    """One step less grave."""
    return _LOWER[severity]


def find_function(case: RuleContext, device: Gpu | Nic) -> PciFunction | None:
    """The PCI function of a GPU or NIC, where the report holds it."""
    return case.functions.get(device.pci or "")


def location_unknown(case: RuleContext, device: Gpu | Nic) -> Reason | None:
    """Why it is not known where on the PCI bus it is; None: it is known, or the bus is whole and lacks it."""
    if find_function(case, device) is not None:
        return None
    return case.bus_unread or (Reason("not-known", fact="where it is on the PCI bus") if device.pci is None else None)


def is_nvidia(case: RuleContext, gpu: Gpu) -> bool:
    """Whether NVIDIA made this GPU: its PCI vendor, else what the driver calls it."""
    function = find_function(case, gpu)
    if function and function.vendor:
        return function.vendor == NVIDIA
    return (gpu.vendor or "nvidia").lower() in ("nvidia", NVIDIA)


DIES = frozenset({"0xd803", "0xd804"})  # Atlas A3: two of them are a module


def find_device_id(case: RuleContext, device: Gpu | Nic) -> str:
    """PCI device id ("0x2330"); "" where it is not known."""
    function = find_function(case, device)
    return (function.device or "").lower() if function else ""


def find_lost_addresses(case: RuleContext) -> set[str]:
    """Addresses of the last run's inventory at which nothing is now."""
    known = case.history.inventory if case.history else []
    return {item.subject.partition(":")[2] for item in known} - case.functions.keys()


def report_no_gpu(case: RuleContext) -> Iterator[Result]:
    """The answer of a rule about GPUs where it is certain that there is none."""
    if not case.topology.gpus and case.bus_unread is None:
        yield NotApplicable("node", Reason("no-such-device", detail="no GPU"))


def gpu_model(case: RuleContext, gpu: Gpu) -> str:
    """What two GPUs have in common that are the same product: device and subsystem, else the name."""
    function = find_function(case, gpu)
    if function and function.device:
        return f"{function.vendor}:{function.device}"
    return gpu.name or ""


def is_consumer(case: RuleContext, gpu: Gpu) -> bool:
    """A card for games and desktops, by its name: made for other uses than this one, and left alone."""
    function = find_function(case, gpu)
    name = f"{gpu.name or ''} {(function.name if function else None) or ''}".lower()
    return any(line in name for line in ("geforce", "titan"))


def is_on_c2c(case: RuleContext, gpu: Gpu) -> bool:
    """A GPU of a superchip: its way to the CPU and to NICs is NVLink-C2C, not PCIe."""
    return find_device_id(case, gpu) in C2C_GPUS or bool(gpu.c2c and gpu.c2c.enabled)


def reaches_gpus_by_itself(case: RuleContext, nic: Nic) -> bool:
    """A ConnectX-8 that GPUs reach inside its own switch (B300), or by its data-direct function (GB300): the link of
    its uplink carries what goes to the CPU, and no GPU traffic."""
    if find_device_id(case, nic) != _CX8:
        return False
    if any(f.vendor == MELLANOX and f.device == DATA_DIRECT for f in case.topology.pci):
        return True
    return any(is_below_nic_switch(case, gpu) for gpu in case.topology.gpus)


def is_below_nic_switch(case: RuleContext, gpu: Gpu) -> bool:
    """Whether a GPU sits below the PCIe switch that is a part of a NIC."""
    function = find_function(case, gpu)
    above = case.ancestors(function) if function else ()
    return any(f.vendor == MELLANOX and f.device in _NIC_SWITCHES for f in above)


def device_label(case: RuleContext, pci: str) -> str:
    """What people call a PCI function."""
    known = case.gpu_by_pci.get(pci) or case.nic_by_pci.get(pci)
    if known:
        return known.label
    function = case.functions.get(pci)
    kind = (function.class_code or "")[:6] if function else ""
    return f"{_KINDS.get(kind, 'device')} {pci}"


def is_virtual_gpu(gpu: Gpu) -> bool:
    """Whether it is a share of a GPU that a hypervisor gave to this virtual machine."""
    return "vgpu" in (gpu.virtualization or "").lower()


def unreachable_reason(function: PciFunction | None) -> Reason | None:
    """Why a function cannot be asked at all; None where it is there and awake."""
    if function is None or function.state == "present":
        return None
    return _UNREACHABLE.get(function.state) or Reason("not-in-use", detail=function.state)


def find_offered(
    case: RuleContext, gpu: Gpu, driver: str, unlisted: str, offered: tuple[str, ...] = ("open",)
) -> Result | None:
    """The answer about a device that its driver offers, or need not; None: bound to it, and not offered."""
    subject, function = f"gpu:{gpu.id}", find_function(case, gpu)
    absent = unreachable_reason(function)
    if absent and not is_off_bus(function):
        return NotApplicable(subject, absent)
    if gpu.driver_state in offered:
        return Pass(subject)
    if gpu.driver_state in ("vfio", "no_driver"):
        return NotApplicable(subject, Reason("not-configured", detail=f"{driver} is not bound to it"))
    if gpu.driver_state != "not_open":
        return Unknown(
            subject, quote_source(gpu.driver_error) or case.probe_failure("gpu") or Reason("not-shown", detail=unlisted)
        )
    return None


def near_rail_id(gpu: str) -> str:
    """The place of a GPU's near NIC, which has no id of its own where there is none any more."""
    return f"rail of {gpu}"


def is_off_bus(function: PciFunction | None) -> bool:
    """Fallen off the bus: what else is wrong with the device follows from that, and is folded into it."""
    return function is not None and function.state == "gone"


def pci_source(case: RuleContext, pci: str, attribute: str) -> str:
    """Where a person finds a PCI fact again: the file of sysfs, or lspci where that was the source."""
    if case.probe_failure("pci_sysfs") is None:
        return f"/sys/bus/pci/devices/{pci}/{attribute}"
    return f"lspci -vvv -s {pci}"


def quote_log(event: Event, log: str = "kernel log") -> Evidence:
    """A line of a log with its date."""
    return Evidence(what=f"{log}, {event.at or event.logged or 'no date'}", value=event.text, source=event.source)


def kernel_log_evidence(case: RuleContext, pci: str) -> tuple[Evidence, ...]:
    """The last two lines that the kernel log has of a device."""
    events = [event for event in case.events if event.subject in (pci, f"pci:{pci}")]
    return tuple(Evidence(what="kernel log", value=event.text, source=event.source) for event in events[-2:])


_START_CAUSES = frozenset({
    "open-modules", "closed-modules", "power-cable", "unsupported-gpu", "bar-missing", "registers-taken",
    "no-interrupt", "gsp-firmware-missing",
})  # fmt: skip


def states_driver_cause(case: RuleContext, pci: str) -> bool:
    """Whether the kernel log has the driver's own sentence why it cannot start this GPU: no fault of the hardware."""
    return any(event.kind == "driver" and event.subject == pci and event.code in _START_CAUSES for event in case.events)


_UNREACHABLE = {
    "asleep": Reason("not-in-use", detail="asleep: a scan does not wake it"),
    "gone": Reason("judged-elsewhere", detail="it does not answer: see pcie-device-gone"),
    "changed_during_scan": Reason("not-in-use", detail="it came or went while the scan ran"),
}
_KINDS = {
    "0x0502": "CXL memory",
    "0x0604": "PCIe port",
    "0x0108": "drive",
    "0x0680": "NVSwitch",
    "0x0207": "NIC",
    "0x0200": "NIC",
}
