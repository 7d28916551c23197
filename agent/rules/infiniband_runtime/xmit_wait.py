"""ib-xmit-wait."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, watched
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule
from agent.rules.runtime import Moved, moved, of, rate, span
from agent.rules.threshold import Threshold

_TIMES = Threshold("ib-xmit-wait.times_median", 5, "times the median of the other rails that one waits to send")
_TICKS = Threshold("ib-xmit-wait.ticks_per_second", 1e6, "ticks a second, below which nothing is said")
_LEAST_SIBLINGS = 2


@rule(
    "ib-xmit-wait",
    "info",
    needs=("rdma|rdma_tools",),
    references=("ib-xmit-wait",),
    thresholds=(_TIMES, _TICKS),
)
def ib_xmit_wait(case: Case) -> Iterator[Answer]:
    """One InfiniBand rail waits far longer to send than the others.

    ## What it checks
    How long every active InfiniBand port of a rail had data to send and no credits, against the other rails of the
    node.

    ## Why it matters
    A collective loads all rails alike; one that waits 5 times as long as the others has a slow peer or a congested
    path, and all wait for it.

    ## How it is decided
    More than five times the median of the other rails (two at least), and a million ticks a second: info. How long a
    tick is differs by device, so ports are compared with each other only.

    ## What keeps it silent
    - All rails wait alike: a heavy load. Huge numbers are normal here.
    - Storage NICs and fewer than three rails: nothing to compare with, not applicable.
    - No earlier sample, a counter that was reset or stands at its maximum: unknown.

    ## How to confirm
    `grep . /sys/class/infiniband/*/ports/1/counters/port_xmit_wait`, twice

    ## How to fix
    Look for a slow peer on that rail, at the load of its leaf and spine ports, and at adaptive routing.

    ## Source
    Linux `Documentation/ABI/stable/sysfs-class-infiniband`; the limits are judgement.
    """
    found: list[tuple[Watched, Moved]] = []
    for each in watched(case):
        if not isinstance(each, Watched):
            yield each
        elif each.ib.nic.role != "rail" or each.ib.port.state != "ACTIVE":
            yield NotApplicable(each.place.subject, "no active rail")
        else:
            count = moved(case, each.counters, ["port_xmit_wait"])
            if isinstance(count, Moved):
                found.append((each, count))
            else:
                yield of(each.place, count)
    for each, count in found:
        yield _judge(case, each, count, [other.total for port, other in found if port is not each and not other.gap])


def _judge(case: Case, each: Watched, count: Moved, others: list[int]) -> Answer:
    place = each.place
    if count.gap:
        return Unknown(place.subject, count.gap)
    if len(others) < _LEAST_SIBLINGS:
        return NotApplicable(place.subject, "fewer than three rails: nothing to compare with")
    usual = median(others)
    if rate(case, count.total, 1.0) < case.threshold(_TICKS) or count.total <= case.threshold(_TIMES) * usual:
        return Pass(place.subject)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"waited {count.total} ticks to send in {span(case)}; the other rails {usual:.0f}, "
        f"limit {case.threshold(_TIMES):g} times that",
        impact="Collectives wait for this rail: up to 100 % of what the others could carry meanwhile.",
        remedy="Look for a slow peer on this rail, at its leaf and spine ports, and at adaptive routing.",
        evidence=count.evidence,
        severity="info",
        confidence="medium",
        places=place.places,
    )
