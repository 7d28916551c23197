"""roce-rt-retry-exceeded."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, rule
from agent.rules.runtime import Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("req_transport_retries_exceeded", "max_retry_exceeded", "requester_retries_exceeded")
_EVENTS = Threshold("roce-rt-retry-exceeded.events", 1, "queue pairs that gave up, in the window")
_WORDS = Words(
    "queue pairs gave up (retries exceeded)",
    "Each ended a connection: 100 % of a NCCL job aborts with error 12, vendor error 129.",
    "See whether a peer died then; else test reachability of each rail (rping), link flaps, ARP and routes.",
    "medium",
)


@rule(
    "roce-rt-retry-exceeded",
    "error",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-retry-exceeded",),
    thresholds=(_EVENTS,),
)
def roce_rt_retry_exceeded(case: Case) -> Iterator[Answer]:
    """Connections over a RoCE port broke, because a peer did not answer any more.

    ## What it checks
    How often a queue pair of an active RoCE port ran out of retries in the window.

    ## Why it matters
    The queue pair is in error then, and the job that owns it ends ("error 12", vendor error 129) about 30 s after the
    path broke: all its GPUs lose the work since the last checkpoint.

    ## How it is decided
    One and more in the window: error on rails, warning on storage NICs. Confidence is medium: the counter does not tell
    a broken path from a peer that died.

    ## What keeps it silent
    - The counter did not move, or the driver has none. Ports without a role and what is no RoCE: not applicable.
    - No earlier sample, a host that still settles, or a counter that was reset: unknown.
    - ACK timeouts over their limit are the cause, and stand for it.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/hw_counters/req_transport_retries_exceeded`, and the job's log

    ## How to fix
    A peer that died needs no mending here. Else test each rail by itself: `rping`, or `ib_write_bw -x GID`; look for
    link flaps, stale ARP entries and routes that lead out of another rail.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; NCCL issues 426 and 902.
    """
    yield from by_port(case, lambda each: _judge(case, each), "broken connections")


def _judge(case: Case, each: Watched) -> Answer:
    return judged(case, each.place, moved(case, each.rdma, _COUNTERS), (Limit(_EVENTS, "error"),), _WORDS)
