"""gdr-acs-directnic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.devices import function_of, is_nvidia, pci_source
from agent.rules.gpudirect.ways import data_direct, platform_kind
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule

# What must be on and what off; bits that are in neither may be either (rdma-core, rdma_topo)
_TOWARD_DMA = (frozenset({"SV", "CR", "UF"}), frozenset({"RR"}))
_TOWARD_GPU = (frozenset({"SV", "RR", "UF"}), frozenset({"CR"}))
_ROOT_PORT = (frozenset({"RR", "CR", "UF"}), frozenset({"SV"}))


@rule(
    "gdr-acs-directnic",
    "error",
    needs=("pci|lspci",),
    references=("gdr-acs-directnic",),
    absorbs=("gdr-iommu-group-directnic",),
)
def gdr_acs_directnic(case: Case) -> Iterator[Answer]:
    """On a Direct NIC board (Grace with ConnectX-8), ACS is not set as the second way between NIC and GPU needs it.

    ## What it checks
    The ACS control bits of the switch ports toward each data-direct function and its GPU, and of their root port.

    ## Why it matters
    With wrong bits traffic takes another way, or is refused: 1 wrong port slows or breaks GPUDirect of its pair, and
    NVIDIA warns of platform errors where old work-arounds are used.

    ## How it is decided
    Where a GPU and a data-direct function (15b3:2100) share a switch: toward the function SV, CR and UF on and RR off;
    toward the GPU SV, RR and UF on and CR off; at the root port RR, CR and UF on and SV off. Other bits are not looked
    at.

    ## What keeps it silent
    - No data-direct function, or none that shares a switch with a GPU: not applicable.
    - Virtual machines: not applicable. Config space that could not be read whole (it needs root): unknown.

    ## How to confirm
    `rdma_topo check` of rdma-core, as root; trust it over this table. `lspci -vvv -s PORT | grep ACSCtl`

    ## How to fix
    `rdma_topo write-grub-acs` writes `pci=config_acs=...` for the kernel's command line. NVIDIA: do not write one value
    to every port.

    ## Source
    rdma-core `kernel-boot/rdma_topo`; NVIDIA Grace-Blackwell ConnectX-8 GPUDirect RDMA guide.
    """
    functions = data_direct(case)
    if platform_kind(case) != "direct-nic":
        yield NotApplicable("node", "no data-direct function")
        return
    for port, (on, off), what in sorted(_expected(case, functions), key=lambda row: row[0].id):
        subject = f"pci:{port.id}"
        if port.acs is None:
            yield Unknown(subject, "its ACS could not be read: it needs root (CAP_SYS_ADMIN)")
            continue
        control = frozenset(port.acs.control)
        wrong = sorted([f"{bit}+ expected" for bit in on - control] + [f"{bit}- expected" for bit in off & control])
        if wrong:
            yield _fault(case, port, what, wrong)
        else:
            yield Pass(subject)


_Want = tuple[frozenset[str], frozenset[str]]


def _expected(case: Case, functions: Sequence[PciFunction]) -> Iterator[tuple[PciFunction, _Want, str]]:
    """Each port once, with what it must be; only where a GPU and a data-direct function meet below one root port."""
    gpus = [f for gpu in case.topology.gpus if is_nvidia(case, gpu) and (f := function_of(case, gpu))]
    seen: set[str] = set()
    for dma in functions:
        above = case.ancestors(dma)
        for gpu in gpus:
            shared = {f.id for f in above} & {f.id for f in case.ancestors(gpu)}
            if len(shared) < 2 or above[-1].id not in shared:
                continue
            rows = (
                (above[0], _TOWARD_DMA, "the port toward the data-direct function"),
                (case.ancestors(gpu)[0], _TOWARD_GPU, "the port toward the GPU"),
                (above[-1], _ROOT_PORT, "the root port"),
            )
            for row in rows:
                if row[0].id not in seen:
                    seen.add(row[0].id)
                    yield row


def _fault(case: Case, port: PciFunction, what: str, wrong: list[str]) -> Fail:
    below = {f.id for f in case.topology.pci if port.id in {above.id for above in case.ancestors(f)}}
    return Fail(
        subject=f"pci:{port.id}",
        label=f"{what} {port.id}",
        summary=f"ACS of {what}: {', '.join(wrong)}",
        impact="1 of the node's Direct NIC ways is slow or refused.",
        remedy="rdma_topo write-grub-acs, then reboot; do not write one value to every port.",
        evidence=(
            Evidence(
                what=f"ACS control of {port.id}",
                value=" ".join(port.acs.control) if port.acs and port.acs.control else "none",
                source=pci_source(case, port.id, "config"),
            ),
        ),
        places=frozenset({port.id} | below),
    )
