"""NVLinks that are down, disabled, slow or unused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair, ask_nvidia_smi, gpu_model, is_nvidia, report_no_gpu
from agent.rules.node_wide import merge_if_on_all
from agent.rules.nvlink.fabric import FABRIC_ARCHITECTURES, NO_UUID, PLACE, merge_gpus
from agent.rules.nvlink.link_counts import (
    LinkCounts,
    LinkForm,
    find_form,
    group_by_model,
    is_stated_inactive,
    link_counts,
    lost_ends,
    not_offered_reason,
)
from agent.rules.rule import NODE, Fail, NamedSubject, NotApplicable, Result, Subject, rule, split_subjects
from agent.rules.wording import find_majority, format_ranges, format_share_lost, join_labels

_WHOLE_BOARD = 8  # so many GPUs of one model fill a baseboard: all their links are wired
_FEW = 1 / 4  # of the links of one GPU: the others show that it is wired


@rule("nvlink-inactive")
def nvlink_inactive(context: RuleContext) -> Iterator[Result]:
    counts, others = split_subjects(link_counts(context))
    stated = {f"gpu:{gpu.id}": gpu for gpu in context.topology.gpus if is_stated_inactive(context, gpu)}
    without = [_fail_stated(context, stated[one.subject]) for one in others if one.subject in stated]
    yield from (one for one in others if one.subject not in stated)
    yield from merge_if_on_all(without, len(context.topology.gpus), without[0].summary if without else "")
    for group in group_by_model(counts):
        answers = [(tally, _judge_inactive(context, tally, group)) for tally in group]
        faults = [(tally, answer) for tally, answer in answers if isinstance(answer, Fail)]
        yield from (answer for _, answer in answers if not isinstance(answer, Fail))
        yield from _merge_group(group, faults)


def _judge_inactive(context: RuleContext, tally: LinkCounts, group: list[LinkCounts]) -> Result:
    if tally.enough is not None and len(tally.active) >= tally.enough:
        return tally.passes()
    if not tally.inactive:
        return tally.unknown("not-known", fact="the state of a link") if tally.unread else tally.passes()
    if tally.form is LinkForm.CARD and not tally.active:
        return tally.not_applicable("other-kind", detail="a card without a bridge: no link is active")
    if tally.form is LinkForm.UNKNOWN:
        return tally.unknown("not-shown", detail="the GPU model is not known, nor whether all its NVLinks are wired")
    if len(group) < 2:
        nothing = Reason("nothing-to-compare", detail="the only GPU of its model: nothing to compare with")
        wired = tally.form is LinkForm.BOARD and not context.virtual_machine
        if wired and context.recorded and context.why_bus_unread and len(tally.inactive) < len(tally.active):
            what = f"{len(tally.inactive)} of {tally.total} NVLinks down"  # of one GPU that someone saved
            severity = "warning" if len(tally.inactive) <= _FEW * tally.total else "info"  # some guests have a half
            return replace(_fail_inactive(context, tally, severity, what), confidence="low")
        return tally.unknown(nothing) if wired else tally.not_applicable(nothing)
    if tally.form is LinkForm.CARD:
        return _fail_inactive(
            context, tally, "warning", f"its bridge connects {len(tally.active)} of {tally.total} NVLinks"
        )
    most = max(len(other.active) for other in group)
    what = f"{len(tally.inactive)} of {tally.total} NVLinks down"
    if len(tally.active) < most:
        severity = "error" if tally.active else "critical"
        return _fail_inactive(context, tally, severity, f"{what} (peers: {most} up)")
    if tally.form is LinkForm.BOARD and _is_of_whole_board(context, tally):
        return _fail_inactive(
            context, tally, "error" if tally.active else "critical", f"{what}, on a board that wires all of them"
        )
    if tally.form is LinkForm.BOARD and not tally.active and not context.virtual_machine:
        return _fail_inactive(context, tally, "critical", f"{what}, on a board that wires them")
    if not tally.active and _is_in_cluster(tally.gpu):
        return _fail_inactive(context, tally, "critical", f"{what}, and its fabric has a cluster to join")
    return tally.not_applicable(
        "by-design", detail=f"every GPU of this model has the same {len(tally.active)} links: wired so"
    )


def _fail_stated(context: RuleContext, gpu: Gpu) -> Fail:
    """Low for the only GPU of a text that is the first: a guest may have one without NVLink."""
    is_one_of_several = bool(gpu.index) or len(context.topology.gpus) > 1
    return about_gpu(gpu).fail(
        summary="the driver states that all its NVLinks are inactive",
        impact=f"PCIe instead of NVLink for {gpu.label}; collectives run at the slowest GPU's speed.",
        evidence=(Evidence("NVLink", gpu.links_reason or "", "nvidia-smi nvlink -s"),),
        severity="critical",
        confidence="medium" if is_one_of_several else "low",
        explains_parts=False,
    )


def _is_of_whole_board(context: RuleContext, tally: LinkCounts) -> bool:
    """Those that do not answer count: one GPU that is lost makes no smaller board of the others."""
    return sum(gpu_model(context, gpu) == tally.model for gpu in context.topology.gpus) >= _WHOLE_BOARD


def _is_in_cluster(gpu: Gpu) -> bool:
    """Whether its NVLinks lead to the switches of a rack: only there has the fabric a cluster."""
    return gpu.fabric is not None and gpu.fabric.cluster_uuid not in (None, NO_UUID)


def _fail_inactive(context: RuleContext, tally: LinkCounts, severity: str, summary: str) -> Fail:
    gpu = tally.gpu
    ends = {link.remote.id for link in tally.inactive if link.remote and link.remote.id}
    return tally.fail(
        label=gpu.label,
        summary=summary,
        impact=_impact(tally, gpu.label),
        evidence=(tally.evidence,),
        severity=severity,
        ids=tally.ids | {*_links(tally)} | ends | lost_ends(context, tally),
        explains_parts=False,
    )


def _links(tally: LinkCounts) -> Iterator[str]:
    """Its inactive links and their far ends, each by itself, and what the log has of links without naming one."""
    yield f"{tally.gpu.id}/nvlink"
    for link in tally.inactive:
        yield f"{tally.gpu.id}/{link.link}"
        if link.remote and link.remote.id and link.remote.link is not None:
            yield f"{link.remote.id}/{link.remote.link}"


def _impact(tally: LinkCounts, whom: str) -> str:
    rate = max((link.signal_gbyte_s or 0 for link in tally.active), default=0)
    lost = f"{rate * len(tally.inactive):.0f} GB/s less in each direction" if rate else "PCIe instead of NVLink"
    return (
        f"{lost} for {whom} ({len(tally.inactive)} of {tally.total} links); collectives run at the slowest GPU's speed."
    )


def _merge_group(group: list[LinkCounts], faults: list[tuple[LinkCounts, Fail]]) -> Iterator[Fail]:
    """One finding where one part explains all: a switch below a whole board, one wire between two GPUs."""
    tallied = [tally for tally, _ in faults]
    if len(faults) == len(group) and len(group) > 2 and group[0].form is not LinkForm.CARD:
        whole = _merge_links(faults, NODE, _summarize_group(tallied))
        none_left = not any(tally.active for tally in group)
        ids = whole.ids | {"count of NVSwitches", *([PLACE] if none_left else [])}
        yield replace(whole, ids=ids, residue=tuple(_list_residue(faults)))
    elif (
        len(faults) == 2
        and len({len(t.inactive) for t in tallied}) == 1
        and not any(_leads_to_switch(t) for t in tallied)
    ):
        summary = f"{len(tallied[0].inactive)} NVLinks between them inactive"
        yield _merge_links(faults, about_pair(tallied[0].gpu, tallied[1].gpu), summary)
    else:
        yield from (fault for _, fault in faults)


def _list_residue(faults: Sequence[tuple[LinkCounts, Fail]]) -> Iterator[Fail]:
    """The GPUs with more links down than most: one switch takes as many from each."""
    common = find_majority([len(tally.inactive) for tally, _ in faults])
    shared = set.intersection(*({link.link for link in tally.inactive} for tally, _ in faults))
    for tally, fault in faults:
        if common is not None and len(tally.inactive) > common:
            own = [link for link in tally.inactive if link.link not in shared]
            more = len(tally.inactive) - common
            yield replace(
                fault,
                summary=f"{len(tally.inactive)} of {tally.total} NVLinks down; its peers have {common} down",
                ids=tally.ids
                | (frozenset(f"{tally.gpu.id}/{link.link}" for link in own) if len(own) == more else frozenset()),
                cause="more",
            )


def _summarize_group(tallied: Sequence[LinkCounts]) -> str:
    """What most GPUs have in common, and which have another number of links down."""
    counts = [f"{len(tally.inactive)} of {tally.total}" for tally in tallied]
    common = find_majority(counts)
    if common is None:
        return f"inactive NVLinks on every one of {len(tallied)} GPUs"
    others = [f"{count} on {tally.gpu.label}" for tally, count in zip(tallied, counts, strict=True) if count != common]
    return "; ".join([f"{common} NVLinks down on every one of {len(tallied)} GPUs", *others])


def _leads_to_switch(tally: LinkCounts) -> bool:
    return not tally.active or any(link.remote is None or link.remote.kind != "gpu" for link in tally.active)


def _merge_links(faults: list[tuple[LinkCounts, Fail]], about: Subject, summary: str) -> Fail:
    first = faults[0][1]
    grave = [fault.severity for _, fault in faults]
    return about.fail(
        summary,
        impact=_impact(faults[0][0], join_labels([tally.gpu.label for tally, _ in faults])),
        remedy=first.remedy,
        evidence=tuple(tally.evidence for tally, _ in faults),
        severity="critical" if "critical" in grave else first.severity,
        ids=frozenset().union(*(fault.ids for _, fault in faults)),
        explains_parts=False,
        parts=tuple(fault for _, fault in faults),
    )


@rule("nvlink-asymmetric")
def nvlink_asymmetric(context: RuleContext) -> Iterator[Result]:
    tallies, others = split_subjects(link_counts(context))
    yield from others
    for group in group_by_model(tallies):
        counts = [len(tally.active) for tally in group]
        for tally in group:
            yield _judge_asymmetric(context, tally, group, max(counts))


def _judge_asymmetric(context: RuleContext, tally: LinkCounts, group: list[LinkCounts], usual_count: int) -> Result:
    if tally.form is LinkForm.CARD:
        return tally.not_applicable("by-design", detail="a card: which NVLinks are bridged is the builder's choice")
    if len(group) < 2:
        return tally.not_applicable("nothing-to-compare", detail="the only GPU of its model: nothing to compare with")
    if len(tally.active) >= usual_count:
        return tally.passes()
    if tally.unread:
        return tally.unknown("not-known", fact="the state of a link")
    missing = usual_count - len(tally.active)
    return tally.fail(
        label=tally.gpu.label,
        summary=f"{len(tally.active)} active NVLinks; the other GPUs of its model have {usual_count}",
        impact=f"{100 * missing / usual_count:.0f}% of its NVLink bandwidth ({missing} of {usual_count} links); "
        "collectives run at its speed.",
        evidence=tuple(
            tally.evidence for tally in (tally, *(other for other in group if len(other.active) == usual_count))
        )[:2],
        ids=tally.ids | lost_ends(context, tally),
    )


_TOLERANCE = 0.97

# GB/s of one link in one direction as `nvidia-smi nvlink -s` prints it, by NVLink generation. Generation 3: A100 is
# printed as 25 or 25.781, GA102 (RTX 3090, A6000) as 14.062
_RATES = {2: (25.0, 25.781), 3: (25.0, 25.781, 14.062), 4: (26.562,), 5: (53.125,)}
_GA102 = (14.062,)
_GENERATION = {"Volta": 2, "Turing": 2, "Ampere": 3, "Hopper": 4, "Blackwell": 5}


@rule("nvlink-speed-low", each=link_counts)
def nvlink_speed_low(tally: LinkCounts) -> Result:
    live = [link for link in tally.active if link.state == "active"]
    if not live:
        return tally.not_applicable("not-in-use", detail="no NVLink is awake and active")
    rates = {link.link: link.signal_gbyte_s for link in live if link.signal_gbyte_s}
    fastest = max(rates.values(), default=0.0)
    slow = [
        (link, expected_rate)
        for link in live
        if link.signal_gbyte_s
        and link.signal_gbyte_s < (expected_rate := _expected_rate(tally.gpu, link, fastest)) * _TOLERANCE
    ]
    if slow:
        return _fail_speed_low(tally, slow)
    if len(rates) < len(live):
        return tally.unknown("not-reported", fact="the rate of every link")
    return tally.passes()


def _expected_rate(gpu: Gpu, link: GpuLink, fastest: float) -> float:
    """The rate that a link should have: the nearest one of its generation; where that is unknown, its siblings'."""
    generation = _generation(gpu, link)
    choices = _RATES.get(generation or 0, ())
    if generation == 3 and gpu.compute_capability is not None:
        choices = _GA102 if gpu.compute_capability == "8.6" else _RATES[2]
    rate = link.signal_gbyte_s or 0.0
    return min(choices, key=lambda expected: abs(expected - rate), default=fastest)


def _generation(gpu: Gpu, link: GpuLink) -> int | None:
    major = (link.version or "").partition(".")[0]
    return int(major) if major.isdecimal() and len(major) < 3 else _GENERATION.get(gpu.architecture or "")


def _fail_speed_low(tally: LinkCounts, slow: list[tuple[GpuLink, float]]) -> Fail:
    gpu, (worst, expected_rate) = tally.gpu, min(slow, key=lambda pair: pair[0].signal_gbyte_s or 0.0)
    now = worst.signal_gbyte_s or 0.0
    numbers = format_ranges(link.link for link, _ in slow)
    return tally.fail(
        label=gpu.label,
        summary=f"NVLink {numbers}: {now:.3g} GB/s, expected {expected_rate:.3g}",
        impact=f"{format_share_lost(now, expected_rate)} of the bandwidth of {len(slow)} of {tally.total} links; "
        "collectives run at the slowest.",
        evidence=tuple(
            Evidence(f"link {link.link}", f"{link.signal_gbyte_s:g} GB/s", ask_nvidia_smi("nvlink -s", gpu))
            for link, _ in slow
        ),
    )


def _list_modes(context: RuleContext) -> Iterator[Gpu | Result]:
    """The mode of the whole board, or else every GPU that may have one."""
    yield from report_no_gpu(context)
    mode = context.topology.bandwidth_mode
    if mode not in (None, "full"):
        about = NamedSubject("node", "node", frozenset(gpu.id for gpu in context.topology.gpus))
        yield _fail_bandwidth_mode(about, mode or "")
    else:
        yield from context.topology.gpus


def _merge_modes(context: RuleContext, answers: Sequence[Result]) -> list[Fail]:
    return merge_gpus(context, [answer for answer in answers if not isinstance(answer, NotApplicable)])


@rule("nvlink-bandwidth-mode-reduced", each=_list_modes, merge=_merge_modes)
def nvlink_bandwidth_mode_reduced(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    if answer := not_offered_reason(context, gpu):
        return answer
    if gpu.nvlink_bandwidth_mode not in (None, "full"):
        return _fail_bandwidth_mode(about, gpu.nvlink_bandwidth_mode or "")
    if "full" in (gpu.nvlink_bandwidth_mode, context.topology.bandwidth_mode):
        return about.passes()
    if gpu.architecture not in (*FABRIC_ARCHITECTURES, None) or find_form(context, gpu) is LinkForm.CARD:
        return about.not_applicable("other-kind", detail="GPUs before Hopper, and cards, have no NVLink bandwidth mode")
    if gpu.mig and gpu.mig.current:
        return about.not_applicable("not-in-use", detail="MIG is on: NVLink is not used")
    if gpu.links_known and not gpu.links:
        return about.not_applicable("judged-elsewhere", detail="the driver offers no NVLink: see nvlink-disabled")
    return about.unknown(
        "needs-root", detail="the NVLink bandwidth mode is not reported (root is needed, or a newer driver)"
    )


def _fail_bandwidth_mode(about: NamedSubject, mode: str) -> Fail:
    return about.fail(
        summary=f"NVLink bandwidth mode {mode}",
        impact="NVLinks are switched off on purpose: HALF leaves an H100 225 of 450 GB/s, MIN and OFF less.",
        evidence=(Evidence("bandwidth mode", mode, "nvidia-smi nvlink -gBwMode"),),
    )


@rule("nvlink-unused-by-mig")
def nvlink_unused_by_mig(context: RuleContext) -> Result:
    linked = [
        gpu
        for gpu in context.topology.gpus
        if is_nvidia(context, gpu)
        and find_form(context, gpu) in (LinkForm.BOARD, LinkForm.SUPERCHIP)
        and gpu.driver_state == "open"
    ]
    if len(linked) < 2:
        return NODE.not_applicable("nothing-to-compare", detail="fewer than two GPUs that are wired by NVLink")
    split = [gpu for gpu in linked if gpu.mig and gpu.mig.current]
    if not split:
        return NODE.passes()
    return NODE.fail(
        summary=f"MIG is on: NVLink of {join_labels([gpu.label for gpu in split])} is not used",
        impact="A job cannot join these GPUs: 450 GB/s of NVLink on each H100 are idle.",
        evidence=(Evidence("MIG on", join_labels([gpu.label for gpu in split]), "nvidia-smi -q"),),
        ids=frozenset().union(*(about_gpu(gpu).ids for gpu in split)),
    )


_PARAMETER = "NvLinkDisable"


def _offered_gpus(context: RuleContext) -> Iterator[Gpu | Result]:
    yield from report_no_gpu(context)
    yield from (not_offered_reason(context, gpu) or gpu for gpu in context.topology.gpus)


@rule("nvlink-disabled", each=_offered_gpus, merge=merge_gpus)
def nvlink_disabled(context: RuleContext, gpu: Gpu) -> Result:
    about = about_gpu(gpu)
    modules = [
        one for one in _offered_gpus(context) if isinstance(one, Gpu) and find_form(context, one) is LinkForm.BOARD
    ]
    if gpu not in modules or len(modules) < 2:
        return about.not_applicable(
            "nothing-to-compare", detail="no other GPU of a baseboard that it could be wired to"
        )
    if gpu.mig and gpu.mig.current:
        return about.not_applicable("not-in-use", detail="MIG is on: NVLink is not used")
    if context.software.driver.confidential_computing:
        return about.not_applicable(
            "by-design", detail="confidential computing: the driver disables NVLink between GPUs"
        )
    if not gpu.links_known:
        return about.unknown(quote_source(gpu.links_reason) or Reason("not-shown", detail="NVLinks not known"))
    if gpu.links:
        return about.passes()
    if context.virtual_machine:
        return about.unknown("guest-hides", detail="no NVLink is offered; a hypervisor may have left it out")
    parameter = context.software.driver.parameters.get(_PARAMETER)
    is_set = parameter not in (None, "0")
    return about.fail(
        summary="NVLink is switched off by the driver's NvLinkDisable" if is_set else "the driver offers no NVLink",
        impact="GPUs use PCIe: 63 GB/s at best instead of 450 on an H100.",
        remedy="Remove NVreg_NvLinkDisable from /etc/modprobe.d, and rebuild the initramfs."
        if is_set
        else "Look for NVRM messages of NVLink in the kernel's log: they name the reason.",
        evidence=(
            Evidence("NVLink", quote_source(gpu.links_reason) or "none", "nvidia-smi nvlink -s"),
            Evidence(_PARAMETER, parameter or "not known", "/proc/driver/nvidia/params"),
        ),
        cause="parameter" if is_set else "none",
        ids=about.ids | {PLACE},
    )
