"""CXL memory of the report: functions of the bus, joined with what the CXL driver shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, sort_key
from agent.model.pci import CXL_MEMORY, Cxl, CxlDevice, CxlRegion, PciFunction

if TYPE_CHECKING:
    from probes.cxl.facts import CxlFacts, CxlMemdev


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
        CxlRegion(
            id=region.name,
            size_mib=_to_mib(region.size_bytes),
            ways=region.ways,
            granularity_bytes=region.granularity_bytes,
            committed=region.committed,
            devices=[ids.get(name, name) for name in region.memdevs],
            numa_node=region.numa_node,
            mode=region.mode,
            online_blocks=region.online_blocks,
            total_blocks=region.total_blocks,
            qos_class=region.qos_class,
        )
        for region in (bus.regions if bus else ())
    ]
    return Cxl(
        devices=[devices[device] for device in sorted(devices, key=sort_key)],
        regions=sorted(regions, key=lambda region: sort_key(region.id)),
    )


def _build_device(device: str, memdev: CxlMemdev) -> CxlDevice:
    return CxlDevice(
        id=device,
        memdev=memdev.name,
        endpoint=memdev.endpoint,
        ports=list(memdev.ports),
        ram_mib=_to_mib(memdev.ram_bytes),
        pmem_mib=_to_mib(memdev.pmem_bytes),
        decoded_mib=_to_mib(memdev.decoded_bytes),
        qos_class=memdev.qos_class,
        firmware=memdev.firmware,
        numa_node=memdev.numa_node,
        health=list(memdev.health) if memdev.health is not None else None,
        media_errors=dict(sorted(memdev.media_errors.items())) if memdev.media_errors is not None else None,
    )


def _to_mib(size: int | None) -> int | None:
    return size >> 20 if size is not None else None
