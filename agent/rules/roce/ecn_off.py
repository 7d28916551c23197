"""roce-ecn-off."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.counters import port_counters
from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, over_readable
from agent.rules.rule import Answer, Pass, Unknown, rule
from agent.rules.threshold import Threshold

MARKS = Threshold("roce-ecn-off.marks", 10_000, "ECN marks in the window of which none was answered, packets")
_PROGRAMMABLE = ("BlueField", "ConnectX-8", "ConnectX-9")  # their congestion control may not need ECN
_SIDES = {"np": "notification point", "rp": "reaction point"}


@rule(
    "roce-ecn-off",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-ecn-off",),
    thresholds=(MARKS,),
)
def roce_ecn_off(case: Case) -> Iterator[Answer]:
    """Congestion control of RoCE (ECN, DCQCN) is off for the class of RDMA.

    ## What it checks
    Whether the NIC answers marks of congestion (notification point) and slows down (reaction point) for the priority
    that RDMA uses, on every RoCE port.

    ## Why it matters
    Then only pauses hold senders back: they spread over the fabric, and flows that cause nothing get a fraction of
    their 400 Gb/s. With PFC off too nothing protects RDMA from loss.

    ## How it is decided
    The driver says that either side is off for the priority of RDMA, or for all 8 where that is not known; or the port
    counted 10000 marks in the window (threshold `roce-ecn-off.marks`) and answered none. Warning; error where PFC and
    pause are off, too. Info on NICs whose programmable congestion control may not need ECN (BlueField, ConnectX-8).
    Storage: one step less.

    ## What keeps it silent
    - Counters of zero: no congestion gives that, too.
    - The driver does not tell (the kernel's own mlx5), and no marks were counted; virtual functions: unknown.
    - A fabric that uses PFC alone on purpose: switch the rule off.

    ## How to confirm
    `grep . /sys/class/net/INTERFACE/ecn/roce_*/enable/*`, or `mlxconfig -d DEVICE query ROCE_CC_PRIO_MASK_P1`

    ## How to fix
    `echo 1 > /sys/class/net/INTERFACE/ecn/roce_np/enable/3`, the same for `roce_rp`; for good
    `mlxconfig -d DEVICE set ROCE_CC_PRIO_MASK_P1=255`.

    ## Source
    Zhu et al., Congestion Control for Large-Scale RDMA Deployments (2015); NVIDIA mlx5 counters guide.
    """
    yield from over_readable(case, lambda each, netdev: _judge(case, each, netdev))


def _judge(case: Case, each: Chain, netdev: Netdev) -> Answer:
    priority, ecn = each.priority, each.qos.ecn
    off = [side for side in _SIDES if _enabled(ecn.get(side), priority) is False]
    marks, answered = _counted(case, each)
    if off:
        which = "every priority" if priority is None else f"priority {priority}"
        told = f"ECN is off for {which}: {' and '.join(_SIDES[side] for side in off)}"
        rows = tuple(_row(netdev, side, ecn[side]) for side in off)
    elif marks is not None and answered == 0 and marks >= case.threshold(MARKS):
        told = f"{marks} marks of congestion were received and none was answered"
        folder = f"{each.each.folder}/hw_counters"
        rows = (
            Evidence(what="ECN marks, moved by", value=str(marks), source=f"{folder}/np_ecn_marked_roce_packets"),
            Evidence(what="CNPs sent, moved by", value="0", source=f"{folder}/np_cnp_sent"),
        )
    elif all(_enabled(ecn.get(side), priority) for side in _SIDES):
        return Pass(each.each.subject)
    else:
        known = "which priority RDMA uses is not known" if ecn else "the driver does not tell"
        return Unknown(each.each.subject, f"whether ECN is on for RDMA is not known: {known}")
    bare = not each.protected and each.verdict != "pause"
    programmable = (each.each.nic.model or "").startswith(_PROGRAMMABLE)
    at = "PRIORITY" if priority is None else str(priority)
    return fault(
        each,
        told + ("; PFC is off, too" if bare else ""),
        f"echo 1 > /sys/class/net/INTERFACE/ecn/roce_np/enable/{at}, the same for roce_rp; for good: "
        "mlxconfig -d DEVICE set ROCE_CC_PRIO_MASK_P1=255.",
        impact="Only pauses hold senders back: flows that cause no congestion get a fraction of their 400 Gb/s.",
        severity="info" if programmable else each.each.severity("error" if bare else "warning"),
        evidence=rows,
        confidence="medium",
        cause=",".join(off) or "marks",
    )


def _enabled(by_priority: list[bool] | None, priority: int | None) -> bool | None:
    """Whether one side is on for RDMA; None: not told, or on for some and the priority of RDMA is not known."""
    if not by_priority:
        return None
    if priority is None:
        return by_priority[0] if len(set(by_priority)) == 1 else None
    return by_priority[priority] if priority < len(by_priority) else None


def _counted(case: Case, each: Chain) -> tuple[int | None, int | None]:
    now = port_counters(each.each.port)
    names = ("np_ecn_marked_roce_packets", "np_cnp_sent")
    marks, answered = (case.moved(each.each.subject, name, now) for name in names)
    return marks, answered


def _row(netdev: Netdev, side: str, enabled: list[bool]) -> Evidence:
    return Evidence(
        what=f"{_SIDES[side]} of {netdev.label} by priority",
        value=",".join("1" if on else "0" for on in enabled),
        source=f"/sys/class/net/{netdev.label}/ecn/roce_{side}/enable/*",
    )
