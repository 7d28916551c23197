"""ib-link-integrity."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port, went_down
from agent.rules.rule import Answer, rule
from agent.rules.runtime import Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("local_link_integrity_errors", "excessive_buffer_overrun_errors")
_LIMIT = Threshold("ib-link-integrity.events", 1, "integrity errors and buffer overruns in the window")
_WORDS = Words(
    "link integrity errors and buffer overruns",
    "Errors beyond what the link tolerates, or credits that the other end ignores: packets are lost.",
    "Clean or replace the cable; compare the virtual lanes and credits of both ends.",
)


@rule(
    "ib-link-integrity", "warning", needs=("rdma|rdma_tools",), references=("ib-link-integrity",), thresholds=(_LIMIT,)
)
def ib_link_integrity(case: Case) -> Iterator[Answer]:
    """An InfiniBand link has more errors than it tolerates, or overruns its buffers.

    ## What it checks
    How local link integrity errors and excessive buffer overruns of every InfiniBand port of a rail or storage NIC
    moved.

    ## Why it matters
    Both count only after a whole row of errors: a lossless fabric has 0 of them. An overrun says that the ports at both
    ends disagree about credits, or that the signal is very poor.

    ## How it is decided
    One and more in the window: warning on rails, info on storage NICs.

    ## What keeps it silent
    - The link went down in the window: it comes up with errors; not applicable (see ib-link-flap).
    - No earlier sample, a counter that was reset or stands at its maximum, windows that begin in the first quarter of
      an hour after boot: unknown. Ports without a role: not applicable.

    ## How to confirm
    `grep .
    /sys/class/infiniband/DEVICE/ports/1/counters/{local_link_integrity_errors,excessive_buffer_overrun_errors}`, twice

    ## How to fix
    Clean or replace the cable; look at the virtual lanes that the subnet manager sets on both ends.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`.
    """
    yield from by_port(case, lambda each: _judge(case, each), "integrity errors")


def _judge(case: Case, each: Watched) -> Answer:
    down = went_down(case, each)
    if down:
        return down
    return judged(case, each.place, moved(case, each.counters, _COUNTERS), (Limit(_LIMIT, "warning"),), _WORDS)
