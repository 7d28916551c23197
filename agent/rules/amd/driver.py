"""AMD GPUs that their driver does not offer, what keeps them from each other's memory, a setting of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.reasons import Reason
from agent.rules.amd.gpus import KFD, NO_HIVE, NOT_OFFERED, all_pass, find_guard, select_gpus
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_gpu,
    about_pairs,
    find_device_id,
    find_function,
    find_offered,
    kernel_log_evidence,
    list_gpus,
)
from agent.rules.rule import NODE, Fail, Result, rule

# MI300A, whose memory is that of its CPU; virtual functions of MI300X and MI325X
_WITHOUT_OWN_MEMORY = frozenset({"0x74a0", "0x74b5", "0x74b9"})


@rule("amd-kfd-missing", each=list_gpus)
def amd_kfd_missing(context: RuleContext, gpu: Gpu) -> Result:
    about, function = about_gpu(gpu), find_function(context, gpu)
    if gpu.vendor != "AMD":
        return about.not_applicable("no-such-device", detail="not of AMD")
    answer = find_offered(context, gpu, "amdgpu", "the driver's list does not show")
    if answer:
        return answer
    if context.virtual_machine or function is None or function.driver is None:
        return about.unknown("not-shown", detail="not in the driver's graph; whether it should be is not known")
    all_of = [amd_gpu for amd_gpu in context.topology.gpus if amd_gpu.vendor == "AMD"]
    usable = sum(amd_gpu.driver_state == "open" for amd_gpu in all_of)
    return about_gpu(gpu).fail(
        summary="on the PCI bus with amdgpu bound, but the compute driver does not offer it",
        impact=f"{usable} of {len(all_of)} GPUs can be used; jobs that ask for all do not start.",
        evidence=(
            Evidence("on the PCI bus", gpu.id, "lspci -d 1002: -nnk"),
            Evidence("in the driver's graph", f"{usable} GPUs, not this one", f"{KFD}/*/properties"),
            *kernel_log_evidence(context, gpu.id),
        ),
    )


@rule("amd-numa-balancing")
def amd_numa_balancing(context: RuleContext) -> Result:
    value = context.software.kernel_settings.get("numa_balancing")
    if not any(gpu.vendor == "AMD" and gpu.driver_state not in NOT_OFFERED for gpu in context.topology.gpus):
        return NODE.not_applicable("no-such-device", detail="no GPU of AMD that the driver offers")
    if value is None:
        return NODE.unknown(context.why_probe_failed("gpu") or Reason("not-read", fact="kernel.numa_balancing"))
    if value != "1":
        return NODE.passes()
    return NODE.fail(
        summary="automatic NUMA balancing is on",
        impact="The kernel moves pages that GPUs use, and unmaps them meanwhile: RCCL warns of it at each start.",
        remedy="`sysctl kernel.numa_balancing=0`, and the same line in /etc/sysctl.d.",
        evidence=(Evidence("kernel.numa_balancing", value, "/proc/sys/kernel/numa_balancing"),),
    )


@rule("amd-large-bar", each=list_gpus)
def amd_large_bar(context: RuleContext, gpu: Gpu) -> Result:
    if answer := find_guard(context, gpu):
        return answer
    about, function = about_gpu(gpu), find_function(context, gpu)
    bar = ((function.bars_bytes if function else None) or {}).get("0")
    if find_device_id(context, gpu) in _WITHOUT_OWN_MEMORY:
        return about.not_applicable("other-kind", detail="its memory is not behind a BAR of its own")
    if bar is None or gpu.memory_mib is None:
        return about.unknown("not-known", fact="the size of its BAR 0, or of its memory,")
    if bar >= gpu.memory_mib << 20:
        return about.passes()
    return about.fail(
        summary=f"BAR 0 is {bar >> 20} MiB, and its memory {gpu.memory_mib} MiB",
        impact="Other GPUs and NICs reach only memory behind the BAR: the driver offers no peer access over PCIe.",
        remedy="set Above 4G Decoding and Resizable BAR in the BIOS, power cycle the node, and compare again.",
        evidence=(
            Evidence("BAR 0", f"{bar} bytes", f"/sys/bus/pci/devices/{gpu.pci}/resource"),
            Evidence("memory", f"{gpu.memory_mib} MiB", f"/sys/bus/pci/devices/{gpu.pci}/mem_info_vram_total"),
        ),
    )


@rule("amd-p2p-missing")
def amd_p2p_missing(context: RuleContext) -> Iterator[Result]:
    bare_metal = context.node.virtualization_known
    groups, answers = select_gpus(
        context, None, lambda gpu: gpu.hive is not None or (bare_metal and gpu.pcie_peers is not None)
    )
    yield from answers
    for group in groups:
        yield from _judge_peers(context, group)


def _judge_peers(context: RuleContext, group: list[Gpu]) -> Iterator[Result]:
    outside = [(a, b) for a, b in combinations(group, 2) if not _is_joined(context, a, b)]
    if not outside:
        yield from (
            about_gpu(gpu).not_applicable("other-kind", detail="XGMI joins it with all others of its model")
            for gpu in group
        )
        return
    if any(gpu.pcie_peers is None for gpu in group):
        why = Reason(
            "not-shown",
            detail="the driver lists no peers over PCIe (kernels before 6.0), nor does a saved amd-smi topology",
        )
        yield from (about_gpu(gpu).unknown(why) for gpu in group)
        return
    missing = [(a, b) for a, b in outside if not (_reaches(a, b) and _reaches(b, a))]
    cut_off = {gpu.id for pair in missing for gpu in pair}
    yield from all_pass([gpu for gpu in group if gpu.id not in cut_off])
    if missing:
        yield _fail_peers(missing, len(outside))


def _is_joined(context: RuleContext, a: Gpu, b: Gpu) -> bool:
    """By XGMI: in one hive; where the driver's graph was not read, by the kind of their path."""
    if a.hive is not None and b.hive is not None:
        return a.hive == b.hive != NO_HIVE
    return any(path.kind == "XGMI" for path in context.topology.paths if {path.a, path.b} == {a.id, b.id})


def _reaches(gpu: Gpu, other: Gpu) -> bool:
    return other.id in (gpu.pcie_peers or ())


def _fail_peers(missing: list[tuple[Gpu, Gpu]], of: int) -> Fail:
    return about_pairs(missing).fail(
        summary=f"{len(missing)} of {of} pairs of GPUs outside a common hive have no peer access over PCIe",
        impact="RCCL copies traffic of these pairs through host memory.",
        remedy="the IOMMU in passthrough mode, ACS off, Resizable BAR on, a kernel with CONFIG_HSA_AMD_P2P.",
        evidence=tuple(
            Evidence(f"{a.label} - {b.label}", "no link both ways", f"{KFD}/*/p2p_links/*/properties, amd-smi topology")
            for a, b in missing[:8]
        ),
        confidence="medium",
        ids=frozenset(gpu.id for pair in missing for gpu in pair),
    )
