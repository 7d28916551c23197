"""roce-rt-pause-storm."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_wire
from agent.rules.rule import Answer, Fail, Pass, rule
from agent.rules.runtime import Limit, Words, judged, moved, together
from agent.rules.threshold import Threshold

_WARNINGS = ("tx_pause_storm_warning_events", "continuous_pause_events", "continuous_roce_pause_events")
_ERRORS = ("tx_pause_storm_error_events",)
_EVENTS = Threshold("roce-rt-pause-storm.events", 1, "pause storms of one interface in the window")


@rule(
    "roce-rt-pause-storm",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-pause-storm",),
    thresholds=(_EVENTS,),
)
def roce_rt_pause_storm(case: Case) -> Iterator[Answer]:
    """A NIC paused its port without end.

    ## What it checks
    How the pause storm events of the interface of every active RoCE port moved.

    ## Why it matters
    A host that stopped taking packets pauses its switch, the switch pauses its neighbours: one node can freeze a rail
    or a pod of 100 nodes. After some seconds firmware gives up, switches pause off and drops.

    ## How it is decided
    One warning event and more in the window: error. One error event (firmware switched pause off and drops): critical.
    Storage NICs one step lower.

    ## What keeps it silent
    - Drivers without these counters (mlx5 and bnxt have them), virtual functions, ports without a role: not applicable.
    - A host that crashed and dumps its memory does this, too; it does not run an agent then.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'pause_storm|continuous'`, twice

    ## How to fix
    Drain the node. Look for a GPU or PCIe device that hangs, and at firmware. Leave storm prevention on
    (`/sys/class/net/IF/settings/pfc_stall_prevention`, OFED).

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; NVIDIA MLNX_EN flow control.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "pause storms")


def _judge(case: Case, each: Watched) -> Answer:
    remedy = "Drain the node; look for a GPU or PCIe device that hangs; firmware."
    stopped = Words("pause storms that firmware ended", "Pause is off on this port, and it drops.", remedy, cause="off")
    storm = Words("pause storms", "One node that pauses without end can freeze 100 % of its rail.", remedy)
    answers = [
        judged(case, each.place, moved(case, each.eth, _ERRORS), (Limit(_EVENTS, "critical"),), stopped),
        judged(
            case,
            each.place,
            together(moved(case, each.eth, _WARNINGS), moved(case, each.rdma, _WARNINGS)),
            (Limit(_EVENTS, "error"),),
            storm,
        ),
    ]
    found = next((answer for answer in answers if isinstance(answer, Fail)), None)
    return found or next((answer for answer in answers if not isinstance(answer, Pass)), answers[0])
