"""ib-link-flap."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.flaps import Downs, Limits, judge_flaps, most
from agent.rules.infiniband_runtime.ports import LINK_DOWNED, Watched, watched
from agent.rules.rule import Answer, rule
from agent.rules.runtime import moved
from agent.rules.threshold import Threshold

_OF_IPOIB = ("carrier_down_count", "link_down_events_phy")
_LIMITS = Limits(
    Threshold("ib-link-flap.in_12_hours", 3, "times that a link went down in 12 hours"),
    Threshold("ib-link-flap.in_24_hours", 5, "times that a link went down in 24 hours"),
    Threshold("ib-link-flap.in_job", 1, "times in a window of ten minutes and less, while a job runs"),
)


@rule(
    "ib-link-flap",
    "error",
    needs=("rdma|rdma_tools",),
    references=("ib-link-flap",),
    absorbs=("ib-link-recovery", "ib-xmit-discards"),
    thresholds=_LIMITS[:3],
)
def ib_link_flap(case: Case) -> Iterator[Answer]:
    """An InfiniBand link goes down again and again.

    ## What it checks
    How often every InfiniBand port of a rail or storage NIC went down: in the window by `link_downed`, and by the
    counters of its IPoIB interface, in the last 12 hours by what earlier runs noted.

    ## Why it matters
    A link that failed its recovery trains anew; queue pairs break when that takes longer than their retries, about 30 s
    at NCCL's defaults, and the job dies.

    ## How it is decided
    Three times in 12 hours, five in 24, or once in a window of ten minutes while a job runs: error on rails, warning on
    storage NICs. The counters tell the same events: the highest one counts. Where half of the links went down, and two
    at least, it is one finding that suspects the switch.

    ## What keeps it silent
    - `link_downed` has 8 bits and sticks at 255: then the IPoIB interface's counters decide, else it is unknown.
    - Firmware or settings changed since the last run: not applicable.
    - What every boot brings: the first quarter of an hour, and windows that begin in it, are unknown. So are ports
      without an earlier sample.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/counters/link_downed`, twice; `ethtool -S IPOIB | grep link_down`

    ## How to fix
    Clean or replace the cable or transceiver, then the switch port. All rails at once: the switch.

    ## Source
    gpud (3 in 12 hours), Azure (5 in 24 hours); Linux `drivers/infiniband/core/sysfs.c` (widths).
    """
    found: list[Downs] = []
    for each in watched(case):
        if isinstance(each, Watched):
            ipoib = [moved(case, counters, [name]) for counters in each.ipoib for name in _OF_IPOIB]
            count = most(moved(case, each.counters, [LINK_DOWNED]), *ipoib)
            found.append(Downs(each.place, count, (each.ib.subject, *(c.subject for c in each.ipoib))))
        else:
            yield each
    impact = "100 % of its traffic stops while it trains; after about 30 s of retries the job dies."
    remedy = "Clean or replace cable or transceiver, then the switch port. Several at once: the switch."
    yield from judge_flaps(case, found, _LIMITS, impact, remedy)
