"""The GPUDirect verdict of every pair of a GPU and a rail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.model.finding import Check, Gpudirect
from agent.model.gpu import Gpu
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, is_consumer, is_on_c2c
from agent.rules.gpudirect.pairs import Pair, data_direct, pairs, peer_memory, platform_kind
from agent.rules.gpudirect.peer_memory import has_name, is_dmabuf_ready
from agent.rules.rule import Fail, Rule

_BY_ENV = "gdr-disabled-by-env"  # of its settings some are about ways between GPUs (P2P, SHM): each for itself
_C2C_OFF = "NCCL_NET_GDR_C2C"
# What keeps NICs away from GPU memory at all, and what slows them: rules of any family
BLOCKING = frozenset({
    "gdr-no-path", "amd-gdr-not-ready", "amd-kfd-missing", "gdr-peermem-broken", "gdr-devnodes-missing",
    "gdr-memlock-low", "gdr-efa-stack", "gdr-acs-directnic", "gdr-iommu-group-directnic", "pcie-device-gone",
    "gpu-missing", "pci-driver-missing", "inventory-lost", "ib-port-down", "ib-no-sm", "roce-link-down",
    "roce-gid-v1-only", "roce-no-ip", "roce-netdev-missing",
    *(f"{_BY_ENV} {key}" for key in ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_GDR_LEVEL", "NCCL_DMABUF_ENABLE")),
    f"{_BY_ENV} {_C2C_OFF}",
})  # fmt: skip
_SLOWS = frozenset({
    "gdr-acs-on-path", "gdr-iommu-translated", "gdr-ats-vm", "gdr-mrrs-small", "gdr-bar1-small",
    "gdr-datadirect-missing", "gdr-topology-hidden", "gdr-relaxed-ordering-off", "affinity-gpu-far-from-nic",
    "pcie-width-downgraded", "pcie-speed-downgraded", "pcie-path-bottleneck", "pcie-nic-starved", "pcie-link-down",
    "pcie-mps-mismatch", "pcie-slot-limits-card", "roce-speed-degraded", "ib-rate-degraded",
    f"{_BY_ENV} NCCL_NET_GDR_READ",  # what is sent alone
})  # fmt: skip
# Unknown here is unknown for the pair
_DECIDE = ("gdr-no-path", "amd-gdr-not-ready", "gdr-acs-on-path", "gdr-iommu-translated")


def build_verdicts(
    context: RuleContext, checks: Sequence[Check], faults: Iterable[tuple[Rule, Fail]]
) -> list[Gpudirect]:
    """One row for every GPU and each of its rails, in their order."""
    relevant = [
        (rule, fault)
        for rule, fault in faults
        if _kind(rule, fault) in BLOCKING | _SLOWS and (fault.severity or rule.severity) != "info"
    ]
    unknown = {
        (check.rule, subject.subject): subject.reason
        for check in checks
        if check.rule in _DECIDE
        for subject in check.unknown_subjects
    }
    ways = {vendor: _find_way(context, vendor) for vendor in {gpu.vendor for gpu in context.topology.gpus}}
    return [_build_row(context, pair, ways[pair.gpu.vendor], relevant, unknown) for pair in pairs(context)]


def _find_way(context: RuleContext, vendor: str | None) -> str:
    if vendor != "AMD":
        return _kernel_way(context)
    from agent.rules.gpudirect.rocm import find_way  # lazy: most nodes have no GPU of AMD

    return find_way(context)


def _kind(rule: Rule, fault: Fail) -> str:
    return f"{rule.name} {fault.cause}" if rule.name in (_BY_ENV, "amd-gdr-not-ready") else rule.name


def _build_row(
    context: RuleContext, pair: Pair, way: str, faults: list[tuple[Rule, Fail]], unknown: dict[tuple[str, str], str]
) -> Gpudirect:
    hidden = _why_hidden(context, pair.gpu)
    if hidden:
        return Gpudirect(gpu=pair.gpu.id, nic=pair.nic.id, verdict="unknown", causes=[hidden])
    ids = pair.ids
    hit = [(rule, fault) for rule, fault in faults if _concerns(fault, pair, ids, way)]
    reported = {f"{rule.name} {fault.subject}" for rule, fault in hit}
    barred = [*_why_unusable(context, pair.gpu), *_is_too_far(context, pair)]
    ends = {"node", pair.subject, *(f"pci:{place}" for place in ids)}
    unsure = {f"{name}: {why}" for (name, subject), why in unknown.items() if subject in ends}
    if not has_name(context, pair.gpu):
        unsure.add("the GPU has no name: whether it is a GeForce card, which cannot do it, is not known")
    if barred or any(_kind(rule, fault) in BLOCKING for rule, fault in hit):
        verdict, causes = "blocked", sorted({*reported, *barred})
    elif reported:
        verdict, causes = "degraded", sorted({*reported, *unsure})
    elif unsure or way == "unknown":
        verdict, causes = "unknown", sorted(unsure) or [_unknown_way_reason(pair)]
    else:
        verdict, causes = "ready", []
    via = "none" if verdict == "blocked" else way
    return Gpudirect(gpu=pair.gpu.id, nic=pair.nic.id, verdict=verdict, via=via, causes=causes)


def _unknown_way_reason(pair: Pair) -> str:
    if pair.nic.driver == "efa":
        return "efa has its own path to GPU memory, through libfabric: not judged"
    return "which way NICs take to GPU memory is not known"


def _concerns(fault: Fail, pair: Pair, ids: frozenset[str], way: str) -> bool:
    """A fault of one of the two, of what is between them, or of the whole node."""
    if fault.cause == _C2C_OFF and (pair.near or way == "data-direct"):
        return False  # this pair's way is PCIe
    return bool(fault.ids & ids) or "node" in fault.ids


def _why_hidden(context: RuleContext, gpu: Gpu) -> str | None:
    """Why no one on this host can state how NICs reach the memory of this GPU: it is, or may be, a guest's."""
    function = find_function(context, gpu)
    driver = function.driver if function else None
    if gpu.driver_state == "vfio" or "vfio" in (driver or ""):
        return "the GPU is handed to a virtual machine (vfio-pci): its pairs are the guest's"
    if gpu.driver_state == "not_open" and driver is None:
        return f"the {gpu.vendor or 'NVIDIA'} driver does not list the GPU, and whether it is bound to it is not known"
    return None


def _why_unusable(context: RuleContext, gpu: Gpu) -> list[str]:
    """Why the memory of this GPU is for no NIC: the driver does not offer it, or not for that."""
    problem, maker = f": {gpu.driver_error}" if gpu.driver_error else "", gpu.vendor or "NVIDIA"
    why = {
        "no_driver": f"no {maker} driver is bound to the GPU{problem}",
        "not_open": f"the {maker} driver does not list the GPU",
        "error": f"the {maker} driver cannot open the GPU{problem}",
    }.get(gpu.driver_state)
    consumer = "GeForce and TITAN cards: NVIDIA's driver has no GPUDirect RDMA for them"
    return [*([why] if why else []), *([consumer] if is_consumer(context, gpu) else [])]


def _is_too_far(context: RuleContext, pair: Pair) -> list[str]:
    """The default limit of NCCL and RCCL: up to several switches, or over C2C; a guest's tree reports nothing."""
    coherent = is_on_c2c(context, pair.gpu) or pair.path.kind == "C2C"
    if pair.near or coherent or platform_kind(context) in ("guest", "cloud"):
        return []
    library = "RCCL" if pair.gpu.vendor == "AMD" else "NCCL"
    return [f"distance {pair.path.pcie_kind}: {library} uses GPUDirect up to PXB"]


def _kernel_way(context: RuleContext) -> str:
    """By which way the kernel lets NICs reach GPU memory; NCCL takes DMA-BUF where both are there.

    Where neither was seen, gdr-no-path blocks the pair, or has a reason not to judge: "none" would be ready here.
    """
    if data_direct(context):
        return "data-direct"
    if platform_kind(context) == "cloud":
        return "unknown"
    if is_dmabuf_ready(context):
        return "dma-buf"
    return "peermem" if peer_memory(context) else "unknown"
