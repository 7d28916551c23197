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
    relevant = [(rule, fault) for rule, fault in faults if rule.name in _BLOCKS | _SLOWS]
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
    blocks = [_cause(rule, fault) for rule, fault in hit if rule.name in _BLOCKS and _severity(rule, fault) != "info"]
    slows = [_cause(rule, fault) for rule, fault in hit if rule.name in _SLOWS and _severity(rule, fault) != "info"]
    too_far = _too_far(case, pair)
    ends = {"node", pair.subject, *(f"pci:{place}" for place in pair.places)}
    unsure = sorted({f"{name}: {why}" for (name, subject), why in unknown.items() if subject in ends})
    if blocks or too_far:
        verdict, causes = "blocked", sorted({*blocks, *too_far, *slows})
    elif slows:
        verdict, causes = "degraded", sorted({*slows, *unsure})
    elif unsure or way == "unknown":
        verdict, causes = "unknown", unsure or ["which way NICs take to GPU memory is not known"]
    else:
        verdict, causes = "ready", []
    via = "none" if verdict == "blocked" else way
    return Gpudirect(gpu=pair.gpu.id, nic=pair.nic.id, verdict=verdict, via=via, causes=causes)


def _concerns(fault: Fail, pair: Pair) -> bool:
    """A fault of one of the two, of what is between them, or of the whole node."""
    return bool(fault.places & pair.places) or "node" in fault.places


def _severity(rule: Rule, fault: Fail) -> str:
    return fault.severity or rule.severity


def _cause(rule: Rule, fault: Fail) -> str:
    return f"{rule.name} {fault.subject}"


def _too_far(case: Case, pair: Pair) -> list[str]:
    """NCCL's default limit: up to several switches, or over C2C; a guest's tree says nothing."""
    coherent = on_c2c(case, pair.gpu) or pair.path.kind == "C2C"
    if pair.near or coherent or platform_kind(case) in ("guest", "cloud"):
        return []
    return [f"distance {pair.path.pcie_kind}: NCCL uses GPUDirect up to PXB"]


def _way(case: Case) -> str:
    """By which way the kernel lets NICs reach GPU memory; NCCL takes DMA-BUF where both are there."""
    if data_direct(case):
        return "data-direct"
    if platform_kind(case) == "cloud":
        return "unknown"
    ready, unread = dmabuf_ready(case), case.probe_failure("modules|lsmod")
    if ready:
        return "dma-buf"
    if peer_memory(case):
        return "peermem"
    return "unknown" if ready is None or unread else "none"
