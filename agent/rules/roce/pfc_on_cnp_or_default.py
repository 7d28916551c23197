"""roce-pfc-on-cnp-or-default."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.roce.congestion import cnp_priority, cnp_words
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import evidence, fault, over_readable, pfc_words, set_pfc
from agent.rules.rule import Answer, NotApplicable, Pass, Unknown, rule


@rule(
    "roce-pfc-on-cnp-or-default",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-pfc-on-cnp-or-default",),
)
def roce_pfc_on_cnp_or_default(case: Case) -> Iterator[Answer]:
    """Congestion feedback, or ordinary traffic, is in a lossless class beside that of RDMA.

    ## What it checks
    Whether PFC of a RoCE port covers the priority of congestion notification packets (CNP), or priority 0, while RDMA
    uses another one.

    ## Why it matters
    A paused CNP arrives late, and senders slow down only after the queues are full: at 400 Gb/s that is 50 kB more for
    every microsecond. A paused priority 0 lets TCP hold up the link of RDMA.

    ## How it is decided
    The priority of RDMA is known, and PFC is on for it and for the CNP's priority (by the CNP's DSCP where the port
    trusts DSCP), or for it and for priority 0. Warning; storage: info.

    ## What keeps it silent
    - PFC on the class of RDMA alone. RDMA really uses priority 0.
    - CNPs share the class of RDMA: roce-cnp-class tells that.
    - PFC is off: not applicable. The priority of RDMA or of CNPs, or DCB not known: unknown.

    ## How to confirm
    `dcb pfc show dev INTERFACE`, and `cat /sys/class/net/INTERFACE/ecn/roce_np/cnp_dscp`

    ## How to fix
    PFC for the class of RDMA only (`mlnx_qos -i INTERFACE --pfc 0,0,0,1,0,0,0,0`), CNPs in a strict class without PFC
    (6 or 7).

    ## Source
    NVIDIA Cumulus RoCE guide; Juniper validated design for AI networks.
    """
    yield from over_readable(case, _judge)


def _judge(each: Chain, netdev: Netdev) -> Answer:
    subject, on, data, cnp = each.each.subject, each.protected, each.priority, cnp_priority(each.qos)
    if not on:
        return NotApplicable(subject, "PFC is off")
    if data is None:
        return Unknown(subject, "which priority RDMA uses is not known") if len(on) > 1 else Pass(subject)
    wrong = ["congestion notification packets"] if cnp in on and cnp != data else []
    wrong += ["ordinary traffic (priority 0)"] if 0 in on and data != 0 and cnp != 0 else []
    if wrong:
        row = Evidence(
            what=f"CNPs of {netdev.label}",
            value=cnp_words(each.qos),
            source=f"/sys/class/net/{netdev.label}/ecn/roce_np/cnp_dscp",
        )
        return fault(
            each,
            f"PFC covers {' and '.join(wrong)}: on for {pfc_words(each.qos)}, RDMA uses priority {data}",
            f"{set_pfc(data)}; CNPs belong into a strict class without PFC, 6 or 7.",
            impact="Feedback waits behind the queue that it reports, at 400 Gb/s 50 kB more for every microsecond.",
            severity=each.each.severity("warning"),
            evidence=(*evidence(each), *((row,) if cnp is not None else ())),
            cause="cnp" if "congestion" in wrong[0] else "default",
            confidence="medium",
        )
    if cnp is None and set(on) - {data}:
        return Unknown(subject, "which priority CNPs use could not be read")
    return Pass(subject)
