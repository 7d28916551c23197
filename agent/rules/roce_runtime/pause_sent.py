"""roce-rt-pause-sent."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.pauses import Paused, paused
from agent.rules.roce_runtime.ports import Watched, by_wire
from agent.rules.rule import Answer, Fail, Pass, rule
from agent.rules.runtime import span
from agent.rules.threshold import Threshold

_WARN = Threshold("roce-rt-pause-sent.percent", 1, "of the window in which the NIC paused the switch, percent")
_ERROR = Threshold("roce-rt-pause-sent.error_percent", 10, "the same, percent: an error")


@rule(
    "roce-rt-pause-sent",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-pause-sent",),
    thresholds=(_WARN, _ERROR),
)
def roce_rt_pause_sent(case: Case) -> Iterator[Answer]:
    """A NIC pauses its switch, because this host does not take what arrives.

    ## What it checks
    For which share of the window the NIC paused a priority (or all) of its link, on every active RoCE port.

    ## Why it matters
    The host is slower than its link: a PCIe link that is down to half takes 31.5 GB/s of the 50 that a 400 Gb/s port
    brings. What cannot come in fills the switches, and other nodes wait, too.

    ## How it is decided
    More than 1 % of the window: warning. More than 10 %: error. Storage NICs one step lower.

    ## What keeps it silent
    - Less: short bursts are what pause is for.
    - No counter of pause durations (PFC off, virtual functions, other drivers): not applicable.
    - The NIC counts that it waits for PCIe: roce-rt-host-bound is the cause, and stands for it.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'tx_(prio._|global_)pause_duration'`, twice: microseconds

    ## How to fix
    Look at the NIC's PCIe link, ACS redirection, IOMMU, the NUMA node of its memory, and GPUDirect on that path.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limits are judgement.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "pause sent")


def _judge(case: Case, each: Watched) -> Answer:
    place, pause = each.place, paused(case, each, "tx")
    if not isinstance(pause, Paused):
        return pause
    percent = 100 * pause.share
    if percent <= case.threshold(_WARN):
        return Pass(place.subject)
    grave = percent > case.threshold(_ERROR)
    return Fail(
        subject=place.subject,
        label=place.label,
        summary=f"paused its switch for {percent:.0f} % of {span(case)}, "
        f"limit {case.threshold(_ERROR if grave else _WARN):g} %",
        impact=f"{percent:.0f} % of the time this host takes nothing in; what waits fills switches and stops others.",
        remedy="The host is the slow part: the NIC's PCIe link, ACS, IOMMU, the NUMA node of the memory.",
        evidence=pause.evidence,
        severity=place.severity("error" if grave else "warning"),
        places=place.places,
    )
