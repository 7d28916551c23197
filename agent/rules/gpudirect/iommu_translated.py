"""gdr-iommu-translated."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.devices import away, function_of, label_of
from agent.rules.gpudirect.ways import pairs, passes_through, peer_memory, platform_kind
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

_TRANSLATED = ("DMA", "DMA-FQ")


@rule("gdr-iommu-translated", "warning", needs=("pci",), references=("gdr-iommu-translated", "PCIE-023"))
def gdr_iommu_translated(case: Case) -> Iterator[Answer]:
    """The IOMMU translates the addresses of GPUs and rails, on bare metal.

    ## What it checks
    The type of the IOMMU groups of every GPU and of its rails behind one switch, on x86 without guests.

    ## Why it matters
    Translated traffic between a GPU and a NIC must go up to the root port, and the kernel switches ACS on with the
    IOMMU: less than 50 % of the bandwidth is common. nvidia-peermem assumes bus addresses to be physical ones, and may
    fail outright.

    ## How it is decided
    A group of type `DMA` or `DMA-FQ`. The type alone decides: `identity` is right, whatever the kernel command line
    says. Error where the way to GPU memory is a peer-memory client, else a warning. One finding for the node.

    ## What keeps it silent
    - Virtual machines; hosts that hand devices to guests (vfio-pci); Grace, where the SMMU must translate; clouds
      with a GPUDirect of their own; confidential computing; GPUs that meet their rails at a host bridge: not
      applicable.
    - No IOMMU: pass. A group whose type could not be read: unknown.

    ## How to confirm
    `cat /sys/kernel/iommu_groups/*/type | sort | uniq -c`

    ## How to fix
    `iommu=pt` on the kernel command line, or the IOMMU off in the BIOS (`intel_iommu=off`, `amd_iommu=off`); then
    look at ACS again (gdr-acs-on-path).

    ## Source
    Linux `Documentation/ABI/testing/sysfs-kernel-iommu_groups`; GPUDirect Storage installation and best-practices
    guides.
    """
    kind = platform_kind(case)
    silent = passes_through(case) or (None if kind in ("x86", "inline") else f"platform kind {kind}: it is right there")
    if case.software.driver.confidential_computing:
        silent = "confidential computing needs it"
    ends: dict[str, PciFunction] = {}
    near = [pair for pair in pairs(case) if pair.near]
    if not near:
        yield NotApplicable("node", "no GPU has a rail behind its switch: nothing goes between them directly")
        return
    for pair in near:
        for function in (function_of(case, pair.gpu), function_of(case, pair.nic)):
            if function is not None and away(function) is None:
                ends[function.id] = function
    if silent:
        yield NotApplicable("node", silent)
        return
    translated = []
    for pci, function in sorted(ends.items()):
        if function.iommu_type in _TRANSLATED:
            translated.append(function)
        elif function.iommu_group is not None and function.iommu_type is None:
            yield Unknown(f"pci:{pci}", "the type of its IOMMU group could not be read")
        else:
            yield Pass(f"pci:{pci}")
    if translated:
        yield _fault(case, translated)


def _fault(case: Case, functions: list[PciFunction]) -> Fail:
    clients = peer_memory(case)
    return Fail(
        subject="node",
        label="node",
        summary=f"the IOMMU translates {named([label_of(case, f.id) for f in functions])}",
        impact="traffic of GPUs and rails goes up to the CPU: less than 50 % of the bandwidth is common"
        + (f"; {', '.join(clients)} may fail." if clients else "."),
        remedy="iommu=pt on the kernel command line, or the IOMMU off in the BIOS; then look at ACS again.",
        evidence=(
            *(
                Evidence(
                    what=f"IOMMU group of {label_of(case, f.id)}",
                    value=f.iommu_type or "",
                    source=f"/sys/kernel/iommu_groups/{f.iommu_group}/type",
                )
                for f in functions[:8]
            ),
            Evidence(what="kernel command line", value=case.node.cmdline or "not known", source="/proc/cmdline"),
        ),
        severity="error" if clients else "warning",
        places=frozenset(f.id for f in functions),
    )
