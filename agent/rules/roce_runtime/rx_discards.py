"""roce-rt-rx-discards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_wire, discards, lossless, roce_priorities
from agent.rules.rule import Answer, Fail, rule
from agent.rules.runtime import MINUTE, Limit, Moved, Words, judged
from agent.rules.threshold import Threshold

_PRIORITY = re.compile(r"rx_prio(\d)_")
_PER_MINUTE = Threshold("roce-rt-rx-discards.per_minute", 100, "discarded frames a minute of one interface: an error")
_EVENTS = Threshold("roce-rt-rx-discards.events", 10, "discarded frames in the window: a warning")


@rule(
    "roce-rt-rx-discards",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-rx-discards",),
    thresholds=(_PER_MINUTE, _EVENTS),
)
def roce_rt_rx_discards(case: Case) -> Iterator[Answer]:
    """A NIC drops received RoCE frames, because it has no buffer left.

    ## What it checks
    How the discards of the interface of every active RoCE port of a rail or storage NIC moved, by priority where the
    driver counts so.

    ## Why it matters
    It is the proof that the loss is here: each dropped frame makes its sender go back, above 1 % loss next to nothing
    arrives. In a lossless class a NIC never drops; it pauses the switch.

    ## How it is decided
    On priorities that may carry RoCE (with PFC on, or with a tenth of the bytes of a port that mostly does RDMA): 100
    frames a minute: error; ten in the window: warning. On other priorities alone: info, a matter of TCP. Storage NICs
    one step lower.

    ## What keeps it silent
    - Fewer than ten. Queues without receive buffers (`out_of_buffer`) are roce-rt-rnr's.
    - Virtual functions do not count the wire: not applicable; so are ports without a role.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep discard`, twice

    ## How to fix
    Put RoCE into a class with PFC (`mlnx_qos -i IF`), give it headroom; look at PCIe width, ACS, IOMMU and the maximal
    read request, which slow the NIC's way into memory.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limits are judgement.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "discards of received frames")


def _judge(case: Case, each: Watched) -> Answer:
    count, carrying = discards(case, each), roce_priorities(case, each)
    foreign = isinstance(count, Moved) and _foreign(count, carrying)
    words = Words(
        "received frames discarded" + (", none of a priority of RoCE" if foreign else ""),
        "TCP sends them again; RoCE loses nothing."
        if foreign
        else "Each makes its sender go back: above 1 % next to nothing arrives, and collectives wait.",
        _remedy(each),
        "high" if carrying else "medium",
        "other-class" if foreign else "",
    )
    limits = (Limit(_PER_MINUTE, "error", MINUTE), Limit(_EVENTS, "warning"))
    answer = judged(case, each.place, count, limits, words)
    return answer._replace(severity="info") if foreign and isinstance(answer, Fail) else answer


def _foreign(count: Moved, carrying: frozenset[int] | None) -> bool:
    """Every discard is of a priority that carries no RoCE."""
    if not carrying:
        return False
    found = [_PRIORITY.match(name) for name in count.parts]
    return all(m is not None and int(m[1]) not in carrying for m in found)


def _remedy(each: Watched) -> str:
    on = lossless(each)
    state = "not known" if on is None else ", ".join(map(str, sorted(on))) or "off"
    return f"PFC here: {state}. Put RoCE into a class with PFC and headroom; look at PCIe width, ACS and IOMMU."
