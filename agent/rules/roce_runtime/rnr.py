"""roce-rt-rnr."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, NotApplicable, rule
from agent.rules.runtime import MINUTE, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

# Told by the peer that it had no buffer posted; and the same seen here as receiver
_COUNTERS = ("rnr_nak_retry_err", "rnr_naks_rcvd", "RNR received", "requester_rnr_nak", "out_of_buffer")
_PER_MINUTE = Threshold("roce-rt-rnr.per_minute", 100, "receiver-not-ready events a minute of one port")
_GRAVE = Threshold("roce-rt-rnr.warning_per_minute", 10_000, "receiver-not-ready events a minute: a warning")
_WORDS = Words(
    "times no receive buffer was posted",
    "Each makes a sender wait and try again (0.01 to 655 ms): bandwidth falls though the network is fine.",
    "An application or CPU that does not keep up: CPU pinning, steal time, depth of the receive queues.",
)


@rule(
    "roce-rt-rnr",
    "info",
    needs=("rdma|rdma_tools",),
    references=("roce-rt-rnr",),
    thresholds=(_PER_MINUTE, _GRAVE),
)
def roce_rt_rnr(case: Case) -> Iterator[Answer]:
    """Receivers have no buffers posted for what arrives over RoCE.

    ## What it checks
    How receiver-not-ready NAKs and packets without a receive buffer moved on every active RoCE port of a rail.

    ## Why it matters
    The sender waits between 0.01 and 655 ms and tries again. NCCL posts its buffers ahead and normally has 0 of these:
    it is an application or a CPU that does not keep up, not the network.

    ## How it is decided
    More than 100 a minute: info. More than 10 000 a minute: warning. Both are thresholds.

    ## What keeps it silent
    - Storage NICs: targets run out of buffers in good health; not applicable. So are ports without a role.
    - No earlier sample, a host that still settles, or a counter that was reset: unknown.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/hw_counters/{rnr_nak_retry_err,out_of_buffer}`, twice

    ## How to fix
    Pin the processes to CPUs near the NIC, look for steal time and throttling, make the receive queues deeper.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; RNR timer values of the InfiniBand specification.
    """
    yield from by_port(case, lambda each: _judge(case, each), "receivers without buffers")


def _judge(case: Case, each: Watched) -> Answer:
    if each.roce.nic.role == "storage":
        return NotApplicable(each.place.subject, "a storage NIC: its peers run out of buffers in good health")
    limits = (Limit(_GRAVE, "warning", MINUTE), Limit(_PER_MINUTE, "info", MINUTE))
    return judged(case, each.place, moved(case, each.rdma, _COUNTERS), limits, _WORDS)
