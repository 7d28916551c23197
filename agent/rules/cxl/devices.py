"""CXL memory devices that cannot be used, or are not."""

from __future__ import annotations

from agent.model.finding import Evidence
from agent.model.pci import CxlDevice
from agent.model.reasons import Reason
from agent.rules.applicability import behind, has_cxl
from agent.rules.context import RuleContext
from agent.rules.devices import about_function, kernel_log_evidence, why_unreachable
from agent.rules.node_wide import on_all
from agent.rules.rule import Fail, Result, rule
from agent.rules.wording import join_labels

DRIVER = "cxl_pci"
BUS = "/sys/bus/cxl/devices"
_REPLACE, _MAINTENANCE = "hw_replacement_needed", "maintenance_needed"


def cxl_devices(context: RuleContext) -> list[CxlDevice]:
    """The CXL memory devices of a node."""
    return context.topology.cxl.devices if context.topology.cxl else []


list_expanders = behind(has_cxl)(cxl_devices)


@rule("cxl-driver-missing", each=list_expanders, merge=on_all("no driver is bound to any expander"))
def cxl_driver_missing(context: RuleContext, device: CxlDevice) -> Result:
    about, function = about_function(context, device.id), context.functions.get(device.id)
    if function is None:
        return about.unknown("not-known", fact="its PCI function")
    absent = why_unreachable(function)
    if absent or "vfio" in (function.driver or ""):
        return about.not_applicable(absent or Reason("guest", detail="kept for a virtual machine"))
    if function.driver == DRIVER:
        return about.passes()
    if function.driver:
        return about.unknown(
            "not-shown", detail=f"bound to {function.driver}: whether that offers its memory is not known"
        )
    if function.driver is None or function.root_bus is None:
        return about.unknown("not-known", fact="whether a driver is bound to it, or where on the bus it is,")
    if function.parent is None:
        return about.not_applicable(
            "other-kind", detail="CXL 1.1, part of the root complex: the firmware sets up its memory"
        )
    peers = [
        other.id
        for cxl_device in cxl_devices(context)
        if (other := context.functions.get(cxl_device.id))
        and (other.vendor, other.device) == (function.vendor, function.device)
    ]
    with_driver = [peer for peer in peers if context.functions[peer].driver == DRIVER]
    if not with_driver and (nodes := _unexplained_nodes(context)):
        return about.unknown("undecided", detail=f"{join_labels(nodes)} may be its memory, set up by the firmware")
    return about_function(context, function.id).fail(
        summary=f"no driver is bound to it; {len(with_driver)} of {len(peers)} expanders of this model have {DRIVER}",
        impact="The memory of this expander is missing from the host.",
        evidence=(
            Evidence(f"driver of {function.id}", "none", f"/sys/bus/pci/devices/{function.id}/driver"),
            Evidence(f"expanders with {DRIVER}", join_labels(with_driver) or "none", "lspci -nnk"),
            *kernel_log_evidence(context, function.id),
        ),
        severity=None if with_driver else "warning",
    )


def _unexplained_nodes(context: RuleContext) -> list[str]:
    """NUMA nodes with memory and without CPUs that are neither a GPU's nor a region's."""
    regions = context.topology.cxl.regions if context.topology.cxl else []
    owned = {gpu.memory_numa_node for gpu in context.topology.gpus} | {region.numa_node for region in regions}
    return [
        f"NUMA {node.id}"
        for node in context.node.numa_nodes
        if node.cpus == "" and node.memory_mib and node.id not in owned
    ]


@rule("cxl-no-memdev", each=list_expanders, merge=on_all(f"{DRIVER} made no memory device of any expander"))
def cxl_no_memdev(context: RuleContext, device: CxlDevice) -> Result:
    about, function = about_function(context, device.id), context.functions.get(device.id)
    if device.memdev is not None:
        return about.passes()
    absent = why_unreachable(function)
    if absent or function is None or function.driver != DRIVER:
        return about.not_applicable(
            absent or Reason("judged-elsewhere", detail=f"not bound to {DRIVER}: see cxl-driver-missing")
        )
    if function.parent is None:
        return about.not_applicable(
            "other-kind", detail="CXL 1.1, part of the root complex: the firmware sets up its memory"
        )
    if (unread := context.why_probe_failed("cxl")) and context.why_probe_failed("pci_sysfs"):
        return about.unknown(unread)  # a list of PCI functions shows nothing of the CXL bus
    summary = f"bound to {DRIVER}, and there is no memory device of it"
    return _fail_missing_memory(context, device, summary, f"memory device of {device.id}")


def _fail_missing_memory(context: RuleContext, device: CxlDevice, summary: str, missing: str) -> Fail:
    return about_function(context, device.id).fail(
        summary=summary,
        impact="The memory of this expander is missing from the host.",
        evidence=(Evidence(missing, "none", f"ls -l {BUS}"), *kernel_log_evidence(context, device.id)),
    )


@rule("cxl-endpoint-missing", each=list_expanders, merge=on_all("no memory device of any expander has an endpoint"))
def cxl_endpoint_missing(context: RuleContext, device: CxlDevice) -> Result:
    about = about_function(context, device.id)
    if device.endpoint is not None:
        return about.passes()
    absent = why_unreachable(context.functions.get(device.id))
    if absent or device.memdev is None:
        return about.not_applicable(
            absent or Reason("judged-elsewhere", detail="no memory device of it: see cxl-no-memdev")
        )
    run = context.probes.get("cxl")
    if BUS not in (run.sources if run else ()) and not any(cxl_device.endpoint for cxl_device in cxl_devices(context)):
        return about.unknown("not-shown", detail="endpoints are not shown: the output of `cxl list` without -v")
    if nodes := _unexplained_nodes(context):
        return about.unknown("undecided", detail=f"{join_labels(nodes)} may be its memory, set up by the firmware")
    summary = f"its memory device {device.memdev} has no endpoint port"
    return _fail_missing_memory(context, device, summary, f"endpoint of {device.memdev}")


@rule("cxl-health", each=list_expanders)
def cxl_health(context: RuleContext, device: CxlDevice) -> Result:
    about, problems = about_function(context, device.id), device.health
    if problems is None:
        return about.unknown("not-asked", detail="not in the source: save `cxl list -H` as root")
    if not problems:
        return about.passes()
    return about.fail(
        summary=f"it reports of itself: {', '.join(problems)}",
        impact="Its memory is slow, loses data, or fails next.",
        evidence=(Evidence(f"health of {device.memdev}", ", ".join(problems), "cxl list -H"),),
        severity="critical" if _REPLACE in problems else None,
        situation="replace" if _REPLACE in problems else "maintenance" if problems == [_MAINTENANCE] else "",
        values=(("MEMDEV", device.memdev or "MEMDEV"),),
    )


@rule("cxl-unused-capacity", each=list_expanders, merge=on_all("no memory of any expander is in a region"))
def cxl_unused_capacity(context: RuleContext, device: CxlDevice) -> Result:
    about, total, used = about_function(context, device.id), device.ram_mib, device.decoded_mib
    if device.memdev is None:
        return about.not_applicable(
            "judged-elsewhere", detail="no memory device of it: see cxl-no-memdev and cxl-driver-missing"
        )
    if device.pmem_mib:
        return about.not_applicable("by-design", detail="persistent memory is set up by choice")
    if total == 0:
        return about.unknown(
            "not-shown",
            detail="it states no capacity: that comes and goes at run time, or was not read from the device",
        )
    if total is None or device.endpoint is None or used is None:
        return about.unknown("not-shown", detail="its capacity, its endpoint or the decoders of that are not shown")
    if used >= total:
        return about.passes()
    return about.fail(
        summary=f"{_gib(total - used)} of {_gib(total)} are in no region",
        impact="Installed memory is not used.",
        evidence=(
            Evidence(f"capacity of {device.memdev}", _gib(total), f"{BUS}/{device.memdev}/ram/size"),
            Evidence(f"decoded of {device.memdev}", _gib(used), f"cxl list -v -m {device.memdev}"),
            *kernel_log_evidence(context, device.id),
        ),
        severity="info" if used else None,
    )


def _gib(mib: int) -> str:
    return f"{mib / 1024:g} GiB"
