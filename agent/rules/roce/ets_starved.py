"""roce-ets-starved."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import evidence, fault, over_readable
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

GUARANTEED = Threshold("roce-ets-starved.percent", 30, "bandwidth that ETS guarantees to the class of RDMA, percent")
BUSY = Threshold("roce-ets-starved.other_percent", 20, "bytes sent by other classes that compete with RDMA, percent")


@rule(
    "roce-ets-starved",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-ets-starved",),
    thresholds=(GUARANTEED, BUSY),
)
def roce_ets_starved(case: Case) -> Iterator[Answer]:
    """The transmit scheduler of a RoCE port gives RDMA little of the link.

    ## What it checks
    The traffic class queue of RDMA on every RoCE port: how it is scheduled, what it is guaranteed, who shares it.

    ## Why it matters
    A queue with 10 % of a 400 Gb/s link gets 40 Gb/s as soon as others send: the rail runs at a tenth.

    ## How it is decided
    The queue of RDMA is scheduled by ETS with less than 30 % (threshold `roce-ets-starved.percent`); or others sent
    more than 20 % of the bytes of the window (`roce-ets-starved.other_percent`) from strict queues before it, or from
    the same queue with priority 0. Warning; storage: info.

    ## What keeps it silent
    - The default of mlx5: every queue `vendor`.
    - Counters of the window show that others send next to nothing.
    - The priority of RDMA or the queues not known, virtual functions: unknown.

    ## How to confirm
    `dcb ets show dev INTERFACE`, or `mlnx_qos -i INTERFACE`; `ethtool -S INTERFACE | grep tx_prio`

    ## How to fix
    `mlnx_qos -i INTERFACE --tsa ets,ets,ets,ets,ets,ets,strict,ets --tcbw 10,0,0,90,0,0,0,0`, with the class of the
    site.

    ## Source
    Linux `mlx5/core/en_dcbnl.c` (`mlx5e_dcbnl_ieee_getets`); IEEE 802.1Qaz.
    """
    yield from over_readable(case, lambda each, netdev: _judge(case, each, netdev))


def _judge(case: Case, each: Chain, netdev: Netdev) -> Answer:
    subject, qos, priority = each.each.subject, each.qos, each.priority
    if len(qos.prio_tc) < 8 or len(qos.tc_tsa) < 8:
        return Unknown(subject, "its traffic class queues could not be read")
    if set(qos.tc_tsa) == {"vendor"} and len(set(qos.prio_tc)) == 8:
        return Pass(subject)
    if priority is None:
        return Unknown(subject, "which priority RDMA uses is not known") if each.protected else _no_class(each)
    queue = qos.prio_tc[priority]
    if not 0 <= queue < 8:
        return Unknown(subject, "its traffic class queues could not be read")
    sent = _sent(case, netdev)
    told = None
    if qos.tc_tsa[queue] == "ets" and len(qos.tc_bandwidth) == 8:
        share = qos.tc_bandwidth[queue]
        others = _percent(sent, [n for n in range(8) if n != priority])
        if share < case.threshold(GUARANTEED) and (others is None or others > case.threshold(BUSY)):
            told = f"ETS guarantees {share} % to the queue of RDMA (priority {priority}, queue {queue})"
    strict = [n for n in range(8) if qos.tc_tsa[qos.prio_tc[n] & 7] == "strict"]
    ahead = [n for n in strict if qos.prio_tc[n] != queue and qos.tc_tsa[queue] != "vendor"]
    same = [0] if priority != 0 and qos.prio_tc[0] == queue else []
    for which, words in ((ahead, "goes before RDMA in strict queues"), (same, "shares the queue of RDMA")):
        busy = _percent(sent, which)
        if busy is not None and busy > case.threshold(BUSY):
            told = told or f"priority {ranges(which)} {words} and sent {busy:.0f} % of all bytes"
    return _fault(each, netdev, told) if told else Pass(subject)


def _no_class(each: Chain) -> Answer:
    return NotApplicable(each.each.subject, "PFC is off: RDMA has no class of its own")


def _sent(case: Case, netdev: Netdev) -> list[int | None]:
    now = netdev_counters(netdev)
    return [case.moved(f"netdev:{netdev.id}", f"tx_prio{n}_bytes", now) for n in range(8)]


def _percent(sent: list[int | None], which: list[int]) -> float | None:
    """The share of some priorities in what was sent; None where that is not known, or nothing was sent."""
    known = [count for count in sent if count is not None]
    if len(known) < 8 or not sum(known):
        return None
    return 100 * sum(known[n] for n in which) / sum(known)


def _fault(each: Chain, netdev: Netdev, told: str) -> Fail:
    rows = f"queue of priority 0 to 7: {each.qos.prio_tc}, {each.qos.tc_tsa}, percent {each.qos.tc_bandwidth}"
    return fault(
        each,
        told,
        "mlnx_qos -i INTERFACE --tsa and --tcbw (upstream: dcb ets set), with most of the link for the class of RDMA.",
        impact="A queue with 10 % of a 400 Gb/s link gets 40 Gb/s as soon as others send.",
        severity=each.each.severity("warning"),
        evidence=(
            Evidence(what=f"queues of {netdev.label}", value=rows, source=f"dcb ets show dev {netdev.label}"),
            *evidence(each),
        ),
        confidence="medium",
    )
