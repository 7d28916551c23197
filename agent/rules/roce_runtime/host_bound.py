"""roce-rt-host-bound."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce_runtime.ports import Watched, by_wire
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule
from agent.rules.runtime import MINUTE, Limit, Words, judged, moved
from agent.rules.threshold import Threshold

_STALLS = Threshold("roce-rt-host-bound.stalls_per_minute", 5, "seconds a minute in which writes waited for PCIe")
_DROPS = Threshold("roce-rt-host-bound.overflows_per_minute", 1, "packets a minute lost to a full PCIe buffer")
_QUEUES = Threshold("roce-rt-host-bound.no_buffer_per_minute", 100, "times a minute that the device had no buffer")
_IMPACT = "The NIC waits for this host's PCIe: the rail runs below its rate, and pause spreads to the fabric."
_REMEDY = "Look at the NIC's PCIe width and speed, its read request size, ACS redirection, IOMMU and NUMA placement."
# Counter, limit, and what is said of it; the gravest first
_CAUSES = (
    ("outbound_pci_buffer_overflow", Limit(_DROPS, "error", MINUTE), "packets lost to a full PCIe buffer"),
    ("outbound_pci_stalled_wr_events", Limit(_STALLS, "warning", MINUTE), "seconds in which writes waited for PCIe"),
    ("dev_out_of_buffer", Limit(_QUEUES, "warning", MINUTE), "times that the device had no receive buffer"),
)


@rule(
    "roce-rt-host-bound",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-rt-host-bound",),
    absorbs=("roce-rt-pause-sent",),
    thresholds=(_STALLS, _DROPS, _QUEUES),
)
def roce_rt_host_bound(case: Case) -> Iterator[Answer]:
    """A RoCE NIC waits for the PCIe side of this host.

    ## What it checks
    How the counters of stalled PCIe writes, of packets lost to a full PCIe buffer and of missing device buffers moved
    on every active RoCE port (mlx5).

    ## Why it matters
    The node itself is the narrow part: in each second that is counted writes waited for more than 30 % of the time. A
    400 Gb/s rail needs 50 GB/s; a PCIe link at half width gives 31.5.

    ## How it is decided
    5 such seconds a minute, or 100 times a minute without a device buffer: warning. A packet a minute lost to a full
    PCIe buffer: error. Storage NICs one step lower.

    ## What keeps it silent
    - Fewer. Firmware and functions without these counters: not applicable.
    - A PCIe link that trained narrower or slower, or that cannot carry the line rate: that is the cause, and stands for
      this.
    - No earlier sample, counters that could not be read or were reset: unknown.

    ## How to confirm
    `ethtool -S INTERFACE | grep -E 'outbound_pci|dev_out_of_buffer'`, twice

    ## How to fix
    PCIe width and speed, the maximal read request (4096), ACS redirection, IOMMU, NUMA placement of the memory.

    ## Source
    Linux `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`; the limits are judgement.
    """
    yield from by_wire(case, lambda each: _judge(case, each), "waiting for PCIe")


def _judge(case: Case, each: Watched) -> Answer:
    answers = [
        judged(case, each.place, moved(case, each.eth, [name]), (limit,), Words(what, _IMPACT, _REMEDY))
        for name, limit, what in _CAUSES
    ]
    return next((a for kind in (Fail, Unknown, Pass) for a in answers if isinstance(a, kind)), answers[0])
