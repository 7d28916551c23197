"""NVLink and C2C error counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import Count, CountedSubject, Counters, limit
from agent.rules.devices import ask_nvidia_smi, is_nvidia
from agent.rules.pages import read_limit
from agent.rules.pcie.counters import CountedGpu, command_source, counted_gpus
from agent.rules.rule import Fail, Result, gravest, rule
from agent.rules.wording import format_ranges

_FLOOR = read_limit("nvlink-errors.ber")
_IMPACT = "Lost data is sent again while all GPUs wait: a collective runs at the speed of its slowest link."
_PACKETS = (
    *("malformed_packets", "buffer_overruns", "receive", "receive_remote", "receive_general"),
    *("local_link_integrity", "transmit_discards"),
)
# Counters, limit, and what is reported of them: of links up to Hopper, then of NVLink 5; the most severe first
_KINDS = tuple(
    Count(names, (limit(f"nvlink-errors.{limited}", severity),), what, _IMPACT, cause=names[0])
    for names, limited, severity, what in (
        (("replay", "recovery"), "in_10_minutes", "error", "replays and recoveries"),
        (("crc",), "crc_per_second", "error", "CRC errors"),
        (("recoveries_failed",), "lost", "error", "failed recoveries"),
        (_PACKETS, "lost", "error", "packets lost or damaged"),
        (("recoveries_successful",), "recovered_per_hour", "warning", "recoveries"),
        (("symbol", "effective"), "symbols_per_hour", "warning", "symbol errors"),
        (("crc",), "crc_per_hour", "warning", "CRC errors"),
    )
)
_BER = "symbol_ber_packed"


@rule("nvlink-errors")
def nvlink_errors(context: RuleContext) -> Iterator[Result]:
    for counted in counted_gpus(context):
        if isinstance(counted, CountedGpu):
            yield from _judge_gpu(context, counted.gpu, counted.place)
        else:
            yield counted


def _judge_gpu(context: RuleContext, gpu: Gpu, place: CountedSubject) -> Iterator[Result]:
    if not is_nvidia(context, gpu):
        yield place.not_applicable("no-such-device", detail="not of NVIDIA: no NVLink")
        return
    if not gpu.links:
        if gpu.links_known or gpu.driver_state != "open":
            yield place.not_applicable(
                quote_source(gpu.links_reason, "no-such-device") or Reason("no-such-device", detail="no NVLinks")
            )
        else:
            yield place.unknown(quote_source(gpu.links_reason) or Reason("not-read", fact="its NVLinks"))
        return
    if gpu.links[0].protocol != "nvlink":
        yield place.not_applicable("no-such-device", detail="no NVLinks")
        return
    counting = [link for link in gpu.links if link.errors]
    if not counting:
        yield place.unknown("not-read", fact="the error counters of its NVLinks")
    answers = [(link, _judge_link(context, gpu, link)) for link in counting]
    faults = [(link, answer) for link, answer in answers if isinstance(answer, Fail)]
    yield from (answer for _, answer in answers if not isinstance(answer, Fail))
    yield from _merge_links(place, faults)


def _judge_link(context: RuleContext, gpu: Gpu, link: GpuLink) -> Result:
    subject = f"link:{gpu.id}/{link.link}"
    here = CountedSubject(subject, f"{gpu.label} NVLink {link.link}", frozenset({f"{gpu.id}/{link.link}"}))
    counters = Counters(subject, link.errors, command_source(f"{ask_nvidia_smi('nvlink -e', gpu)} -l {link.link}"))
    answers: list[Result] = []
    for kind in _KINDS:
        answer = kind.judge(context, here, counters)
        if isinstance(answer, Fail):
            return _severity_by_error_rate(context, link, answer) if "symbol" in kind.names else answer
        answers.append(answer)
    return gravest(answers)


def _severity_by_error_rate(context: RuleContext, link: GpuLink, fault: Fail) -> Fail:
    """Symbol errors moved: their bit error rate since the last reset shows how severe it is."""
    packed = link.errors.get(_BER)
    if packed is None or not 0 <= packed < 1 << 12:
        return fault
    rate = (packed >> 8) * 10.0 ** -(packed & 0xFF)
    row = Evidence("symbol bit error rate", f"{rate:.0e}", fault.evidence[0].source)
    severity = "error" if rate > context.threshold(_FLOOR) else fault.severity
    return replace(fault, severity=severity, evidence=(*fault.evidence, row))


def _merge_links(place: CountedSubject, faults: Sequence[tuple[GpuLink, Fail]]) -> Iterator[Fail]:
    """Several links of one GPU are one fault: the GPU, its socket, or what is behind all of them."""
    if len(faults) < 2:
        yield from (fault for _, fault in faults)
        return
    worst = min((fault for _, fault in faults), key=lambda fault: fault.severity != "error")
    yield replace(
        worst,
        subject=place.subject,
        label=place.label,
        summary=f"errors on NVLinks {format_ranges(link.link for link, _ in faults)}; the worst: {worst.summary}",
        evidence=tuple(row for _, fault in faults for row in fault.evidence[:2])[:8],
        cause="several",
        ids=frozenset().union(*(fault.ids for _, fault in faults)),
        parts=tuple(fault for _, fault in faults),
    )


_C2C = Count(
    ("c2c_interrupts", "c2c_replays", "c2c_replays_back_to_back"),
    (limit("c2c-errors.error_per_minute", "error"), limit("c2c-errors.per_hour", "warning")),
    "errors and replays of NVLink-C2C",
    "The link between CPU and GPU (450 GB/s in each direction on a GH200) loses time to retries.",
)


@rule("c2c-errors", each=counted_gpus)
def c2c_errors(context: RuleContext, counted: CountedGpu) -> Result:
    place, counters = counted.place, counted.counters
    if not any(name in counters.now for name in _C2C.names):
        return place.not_applicable("not-measured", detail="no C2C, or its driver does not report its errors")
    return _C2C.judge(context, place, counters)
