"""roce-lag-broken."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.devices import by_role
from agent.rules.roce.bonds import LAG_MODES, Bond, bonds, bonds_known
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


@rule(
    "roce-lag-broken",
    "warning",
    needs=("rdma|rdma_tools", "netdev"),
    references=("roce-lag-broken",),
    absorbs=("roce-lag-on-rails",),
)
def roce_lag_broken(case: Case) -> Iterator[Answer]:
    """A bond that carries RoCE works on one port only, or RoCE does not follow it.

    ## What it checks
    Bonds of which a member is the interface of a rail or storage NIC: their members, their mode, and the RDMA devices.

    ## Why it matters
    With one member down the bond has 50 % of its bandwidth and no spare. Where RoCE does not follow the bond, 100 % of
    the RDMA traffic stays on one port, and a failover breaks every connection.

    ## How it is decided
    A member is down while another is up; or all members are ports of one mlx5 card, and the bond's mode is none in
    which RoCE follows (active-backup, balance-xor, 802.3ad); or the mode is one, and each port still has an RDMA device
    of its own. A bond of rails: warning. Of storage NICs: info.

    ## What keeps it silent
    - Bonds of several cards: RoCE does not follow them by design, and only their members are looked at.
    - Virtual functions are in use on the card: the driver then keeps a device for each port; not looked at.
    - Virtual machines; no such bond: not applicable. A member whose state could not be read: unknown.

    ## How to confirm
    `cat /proc/net/bonding/BOND`; `rdma link show` (one device, `mlx5_bond_0`, for two ports)

    ## How to fix
    A member that is down: cable, module, switch port. No common device: remove virtual functions, use one of these
    modes, and make the bond anew.

    ## Source
    NVIDIA OFED manual, RoCE over LAG; Linux `drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c`.
    """
    found = [] if case.virtual_machine else bonds(case, ("rail", "storage"))
    if not found and bonds_known(case):
        yield NotApplicable("node", "no RoCE port is in a bond, or this is a virtual machine")
    for bond in found:
        yield _judge(bond)


def _judge(bond: Bond) -> Answer:
    subject = f"netdev:{bond.netdev.id}"
    states = [netdev.operstate for netdev in bond.members]
    down = [netdev.label for netdev in bond.members if netdev.operstate not in ("up", None)]
    if down and "up" in states:
        return _fault(
            bond, f"{', '.join(down)} is down; {len(states) - len(down)} of {len(states)} members carry it", "member"
        )
    if None in states:
        return Unknown(subject, "the state of a member could not be read")
    devices = [nic for nic in bond.nics if nic.rdma_device and "bond" not in nic.rdma_device]
    if _one_card(bond) and not any(nic.virtual_functions for nic in bond.nics):
        if bond.mode and bond.mode not in LAG_MODES:
            return _fault(bond, f"RoCE does not follow a bond in mode {bond.mode}", "mode")
        if bond.mode and len(devices) > 1:
            names = ", ".join(nic.label for nic in devices)
            return _fault(
                bond, f"its ports still have an RDMA device each ({names}): RoCE does not follow it", "devices"
            )
    return Pass(subject)


def _one_card(bond: Bond) -> bool:
    cards = {(netdev.pci or netdev.id).rpartition(".")[0] for netdev in bond.members}
    drivers = {(netdev.driver or "mlx5_core") for netdev in bond.members}
    return len(bond.members) > 1 and len(cards) == 1 and drivers == {"mlx5_core"}


def _fault(bond: Bond, summary: str, cause: str) -> Fail:
    folder = f"/sys/class/net/{bond.netdev.label}/bonding"
    return Fail(
        subject=f"netdev:{bond.netdev.id}",
        label=bond.netdev.label,
        summary=f"{bond.netdev.label}: {summary}",
        impact="50 % of the bandwidth of two ports, and no spare: the next failover breaks every connection.",
        remedy="A member that is down: cable, module, switch port. Else remove virtual functions, and make it anew.",
        evidence=(
            Evidence(what="mode", value=bond.mode or "not told", source=f"{folder}/mode"),
            Evidence(what="members", value=bond.labels, source=f"{folder}/slaves"),
            Evidence(
                what="RDMA devices",
                value=", ".join(nic.rdma_device or "none" for nic in bond.nics),
                source="/sys/class/infiniband",
            ),
        ),
        severity=by_role("warning", bond.nics[0]),
        cause=cause,
        places=bond.places,
    )
