"""roce-prio2buffer-shared."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import netdev_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import ranges
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, over_readable
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule
from agent.rules.threshold import Threshold

SHARE = Threshold("roce-prio2buffer-shared.percent", 1, "bytes of other priorities in the buffer that matter, percent")


@rule(
    "roce-prio2buffer-shared",
    "info",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-prio2buffer-shared",),
    thresholds=(SHARE,),
)
def roce_prio2buffer_shared(case: Case) -> Iterator[Answer]:
    """Traffic that may be lost fills the receive buffer of the lossless class.

    ## What it checks
    Which receive buffer each priority of a RoCE port goes to, and whether others share that of a lossless one.

    ## Why it matters
    mlx5 takes a buffer as lossless where any of its 8 priorities has PFC: TCP in it eats the headroom, and makes the
    port pause RDMA.

    ## How it is decided
    A priority without PFC has the buffer of one with PFC, and received more than 1 % of the port's bytes in the window
    (threshold `roce-prio2buffer-shared.percent`). Info.

    ## What keeps it silent
    - Buffers of their own; no traffic in the other priorities.
    - PFC off, or on for all 8: not applicable. Buffers not read, no earlier sample of the counters, virtual functions:
      unknown.

    ## How to confirm
    `dcb buffer show dev INTERFACE`, or `mlnx_qos -i INTERFACE`; `ethtool -S INTERFACE | grep rx_prio`

    ## How to fix
    `mlnx_qos -i INTERFACE --prio2buffer 0,0,0,1,0,0,0,0`, or upstream
    `dcb buffer set dev INTERFACE prio-buffer all:0 3:1`

    ## Source
    Linux `mlx5/core/en/port_buffer.c` (`update_buffer_lossy`).
    """
    yield from over_readable(case, lambda each, netdev: _judge(case, each, netdev))


def _judge(case: Case, each: Chain, netdev: Netdev) -> Answer:
    subject, on = each.each.subject, each.protected
    where = each.qos.buffers.get("prio_buffer", [])
    if not on or len(on) == 8:
        return NotApplicable(subject, "no priority beside lossless ones")
    if len(where) < 8:
        return Unknown(subject, "its receive buffers could not be read")
    lossless = {where[n] for n in on}
    sharing = [n for n in range(8) if n not in on and where[n] in lossless]
    netdev_id, now = f"netdev:{netdev.id}", netdev_counters(netdev)
    received = {n: case.moved(netdev_id, f"rx_prio{n}_bytes", now) for n in range(8)}
    if any(received[n] is None for n in sharing):
        return Unknown(subject, f"whether anything uses them: {case.not_moved(netdev_id, 'rx_prio0_bytes')}")
    total = sum(moved or 0 for moved in received.values())
    busy = [n for n in sharing if 100 * (received[n] or 0) > case.threshold(SHARE) * total]
    if not busy:
        return Pass(subject)
    return fault(
        each,
        f"priority {ranges(busy)} shares the receive buffer of the lossless priority {ranges(on)}, and is in use",
        "mlnx_qos -i INTERFACE --prio2buffer with a buffer for the lossless priority alone.",
        impact="Ordinary traffic eats the headroom of up to 8 priorities, and makes the port pause RDMA.",
        severity="info",
        evidence=(
            Evidence(
                what=f"buffer of priority 0 to 7 of {netdev.label}",
                value=",".join(map(str, where)),
                source=f"dcb buffer show dev {netdev.label}",
            ),
            *(
                Evidence(
                    what=f"rx_prio{n}_bytes of {netdev.label}, moved by",
                    value=str(received[n]),
                    source=f"ethtool -S {netdev.label}",
                )
                for n in busy
            ),
        ),
        confidence="medium",
    )
