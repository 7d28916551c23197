"""roce-lag-on-rails."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.roce.bonds import bonds, bonds_known
from agent.rules.rule import Answer, Fail, NotApplicable, rule


@rule("roce-lag-on-rails", "info", needs=("rdma|rdma_tools", "netdev"), references=("roce-lag-on-rails",))
def roce_lag_on_rails(case: Case) -> Iterator[Answer]:
    """A rail is a bond of several ports.

    ## What it checks
    Whether the interface of a RoCE rail is a member of a bond.

    ## Why it matters
    A bond is one RDMA device, and each queue pair stays on one of its ports: a connection has 50 % of the card, and
    two may meet on one port while the other is idle. NCCL can use both ports by itself.

    ## How it is decided
    A member of a bond is the interface of a rail: info, one for each bond. There are clouds that build rails so.

    ## What keeps it silent
    - Bonds of storage, management and other NICs.
    - Virtual machines, whose network is the provider's; nodes where no rail is in a bond: not applicable.

    ## How to confirm
    `cat /proc/net/bonding/BOND`; `rdma link show`

    ## How to fix
    Take the ports out of the bond, give each an address, and leave it to NCCL to use both (`NCCL_IB_MERGE_NICS=1`).

    ## Source
    NVIDIA OFED manual, RoCE over LAG (not recommended for GPU traffic); Linux mlx5 `core/lag/lag.c`.
    """
    found = [] if case.virtual_machine else bonds(case, ("rail",))
    if not found and bonds_known(case):
        yield NotApplicable("node", "no rail is in a bond, or this is a virtual machine")
    for bond in found:
        yield Fail(
            subject=f"netdev:{bond.netdev.id}",
            label=bond.netdev.label,
            summary=f"rail {', '.join(nic.label for nic in bond.nics)} is in {bond.netdev.label}: {bond.labels}",
            impact="a connection has one port of the bond, 50 % of two; two connections may meet on one.",
            remedy="Take the ports out of the bond and give each an address; NCCL_IB_MERGE_NICS=1 uses both.",
            evidence=(
                Evidence(
                    what="mode",
                    value=bond.mode or "not told",
                    source=f"/sys/class/net/{bond.netdev.label}/bonding/mode",
                ),
                Evidence(
                    what="members", value=bond.labels, source=f"/sys/class/net/{bond.netdev.label}/bonding/slaves"
                ),
            ),
            severity="info",
            places=bond.places,
        )
