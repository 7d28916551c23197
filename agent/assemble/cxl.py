"""CXL memory of the report: functions of the bus, joined with what the CXL driver shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, build_row, sort_key
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
