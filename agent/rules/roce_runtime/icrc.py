"""roce-rt-icrc."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, rule
from agent.rules.runtime import HOUR, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("rx_icrc_encapsulated",)
_PER_HOUR = Threshold("roce-rt-icrc.per_hour", 10, "RoCE packets with a wrong ICRC an hour of one port")
_WORDS = Words(
    "RoCE packets with a wrong ICRC",
    "Each was altered on its way though every link's check sum was right, and must be sent again.",
    "Find the switch or line card that all these paths share; look for a device that rewrites packets.",
)


@rule("roce-rt-icrc", "warning", needs=("rdma|rdma_tools",), references=("roce-rt-icrc",), thresholds=(_PER_HOUR,))
def roce_rt_icrc(case: Case) -> Iterator[Answer]:
    """RoCE packets arrive altered, though the links' own check sums were right.

    ## What it checks
    How the packets with a wrong invariant CRC moved on every active RoCE port of a rail or storage NIC.

    ## Why it matters
    The frame check sum is made anew by every switch, the ICRC only by the sender: a wrong one means that a switch's
    memory, a retimer or a middlebox altered the packet. 1 in 10^9 on one path already stops jobs for seconds.

    ## How it is decided
    10 an hour and more: warning, on storage NICs info.

    ## What keeps it silent
    - Single ones, as after a link flap. Ports without a role and what is no RoCE: not applicable.
    - No earlier sample, a host that still settles, or a counter that was reset: unknown.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/hw_counters/rx_icrc_encapsulated`, twice

    ## How to fix
    Isolate the switch or line card that the affected paths share; take out what rewrites fields of the packet.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; the limit is judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "altered packets")


def _judge(case: Case, each: Watched) -> Answer:
    return judged(case, each.place, moved(case, each.rdma, _COUNTERS), (Limit(_PER_HOUR, "warning", HOUR),), _WORDS)
