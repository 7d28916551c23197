"""Bonds (LAG) of RoCE ports."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.nic import Netdev, Nic
from agent.rules.context import RuleContext
from agent.rules.devices import severity_by_role
from agent.rules.rule import NODE, Fail, NamedSubject, Result, Subject, rule
from agent.rules.wording import join_labels

LAG_MODES = ("active-backup", "balance-xor", "802.3ad")  # in which mlx5 makes one RDMA device of two ports


class Bond(Subject, frozen=True):
    """One bond that carries RoCE."""

    netdev: Netdev
    members: tuple[Netdev, ...]
    nics: tuple[Nic, ...]  # of the members, those of a role that is judged

    @property
    def mode(self) -> str:
        """The kernel's word for it; "" where it was not read."""
        mode = (self.netdev.bond or {}).get("mode", "")
        return mode if isinstance(mode, str) else ""

    @property
    def labels(self) -> str:
        """Its members, for people."""
        return ", ".join(f"{netdev.label} ({netdev.operstate or 'state not known'})" for netdev in self.members)

    @property
    def about(self) -> Subject:
        """Its interface, with all that is below it."""
        nics = {nic.id for nic in self.nics} | {nic.pci or nic.id for nic in self.nics}
        ports = {f"{nic.id}/{port.port}" for nic in self.nics for port in nic.ports}
        ids = frozenset({self.netdev.id, *(netdev.id for netdev in self.members), *nics, *ports})
        return NamedSubject(f"netdev:{self.netdev.id}", self.netdev.label, ids)


def are_bonds_known(context: RuleContext) -> bool:
    """Whether it is certain that there is none where none was found: what was not read may be in a bond."""
    return context.virtual_machine or context.why_probe_failed("rdma", "netdev") is None


def bonds(context: RuleContext, roles: tuple[str, ...]) -> list[Bond]:
    """Bonds with a member that is the interface of an Ethernet NIC in one of these roles.

    The second port of a bond has no RDMA device of its own and the role "auxiliary": its bond is its partner's.
    """
    bond_list = []
    for netdev in context.topology.netdevs:
        if netdev.bond is None:
            continue
        members = tuple(member for member in context.topology.netdevs if member.master == netdev.label)
        below = [context.nics[member.nic] for member in members if member.nic and member.nic in context.nics]
        nics = tuple(nic for nic in below if nic.role in roles and not nic.limited and not nic.software)
        if any(port.link_layer == "Ethernet" for nic in nics for port in nic.ports):
            bond_list.append(Bond(netdev, members, nics))
    return bond_list


@rule("roce-lag-on-rails")
def roce_lag_on_rails(context: RuleContext) -> Iterator[Result]:
    bond_list = [] if context.virtual_machine else bonds(context, ("rail",))
    if not bond_list and are_bonds_known(context):
        yield NODE.not_applicable("guest", detail="no rail is in a bond, or this is a virtual machine")
    for bond in bond_list:
        yield bond.fail(
            summary=f"{join_labels([nic.label for nic in bond.nics])}, for jobs, in one bond: {bond.labels}",
            impact="A connection uses one port of the bond only; two connections may share one port "
            "while the other is idle.",
            evidence=(
                Evidence("mode", bond.mode or "not reported", f"/sys/class/net/{bond.netdev.label}/bonding/mode"),
                Evidence("members", bond.labels, f"/sys/class/net/{bond.netdev.label}/bonding/slaves"),
            ),
            severity="info",
        )


@rule("roce-lag-broken")
def roce_lag_broken(context: RuleContext) -> Iterator[Result]:
    bond_list = [] if context.virtual_machine else [*bonds(context, ("rail", "storage")), *_other_bonds(context)]
    if not bond_list and are_bonds_known(context):
        yield NODE.not_applicable("guest", detail="no interface is in a bond, or this is a virtual machine")
    for bond in bond_list:
        yield _judge_lag_broken(bond)


def _other_bonds(context: RuleContext) -> list[Bond]:
    """Bonds of hardware that carry no RoCE of rails or storage: front ends."""
    roce = {bond.netdev.id for bond in bonds(context, ("rail", "storage"))}
    bond_list = []
    for netdev in context.topology.netdevs:
        members = tuple(member for member in context.topology.netdevs if member.master == netdev.label and member.pci)
        if netdev.bond is not None and netdev.id not in roce and len(members) > 1:
            bond_list.append(Bond(netdev, members, ()))
    return bond_list


def _judge_lag_broken(bond: Bond) -> Result:
    states = [netdev.operstate for netdev in bond.members]
    down = [netdev.label for netdev in bond.members if netdev.operstate not in ("up", None)]
    if down and "up" in states:
        return _fail_lag_broken(
            bond, f"{', '.join(down)} is down; {len(states) - len(down)} of {len(states)} members carry it", "member"
        )
    if None in states:
        return bond.unknown("not-read", fact="the state of a member")
    for cause, what, values in (
        ("speed", "run at different speeds", [netdev.speed_gbit_s for netdev in bond.members]),
        ("mtu", "have different MTUs", [netdev.mtu for netdev in bond.members]),
    ):
        if len(set(values) - {None}) > 1:
            pairs = ", ".join(
                f"{one.label} {value:g}" for one, value in zip(bond.members, values, strict=True) if value
            )
            return _fail_lag_broken(bond, f"its members {what}: {pairs}", cause)
    devices = [nic for nic in bond.nics if nic.rdma_device and "bond" not in nic.rdma_device]
    if _is_on_one_card(bond) and not any(nic.virtual_functions for nic in bond.nics):
        if bond.mode and bond.mode not in LAG_MODES:
            return _fail_lag_broken(bond, f"RoCE does not follow a bond in mode {bond.mode}", "mode")
        if bond.mode and len(devices) > 1:
            names = ", ".join(nic.label for nic in devices)
            return _fail_lag_broken(
                bond, f"its ports still have an RDMA device each ({names}): RoCE does not follow it", "devices"
            )
    return bond.passes()


def _is_on_one_card(bond: Bond) -> bool:
    cards = {(netdev.pci or netdev.id).rpartition(".")[0] for netdev in bond.members}
    drivers = {(netdev.driver or "mlx5_core") for netdev in bond.members}
    return len(bond.members) > 1 and len(cards) == 1 and drivers == {"mlx5_core"}


_IMPACT = "The bond has no second port: half the bandwidth, no redundancy; the next failover breaks every connection."
_IMPACTS = {
    "speed": "LACP leaves out members of another speed; other modes run as fast as the slowest expects.",
    "mtu": "Large packets that leave by one member are dropped, and pass by the other.",
}


def _fail_lag_broken(bond: Bond, summary: str, cause: str) -> Fail:
    folder = f"/sys/class/net/{bond.netdev.label}/bonding"
    return bond.fail(
        summary=summary,
        impact=_IMPACTS.get(cause, _IMPACT),
        evidence=(
            Evidence("mode", bond.mode or "not reported", f"{folder}/mode"),
            Evidence("members", bond.labels, f"{folder}/slaves"),
            Evidence(
                "RDMA devices", ", ".join(nic.rdma_device or "none" for nic in bond.nics), "/sys/class/infiniband"
            ),
        ),
        severity=severity_by_role("warning", bond.nics[0]) if bond.nics else "info",
        cause=cause,
    )
