"""roce-pfc-multi."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, over_readable, pfc_words, set_pfc
from agent.rules.rule import Answer, NotApplicable, Pass, rule
from agent.rules.threshold import Threshold

CLASSES = Threshold("roce-pfc-multi.classes", 2, "lossless priorities that are still fine")


@rule(
    "roce-pfc-multi",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-pfc-multi",),
    absorbs=("roce-pfc-on-cnp-or-default",),
    thresholds=(CLASSES,),
)
def roce_pfc_multi(case: Case) -> Iterator[Answer]:
    """A RoCE port has many lossless classes.

    ## What it checks
    How many priorities of every RoCE port have PFC.

    ## Why it matters
    Each lossless class needs headroom of its own, about 160 kB at 400 Gb/s and 7 m of cable, and couples more traffic
    by pauses. PFC on all 8 is global pause with another name: everything waits for everything.

    ## How it is decided
    More than 2 priorities (threshold `roce-pfc-multi.classes`) with PFC: warning. All 8: error. Storage: one step less.

    ## What keeps it silent
    - One class, or two: GPU traffic and storage each with its own is a legitimate design.
    - PFC is off: not applicable. DCB not readable, virtual functions, other network namespaces: unknown.

    ## How to confirm
    `dcb pfc show dev INTERFACE`, or `mlnx_qos -i INTERFACE`

    ## How to fix
    Keep one class for data: `mlnx_qos -i INTERFACE --pfc 0,0,0,1,0,0,0,0`. It bounces the link of mlx5: drain first.

    ## Source
    Linux `mlx5/core/en/port_buffer.c`; IEEE 802.1Qbb.
    """
    yield from over_readable(case, lambda each, netdev: _judge(case, each, netdev))


def _judge(case: Case, each: Chain, netdev: Netdev) -> Answer:
    on = each.protected
    if not on:
        return NotApplicable(each.each.subject, "PFC is off")
    if len(on) <= case.threshold(CLASSES):
        return Pass(each.each.subject)
    keep = each.priority if each.priority in on else on[0]
    return fault(
        each,
        f"PFC is on for {len(on)} priorities ({pfc_words(each.qos)})",
        f"Keep one class for data: {set_pfc(keep)}.",
        impact=f"{len(on)} classes share the headroom of one, and a pause of any of them spreads to more traffic.",
        severity=each.each.severity("error" if len(on) == 8 else "warning"),
        cause="all" if len(on) == 8 else "",
    )
