"""roce-rt-congested."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port, packets
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.runtime import Moved, moved, of, span
from agent.rules.threshold import Threshold

_CNPS = Threshold("roce-rt-congested.cnp_percent", 1, "congestion notifications for RDMA packets, percent")
_MARKS = Threshold("roce-rt-congested.marked_percent", 5, "received RDMA packets with a congestion mark, percent")
_LEAST_PACKETS = 1_000_000
_LEAST_SECONDS = 600.0  # a burst of all-to-all is no congestion to speak of
# What is counted, and whether it is measured against packets received: sent for marks seen, got for what was sent
_WAYS = (
    (("np_cnp_sent", "cnpSent"), True, _CNPS, "notifications sent"),
    (("rp_cnp_handled", "cnpHandled"), False, _CNPS, "notifications received"),
    (("np_ecn_marked_roce_packets", "RxECNMrkd"), True, _MARKS, "packets marked"),
)


@rule(
    "roce-rt-congested",
    "info",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-congested",),
    thresholds=(_CNPS, _MARKS),
)
def roce_rt_congested(case: Case) -> Iterator[Answer]:
    """The fabric is congested on the way to or from a RoCE port.

    ## What it checks
    Congestion notifications sent and received, and packets with a congestion mark, against the RDMA packets of the
    window, on every active RoCE port.

    ## Why it matters
    No fault of this host, but the reason for missing bandwidth: incast, or flows that share a link by the hash. At 1 %
    notifications DCQCN has taken senders far below their line rate.

    ## How it is decided
    Notifications above 1 % of the RDMA packets of that direction, or marks above 5 % of those received, over ten
    minutes and a million packets at least: info.

    ## What keeps it silent
    - Shorter windows and less traffic, above the limit: unknown, because every all-to-all has such bursts.
    - Drivers without these counters, ports without a role: not applicable. No earlier sample: unknown.

    ## How to confirm
    `grep -E . /sys/class/infiniband/DEVICE/ports/1/hw_counters/*cnp*`, twice

    ## How to fix
    Look at the mapping of rails, adaptive routing, queue pairs for each connection (`NCCL_IB_QPS_PER_CONNECTION`) and
    the entropy of ECMP.

    ## Source
    DCQCN (SIGCOMM 2015); Linux `drivers/infiniband/hw/mlx5/counters.c`; the limits are judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "congestion")


def _judge(case: Case, each: Watched) -> Answer:
    answers = [_way(case, each, *way) for way in _WAYS]
    order = (Fail, Unknown, Pass)
    return next((a for kind in order for a in answers if isinstance(a, kind)), answers[0])


def _way(case: Case, each: Watched, names: tuple[str, ...], received: bool, limit: Threshold, what: str) -> Answer:
    place, count = each.place, moved(case, each.rdma, names)
    if not isinstance(count, Moved):
        return of(place, count)
    if not count.total:
        return Unknown(place.subject, count.gap) if count.gap else Pass(place.subject)
    carried = packets(case, each, received)
    if carried is None:
        return Unknown(place.subject, "its RDMA packets are not counted")
    share = 100 * count.total / max(carried, 1)
    if share <= case.threshold(limit):
        return Pass(place.subject)
    seconds = (case.window.seconds if case.window else None) or 0
    if carried < _LEAST_PACKETS or seconds < _LEAST_SECONDS:
        return Unknown(place.subject, f"{share:.0f} % {what}, of {carried} packets in {span(case)}: too short to say")
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"{count.total} {what} in {span(case)}: {share:.1f} % of its RDMA packets, "
        f"limit {case.threshold(limit):g} %",
        impact=f"Senders are told to slow down for {share:.1f} % of the packets: bandwidth is lost in the fabric.",
        remedy="Look at rail mapping, adaptive routing, NCCL_IB_QPS_PER_CONNECTION and ECMP entropy.",
        evidence=count.evidence,
        severity="info",
        places=place.places,
    )
