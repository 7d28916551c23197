"""CXL memory devices that cannot be used, or are not."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import CxlDevice, PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import device_label, kernel_log_evidence, unreachable_reason
from agent.rules.gates import has_cxl
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

DRIVER = "cxl_pci"
BUS = "/sys/bus/cxl/devices"
_REPLACE, _MAINTENANCE = "hw_replacement_needed", "maintenance_needed"


def cxl_devices(case: RuleContext) -> list[CxlDevice]:
    """The CXL memory devices of a node."""
    return case.topology.cxl.devices if case.topology.cxl else []


def report_no_cxl(case: RuleContext) -> Iterator[Result]:
    """The answer of a rule where no CXL memory device is seen."""
    answer = has_cxl(case)
    if answer is not None:
        yield answer


def subject_of(device: CxlDevice) -> str:
    """As the function of its link is called."""
    return f"pci:{device.id}"


@rule("cxl-driver-missing")
def cxl_driver_missing(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    answers = (_judge_driver(case, device, case.functions.get(device.id)) for device in cxl_devices(case))
    yield from aggregate_node_wide(answers, "no driver is bound to any expander")


def _judge_driver(case: RuleContext, device: CxlDevice, function: PciFunction | None) -> Result:
    subject = subject_of(device)
    if function is None:
        return Unknown(subject, Reason("not-known", fact="its PCI function"))
    absent = unreachable_reason(function)
    if absent or "vfio" in (function.driver or ""):
        return NotApplicable(subject, absent or Reason("guest", detail="kept for a virtual machine"))
    if function.driver == DRIVER:
        return Pass(subject)
    if function.driver:
        return Unknown(
            subject,
            Reason("not-shown", detail=f"bound to {function.driver}: whether that offers its memory is not known"),
        )
    if function.driver is None or function.root_bus is None:
        return Unknown(subject, Reason("not-known", fact="whether a driver is bound to it, or where on the bus it is,"))
    if function.parent is None:
        return NotApplicable(
            subject, Reason("other-kind", detail="CXL 1.1, part of the root complex: the firmware sets up its memory")
        )
    peers = [
        other.id
        for cxl_device in cxl_devices(case)
        if (other := case.functions.get(cxl_device.id))
        and (other.vendor, other.device) == (function.vendor, function.device)
    ]
    with_driver = [peer for peer in peers if case.functions[peer].driver == DRIVER]
    if not with_driver and (nodes := _unexplained_nodes(case)):
        return Unknown(
            subject, Reason("undecided", detail=f"{join_labels(nodes)} may be its memory, set up by the firmware")
        )
    return _fail_driver(case, function, peers, with_driver)


def _unexplained_nodes(case: RuleContext) -> list[str]:
    """NUMA nodes with memory and without CPUs that are neither a GPU's nor a region's."""
    regions = case.topology.cxl.regions if case.topology.cxl else []
    owned = {gpu.memory_numa_node for gpu in case.topology.gpus} | {region.numa_node for region in regions}
    return [
        f"NUMA {node.id}"
        for node in case.node.numa_nodes
        if node.cpus == "" and node.memory_mib and node.id not in owned
    ]


def _fail_driver(case: RuleContext, function: PciFunction, peers: list[str], with_driver: list[str]) -> Fail:
    return Fail(
        subject=f"pci:{function.id}",
        label=device_label(case, function.id),
        summary=f"no driver is bound to it; {len(with_driver)} of {len(peers)} expanders of this model have {DRIVER}",
        impact="The memory of this expander is missing from the host.",
        evidence=(
            Evidence(
                what=f"driver of {function.id}", value="none", source=f"/sys/bus/pci/devices/{function.id}/driver"
            ),
            Evidence(what=f"expanders with {DRIVER}", value=join_labels(with_driver) or "none", source="lspci -nnk"),
            *kernel_log_evidence(case, function.id),
        ),
        severity=None if with_driver else "warning",
        places=frozenset({function.id}),
    )


@rule("cxl-no-memdev")
def cxl_no_memdev(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    answers = (_judge_memdev(case, device, case.functions.get(device.id)) for device in cxl_devices(case))
    yield from aggregate_node_wide(answers, f"{DRIVER} made no memory device of any expander")


def _judge_memdev(case: RuleContext, device: CxlDevice, function: PciFunction | None) -> Result:
    subject = subject_of(device)
    if device.memdev is not None:
        return Pass(subject)
    absent = unreachable_reason(function)
    if absent or function is None or function.driver != DRIVER:
        return NotApplicable(
            subject, absent or Reason("judged-elsewhere", detail=f"not bound to {DRIVER}: see cxl-driver-missing")
        )
    if function.parent is None:
        return NotApplicable(
            subject, Reason("other-kind", detail="CXL 1.1, part of the root complex: the firmware sets up its memory")
        )
    if (unread := case.probe_failure("cxl")) and case.probe_failure("pci_sysfs"):
        return Unknown(subject, unread)  # a list of PCI functions shows nothing of the CXL bus
    summary = f"bound to {DRIVER}, and there is no memory device of it"
    return _fail_missing_memory(case, device, summary, f"memory device of {device.id}")


def _fail_missing_memory(case: RuleContext, device: CxlDevice, summary: str, missing: str) -> Fail:
    return Fail(
        subject=subject_of(device),
        label=device_label(case, device.id),
        summary=summary,
        impact="The memory of this expander is missing from the host.",
        evidence=(
            Evidence(what=missing, value="none", source=f"ls -l {BUS}"),
            *kernel_log_evidence(case, device.id),
        ),
        places=frozenset({device.id}),
    )


@rule("cxl-endpoint-missing")
def cxl_endpoint_missing(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    answers = (_judge_endpoint(case, device) for device in cxl_devices(case))
    yield from aggregate_node_wide(answers, "no memory device of any expander has an endpoint")


def _judge_endpoint(case: RuleContext, device: CxlDevice) -> Result:
    subject = subject_of(device)
    if device.endpoint is not None:
        return Pass(subject)
    absent = unreachable_reason(case.functions.get(device.id))
    if absent or device.memdev is None:
        return NotApplicable(
            subject, absent or Reason("judged-elsewhere", detail="no memory device of it: see cxl-no-memdev")
        )
    run = case.probes.get("cxl")
    if BUS not in (run.sources if run else ()) and not any(cxl_device.endpoint for cxl_device in cxl_devices(case)):
        return Unknown(
            subject, Reason("not-shown", detail="endpoints are not shown: the output of `cxl list` without -v")
        )
    if nodes := _unexplained_nodes(case):
        return Unknown(
            subject, Reason("undecided", detail=f"{join_labels(nodes)} may be its memory, set up by the firmware")
        )
    summary = f"its memory device {device.memdev} has no endpoint port"
    return _fail_missing_memory(case, device, summary, f"endpoint of {device.memdev}")


@rule("cxl-health")
def cxl_health(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    for device in cxl_devices(case):
        subject = subject_of(device)
        if device.health is None:
            yield Unknown(
                subject,
                Reason("not-asked", detail="not in the source: save `cxl list -H` as root"),
            )
        elif not device.health:
            yield Pass(subject)
        else:
            yield _fail_health(case, device, device.health)


def _fail_health(case: RuleContext, device: CxlDevice, problems: list[str]) -> Fail:
    return Fail(
        subject=subject_of(device),
        label=device_label(case, device.id),
        summary=f"it reports of itself: {', '.join(problems)}",
        impact="Its memory is slow, loses data, or fails next.",
        evidence=(Evidence(what=f"health of {device.memdev}", value=", ".join(problems), source="cxl list -H"),),
        severity="critical" if _REPLACE in problems else None,
        situation="replace" if _REPLACE in problems else "maintenance" if problems == [_MAINTENANCE] else "",
        places=frozenset({device.id}),
    )


@rule("cxl-unused-capacity")
def cxl_unused_capacity(case: RuleContext) -> Iterator[Result]:
    yield from report_no_cxl(case)
    answers = (_judge_capacity(case, device) for device in cxl_devices(case))
    yield from aggregate_node_wide(answers, "no memory of any expander is in a region")


def _judge_capacity(case: RuleContext, device: CxlDevice) -> Result:
    subject, total, used = subject_of(device), device.ram_mib, device.decoded_mib
    if device.memdev is None:
        return NotApplicable(
            subject,
            Reason("judged-elsewhere", detail="no memory device of it: see cxl-no-memdev and cxl-driver-missing"),
        )
    if device.pmem_mib:
        return NotApplicable(subject, Reason("by-design", detail="persistent memory is set up by choice"))
    if total == 0:
        return Unknown(
            subject,
            Reason(
                "not-shown",
                detail="it states no capacity: that comes and goes at run time, or was not read from the device",
            ),
        )
    if total is None or device.endpoint is None or used is None:
        return Unknown(
            subject, Reason("not-shown", detail="its capacity, its endpoint or the decoders of that are not shown")
        )
    if used >= total:
        return Pass(subject)
    return Fail(
        subject=subject,
        label=device_label(case, device.id),
        summary=f"{_gib(total - used)} of {_gib(total)} are in no region",
        impact="Installed memory is not used.",
        evidence=(
            Evidence(what=f"capacity of {device.memdev}", value=_gib(total), source=f"{BUS}/{device.memdev}/ram/size"),
            Evidence(what=f"decoded of {device.memdev}", value=_gib(used), source=f"cxl list -v -m {device.memdev}"),
            *kernel_log_evidence(case, device.id),
        ),
        severity="info" if used else None,
        places=frozenset({device.id}),
    )


def _gib(mib: int) -> str:
    return f"{mib / 1024:g} GiB"
