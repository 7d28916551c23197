"""Faults of traffic classes: which priority a DSCP has at both ends of a hop, and whether it has PFC there."""

from __future__ import annotations

from collections.abc import Iterator

from agent.fleet.lossless.fault import HopContext, HopFault, HopSide, config_source
from agent.fleet.lossless.traffic import TrafficClass, describe_priorities

MOST_PRIORITIES = 2  # with PFC: each takes headroom from all others


def find_class_faults(context: HopContext) -> Iterator[HopFault]:
    """Of both ends; none of a hop that is lossy by design."""
    if context.by_design:
        return
    a, b = context.sides()
    for side in (a, b):
        if side.end.facts is not None:
            yield from _judge_switch(side)
        elif side.end.host is not None:
            yield from _judge_host(side)
    if a.traffic.lossless and b.traffic.lossless and a.traffic.priority != b.traffic.priority:
        yield _class_differs(_find_unusual(a, b))
    yield from _judge_flags(context)


def _judge_switch(side: HopSide) -> Iterator[HopFault]:
    traffic, at_far = side.traffic, side.at_far
    if traffic.pfc is not None and not traffic.pfc:
        if side.port.pfc_on:
            yield _pfc_on_no_class(side)
        elif at_far.pfc:
            yield _pfc_one_end(side)
        else:
            yield _pfc_off(side)
    elif traffic.lossless is not False or traffic.pfc is None:
        if traffic.lossless and len(traffic.protected) > 1:
            yield from _pfc_extra(side)
        if traffic.lossless and at_far.lossless is not False:
            yield from _pfc_not_operational(side)
    elif traffic.trusts_dscp is False:
        yield _trust(side)
    elif at_far.lossless and at_far.priority == traffic.priority:
        yield _pfc_one_end(side)
    else:
        yield _dscp_lossy(side)


def _judge_host(side: HopSide) -> Iterator[HopFault]:
    """Only where the switch is right: else its fault is the one to begin with, or the host's own rules are."""
    traffic, at_far = side.traffic, side.at_far
    if traffic.lossless is not False or not at_far.lossless:
        return
    if traffic.trusts_dscp is False and traffic.pfc:
        yield _trust(side)
    elif traffic.pfc and traffic.priority != at_far.priority:
        yield _class_differs(side)
    else:
        yield _pfc_one_end(side)


def _dscp_lossy(side: HopSide) -> HopFault:
    port, dscp, priority = side.port, side.context.dscp, side.traffic.priority
    named = f" (map {port.dscp_map})" if port.dscp_map else ""
    protected = describe_priorities(side.traffic.protected)
    return side.fault(
        "sw-dscp-lossy",
        f"DSCP {dscp} has priority {priority}{named}, which has no PFC; PFC is on for {protected}",
        (f"priority of DSCP {dscp}", str(priority)),
        ("PFC", protected),
        cause=f"map {port.dscp_map}",
        lossy=True,
        values={"priority": _first(side.traffic), "classes": _describe_classes(side)},
    )


def _describe_classes(side: HopSide) -> str:
    """Values of NCCL_IB_TC whose DSCP has PFC at the port, as far as they are few."""
    priorities = side.port.dscp_prio or {}
    dscps = sorted(dscp for dscp, priority in priorities.items() if priority in side.traffic.protected and dscp)
    return ", ".join(f"DSCP {dscp} is NCCL_IB_TC={dscp * 4}" for dscp in dscps[:4]) or "no DSCP leads to one"


def _pfc_off(side: HopSide) -> HopFault:
    """A warning where the switch has PFC on other ports and what is here is not known: it may carry no RoCE."""
    others = side.end.switch is not None and any(port.pfc for port in side.end.switch.ports.values())
    unsure = others and side.far.switch is None and side.far.host is None
    return side.fault(
        "sw-pfc-off",
        "PFC is off for all priorities",
        ("PFC", "no priority"),
        severity="warning" if unsure else None,
        cause="no PFC",
        lossy=True,
        values={"priority": "3"},
    )


def _pfc_on_no_class(side: HopSide) -> HopFault:
    return side.fault(
        "sw-pfc-on-no-class",
        "PFC is on, and its list of priorities is empty",
        ("PFC", "on"),
        ("priorities with PFC", "none"),
        cause="no class",
        lossy=True,
        values={"priority": "3"},
    )


def _pfc_not_operational(side: HopSide) -> Iterator[HopFault]:
    """Where a switch states both what is set and what the port does; a far end without PFC is the cause itself."""
    active, priority = side.port.pfc_active, side.traffic.priority
    if active is None or side.port.oper == "down" or priority in active:
        return
    yield side.fault(
        "sw-pfc-not-operational",
        f"PFC is set for priority {priority}, and the port does not use it",
        ("PFC set", describe_priorities(side.traffic.protected)),
        ("PFC in use", describe_priorities(active)),
        cause="not operational",
        lossy=True,
        values={"priority": str(priority)},
        detail=f" (far end: {side.far.label or 'unknown'})",
    )


def _pfc_one_end(side: HopSide) -> HopFault:
    far, protected = side.far, side.at_far.protected
    priority = side.at_far.priority if side.at_far.priority in protected else min(protected, default=None)
    sent = far.facts.counters.get(f"pfc_tx_{priority}") if far.facts is not None else None
    evidence = [
        (f"PFC of {side.end.label}", describe_priorities(side.traffic.protected), config_source(side.end)),
        (f"PFC of {far.label}", describe_priorities(protected), config_source(far)),
    ]
    ignored = ""
    if sent:
        evidence.append((f"pauses that {far.label} sent", f"{sent:,}", far.switch.sources[0] if far.switch else ""))
        ignored = f"; {far.node} sent {sent:,} pauses that this end ignores"
    return side.fault(
        "sw-pfc-one-end",
        f"no PFC for priority {priority} here, and PFC for it at the other end",
        *evidence,
        cause=f"far {far.node}" if side.end.host is None else "host",
        lossy=True,
        values={"priority": str(priority)},
        detail=f" ({far.label}){ignored}",
    )


def _trust(side: HopSide) -> HopFault:
    end = side.end
    trust = end.facts.trust if end.facts is not None else end.host.trust if end.host else None
    ignores = "trusts neither DSCP nor tags" if trust == "none" else "trusts VLAN tags, and the packets have none"
    return side.fault(
        "sw-trust-differs",
        f"this end {ignores}: DSCP {side.context.dscp} lands in priority 0, which has no PFC",
        ("trust", str(trust)),
        ("PFC", describe_priorities(side.traffic.protected)),
        cause=f"trust {trust}",
        lossy=True,
        values={"priority": _first(side.traffic)},
    )


def _class_differs(side: HopSide) -> HopFault:
    here, far, of_dscp = side.traffic.priority, side.at_far.priority, f"priority of DSCP {side.context.dscp}"
    ends = zip(side.context.hop.ends, side.context.traffic, strict=True)
    return side.fault(
        "sw-class-differs",
        f"DSCP {side.context.dscp} has priority {here} here and {far} at the other end",
        *((f"{of_dscp} at {end.label}", str(traffic.priority), config_source(end)) for end, traffic in ends),
        cause=f"{here} {far}",
        lossy=True,
        values={"priority": str(far)},
        detail=f" ({side.far.label})",
    )


def _find_unusual(a: HopSide, b: HopSide) -> HopSide:
    """Of two switch ends the one that differs from the rest of the fabric; of a host's link the switch."""
    if a.end.facts is None or b.end.facts is None:
        return b if b.end.facts is not None else a
    return a if b.traffic.priority == a.context.usual else b


def _pfc_extra(side: HopSide) -> Iterator[HopFault]:
    """More priorities with PFC than hosts use; two are common, and no more than a note."""
    pfc, priority = side.traffic.protected, side.traffic.priority
    many = len(pfc) > MOST_PRIORITIES
    if many or side.context.by_hosts:
        yield side.fault(
            "sw-pfc-extra",
            f"PFC is on for {describe_priorities(pfc)}; RDMA uses priority {priority}",
            ("PFC", describe_priorities(pfc)),
            severity="warning" if many else "info",
            cause=",".join(map(str, sorted(pfc))),
            values={"priority": str(min(pfc - {priority}, key=int))},
        )


def _judge_flags(context: HopContext) -> Iterator[HopFault]:
    flags = [side.end.facts.pfc_asymmetric if side.end.facts is not None else None for side in context.sides()]
    if None not in flags and flags[0] != flags[1]:
        side = context.sides()[0 if flags[0] else 1]
        evidence = ("asymmetric PFC", "on", f"{side.end.node}: show interfaces status")
        yield side.fault("sw-pfc-asymmetric", "asymmetric PFC is on at this end only", evidence, cause="asymmetric")
    for side in context.switch_sides():
        if side.port.global_pause and side.traffic.pfc:
            text = "802.3x pause is on beside PFC: a port uses one of them"
            yield side.fault("sw-global-pause", text, ("pause", "on"), cause="pause")


def _first(traffic: TrafficClass) -> str:
    """A priority that has PFC, to map the DSCP to: 3 where it has, as hosts do."""
    pfc = traffic.pfc or frozenset((3,))
    return "3" if 3 in pfc else str(min(pfc))
