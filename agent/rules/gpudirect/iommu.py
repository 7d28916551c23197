"""ACS, IOMMU and ATS on the paths between GPUs and rails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import (
    about_function,
    device_label,
    find_function,
    is_nvidia,
    pci_source,
    quote_acs,
    quote_iommu,
    why_unreachable,
)
from agent.rules.gpudirect.pairs import TRANSLATED, Pair, data_direct, pairs, passes_through, peer_memory, platform_kind
from agent.rules.node_wide import aggregate_node_wide, count_faults
from agent.rules.pcie.registers import HIDDEN, is_hidden
from agent.rules.rule import NODE, Fail, Result, rule
from agent.rules.wording import join_labels

_REDIRECTS = ("RR", "CR")  # request and completion redirect; forwarding upstream alone turns no peer traffic back
_EGRESS_CONTROL = "EC"


def _merge_pairs(context: RuleContext, answers: Sequence[Result]) -> list[Fail]:
    """One finding for the node: no one sets ACS for a single pair."""
    del context
    faults, judged = count_faults(answers)
    if len(faults) < max(judged, 2):
        return faults
    evidence = {row.what: row for fault in faults for row in fault.evidence}
    ports = [what.rpartition(" ")[2] for what in evidence]
    whole = NODE.fail(
        summary=f"ACS redirects the traffic of every GPU and its rails, at {join_labels(ports)}",
        impact=faults[0].impact,
        remedy=_switch_off(ports),
        values=_name_ports(ports),
        evidence=tuple(evidence.values()),
        ids=frozenset().union(*(fault.ids for fault in faults)),
    )
    return [whole]


_ELSEWHERE = {
    "guest": Reason("guest", detail="virtual machine: the host controls ACS"),
    "cloud": Reason("other-kind", detail="rails of a cloud with a GPUDirect of its own"),
    "direct-nic": Reason("judged-elsewhere", detail="a Direct NIC board: some ACS bits must be on (gdr-acs-directnic)"),
    "grace": Reason("other-kind", detail="Grace: NICs reach GPUs by C2C, and the kernel sets ACS correctly"),
}


@rule("gdr-acs-on-path", each=pairs, merge=_merge_pairs)
def gdr_acs_on_path(context: RuleContext, pair: Pair) -> Result:
    kind, guests = platform_kind(context), passes_through(context)
    if kind not in ("x86", "inline") or guests:
        return pair.not_applicable(guests or _ELSEWHERE[kind])
    if not pair.near:
        return pair.not_applicable("other-kind", detail=f"{pair.path.pcie_kind}: they do not meet at a switch")
    hops = [context.functions[hop] for hop in pair.path.hops if hop in context.functions]
    ports = [hop for hop in hops if hop.port_type == "downstream"]
    if len(hops) < len(pair.path.hops) or any(hop.port_type is None for hop in hops):
        unseen = any(is_hidden(hop) for hop in hops)
        return pair.unknown(HIDDEN if unseen else Reason("not-known", fact="which ports are between them"))
    redirecting = [port for port in ports if _redirecting_bits(context, pair, port)]
    if redirecting:
        names = [port.id for port in redirecting]
        return pair.fail(
            summary=f"ACS redirects peer traffic at {join_labels(names)}, below which both are",
            impact="Traffic between GPU and NIC goes up to the CPU and back: it is much slower, and can hang.",
            remedy=_switch_off(names),
            values=_name_ports(names),
            evidence=tuple(quote_acs(context, port) for port in redirecting),
        )
    if any(port.acs is None for port in ports):
        return pair.unknown(HIDDEN)
    if any(port.acs and _EGRESS_CONTROL in port.acs.control for port in ports):
        return pair.unknown("not-shown", detail="ACS egress control is on, and which ports it blocks is not read")
    return pair.passes()


def _redirecting_bits(context: RuleContext, pair: Pair, port: PciFunction) -> bool:
    if port.acs is None or not set(port.acs.control) & set(_REDIRECTS):
        return False
    nic = find_function(context, pair.nic)
    return not ("DT" in port.acs.control and nic is not None and nic.ats)


def _switch_off(ports: Sequence[str]) -> str:
    """Not the IOMMU with it: interrupts of more than 255 CPUs need it."""
    commands = "; ".join(f"`setpci -s {port} ECAP_ACS+0x6.w=0000`" for port in ports)
    return f"{commands}."


def _name_ports(ports: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """As the kernel's command line takes them."""
    return (("ACS_PORTS", ";".join(ports)),)


# What must be on and what off; bits that are in neither may be either (rdma-core, rdma_topo)
_TOWARD_DMA = (frozenset({"SV", "CR", "UF"}), frozenset({"RR"}))
_TOWARD_GPU = (frozenset({"SV", "RR", "UF"}), frozenset({"CR"}))
_ROOT_PORT = (frozenset({"RR", "CR", "UF"}), frozenset({"SV"}))


@rule("gdr-acs-directnic")
def gdr_acs_directnic(context: RuleContext) -> Iterator[Result]:
    functions = data_direct(context)
    if platform_kind(context) != "direct-nic":
        yield NODE.not_applicable("no-such-device", detail="no data-direct function")
        return
    answers = _judge_directnic(context, functions)
    yield from aggregate_node_wide(answers, "ACS is wrong for a Direct NIC board on every port")


def _judge_directnic(context: RuleContext, functions: Sequence[PciFunction]) -> Iterator[Result]:
    for port, (on, off), what in sorted(_expected_ports(context, functions), key=lambda row: row[0].id):
        about = about_function(context, port.id)
        if port.acs is None:
            yield about.unknown("needs-root", detail="its ACS could not be read: it needs root (CAP_SYS_ADMIN)")
            continue
        control = frozenset(port.acs.control)
        wrong = sorted([f"{bit}+ expected" for bit in on - control] + [f"{bit}- expected" for bit in off & control])
        if wrong:
            yield _fail_acs_directnic(context, port, what, wrong)
        else:
            yield about.passes()


_Want = tuple[frozenset[str], frozenset[str]]


def _expected_ports(context: RuleContext, functions: Sequence[PciFunction]) -> Iterator[tuple[PciFunction, _Want, str]]:
    """Each port once, with what it must be; only where a GPU and a data-direct function meet below one root port."""
    gpus = [f for gpu in context.topology.gpus if is_nvidia(context, gpu) and (f := find_function(context, gpu))]
    seen: set[str] = set()
    for dma in functions:
        above = context.ancestors(dma)
        for gpu in gpus:
            shared = {f.id for f in above} & {f.id for f in context.ancestors(gpu)}
            if len(shared) < 2 or above[-1].id not in shared:
                continue
            rows = (
                (above[0], _TOWARD_DMA, "the port toward the data-direct function"),
                (context.ancestors(gpu)[0], _TOWARD_GPU, "the port toward the GPU"),
                (above[-1], _ROOT_PORT, "the root port"),
            )
            for row in rows:
                if row[0].id not in seen:
                    seen.add(row[0].id)
                    yield row


def _fail_acs_directnic(context: RuleContext, port: PciFunction, what: str, wrong: list[str]) -> Fail:
    below = {f.id for f in context.topology.pci if port.id in {above.id for above in context.ancestors(f)}}
    return about_function(context, port.id).fail(
        label=f"{what} {port.id}",
        summary=f"ACS of {what}: {', '.join(wrong)}",
        impact="The Direct NIC path of this pair is slow or refused.",
        evidence=(
            Evidence(
                f"ACS control of {port.id}",
                " ".join(port.acs.control) if port.acs and port.acs.control else "none",
                pci_source(context, port.id, "config"),
            ),
        ),
        ids=frozenset({port.id} | below),
    )


@rule("gdr-ats-vm")
def gdr_ats_vm(context: RuleContext) -> Iterator[Result]:
    cloud = any(line.startswith("cloud:") for line in context.platform.evidence)
    for pair in pairs(context):
        if not context.virtual_machine or cloud or context.node.arch == "aarch64":
            yield pair.not_applicable("guest", detail="not a guest with devices of its own")
        else:
            yield _judge_ats_vm(context, pair)


def _judge_ats_vm(context: RuleContext, pair: Pair) -> Result:
    nic = find_function(context, pair.nic)
    if pair.nic.virtual_function or nic is None or nic.physical_function:
        return pair.not_applicable("guest", detail="a virtual function: the provider decides")
    if nic.ats is None:
        return pair.unknown("needs-root", detail="ATS of the NIC could not be read: it needs root (CAP_SYS_ADMIN)")
    if nic.ats:
        return pair.passes()
    return pair.fail(
        summary=f"{pair.nic.label} was passed through without ATS",
        impact="Each transfer goes up to the host's IOMMU and back, which is slower.",
        evidence=(Evidence("ATS", "off", pci_source(context, nic.id, "config")),),
    )


@rule("gdr-iommu-translated")
def gdr_iommu_translated(context: RuleContext) -> Iterator[Result]:
    kind = platform_kind(context)
    silent = passes_through(context)
    if kind not in ("x86", "inline"):
        silent = Reason("other-kind", detail=f"platform kind {kind}: it is right there")
    if context.software.driver.confidential_computing:
        silent = Reason("by-design", detail="confidential computing needs it")
    ends: dict[str, PciFunction] = {}
    near = [pair for pair in pairs(context) if pair.near]
    if not near:
        yield NODE.not_applicable(
            "no-such-device", detail="no GPU has a rail behind its switch: no direct traffic between them"
        )
        return
    for pair in near:
        for function in (find_function(context, pair.gpu), find_function(context, pair.nic)):
            if function is not None and why_unreachable(function) is None:
                ends[function.id] = function
    if silent:
        yield NODE.not_applicable(silent)
        return
    translated = []
    for pci, function in sorted(ends.items()):
        if function.iommu_type in TRANSLATED:
            translated.append(function)
        elif function.iommu_group is not None and function.iommu_type is None:
            yield about_function(context, pci).unknown("not-read", fact="the type of its IOMMU group")
        else:
            yield about_function(context, pci).passes()
    if translated:
        yield _fail_iommu_translated(context, translated)


def _fail_iommu_translated(context: RuleContext, functions: list[PciFunction]) -> Fail:
    clients = peer_memory(context)
    return NODE.fail(
        summary=f"the IOMMU translates {join_labels([device_label(context, f.id) for f in functions])}",
        impact="Traffic between GPUs and rails goes up to the CPU and back, which is much slower"
        + (f"; {', '.join(clients)} may fail." if clients else "."),
        evidence=(
            *quote_iommu(context, functions[:8]),
            Evidence("kernel command line", context.node.cmdline or "not known", "/proc/cmdline"),
        ),
        severity="error" if clients else "warning",
        ids=frozenset(f.id for f in functions),
    )


@rule("gdr-iommu-group-directnic")
def gdr_iommu_group_directnic(context: RuleContext) -> Iterator[Result]:
    functions = data_direct(context)
    if platform_kind(context) != "direct-nic":
        yield NODE.not_applicable("no-such-device", detail="no data-direct function")
        return
    gpus = [f for gpu in context.topology.gpus if is_nvidia(context, gpu) and (f := find_function(context, gpu))]
    for dma in functions:
        about, above = about_function(context, dma.id), {f.id for f in context.ancestors(dma)}
        partner = next((gpu for gpu in gpus if above & {f.id for f in context.ancestors(gpu)}), None)
        if not above:
            yield about.unknown("not-known", fact="what is above it in the PCI tree")
        elif partner is None:
            yield about.not_applicable("no-such-device", detail="no GPU below its root port")
        elif dma.iommu_group == partner.iommu_group:
            yield about.passes()
        else:
            yield _fail_iommu_group(context, dma, partner)


def _fail_iommu_group(context: RuleContext, dma: PciFunction, gpu: PciFunction) -> Fail:
    return about_function(context, dma.id).fail(
        label=f"data-direct {dma.id}",
        summary=f"IOMMU group {_group(dma)}, and {device_label(context, gpu.id)} is in {_group(gpu)}",
        impact="The driver refuses the direct path of this pair.",
        evidence=tuple(
            Evidence(f"IOMMU group of {f.id}", _group(f), f"/sys/bus/pci/devices/{f.id}/iommu_group")
            for f in (dma, gpu)
        ),
        ids=frozenset({dma.id, gpu.id}),
    )


def _group(function: PciFunction) -> str:
    return "none" if function.iommu_group is None else str(function.iommu_group)
