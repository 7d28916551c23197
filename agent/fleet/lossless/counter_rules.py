"""Faults that counters show: drops in a lossless class, storms, pauses that the far end does not receive, FEC, flaps.

Of one collection a counter is a sum since the switch started: only what can never be right is a fault by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.fleet.lossless.fault import HopContext, HopFault, counter_source
from agent.fleet.lossless.hop import CableEnd
from agent.fleet.lossless.traffic import TrafficClass

LEAST_PAUSES = 1000  # that one end sends and the other does not receive: a few are of another moment
BER_WARNING, BER_ERROR = 1e-5, 1e-4  # before correction; RS(544,514) ends at 2.4e-4
FLAPS = 1
STORMED = ("stormed", "shut", "turned_off")
LOSSY_DROPS = "sw-lossy-drops"
LOSSES = ("packet_seq_err", "out_of_sequence", "local_ack_timeout_err", "retransmits")


def find_counter_faults(context: HopContext) -> Iterator[HopFault]:
    """Of both ends of a hop."""
    for (end, traffic, far, at_far), _ in zip(context.sides(), (0, 1), strict=True):
        if end.facts is None:
            continue
        yield from _judge_drops(context, end, traffic, far)
        yield from _judge_lossy_drops(context, end, traffic)
        yield from _judge_storm(context, end, traffic)
        yield from _judge_unheard(context, end, traffic, far, at_far)
        yield from _judge_fec(context, end)
        yield from _judge_flaps(context, end)
        yield from _judge_trims(context, end)


def _judge_drops(context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd) -> Iterator[HopFault]:
    """In the priority group that receives the class, and in the queue that sends it."""
    if not traffic.lossless or end.facts is None or context.by_design:
        return
    places = [
        (f"drop_pg_{traffic.priority}", f"priority group {traffic.priority}", "show priority-group drop counters")
    ]
    if traffic.queue is not None:
        places.append((f"drop_queue_{traffic.queue}", f"queue {traffic.queue}", "show queue counters"))
    for name, place, command in places:
        count = end.facts.counters.get(name)
        if not count:
            continue
        by_watchdog = _watchdog_drops(end, traffic)
        delta = end.delta(name)
        if delta == 0 or (by_watchdog and by_watchdog >= count):
            continue
        losses = _host_losses(far)
        sure = bool(delta) or bool(losses)
        evidence = [(f"packets dropped in {place}", f"{count:,}", counter_source(end, command))]
        if losses:
            evidence.append((f"retransmits of {far.label}", f"{losses:,}", f"report of {far.node}"))
        since = f"{delta:,} between the two collections" if delta else f"{count:,} since the counters were reset"
        yield context.fault(
            "sw-lossless-drops",
            end,
            f"packets dropped in {place}, which is lossless: {since}"
            + (f"; {far.label} counts {losses:,} losses" if losses else ""),
            tuple(evidence),
            severity=None if sure else "warning",
            lossy=sure,
            values={"priority": str(traffic.priority)},
        )


def _judge_lossy_drops(context: HopContext, end: CableEnd, traffic: TrafficClass) -> Iterator[HopFault]:
    """In the queue that RDMA packets leave by, which has no PFC or may have none."""
    queue = traffic.queue
    if queue is None or end.facts is None or traffic.lossless or context.by_design:
        return
    count, delta = end.facts.counters.get(f"drop_queue_{queue}"), end.delta(f"drop_queue_{queue}")
    if not count or delta == 0 or not end.facts.counters.get(f"queue_bytes_{queue}"):
        return
    since = f"{delta:,} between the two collections" if delta else f"{count:,} since the counters were reset"
    yield context.fault(
        LOSSY_DROPS,
        end,
        f"packets dropped in queue {queue}, in which DSCP {context.dscp} is: {since}",
        (
            (
                f"packets dropped in queue {queue} of {end.label}",
                f"{delta or count:,}",
                counter_source(end, "show queue counters"),
            ),
        ),
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


def _watchdog_drops(end: CableEnd, traffic: TrafficClass) -> int:
    counters = end.facts.counters if end.facts else {}
    return sum(counters.get(f"watchdog_drop_{way}_{traffic.queue}", 0) for way in ("tx", "rx"))


def _host_losses(far: CableEnd) -> int:
    if far.host is None:
        return 0
    return max((far.host.counters.get(name) or 0 for name in LOSSES), default=0)


def _judge_storm(context: HopContext, end: CableEnd, traffic: TrafficClass) -> Iterator[HopFault]:
    states = end.facts.watchdog_state if end.facts else {}
    stormed = sorted(queue for queue, state in states.items() if state.lower() in STORMED)
    if stormed:
        queues = ", ".join(map(str, stormed))
        yield context.fault(
            "sw-storm",
            end,
            f"the PFC watchdog has stopped queue {queues}: the far end pauses it without end",
            ((f"state of queue {queues}", states[stormed[0]], counter_source(end, "show pfcwd stats")),),
            lossy=True,
            values={"priority": str(traffic.priority if traffic.priority is not None else stormed[0])},
        )


def _judge_unheard(
    context: HopContext, end: CableEnd, traffic: TrafficClass, far: CableEnd, at_far: TrafficClass
) -> Iterator[HopFault]:
    """Only over two collections, and where the far end counts: with PFC off it counts none."""
    priority = traffic.priority
    if priority is None or not traffic.lossless or not at_far.lossless or at_far.priority != priority:
        return
    sent, received = end.delta(f"pfc_tx_{priority}"), far.delta(f"pfc_rx_{priority}")
    if sent is None or received is None or sent < LEAST_PAUSES or received:
        return
    yield context.fault(
        "sw-pause-unheard",
        end,
        f"sent {sent:,} pauses of priority {priority}; {far.label} received none of them",
        (
            ("pauses sent", f"{sent:,}", counter_source(end, "show pfc counters")),
            (f"pauses that {far.label} received", "0", counter_source(far, "show pfc counters")),
        ),
        lossy=True,
        values={"priority": str(priority)},
    )


def _judge_fec(context: HopContext, end: CableEnd) -> Iterator[HopFault]:
    """Of the receiving end: the far end's transmitter, the cable, or this end's receiver."""
    grown = end.delta("fec_uncorrected")
    ber = end.facts.pre_fec_ber if end.facts else None
    command = "show interfaces counters fec-stats"
    if grown:
        yield context.fault(
            "sw-fec-errors",
            end,
            f"{grown:,} codewords could not be corrected between the two collections",
            (("uncorrected codewords", f"{grown:,}", counter_source(end, command)),),
            severity="error",
        )
    elif ber is not None and ber >= BER_WARNING:
        yield context.fault(
            "sw-fec-errors",
            end,
            f"bit error rate {ber:.1e} before correction, as received here",
            (("pre-FEC BER", f"{ber:.2e}", counter_source(end, command)),),
            severity="error" if ber >= BER_ERROR else "warning",
        )
    elif near := end.delta("fec_near_limit"):
        yield context.fault(
            "sw-fec-errors",
            end,
            f"{near:,} codewords had 10 or more of the 15 symbol errors that FEC corrects, between the two collections",
            (("codewords near the limit", f"{near:,}", counter_source(end, "portstat -fh")),),
        )


def _judge_flaps(context: HopContext, end: CableEnd) -> Iterator[HopFault]:
    grown = end.delta("flaps")
    if grown is not None and grown >= FLAPS:
        times = "once" if grown == 1 else f"{grown:,} times"
        yield context.fault(
            "sw-flaps",
            end,
            f"the link went down {times} between the two collections",
            (("flaps", str(grown), counter_source(end, "show interfaces flap")),),
        )


def _judge_trims(context: HopContext, end: CableEnd) -> Iterator[HopFault]:
    if end.facts is None or end.switch is None or not end.switch.trimming:
        return
    for name in sorted(end.facts.counters):
        grown = end.delta(name) if name.startswith("trim_drop_") else None
        if grown:
            queue = name.rpartition("_")[2]
            yield context.fault(
                "sw-trim-drops",
                end,
                f"{grown:,} trimmed packets of queue {queue} were dropped: their receivers wait for a timeout",
                (("trimmed packets dropped", f"{grown:,}", counter_source(end, "show queue counters --trim")),),
            )
