"""PCIe error, replay and recovery counters."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from agent.model.counters import aer_counters, gpu_counters, netdev_counters
from agent.model.finding import Evidence
from agent.model.gpu import Gpu
from agent.model.node import Event
from agent.model.pci import Link, PciFunction
from agent.rules import applicability
from agent.rules.applicability import behind
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    MINUTE,
    Count,
    CountedSubject,
    CounterDelta,
    Counters,
    delta,
    format_window,
    limit,
    scale_count,
)
from agent.rules.devices import (
    about_function,
    about_gpu,
    ask_nvidia_smi,
    device_label,
    kernel_log_evidence,
    why_unreachable,
)
from agent.rules.pages import read_limit
from agent.rules.pcie.links import fail_by_log, report_log_alone
from agent.rules.rule import NODE, Fail, Pass, Result, Unknown, gravest, rule, split_subjects
from agent.rules.wording import count_of, find_median

# Errors a minute and lane by GT/s: a bit error rate of 1e-12 (DCGM, PcieMain.cpp)
_PER_LANE = {2.5: 0.15, 5.0: 0.30, 8.0: 0.48, 16.0: 0.96, 32.0: 1.92, 64.0: 3.84}
_FLIT_GT_S = 64.0  # from here on links correct and send again by design: no bit error rate makes a budget
_LEAST_ALIKE = 3  # links beside one such link that are enough to compare it with
_TIMES_ALIKE = 10.0  # as many errors as half of them have, or fewer
_DRIVE, _SWITCH, _NVIDIA = "0x0108", "0x0680", "0x10de"
ABOVE_A_LINK = ("root_port", "downstream")


class LinkEnd(msgspec.Struct, frozen=True):
    """One function with its error counters; its link is the one to the port above it."""

    function: PciFunction
    counters: Counters
    place: CountedSubject


@behind(applicability.has_device_counters)
def link_ends(context: RuleContext) -> Iterator[LinkEnd | Result]:
    """GPUs, NICs, NVSwitches and NVMe drives, and every port above them, in the order of ids."""
    if not context.topology.pci and context.why_bus_unread:
        yield NODE.unknown(context.why_bus_unread)
    devices = [function for function in context.topology.pci if _is_relevant(context, function)]
    above = {port.id for function in devices for port in context.ancestors(function)}
    wanted = above | {function.id for function in devices}
    for function in context.topology.pci:
        if function.id in wanted:
            yield _build_end(context, function)


class CountedGpu(msgspec.Struct, frozen=True):
    """A GPU with the counters that its driver keeps of its links."""

    gpu: Gpu
    place: CountedSubject
    counters: Counters


@behind(lambda context: applicability.has_device_counters(context) or applicability.shows_gpus(context))
def counted_gpus(context: RuleContext) -> Iterator[CountedGpu | Result]:
    """Every GPU with its counters, or why it has none."""
    for gpu in context.topology.gpus:
        absent = why_unreachable(context.functions.get(gpu.pci or ""))
        about = about_gpu(gpu)
        place = CountedSubject(about.subject, about.label, about.ids)
        if absent:
            yield place.not_applicable(absent)
        else:
            counters = Counters(place.subject, gpu_counters(gpu), command_source(_counters_command(gpu)))
            yield CountedGpu(gpu, place, counters)


def _counters_command(gpu: Gpu) -> str:
    """What shows the counters of a GPU: a table of binary numbers, or a tool's output."""
    if gpu.vendor == "AMD":
        return f"xxd -e -g 8 -s 112 -l 16 /sys/bus/pci/devices/{gpu.id}/gpu_metrics"
    return ask_nvidia_smi("-q", gpu)


def error_budget(link: Link | None) -> int:
    """Errors a minute that a link of this speed and width may have; unknown ones as Gen 5 x16.

    The best speed that it can do: a GPU that idles at 2.5 GT/s in between is not held to less.
    """
    speed = (link and (link.max_speed_gt_s or link.speed_gt_s)) or 32.0
    width = (link and (link.max_width or link.width)) or 16
    return math.ceil(width * _PER_LANE.get(speed, max(_PER_LANE.values())))


def is_flit_link(context: RuleContext, function: PciFunction) -> bool:
    """Whether the link above a function sends FLITs: both its ends support 64 GT/s, as far as they are known."""
    port = context.functions.get(function.parent or "")
    speeds = [end.link.max_speed_gt_s or end.link.speed_gt_s for end in (function, port) if end and end.link]
    return min((speed for speed in speeds if speed), default=0.0) >= _FLIT_GT_S


def errors_allowed(context: RuleContext, function: PciFunction | None, alike: Sequence[float]) -> float | None:
    """Errors a minute that the link above a function may have; `alike`: what other links of its kind have.

    None: it is a FLIT link, and there are too few others.
    """
    if function is None or not is_flit_link(context, function):
        return error_budget(function.link if function else None)
    if len(alike) < _LEAST_ALIKE:
        return None
    return max(error_budget(function.link), _TIMES_ALIKE * find_median(alike))


def _too_few_alike(place: CountedSubject) -> Unknown:
    text = "links of 64 GT/s send again by design, and too few of its kind are here to compare with"
    return place.unknown("no-peers", detail=text)


def _errors_a_minute(context: RuleContext, counts: Sequence[CounterDelta | Result]) -> list[float]:
    return [scale_count(context, one.total, MINUTE) for one in counts if isinstance(one, CounterDelta) and not one.gap]


def port_above(context: RuleContext, function: PciFunction) -> PciFunction | None:
    """The other end of a function's link; for one function of a card, so that its errors are reported once."""
    if not function.id.endswith(".0"):
        return None
    port = context.functions.get(function.parent or "")
    return port if port is not None and port.port_type in ABOVE_A_LINK else None


def function_counters(function: PciFunction) -> Counters:
    """The AER counters of a function."""
    folder = f"/sys/bus/pci/devices/{function.id}/aer_dev_"
    return Counters(f"pci:{function.id}", aer_counters(function), lambda name: folder + name.partition(".")[0])


def command_source(command: str) -> Callable[[str], str]:
    """The same command for every counter."""
    return lambda name: command


def _is_relevant(context: RuleContext, function: PciFunction) -> bool:
    if function.physical_function in context.functions:
        return False
    kind = (function.class_code or "")[:6]
    nvswitch = kind == _SWITCH and function.vendor == _NVIDIA
    return function.id in context.gpu_by_pci or function.id in context.nic_by_pci or kind == _DRIVE or nvswitch


def _build_end(context: RuleContext, function: PciFunction) -> LinkEnd | Result:
    absent = why_unreachable(function)
    if absent:
        return about_function(context, function.id).not_applicable(absent)
    place = CountedSubject(
        f"pci:{function.id}",
        device_label(context, function.id),
        frozenset({function.id}),
        context.nic_by_pci.get(function.id),
    )
    return LinkEnd(function, function_counters(function), place)


_KINDS = {  # bits of AER's uncorrectable status as the kernel names them, by what has to be looked at
    **dict.fromkeys(("MalfTLP", "TLPBlockedErr", "BlockedTLP", "MCBlockedTLP", "AtomicOpBlocked"), "malformed"),
    "ACSViol": "acs",
    **dict.fromkeys(("TLP", "PoisonTLP", "PoisonTLPBlocked"), "poison"),
    **dict.fromkeys(("CmpltTO", "CmpltAbrt", "UnxCmplt"), "completion"),
    "UncorrIntErr": "inside",
}
_REQUEST = "UnsupReq"  # what a driver that probes a device provokes, too


@rule("pcie-errors-uncorrectable")
def pcie_errors_uncorrectable(context: RuleContext) -> Iterator[Result]:
    lines = [event for event in context.events if _is_lost_transaction(event)]
    stated = {fault.subject: fault for function in context.topology.pci if (fault := _judge_status(context, function))}
    for end in link_ends(context):
        if not isinstance(end, LinkEnd):
            yield end
            continue
        if end.place.subject in stated:
            continue
        answer = _judge_uncorrectable(context, end)
        own = [event for event in lines if event.subject == end.function.id]
        if own and isinstance(answer, Unknown):
            answer = fail_by_log(end.function.id, end.place.label, own, _OF_LOG, _LOST_TRANSACTION)
            answer = replace(answer, situation=_find_kind((), own))
        yield answer
    for fault in report_log_alone(context, lines, _OF_LOG, _LOST_TRANSACTION, "warning"):
        yield replace(
            fault, situation=_find_kind((), [event for event in lines if f"pci:{event.subject}" == fault.subject])
        )
    yield from stated.values()
    for function in context.topology.pci if context.why_not_counted else ():
        own = [event for event in lines if event.subject == function.id]
        if own and _is_relevant(context, function):
            fault = fail_by_log(function.id, device_label(context, function.id), own, _OF_LOG, _LOST_TRANSACTION)
            yield replace(fault, situation=_find_kind((), own))


_OF_LOG = "non-fatal PCIe errors"
_LOST_TRANSACTION = "A transaction was lost: data of the job that used the device is wrong or missing."


def _judge_status(context: RuleContext, function: PciFunction) -> Fail | None:
    """By the bits of its own status, where no counter is."""
    bits = [bit for bit in function.aer_status or () if bit != _REQUEST]
    is_judged = _is_relevant(context, function) or function.port_type in ABOVE_A_LINK
    if not bits or function.aer is not None or not is_judged:
        return None
    return about_function(context, function.id).fail(
        summary=f"errors that its link could not correct: {', '.join(bits)}, since its status was last cleared",
        impact="The status has no date: what it means depends on when the errors came. If they come again: "
        f"{_LOST_TRANSACTION[0].lower()}{_LOST_TRANSACTION[1:]}",
        evidence=(Evidence("UESta", " ".join(bits), f"lspci -vvv -s {function.id}"),),
        severity="warning",
        confidence="low",
        cause="status",
        situation=_find_kind(bits, ()),
    )


def _is_lost_transaction(event: Event) -> bool:
    """As AER spells it, and no other kind of line; one with more status bits is more than a request."""
    return "(Non-Fatal)" in event.text and (event.code != _REQUEST or "bits" in event.detail)


def _judge_uncorrectable(context: RuleContext, link_end: LinkEnd) -> Result:
    if link_end.function.aer is None:
        return link_end.place.not_applicable("not-measured", detail="no AER counters")
    answers = [
        _judge_kind(context, link_end, kind, severity)
        for kind, severity in (("fatal", "critical"), ("nonfatal", "error"))
    ]
    failure = next((answer for answer in answers if isinstance(answer, Fail)), None)
    return failure or next((answer for answer in answers if not isinstance(answer, Pass)), answers[0])


def _judge_kind(context: RuleContext, link_end: LinkEnd, kind: str, severity: str) -> Result:
    names = [
        name for name in link_end.counters.now if name.startswith(f"{kind}.") and not name.startswith(f"{kind}.TOTAL")
    ]
    count = delta(context, link_end.counters, names)
    bits = {name.partition(".")[2] for name in count.parts} if isinstance(count, CounterDelta) else set()
    harmless = bits == {_REQUEST}
    counted = Count(
        tuple(names),
        (limit("pcie-errors-uncorrectable.events", "info" if harmless else severity),),
        f"{kind} PCIe errors".replace("nonfatal", "non-fatal"),
        "None by itself: a driver or a tool asked the device for a feature that it does not have."
        if harmless
        else "After each error the link is reset or a transaction is lost, and jobs on this device fail.",
        cause="unsupported-request" if harmless else kind,
    )
    answer = counted.judge_delta(context, link_end.place, count)
    if not isinstance(answer, Fail):
        return answer
    logged = [event for event in context.events if event.kind == "aer" and event.subject == link_end.function.id]
    return replace(
        answer,
        evidence=answer.evidence + kernel_log_evidence(context, link_end.function.id),
        situation="" if harmless else _find_kind(bits, logged),
    )


def _find_kind(bits: Collection[str], logged: Sequence[Event]) -> str:
    """What the error is, where its bits are of one kind; else what the kernel log names as the first; "": the link."""
    kinds = {_KINDS.get(bit, "") for bit in bits if bit != _REQUEST}
    if len(kinds) == 1:
        return kinds.pop()
    first = next((event.code for event in logged if event.code and event.code != _REQUEST), None)
    kind = _KINDS.get(first or "", "")
    return kind if kind in kinds or not kinds else ""


_CORRECTABLE_TIMES = read_limit("pcie-errors-correctable.times_budget")
_CORRECTABLE_GRAVE = read_limit("pcie-errors-correctable.error_times_budget")
# Of the link itself; NonFatalErr is advisory, and others are of the device's inside
_OF_LINK = tuple(f"correctable.{name}" for name in ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout"))
_CORRECTED = "corrected PCIe errors"
_LOGGED = 10  # lines of the log from which on they are a note; few come at each boot
_IMPACT = "Each packet is sent again: bandwidth falls only slightly, but fatal errors often follow on such a link."
_OF_NIC = Count(
    ("rx_pci_signal_integrity", "tx_pci_signal_integrity"),
    (limit("pcie-errors-correctable.signal_per_hour", "warning"),),
    "signal integrity errors that the NIC counts",
    _IMPACT,
    cause="signal",
)
_SINGLE = "None by single ones: each packet is sent again. Many a minute lower the bandwidth of the link."


@rule("pcie-errors-correctable")
def pcie_errors_correctable(context: RuleContext) -> Iterator[Result]:
    ends = list(link_ends(context))
    flits = [end for end in ends if isinstance(end, LinkEnd) and is_flit_link(context, end.function)]
    lines = [event for event in context.events if event.kind == "aer" and event.detail.get("severity") == "corrected"]
    for link_end in ends:
        yield _judge_correctable(context, link_end, flits) if isinstance(link_end, LinkEnd) else link_end
    logged = list(report_log_alone(context, lines, _CORRECTED, _SINGLE))
    for function in context.topology.pci if context.why_not_counted else ():
        own = [event for event in lines if event.subject == function.id]
        if sum(event.count for event in own) >= _LOGGED and _is_relevant(context, function):
            logged.append(fail_by_log(function.id, device_label(context, function.id), own, _CORRECTED, _SINGLE))
    yield from (replace(fault, situation="log") for fault in logged)


def _judge_correctable(context: RuleContext, link_end: LinkEnd, flits: Sequence[LinkEnd]) -> Result:
    port = port_above(context, link_end.function)
    if link_end.function.port_type in ABOVE_A_LINK:
        return link_end.place.not_applicable(
            "judged-elsewhere", detail="judged with the device at the other end of its link"
        )
    kind = link_end.function.vendor, link_end.function.device
    others = [one for one in flits if one is not link_end and (one.function.vendor, one.function.device) == kind]
    ports = [above for one in others if (above := port_above(context, one.function))]
    counters = [(link_end.counters, [one.counters for one in others])]
    if port is not None:
        counters.append((function_counters(port), [function_counters(one) for one in ports]))
    answers = [_judge_end(context, link_end, one, alike) for one, alike in counters if one.now]
    answers += [_OF_NIC.judge(context, link_end.place, one) for one in _interfaces(context, link_end)]
    if not answers:
        return link_end.place.not_applicable("not-measured", detail="no AER counters")
    return gravest(answers)


def _judge_end(context: RuleContext, link_end: LinkEnd, counters: Counters, alike: Sequence[Counters]) -> Result:
    place, count = link_end.place, delta(context, counters, _OF_LINK)
    if not isinstance(count, CounterDelta):
        return replace(count, subject=place.subject)
    like = _errors_a_minute(context, [delta(context, one, _OF_LINK) for one in alike])
    allowed = errors_allowed(context, link_end.function, like)
    if allowed is None and count.total:
        return _too_few_alike(place)
    allowed = allowed or 1.0  # where nothing moved
    times = scale_count(context, count.total, MINUTE) / allowed
    if times <= context.threshold(_CORRECTABLE_TIMES):
        return place.unknown(count.gap) if count.gap else place.passes()
    grave = times > context.threshold(_CORRECTABLE_GRAVE)
    limit = allowed * context.threshold(_CORRECTABLE_GRAVE if grave else _CORRECTABLE_TIMES)
    return place.fail(
        summary=f"{count_of(count.total, 'correctable PCIe errors')} in {format_window(context)}, limit {limit:g}/min",
        impact=_IMPACT,
        evidence=count.evidence,
        severity=place.severity("error" if grave else "warning"),
    )


def _interfaces(context: RuleContext, link_end: LinkEnd) -> Iterator[Counters]:
    for netdev in context.topology.netdevs:
        if netdev.pci == link_end.function.id and any(name in netdev.counters for name in _OF_NIC.names):
            yield Counters(f"netdev:{netdev.id}", netdev_counters(netdev), command_source(f"ethtool -S {netdev.label}"))


_REPLAYS_TIMES = read_limit("pcie-replays.times_budget")
_REPLAYS_GRAVE = read_limit("pcie-replays.error_times_budget")
_COUNTERS = ("replays", "replay_rollovers")


@rule("pcie-replays")
def pcie_replays(context: RuleContext) -> Iterator[Result]:
    counted, others = split_subjects(counted_gpus(context))
    yield from others
    counts = {one.gpu.id: delta(context, one.counters, _COUNTERS) for one in counted}
    for one in counted:
        alike = [counts[other.gpu.id] for other in counted if other is not one and other.gpu.name == one.gpu.name]
        yield _judge_replays(context, one.gpu, one.place, counts[one.gpu.id], _errors_a_minute(context, alike))


def _judge_replays(
    context: RuleContext, gpu: Gpu, place: CountedSubject, count: CounterDelta | Result, alike: Sequence[float]
) -> Result:
    if not isinstance(count, CounterDelta):
        return place.not_applicable("not-measured", detail="its driver does not report replays")
    function = context.functions.get(gpu.pci or "")
    allowed = errors_allowed(context, function, alike)
    if allowed is None and count.total:
        return _too_few_alike(place)
    allowed = allowed or 1.0  # where nothing moved
    times = scale_count(context, count.total, MINUTE) / allowed
    if times <= context.threshold(_REPLAYS_TIMES):
        return place.unknown(count.gap) if count.gap else place.passes()
    grave = times > context.threshold(_REPLAYS_GRAVE)
    return place.fail(
        summary=f"{count.total} PCIe replays in {format_window(context)}, "
        f"limit {allowed * context.threshold(_REPLAYS_GRAVE if grave else _REPLAYS_TIMES):g}/min",
        impact=f"{times:.0f} times what is allowed here: the link may come up with half its lanes next time.",
        evidence=count.evidence,
        severity="error" if grave else "warning",
    )


_RECOVERIES = Count(
    ("l0_to_recovery",),
    (limit("pcie-recoveries.per_minute", "info"),),
    "recoveries of the PCIe link",
    "Each stops the link for microseconds; more than 6 a minute at constant clocks show that its signal is poor.",
    "medium",
)


@rule("pcie-recoveries", each=counted_gpus)
def pcie_recoveries(context: RuleContext, counted: CountedGpu) -> Result:
    gpu, place, counters = counted.gpu, counted.place, counted.counters
    if counters.now.keys().isdisjoint(_RECOVERIES.names):
        return place.not_applicable("not-measured", detail="its driver does not report recoveries")
    if gpu.pstate is None or gpu.pcie is None or gpu.pcie.generation is None or gpu.pcie.max_generation is None:
        return place.unknown("not-known", fact="whether its link keeps its speed")
    if gpu.pstate != "P0" or gpu.pcie.generation < gpu.pcie.max_generation:
        return place.not_applicable(
            "other-kind", detail="it saves power: changing the link's speed goes through recovery"
        )
    return _RECOVERIES.judge(context, place, counters)
