"""Congestion, discards and traffic classes in use, by the counters of RoCE ports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from agent.model.finding import Evidence
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.counter_deltas import (
    Count,
    CounterDelta,
    delta,
    format_window,
    in_window,
    limit,
    why_settling,
    with_subject,
)
from agent.rules.node_wide import aggregate_node_wide, on_all
from agent.rules.pages import Threshold, read_limit
from agent.rules.roce.pause import judge_received_pauses
from agent.rules.roce.port_counters import (
    RocePortCounters,
    delta_by_priority,
    delta_of_discards,
    lossless_priorities,
    rdma_bytes,
    rdma_packets,
    roce_priorities,
    watch_interfaces,
    watch_ports,
)
from agent.rules.rule import Fail, Result, gravest, rule

_PRIORITY = r"rx_prio(\d)_"
_DISCARDS = Count(
    (),  # by its driver: `delta_of_discards`
    (limit("roce-rt-rx-discards.per_minute", "error"), limit("roce-rt-rx-discards.events", "warning")),
    "received frames discarded",
    "Each makes its sender repeat what followed: throughput collapses above about 1% loss, and collectives wait.",
)


@rule("roce-rt-rx-discards", each=watch_interfaces, merge=on_all("discards of received frames on every RoCE port"))
def roce_rt_rx_discards(context: RuleContext, counters: RocePortCounters) -> Result:
    count, carrying = delta_of_discards(context, counters), roce_priorities(context, counters)
    foreign = isinstance(count, CounterDelta) and _is_foreign(count, carrying)
    if not foreign:
        kind = replace(_DISCARDS, confidence="high" if carrying else "medium", remedy=_remedy(counters))
        return kind.judge_delta(context, counters.place, count)
    what, impact = f"{_DISCARDS.what}, none of a priority of RoCE", "TCP sends them again; RoCE loses nothing."
    answer = replace(_DISCARDS, what=what, impact=impact, cause="other-class").judge_delta(
        context, counters.place, count
    )
    return replace(answer, severity="info") if isinstance(answer, Fail) else answer


def _is_foreign(count: CounterDelta, carrying: frozenset[int] | None) -> bool:
    """Every discard is of a priority that carries no RoCE."""
    if not carrying:
        return False
    matches = [re.match(_PRIORITY, name) for name in count.parts]
    return all(m is not None and int(m[1]) not in carrying for m in matches)


def _remedy(counters: RocePortCounters) -> str:
    on = lossless_priorities(counters)
    state = "not known" if on is None else ", ".join(map(str, sorted(on))) or "off"
    return f"PFC here: {state}. Put RoCE into a class with PFC and headroom, on hosts and switches alike."


_CLASS_USAGE_SHARE = read_limit("roce-rt-class-usage.percent")
_BYTES = read_limit("roce-rt-class-usage.gbyte")
_MOSTLY = 0.8  # so much of a port's bytes must be RDMA: TCP has its own class
_CLEAR = 0.6  # a priority dominates with so much of the bytes


@rule("roce-rt-class-usage", each=watch_interfaces, merge=on_all("RDMA outside its class on every RoCE port"))
def roce_rt_class_usage(context: RuleContext, counters: RocePortCounters) -> Result:
    about = counters.place
    sent = delta_by_priority(context, counters, "tx_prio{}_bytes")
    received = delta_by_priority(context, counters, "rx_prio{}_bytes")
    if not sent or not received or why_settling(context):
        why = delta(context, counters.eth, ["tx_prio0_bytes"])
        if not isinstance(why, CounterDelta):
            return with_subject(counters.place, why)
        return about.unknown(why.gap or Reason("not-shown", detail="its bytes by priority are not known"))
    rdma = rdma_bytes(context, counters)
    if rdma is None:
        return about.unknown("not-shown", detail="its RDMA bytes are not counted")
    total = sum(sent.values())
    if rdma < context.threshold(_BYTES) * 1e9:
        return about.not_applicable(
            "nothing-to-compare", detail=f"{rdma / 1e9:.1f} GB of RDMA sent {in_window(context)}: too little to judge"
        )
    if rdma < _MOSTLY * total:
        return about.not_applicable("other-kind", detail="much of what it sends is not RDMA")
    on = lossless_priorities(counters)
    inside = sum(count for priority, count in sent.items() if priority in (on or ()))
    if on and 100 * inside < context.threshold(_CLASS_USAGE_SHARE) * total:
        return _fail_class_usage(
            context, counters, f"{100 * inside / total:.0f}% of what it sent is of priorities with PFC", "sent"
        )
    ours, theirs = _dominant_priority(sent), _dominant_priority(received)
    if ours is not None and theirs is not None and ours != theirs:
        return _fail_class_usage(context, counters, f"it sends in priority {ours} and receives in {theirs}", "peers")
    if on is None:
        return about.unknown("not-read", fact="whether PFC is on")
    if on:
        return about.passes()
    return about.not_applicable("not-configured", detail="PFC is off: there is no lossless class")


def _dominant_priority(moves: dict[int, int]) -> int | None:
    """The priority with most of the bytes, where one clearly has."""
    most = max(moves, key=lambda priority: moves[priority])
    return most if moves[most] >= _CLEAR * max(sum(moves.values()), 1) else None


def _fail_class_usage(context: RuleContext, counters: RocePortCounters, what: str, cause: str) -> Fail:
    place, on = counters.place, lossless_priorities(counters)
    names = [f"{way}_prio{p}_bytes" for way in ("tx", "rx") for p in range(8)]
    rows = [(name, context.counter_delta(counters.eth.subject, name, counters.eth.now)) for name in names]
    pfc = "not known" if on is None else ", ".join(map(str, sorted(on))) or "none"
    return place.fail(
        summary=f"{what} {in_window(context)}; PFC is on for {pfc}",
        impact="What is outside the class is dropped under congestion; throughput collapses above about 1% loss.",
        evidence=tuple(
            Evidence(name, f"+{move} {in_window(context)}", counters.eth.source(name)) for name, move in rows if move
        ),
        severity=place.severity("error"),
        cause=cause,
    )


_IMPACT = "The NIC waits for this host's PCIe: the rail runs below its rate, and pause spreads to the fabric."
# Counter, limit, and what is reported of it; the most severe first
_CAUSES = tuple(
    Count((name,), (limit(f"roce-rt-host-bound.{limited}", severity),), what, _IMPACT)
    for name, limited, severity, what in (
        ("outbound_pci_buffer_overflow", "overflows_per_minute", "error", "packets lost to a full PCIe buffer"),
        ("outbound_pci_stalled_wr_events", "stalls_per_minute", "warning", "seconds in which writes waited for PCIe"),
        ("dev_out_of_buffer", "no_buffer_per_minute", "warning", "times that the device had no receive buffer"),
    )
)


@rule("roce-rt-host-bound", each=watch_interfaces, merge=on_all("waiting for PCIe on every RoCE port"))
def roce_rt_host_bound(context: RuleContext, counters: RocePortCounters) -> Result:
    return gravest(kind.judge(context, counters.place, counters.eth) for kind in _CAUSES)


_CNPS = read_limit("roce-rt-congested.cnp_percent")
_MARKS = read_limit("roce-rt-congested.marked_percent")
_LEAST_PACKETS = 1_000_000
_LEAST_SECONDS = 600.0  # a burst of all-to-all is no congestion to speak of
# What is counted, and whether it is measured against packets received: sent for marks seen, got for what was sent
_WAYS = (
    (("np_cnp_sent", "cnpSent", "tx_rdma_cnp_pkts"), True, _CNPS, "notifications sent"),
    (("rp_cnp_handled", "cnpHandled", "rx_rdma_cnp_pkts"), False, _CNPS, "notifications received"),
    (("np_ecn_marked_roce_packets", "RxECNMrkd", "rx_rdma_ecn_pkts"), True, _MARKS, "packets marked"),
)


@rule("roce-rt-congested")
def roce_rt_congested(context: RuleContext) -> Iterator[Result]:
    paused: dict[str, list[Result]] = {}
    for answer in judge_received_pauses(context):
        paused.setdefault(answer.subject, []).append(answer)
    answers: list[Result] = []
    for port in watch_ports(context):
        if isinstance(port, RocePortCounters):
            answers.append(_judge_congested(context, port, paused.pop(port.place.subject, [])))
        else:
            answers.append(port)
            paused.pop(port.subject, None)
    members = [answer for rows in paused.values() for answer in rows]  # of bonds, which have their cables
    yield from aggregate_node_wide([*answers, *members], "congestion on every RoCE port")


def _judge_congested(context: RuleContext, counters: RocePortCounters, paused: list[Result]) -> Result:
    """One answer for a port: notifications, marks and pauses that come together are one congestion."""
    answers = [*(_judge_direction(context, counters, *way) for way in _WAYS), *paused]
    faults = sorted((a for a in answers if isinstance(a, Fail)), key=lambda fault: fault.severity != "warning")
    if faults:
        return replace(
            faults[0],
            summary="; ".join(fault.summary for fault in faults),
            evidence=tuple(row for fault in faults for row in fault.evidence),
        )
    return gravest(answers)


def _judge_direction(
    context: RuleContext,
    counters: RocePortCounters,
    names: tuple[str, ...],
    received: bool,
    limit: Threshold,
    what: str,
) -> Result:
    place, count = counters.place, delta(context, counters.rdma, names)
    if not isinstance(count, CounterDelta):
        return with_subject(place, count)
    if not count.total:
        return place.unknown(count.gap) if count.gap else place.passes()
    carried = rdma_packets(context, counters, received)
    if carried is None:
        return place.unknown("not-shown", detail="its RDMA packets are not counted")
    share = 100 * count.total / max(carried, 1)
    if share <= context.threshold(limit):
        return place.passes()
    seconds = (context.window.seconds if context.window else None) or 0
    if carried < _LEAST_PACKETS or seconds < _LEAST_SECONDS:
        return place.unknown(
            "sample-too-small",
            detail=f"{share:.0f}% {what}, of {carried} packets {in_window(context)}: too short to be judged",
        )
    return place.fail(
        summary=f"{count.total} {what} {in_window(context)}: {share:.1f}% of its RDMA packets, "
        f"limit {context.threshold(limit):g}%",
        impact=f"Senders are asked to slow down for {share:.1f}% of the packets: bandwidth is lost in the fabric.",
        evidence=count.evidence,
        severity="info",
    )


_IGNORED, _HANDLED = ("rp_cnp_ignored", "cnpIgnored"), ("rp_cnp_handled", "cnpHandled")
_CNP_IGNORED_SHARE = read_limit("roce-cnp-ignored.percent")
_LEAST = read_limit("roce-cnp-ignored.events")


@rule("roce-cnp-ignored", each=watch_ports, merge=on_all("ignored congestion notifications on every RoCE port"))
def roce_cnp_ignored(context: RuleContext, counters: RocePortCounters) -> Result:
    place = counters.place
    ignored = delta(context, counters.rdma, _IGNORED)
    handled = delta(context, counters.rdma, _HANDLED)
    if not isinstance(ignored, CounterDelta):
        return with_subject(place, ignored)
    if not isinstance(handled, CounterDelta):
        return with_subject(place, handled)
    if gap := ignored.gap or (handled.gap if ignored.total else None):
        return place.unknown(gap)
    share, carrying = 100 * ignored.total / max(ignored.total + handled.total, 1), roce_priorities(context, counters)
    if ignored.total < context.threshold(_LEAST) or share <= context.threshold(_CNP_IGNORED_SHARE):
        return place.passes()
    return place.fail(
        summary=f"ignored {ignored.total} of {ignored.total + handled.total} congestion notifications in "
        f"{format_window(context)} ({share:.0f}%, limit {context.threshold(_CNP_IGNORED_SHARE):g}%)",
        impact=f"{share:.0f}% of the notifications do not slow it down: congestion is left to PFC.",
        evidence=ignored.evidence + handled.evidence,
        severity=place.severity("warning"),
        values=(("PRIORITY", str(min(carrying))),) if carrying and len(carrying) == 1 else (),
    )
