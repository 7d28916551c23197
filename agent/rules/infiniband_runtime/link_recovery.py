"""ib-link-recovery."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, rule
from agent.rules.runtime import HOUR, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("link_error_recovery",)
_LIMIT = Threshold("ib-link-recovery.per_hour", 1, "times an hour that a link recovered from errors")
_WORDS = Words(
    "recoveries of the link",
    "Each stops the link for milliseconds to seconds; the next one may fail, and the link goes down.",
    "Clean or replace cable or transceiver, then the switch port.",
)


@rule("ib-link-recovery", "warning", needs=("rdma|rdma_tools",), references=("ib-link-recovery",), thresholds=(_LIMIT,))
def ib_link_recovery(case: Case) -> Iterator[Answer]:
    """An InfiniBand link loses its signal and recovers, again and again.

    ## What it checks
    How often the link of every InfiniBand port of a rail or storage NIC recovered from errors.

    ## Why it matters
    Each recovery stops all traffic of the port for milliseconds to seconds, and a collective over 8 rails with it. A
    link that recovers often soon fails to.

    ## How it is decided
    Once an hour: warning on rails, info on storage NICs.

    ## What keeps it silent
    - A link that went down in the window: ib-link-flap is the cause, and stands for it where it is over its limit.
    - No earlier sample, a counter that was reset or stands at its maximum, windows that begin in the first quarter of
      an hour after boot: unknown. Ports without a role: not applicable.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/counters/link_error_recovery`, twice

    ## How to fix
    Clean or replace the cable or transceiver, then try another port of the switch.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`; UFM alarms at small counts, too.
    """
    yield from by_port(case, lambda each: _judge(case, each), "recoveries")


def _judge(case: Case, each: Watched) -> Answer:
    return judged(case, each.place, moved(case, each.counters, _COUNTERS), (Limit(_LIMIT, "warning", HOUR),), _WORDS)
