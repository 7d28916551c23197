"""roce-marking-unset."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import by_cause, fault, pfc_words, set_marking, traffic_class_of
from agent.rules.rule import Answer, Fail, rule


@rule(
    "roce-marking-unset",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-marking-unset",),
    absorbs=("roce-lossy",),
)
def roce_marking_unset(case: Case) -> Iterator[Answer]:
    """A lossless class is there, and nothing puts RDMA into it.

    ## What it checks
    Whether anything marks RDMA packets of a RoCE port that has PFC: the driver's forced traffic class, `NCCL_IB_TC` in
    `/etc/nccl.conf`, users' files and the environments of running jobs, or the declared `roce_traffic_class`.

    ## Why it matters
    NCCL's default is traffic class 0. The lossless class stays empty, 0 % of RDMA is protected, and above 1 % loss
    almost nothing of it arrives.

    ## How it is decided
    PFC is on for some priority, nothing sets a traffic class, and DSCP 0 goes to a priority without PFC. Warning, error
    where packets were lost in the window. Info where something that was not seen may set it: jobs that may not be
    looked into, or a network plugin of NCCL. Storage: one step less.

    ## What keeps it silent
    - DSCP 0 goes to a priority with PFC; the port trusts PCP (told by roce-trust-pcp-untagged).
    - Counters of the window prove that RDMA uses a lossless priority.
    - A job launcher that sets it for every job: declare `roce_traffic_class = 106` below `[facts]`.
    - NCCL's files could not be read, DCB not readable: unknown. `roce_mode = "lossy"`: not applicable.

    ## How to confirm
    `grep NCCL_IB_TC /etc/nccl.conf`, and `tr '\\0' '\\n' < /proc/PID/environ | grep NCCL_IB_TC` of a job

    ## How to fix
    `NCCL_IB_TC=106` (DSCP 26 and ECT(0)), or the value of the site, in `/etc/nccl.conf` of every node.

    ## Source
    NCCL `src/transport/net_ib` (`NCCL_IB_TC`); NVIDIA network operator's RoCE profile sets PFC 3 and no ToS.
    """
    yield from by_cause(case, "roce-marking-unset", _fault)


def _fault(each: Chain) -> Fail:
    doubt = each.marking.doubt if each.marking else None
    mark = traffic_class_of(each.qos)
    declare = "" if mark is None else f" Where launchers set it, declare it: roce_traffic_class = {mark} below [facts]."
    return fault(
        each,
        f"nothing marks RDMA: NCCL sends DSCP 0, which is priority {each.priority}; PFC is on for "
        f"{pfc_words(each.qos)}" + (f" ({doubt})" if doubt else ""),
        f"{set_marking(mark)}.{declare}",
        severity="info" if doubt else each.each.severity("error" if each.losses else "warning"),
        confidence="low" if doubt else "high" if each.losses else "medium",
    )
