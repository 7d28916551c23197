"""`gpudirect` of the report: every GPU with each of its rails, whether NICs reach its memory, by which way, and what
keeps them from it. Made of the faults and checks of all rules: nothing is judged here twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.model.finding import Check, Gpudirect
from agent.rules.case import Case
from agent.rules.devices import on_c2c
from agent.rules.gpudirect.no_path import dmabuf_ready
from agent.rules.gpudirect.ways import Pair, data_direct, pairs, peer_memory, platform_kind
from agent.rules.rule import Fail, Rule

# What keeps NICs away from GPU memory at all, and what slows them: rules of any family
_BLOCKS = frozenset(
    {"gdr-no-path", "gdr-peermem-broken", "gdr-disabled-by-env", "gdr-devnodes-missing", "gdr-memlock-low"}
    | {"gdr-efa-stack", "pcie-device-gone", "gpu-missing", "ib-port-down", "ib-no-sm", "roce-link-down"}
    | {"roce-gid-v1-only", "roce-no-ip", "roce-netdev-missing", "pci-driver-missing", "inventory-lost"}
    | {"gdr-acs-directnic", "gdr-iommu-group-directnic"}
)
_SLOWS = frozenset(
    {"gdr-acs-on-path", "gdr-iommu-translated", "gdr-ats-vm", "gdr-mrrs-small", "gdr-bar1-small"}
    | {"gdr-datadirect-missing", "gdr-topology-hidden", "gdr-relaxed-ordering-off", "affinity-gpu-far-from-nic"}
    | {"pcie-width-downgraded", "pcie-speed-downgraded", "pcie-path-bottleneck", "pcie-nic-starved", "pcie-link-down"}
    | {"pcie-mps-mismatch", "pcie-slot-limits-card", "roce-speed-degraded", "ib-rate-degraded"}
)
_DECIDE = ("gdr-no-path", "gdr-acs-on-path", "gdr-iommu-translated")  # unknown here is unknown for the pair


def gpudirect_rows(case: Case, checks: Sequence[Check], faults: Iterable[tuple[Rule, Fail]]) -> list[Gpudirect]:
    """One row for every GPU and each of its rails, in their order."""
    relevant = [
        (rule, fault)
        for rule, fault in faults
        if rule.name in _BLOCKS | _SLOWS and (fault.severity or rule.severity) != "info"
    ]
    unknown = {
        (check.rule, each.subject): each.reason
        for check in checks
        if check.rule in _DECIDE
        for each in check.unknown_subjects
    }
    way = _way(case)
    return [_row(case, pair, way, relevant, unknown) for pair in pairs(case)]


def _row(
    case: Case, pair: Pair, way: str, faults: list[tuple[Rule, Fail]], unknown: dict[tuple[str, str], str]
) -> Gpudirect:
    hit = [(rule, fault) for rule, fault in faults if _concerns(fault, pair)]
    told = {f"{rule.name} {fault.subject}" for rule, fault in hit}
    too_far = _too_far(case, pair)
    ends = {"node", pair.subject, *(f"pci:{place}" for place in pair.places)}
    unsure = sorted({f"{name}: {why}" for (name, subject), why in unknown.items() if subject in ends})
    if too_far or any(rule.name in _BLOCKS for rule, _ in hit):
        verdict, causes = "blocked", sorted({*told, *too_far})
    elif told:
        verdict, causes = "degraded", sorted({*told, *unsure})
    elif unsure or way == "unknown":
        verdict, causes = "unknown", unsure or ["which way NICs take to GPU memory is not known"]
    else:
        verdict, causes = "ready", []
    via = "none" if verdict == "blocked" else way
    return Gpudirect(gpu=pair.gpu.id, nic=pair.nic.id, verdict=verdict, via=via, causes=causes)


def _concerns(fault: Fail, pair: Pair) -> bool:
    """A fault of one of the two, of what is between them, or of the whole node."""
    return bool(fault.places & pair.places) or "node" in fault.places


def _too_far(case: Case, pair: Pair) -> list[str]:
    """NCCL's default limit: up to several switches, or over C2C; a guest's tree says nothing."""
    coherent = on_c2c(case, pair.gpu) or pair.path.kind == "C2C"
    if pair.near or coherent or platform_kind(case) in ("guest", "cloud"):
        return []
    return [f"distance {pair.path.pcie_kind}: NCCL uses GPUDirect up to PXB"]


def _way(case: Case) -> str:
    """By which way the kernel lets NICs reach GPU memory; NCCL takes DMA-BUF where both are there.

    Where neither was seen, gdr-no-path blocks the pair, or has a reason not to judge: "none" would be ready here.
    """
    if data_direct(case):
        return "data-direct"
    if platform_kind(case) == "cloud":
        return "unknown"
    if dmabuf_ready(case):
        return "dma-buf"
    return "peermem" if peer_memory(case) else "unknown"
