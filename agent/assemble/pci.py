"""PCI functions of the report, and CXL memory: functions of the bus, joined with what the CXL driver shows of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, build_row, merge_by_key, sort_key
from agent.assemble.link_quality import LinkClassifier, is_asleep, is_gone, valid_width
from agent.model.pci import (
    CXL_MEMORY,
    Acs,
    Cxl,
    CxlDevice,
    CxlRegion,
    Link,
    LinkQuality,
    PciFunction,
    bandwidth_gbyte_s,
)
from agent.platforms.devices import find_device
from probes.pci import facts as pci
from probes.system.numa import NumaFacts

if TYPE_CHECKING:
    from probes.cxl.facts import CxlFacts, CxlMemdev


_ACS_ORDER = ("SV", "TB", "RR", "CR", "UF", "EC", "DT")
_FILLABLE = tuple(n for n, default in pci.PciFunction._field_defaults.items() if default is None)
_IOMMU_TYPES = {"Translated": "DMA", "Passthrough": "identity"}
_LOCATION_FIELDS = ("parent", "root_bus")


def merge_functions(facts: ProbeFacts) -> tuple[pci.PciFunction, ...]:
    """Every function once: sysfs wins, lspci fills its missing fields (config space without root)."""
    sources = (source.functions for _, source in facts.all_of("pci", pci.PciFacts))
    by_address = merge_by_key(sources, lambda function: function.address, _fill_function)
    return tuple(sorted(by_address.values(), key=lambda f: sort_key(f.address)))


def add_iommu_default(functions: Sequence[pci.PciFunction], facts: ProbeFacts) -> Sequence[pci.PciFunction]:
    """Where no group's type is known, the one that the kernel states is the default."""
    log = facts.get("kernel_log")
    default = _IOMMU_TYPES.get(log.iommu_default) if log else None
    if default is None or any(function.iommu_type for function in functions):
        return functions
    return [function._replace(iommu_type=default) if function.iommu_group is not None else function
            for function in functions]  # fmt: skip


def build_functions(
    functions: Iterable[pci.PciFunction], judge: LinkClassifier, numa: NumaFacts | None
) -> list[PciFunction]:
    """The report's rows, in the order of the functions."""
    # by cpulist; with a single node the list is that of all CPUs and is no evidence
    with_cpus = [node for node in numa.nodes if node.cpus] if numa else []
    nodes = {node.cpus: node.id for node in with_cpus if node.cpus} if len(with_cpus) > 1 else {}
    return [_row(function, judge, nodes) for function in functions]


def _fill_function(function: pci.PciFunction, text: pci.PciFunction) -> pci.PciFunction:
    changes = {
        name: getattr(text, name)
        for name in _FILLABLE
        if getattr(function, name) is None and getattr(text, name) is not None and name != "acs"
    }
    if function.root_bus is None:
        changes |= {name: getattr(text, name) for name in _LOCATION_FIELDS}
    if not function.acs_known:
        changes |= {"acs": text.acs, "acs_known": text.acs_known}
    return function._replace(**changes) if changes else function


def _row(function: pci.PciFunction, judge: LinkClassifier, nodes: Mapping[str, int]) -> PciFunction:
    device = find_device(function.vendor, function.device)
    numa_node, declared = _numa(function, nodes)
    return build_row(
        PciFunction,
        function,
        id=function.address,
        name=function.name or (device.name if device else None),
        numa_node=numa_node,
        numa_declared=declared,
        power_state=function.power_state or function.runtime_status,
        acs=_acs(function.acs, function.acs_known),
        retrained=_retrain_bits(function),
        aer_status=None if function.aer_status is None else list(function.aer_status),
        state=_state(function),
        link=_link(function, judge),
    )


def _link(function: pci.PciFunction, judge: LinkClassifier) -> Link | None:
    quality = judge.quality(function)
    if quality is None:
        return None
    width = valid_width(function.current_link_width)
    return Link(
        speed_gt_s=function.current_link_speed_gt_s,
        width=0 if function.current_link_width == 0 else width,
        max_speed_gt_s=function.max_link_speed_gt_s,
        max_width=valid_width(function.max_link_width),
        target_speed_gt_s=function.target_link_speed_gt_s,
        bandwidth_gbyte_s=bandwidth_gbyte_s(function.current_link_speed_gt_s, width) or function.link_gbyte_s,
        quality=_add_stated(function, quality),
    )


def _add_stated(function: pci.PciFunction, quality: LinkQuality) -> LinkQuality:
    """With what lspci calls less than the maximum, where it prints no maximum."""
    if not function.link_downgraded or quality.reason_code:
        return quality
    reason = quality.reason or f"lspci calls its {' and '.join(function.link_downgraded)} downgraded"
    code = "-".join(("downgraded", *function.link_downgraded))
    return LinkQuality(state=quality.state, reason=reason, reason_code=code)


def _retrain_bits(function: pci.PciFunction) -> list[str] | None:
    bits = {
        "bandwidth_managed": function.bandwidth_management_status,
        "autonomous": function.autonomous_bandwidth_status,
    }
    return None if None in bits.values() else [name for name, is_set in bits.items() if is_set]


def _state(function: pci.PciFunction) -> str:
    if function.vanished:
        return "changed_during_scan"
    if is_asleep(function):
        return "asleep"
    return "gone" if is_gone(function) else "present"


def _numa(function: pci.PciFunction, nodes: Mapping[str, int]) -> tuple[int | None, bool | None]:
    """The NUMA node and whether the firmware declared it. Kernels without a `numa_node` file give it by local CPUs."""
    if function.numa_node is not None:
        return (function.numa_node, True) if function.numa_node >= 0 else (None, False)
    node = nodes.get(function.local_cpus) if function.local_cpus else None
    return node, None if node is None else True


def _acs(acs: pci.Acs | None, known: bool) -> Acs | None:
    """None: not readable; an empty one: the function has no ACS."""
    if acs is None:
        return Acs() if known else None
    return Acs(
        capability=[bit for bit in _ACS_ORDER if bit in acs.capability],
        control=[bit for bit in _ACS_ORDER if bit in acs.control],
    )


def build_cxl(facts: ProbeFacts, pci: Sequence[PciFunction]) -> Cxl | None:
    """Devices by address, regions by number; None where there is none."""
    bus: CxlFacts | None = facts.get("cxl")
    memdevs = {memdev.address or memdev.name: memdev for memdev in bus.memdevs} if bus else {}
    functions = [function.id for function in pci if (function.class_code or "").startswith(CXL_MEMORY)]
    if not functions and not memdevs and not (bus and bus.regions):
        return None
    ids = {memdev.name: device for device, memdev in memdevs.items()}
    devices = {device: CxlDevice(id=device) for device in functions}
    devices |= {device: _build_device(device, memdev) for device, memdev in memdevs.items()}
    regions = [
        build_row(
            CxlRegion,
            region,
            id=region.name,
            size_mib=_to_mib(region.size_bytes),
            devices=[ids.get(name, name) for name in region.memdevs],
        )
        for region in (bus.regions if bus else ())
    ]
    return Cxl(
        devices=[devices[device] for device in sorted(devices, key=sort_key)],
        regions=sorted(regions, key=lambda region: sort_key(region.id)),
    )


def _build_device(device: str, memdev: CxlMemdev) -> CxlDevice:
    return build_row(
        CxlDevice,
        memdev,
        id=device,
        memdev=memdev.name,
        ram_mib=_to_mib(memdev.ram_bytes),
        pmem_mib=_to_mib(memdev.pmem_bytes),
        decoded_mib=_to_mib(memdev.decoded_bytes),
    )


def _to_mib(size: int | None) -> int | None:
    return size >> 20 if size is not None else None
