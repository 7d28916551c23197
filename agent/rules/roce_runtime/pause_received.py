"""roce-rt-pause-received."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from agent.rules.case import Case
from agent.rules.roce_runtime.pauses import Paused, paused
from agent.rules.roce_runtime.ports import Watched, wires
from agent.rules.rule import Answer, Fail, Pass, rule
from agent.rules.runtime import span
from agent.rules.threshold import Threshold

_INFO = Threshold("roce-rt-pause-received.percent", 5, "of the window in which a priority was paused, percent")
_WARN = Threshold(
    "roce-rt-pause-received.warning_percent", 25, "the same, percent: a warning where one rail sticks out"
)
_STICKS_OUT = 5.0  # times the median of the other ports


@rule(
    "roce-rt-pause-received",
    "info",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-pause-received",),
    thresholds=(_INFO, _WARN),
)
def roce_rt_pause_received(case: Case) -> Iterator[Answer]:
    """The switch holds a RoCE port back.

    ## What it checks
    For which share of the window the switch paused a priority (or all) of the interface of every active RoCE port.

    ## Why it matters
    While it is paused the port sends nothing of that priority: 25 % pause are 25 % of the rail's bandwidth. The
    congestion is further down, at the receiver or on the way to it.

    ## How it is decided
    More than 5 % of the window: info. More than 25 %, and five times the median of the other ports of this node:
    warning on rails, info on storage NICs, because then it is one path and not the load.

    ## What keeps it silent
    - All ports are paused alike: what a heavy collective does; info at most.
    - No counter of pause durations (PFC off, virtual functions, other drivers): not applicable.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'rx_(prio._|global_)pause_duration'`, twice: microseconds

    ## How to fix
    Find the congested egress port on the switch; ECN thresholds that are too high; rails that are loaded unevenly.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limits are judgement.
    """
    found: list[tuple[Watched, Paused]] = []
    for each in wires(case):
        if not isinstance(each, Watched):
            yield each
            continue
        said = paused(case, each, "rx")
        if isinstance(said, Paused):
            found.append((each, said))
        else:
            yield said
    for each, pause in found:
        others = [other.share for port, other in found if port is not each]
        yield _judge(case, each, pause, others)


def _judge(case: Case, each: Watched, pause: Paused, others: list[float]) -> Answer:
    place, percent = each.place, 100 * pause.share
    if percent <= case.threshold(_INFO):
        return Pass(place.subject)
    usual = median(others) if others else pause.share
    sticks_out = pause.share >= _STICKS_OUT * usual and percent > case.threshold(_WARN)
    limit = case.threshold(_WARN if sticks_out else _INFO)
    among = f"; the other ports {100 * usual:.0f} %" if others else ""
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"paused by the switch for {percent:.0f} % of {span(case)}, limit {limit:g} %{among}",
        impact=f"{percent:.0f} % of the time it sends nothing of that priority: congestion further down.",
        remedy="Find the congested egress port of the switch; ECN thresholds; load of the rails.",
        evidence=pause.evidence,
        severity=place.severity("warning") if sticks_out else "info",
        cause="one-port" if sticks_out else "",
        places=place.places,
    )
