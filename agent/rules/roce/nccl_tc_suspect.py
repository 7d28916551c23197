"""roce-nccl-tc-suspect."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import by_cause, fault, pfc_words, set_marking, traffic_class_of
from agent.rules.rule import Answer, Fail, rule


@rule(
    "roce-nccl-tc-suspect",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-nccl-tc-suspect",),
    absorbs=("roce-lossy",),
)
def roce_nccl_tc_suspect(case: Case) -> Iterator[Answer]:
    """A traffic class of RDMA looks like a DSCP, or is no number of 0 to 255.

    ## What it checks
    The traffic class that is in force for RDMA (`NCCL_IB_TC`, the driver's forced one, the declared one) on every RoCE
    port with PFC.

    ## Why it matters
    A traffic class is four times the DSCP: 26 is DSCP 6 and lands in priority 0, 106 is DSCP 26. With the slip 0 % of
    RDMA is in the lossless class.

    ## How it is decided
    The value leads to a priority without PFC, and either the same number, read as a DSCP, leads to one with PFC, or it
    is above 255, or no number at all (then NCCL takes 0). Error; storage: warning.

    ## What keeps it silent
    - The value leads to a lossless priority: 41, 96, 104, 105, 106, 128, 136, 160 and 192 are all in use somewhere.
    - PFC is off (roce-pfc-off), the port trusts PCP (roce-trust-pcp-untagged), counters of the window prove otherwise.
    - DCB or NCCL's files could not be read: unknown. `roce_mode = "lossy"`: not applicable.

    ## How to confirm
    `grep NCCL_IB_TC /etc/nccl.conf`, and `dcb app show dev INTERFACE`

    ## How to fix
    DSCP times 4, plus 2 for ECN: 26 becomes `NCCL_IB_TC=106`, 24 becomes 98, 34 becomes 138.

    ## Source
    NCCL `src/transport/net_ib`; RFC 2474 (DS field); settings of OCI (41) and Alibaba PAI (136).
    """
    yield from by_cause(case, "roce-nccl-tc-suspect", _fault)


def _fault(each: Chain) -> Fail:
    marking = each.marking
    assert marking is not None  # the chain names this cause for a marking only
    right = traffic_class_of(each.qos)
    if marking.wrong:
        slip = f"traffic class {marking.text!r} {marking.wrong}"
    else:
        right = marking.traffic_class * 4 + 2
        slip = f"traffic class {marking.text} is DSCP {marking.dscp}; DSCP {marking.text} would be {right}"
    return fault(
        each,
        f"{slip}: RDMA uses priority {each.priority}, PFC is on for {pfc_words(each.qos)}",
        f"It should be {right}: {set_marking(right)}.",
        cause="wrong" if marking.wrong else "",
    )
