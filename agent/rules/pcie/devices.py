"""PCIe devices that do not answer, are cut off, or have no usable driver."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from agent.model.finding import SEVERITIES, Evidence
from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.node import Event
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.rules.applicability import AMAZON, HABANA
from agent.rules.context import RuleContext, parse_time, read_since_boot
from agent.rules.devices import (
    AMD,
    MELLANOX,
    NVIDIA,
    about_function,
    device_label,
    find_function,
    is_nvidia,
    kernel_log_evidence,
    pci_source,
    severity_by_role,
    why_unreachable,
)
from agent.rules.node_wide import merge_if_on_all
from agent.rules.pcie.links import fail_by_log, report_log_alone
from agent.rules.pcie.start_errors import explain_start
from agent.rules.rule import NODE, Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels


@rule("pcie-device-gone")
def pcie_device_gone(context: RuleContext) -> Iterator[Result]:
    gear = _judged_functions(context)
    gone: dict[tuple[str | None, str], list[PciFunction]] = {}
    for function in context.topology.pci:
        if function.id not in gear:
            continue
        about = about_function(context, function.id)
        if function.state == "gone" and not (function.power_state or "").startswith("D3"):
            top = [up for up in context.ancestors(function) if up.state == "gone"]
            place = top[-1] if top else function
            gone.setdefault((place.parent, place.id.rpartition(".")[0]), []).append(function)
        elif function.state == "present":
            yield about.passes()
        else:
            yield about.not_applicable("not-in-use", detail=f"not awake to answer: {function.state}")
    for members in gone.values():
        yield _fail_device_gone(context, members, gear)


def _judged_functions(context: RuleContext) -> dict[str, str]:
    """Judged functions with how severe it is to lose them; a port counts as the most severe thing below it."""
    switches = {s.pci for s in context.topology.nvswitches}
    seen: dict[str, str] = {}
    for function in context.topology.pci:
        nic = context.nic_by_pci.get(function.id)
        if function.id in context.gpu_by_pci or function.id in switches:
            severity = "critical"
        elif nic and not nic.virtual_function:
            severity = severity_by_role("critical", nic) or "warning"
        elif (function.class_code or "").startswith("0x010802"):
            severity = "error"
        elif function.state == "gone" and (function.class_code or "").startswith("0x0604"):
            severity = "warning"
        else:
            continue
        for place in (function, *context.ancestors(function)):
            seen[place.id] = max(seen.get(place.id, "info"), severity, key=SEVERITIES.index)
    return seen


def _fail_device_gone(context: RuleContext, members: list[PciFunction], gear: dict[str, str]) -> Fail:
    ids = {f.id for f in members}
    tops = [f for f in members if not any(up.id in ids for up in context.ancestors(f))]
    first = min(tops, key=lambda f: f.id)
    ends = sorted(
        device_label(context, f.id) for f in members if f.id in context.gpu_by_pci or f.id in context.nic_by_pci
    )
    below = [name for name in ends if name != device_label(context, first.id)]
    gpus = sum(f.id in context.gpu_by_pci for f in members)
    lost = (
        f"{gpus} of {len(context.topology.gpus)} GPUs" if gpus else join_labels(ends) or device_label(context, first.id)
    )
    return about_function(context, first.id).fail(
        summary="has fallen off the bus (config space reads 0xFF)" + (f", with {join_labels(below)}" if below else ""),
        impact=f"{lost} lost until a reset or power cycle; jobs that use it hang or die.",
        evidence=(
            Evidence(f"config space of {first.id}", "all-ones", pci_source(context, first.id, "config")),
            *_switched_off(context, first),
            *kernel_log_evidence(context, first.id),
        ),
        severity=max((gear[f.id] for f in members), key=SEVERITIES.index),
        ids=_affected_ids(context, ids),
    )


def _switched_off(context: RuleContext, function: PciFunction) -> tuple[Evidence, ...]:
    port = context.functions.get(function.parent or "")
    if port is None or not port.link_disabled:
        return ()
    return (Evidence(f"Link Disable of {port.id}", "set", f"lspci -vv -s {port.id} (LnkCtl; root)"),)


def _affected_ids(context: RuleContext, ids: set[str]) -> frozenset[str]:
    affected = set(ids)
    for rows in (context.topology.gpus, context.topology.nics, context.topology.nvswitches):
        affected |= {row.id for row in rows if row.pci in ids}
    return frozenset(affected)


_LOST_SLOT = "a slot lost its link"
_FATAL = ("(fatal)", "uncorrectable fatal", "containment event")


@rule("pcie-containment")
def pcie_containment(context: RuleContext) -> Iterator[Result]:
    if context.virtual_machine:
        yield NODE.not_applicable("guest", detail="virtual machine: the hypervisor controls its ports")
        return
    if not (context.topology.gpus or context.topology.nics or context.why_bus_unread):
        yield NODE.not_applicable("no-such-device", detail="no GPU and no NIC")
        return
    worst: dict[str, list[Event]] = {}
    for event in context.events:
        if event.kind in ("dpc", "aer") and event.subject and any(word in event.text.lower() for word in _FATAL):
            worst.setdefault(event.subject.removeprefix("pci:"), []).append(event)
    for place in sorted(worst):
        yield _judge_containment(context, place, worst[place])
    pulled = [event for event in context.events if event.kind == "hotplug" and event.subject not in worst]
    impact = "What was below the port is off the bus: a device that failed, or a drive that was taken out."
    slots = list(report_log_alone(context, pulled, _LOST_SLOT, impact))
    for place in sorted({event.subject or "" for event in pulled} & context.functions.keys()):
        if labels := _list_gear_below(context, place)[1]:
            label, own = join_labels(labels), [event for event in pulled if event.subject == place]
            back = f"{label} left the bus and is back: a job that used it has ended."
            slots.append(fail_by_log(place, label, own, _LOST_SLOT, back))
    yield from (replace(slot, situation="log") for slot in slots)
    stuck = [event for event in context.events if _is_unrecovered(event) and event.detail.get("driver") in _DRIVERS]
    recorded = any(event.kind == "aer" and "(non-fatal)" in event.text.lower() for event in context.events)
    if not worst and not recorded:  # else they are a part of these, or of an error after which the device goes on
        yield from report_log_alone(context, stuck, "a PCIe error was not recovered", _NOT_RECOVERED, "warning")
    if not worst and context.why_probe_failed("kernel_log") is None:
        yield NODE.passes()


def _is_unrecovered(event: Event) -> bool:
    return (event.kind, event.code) == ("aer", "no-recovery") and event.subject is not None


def _list_gear_below(context: RuleContext, place: str) -> tuple[list[PciFunction], list[str]]:
    """What is below a port now, or is the device itself; and the labels of what of it runs jobs."""
    function = context.functions.get(place)
    gear = {gpu.pci for gpu in context.topology.gpus} | {switch.pci for switch in context.topology.nvswitches}
    gear |= {nic.pci for nic in context.topology.nics if nic.role not in ("unused", "auxiliary") and not nic.limited}
    below = [f for f in context.topology.pci if function in (f, *context.ancestors(f))]
    ends = [f for f in below if not (f.class_code or "").startswith("0x0604")]
    return ends, sorted(device_label(context, f.id) for f in ends if f.id in gear)


def _judge_containment(context: RuleContext, place: str, events: list[Event]) -> Result:
    about, function = about_function(context, place), context.functions.get(place)
    ends, hit = _list_gear_below(context, place)
    if ends and not hit:
        return about.not_applicable("not-in-use", detail="nothing that runs jobs is below it")
    stuck = _find_unrecovered(context, place, function)
    named = [f"{event.detail['driver']} {event.subject}" for event in stuck if "driver" in event.detail]
    lost = join_labels(hit or named) or "what was below it"
    times = max(sum(event.count for event in events if event.kind == kind) for kind in ("dpc", "aer"))
    ids = frozenset({place, *(f.id for f in ends), *filter(None, (event.subject for event in stuck))})
    packet = None if stuck else _find_packet_error(events)
    did = f"stopped {lost}: a packet was not valid ({packet})" if packet else f"cut off {lost}"
    return about.fail(
        summary=f"a fatal PCIe error {did}{'; recovery failed' if stuck else ''}",
        impact=f"{times} time{'s' if times > 1 else ''} since boot; each ends every job that uses {lost}.",
        evidence=tuple(Evidence("kernel log", e.text, e.source) for e in (*events[-3:], *stuck[:3])),
        severity=None if hit or named else "warning",
        situation="malformed" if packet else "",
        ids=ids,
        explains_ids=ids | {f"{pci}/xid" for pci in ids if _was_lost_then(context, pci, events)},
    )


def _find_packet_error(events: list[Event]) -> str | None:
    """The status bits, where all of them state a packet that breaks a rule: none of a link that was lost. The link is
    reset all the same, and the device is back after that."""
    bits = {bit for event in events for bit in (event.detail.get("bits") or event.code or "").split(", ")}
    return ", ".join(sorted(bits)) if not bits - _OF_PACKETS and all(event.kind == "aer" for event in events) else None


def _was_lost_then(context: RuleContext, pci: str, errors: list[Event]) -> bool:
    """Whether all that the driver logged of a GPU is that it was lost, at the time of these errors."""
    logged = [event for event in context.events if event.kind in ("xid", "gpu_lost") and event.subject == pci]
    is_lost = any(event.kind == "gpu_lost" or event.code == _LOST_XID for event in logged)
    moments = [_read_moment(event) for event in (*logged, *errors)]
    known = [moment for moment in moments if moment is not None]
    near = len(known) == len(moments) and max(known, default=0.0) - min(known, default=0.0) <= _TOGETHER_SECONDS
    return is_lost and near and all(event.code in (_LOST_XID, _ACTION_XID, None) for event in logged)


def _read_moment(event: Event) -> float | None:
    """Seconds since an epoch that is the same for all lines of one log; None where its time is not known."""
    at = parse_time(event.at)
    return at.timestamp() if at else read_since_boot(event.logged)


_OF_PACKETS = frozenset({"MalfTLP", "ECRC", "TLPBlockedErr", "BlockedTLP", "MCBlockedTLP", "AtomicOpBlocked"})
_LOST_XID, _ACTION_XID = "79", "154"
_TOGETHER_SECONDS = 60.0


def _find_unrecovered(context: RuleContext, place: str, function: PciFunction | None) -> list[Event]:
    """Lines of a recovery that failed: of the port, and of devices below it. A log alone does not show what is below
    a port; there the devices count only where all fatal errors are of one port."""
    lines = [event for event in context.events if _is_unrecovered(event)]
    if function is not None:
        below = {f.id for f in context.topology.pci if function in (f, *context.ancestors(f))}
        return [event for event in lines if event.subject in below]
    fatal = {
        event.subject
        for event in context.events
        if event.kind == "dpc" or (event.kind == "aer" and event.detail.get("severity") == "fatal")
    }
    return [event for event in lines if event.subject == place or (len(fatal) == 1 and "driver" in event.detail)]


_WRONG = {"nouveau": "nvidia", "nova_core": "nvidia", "nvidiafb": "nvidia"}  # drive the GPU's display, run no CUDA
_RIGHT = {NVIDIA: "nvidia", AMD: "amdgpu", MELLANOX: "mlx5_core"}
_MODULES = {  # by the maker of GPU rows
    "NVIDIA": "nvidia",
    "AMD": "amdgpu",
    "Huawei": "drv_pcie_host",
    HABANA: "habanalabs",
    AMAZON: "neuron",
}
_DRIVERS = frozenset({*_RIGHT.values(), *_MODULES.values()})
_NOT_RECOVERED = "The driver cannot go on after such an error: jobs that use the device end or hang."
_PARTITION = "pci-pf-stub"
_FAILED_START = ("a driver failed to start", "The device cannot be used by jobs.")


@rule("pci-driver-missing")
def pci_driver_missing(context: RuleContext) -> Iterator[Result]:
    for fault in report_log_alone(context, _list_failed_starts(context), *_FAILED_START, "warning"):
        yield explain_start(fault, context.events)
    faults: list[Fail] = []
    for gpu in sorted(context.topology.gpus, key=lambda function: function.id):
        answer = _judge_driver(context, gpu, find_function(context, gpu), "warning")
        if isinstance(answer, Fail):
            faults.append(answer)
        else:
            yield answer
    for fault in merge_if_on_all(
        faults, len(context.topology.gpus), "no GPU can be used: no driver is bound that runs jobs"
    ):
        all_gpus = f"{len(faults)} of {len(faults)} GPUs cannot be used by jobs of this host."
        fault = replace(fault, severity=_severity_of_all(context, faults, fault))
        yield replace(fault, impact=all_gpus) if fault.subject == "node" else fault
    for nic in context.topology.nics:
        if nic.software or nic.virtual_function:
            yield NotApplicable(
                f"pci:{nic.pci or nic.id}", Reason("guest", detail="a virtual function or a software device")
            )
        elif nic.id == nic.pci:
            yield _judge_driver(context, nic, find_function(context, nic), _severity_by_kind(context, nic))


def _list_failed_starts(context: RuleContext) -> list[Event]:
    """What the kernel log has of drivers that did not start."""
    return [
        event for event in context.events if event.kind == "amd_init" or (event.kind, event.code) == ("mlx5", "load")
    ]


def _severity_of_all(context: RuleContext, faults: list[Fail], fault: Fail) -> str | None:
    """Critical where no GPU has a driver on a host that has one installed: its jobs do not start."""
    driver = context.software.driver
    due = {_MODULES.get(gpu.vendor or "") for gpu in context.topology.gpus}
    installed = bool(driver.library or driver.packages) or any(row.name in due for row in context.software.modules)
    whole = installed and len(faults) == len(context.topology.gpus) and all(one.severity == "warning" for one in faults)
    return "critical" if whole else fault.severity


def _judge_driver(
    context: RuleContext, device: Gpu | Nic, function: PciFunction | None, severity: str | None
) -> Result:
    subject = f"pci:{device.pci or device.id}"
    if function is None:
        return Unknown(subject, Reason("not-known", fact="its PCI function"))
    absent = why_unreachable(function)
    if absent and not _is_passed_through(function.driver or ""):
        return NotApplicable(subject, absent)
    if function.physical_function:
        return NotApplicable(subject, Reason("guest", detail="a virtual function: it waits for a guest"))
    if severity is None:
        return NotApplicable(subject, Reason("not-in-use", detail="a NIC that no job uses"))
    driver = function.driver
    if isinstance(device, Gpu) and device.driver_state == "open" and not driver:
        return Pass(subject)  # what listed it is its driver; sources differ in age
    if driver is None:
        lines = [event for event in _list_failed_starts(context) if event.subject == function.id]
        if lines and context.recorded:
            fault = replace(fail_by_log(function.id, device.label, lines, *_FAILED_START), severity="warning")
            return explain_start(fault, context.events)
        return Unknown(subject, Reason("not-known", fact="whether a driver is bound to it"))
    wrong = _WRONG.get(driver) if isinstance(device, Gpu) and is_nvidia(context, device) else None
    if driver and not wrong and not _is_passed_through(driver):
        return Pass(subject)
    return _fail_driver(context, device, function, "info" if _is_passed_through(driver) else severity)


def _is_passed_through(driver: str) -> bool:
    """Held for a virtual machine: vfio-pci, its variants, the stub for partitions."""
    return driver == _PARTITION or "vfio" in driver


def _severity_by_kind(context: RuleContext, nic: Nic) -> str | None:
    """How severe it is: a NIC without a driver has no role, those of its kind do."""
    if nic.limited:
        return None
    if nic.driver or nic.role not in ("unknown", "unused"):
        return severity_by_role("warning", nic)
    function = find_function(context, nic)
    like = [
        other
        for other in context.topology.nics
        if other.role == "rail" and _is_same_model(function, find_function(context, other))
    ]
    return "warning" if like else "info"


def _is_same_model(one: PciFunction | None, other: PciFunction | None) -> bool:
    if one is None or other is None or one.device is None:
        return False
    return (one.vendor, one.device, one.subsystem_device) == (other.vendor, other.device, other.subsystem_device)


def _fail_driver(context: RuleContext, device: Gpu | Nic, function: PciFunction, severity: str) -> Fail:
    driver = function.driver or ""
    expected_driver = _RIGHT.get(function.vendor or "", "its driver")
    what = "GPUs" if isinstance(device, Gpu) else "NICs"
    rows = context.topology.gpus if isinstance(device, Gpu) else context.topology.nics
    with_driver = sorted(
        row.label for row in rows if (f := find_function(context, row)) and f.driver == expected_driver
    )
    handed = _is_passed_through(driver)
    return about_function(context, function.id).fail(
        label=device.label,
        summary=f"bound to {driver}: it is kept for a virtual machine"
        if handed
        else f"driven by {driver}, which runs no jobs; {expected_driver} is due"
        if driver
        else "no driver is bound to it",
        impact=f"1 of {len(rows)} {what} cannot be used by jobs of this host.",
        remedy="Bind it to its driver again, if no virtual machine needs it."
        if handed
        else f"Load {expected_driver}, and read in the kernel log why it did not bind"
        + (f"; keep {driver} from loading." if driver else "."),
        evidence=(
            Evidence(f"driver of {function.id}", driver or "none", f"/sys/bus/pci/devices/{function.id}/driver"),
            Evidence(f"{what} with {expected_driver}", join_labels(with_driver) or "none", "lspci -nnk"),
            *kernel_log_evidence(context, function.id),
        ),
        severity=severity,
        cause=driver or "none",
        ids=frozenset({function.id, device.id}),
    )
