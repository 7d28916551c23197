"""roce-rt-retrans."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, adaptive_routing, by_port, dropped_here, packets
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.runtime import Moved, moved, of, span
from agent.rules.threshold import Threshold

# What a sender counts of packets that it had to send again: mlx5, bnxt_re, irdma
_SENT_AGAIN = (
    *("packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err"),
    *("seq_err_naks_rcvd", "to_retransmits"),
    *("Nak Sequence Error", "Nak Sequence Error Implied", "RTO"),
)
_TIMEOUTS = ("local_ack_timeout_err", "roce_adp_retrans_to", "to_retransmits", "RTO")
_GAPS = ("out_of_sequence", "oos_drop_count", "Rcvd Out of order packets")  # what a receiver counts
_WARN = Threshold("roce-rt-retrans.warning_ratio", 1e-6, "retransmissions for each RDMA packet: a warning")
_ERROR = Threshold("roce-rt-retrans.error_ratio", 1e-4, "retransmissions for each RDMA packet: an error")
_LEAST = Threshold("roce-rt-retrans.events", 10, "retransmissions in the window, below which nothing is said")
_PACKETS = Threshold("roce-rt-retrans.packets", 1e6, "RDMA packets in the window, below which no ratio is made")


@rule(
    "roce-rt-retrans",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-retrans",),
    absorbs=("roce-rt-ack-timeout", "roce-rt-duplicates"),
    thresholds=(_WARN, _ERROR, _LEAST, _PACKETS),
)
def roce_rt_retrans(case: Case) -> Iterator[Answer]:
    """RDMA packets of a RoCE port get lost, and are sent again.

    ## What it checks
    How the counters of retransmission moved on every active RoCE port of a rail or storage NIC, against the RDMA
    packets of the same window.

    ## Why it matters
    RoCE goes back to the packet that was lost and sends everything again: above 1 % loss next to nothing arrives, and a
    lost last packet costs a whole timeout, 4.3 s at NCCL's default. One slow rail holds up the collective.

    ## How it is decided
    Sender: sequence NAKs and ACK timeouts for each packet sent. Receiver: gaps for each packet received. From one in a
    million: warning; from one in ten thousand: error; on storage NICs one step lower. Both limits, the least number of
    events (10) and of packets (one million) are thresholds. The text says whether this host dropped frames itself.

    ## What keeps it silent
    - Fewer packets than a million in the window: nothing lost passes, anything else is unknown.
    - Adaptive routing (`NCCL_IB_ADAPTIVE_ROUTING=1`): packets overtake each other, so timeouts alone are counted.
    - EFA, iWARP and cloud NICs, ports without a role: not applicable. No earlier sample, a host that still settles, a
      driver that was loaded anew: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/hw_counters/{packet_seq_err,local_ack_timeout_err,out_of_sequence}`,
    twice.

    ## How to fix
    Frames dropped here (`ethtool -S IF | grep discards`): PFC on the class that RoCE uses, headroom, PCIe. Otherwise
    look for drops on the switches and for a class that differs between host and switch.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`, `bnxt_re/hw_counters.c`, `irdma`; the limits are judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "retransmissions")


def _judge(case: Case, each: Watched) -> Answer:
    overtaking = adaptive_routing(case)
    sent = moved(case, each.rdma, _TIMEOUTS if overtaking else _SENT_AGAIN)
    ways = [_way(case, each, sent, received=False, overtaking=overtaking)]
    if not overtaking:
        ways.append(_way(case, each, moved(case, each.rdma, _GAPS), received=True, overtaking=None))
    faults = sorted((way for way in ways if isinstance(way, Fail)), key=lambda way: way.severity != "error")
    doubts = [way for way in ways if isinstance(way, Unknown)]
    passed = [way for way in ways if isinstance(way, Pass)]
    ordered: list[Answer] = [*faults, *doubts, *passed, *ways]
    return ordered[0]


def _way(case: Case, each: Watched, count: Moved | Answer, received: bool, overtaking: str | None) -> Answer:
    place = each.place
    if not isinstance(count, Moved):
        return of(place, count)
    if not count.total or (count.total < case.threshold(_LEAST) and not count.gap):
        return Unknown(place.subject, count.gap) if count.gap else Pass(place.subject)
    carried = packets(case, each, received)
    if carried is None:
        return Unknown(place.subject, f"{count.total} retransmissions, but its RDMA packets are not counted")
    if carried < case.threshold(_PACKETS):
        return Unknown(place.subject, f"{count.total} retransmissions in {carried} packets: too few for a ratio")
    ratio = count.total / max(carried, 1)
    if ratio < case.threshold(_WARN):
        return Unknown(place.subject, count.gap) if count.gap else Pass(place.subject)
    grave = ratio >= case.threshold(_ERROR)
    limit = case.threshold(_ERROR if grave else _WARN)
    what, way = ("gaps in what it received", "received") if received else ("packets sent again", "sent")
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"{count.total} {what} in {span(case)}: {ratio:.1g} of {carried} packets {way}, limit {limit:.0e}",
        impact=f"{100 * ratio:.2g} % of its packets cost a go-back each; a lost last packet costs seconds.",
        remedy=dropped_here(case, each) + (f" Only timeouts are counted: {overtaking}." if overtaking else ""),
        evidence=count.evidence,
        severity=place.severity("error" if grave else "warning"),
        places=place.places,
    )
