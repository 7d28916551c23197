"""InfiniBand port counters between two samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from agent.model.counters import netdev_counters, port_counters
from agent.model.reasons import Reason
from agent.rules import gates
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    HOUR,
    MINUTE,
    CounterDelta,
    Counters,
    FailureText,
    Limit,
    Subject,
    delta,
    format_window,
    judge_count,
    scale_count,
    with_subject,
)
from agent.rules.infiniband.ports import IbPort, ib_ports
from agent.rules.nccl.settings import effective_settings, parse_number
from agent.rules.node_wide import aggregate_node_wide
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import find_median

LINK_DOWNED = "link_downed"


class IbPortCounters(msgspec.Struct, frozen=True):
    """One InfiniBand port with its counters, and those of the IPoIB interface above it."""

    ib: IbPort
    counters: Counters
    ipoib: tuple[Counters, ...]
    place: Subject


def watch_ports(case: RuleContext) -> Iterator[IbPortCounters | Result]:
    """Every InfiniBand port of a rail or storage NIC; an answer for every other, or for the node."""
    shut = gates.has_infiniband_counters(case)
    if shut is not None:
        yield shut
        return
    yield from read_ports(case)


def read_ports(case: RuleContext) -> Iterator[IbPortCounters | Result]:
    """The same, also where there is no earlier sample."""
    for port in ib_ports(case):
        yield _read_port(case, port) if isinstance(port, IbPort) else port


def for_each_port(
    case: RuleContext, judge: Callable[[RuleContext, IbPortCounters], Result], alike: str
) -> Iterator[Result]:
    """What a rule says of every port; one finding where all have the fault: "`alike` on every InfiniBand port"."""
    answers = (judge(case, port) if isinstance(port, IbPortCounters) else port for port in watch_ports(case))
    yield from aggregate_node_wide(answers, f"{alike} on every InfiniBand port")


def link_went_down(case: RuleContext, port_counters: IbPortCounters) -> Result | None:
    """Why errors of this window prove nothing: the link went down, and came up with them."""
    counters = [
        delta(case, port_counters.counters, [LINK_DOWNED]),
        *(delta(case, c, ["carrier_down_count"]) for c in port_counters.ipoib),
    ]
    if any(isinstance(count, CounterDelta) and count.total for count in counters):
        return NotApplicable(
            port_counters.place.subject,
            Reason("judged-elsewhere", detail="its link went down in the window: see ib-link-flap"),
        )
    return None


def _read_port(case: RuleContext, ib_port: IbPort) -> IbPortCounters:
    port = ib_port.port
    folder = f"/sys/class/infiniband/{ib_port.nic.rdma_device or ib_port.nic.label}/ports/{port.port}"

    def file(name: str) -> str:
        return f"{folder}/{'hw_counters' if name in port.hw_counters else 'counters'}/{name}"

    above = [case.netdevs[name] for name in sorted(port.netdevs) if name in case.netdevs]
    plain = [netdev for netdev in above if netdev.vlan is None]
    return IbPortCounters(
        ib_port,
        Counters(ib_port.subject, port_counters(port), file),
        tuple(Counters(f"netdev:{n.id}", netdev_counters(n), _counter_source(n.label)) for n in plain),
        Subject(ib_port.subject, ib_port.label, ib_port.places, ib_port.nic),
    )


def _counter_source(label: str) -> Callable[[str], str]:
    return lambda name: f"/sys/class/net/{label}/{name}" if name.startswith("carrier_") else f"ethtool -S {label}"


_PER_HOUR = read_limit("ib-symbol-errors.per_hour")
_RATIO = read_limit("ib-symbol-errors.error_ratio")
_RECOVERIES = read_limit("ib-symbol-errors.recoveries_per_hour")
_RECEIVED = read_limit("ib-symbol-errors.received_per_hour")
_INTEGRITY = read_limit("ib-symbol-errors.integrity_events")


@rule("ib-symbol-errors")
def ib_symbol_errors(case: RuleContext) -> Iterator[Result]:
    yield from for_each_port(case, _judge_wire, "errors on the wire")


def _judge_wire(case: RuleContext, counters: IbPortCounters) -> Result:
    """One answer for the four counters of a link: several that are over their limit are one bad link."""
    recovered = _judge_recoveries(case, counters)
    down = link_went_down(case, counters)
    if down:  # errors come with it; that it recovered before does not
        return recovered if isinstance(recovered, Fail | Unknown) else down
    answers = [
        _judge_symbol_errors(case, counters),
        _judge_link_integrity(case, counters),
        recovered,
        _judge_received_errors(case, counters),
    ]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    if faults:
        return replace(
            faults[0],  # the gravest: only symbol errors can be an error
            summary="; ".join(fault.summary for fault in faults),
            evidence=tuple(row for fault in faults for row in fault.evidence),
        )
    return next((a for kind in (Unknown, Pass) for a in answers if isinstance(a, kind)), answers[0])


def _judge_symbol_errors(case: RuleContext, counters: IbPortCounters) -> Result:
    words = FailureText(
        "symbol errors", "Each damaged packet is sent again or lost; the link is degrading.", cause="symbol"
    )
    count = delta(case, counters.counters, ["symbol_error"])
    answer = judge_count(case, counters.place, count, (Limit(_PER_HOUR, "warning", HOUR),), words)
    rate, seconds = counters.ib.port.rate_gbit_s, (case.window.seconds if case.window else None)
    total = getattr(count, "total", 0)
    if not isinstance(answer, Fail) or not rate or not seconds:
        return answer
    ratio = total / (rate * 1e9 * seconds)
    return replace(
        answer,
        summary=f"{answer.summary}: {ratio:.0e} of its bits",
        severity=counters.place.severity("error" if ratio >= case.threshold(_RATIO) else "warning"),
    )


def _judge_recoveries(case: RuleContext, counters: IbPortCounters) -> Result:
    words = FailureText(
        "recoveries of the link",
        "Each stops the link for milliseconds to seconds; the next one may fail, and the link goes down.",
        cause="recovery",
    )
    count = delta(case, counters.counters, ["link_error_recovery"])
    return judge_count(case, counters.place, count, (Limit(_RECOVERIES, "warning", HOUR),), words)


def _judge_received_errors(case: RuleContext, counters: IbPortCounters) -> Result:
    count = delta(case, counters.counters, ["port_rcv_errors"])
    marked = delta(case, counters.counters, ["port_rcv_remote_physical_errors"])
    upstream = False
    if isinstance(marked, CounterDelta) and isinstance(count, CounterDelta) and marked.total >= max(count.total, 1):
        upstream, count = True, replace(count, evidence=count.evidence + marked.evidence)
    words = FailureText(
        "packets received with errors" + (", damaged on a link further away" if upstream else ""),
        "Each is dropped, and its sender waits for a timeout of up to 4.3 s (NCCL's default).",
        cause="upstream" if upstream else "received",
    )
    return judge_count(case, counters.place, count, (Limit(_RECEIVED, "warning", HOUR),), words)


def _judge_link_integrity(case: RuleContext, counters: IbPortCounters) -> Result:
    words = FailureText(
        "link integrity errors and buffer overruns",
        "Errors beyond what the link tolerates, or credits that the other end ignores: packets are lost.",
        cause="integrity",
    )
    count = delta(case, counters.counters, ["local_link_integrity_errors", "excessive_buffer_overrun_errors"])
    return judge_count(case, counters.place, count, (Limit(_INTEGRITY, "warning"),), words)


_XMIT_DISCARDS_COUNTERS = ("port_xmit_discards",)
_XMIT_DISCARDS_LIMIT = read_limit("ib-xmit-discards.in_10_minutes")
_XMIT_DISCARDS_WORDS = FailureText(
    "outbound packets discarded",
    "Each is sent again after a timeout of up to 4.3 s (NCCL's default).",
)


@rule("ib-xmit-discards")
def ib_xmit_discards(case: RuleContext) -> Iterator[Result]:
    yield from for_each_port(case, _judge_xmit_discards, "discards")


def _judge_xmit_discards(case: RuleContext, counters: IbPortCounters) -> Result:
    down = link_went_down(case, counters)
    if down:
        return down
    return judge_count(
        case,
        counters.place,
        delta(case, counters.counters, _XMIT_DISCARDS_COUNTERS),
        (Limit(_XMIT_DISCARDS_LIMIT, "warning", 600.0),),
        _XMIT_DISCARDS_WORDS,
    )


_TIMES = read_limit("ib-xmit-wait.times_median")
_TICKS = read_limit("ib-xmit-wait.ticks_per_second")
_LEAST_SIBLINGS = 2


@rule("ib-xmit-wait")
def ib_xmit_wait(case: RuleContext) -> Iterator[Result]:
    waits: list[tuple[IbPortCounters, CounterDelta]] = []
    for counters in watch_ports(case):
        if not isinstance(counters, IbPortCounters):
            yield counters
        elif counters.ib.nic.role != "rail" or counters.ib.port.state != "ACTIVE":
            yield NotApplicable(counters.place.subject, Reason("not-in-use", detail="no active rail"))
        else:
            count = delta(case, counters.counters, ["port_xmit_wait"])
            if isinstance(count, CounterDelta):
                waits.append((counters, count))
            else:
                yield with_subject(counters.place, count)
    for counters, count in waits:
        yield _judge_xmit_wait(
            case, counters, count, [other.total for port, other in waits if port is not counters and not other.gap]
        )


def _judge_xmit_wait(case: RuleContext, counters: IbPortCounters, count: CounterDelta, others: list[int]) -> Result:
    place = counters.place
    if count.gap:
        return Unknown(place.subject, count.gap)
    if len(others) < _LEAST_SIBLINGS:
        return NotApplicable(
            place.subject, Reason("nothing-to-compare", detail="fewer than three rails: nothing to compare with")
        )
    usual_share = find_median(others)
    if (
        scale_count(case, count.total, 1.0) < case.threshold(_TICKS)
        or count.total <= case.threshold(_TIMES) * usual_share
    ):
        return Pass(place.subject)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"waited {count.total} ticks to send in {format_window(case)}; the other rails {usual_share:.0f}, "
        f"limit {case.threshold(_TIMES):g} times that",
        impact="Collectives wait for this rail while the others could carry more.",
        evidence=count.evidence,
        severity="info",
        confidence="medium",
        places=place.places,
    )


_CONSTRAINT_ERRORS_COUNTERS = ("port_xmit_constraint_errors", "port_rcv_constraint_errors")
_CONSTRAINT_ERRORS_LIMIT = read_limit("ib-constraint-errors.per_hour")
_CONSTRAINT_ERRORS_WORDS = FailureText(
    "packets that its partitions forbid",
    "That traffic is dropped: the two ends are in different partitions.",
    "medium",
)


@rule("ib-constraint-errors")
def ib_constraint_errors(case: RuleContext) -> Iterator[Result]:
    yield from for_each_port(case, _judge_constraint_errors, "partition violations")


def _judge_constraint_errors(case: RuleContext, counters: IbPortCounters) -> Result:
    return judge_count(
        case,
        counters.place,
        delta(case, counters.counters, _CONSTRAINT_ERRORS_COUNTERS),
        (Limit(_CONSTRAINT_ERRORS_LIMIT, "warning", HOUR),),
        _CONSTRAINT_ERRORS_WORDS,
    )


_TIMEOUTS = read_limit("ib-hwcounter-transport.timeouts_per_minute")
_BROKEN = read_limit("ib-hwcounter-transport.retries_exceeded_per_hour")
_SEQUENCE = read_limit("ib-hwcounter-transport.sequence_per_minute")
_ROUTING = "NCCL_IB_ADAPTIVE_ROUTING"
_IMPACT = "A lossless fabric has none of these: each costs a timeout of up to 4.3 s, and after about 30 s the job."
_KINDS = (
    ("local_ack_timeout_err", Limit(_TIMEOUTS, "warning", MINUTE), "ACK timeouts"),
    ("req_transport_retries_exceeded", Limit(_BROKEN, "warning", HOUR), "queue pairs gave up (retries exceeded)"),
)
_ORDERED = ("packet_seq_err", Limit(_SEQUENCE, "warning", MINUTE), "sequence errors without adaptive routing")


@rule("ib-hwcounter-transport")
def ib_hwcounter_transport(case: RuleContext) -> Iterator[Result]:
    yield from for_each_port(case, _judge_transport, "transport errors")


def _judge_transport(case: RuleContext, counters: IbPortCounters) -> Result:
    down = link_went_down(case, counters)
    if down:
        return down
    ordered = [parse_number(setting.value) for setting in effective_settings(case, _ROUTING)]
    kinds = [*_KINDS, _ORDERED] if set(ordered) == {0} else list(_KINDS)
    answers = [
        judge_count(
            case,
            counters.place,
            delta(case, counters.counters, [name]),
            (limit,),
            FailureText(what, _IMPACT, cause=name),
        )
        for name, limit, what in kinds
    ]
    return next((a for kind in (Fail, Unknown, Pass) for a in answers if isinstance(a, kind)), answers[0])
