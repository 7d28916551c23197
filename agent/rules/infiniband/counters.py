"""InfiniBand port counters between two samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from agent.model.counters import netdev_counters, port_counters
from agent.rules import applicability
from agent.rules.applicability import behind
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    Count,
    CountedSubject,
    CounterDelta,
    Counters,
    delta,
    in_window,
    limit,
    scale_count,
    with_subject,
)
from agent.rules.infiniband.ports import IbPort, ib_ports
from agent.rules.nccl.settings import effective_settings, parse_number
from agent.rules.node_wide import on_all
from agent.rules.pages import read_limit
from agent.rules.rule import Fail, Result, Unknown, gravest, rule
from agent.rules.wording import find_median

LINK_DOWNED = "link_downed"


class IbPortCounters(msgspec.Struct, frozen=True):
    """One InfiniBand port with its counters, and those of the IPoIB interface above it."""

    ib: IbPort
    counters: Counters
    ipoib: tuple[Counters, ...]
    place: CountedSubject


def read_ports(context: RuleContext) -> Iterator[IbPortCounters | Result]:
    """Every InfiniBand port of a rail or storage NIC; an answer for every other, or for the node."""
    for port in ib_ports(context):
        yield _read_port(context, port) if isinstance(port, IbPort) else port


watch_ports = behind(applicability.has_infiniband_counters)(read_ports)


def link_went_down(context: RuleContext, port_counters: IbPortCounters) -> Result | None:
    """Why errors of this window are no evidence: the link went down, and came up with them."""
    counters = [
        delta(context, port_counters.counters, [LINK_DOWNED]),
        *(delta(context, c, ["carrier_down_count"]) for c in port_counters.ipoib),
    ]
    if any(isinstance(count, CounterDelta) and count.total for count in counters):
        return port_counters.place.not_applicable(
            "judged-elsewhere", detail="its link went down in the window: see ib-link-flap"
        )
    return None


def _read_port(context: RuleContext, ib_port: IbPort) -> IbPortCounters:
    port = ib_port.port

    def file(name: str) -> str:
        return f"{ib_port.folder}/{'hw_counters' if name in port.hw_counters else 'counters'}/{name}"

    above = [context.netdevs[name] for name in sorted(port.netdevs) if name in context.netdevs]
    plain = [netdev for netdev in above if netdev.vlan is None]
    return IbPortCounters(
        ib_port,
        Counters(ib_port.subject, port_counters(port), file),
        tuple(Counters(f"netdev:{n.id}", netdev_counters(n), _counter_source(n.label)) for n in plain),
        CountedSubject(ib_port.subject, ib_port.label, ib_port.ids, ib_port.nic),
    )


def _counter_source(label: str) -> Callable[[str], str]:
    return lambda name: f"/sys/class/net/{label}/{name}" if name.startswith("carrier_") else f"ethtool -S {label}"


_SYMBOLS = Count(
    ("symbol_error",),
    (limit("ib-symbol-errors.per_hour", "warning"),),
    "symbol errors",
    "Each damaged packet is sent again or lost; the link is degrading.",
    cause="symbol",
)
_RATIO = read_limit("ib-symbol-errors.error_ratio")
_RECOVERIES = Count(
    ("link_error_recovery",),
    (limit("ib-symbol-errors.recoveries_per_hour", "warning"),),
    "recoveries of the link",
    "Each stops the link for milliseconds to seconds; the next one may fail, and the link goes down.",
    cause="recovery",
)
_RECEIVED = Count(
    ("port_rcv_errors",),
    (limit("ib-symbol-errors.received_per_hour", "warning"),),
    "packets received with errors",
    "Each is dropped, and its sender waits for a timeout of up to 4.3 s (NCCL's default).",
    cause="received",
)
_INTEGRITY = Count(
    ("local_link_integrity_errors", "excessive_buffer_overrun_errors"),
    (limit("ib-symbol-errors.integrity_events", "warning"),),
    "link integrity errors and buffer overruns",
    "Errors beyond what the link tolerates, or credits that the other end ignores: packets are lost.",
    cause="integrity",
)


@rule("ib-symbol-errors", each=watch_ports, merge=on_all("errors on the wire on every InfiniBand port"))
def ib_symbol_errors(context: RuleContext, counters: IbPortCounters) -> Result:
    """One answer for the four counters of a link: several that are over their limit are one bad link."""
    recovered = _RECOVERIES.judge(context, counters.place, counters.counters)
    down = link_went_down(context, counters)
    if down:  # errors come with it; that it recovered before does not
        return recovered if isinstance(recovered, Fail | Unknown) else down
    answers = [
        _judge_symbol_errors(context, counters),
        _INTEGRITY.judge(context, counters.place, counters.counters),
        recovered,
        _judge_received_errors(context, counters),
    ]
    faults = [answer for answer in answers if isinstance(answer, Fail)]
    if faults:
        since = f" {in_window(context)}" if context.assumed_window else ""  # once; else a limit follows each window
        return replace(
            faults[0],  # the most severe: only symbol errors can be an error
            summary="; ".join([*(fault.summary.replace(since, "") for fault in faults[:-1]), faults[-1].summary]),
            evidence=tuple(row for fault in faults for row in fault.evidence),
        )
    return gravest(answers)


def _judge_symbol_errors(context: RuleContext, counters: IbPortCounters) -> Result:
    count = delta(context, counters.counters, _SYMBOLS.names)
    answer = _SYMBOLS.judge_delta(context, counters.place, count)
    rate, seconds = counters.ib.port.rate_gbit_s, (context.window.seconds if context.window else None)
    total = getattr(count, "total", 0)
    if not isinstance(answer, Fail) or not rate or not seconds:
        return answer
    ratio = total / (rate * 1e9 * seconds)
    return replace(
        answer,
        summary=f"{answer.summary}: {ratio:.0e} of its bits",
        severity=counters.place.severity("error" if ratio >= context.threshold(_RATIO) else "warning"),
    )


def _judge_received_errors(context: RuleContext, counters: IbPortCounters) -> Result:
    count = delta(context, counters.counters, _RECEIVED.names)
    marked = delta(context, counters.counters, ["port_rcv_remote_physical_errors"])
    kind = _RECEIVED
    if isinstance(marked, CounterDelta) and isinstance(count, CounterDelta) and marked.total >= max(count.total, 1):
        count = replace(count, evidence=count.evidence + marked.evidence)
        kind = replace(kind, what=f"{kind.what}, damaged on a link further away", cause="upstream")
    return kind.judge_delta(context, counters.place, count)


_XMIT_DISCARDS = Count(
    ("port_xmit_discards",),
    (limit("ib-xmit-discards.in_10_minutes", "warning"),),
    "outbound packets discarded",
    "Each is sent again after a timeout of up to 4.3 s (NCCL's default).",
)


@rule("ib-xmit-discards", each=watch_ports, merge=on_all("discards on every InfiniBand port"))
def ib_xmit_discards(context: RuleContext, counters: IbPortCounters) -> Result:
    return link_went_down(context, counters) or _XMIT_DISCARDS.judge(context, counters.place, counters.counters)


_TIMES = read_limit("ib-xmit-wait.times_median")
_TICKS = read_limit("ib-xmit-wait.ticks_per_second")
_LEAST_SIBLINGS = 2


@rule("ib-xmit-wait")
def ib_xmit_wait(context: RuleContext) -> Iterator[Result]:
    waits: list[tuple[IbPortCounters, CounterDelta]] = []
    for counters in watch_ports(context):
        if not isinstance(counters, IbPortCounters):
            yield counters
        elif counters.ib.nic.role != "rail" or counters.ib.port.state != "ACTIVE":
            yield counters.place.not_applicable("not-in-use", detail="no active rail")
        else:
            count = delta(context, counters.counters, ["port_xmit_wait"])
            if isinstance(count, CounterDelta):
                waits.append((counters, count))
            else:
                yield with_subject(counters.place, count)
    for counters, count in waits:
        yield _judge_xmit_wait(
            context, counters, count, [other.total for port, other in waits if port is not counters and not other.gap]
        )


def _judge_xmit_wait(context: RuleContext, counters: IbPortCounters, count: CounterDelta, others: list[int]) -> Result:
    place = counters.place
    if count.gap:
        return place.unknown(count.gap)
    if len(others) < _LEAST_SIBLINGS:
        return place.not_applicable("nothing-to-compare", detail="fewer than three rails: nothing to compare with")
    usual_share = find_median(others)
    if (
        scale_count(context, count.total, 1.0) < context.threshold(_TICKS)
        or count.total <= context.threshold(_TIMES) * usual_share
    ):
        return place.passes()
    return place.fail(
        summary=f"waited {count.total} ticks to send {in_window(context)}; the other rails {usual_share:.0f}, "
        f"limit {context.threshold(_TIMES):g} times that",
        impact="Collectives wait for this rail while the others could carry more.",
        evidence=count.evidence,
        severity="info",
        confidence="medium",
    )


_CONSTRAINT_ERRORS = Count(
    ("port_xmit_constraint_errors", "port_rcv_constraint_errors"),
    (limit("ib-constraint-errors.per_hour", "warning"),),
    "packets that its partitions forbid",
    "That traffic is dropped: the two ends are in different partitions.",
    "medium",
)


@rule("ib-constraint-errors", each=watch_ports, merge=on_all("partition violations on every InfiniBand port"))
def ib_constraint_errors(context: RuleContext, counters: IbPortCounters) -> Result:
    return _CONSTRAINT_ERRORS.judge(context, counters.place, counters.counters)


_ROUTING = "NCCL_IB_ADAPTIVE_ROUTING"
_IMPACT = "A lossless fabric has none of these: each costs a timeout of up to 4.3 s, and after about 30 s the job."
_TIMEOUTS, _BROKEN, _SEQUENCE = (
    Count((name,), (limit(f"ib-hwcounter-transport.{limited}", "warning"),), what, _IMPACT, cause=name)
    for name, limited, what in (
        ("local_ack_timeout_err", "timeouts_per_minute", "ACK timeouts"),
        ("req_transport_retries_exceeded", "retries_exceeded_per_hour", "queue pairs gave up (retries exceeded)"),
        ("packet_seq_err", "sequence_per_minute", "sequence errors without adaptive routing"),
    )
)


@rule("ib-hwcounter-transport", each=watch_ports, merge=on_all("transport errors on every InfiniBand port"))
def ib_hwcounter_transport(context: RuleContext, counters: IbPortCounters) -> Result:
    down = link_went_down(context, counters)
    if down:
        return down
    ordered = [parse_number(setting.value) for setting in effective_settings(context, _ROUTING)]
    kinds = (_TIMEOUTS, _BROKEN, *((_SEQUENCE,) if set(ordered) == {0} else ()))
    return gravest(kind.judge(context, counters.place, counters.counters) for kind in kinds)
