"""roce-rt-pause-unanswered."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_priority, by_wire, lossless
from agent.rules.rule import Answer, rule
from agent.rules.runtime import MINUTE, Limit, Moved, Words, judged, moved
from agent.rules.threshold import Threshold

_PER_MINUTE = Threshold("roce-rt-pause-unanswered.per_minute", 10, "pause frames a minute that nothing here obeys")
_ALL = ("rx_pause_ctrl_phy",)
_FOREIGN = ("rx_unsupported_op_phy",)
_OBEYED = ("rx_global_pause", *(f"rx_prio{p}_pause" for p in range(8)))


@rule(
    "roce-rt-pause-unanswered",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-pause-unanswered",),
    thresholds=(_PER_MINUTE,),
)
def roce_rt_pause_unanswered(case: Case) -> Iterator[Answer]:
    """The switch sends pause frames that this port does not obey.

    ## What it checks
    On the interface of every active RoCE port: pause frames received against those that a priority, or the whole port,
    obeyed; and pauses of priorities on which this host sends nothing.

    ## Why it matters
    The switch says "stop", and the port goes on: what it sends is dropped there, up to 100 %. It proves that host and
    switch disagree about pause or about the class, without any look at the switch.

    ## How it is decided
    Ten frames a minute and more that are of an unknown kind (PFC is off here), that no counter of obeyed pause accounts
    for, or that pause a priority on which less than 1 % of what this host sends goes out: warning, storage NICs info.

    ## What keeps it silent
    - Pause frames that are obeyed; drivers without these counters (mlx5 has them), virtual functions: not applicable.
    - A priority that carries storage: it sends, so it is meant.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'pause|unsupported_op'`, twice

    ## How to fix
    Set PFC alike on both sides: `mlnx_qos -i INTERFACE` here, the queue of the RoCE class on the switch.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limit is judgement.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "unanswered pause frames")


def _judge(case: Case, each: Watched) -> Answer:
    received, foreign = moved(case, each.eth, _ALL), moved(case, each.eth, _FOREIGN)
    obeyed = moved(case, each.eth, _OBEYED)
    if not isinstance(received, Moved) or not isinstance(foreign, Moved):
        first = received if not isinstance(received, Moved) else foreign
        return judged(case, each.place, first, (), _WORDS)
    if isinstance(obeyed, Moved) and obeyed.gap and received.total:
        received = Moved({}, (), obeyed.gap)
    rest = max(received.total - (obeyed.total if isinstance(obeyed, Moved) else 0), 0)
    unused = _unused(case, each)
    parts = {"rx_pause_ctrl_phy": rest, "rx_unsupported_op_phy": foreign.total} | unused
    rows = received.evidence + foreign.evidence + (obeyed.evidence if isinstance(obeyed, Moved) else ())
    count = Moved(parts, rows, received.gap or foreign.gap)
    return judged(case, each.place, count, (Limit(_PER_MINUTE, "warning", MINUTE),), _WORDS)


def _unused(case: Case, each: Watched) -> dict[str, int]:
    """Pause frames of priorities with PFC on which (next to) nothing is sent, while something is on others."""
    sent, pauses = by_priority(case, each, "tx_prio{}_bytes"), by_priority(case, each, "rx_prio{}_pause")
    total, on = sum(sent.values()), lossless(each)
    if not on:
        return {}
    return {f"rx_prio{p}_pause": n for p, n in pauses.items() if 100 * sent.get(p, total) < total}


_WORDS = Words(
    "pause frames that nothing here obeys",
    "What the port sends meanwhile the switch drops, up to 100 %: host and switch disagree about the class.",
    "Set PFC alike on both sides (mlnx_qos -i INTERFACE; the queue of the class on the switch).",
    "medium",
)
