"""roce-lossy."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import fault, not_judged, over_ports, pfc_words, set_marking, set_pfc, traffic_class_of
from agent.rules.rule import Answer, Pass, rule


@rule(
    "roce-lossy",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-lossy",),
    absorbs=(
        "roce-pfc-nic-asymmetry",
        "roce-pfc-switch-mismatch",
        "roce-rt-retrans",
        "roce-rt-rx-discards",
        "roce-rt-class-usage",
    ),
)
def roce_lossy(case: Case) -> Iterator[Answer]:
    """RDMA of a RoCE port travels in a class that may be dropped.

    ## What it checks
    The whole chain of every active RoCE port of a rail or storage NIC: how packets are marked, which priority that is,
    and whether that priority is lossless. The rule that names the broken link of the chain stands for this one:
    roce-pfc-off, roce-class-mismatch, roce-marking-unset, roce-nccl-tc-suspect, roce-trust-pcp-untagged or
    roce-vlan-no-egress-map. This one is told where that rule is switched off.

    ## Why it matters
    RoCE repeats whole windows (go-back-N): above 1 % loss almost nothing arrives. One lost last packet costs a timeout,
    4.3 s with NCCL's defaults, and one slow rail holds up every collective of the job.

    ## How it is decided
    Marking: a traffic class that the driver forces, else `NCCL_IB_TC` of running jobs, else the declared fact
    `roce_traffic_class`, else `NCCL_IB_TC` of files, else 0 where those were read. DSCP: marking divided by 4.
    Priority: by the DSCP table where the port trusts DSCP; else by the VLAN tag, and 0 without one. Where counters of a
    window prove which priority RDMA uses (10 GB and more), they count. PFC on that priority: lossless. Error where PFC
    is configured or meant, or packets were lost in the window; else warning. Storage: one step less.

    ## What keeps it silent
    - `roce_mode = "lossy"` in the configuration, or a switch that announces a class for RoCE and no PFC: by design.
    - Global pause in both directions where PFC is off: lossless, see roce-global-pause.
    - EFA, iWARP and cloud NICs, software devices, ports that are not active or have no role: not applicable.
    - DCB, trust or marking not known, virtual functions, interfaces in another network namespace: unknown.

    ## How to confirm
    `dcb pfc show dev INTERFACE`, `dcb app show dev INTERFACE`, and `grep NCCL_IB_TC /etc/nccl.conf`

    ## How to fix
    Choose one class, and set it alike on marking, trust and PFC of every host, and on the switches: for priority 3
    `mlnx_qos -i INTERFACE --trust dscp --pfc 0,0,0,1,0,0,0,0` and `NCCL_IB_TC=106`. Drain the node first: setting PFC
    bounces the link of mlx5. It does not last over a reboot by itself.

    ## Source
    Linux `mlx5/core/en_dcbnl.c`; NVIDIA Cumulus RoCE guide; Guo et al., RDMA over Commodity Ethernet at Scale (2016).
    """
    yield from over_ports(case, _judge)


def _judge(each: Chain) -> Answer:
    if each.verdict != "lossy":
        return not_judged(each) or Pass(each.each.subject)
    used = f"RDMA uses priority {each.priority} ({each.how}), " if each.priority is not None else ""
    mend = set_marking(traffic_class_of(each.qos)) if each.protected else set_pfc(3)
    return fault(each, f"{used}PFC is on for {pfc_words(each.qos)}: see {each.cause}", mend, cause=each.cause)
