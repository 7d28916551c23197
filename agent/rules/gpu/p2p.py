"""ACS and IOMMU on the PCIe way between two GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.model.topology import Path
from agent.rules.context import RuleContext
from agent.rules.devices import about_pair, find_function, is_consumer, is_nvidia, quote_acs, quote_iommu
from agent.rules.gpudirect.pairs import TRANSLATED, passes_through, platform_kind
from agent.rules.pcie.registers import HIDDEN
from agent.rules.rule import NODE, Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import count_of, join_labels

_REQUEST_REDIRECT = "RR"
_SHOWN = 6
_CROSSED = ("root_port", "downstream")  # ports through which requests of a GPU come from below


@rule("gpu-p2p-redirected")
def gpu_p2p_redirected(context: RuleContext) -> Iterator[Result]:
    silent = _why_silent(context)
    gpus = {gpu.id: gpu for gpu in context.topology.gpus if is_nvidia(context, gpu)}
    ways = [path for path in context.topology.paths if path.a in gpus and path.b in gpus]
    if silent:
        yield from [NODE.not_applicable(silent)] if ways else []
        return
    if not any(path.hops for path in ways):
        yield from _judge_listed_ports(context)
    answers = [_judge_way(context, path, gpus[path.a], gpus[path.b]) for path in ways]
    yield from (answer for answer in answers if not isinstance(answer, Fail))
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    yield from [_merge(faults)] if len(faults) > 1 else faults


def _why_silent(context: RuleContext) -> Reason | None:
    if context.software.driver.confidential_computing:
        return Reason("by-design", detail="confidential computing needs it")
    if platform_kind(context) == "guest":
        return Reason("guest", detail="virtual machine: the host controls ACS and IOMMU")
    return passes_through(context)


def _judge_way(context: RuleContext, path: Path, a: Gpu, b: Gpu) -> Result:
    subject = f"pair:{path.a}+{path.b}"
    ends = [function for gpu in (a, b) if (function := find_function(context, gpu))]
    if path.kind != path.pcie_kind:
        return NotApplicable(subject, Reason("not-in-use", detail=f"{path.kind}: their traffic does not use PCIe"))
    if is_consumer(context, a) or any(word != "OK" for word in _list_p2p_states(a, b)):
        return NotApplicable(subject, Reason("not-in-use", detail="the driver offers no P2P between them"))
    hops = [context.functions[hop] for hop in path.hops if hop in context.functions]
    ports = [hop for hop in hops if hop.port_type in _CROSSED]
    if len(ends) < 2 or not ports:
        return Unknown(subject, Reason("not-known", fact="which ports are between them"))
    redirecting = [port for port in ports if port.acs and _REQUEST_REDIRECT in port.acs.control]
    if not redirecting:
        return Unknown(subject, HIDDEN) if any(port.acs is None for port in ports) else Pass(subject)
    if any(end.iommu_type is None and end.iommu_group is not None for end in ends):
        return Unknown(subject, Reason("not-read", fact="whether the IOMMU translates their addresses"))
    translated = [end for end in ends if end.iommu_type in TRANSLATED]
    return _fail_way(context, (a, b), redirecting, translated) if translated else Pass(subject)


def iommu_translates(context: RuleContext) -> bool:
    """Whether the kernel's log, or the group of a listed function, states that the IOMMU translates."""
    return any(event.kind == "iommu" and event.code == "Translated" for event in context.events) or any(
        function.iommu_type in TRANSLATED for function in context.topology.pci
    )


def _judge_listed_ports(context: RuleContext) -> Iterator[Result]:
    """What the ports of a cut list show, where no pair of GPUs is in it: a note. Lines of ACS that someone picked out
    are more where the IOMMU is known to translate."""
    why = context.why_bus_unread
    ports = [f for f in context.topology.pci if f.acs and _REQUEST_REDIRECT in f.acs.control]
    if not ports or why is None:
        return
    yield NODE.unknown(why)
    translates = iommu_translates(context)
    names = [port.id for port in ports[:_SHOWN]] + ([f"{len(ports) - _SHOWN} more"] if len(ports) > _SHOWN else [])
    yield NODE.fail(
        summary=f"ACS redirects requests at {join_labels(names)}{', and the IOMMU translates' if translates else ''}",
        impact="What this means here depends on what is below these ports and on the IOMMU: where it translates, "
        "direct copies between two GPUs below them hang, fail or arrive corrupt.",
        evidence=tuple(quote_acs(context, port) for port in ports[:_SHOWN]),
        severity="warning" if translates and all(port.class_code is None for port in ports) else "info",
        confidence="low",
        situation="listed",
        ids=frozenset(port.id for port in ports),
    )


def _list_p2p_states(a: Gpu, b: Gpu) -> list[str]:
    """What the driver states of reads and writes between two GPUs; empty where it was not asked."""
    ways = ((a.p2p or {}).get(b.id, {}), (b.p2p or {}).get(a.id, {}))
    return [words[way] for words in ways for way in ("read", "write") if way in words]


def _fail_way(
    context: RuleContext, gpus: tuple[Gpu, Gpu], ports: list[PciFunction], translated: list[PciFunction]
) -> Fail:
    known = bool(_list_p2p_states(*gpus))
    return about_pair(gpus[0], gpus[1]).fail(
        label=f"{gpus[0].label} and {gpus[1].label}",
        summary=f"ACS redirects their traffic at {join_labels([port.id for port in ports])}, "
        "and the IOMMU translates it",
        impact="Peer-to-peer copies over PCIe hang, fail or arrive corrupt; with NCCL_P2P_DISABLE=1, which hides it, "
        "every byte goes through host memory.",
        evidence=(
            *(quote_acs(context, port) for port in ports),
            *quote_iommu(context, translated),
        ),
        confidence="high" if known else "medium",
        ids=frozenset({*(gpu.id for gpu in gpus), *(port.id for port in ports)}),
    )


def _merge(faults: list[Fail]) -> Fail:
    """One finding for the node: both are set for all of it."""
    evidence = {row.what: row for fault in faults for row in fault.evidence}
    return NODE.fail(
        summary=f"ACS redirects the PCIe traffic of {count_of(len(faults), 'pairs')} of GPUs, "
        "and the IOMMU translates it",
        impact=faults[0].impact,
        evidence=tuple(evidence.values()),
        confidence=faults[0].confidence,
        ids=frozenset().union(*(fault.ids for fault in faults)),
    )
