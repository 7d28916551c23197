"""roce-cnp-class."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.counting import majority
from agent.rules.roce.congestion import cnp_priority, cnp_words
from agent.rules.roce.lossless import Chain, chains
from agent.rules.roce.told import fault, over_readable
from agent.rules.rule import Answer, Pass, Unknown, rule


@rule("roce-cnp-class", "info", needs=("rdma|rdma_tools", "netdev"), references=("roce-cnp-class",))
def roce_cnp_class(case: Case) -> Iterator[Answer]:
    """Congestion feedback of a RoCE port travels with the data that it reports, or otherwise than on other ports.

    ## What it checks
    The DSCP and the priority of congestion notification packets (CNP) of every RoCE port.

    ## Why it matters
    A CNP that queues behind the congestion arrives late: 1 MB of queue at 400 Gb/s is 20 microseconds, several round
    trips in which nobody slows down.

    ## How it is decided
    The priority of CNPs is that of RDMA, or 0; or their DSCP is another than on more than half of the ports of the same
    role. Info.

    ## What keeps it silent
    - A class of their own: 48 with priority 6 (NVIDIA) or 7 (Broadcom), 46 (OCI) are all fine.
    - The priority of RDMA or of CNPs not known (the kernel's own drivers do not tell), DCB not readable: unknown.

    ## How to confirm
    `grep . /sys/class/net/INTERFACE/ecn/roce_np/cnp_*`

    ## How to fix
    `echo 48 > /sys/class/net/INTERFACE/ecn/roce_np/cnp_dscp`, the same on all hosts, in a strict class of the switches.

    ## Source
    NVIDIA Cumulus RoCE guide; NVIDIA network operator (`CNP_DSCP_P1`, `CNP_802P_PRIO_P1`).
    """
    alike: dict[str, list[int | None]] = {}
    for each in chains(case):
        if isinstance(each, Chain) and each.qos.cnp_dscp is not None:
            alike.setdefault(each.each.nic.role, []).append(each.qos.cnp_dscp)
    usual = {role: majority(found) for role, found in alike.items()}
    yield from over_readable(case, lambda each, netdev: _judge(each, netdev, usual.get(each.each.nic.role)))


def _judge(each: Chain, netdev: Netdev, usual: int | None) -> Answer:
    subject, cnp, dscp = each.each.subject, cnp_priority(each.qos), each.qos.cnp_dscp
    if cnp is None:
        return Unknown(subject, "which priority CNPs use could not be read")
    if usual is not None and dscp is not None and dscp != usual:
        told, cause = f"CNPs have DSCP {dscp}, those of other ports {usual}", "differs"
    elif each.priority is None:
        return Unknown(subject, "which priority RDMA uses is not known")
    elif cnp == each.priority:
        told, cause = f"CNPs share priority {cnp} with RDMA", "data"
    elif cnp == 0:
        told, cause = "CNPs have priority 0, that of ordinary traffic", "default"
    else:
        return Pass(subject)
    row = Evidence(
        what=f"CNPs of {netdev.label}",
        value=cnp_words(each.qos),
        source=f"/sys/class/net/{netdev.label}/ecn/roce_np/cnp_dscp",
    )
    return fault(
        each,
        told,
        "echo 48 > /sys/class/net/INTERFACE/ecn/roce_np/cnp_dscp, the same on all hosts.",
        impact="Feedback queues behind the congestion: 1 MB of queue at 400 Gb/s is 20 microseconds.",
        severity="info",
        evidence=(row,),
        cause=cause,
        confidence="medium",
    )
