"""roce-rt-duplicates."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port, discards
from agent.rules.rule import Answer, NotApplicable, rule
from agent.rules.runtime import HOUR, Limit, Moved, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("duplicate_request", "dup_req", "responder_dup_request")
_PER_HOUR = Threshold("roce-rt-duplicates.per_hour", 100, "duplicate requests an hour of one port")
_WORDS = Words(
    "duplicate requests",
    "Peers send again what this host already had: their path to or from here loses packets, and costs them timeouts.",
    "Nothing was dropped here: look at the peers' counters and at the switches between.",
)


@rule(
    "roce-rt-duplicates",
    "info",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-duplicates",),
    thresholds=(_PER_HOUR,),
)
def roce_rt_duplicates(case: Case) -> Iterator[Answer]:
    """Peers send requests to a RoCE port twice: answers of this host get lost on their way.

    ## What it checks
    How the duplicate requests of every active RoCE port moved, while the port itself dropped nothing.

    ## Why it matters
    A request comes twice where the answer to the first was lost, or was late by a whole timeout (4.3 s at NCCL's
    default): the loss is on the path or at the other end, which no counter of this host shows otherwise.

    ## How it is decided
    More than 100 an hour: info.

    ## What keeps it silent
    - A few after a link flap, or when a job ends.
    - This host dropped received frames itself: roce-rt-rx-discards tells it; not applicable.
    - Ports without a role and what is no RoCE: not applicable. No earlier sample, or a counter that was reset: unknown.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/hw_counters/duplicate_request`, twice, on both ends

    ## How to fix
    As for roce-rt-retrans, at the other side.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; the limit is judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "duplicate requests")


def _judge(case: Case, each: Watched) -> Answer:
    here = discards(case, each)
    if isinstance(here, Moved) and here.total:
        return NotApplicable(each.place.subject, "it dropped received frames itself: see roce-rt-rx-discards")
    return judged(case, each.place, moved(case, each.rdma, _COUNTERS), (Limit(_PER_HOUR, "info", HOUR),), _WORDS)
