"""roce-link-flap."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.flaps import Downs, Limits, judge_flaps, most
from agent.rules.roce_runtime.ports import Watched, wires
from agent.rules.rule import Answer, rule
from agent.rules.runtime import moved
from agent.rules.threshold import Threshold

_COUNTERS = ("carrier_down_count", "link_down_events_phy", "link_down_events")
_LIMITS = Limits(
    Threshold("roce-link-flap.in_12_hours", 3, "times that a link went down in 12 hours"),
    Threshold("roce-link-flap.in_24_hours", 5, "times that a link went down in 24 hours"),
    Threshold("roce-link-flap.in_job", 1, "times in a window of ten minutes and less, while a job runs"),
)


@rule(
    "roce-link-flap",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-link-flap",),
    thresholds=_LIMITS[:3],
)
def roce_link_flap(case: Case) -> Iterator[Answer]:
    """The link of a RoCE port goes down again and again.

    ## What it checks
    How often the interface of every RoCE port of a rail or storage NIC went down: in the window by its counters, in the
    last 12 hours by what earlier runs noted. Ports that are down now, too.

    ## Why it matters
    Traffic stops for the seconds that a link needs to come up; that can exceed all retries of a queue pair (30 s at
    NCCL's defaults), and the job dies.

    ## How it is decided
    Three times in 12 hours, five in 24, or once in a window of ten minutes while a job runs: error on rails, warning on
    storage NICs. The counters of kernel and NIC tell the same events: the higher one counts. Where half of the links
    went down, and two at least, it is one finding that suspects the switch.

    ## What keeps it silent
    - A setting that takes the link down (MTU, PFC, FEC, firmware) changed since the last run: not applicable.
    - What every boot brings: the first quarter of an hour, and windows that begin in it, are unknown.
    - No earlier sample, a driver that was loaded anew, an interface in another network namespace: unknown.

    ## How to confirm
    `cat /sys/class/net/INTERFACE/carrier_down_count`, `ethtool -S INTERFACE | grep link_down`; the kernel log

    ## How to fix
    Clean or replace fibre or module; read the switch's log of that port. All rails at once: the switch.

    ## Source
    gpud (3 in 12 hours), Azure (5 in 24 hours) and OCI health checks; Linux mlx5 `counters.rst`.
    """
    found: list[Downs] = []
    for each in wires(case, down=True):
        if isinstance(each, Watched):
            counts = [moved(case, each.eth, [name]) for name in _COUNTERS]
            found.append(Downs(each.place, most(*counts), (each.roce.subject, each.eth.subject)))
        else:
            yield each
    impact = "100 % of its traffic stops for seconds each time; after about 30 s of retries the job dies."
    remedy = "Clean or replace fibre or module; read the switch's log of the port. Several at once: the switch."
    yield from judge_flaps(case, found, _LIMITS, impact, remedy)
