"""roce-pause-and-pfc."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, over_readable, pfc_words
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule

_FRAMES = ("rx_pause_frames", "tx_pause_frames")  # bnxt: always there, and not zero where pause is in use


@rule("roce-pause-and-pfc", "warning", needs=("rdma|rdma_tools", "netdev"), references=("roce-pause-and-pfc",))
def roce_pause_and_pfc(case: Case) -> Iterator[Answer]:
    """A RoCE port has global pause and PFC at once.

    ## What it checks
    Global pause (802.3x) of the interface of every RoCE port that has PFC.

    ## Why it matters
    IEEE 802.1Q allows one of the two on a link. What happens with both is up to driver and switch: usually one side
    ignores the other's frames, and up to 100 % of what was to be lossless is dropped when queues fill.

    ## How it is decided
    PFC is on for some priority, pause is on in either direction, and the driver counts global pause frames: mlx5 has
    such counters only where it is in force, bnxt counts frames. Warning; storage: info.

    ## What keeps it silent
    - No counter says that pause is in force: some drivers report what was asked for.
    - PFC is off: not applicable (roce-global-pause). Pause or counters could not be read, virtual functions: unknown.

    ## How to confirm
    `ethtool -a INTERFACE`, and `ethtool -S INTERFACE | grep pause`

    ## How to fix
    `ethtool -A INTERFACE rx off tx off autoneg off`

    ## Source
    IEEE 802.1Q (priority-based flow control); NVIDIA mlx5 counters guide.
    """
    yield from over_readable(case, _judge)


def _judge(each: Chain, netdev: Netdev) -> Answer:
    subject, pause = each.each.subject, netdev.pause
    if not each.protected:
        return NotApplicable(subject, "PFC is off")
    if not pause or not (pause.rx or pause.tx):
        off = pause is not None and pause.rx is False and pause.tx is False
        return Pass(subject) if off else Unknown(subject, "its global pause could not be read")
    if not netdev.counters:
        return Unknown(subject, "its counters could not be read")
    in_force = any("global_pause" in name for name in netdev.counters)
    if not in_force and not any(netdev.counters.get(name) for name in _FRAMES):
        return Pass(subject)
    return fault(
        each,
        f"global pause is on beside PFC ({pfc_words(each.qos)})",
        "ethtool -A INTERFACE rx off tx off autoneg off.",
        impact="One end ignores the other's frames: what was to be lossless is dropped when queues fill.",
        severity=each.each.severity("warning"),
        confidence="medium",
    )
