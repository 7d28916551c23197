"""roce-rt-ack-timeout."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port, dropped_here
from agent.rules.rule import Answer, rule
from agent.rules.runtime import MINUTE, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("local_ack_timeout_err", "to_retransmits", "RTO", "requester_timeout")
_PER_MINUTE = Threshold("roce-rt-ack-timeout.per_minute", 10, "ACK timeouts a minute of one port")


@rule(
    "roce-rt-ack-timeout",
    "error",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-ack-timeout",),
    absorbs=("roce-rt-retry-exceeded",),
    thresholds=(_PER_MINUTE,),
)
def roce_rt_ack_timeout(case: Case) -> Iterator[Answer]:
    """A RoCE port waits in vain for answers of its peers, again and again.

    ## What it checks
    How the ACK timeouts of every active RoCE port of a rail or storage NIC moved.

    ## Why it matters
    Each is a full timeout of a queue pair: 4.3 s at NCCL's default of 20, in which nothing of it moves. After seven of
    them, about 30 s, the job ends with error 12.

    ## How it is decided
    10 and more a minute over the window: error, on storage NICs warning. Where loss is told by roce-rt-retrans, this is
    its consequence and stands there.

    ## What keeps it silent
    - Fewer: a peer that ends its job leaves a burst of timeouts behind, which a window of some minutes thins out; in a
      window below a minute ten are needed all the same, and fewer are unknown.
    - Ports without a role, and what is no RoCE: not applicable.
    - No earlier sample, or a counter that was reset: unknown.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/hw_counters/local_ack_timeout_err`, twice

    ## How to fix
    Look whether a peer hangs, whether a path loses packets (switch drops), whether PFC is deadlocked.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; NCCL `NCCL_IB_TIMEOUT`; the limit is judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "ACK timeouts")


def _judge(case: Case, each: Watched) -> Answer:
    words = Words(
        "ACK timeouts",
        "Each stops a queue pair for up to 4.3 s (NCCL's default); seven in a row end the job.",
        f"Look for a peer that hangs and for drops on the path. {dropped_here(case, each)}",
    )
    limits = (Limit(_PER_MINUTE, "error", MINUTE),)
    return judged(case, each.place, moved(case, each.rdma, _COUNTERS), limits, words)
