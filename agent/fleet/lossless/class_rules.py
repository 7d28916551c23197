"""Faults of traffic classes: which priority a DSCP has at both ends of a hop, and whether it has PFC there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.fleet.lossless.fault import HopContext, HopFault, config_source
from agent.fleet.lossless.hop import CableEnd
from agent.fleet.lossless.traffic import TrafficClass, describe_priorities

MOST_PRIORITIES = 2  # with PFC: each takes headroom from all others


def find_class_faults(context: HopContext) -> Iterator[HopFault]:
    """Of both ends; none of a hop that is lossy by design."""
    if context.by_design:
        return
    for end, traffic, far, at_far in context.sides():
        if end.facts is not None:
            yield from _judge_switch(context, end, traffic, far, at_far)
        elif end.host is not None:
            yield from _judge_host(context, end, traffic, far, at_far)
    at_a, at_b = context.traffic
    if at_a.lossless and at_b.lossless and at_a.priority != at_b.priority:
        yield _class_differs(context, _find_unusual_end(context))
    yield from _judge_flags(context)


def _judge_switch(
    context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd, at_far: TrafficClass
) -> Iterator[HopFault]:
    priority, pfc = traffic.priority, traffic.pfc
    if pfc is not None and not pfc:
        if end.facts is not None and end.facts.pfc_on:
            yield _pfc_on_no_class(context, end)
        elif at_far.pfc:
            yield _pfc_one_end(context, end, traffic, far, at_far)
        else:
            yield _pfc_off(context, end, far)
        return
    if traffic.lossless is not False or pfc is None:
        if traffic.lossless and len(pfc or ()) > 1:
            yield from _pfc_extra(context, end, traffic)
        if traffic.lossless and at_far.lossless is not False:
            yield from _pfc_not_operational(context, end, traffic, far)
        return
    if traffic.trusts_dscp is False:
        yield _trust(context, end, traffic, far)
    elif at_far.lossless and at_far.priority == priority:
        yield _pfc_one_end(context, end, traffic, far, at_far)
    else:
        yield _dscp_lossy(context, end, traffic)


def _judge_host(
    context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd, at_far: TrafficClass
) -> Iterator[HopFault]:
    """Only where the switch is right: else its fault is the one to begin with, or the host's own rules are."""
    if traffic.lossless is not False or not at_far.lossless:
        return
    if traffic.trusts_dscp is False and traffic.pfc:
        yield _trust(context, end, traffic, far)
    elif traffic.pfc and traffic.priority != at_far.priority:
        yield _class_differs(context, end)
    else:
        yield _pfc_one_end(context, end, traffic, far, at_far)


def _dscp_lossy(context: HopContext, end: CableEnd, traffic: TrafficClass) -> HopFault:
    assert end.facts is not None
    named = f" (map {end.facts.dscp_map})" if end.facts.dscp_map else ""
    protected = describe_priorities(traffic.pfc or frozenset())
    return context.fault(
        "sw-dscp-lossy",
        end,
        f"DSCP {context.dscp} has priority {traffic.priority}{named}, which has no PFC; PFC is on for {protected}",
        (
            (f"priority of DSCP {context.dscp}", str(traffic.priority), config_source(end)),
            ("PFC", protected, config_source(end)),
        ),
        cause=f"map {end.facts.dscp_map}",
        lossy=True,
        values={"priority": _first(traffic), "classes": _describe_classes(end.facts.dscp_prio or {}, traffic)},
    )


def _describe_classes(priorities: Mapping[int, int], traffic: TrafficClass) -> str:
    """Values of NCCL_IB_TC whose DSCP has PFC at the port, as far as they are few."""
    dscps = sorted(dscp for dscp, priority in priorities.items() if priority in (traffic.pfc or ()) and dscp)
    if not dscps:
        return "no DSCP leads to one"
    return ", ".join(f"DSCP {dscp} is NCCL_IB_TC={dscp * 4}" for dscp in dscps[:4])


def _pfc_off(context: HopContext, end: CableEnd, far: CableEnd) -> HopFault:
    """A warning where the switch has PFC on other ports and what is here is not known: it may carry no RoCE."""
    others = end.switch is not None and any(port.pfc for port in end.switch.ports.values())
    unsure = others and far.switch is None and far.host is None
    return context.fault(
        "sw-pfc-off",
        end,
        "PFC is off for all priorities",
        (("PFC", "no priority", config_source(end)),),
        severity="warning" if unsure else None,
        cause="no PFC",
        lossy=True,
        values={"priority": "3"},
    )


def _pfc_on_no_class(context: HopContext, end: CableEnd) -> HopFault:
    return context.fault(
        "sw-pfc-on-no-class",
        end,
        "PFC is on, and its list of priorities is empty",
        (("PFC", "on", config_source(end)), ("priorities with PFC", "none", config_source(end))),
        cause="no class",
        lossy=True,
        values={"priority": "3"},
    )


def _pfc_not_operational(
    context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd
) -> Iterator[HopFault]:
    """Where a switch states both what is set and what the port does; a far end without PFC is the cause itself."""
    facts = end.facts
    if facts is None or facts.pfc_active is None or facts.oper == "down" or traffic.priority in facts.pfc_active:
        return
    yield context.fault(
        "sw-pfc-not-operational",
        end,
        f"PFC is set for priority {traffic.priority}, and the port does not use it",
        (
            ("PFC set", describe_priorities(traffic.pfc or frozenset()), config_source(end)),
            ("PFC in use", describe_priorities(facts.pfc_active), config_source(end)),
        ),
        cause="not operational",
        lossy=True,
        values={"priority": str(traffic.priority)},
        detail=f" (far end: {far.label or 'unknown'})",
    )


def _pfc_one_end(
    context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd, at_far: TrafficClass
) -> HopFault:
    protected = at_far.pfc or frozenset()
    priority = at_far.priority if at_far.priority in protected else min(protected, default=None)
    sent = far.facts.counters.get(f"pfc_tx_{priority}") if far.facts is not None else None
    evidence = [
        (f"PFC of {end.label}", describe_priorities(traffic.pfc or frozenset()), config_source(end)),
        (f"PFC of {far.label}", describe_priorities(protected), config_source(far)),
    ]
    ignored = ""
    if sent:
        evidence.append((f"pauses that {far.label} sent", f"{sent:,}", far.switch.sources[0] if far.switch else ""))
        ignored = f"; {far.node} sent {sent:,} pauses that this end ignores"
    return context.fault(
        "sw-pfc-one-end",
        end,
        f"no PFC for priority {priority} here, and PFC for it at the other end",
        tuple(evidence),
        cause=f"far {far.node}" if end.host is None else "host",
        lossy=True,
        values={"priority": str(priority)},
        detail=f" ({far.label}){ignored}",
    )


def _trust(context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd) -> HopFault:
    trust = end.facts.trust if end.facts is not None else end.host.trust if end.host else None
    ignores = "trusts neither DSCP nor tags" if trust == "none" else "trusts VLAN tags, and the packets have none"
    return context.fault(
        "sw-trust-differs",
        end,
        f"this end {ignores}: DSCP {context.dscp} lands in priority 0, which has no PFC",
        (
            ("trust", str(trust), config_source(end)),
            ("PFC", describe_priorities(traffic.pfc or frozenset()), config_source(end)),
        ),
        cause=f"trust {trust}",
        lossy=True,
        values={"priority": _first(traffic)},
    )


def _class_differs(context: HopContext, end: CableEnd) -> HopFault:
    (a, b), (at_a, at_b) = context.hop.ends, context.traffic
    (here, far), other = ((at_a, at_b), b) if end is a else ((at_b, at_a), a)
    return context.fault(
        "sw-class-differs",
        end,
        f"DSCP {context.dscp} has priority {here.priority} here and {far.priority} at the other end",
        (
            (f"priority of DSCP {context.dscp} at {a.label}", str(at_a.priority), config_source(a)),
            (f"priority of DSCP {context.dscp} at {b.label}", str(at_b.priority), config_source(b)),
        ),
        cause=f"{here.priority} {far.priority}",
        lossy=True,
        values={"priority": str(far.priority)},
        detail=f" ({other.label})",
    )


def _find_unusual_end(context: HopContext) -> CableEnd:
    """Of two switch ends the one that differs from the rest of the fabric; of a host's link the switch."""
    (a, b), (_, at_b) = context.hop.ends, context.traffic
    if a.facts is None or b.facts is None:
        return b if b.facts is not None else a
    return a if at_b.priority == context.usual else b


def _pfc_extra(context: HopContext, end: CableEnd, traffic: TrafficClass) -> Iterator[HopFault]:
    """More priorities with PFC than hosts use; two are common, and no more than a note."""
    pfc = traffic.pfc or frozenset()
    many = len(pfc) > MOST_PRIORITIES
    if not many and not context.by_hosts:
        return
    others = pfc - {traffic.priority}
    yield context.fault(
        "sw-pfc-extra",
        end,
        f"PFC is on for {describe_priorities(pfc)}; RDMA uses priority {traffic.priority}",
        (("PFC", describe_priorities(pfc), config_source(end)),),
        severity="warning" if many else "info",
        cause=",".join(map(str, sorted(pfc))),
        values={"priority": str(min(others, key=int))},
    )


def _judge_flags(context: HopContext) -> Iterator[HopFault]:
    flags = [end.facts.pfc_asymmetric if end.facts is not None else None for end in context.hop.ends]
    if None not in flags and flags[0] != flags[1]:
        end = context.hop.a if flags[0] else context.hop.b
        yield context.fault(
            "sw-pfc-asymmetric",
            end,
            "asymmetric PFC is on at this end only",
            (("asymmetric PFC", "on", counter_source_of(end)),),
            cause="asymmetric",
        )
    for end, traffic in zip(context.hop.ends, context.traffic, strict=True):
        pause = end.facts.global_pause if end.facts is not None else None
        if pause and traffic.pfc:
            yield context.fault(
                "sw-global-pause",
                end,
                "802.3x pause is on beside PFC: a port uses one of them",
                (("pause", "on", config_source(end)),),
                cause="pause",
            )


def counter_source_of(end: CableEnd) -> str:
    """The output that has the state of a port."""
    return f"{end.node}: show interfaces status"


def _first(traffic: TrafficClass) -> str:
    """A priority that has PFC, to map the DSCP to: 3 where it has, as hosts do."""
    pfc = traffic.pfc or frozenset((3,))
    return "3" if 3 in pfc else str(min(pfc))
