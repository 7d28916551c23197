"""ib-rcv-errors."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port, went_down
from agent.rules.rule import Answer, rule
from agent.rules.runtime import HOUR, Limit, Moved, Words, judged, moved
from agent.rules.threshold import Threshold

_PER_HOUR = Threshold("ib-rcv-errors.per_hour", 10, "packets received with errors an hour of one port")


@rule(
    "ib-rcv-errors",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("ib-rcv-errors",),
    thresholds=(_PER_HOUR,),
)
def ib_rcv_errors(case: Case) -> Iterator[Answer]:
    """Packets arrive damaged at an InfiniBand port.

    ## What it checks
    How the receive errors of every InfiniBand port of a rail or storage NIC moved, beside those that a switch further
    away had marked already.

    ## Why it matters
    A damaged packet is dropped, and its sender waits for a timeout: 4.3 s at NCCL's default, in which a collective over
    all nodes stands still.

    ## How it is decided
    Ten an hour: warning on rails, info on storage NICs. As many or more marked by a switch (remote physical errors):
    the damage is upstream, and the text says so.

    ## What keeps it silent
    - The link went down in the window: not applicable (see ib-link-flap). Symbol errors over their limit are the cause.
    - No earlier sample, a counter that was reset or stands at its maximum, windows that begin in the first quarter of
      an hour after boot: unknown. Ports without a role: not applicable.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/counters/port_rcv_{errors,remote_physical_errors}`, twice

    ## How to fix
    Clean or replace the cable of this port; where the damage is upstream, find the link with symbol errors by
    `ibqueryerrors`.

    ## Source
    infiniband-diags `error_thresholds`; Linux `Documentation/ABI/stable/sysfs-class-infiniband`.
    """
    yield from by_port(case, lambda each: _judge(case, each), "receive errors")


def _judge(case: Case, each: Watched) -> Answer:
    down = went_down(case, each)
    if down:
        return down
    count = moved(case, each.counters, ["port_rcv_errors"])
    marked = moved(case, each.counters, ["port_rcv_remote_physical_errors"])
    upstream = False
    if isinstance(marked, Moved) and isinstance(count, Moved) and marked.total >= max(count.total, 1):
        upstream, count = True, count._replace(evidence=count.evidence + marked.evidence)
    words = Words(
        "packets received with errors" + (", damaged on a link further away" if upstream else ""),
        "Each is dropped, and its sender waits for a timeout of up to 4.3 s (NCCL's default).",
        "Find the link with symbol errors (ibqueryerrors): it is not this port's."
        if upstream
        else "Clean or replace the cable or transceiver of this port.",
        cause="upstream" if upstream else "",
    )
    return judged(case, each.place, count, (Limit(_PER_HOUR, "warning", HOUR),), words)
