"""ib-xmit-discards."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port, went_down
from agent.rules.rule import Answer, rule
from agent.rules.runtime import Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("port_xmit_discards",)
_LIMIT = Threshold("ib-xmit-discards.in_10_minutes", 100, "outbound packets discarded in ten minutes")
_WORDS = Words(
    "outbound packets discarded",
    "Each is sent again after a timeout of up to 4.3 s (NCCL's default).",
    "Look for congestion, credit loops and peers that hang; then at the switch.",
)


@rule("ib-xmit-discards", "warning", needs=("rdma|rdma_tools",), references=("ib-xmit-discards",), thresholds=(_LIMIT,))
def ib_xmit_discards(case: Case) -> Iterator[Answer]:
    """An InfiniBand port throws away packets that it should send.

    ## What it checks
    How the outbound discards of every InfiniBand port of a rail or storage NIC moved.

    ## Why it matters
    A lossless fabric discards only what waited too long for credits, or for a port that is down. Each costs its sender
    a timeout, 4.3 s at NCCL's default.

    ## How it is decided
    100 in ten minutes: warning on rails, info on storage NICs.

    ## What keeps it silent
    - The link went down in the window: what was queued is discarded then; not applicable (see ib-link-flap).
    - No earlier sample, a counter that was reset or stands at its maximum, windows that begin in the first quarter of
      an hour after boot: unknown. Ports without a role: not applicable.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/counters/port_xmit_discards`, twice

    ## How to fix
    Find the congested or hanging peer; look for credit loops in the routing and at the head-of-queue lifetime.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`; UFM (200 in a window of alarms).
    """
    yield from by_port(case, lambda each: _judge(case, each), "discards")


def _judge(case: Case, each: Watched) -> Answer:
    down = went_down(case, each)
    if down:
        return down
    return judged(case, each.place, moved(case, each.counters, _COUNTERS), (Limit(_LIMIT, "warning", 600.0),), _WORDS)
