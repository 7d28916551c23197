"""roce-rt-adaptive-retrans."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port, dropped_here, packets
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import HOUR, Limit, Moved, Words, fault, judged, moved
from agent.rules.threshold import Threshold

_TIMEOUTS = ("roce_adp_retrans_to", "roce_slow_restart_trans")
_RETRANSMISSIONS = ("roce_adp_retrans",)
_PER_HOUR = Threshold(
    "roce-rt-adaptive-retrans.per_hour", 10, "adaptive timeouts and slow restarts an hour of one port"
)
_RATIO = Threshold("roce-rt-adaptive-retrans.ratio", 1e-5, "adaptive retransmissions for each RDMA packet sent")
_LEAST_PACKETS = 1_000_000


@rule(
    "roce-rt-adaptive-retrans",
    "info",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-adaptive-retrans",),
    thresholds=(_PER_HOUR, _RATIO),
)
def roce_rt_adaptive_retrans(case: Case) -> Iterator[Answer]:
    """A NIC hides loss by its own retransmission features.

    ## What it checks
    How adaptive retransmissions, their timeouts and slow restarts moved on every active RoCE port (mlx5).

    ## Why it matters
    These features make loss cheaper, not free: a retransmission costs a round trip, a slow restart sets the rate back.
    They also keep loss out of the usual counters: above 1 in 100 000 packets a fabric is not lossless.

    ## How it is decided
    Ten timeouts and slow restarts an hour, or more than 1 retransmission in 100 000 RDMA packets (a million packets at
    least): info.

    ## What keeps it silent
    - The operator declared `roce_mode = "lossy"`: that is what these features are for; not applicable.
    - Small numbers, which healthy ports have too. Other drivers do not count it: not applicable.
    - No earlier sample, a host that still settles, or a counter that was reset: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/hw_counters/roce_*`, twice

    ## How to fix
    As for roce-rt-retrans: find what loses the packets.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c` (RoCE accelerator counters); NVIDIA adaptive retransmission.
    """
    yield from by_port(case, lambda each: _judge(case, each), "hidden loss")


def _judge(case: Case, each: Watched) -> Answer:
    if case.settings.facts.get("roce_mode") == "lossy":
        return NotApplicable(each.place.subject, 'declared roce_mode = "lossy": the features do what they are for')
    words = Words(
        "adaptive timeouts and slow restarts",
        "Each costs a round trip or sets the rate back; the fabric loses packets though the usual counters are quiet.",
        dropped_here(case, each),
    )
    answer = judged(case, each.place, moved(case, each.rdma, _TIMEOUTS), (Limit(_PER_HOUR, "info", HOUR),), words)
    again, sent = moved(case, each.rdma, _RETRANSMISSIONS), packets(case, each)
    if not isinstance(answer, Pass) or not isinstance(again, Moved):
        return answer
    if again.gap:
        return Unknown(each.place.subject, again.gap)
    if sent is None or sent < _LEAST_PACKETS or again.total <= case.threshold(_RATIO) * sent:
        return answer
    made = fault(case, each.place, again, Limit(_RATIO, "info"), words)
    return made._replace(summary=f"{again.total} adaptive retransmissions of {sent} packets, limit {_told_ratio(case)}")


def _told_ratio(case: Case) -> str:
    return f"{case.threshold(_RATIO):.0e}"
