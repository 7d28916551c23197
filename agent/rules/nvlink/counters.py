"""NVLink and C2C error counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.pages import read_limit
from agent.rules.pcie.counters import called, gpus
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import HOUR, MINUTE, Counters, Limit, Place, Words, judged, moved

_REPLAYS = read_limit("nvlink-errors.in_10_minutes")
_CRC = read_limit("nvlink-errors.crc_per_hour")
_CRC_ERROR = read_limit("nvlink-errors.crc_per_second")
_LOST = read_limit("nvlink-errors.lost")
_RECOVERED = read_limit("nvlink-errors.recovered_per_hour")
_SYMBOLS = read_limit("nvlink-errors.symbols_per_hour")
_FLOOR = read_limit("nvlink-errors.ber")
_IMPACT = "What is lost is sent again at the cost of all GPUs: a collective runs at the pace of its slowest link."
_REMEDY = "Look for Xid 74 or 144-150 in the kernel log; reset the GPUs; then the module, its socket, the NVSwitch."
_PACKETS = (
    *("malformed_packets", "buffer_overruns", "receive", "receive_remote", "receive_general"),
    *("local_link_integrity", "transmit_discards"),
)
# Counters, limit, and what is said of them: of links up to Hopper, then of NVLink 5; the gravest first
_KINDS: tuple[tuple[tuple[str, ...], Limit, str], ...] = (
    (("replay", "recovery"), Limit(_REPLAYS, "error", 600.0), "replays and recoveries"),
    (("crc",), Limit(_CRC_ERROR, "error", 1.0), "CRC errors"),
    (("recoveries_failed",), Limit(_LOST, "error"), "failed recoveries"),
    (
        _PACKETS,
        Limit(_LOST, "error"),
        "packets lost or damaged",
    ),
    (("recoveries_successful",), Limit(_RECOVERED, "warning", HOUR), "recoveries"),
    (("symbol", "effective"), Limit(_SYMBOLS, "warning", HOUR), "symbol errors"),
    (("crc",), Limit(_CRC, "warning", HOUR), "CRC errors"),
)
_BER = "symbol_ber_packed"


@rule("nvlink-errors")
def nvlink_errors(case: Case) -> Iterator[Answer]:
    for each in gpus(case):
        if isinstance(each[0], Gpu):
            yield from _of_gpu(case, each[0], each[1])
        else:
            yield each


def _of_gpu(case: Case, gpu: Gpu, place: Place) -> Iterator[Answer]:
    if not gpu.links:
        if gpu.links_known or gpu.driver_state != "open":
            yield NotApplicable(place.subject, gpu.links_reason or "no NVLinks")
        else:
            yield Unknown(place.subject, gpu.links_reason or "its NVLinks could not be read")
        return
    counting = [link for link in gpu.links if link.errors]
    if not counting:
        yield Unknown(place.subject, "the error counters of its NVLinks could not be read")
    answers = [(link, _of_link(case, gpu, link, place)) for link in counting]
    faults = [(link, answer) for link, answer in answers if isinstance(answer, Fail)]
    yield from (answer for _, answer in answers if not isinstance(answer, Fail))
    yield from _as_one(place, faults)


def _of_link(case: Case, gpu: Gpu, link: GpuLink, place: Place) -> Answer:
    subject = f"link:{gpu.id}/{link.link}"
    which = f" -i {gpu.index}" if gpu.index is not None else ""
    here = Place(subject, f"{gpu.label} NVLink {link.link}", frozenset({f"{gpu.id}/{link.link}"}))
    counters = Counters(subject, link.errors, called(f"nvidia-smi nvlink -e{which} -l {link.link}"))
    answers: list[Answer] = []
    for names, limit, what in _KINDS:
        count = moved(case, counters, names)
        answer = judged(case, here, count, (limit,), Words(what, _IMPACT, _REMEDY, cause=names[0]))
        if isinstance(answer, Fail):
            return _with_rate(case, link, answer) if "symbol" in names else answer
        answers.append(answer)
    return next((a for kind in (Unknown, Pass) for a in answers if isinstance(a, kind)), answers[0])


def _with_rate(case: Case, link: GpuLink, fault: Fail) -> Fail:
    """Symbol errors moved: their bit error rate since the last reset tells how grave it is."""
    packed = link.errors.get(_BER)
    if packed is None or not 0 <= packed < 1 << 12:
        return fault
    rate = (packed >> 8) * 10.0 ** -(packed & 0xFF)
    row = Evidence(what="symbol bit error rate", value=f"{rate:.0e}", source=fault.evidence[0].source)
    severity = "error" if rate > case.threshold(_FLOOR) else fault.severity
    return fault._replace(severity=severity, evidence=(*fault.evidence, row))


def _as_one(place: Place, faults: Sequence[tuple[GpuLink, Fail]]) -> Iterator[Fail]:
    """Several links of one GPU are one fault: the GPU, its socket, or what is behind all of them."""
    if len(faults) < 2:
        yield from (fault for _, fault in faults)
        return
    worst = min((fault for _, fault in faults), key=lambda fault: fault.severity != "error")
    yield worst._replace(
        subject=place.subject,
        label=place.label,
        summary=f"errors on NVLinks {ranges(link.link for link, _ in faults)}; the worst: {worst.summary}",
        evidence=tuple(row for _, fault in faults for row in fault.evidence[:2])[:8],
        cause="several",
        places=frozenset().union(*(fault.places for _, fault in faults)),
        parts=tuple(fault for _, fault in faults),
    )


_PER_HOUR = read_limit("c2c-errors.per_hour")
_PER_MINUTE = read_limit("c2c-errors.error_per_minute")
_COUNTERS = ("c2c_interrupts", "c2c_replays", "c2c_replays_back_to_back")
_WORDS = Words(
    "errors and replays of NVLink-C2C",
    "The way between CPU and GPU (450 GB/s in each direction on a GH200) loses time to what is sent again.",
    "Look for Xid 121 in the kernel log; reset the GPU; power cycle the tray; then its maker.",
)


@rule("c2c-errors")
def c2c_errors(case: Case) -> Iterator[Answer]:
    for each in gpus(case):
        yield _judge_c2c_errors(case, *each) if isinstance(each[0], Gpu) else each


def _judge_c2c_errors(case: Case, gpu: Gpu, place: Place, counters: Counters) -> Answer:
    del gpu
    if not any(name in counters.now for name in _COUNTERS):
        return NotApplicable(place.subject, "no C2C, or its driver does not tell its errors")
    limits = (Limit(_PER_MINUTE, "error", MINUTE), Limit(_PER_HOUR, "warning", HOUR))
    return judged(case, place, moved(case, counters, _COUNTERS), limits, _WORDS)
