"""ib-constraint-errors."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, rule
from agent.rules.runtime import HOUR, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("port_xmit_constraint_errors", "port_rcv_constraint_errors")
_LIMIT = Threshold("ib-constraint-errors.per_hour", 10, "packets an hour that a partition forbids")
_WORDS = Words(
    "packets that its partitions forbid",
    "100 % of that traffic is dropped: the two ends are in different partitions.",
    "Compare the P_Keys of both ends; have the subnet manager's partitions mended.",
    "medium",
)


@rule(
    "ib-constraint-errors",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("ib-constraint-errors",),
    thresholds=(_LIMIT,),
)
def ib_constraint_errors(case: Case) -> Iterator[Answer]:
    """Packets at an InfiniBand port violate its partitions.

    ## What it checks
    How the constraint errors (P_Key and raw filters) of every InfiniBand port of a rail or storage NIC moved.

    ## Why it matters
    Each is a packet that the port was not allowed to send or to take: somebody talks over a partition that is not
    shared, and 100 % of it is dropped.

    ## How it is decided
    Ten an hour: warning on rails, info on storage NICs; confidence is medium, because another node can send them.

    ## What keeps it silent
    - Single ones: a node that was moved to another partition a moment ago.
    - No earlier sample, a counter that was reset or stands at its maximum, windows that begin in the first quarter of
      an hour after boot: unknown. Ports without a role: not applicable.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/counters/{port_xmit_constraint_errors,port_rcv_constraint_errors}`,
    twice

    ## How to fix
    `grep . /sys/class/infiniband/DEVICE/ports/1/pkeys/*` on both ends; mend the partitions in the subnet manager.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`; the limit is judgement.
    """
    yield from by_port(case, lambda each: _judge(case, each), "partition violations")


def _judge(case: Case, each: Watched) -> Answer:
    return judged(case, each.place, moved(case, each.counters, _COUNTERS), (Limit(_LIMIT, "warning", HOUR),), _WORDS)
