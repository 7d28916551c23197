"""Bonds above rails and the memory of sockets are parts, too."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agent.model.nic import Netdev
from agent.model.node import NumaNode
from agent.rules.context import RuleContext
from agent.rules.peers.differs import peer_differs
from agent.rules.peers.parts import PeerPart, list_parts
from tests.agent.rules.build import changed_netdev, changed_nic, fails, server, topology

MODES = ("802.3ad", "active-backup", "802.3ad", "802.3ad")


def with_bonds(*modes: str, **fields: Any) -> RuleContext:
    """A bond above each of four rails; of the second one with these fields."""
    case = server(ethernet=True)
    for n, mode in enumerate(modes):
        bond = Netdev(id=f"bond{n}", label=f"bond{n}", bond={"mode": mode})
        case = changed_netdev(case, n, master=bond.label)
        bond = replace(bond, **fields) if n == 1 else bond
        case = topology(case, netdevs=[*case.topology.netdevs, bond])
    return case


def odd(case: RuleContext) -> list[tuple[str, str]]:
    """Label and field of what differs."""
    return [(fault.label, fault.field) for fault in fails(peer_differs, case)]


def test_bonds_are_compared() -> None:
    """By the NICs below them."""
    (fault,) = fails(peer_differs, with_bonds(*MODES))

    assert ("bond1", "netdev.bond", "warning") == (fault.label, fault.field, fault.severity)
    assert "bond setting is mode active-backup (the other 3 bond interfaces: mode 802.3ad)" == fault.summary
    assert [] == odd(with_bonds(*MODES, admin_up=False))
    assert [] == odd(changed_nic(with_bonds(*MODES), 1, role="management"))
    assert [] == odd(changed_netdev(with_bonds(*MODES), 1, master="another"))


def test_a_vlan_of_a_bond_has_the_nic_below_the_bond() -> None:
    """And is no bond itself."""
    case = with_bonds(*("802.3ad",) * 4)
    vlans = [
        Netdev(id=f"v{n}", label=f"v{n}", vlan={"id": n, "parent": f"bond{n}", "flags": "on" if n == 1 else "off"})
        for n in range(4)
    ]
    case = topology(case, netdevs=[*case.topology.netdevs, *vlans])
    roles = {part.label: part.role for part in list_parts(case) if isinstance(part, PeerPart)}

    assert ("rail VLAN", "rail bond") == (roles["v1"], roles["bond1"])
    assert [("v1", "netdev.vlan")] == odd(case)
    lost = topology(case, netdevs=[netdev for netdev in case.topology.netdevs if netdev.label != "bond1"])
    assert "v1" not in {part.label for part in list_parts(lost) if isinstance(part, PeerPart)}


def test_the_memory_of_sockets_is_compared() -> None:
    """Of those with CPUs, on a host."""

    def with_nodes(*sizes: int, cpus: str = "0-7", **fields: Any) -> RuleContext:
        nodes = [NumaNode(id=n, cpus=cpus if n == 3 else "0-7", memory_mib=size) for n, size in enumerate(sizes)]
        return replace(server(), node=replace(server().node, numa_nodes=nodes, **fields))

    sizes = (100_000, 100_000, 100_000, 50_000)
    (fault,) = fails(peer_differs, with_nodes(*sizes))

    assert ("node", "NUMA node 3", "info") == (fault.subject, fault.label, fault.severity)
    assert [] == odd(with_nodes(*sizes, cpus=""))
    assert [] == odd(with_nodes(*sizes, virtualization="kvm"))
