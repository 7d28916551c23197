"""Bonds above RoCE ports, with their members and the NICs of these."""

from __future__ import annotations

from typing import NamedTuple

from agent.model.nic import Netdev, Nic
from agent.rules.case import Case

LAG_MODES = ("active-backup", "balance-xor", "802.3ad")  # in which mlx5 makes one RDMA device of two ports


class Bond(NamedTuple):
    """One bond that carries RoCE."""

    netdev: Netdev
    members: tuple[Netdev, ...]
    nics: tuple[Nic, ...]  # of the members, those of a role that is judged

    @property
    def mode(self) -> str:
        """The kernel's word for it; "" where it was not read."""
        said = (self.netdev.bond or {}).get("mode", "")
        return said if isinstance(said, str) else ""

    @property
    def labels(self) -> str:
        """Its members, for people."""
        return ", ".join(f"{netdev.label} ({netdev.operstate or 'state not known'})" for netdev in self.members)

    @property
    def places(self) -> frozenset[str]:
        """What a fault of it is about."""
        nics = {nic.id for nic in self.nics} | {nic.pci or nic.id for nic in self.nics}
        ports = {f"{nic.id}/{port.port}" for nic in self.nics for port in nic.ports}
        return frozenset({self.netdev.id, *(netdev.id for netdev in self.members), *nics, *ports})


def bonds_known(case: Case) -> bool:
    """Whether it is certain that there is none where none was found: what was not read may be in a bond."""
    return case.virtual_machine or case.probe_failure("rdma|rdma_tools", "netdev") is None


def bonds(case: Case, roles: tuple[str, ...]) -> list[Bond]:
    """Bonds with a member that is the interface of an Ethernet NIC in one of these roles.

    The second port of a bond has no RDMA device of its own and the role "auxiliary": its bond is its partner's.
    """
    found = []
    for netdev in case.topology.netdevs:
        if netdev.bond is None:
            continue
        members = tuple(each for each in case.topology.netdevs if each.master == netdev.label)
        below = [case.nics[each.nic] for each in members if each.nic and each.nic in case.nics]
        nics = tuple(nic for nic in below if nic.role in roles and not nic.limited and not nic.software)
        if any(port.link_layer == "Ethernet" for nic in nics for port in nic.ports):
            found.append(Bond(netdev, members, nics))
    return found
