"""Regions of CXL memory: whether they are whole, and whether their devices are equal."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import CxlRegion
from agent.rules.applicability import has_cxl
from agent.rules.context import RuleContext
from agent.rules.cxl.devices import BUS, cxl_devices
from agent.rules.devices import about_function, device_label
from agent.rules.rule import NODE, Fail, Result, rule, split_subjects
from agent.rules.wording import join_labels

_ONLINE = 0.9  # share of its memory: the kernel keeps some for itself


def _regions(context: RuleContext) -> list[CxlRegion]:
    return context.topology.cxl.regions if context.topology.cxl else []


def _list_regions(context: RuleContext) -> Iterator[CxlRegion | Result]:
    if not _regions(context):
        yield has_cxl(context) or NODE.not_applicable("no-such-device", detail="no region")
    yield from _regions(context)


def _list_shared(context: RuleContext) -> Iterator[CxlRegion | Result]:
    """Regions over several devices."""
    shared = [region for region in _regions(context) if len(region.devices) > 1]
    if not shared:
        yield has_cxl(context) or NODE.not_applicable("no-such-device", detail="no region over several devices")
    yield from shared


@rule("cxl-region-broken", each=_list_regions)
def cxl_region_broken(context: RuleContext, region: CxlRegion) -> Result:
    if region.size_mib == 0:
        return NODE.not_applicable("not-configured", detail=f"{region.id} is not set up yet")
    if region.ways is None or region.committed is None:
        return NODE.unknown("not-shown", detail=f"{region.id}: its ways, or whether it is committed, are not shown")
    run = context.probes.get("cxl")
    if region.committed and not region.devices and run and run.sources and BUS not in run.sources:
        return NODE.unknown("not-shown", detail=f"{region.id}: its devices are not shown")
    missing = region.ways - len(region.devices)
    if missing <= 0 and region.committed:
        return NODE.passes()
    lost = [device.id for device in cxl_devices(context) if device.memdev is None] if missing > 0 else []
    return NODE.fail(
        label=region.id,
        summary=f"it has {len(region.devices)} of {region.ways} devices" if missing > 0 else "it is not committed",
        impact=f"{region.size_mib / 1024:g} GiB cannot be used." if region.size_mib else "Its memory cannot be used.",
        evidence=(
            Evidence(f"devices of {region.id}", join_labels(region.devices) or "none", f"{BUS}/{region.id}/target*"),
            Evidence(f"{region.id} committed", "yes" if region.committed else "no", f"{BUS}/{region.id}/commit"),
        ),
        cause=region.id,
        ids=frozenset({*region.devices, *lost}),
    )


@rule("cxl-link-uneven", each=_list_shared)
def cxl_link_uneven(context: RuleContext, region: CxlRegion) -> Result:
    if context.virtual_machine:
        return NODE.not_applicable("guest", detail="virtual machine: the hypervisor hides real links")
    rates: dict[str, float] = {}
    for device in region.devices:
        function = context.functions.get(device)
        link = function.link if function else None
        if link is None or link.quality.state != "conclusive" or not link.bandwidth_gbyte_s:
            return NODE.unknown("not-shown", detail=f"{region.id}: the link of {device} is not known")
        rates[device] = link.bandwidth_gbyte_s
    slowest, fastest = min(rates.values()), max(rates.values())
    if slowest == fastest:
        return NODE.passes()
    slow = [device for device in region.devices if rates[device] < fastest]
    return (about_function(context, slow[0]) if len(slow) == 1 else NODE).fail(
        label=device_label(context, slow[0]) if len(slow) == 1 else region.id,
        summary=f"the devices of {region.id} have links of {slowest:.3g} to {fastest:.3g} GB/s",
        impact=f"Addresses alternate between {len(rates)} devices: all run at the slowest one's {slowest:.3g} GB/s.",
        evidence=tuple(
            Evidence(
                f"link of {device}", f"{rate:.3g} GB/s",
                f"/sys/bus/pci/devices/{device}/current_link_*")
            for device, rate in rates.items()
        ),
        cause=region.id,
        ids=frozenset(slow),
    )  # fmt: skip


@rule("cxl-interleave-uneven-sockets", each=_list_shared)
def cxl_interleave_uneven_sockets(context: RuleContext, region: CxlRegion) -> Result:
    nodes = {device.id: device.numa_node for device in cxl_devices(context)}
    ids = {device: nodes.get(device) for device in region.devices}
    if None in ids.values():
        return NODE.unknown("not-shown", detail=f"{region.id}: the NUMA node of a device is not known")
    if len(set(ids.values())) == 1:
        return NODE.passes()
    named = [f"NUMA {node}" for node in sorted({node for node in ids.values() if node is not None})]
    return NODE.fail(
        label=region.id,
        summary=f"its devices are at {join_labels(named)}",
        impact="Half of all accesses cross the sockets, from whichever socket they come.",
        evidence=tuple(
            Evidence(f"NUMA node of {device}", str(node), f"/sys/bus/pci/devices/{device}/numa_node")
            for device, node in ids.items()
        ),
        cause=region.id,
        ids=frozenset(region.devices),
    )


@rule("cxl-memory-offline", each=_list_regions)
def cxl_memory_offline(context: RuleContext, region: CxlRegion) -> Result:
    if region.committed is None or region.size_mib is None:
        return NODE.unknown("not-shown", detail=f"{region.id}: its size, or whether it is committed, is not shown")
    if not region.committed or not region.size_mib:
        return NODE.not_applicable("judged-elsewhere", detail=f"{region.id} is not set up: see cxl-region-broken")
    if region.mode == "devdax":
        return NODE.not_applicable("other-kind", detail=f"{region.id} is used as a device, not as memory")
    if region.total_blocks and region.online_blocks is not None:
        share = region.online_blocks / region.total_blocks
        online = f"{region.online_blocks} of {region.total_blocks} blocks"
        source = "cxl list -v"
    else:
        memory = next((node.memory_mib for node in context.node.numa_nodes if node.id == region.numa_node), None)
        expected_mib = sum(
            cxl_region.size_mib or 0 for cxl_region in _regions(context) if cxl_region.numa_node == region.numa_node
        )
        if memory is None:
            return NODE.unknown("not-shown", detail=f"{region.id}: how much of it is online is not shown")
        share, online = memory / expected_mib, f"{memory / 1024:.3g} of {expected_mib / 1024:g} GiB"
        source = f"/sys/devices/system/node/node{region.numa_node}/meminfo"
        if share < _ONLINE and region.mode is None:
            return NODE.unknown(
                "not-shown", detail=f"{region.id}: whether it is used as memory or as a device is not shown"
            )
    if share >= _ONLINE:
        return NODE.passes()
    return NODE.fail(
        label=region.id,
        summary=f"{online} of {region.id} are online",
        impact="The memory is set up, and no process can use it.",
        evidence=(Evidence(f"memory of {region.id} online", online, source),),
        cause=region.id,
        ids=frozenset(region.devices),
    )


@rule("cxl-qos-mismatch", each=_list_regions)
def cxl_qos_mismatch(context: RuleContext, region: CxlRegion) -> Result:
    devices = {device.id: device for device in cxl_devices(context)}
    members = [devices[device] for device in region.devices if device in devices]
    if any(device.pmem_mib for device in members):
        return NODE.not_applicable("other-kind", detail=f"{region.id}: persistent memory has a class of its own")
    if not members or len(members) < len(region.devices):
        return NODE.unknown("not-shown", detail=f"{region.id}: its devices are not shown")
    if region.qos_class is None or None in {device.qos_class for device in members}:
        return NODE.unknown(
            "not-shown", detail=f"{region.id}: the platform, or its kernel (before 6.8), names no class of a part of it"
        )
    others = [device for device in members if device.qos_class != region.qos_class]
    if not others:
        return NODE.passes()
    return NODE.fail(
        label=region.id,
        summary=f"it is in a window of class {region.qos_class}; "
        + ", ".join(f"{device.memdev} has class {device.qos_class}" for device in others),
        impact="The host assumes the bandwidth and latency of a class that this memory does not have.",
        evidence=(
            Evidence(f"class of the window of {region.id}", str(region.qos_class), f"{BUS}/decoder0.*/qos_class"),
            *(
                Evidence(f"class of {device.memdev}", str(device.qos_class), f"{BUS}/{device.memdev}/ram/qos_class")
                for device in others
            ),
        ),
        cause=region.id,
        ids=frozenset(device.id for device in others),
    )


@rule("cxl-interleave-partial")
def cxl_interleave_partial(context: RuleContext) -> Iterator[Result]:
    regions, answers = split_subjects(_list_regions(context))
    yield from answers
    alike: dict[tuple[int | str | None, ...], list[CxlRegion]] = {}
    for region in regions:
        answer = _alone_reason(context, region)
        if answer is not None:
            yield answer
            continue
        device = next(device for device in cxl_devices(context) if device.id == region.devices[0])
        function = context.functions[device.id]
        alike.setdefault((device.numa_node, function.vendor, function.device, device.ram_mib), []).append(region)
    for (numa_node, *_), regions in alike.items():
        if _count_root_ports(context, regions) > 1:
            yield _fail_partial(numa_node, regions)
        else:
            yield from (
                NODE.not_applicable("other-kind", detail=f"{region.id}: no equal expander at another port")
                for region in regions
            )


def _alone_reason(context: RuleContext, region: CxlRegion) -> Result | None:
    """Why a region is not one that could be joined with others; None where it is."""
    if context.virtual_machine:
        return NODE.not_applicable("guest", detail="virtual machine: the hypervisor decides where expanders appear")
    if region.ways is None or region.committed is None:
        return NODE.unknown("not-shown", detail=f"{region.id}: its ways, or whether it is committed, are not shown")
    if region.ways != 1 or len(region.devices) != 1 or not region.committed or region.mode == "devdax":
        return NODE.not_applicable(
            "by-design", detail=f"{region.id}: over several devices, not in use, or a device by choice"
        )
    device = next((device for device in cxl_devices(context) if device.id == region.devices[0]), None)
    if device is None or device.numa_node is None or device.ram_mib is None or device.id not in context.functions:
        return NODE.unknown(
            "not-shown", detail=f"{region.id}: the socket, the model or the capacity of its device is not known"
        )
    return None


def _count_root_ports(context: RuleContext, regions: list[CxlRegion]) -> int:
    """Devices below one port share its link: a region over both would not be faster."""
    functions = [context.functions[region.devices[0]] for region in regions]
    return len({(context.ancestors(function) or (function,))[-1].id for function in functions})


def _fail_partial(numa_node: int | str | None, regions: list[CxlRegion]) -> Fail:
    names = [region.id for region in regions]
    return NODE.fail(
        label=f"NUMA {numa_node}",
        summary=f"{len(regions)} equal expanders at NUMA {numa_node} are a region each: {join_labels(names)}",
        impact="Each has the bandwidth of one expander; a region over all has that of all, but fails with any of them.",
        evidence=tuple(
            Evidence(f"device of {region.id}", region.devices[0], f"{BUS}/{region.id}/interleave_ways")
            for region in regions
        ),
        cause=f"NUMA {numa_node}",
        ids=frozenset(region.devices[0] for region in regions),
    )
