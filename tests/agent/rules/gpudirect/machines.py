"""Machines of other kinds for GPUDirect rules: a Grace board with data-direct functions, a guest, a host of guests."""

from __future__ import annotations

from agent.model.pci import Acs, PciFunction
from agent.rules.context import RuleContext
from tests.agent.rules.build import all_functions, function, gpu_id, models, node, topology
from tests.agent.rules.rows import GB200

DMA = "0000:16:00.0"  # beside GPU 0, below its switch
PORT_DMA, PORT_GPU, ROOT = "0000:12:02.0", "0000:12:00.0", "0000:10:01.0"


def acs(*control: str) -> Acs:
    """A port that can do all, with these switched on."""
    return Acs(capability=["SV", "TB", "RR", "CR", "UF", "EC", "DT"], control=list(control))


def direct_nic(context: RuleContext) -> RuleContext:
    """The same machine as a Grace board: GPU 0 and a data-direct function meet at a switch, ACS as it must be."""
    more = [
        PciFunction(id=PORT_DMA, parent="0000:11:00.0", class_code="0x060400", vendor="0x15b3", port_type="downstream"),
        PciFunction(
            id=DMA, parent=PORT_DMA, class_code="0x080100", vendor="0x15b3", device="0x2100", driver="mlx5_core",
            iommu_group=7,
        ),
    ]  # fmt: skip
    context = topology(context, pci=[*context.topology.pci, *more])
    context = function(context, PORT_DMA, acs=acs("SV", "CR", "UF"))
    context = function(context, PORT_GPU, acs=acs("SV", "RR", "UF"))
    context = function(context, ROOT, acs=acs("RR", "CR", "UF"))
    return function(models(node(context, arch="aarch64"), GB200), gpu_id(0), iommu_group=7)


def grace(context: RuleContext) -> RuleContext:
    """GPUs on C2C, rails behind the CPU."""
    return models(node(context, arch="aarch64"), GB200)


def grouped(context: RuleContext, kind: str | None) -> RuleContext:
    """Every GPU and NIC in an IOMMU group of that type."""
    for code in ("0x030200", "0x020700"):
        context = all_functions(context, code, iommu_group=3, iommu_type=kind)
    return context
