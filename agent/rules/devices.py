"""What a device of a machine is, and how much a fault on it matters: what rules of several families ask."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic, Port
from agent.model.node import Event
from agent.model.pci import PciFunction
from agent.model.reasons import Reason, quote_source
from agent.rules.applicability import behind, has_gpus
from agent.rules.context import RuleContext
from agent.rules.rule import NODE, NamedSubject, Result, Subject

NVIDIA, AMD, MELLANOX = "0x10de", "0x1002", "0x15b3"

# GPUs that hang on their CPU by NVLink-C2C (GH200, GB200, GB300), where PCIe is a side way, and the B300 board, for
# which DCGM accepts x1 for an undocumented reason: their PCIe width is no evidence (diag-skus.yaml of DCGM; pci.ids).
TRAY_GPUS = frozenset({"0x2941", "0x31c2", "0x31c3"})  # GB200, GB300
C2C_GPUS = TRAY_GPUS | {"0x2342", "0x2345", "0x2348", "0x237f"}
# Nor that of a die of an Atlas A3, whose link to the host is HCCS (hicann/driver, devdrv_pci.h).
WIDTH_PROVES_NOTHING = C2C_GPUS | {"0x3182", "0xd803"}

_CX8 = "0x1023"
DATA_DIRECT = "0x2100"  # the second DMA function of a ConnectX-8
_NIC_SWITCHES = frozenset({"0x1979", "0x197b", "0x197c", "0x197d"})

_LOWER = {"critical": "error", "error": "warning", "warning": "info", "info": "info"}

_PLAIN_WORDS = r"[A-Za-z][A-Za-z_, -]{6,60}[A-Za-z](?![A-Za-z])"
_LINES_FOUND = 3


def severity_by_role(severity: str, nic: Nic) -> str | None:
    """How severe a fault of that severity is on this NIC; None where no one would notice it.

    Rails as the rule states; storage and management NICs, and those of unknown use, one lower; unused and auxiliary
    ones, and those that a fabric manager or software owns, not at all.
    """
    if nic.software or nic.limited or nic.role in ("unused", "auxiliary"):
        return None
    return severity if nic.role == "rail" else one_level_lower(severity)


def one_level_lower(severity: str) -> str:
    """One severity lower."""
    return _LOWER[severity]


def find_function(context: RuleContext, device: Gpu | Nic) -> PciFunction | None:
    """The PCI function of a GPU or NIC, where the report holds it."""
    return context.functions.get(device.pci or "")


def why_location_unknown(context: RuleContext, device: Gpu | Nic) -> Reason | None:
    """Why it is not known where on the PCI bus it is; None: it is known, or the bus is whole and does not have it."""
    if find_function(context, device) is not None:
        return None
    return context.why_bus_unread or (
        Reason("not-known", fact="where it is on the PCI bus") if device.pci is None else None
    )


def is_nvidia(context: RuleContext, gpu: Gpu) -> bool:
    """Whether NVIDIA made this GPU: its PCI vendor, else what the driver calls it."""
    function = find_function(context, gpu)
    if function and function.vendor:
        return function.vendor == NVIDIA
    return (gpu.vendor or "nvidia").lower() in ("nvidia", NVIDIA)


DIES = frozenset({"0xd803", "0xd804"})  # Atlas A3: two of them are a module
WITHOUT_CHIPS = frozenset({"0xd806", "0xd807"})  # Ascend 950: npu-smi takes the card alone


def find_device_id(context: RuleContext, device: Gpu | Nic) -> str:
    """PCI device id ("0x2330"); "" where it is not known."""
    function = find_function(context, device)
    return (function.device or "").lower() if function else ""


def find_lost_addresses(context: RuleContext) -> set[str]:
    """Addresses of the last run's inventory at which nothing is now."""
    known = context.history.inventory if context.history else []
    return {item.subject.partition(":")[2] for item in known} - context.functions.keys()


def report_no_gpu(context: RuleContext) -> Iterator[Result]:
    """The answer of a rule about GPUs where it is certain that there is none."""
    if answer := has_gpus(context):
        yield answer


def gpu_model(context: RuleContext, gpu: Gpu) -> str:
    """What two GPUs have in common that are the same product: device and subsystem, else the name."""
    function = find_function(context, gpu)
    if function and function.device:
        return f"{function.vendor}:{function.device}"
    return gpu.name or ""


def is_consumer(context: RuleContext, gpu: Gpu) -> bool:
    """A card for games and desktops, by its name: made for other uses than this one, and left alone."""
    function = find_function(context, gpu)
    name = f"{gpu.name or ''} {(function.name if function else None) or ''}".lower()
    return any(line in name for line in ("geforce", "titan"))


def is_on_c2c(context: RuleContext, gpu: Gpu) -> bool:
    """A GPU of a superchip: its way to the CPU and to NICs is NVLink-C2C, not PCIe."""
    return find_device_id(context, gpu) in C2C_GPUS or bool(gpu.c2c and gpu.c2c.enabled)


def reaches_gpus_by_itself(context: RuleContext, nic: Nic) -> bool:
    """A ConnectX-8 that GPUs reach inside its own switch (B300), or by its data-direct function (GB300): the link of
    its uplink carries what goes to the CPU, and no GPU traffic."""
    if find_device_id(context, nic) != _CX8:
        return False
    if any(f.vendor == MELLANOX and f.device == DATA_DIRECT for f in context.topology.pci):
        return True
    return any(is_below_nic_switch(context, gpu) for gpu in context.topology.gpus)


def is_below_nic_switch(context: RuleContext, gpu: Gpu) -> bool:
    """Whether a GPU sits below the PCIe switch that is a part of a NIC."""
    function = find_function(context, gpu)
    above = context.ancestors(function) if function else ()
    return any(f.vendor == MELLANOX and f.device in _NIC_SWITCHES for f in above)


def device_label(context: RuleContext, pci: str) -> str:
    """What people call a PCI function."""
    known = context.gpu_by_pci.get(pci) or context.nic_by_pci.get(pci)
    if known:
        return known.label
    function = context.functions.get(pci)
    kind = (function.class_code or "")[:6] if function else ""
    return f"{_KINDS.get(kind, 'device')} {pci}"


def is_virtual_gpu(gpu: Gpu) -> bool:
    """Whether it is a share of a GPU that a hypervisor gave to this virtual machine."""
    return "vgpu" in (gpu.virtualization or "").lower()


def why_unreachable(function: PciFunction | None) -> Reason | None:
    """Why a function cannot be asked at all; None where it is there and awake."""
    if function is None or function.state == "present":
        return None
    return _UNREACHABLE.get(function.state) or Reason("not-in-use", detail=function.state)


def find_offered(
    context: RuleContext, gpu: Gpu, driver: str, unlisted: str, offered: tuple[str, ...] = ("open",)
) -> Result | None:
    """The answer about a device that its driver offers, or need not; None: bound to it, and not offered."""
    about, function = about_gpu(gpu), find_function(context, gpu)
    absent = why_unreachable(function)
    if absent and not is_off_bus(function):
        return about.not_applicable(absent)
    if gpu.driver_state in offered:
        return about.passes()
    if gpu.driver_state in ("vfio", "no_driver"):
        return about.not_applicable("not-configured", detail=f"{driver} is not bound to it")
    if gpu.driver_state != "not_open":
        why = quote_source(gpu.driver_error) or context.why_probe_failed("gpu")
        return about.unknown(why or Reason("not-shown", detail=unlisted))
    return None


def about_gpu(gpu: Gpu) -> NamedSubject:
    """A GPU as the subject of a rule."""
    return NamedSubject(f"gpu:{gpu.id}", gpu.label, frozenset({gpu.id, gpu.pci or gpu.id}))


def about_nic(nic: Nic) -> NamedSubject:
    """A NIC as the subject of a rule."""
    return NamedSubject(f"pci:{nic.pci or nic.id}", nic.label, frozenset({nic.id}))


class NicPort(Subject, frozen=True):
    """One port of a NIC."""

    nic: Nic
    port: Port

    @property
    def subject(self) -> str:
        """The port."""
        return f"port:{self.nic.id}/{self.port.port}"

    @property
    def label(self) -> str:
        """The port for people."""
        return f"{self.nic.label}/{self.port.port}"

    @property
    def ids(self) -> frozenset[str]:
        """What a fault of this port is about."""
        nic = self.nic
        return frozenset({f"{nic.id}/{self.port.port}", nic.id, nic.pci or nic.accelerator or nic.id})

    @property
    def folder(self) -> str:
        """Where sysfs describes the port."""
        return f"/sys/class/infiniband/{self.nic.rdma_device or self.nic.label}/ports/{self.port.port}"

    def evidence(self, what: str, value: str, file: str) -> Evidence:
        """One observation, with the file of sysfs that holds it."""
        return Evidence(f"{what} of {self.label}", value, f"{self.folder}/{file}")

    def severity(self, rail: str) -> str:
        """How severe a fault is here that has severity `rail` on a rail."""
        return severity_by_role(rail, self.nic) or "info"


def about_pair(a: Gpu | Nic, b: Gpu | Nic) -> NamedSubject:
    """Two devices as the subject of a rule."""
    return NamedSubject(f"pair:{a.id}+{b.id}", f"{a.label} - {b.label}", frozenset({a.id, b.id}))


def about_pairs(pairs: Sequence[tuple[Gpu, Gpu]]) -> NamedSubject:
    """Pairs with one fault: the GPU that all of them have in common, the only pair, else the node."""
    ends = {gpu.id: gpu for pair in pairs for gpu in pair}
    common = [gpu for end, gpu in ends.items() if all(end in (a.id, b.id) for a, b in pairs)]
    return about_gpu(common[0]) if len(common) == 1 else about_pair(*common) if common else NODE


def about_function(context: RuleContext, pci: str) -> NamedSubject:
    """A PCI function as the subject of a rule."""
    return NamedSubject(f"pci:{pci}", device_label(context, pci), frozenset({pci}))


@behind(has_gpus)
def list_gpus(context: RuleContext) -> Sequence[Gpu]:
    """Every GPU; the answer where it is certain that there is none."""
    return context.topology.gpus


def near_rail_id(gpu: str) -> str:
    """The place of a GPU's near NIC, which has no id of its own where there is none any more."""
    return f"rail of {gpu}"


def is_off_bus(function: PciFunction | None) -> bool:
    """Fallen off the bus: what else is wrong with the device follows from that, and is folded into it."""
    return function is not None and function.state == "gone"


def pci_source(context: RuleContext, pci: str, attribute: str) -> str:
    """Where a person finds a PCI fact again: the file of sysfs, or lspci where that was the source."""
    if context.why_probe_failed("pci_sysfs") is None:
        return f"/sys/bus/pci/devices/{pci}/{attribute}"
    return f"lspci -vvv -s {pci}"


def ask_nvidia_smi(options: str, gpu: Gpu) -> str:
    """The command, for this GPU alone where its number is known."""
    return f"nvidia-smi {options}" + (f" -i {gpu.index}" if gpu.index is not None else "")


def quote_acs(context: RuleContext, port: PciFunction) -> Evidence:
    """What of ACS is on at a port."""
    control = " ".join(port.acs.control) if port.acs else ""
    return Evidence(f"ACS control of {port.id}", control, pci_source(context, port.id, "config"))


def quote_iommu(context: RuleContext, functions: Sequence[PciFunction]) -> Iterator[Evidence]:
    """The IOMMU group of each and its type. Without sysfs the groups are lspci's, and the type is the default that the
    kernel's log states."""
    is_read = context.why_probe_failed("pci_sysfs") is None
    if functions and not is_read:
        yield Evidence("default type of IOMMU groups", functions[0].iommu_type or "", "dmesg")
    for function in functions:
        group, label = function.iommu_group, device_label(context, function.id)
        if is_read:
            source = f"/sys/kernel/iommu_groups/{group}/type"
            yield Evidence(f"IOMMU group {group} of {label}", function.iommu_type or "", source)
        else:
            yield Evidence(f"IOMMU group of {label}", str(group), f"lspci -vvv -s {function.id}")


def list_log_words(events: Iterable[Event]) -> tuple[tuple[str, str], ...]:
    """The longest run of plain words of each line, as a value for `grep -E` that finds these lines again."""
    runs = (max(re.findall(_PLAIN_WORDS, event.text), key=len, default="") for event in events)
    words = list(dict.fromkeys(filter(None, runs)))[:_LINES_FOUND]
    return (("LOG_WORDS", "|".join(words)),) if words else ()


def quote_log(event: Event, log: str = "kernel log") -> Evidence:
    """A line of a log with its date."""
    return Evidence(f"{log}, {event.at or event.logged or 'no date'}", event.text, event.source)


def quote_with_reason(event: Event) -> Iterator[Evidence]:
    """A line of the kernel log, after the line before it in which the driver states why."""
    if before := event.detail.get("before"):
        yield Evidence("kernel log, the line before", before, event.source)
    yield Evidence("kernel log", event.text, event.source)


def find_unlisted(context: RuleContext, kinds: Sequence[str], codes: Collection[str | None]) -> list[str]:
    """Functions that only such lines of the kernel log name, where the PCI bus was not read."""
    if not context.why_bus_unread or context.virtual_machine:
        return []
    named = {event.subject for event in context.events if event.kind in kinds and event.code in codes and event.subject}
    return sorted(named - context.functions.keys() - context.nic_by_pci.keys())


def kernel_log_evidence(context: RuleContext, pci: str) -> tuple[Evidence, ...]:
    """The last two lines that the kernel log has of a device."""
    events = [event for event in context.events if event.subject in (pci, f"pci:{pci}")]
    return tuple(Evidence("kernel log", event.text, event.source) for event in events[-2:])


def none_logged(context: RuleContext, about: Subject) -> Result:
    """The answer where the kernel log has no line about something, or was not read."""
    unread = context.why_probe_failed("kernel_log")
    return about.unknown("log-not-read", why=unread) if unread else about.passes()


_START_CAUSES = frozenset({
    "open-modules", "closed-modules", "power-cable", "unsupported-gpu", "bar-missing", "registers-taken",
    "no-interrupt", "gsp-firmware-missing",
})  # fmt: skip


def states_driver_cause(context: RuleContext, pci: str) -> bool:
    """Whether the kernel log has the driver's own sentence why it cannot start this GPU: no fault of the hardware."""
    return any(
        event.kind == "driver" and event.subject == pci and event.code in _START_CAUSES for event in context.events
    )


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
