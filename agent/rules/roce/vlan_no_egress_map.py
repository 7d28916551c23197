"""roce-vlan-no-egress-map."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce.lossless import Chain
from agent.rules.roce.tagging import tags
from agent.rules.roce.told import by_cause, evidence, fault, pfc_words
from agent.rules.rule import Answer, Fail, rule


@rule(
    "roce-vlan-no-egress-map",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-vlan-no-egress-map",),
    absorbs=("roce-lossy",),
)
def roce_vlan_no_egress_map(case: Case) -> Iterator[Answer]:
    """RDMA on a VLAN carries a priority in its tag that is not lossless.

    ## What it checks
    The egress map of the VLAN that RoCE addresses are on, and `NCCL_IB_SL`, where the port trusts PCP.

    ## Why it matters
    Without a map and a service level the tag says priority 0: 0 % of RDMA is in the lossless class, and above 1 % loss
    almost nothing of it arrives.

    ## How it is decided
    Trust is PCP, PFC is on, every address in use is on a VLAN, and neither the VLAN's egress map nor `NCCL_IB_SL` leads
    to a priority with PFC. Warning, error where packets were lost in the window. Storage: one step less.

    ## What keeps it silent
    - The port trusts DSCP: tags do not matter.
    - The map or the service level leads to a lossless priority.
    - Addresses on a VLAN and beside it, or a map that could not be read: unknown. `roce_mode = "lossy"`: not
      applicable.

    ## How to confirm
    `ip -d link show VLAN` (egress-qos-map), and `dcb pfc show dev INTERFACE`

    ## How to fix
    `ip link set VLAN type vlan egress 0:3 4:3` for priority 3, or `NCCL_IB_SL=3`, or let the port trust DSCP.

    ## Source
    Linux `net/8021q` (`vlan_dev_get_egress_qos_mask`) and `drivers/infiniband/core/cma.c`.
    """
    yield from by_cause(case, "roce-vlan-no-egress-map", lambda each: _fault(case, each))


def _fault(case: Case, each: Chain) -> Fail:
    vlan = tags(case, each.each).vlan
    name = vlan.label if vlan else "VLAN"
    said = str((vlan.vlan or {}).get("egress_map") or "none") if vlan else "none"
    to = each.protected[0]
    return fault(
        each,
        f"VLAN tags carry priority {each.priority}, PFC is on for {pfc_words(each.qos)}",
        f"ip link set VLAN type vlan egress 0:{to} 4:{to}, or NCCL_IB_SL={to}, or let the port trust DSCP.",
        severity=each.each.severity("error" if each.losses else "warning"),
        confidence="medium",
        evidence=(
            Evidence(what=f"egress map of {name}", value=said, source=f"ip -d link show {name}"),
            *evidence(each),
        ),
    )
