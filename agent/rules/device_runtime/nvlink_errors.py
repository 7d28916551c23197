"""nvlink-errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.device_runtime.links import called, gpus
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import HOUR, Counters, Limit, Place, Words, judged, moved
from agent.rules.threshold import Threshold

_REPLAYS = Threshold("nvlink-errors.in_10_minutes", 10, "replays and recoveries of one link in ten minutes: an error")
_CRC = Threshold("nvlink-errors.crc_per_hour", 60, "CRC errors an hour of one link: a warning")
_CRC_ERROR = Threshold("nvlink-errors.crc_per_second", 100, "CRC errors a second of one link: an error")
_LOST = Threshold("nvlink-errors.lost", 1, "packets lost or damaged, or failed recoveries, of one link: an error")
_RECOVERED = Threshold("nvlink-errors.recovered_per_hour", 1, "successful recoveries an hour of one link: a warning")
_SYMBOLS = Threshold("nvlink-errors.symbols_per_hour", 10, "symbol and effective errors an hour of one link: a warning")
_FLOOR = Threshold("nvlink-errors.ber", 1e-12, "symbol bit error rate, above which errors that moved are an error")
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


@rule(
    "nvlink-errors",
    "error",
    needs=("nvml|nvidia_smi",),
    references=("NVL-007", "NVL-008"),
    thresholds=(_REPLAYS, _CRC, _CRC_ERROR, _LOST, _RECOVERED, _SYMBOLS, _FLOOR),
)
def nvlink_errors(case: Case) -> Iterator[Answer]:
    """An NVLink has errors.

    ## What it checks
    How the error counters of every NVLink moved: replays, recoveries and CRC errors up to Hopper; lost and damaged
    packets, recoveries and symbol errors of NVLink 5.

    ## Why it matters
    Each link carries 25 GB/s in each direction on an H100, 50 on a B200. What fails is sent again, and a collective
    over 8 GPUs runs at the pace of the slowest link; a failed recovery ends the job.

    ## How it is decided
    Up to Hopper: ten replays and recoveries in ten minutes, or 100 CRC errors a second: error; 60 CRC errors an hour:
    warning. NVLink 5: one packet lost or damaged, or one failed recovery: error; a successful recovery an hour, or ten
    symbol errors an hour: warning, an error where the symbol bit error rate is above 10^-12, too. Several links of one
    GPU are one finding.

    ## What keeps it silent
    - What counters stand at, and bit error rates by themselves: `15e-255` is the floor, and means none was seen.
    - GPUs without NVLink, with MIG, without driver, gone or asleep: not applicable.
    - An inactive link: nvlink-inactive is the cause, and stands for it.
    - No earlier sample, or counters that a new driver or a reset began anew: unknown.

    ## How to confirm
    `nvidia-smi nvlink -e -i GPU`, twice

    ## How to fix
    Look for Xid 74 (up to Hopper) or 144 to 150, and SXid lines. Reset all GPUs and the fabric manager; a link that
    errs again: the GPU module, its socket or the NVSwitch; bridged cards: reseat the bridge.

    ## Source
    DCGM health checks of NVLink (1 a minute, 100 CRC errors a second); nvml.h, fields 161 to 163 and 206 to 222.
    """
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
    here = Place(subject, f"{gpu.label} NVLink {link.link}", place.places | {f"{gpu.id}/{link.link}"})
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
    )
