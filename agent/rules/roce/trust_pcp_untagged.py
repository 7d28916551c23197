"""roce-trust-pcp-untagged."""

from __future__ import annotations

from collections.abc import Iterator

from agent.rules.case import Case
from agent.rules.devices import lowered
from agent.rules.roce.lossless import Chain
from agent.rules.roce.told import by_cause, fault, pfc_words, set_trust
from agent.rules.rule import Answer, Fail, rule


@rule(
    "roce-trust-pcp-untagged",
    "error",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-trust-pcp-untagged",),
    absorbs=("roce-lossy",),
)
def roce_trust_pcp_untagged(case: Case) -> Iterator[Answer]:
    """A RoCE port looks for the class in VLAN tags, and its packets have none.

    ## What it checks
    The trust mode of the interface of every RoCE port, and whether the addresses that RoCE uses are on a VLAN.

    ## Why it matters
    A packet without a tag is priority 0 whatever its DSCP says: 0 % of RDMA reaches the lossless class, and above 1 %
    loss almost nothing of it arrives.

    ## How it is decided
    Trust is PCP, PFC is on for some priority but 0, and every address in use (RoCE v2, the one of `NCCL_IB_GID_INDEX`,
    else those that can be routed) is on the port's own interface. Error. That mlx5 trusts PCP is known from its empty
    APP table; with other drivers it is a warning of medium confidence. Storage: one step less.

    ## What keeps it silent
    - Addresses on a VLAN: a design of its own, see roce-vlan-no-egress-map. On both: unknown.
    - PFC on priority 0: consistent.
    - Counters of the window prove that RDMA uses a lossless priority.
    - Trust, addresses or DCB could not be read, virtual functions: unknown. `roce_mode = "lossy"`: not applicable.

    ## How to confirm
    `dcb app show dev INTERFACE` (no `dscp_prio`), or `mlnx_qos -i INTERFACE | grep trust`; `show_gids`

    ## How to fix
    `mlnx_qos -i INTERFACE --trust dscp`, or upstream `dcb app add dev INTERFACE dscp-prio 26:3` and the like for every
    DSCP in use.

    ## Source
    Linux `mlx5/core/en_dcbnl.c` (`mlx5e_dcbnl_ieee_getapp`); `mlnx_qos` infers it the same way.
    """
    yield from by_cause(case, "roce-trust-pcp-untagged", _fault)


def _fault(each: Chain) -> Fail:
    guessed = each.qos.trust_source == "APP table" and each.each.nic.driver not in ("mlx5_core", "mlx5", None)
    severity = each.severity
    return fault(
        each,
        f"trust is PCP, and no packet has a VLAN tag: all are priority 0, PFC is on for {pfc_words(each.qos)}",
        f"{set_trust()}.",
        severity=lowered(severity) if guessed else severity,
        confidence="medium" if guessed else "high",
    )
