"""roce-class-mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import by_cause, fault, pfc_words, set_marking, set_pfc, traffic_class_of
from agent.rules.rule import Answer, Fail, rule


@rule(
    "roce-class-mismatch",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-class-mismatch",),
    absorbs=("roce-lossy",),
)
def roce_class_mismatch(case: Case) -> Iterator[Answer]:
    """RDMA uses another class than the one that is lossless.

    ## What it checks
    The priority that RDMA of every RoCE port really lands in, against the priorities with PFC.

    ## Why it matters
    It looks configured and is lossy: marking and PFC are often set by different people. RoCE repeats whole windows:
    above 1 % loss almost nothing arrives.

    ## How it is decided
    PFC is on for some priority, and off for the one in use. In use is what the counters of a window prove (10 GB of
    RDMA and more, at least 80 % of the port's bytes, more than half of them in one priority); else what the marking
    leads to: forced by the driver, `NCCL_IB_TC` of jobs, declared, of files. Error; on storage NICs warning.

    ## What keeps it silent
    - Marking not known, and no traffic that shows it; DCB not readable; virtual functions: unknown.
    - Nothing sets a marking (roce-marking-unset), the value looks like a slip (roce-nccl-tc-suspect), or the port
      trusts PCP (roce-trust-pcp-untagged, roce-vlan-no-egress-map): told there, once.
    - `roce_mode = "lossy"`: not applicable.

    ## How to confirm
    `dcb pfc show dev INTERFACE`, `dcb app show dev INTERFACE`, `ethtool -S INTERFACE | grep tx_prio`

    ## How to fix
    Mark for the class that is lossless (DSCP 26: `NCCL_IB_TC=106`, or the driver's
    `/sys/class/infiniband/DEVICE/tc/1/traffic_class`), or move PFC to the class in use, here and on the switches.

    ## Source
    Linux `mlx5/core/en_dcbnl.c`; NCCL `src/transport/net_ib`; NVIDIA network operator, RoCE profile.
    """
    yield from by_cause(case, "roce-class-mismatch", _fault)


def _fault(each: Chain) -> Fail:
    marking, priority = each.marking, each.priority or 0
    by = f"traffic class {marking.text} is DSCP {marking.dscp}: " if marking and "DSCP" in each.how else ""
    return fault(
        each,
        f"{by}RDMA uses priority {priority} ({each.how}), PFC is on for {pfc_words(each.qos)}",
        f"{set_marking(traffic_class_of(each.qos))}. Or move PFC to the class in use, here and on the switches: "
        f"{set_pfc(priority)}.",
    )
