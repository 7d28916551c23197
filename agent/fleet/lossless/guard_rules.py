"""Faults of what guards a lossless class: ECN, schedulers, the PFC watchdog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.fleet.lossless.fault import HopContext, HopFault, HopSide, counter_source
from agent.fleet.lossless.traffic import LEAST_BYTES
from probes.switches.facts import SwitchFacts

SLOW_MS = 1000  # of detection: longer, and a storm has spread
MANY_PORTS, MANY_PORTS_MS = 128, 3200  # `pfcwd start_default` multiplies its times on larger switches
CELL_BYTES = 256  # the largest of the chips in use: a threshold is a whole number of cells
SMALL_WEIGHT, LARGE_SHARE = 0.30, 0.20  # of the queue's weight; of the bytes that go first
WEAK_ACTIONS = ("alert", "forward")


def find_guard_faults(context: HopContext) -> Iterator[HopFault]:
    """Of the switch ends whose class is lossless."""
    if context.by_design:
        return
    for side in context.switch_sides():
        if side.traffic.lossless:
            yield from _judge_ecn(side)
            yield from _judge_rounding(side)
            yield from _judge_weight(side)
            yield from _judge_cnp(side)
            yield from _judge_watchdog(side)


def _judge_ecn(side: HopSide) -> Iterator[HopFault]:
    queue = side.traffic.queue
    if side.port.ecn is None or queue is None:
        return
    profile, named, values = side.port.ecn.get(queue), f"ECN of queue {queue}", {"queue": str(queue)}
    if profile is None:
        text = f"queue {queue}, in which DSCP {side.context.dscp} is, has no ECN profile"
        yield side.fault("sw-ecn-missing", text, (named, "none"), cause=f"queue {queue}", values=values)
        return
    if profile.marks is False:
        yield side.fault(
            "sw-ecn-drops",
            f"queue {queue} has a WRED profile without ECN: it drops packets of the lossless class early",
            (named, "off, WRED on"),
            cause=f"queue {queue}",
            lossy=True,
            values=values,
        )
    low, high = profile.min_bytes, profile.max_bytes
    if profile.marks and low is not None and high is not None and (low >= high or high == 0):
        text = f"{named} marks from {low:,} to {high:,} bytes: the range is empty"
        cause = f"queue {queue} {low} {high}"
        yield side.fault("sw-ecn-order", text, (named, f"{low}..{high} bytes"), cause=cause, values=values)


def _judge_rounding(side: HopSide) -> Iterator[HopFault]:
    """A note: the chip has other thresholds than the ones that are set."""
    queue = side.traffic.queue
    wanted, active = ((profiles or {}).get(queue or 0) for profiles in (side.port.ecn, side.port.ecn_active))
    if queue is None or wanted is None or active is None:
        return
    for name, value, real in (
        ("from", wanted.min_bytes, active.min_bytes),
        ("to", wanted.max_bytes, active.max_bytes),
    ):
        if value is not None and real is not None and abs(value - real) > CELL_BYTES:
            yield side.fault(
                "sw-rounding",
                f"ECN of queue {queue} is set to mark {name} {value:,} bytes; the chip has {real:,}",
                (f"set, {name}", f"{value:,} bytes"),
                (f"in use, {name}", f"{real:,} bytes"),
                cause=f"queue {queue} {name} {value} {real}",
                values={"queue": str(queue)},
            )


def _judge_weight(side: HopSide) -> Iterator[HopFault]:
    """Over two collections with traffic: a small weight matters only where queues before it take a large share."""
    scheduler, queue, end = side.port.scheduler or {}, side.traffic.queue, side.end
    kind, weight = scheduler.get(-1 if queue is None else queue, ("", None))
    weights = [weight for _, weight in scheduler.values() if weight is not None]
    total = end.delta("queue_bytes")
    if kind == "strict" or weight is None or total is None or total < LEAST_BYTES or not sum(weights):
        return
    share = weight / sum(weights)
    first = [other for other, (kind, _) in scheduler.items() if kind == "strict"]
    moved = sum(end.delta(f"queue_bytes_{other}") or 0 for other in first)
    if share < SMALL_WEIGHT and moved > LARGE_SHARE * total and end.delta(f"queue_bytes_{queue}"):
        names = ", ".join(map(str, sorted(first)))
        yield side.fault(
            "sw-data-starved",
            f"queue {queue} of the RDMA class has {share:.0%} of the weights, and queue {names}, which goes "
            f"first, {moved / total:.0%} of the bytes",
            (f"weight of queue {queue}", f"{weight} of {sum(weights)}"),
            (f"bytes of queue {names}", f"{moved:,} of {total:,}", counter_source(end, "show queue counters")),
            values={"queue": str(queue)},
        )


def _judge_cnp(side: HopSide) -> Iterator[HopFault]:
    """Only where hosts state the DSCP of their notification packets."""
    port, dscp, data_queue = side.port, side.context.cnp_dscp, side.traffic.queue
    if dscp is None or port.dscp_queue is None or port.scheduler is None or not side.traffic.trusts_dscp:
        return
    queue = port.dscp_queue.get(dscp)
    kind = port.scheduler.get(queue, ("", None))[0] if queue is not None else ""
    if queue is None or (kind in ("", "strict") and queue != data_queue):
        return
    where = "the one of the data" if queue == data_queue else f"which is scheduled {kind}, not strict"
    yield side.fault(
        "sw-cnp-not-strict",
        f"notification packets (DSCP {dscp}) are in queue {queue}, {where}",
        (f"scheduler of queue {queue}", kind or "not known"),
        cause=f"queue {queue} {kind}",
        values={"queue": str(queue)},
    )


def _judge_watchdog(side: HopSide) -> Iterator[HopFault]:
    port, priority = side.port, side.traffic.priority
    values = {"priority": str(priority)}
    if port.watchdog_configured is False:
        text = f"PFC is on for priority {priority}, and the PFC watchdog is off"
        yield side.fault("sw-pfcwd-off", text, ("PFC watchdog", "off"), cause="watchdog off", values=values)
        return
    if port.watchdog_configured and port.watchdog is not None and priority not in port.watchdog:
        text = f"the PFC watchdog is on, and does not watch priority {priority}"
        watched = ", ".join(map(str, sorted(port.watchdog))) or "no priority"
        yield side.fault("sw-pfcwd-blind", text, ("watched", watched), cause="watchdog blind", values=values)
    if port.watchdog_configured and side.end.switch is not None:
        yield from _judge_strength(side, side.end.switch)


def _judge_strength(side: HopSide, switch: SwitchFacts) -> Iterator[HopFault]:
    action, detect, poll, weak, note = (
        side.port.watchdog_action,
        side.port.watchdog_detect_ms,
        switch.poll_ms,
        "",
        False,
    )
    if action in WEAK_ACTIONS:
        weak = f"its action is {action}: a storm goes on"
    elif detect is not None and detect > SLOW_MS:
        weak = f"it detects a storm after {detect:,} ms"
        note = len(switch.ports) > MANY_PORTS and detect <= MANY_PORTS_MS
    elif detect is not None and poll and detect < poll:
        weak = f"it detects after {detect} ms and polls every {poll} ms"
    if weak:
        yield side.fault(
            "sw-pfcwd-weak",
            f"the PFC watchdog is weak: {weak}",
            ("action", action or "not known"),
            ("detection time", f"{detect} ms"),
            severity="info" if note else None,
            cause=weak,
        )


def settle_watchdog(faults: Sequence[HopFault], contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Faults with those of the watchdog judged by switch: on all host ports and no trunk is a design in use; on all
    trunks and no host port leaves out where storms begin."""
    with_it: set[tuple[str, bool]] = set()
    without: set[tuple[str, bool]] = set()
    for context in contexts:
        for side in context.switch_sides():
            if side.port.watchdog_configured is not None:
                places = with_it if side.port.watchdog_configured else without
                places.add((side.end.node, context.hop.is_trunk))
    for fault in faults:
        if fault.rule != "sw-pfcwd-off":
            yield fault
            continue
        node, trunk = fault.end.node, fault.hop.is_trunk
        others_only = (node, not trunk) in with_it and (node, trunk) not in with_it and (node, not trunk) not in without
        if others_only and trunk:
            yield fault._replace(severity="info", summary=f"{fault.summary} on trunks; host ports have it")
        elif others_only:
            yield fault._replace(
                rule="sw-pfcwd-partial", summary=f"{fault.summary} on host ports, where storms begin; trunks have it"
            )
        else:
            yield fault
