"""roce-cnp-ignored."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.runtime import Moved, moved, of, span
from agent.rules.threshold import Threshold

_IGNORED, _HANDLED = ("rp_cnp_ignored", "cnpIgnored"), ("rp_cnp_handled", "cnpHandled")
_SHARE = Threshold("roce-cnp-ignored.percent", 1, "congestion notifications that were ignored, percent of all")
_LEAST = Threshold("roce-cnp-ignored.events", 100, "ignored notifications in the window, below which nothing is said")


@rule(
    "roce-cnp-ignored",
    "warning",
    needs=("rdma|rdma_tools",),
    references=("roce-cnp-ignored",),
    thresholds=(_SHARE, _LEAST),
)
def roce_cnp_ignored(case: Case) -> Iterator[Answer]:
    """A sender ignores the congestion notifications that it gets.

    ## What it checks
    The share of congestion notification packets that every active RoCE port got in the window and did not act on.

    ## Why it matters
    A sender that does not slow down leaves congestion to PFC alone: pauses spread through the fabric, and other jobs
    lose up to 100 % of their bandwidth while they last.

    ## How it is decided
    More than 1 % of all notifications were ignored, and 100 at least: warning, on storage NICs info.

    ## What keeps it silent
    - Small bursts, as when queue pairs are closed. Drivers without these counters: not applicable.
    - No earlier sample, a host that still settles, or a counter that was reset: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/DEVICE/ports/1/hw_counters/rp_cnp_*`, twice

    ## How to fix
    Switch the reaction point on for the priority of RoCE: `echo 1 > /sys/class/net/IF/ecn/roce_rp/enable/3` (OFED), or
    `mlxconfig -d DEVICE set ROCE_CC_PRIO_MASK_P1=255`.

    ## Source
    Linux `drivers/infiniband/hw/mlx5/counters.c`; DCQCN (SIGCOMM 2015).
    """
    yield from by_port(case, lambda each: _judge(case, each), "ignored congestion notifications")


def _judge(case: Case, each: Watched) -> Answer:
    place, ignored, handled = each.place, moved(case, each.rdma, _IGNORED), moved(case, each.rdma, _HANDLED)
    if not isinstance(ignored, Moved):
        return of(place, ignored)
    if not isinstance(handled, Moved):
        return of(place, handled)
    if ignored.gap or (ignored.total and handled.gap):
        return Unknown(place.subject, ignored.gap or handled.gap or "")
    share = 100 * ignored.total / max(ignored.total + handled.total, 1)
    if ignored.total < case.threshold(_LEAST) or share <= case.threshold(_SHARE):
        return Pass(place.subject)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"ignored {ignored.total} of {ignored.total + handled.total} congestion notifications in "
        f"{span(case)} ({share:.0f} %, limit {case.threshold(_SHARE):g} %)",
        impact=f"{share:.0f} % of the times that it should slow down it does not: congestion is left to PFC.",
        remedy="Switch the reaction point (roce_rp) on for the priority of RoCE.",
        evidence=ignored.evidence + handled.evidence,
        severity=place.severity("warning"),
        places=place.places,
    )
