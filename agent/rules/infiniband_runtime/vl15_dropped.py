"""ib-vl15-dropped."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.infiniband_runtime.ports import Watched, by_port
from agent.rules.rule import Answer, rule
from agent.rules.runtime import HOUR, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_COUNTERS = ("VL15_dropped",)
_LIMIT = Threshold("ib-vl15-dropped.per_hour", 50, "management packets dropped an hour")
_WORDS = Words(
    "management packets dropped",
    "The subnet manager asks again: sweeps take longer, and changes of the fabric are seen later.",
    "Ask less: slower monitoring by MADs, a longer sweep interval.",
)


@rule("ib-vl15-dropped", "info", needs=("rdma|rdma_tools",), references=("ib-vl15-dropped",), thresholds=(_LIMIT,))
def ib_vl15_dropped(case: Case) -> Iterator[Answer]:
    """An InfiniBand port drops management packets.

    ## What it checks
    How the drops of virtual lane 15 of every InfiniBand port of a rail or storage NIC moved.

    ## Why it matters
    Virtual lane 15 has no flow control: who asks too fast is dropped. From 50 an hour on sweeps of the subnet manager
    take longer, and so does everything that waits for them.

    ## How it is decided
    50 an hour: info.

    ## What keeps it silent
    - Fewer: single drops are normal.
    - No earlier sample, a counter that was reset or stands at its maximum, windows that begin in the first quarter of
      an hour after boot: unknown. Ports without a role: not applicable.

    ## How to confirm
    `cat /sys/class/infiniband/DEVICE/ports/1/counters/VL15_dropped`, twice

    ## How to fix
    Let monitoring ask less often, and make the sweep interval longer.

    ## Source
    infiniband-diags `error_thresholds` (100), UFM (50).
    """
    yield from by_port(case, lambda each: _judge(case, each), "dropped management packets")


def _judge(case: Case, each: Watched) -> Answer:
    return judged(case, each.place, moved(case, each.counters, _COUNTERS), (Limit(_LIMIT, "info", HOUR),), _WORDS)
