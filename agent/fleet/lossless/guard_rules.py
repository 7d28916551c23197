"""Faults of what guards a lossless class: ECN, schedulers, the PFC watchdog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.fleet.lossless.fault import HopContext, HopFault, config_source, counter_source
from agent.fleet.lossless.hop import CableEnd
from agent.fleet.lossless.traffic import LEAST_BYTES, TrafficClass
from probes.switches.facts import PortFacts, SwitchFacts

SLOW_MS = 1000  # of detection: longer, and a storm has spread
MANY_PORTS, MANY_PORTS_MS = 128, 3200  # `pfcwd start_default` multiplies its times on larger switches
CELL_BYTES = 256  # the largest of the chips in use: a threshold is a whole number of cells
SMALL_WEIGHT, LARGE_SHARE = 0.30, 0.20  # of the queue's weight; of the bytes that go first
WEAK_ACTIONS = ("alert", "forward")


def find_guard_faults(context: HopContext) -> Iterator[HopFault]:
    """Of the switch ends whose class is lossless."""
    if context.by_design:
        return
    for end, traffic in zip(context.hop.ends, context.traffic, strict=True):
        if end.facts is not None and traffic.lossless:
            yield from _judge_ecn(context, end, end.facts, traffic)
            yield from _judge_rounding(context, end, end.facts, traffic)
            yield from _judge_weight(context, end, end.facts, traffic)
            yield from _judge_cnp(context, end, end.facts, traffic)
            yield from _judge_watchdog(context, end, end.facts, traffic)


def _judge_ecn(context: HopContext, end: CableEnd, port: PortFacts, traffic: TrafficClass) -> Iterator[HopFault]:
    queue = traffic.queue
    if port.ecn is None or queue is None:
        return
    profile = port.ecn.get(queue)
    source = config_source(end)
    if profile is None:
        yield context.fault(
            "sw-ecn-missing",
            end,
            f"queue {queue}, in which DSCP {context.dscp} is, has no ECN profile",
            ((f"ECN of queue {queue}", "none", source),),
            cause=f"queue {queue}",
            values={"queue": str(queue)},
        )
        return
    if profile.marks is False:
        yield context.fault(
            "sw-ecn-drops",
            end,
            f"queue {queue} has a WRED profile without ECN: it drops packets of the lossless class early",
            ((f"ECN of queue {queue}", "off, WRED on", source),),
            cause=f"queue {queue}",
            lossy=True,
            values={"queue": str(queue)},
        )
    low, high = profile.min_bytes, profile.max_bytes
    if profile.marks and low is not None and high is not None and (low >= high or high == 0):
        yield context.fault(
            "sw-ecn-order",
            end,
            f"ECN of queue {queue} marks from {low:,} to {high:,} bytes: the range is empty",
            ((f"ECN of queue {queue}", f"{low}..{high} bytes", source),),
            cause=f"queue {queue} {low} {high}",
            values={"queue": str(queue)},
        )


def _judge_rounding(context: HopContext, end: CableEnd, port: PortFacts, traffic: TrafficClass) -> Iterator[HopFault]:
    """A note: the chip has other thresholds than the ones that are set."""
    wanted, active = ((profiles or {}).get(traffic.queue or 0) for profiles in (port.ecn, port.ecn_active))
    if traffic.queue is None or wanted is None or active is None:
        return
    for name, value, real in (
        ("from", wanted.min_bytes, active.min_bytes),
        ("to", wanted.max_bytes, active.max_bytes),
    ):
        if value is not None and real is not None and abs(value - real) > CELL_BYTES:
            yield context.fault(
                "sw-rounding",
                end,
                f"ECN of queue {traffic.queue} is set to mark {name} {value:,} bytes; the chip has {real:,}",
                ((f"set, {name}", f"{value:,} bytes", config_source(end)),
                 (f"in use, {name}", f"{real:,} bytes", config_source(end))),
                cause=f"queue {traffic.queue} {name} {value} {real}",
                values={"queue": str(traffic.queue)},
            )  # fmt: skip


def _judge_weight(context: HopContext, end: CableEnd, port: PortFacts, traffic: TrafficClass) -> Iterator[HopFault]:
    """Over two collections with traffic: a small weight matters only where queues before it take a large share."""
    kind, weight = (port.scheduler or {}).get(-1 if traffic.queue is None else traffic.queue, ("", None))
    weights = [weight for _, weight in (port.scheduler or {}).values() if weight is not None]
    total = end.delta("queue_bytes")
    if kind == "strict" or weight is None or total is None or total < LEAST_BYTES or not sum(weights):
        return
    share = weight / sum(weights)
    first = [queue for queue, (kind, _) in (port.scheduler or {}).items() if kind == "strict"]
    moved = sum(end.delta(f"queue_bytes_{queue}") or 0 for queue in first)
    if share < SMALL_WEIGHT and moved > LARGE_SHARE * total and end.delta(f"queue_bytes_{traffic.queue}"):
        names = ", ".join(map(str, sorted(first)))
        yield context.fault(
            "sw-data-starved",
            end,
            f"queue {traffic.queue} of the RDMA class has {share:.0%} of the weights, and queue {names}, which goes "
            f"first, {moved / total:.0%} of the bytes",
            (
                (f"weight of queue {traffic.queue}", f"{weight} of {sum(weights)}", config_source(end)),
                (f"bytes of queue {names}", f"{moved:,} of {total:,}", counter_source(end, "show queue counters")),
            ),
            values={"queue": str(traffic.queue)},
        )


def _judge_cnp(context: HopContext, end: CableEnd, port: PortFacts, traffic: TrafficClass) -> Iterator[HopFault]:
    """Only where hosts state the DSCP of their notification packets."""
    if context.cnp_dscp is None or port.dscp_queue is None or port.scheduler is None or not traffic.trusts_dscp:
        return
    queue = port.dscp_queue.get(context.cnp_dscp)
    kind = port.scheduler.get(queue, ("", None))[0] if queue is not None else ""
    if queue is None or (kind == "strict" and queue != traffic.queue) or (not kind and queue != traffic.queue):
        return
    same = queue == traffic.queue
    yield context.fault(
        "sw-cnp-not-strict",
        end,
        f"notification packets (DSCP {context.cnp_dscp}) are in queue {queue}, "
        + ("the one of the data" if same else f"which is scheduled {kind}, not strict"),
        ((f"scheduler of queue {queue}", kind or "not known", config_source(end)),),
        cause=f"queue {queue} {kind}",
        values={"queue": str(queue)},
    )


def _judge_watchdog(context: HopContext, end: CableEnd, port: PortFacts, traffic: TrafficClass) -> Iterator[HopFault]:
    priority = traffic.priority
    if port.watchdog_configured is False:
        yield context.fault(
            "sw-pfcwd-off",
            end,
            f"PFC is on for priority {priority}, and the PFC watchdog is off",
            (("PFC watchdog", "off", config_source(end)),),
            cause="watchdog off",
            values={"priority": str(priority)},
        )
        return
    if port.watchdog_configured and port.watchdog is not None and priority not in port.watchdog:
        yield context.fault(
            "sw-pfcwd-blind",
            end,
            f"the PFC watchdog is on, and does not watch priority {priority}",
            (("watched", ", ".join(map(str, sorted(port.watchdog))) or "no priority", config_source(end)),),
            cause="watchdog blind",
            values={"priority": str(priority)},
        )
    if port.watchdog_configured and end.switch is not None:
        yield from _judge_strength(context, end, end.switch, port)


def _judge_strength(context: HopContext, end: CableEnd, switch: SwitchFacts, port: PortFacts) -> Iterator[HopFault]:
    detect, poll, weak, note = port.watchdog_detect_ms, switch.poll_ms, "", False
    if port.watchdog_action in WEAK_ACTIONS:
        weak = f"its action is {port.watchdog_action}: a storm goes on"
    elif detect is not None and detect > SLOW_MS:
        weak = f"it detects a storm after {detect:,} ms"
        note = len(switch.ports) > MANY_PORTS and detect <= MANY_PORTS_MS
    elif detect is not None and poll and detect < poll:
        weak = f"it detects after {detect} ms and polls every {poll} ms"
    if weak:
        yield context.fault(
            "sw-pfcwd-weak",
            end,
            f"the PFC watchdog is weak: {weak}",
            (
                ("action", port.watchdog_action or "not known", config_source(end)),
                ("detection time", f"{detect} ms", config_source(end)),
            ),
            severity="info" if note else None,
            cause=weak,
        )


def settle_watchdog(faults: Sequence[HopFault], contexts: Sequence[HopContext]) -> Iterator[HopFault]:
    """Faults with those of the watchdog judged by switch: on all host ports and no trunk is a design in use; on all
    trunks and no host port leaves out where storms begin."""
    with_it: dict[tuple[str, bool], int] = {}
    without: dict[tuple[str, bool], int] = {}
    for context in contexts:
        for end in context.hop.ends:
            if end.facts is not None and end.facts.watchdog_configured is not None:
                counts = with_it if end.facts.watchdog_configured else without
                counts[end.node, context.hop.is_trunk] = counts.get((end.node, context.hop.is_trunk), 0) + 1
    for fault in faults:
        if fault.rule != "sw-pfcwd-off":
            yield fault
            continue
        node, trunk = fault.end.node, fault.hop.is_trunk
        hosts_only = trunk and with_it.get((node, False)) and not with_it.get((node, True))
        trunks_only = not trunk and with_it.get((node, True)) and not with_it.get((node, False))
        if hosts_only and not without.get((node, False)):
            yield fault._replace(severity="info", summary=f"{fault.summary} on trunks; host ports have it")
        elif trunks_only and not without.get((node, True)):
            yield fault._replace(
                rule="sw-pfcwd-partial", summary=f"{fault.summary} on host ports, where storms begin; trunks have it"
            )
        else:
            yield fault
