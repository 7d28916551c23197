"""gdr-iommu-group-directnic."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.devices import function_of, is_nvidia, label_of
from agent.rules.gpudirect.ways import data_direct, platform_kind
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule("gdr-iommu-group-directnic", "error", needs=("pci",), references=("gdr-iommu-group-directnic",))
def gdr_iommu_group_directnic(case: Case) -> Iterator[Answer]:
    """On a Direct NIC board, a data-direct function and its GPU are in different IOMMU groups.

    ## What it checks
    The IOMMU group of every data-direct function (15b3:2100) and of the GPU behind the same root port.

    ## Why it matters
    The driver refuses the second way of 1 pair where it cannot trust it, or needs its safety check switched off
    (`NVreg_GrdmaPciTopoCheckOverride`).

    ## How it is decided
    Both are below one root port, and their groups differ, or one of them has none.

    ## What keeps it silent
    - No data-direct function, or no GPU below its root port: not applicable. Virtual machines: not applicable.
    - Neither has a group: pass, the IOMMU is off.
    - ACS of the ports between is wrong: gdr-acs-directnic stands for this one.

    ## How to confirm
    `readlink /sys/bus/pci/devices/ADDRESS/iommu_group` of both

    ## How to fix
    Set ACS as the board needs it: `rdma_topo check`, `rdma_topo write-grub-acs`.

    ## Source
    rdma-core `kernel-boot/rdma_topo`; NVIDIA Grace-Blackwell ConnectX-8 GPUDirect RDMA guide.
    """
    functions = data_direct(case)
    if platform_kind(case) != "direct-nic":
        yield NotApplicable("node", "no data-direct function")
        return
    gpus = [f for gpu in case.topology.gpus if is_nvidia(case, gpu) and (f := function_of(case, gpu))]
    for dma in functions:
        subject, above = f"pci:{dma.id}", {f.id for f in case.ancestors(dma)}
        partner = next((gpu for gpu in gpus if above & {f.id for f in case.ancestors(gpu)}), None)
        if not above:
            yield Unknown(subject, "what is above it in the PCI tree is not known")
        elif partner is None:
            yield NotApplicable(subject, "no GPU below its root port")
        elif dma.iommu_group == partner.iommu_group:
            yield Pass(subject)
        else:
            yield _fault(case, dma, partner)


def _fault(case: Case, dma: PciFunction, gpu: PciFunction) -> Fail:
    return Fail(
        subject=f"pci:{dma.id}",
        label=f"data-direct {dma.id}",
        summary=f"IOMMU group {_group(dma)}, and {label_of(case, gpu.id)} is in {_group(gpu)}",
        impact="1 pair's second way is refused by the driver.",
        remedy="Set ACS as the board needs it: rdma_topo check, rdma_topo write-grub-acs.",
        evidence=tuple(
            Evidence(what=f"IOMMU group of {f.id}", value=_group(f), source=f"/sys/bus/pci/devices/{f.id}/iommu_group")
            for f in (dma, gpu)
        ),
        places=frozenset({dma.id, gpu.id}),
    )


def _group(function: PciFunction) -> str:
    return "none" if function.iommu_group is None else str(function.iommu_group)
