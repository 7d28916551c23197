"""Faults that counters show: drops in a lossless class, storms, pauses that the far end does not receive, FEC, flaps.

Of one collection a counter is a sum since the switch started: only what can never be right is a fault by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.fleet.lossless.fault import HopContext, HopFault, HopSide, counter_source
from agent.fleet.lossless.hop import CableEnd

LEAST_PAUSES = 1000  # that one end sends and the other does not receive: a few are of another moment
BER_WARNING, BER_ERROR = 1e-5, 1e-4  # before correction; RS(544,514) ends at 2.4e-4
FLAPS = 1
STORMED = ("stormed", "shut", "turned_off")
LOSSY_DROPS = "sw-lossy-drops"
LOSSES = ("packet_seq_err", "out_of_sequence", "local_ack_timeout_err", "retransmits")


def find_counter_faults(context: HopContext) -> Iterator[HopFault]:
    """Of both ends of a hop."""
    for side in context.switch_sides():
        yield from _judge_drops(side)
        yield from _judge_lossy_drops(side)
        yield from _judge_storm(side)
        yield from _judge_unheard(side)
        yield from _judge_fec(side)
        yield from _judge_flaps(side)
        yield from _judge_trims(side)


def _judge_drops(side: HopSide) -> Iterator[HopFault]:
    """In the priority group that receives the class, and in the queue that sends it."""
    traffic, far = side.traffic, side.far
    if not traffic.lossless or side.context.by_design:
        return
    places = [
        (f"drop_pg_{traffic.priority}", f"priority group {traffic.priority}", "show priority-group drop counters")
    ]
    if traffic.queue is not None:
        places.append((f"drop_queue_{traffic.queue}", f"queue {traffic.queue}", "show queue counters"))
    for name, place, command in places:
        count, delta = side.port.counters.get(name), side.end.delta(name)
        by_watchdog = sum(side.port.counters.get(f"watchdog_drop_{way}_{traffic.queue}", 0) for way in ("tx", "rx"))
        if not count or delta == 0 or (by_watchdog and by_watchdog >= count):
            continue
        losses = _host_losses(far)
        sure = bool(delta) or bool(losses)
        evidence = [(f"packets dropped in {place}", f"{count:,}", counter_source(side.end, command))]
        if losses:
            evidence.append((f"retransmits of {far.label}", f"{losses:,}", f"report of {far.node}"))
        yield side.fault(
            "sw-lossless-drops",
            f"packets dropped in {place}, which is lossless: {_describe_growth(count, delta)}"
            + (f"; {far.label} counts {losses:,} losses" if losses else ""),
            *evidence,
            severity=None if sure else "warning",
            lossy=sure,
            values={"priority": str(traffic.priority)},
        )


def _describe_growth(count: int, delta: int | None) -> str:
    return f"{delta:,} between the two collections" if delta else f"{count:,} since the counters were reset"


def _judge_lossy_drops(side: HopSide) -> Iterator[HopFault]:
    """In the queue that RDMA packets leave by, which has no PFC or may have none."""
    queue, counters = side.traffic.queue, side.port.counters
    if queue is None or side.traffic.lossless or side.context.by_design:
        return
    count, delta = counters.get(f"drop_queue_{queue}"), side.end.delta(f"drop_queue_{queue}")
    if not count or delta == 0 or not counters.get(f"queue_bytes_{queue}"):
        return
    since, place = _describe_growth(count, delta), f"packets dropped in queue {queue}"
    yield side.fault(
        LOSSY_DROPS,
        f"{place}, in which DSCP {side.context.dscp} is: {since}",
        (f"{place} of {side.end.label}", f"{delta or count:,}", counter_source(side.end, "show queue counters")),
        severity=None if delta else "warning",
        lossy=bool(delta),
        values={"queue": str(queue)},
        detail=f"; dropped there: {since}",
    )


def absorb_lossy_drops(faults: Sequence[HopFault], by_hosts: bool) -> Iterator[HopFault]:
    """Faults with drops of a lossy class as evidence of the setting that causes them; alone where no setting is at
    fault, as far as it is known that hosts use the class."""
    drops = {fault.end.subject: fault for fault in faults if fault.rule == LOSSY_DROPS}
    explained = {fault.end.subject for fault in faults if fault.lossy and fault.cause} & drops.keys()
    for fault in faults:
        drop = drops.get(fault.end.subject)
        if drop is None or (fault is not drop and not (fault.lossy and fault.cause)):
            yield fault
        elif fault is not drop:
            yield fault._replace(
                evidence=(*fault.evidence, *drop.evidence),
                detail=fault.detail + drop.detail,
                absorbs=(f"{LOSSY_DROPS} {drop.end.subject}",),
            )
        elif by_hosts and drop.end.subject not in explained:
            yield drop._replace(detail="")


def _host_losses(far: CableEnd) -> int:
    return max((far.host.counters.get(name) or 0 for name in LOSSES), default=0) if far.host is not None else 0


def _judge_storm(side: HopSide) -> Iterator[HopFault]:
    states = side.port.watchdog_state
    stormed = sorted(queue for queue, state in states.items() if state.lower() in STORMED)
    if stormed:
        queues, priority = ", ".join(map(str, stormed)), side.traffic.priority
        yield side.fault(
            "sw-storm",
            f"the PFC watchdog has stopped queue {queues}: the far end pauses it without end",
            (f"state of queue {queues}", states[stormed[0]], counter_source(side.end, "show pfcwd stats")),
            lossy=True,
            values={"priority": str(priority if priority is not None else stormed[0])},
        )


def _judge_unheard(side: HopSide) -> Iterator[HopFault]:
    """Only over two collections, and where the far end counts: with PFC off it counts none."""
    priority, far, command = side.traffic.priority, side.far, "show pfc counters"
    if priority is None or not side.traffic.lossless or not side.at_far.lossless or side.at_far.priority != priority:
        return
    sent, received = side.end.delta(f"pfc_tx_{priority}"), far.delta(f"pfc_rx_{priority}")
    if sent is None or received is None or sent < LEAST_PAUSES or received:
        return
    yield side.fault(
        "sw-pause-unheard",
        f"sent {sent:,} pauses of priority {priority}; {far.label} received none of them",
        ("pauses sent", f"{sent:,}", counter_source(side.end, command)),
        (f"pauses that {far.label} received", "0", counter_source(far, command)),
        lossy=True,
        values={"priority": str(priority)},
    )


def _judge_fec(side: HopSide) -> Iterator[HopFault]:
    """Of the receiving end: the far end's transmitter, the cable, or this end's receiver."""
    rule, ber = "sw-fec-errors", side.port.pre_fec_ber
    source = counter_source(side.end, "show interfaces counters fec-stats")
    if grown := side.end.delta("fec_uncorrected"):
        text = f"{grown:,} codewords could not be corrected between the two collections"
        yield side.fault(rule, text, ("uncorrected codewords", f"{grown:,}", source), severity="error")
    elif ber is not None and ber >= BER_WARNING:
        text = f"bit error rate {ber:.1e} before correction, as received here"
        severity = "error" if ber >= BER_ERROR else "warning"
        yield side.fault(rule, text, ("pre-FEC BER", f"{ber:.2e}", source), severity=severity)
    elif near := side.end.delta("fec_near_limit"):
        text = (
            f"{near:,} codewords had 10 or more of the 15 symbol errors that FEC corrects, between the two collections"
        )
        yield side.fault(
            rule, text, ("codewords near the limit", f"{near:,}", counter_source(side.end, "portstat -fh"))
        )


def _judge_flaps(side: HopSide) -> Iterator[HopFault]:
    grown = side.end.delta("flaps")
    if grown is not None and grown >= FLAPS:
        times = "once" if grown == 1 else f"{grown:,} times"
        evidence = ("flaps", str(grown), counter_source(side.end, "show interfaces flap"))
        yield side.fault("sw-flaps", f"the link went down {times} between the two collections", evidence)


def _judge_trims(side: HopSide) -> Iterator[HopFault]:
    if side.end.switch is None or not side.end.switch.trimming:
        return
    for name in sorted(side.port.counters):
        grown = side.end.delta(name) if name.startswith("trim_drop_") else None
        if grown:
            queue, command = name.rpartition("_")[2], "show queue counters --trim"
            yield side.fault(
                "sw-trim-drops",
                f"{grown:,} trimmed packets of queue {queue} were dropped: their receivers wait for a timeout",
                ("trimmed packets dropped", f"{grown:,}", counter_source(side.end, command)),
            )
