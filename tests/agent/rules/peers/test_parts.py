"""Bonds above rails and the memory of sockets are parts, too."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agent.config import Configuration
from agent.diagnose import evaluate_report
from agent.model.nic import Netdev
from agent.model.node import NumaNode
from agent.rules.context import RuleContext
from agent.rules.peers.differs import peer_differs
from agent.rules.peers.parts import PeerPart, list_parts
from tests.agent.rules.build import changed_netdev, changed_nic, fails, server, topology
from tests.agent.rules.peers.mutating import context_of
from tests.machines import scan_machine

MODES = ("802.3ad", "active-backup", "802.3ad", "802.3ad")


def with_bonds(*modes: str, **fields: Any) -> RuleContext:
    """A bond above each of four rails; of the second one with these fields."""
    context = server(ethernet=True)
    for n, mode in enumerate(modes):
        bond = Netdev(id=f"bond{n}", label=f"bond{n}", bond={"mode": mode})
        context = changed_netdev(context, n, master=bond.label)
        bond = replace(bond, **fields) if n == 1 else bond
        context = topology(context, netdevs=[*context.topology.netdevs, bond])
    return context


def odd(context: RuleContext) -> list[tuple[str, str]]:
    """Label and field of what differs."""
    return [(fault.label, fault.field) for fault in fails(peer_differs, context)]


def test_bonds_are_compared() -> None:
    """By the NICs below them."""
    (fault,) = fails(peer_differs, with_bonds(*MODES))

    assert ("bond1", "netdev.bond", "warning") == (fault.label, fault.field, fault.severity)
    assert "bond setting mode is active-backup (the other 3 bond interfaces: 802.3ad)" == fault.summary
    assert [] == odd(with_bonds(*MODES, admin_up=False))
    assert [] == odd(changed_nic(with_bonds(*MODES), 1, role="management"))
    assert [] == odd(changed_netdev(with_bonds(*MODES), 1, master="another"))


def test_a_vlan_of_a_bond_has_the_nic_below_the_bond() -> None:
    """And is no bond itself."""
    context = with_bonds(*("802.3ad",) * 4)
    vlans = [
        Netdev(id=f"v{n}", label=f"v{n}", vlan={"id": n, "parent": f"bond{n}", "flags": "on" if n == 1 else "off"})
        for n in range(4)
    ]
    context = topology(context, netdevs=[*context.topology.netdevs, *vlans])
    roles = {part.label: part.role for part in list_parts(context) if isinstance(part, PeerPart)}

    assert ("rail VLAN", "rail bond") == (roles["v1"], roles["bond1"])
    assert [("v1", "netdev.vlan")] == odd(context)
    lost = topology(context, netdevs=[netdev for netdev in context.topology.netdevs if netdev.label != "bond1"])
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


def test_each_port_of_a_card_has_its_own_interface() -> None:
    """One function with two ports: the interface of the second is at the place of the second, and up as that is."""
    context = server(ethernet=True)
    nic = context.topology.nics[1]
    second = replace(nic.ports[0], port=2, netdevs=["x1"], state="DOWN")
    context = changed_nic(context, 1, ports=[nic.ports[0], second])
    context = topology(
        context, netdevs=[*context.topology.netdevs, Netdev(id="x1", label="x1", nic=nic.id, operstate="up")]
    )

    def positions(context: RuleContext) -> dict[str, Any]:
        parts = [part for part in list_parts(context) if isinstance(part, PeerPart)]
        return {part.label: part.position[0] for part in parts if part.kind == "netdev"}

    assert {"eth0": 1, "eth1": 1, "eth2": 1, "eth3": 1} == positions(context)
    context = changed_nic(context, 1, ports=[nic.ports[0], replace(second, state="ACTIVE")])
    assert {"eth0": 1, "eth1": 1, "eth2": 1, "eth3": 1, "x1": 2} == positions(context)


def test_a_nic_is_named_by_its_address() -> None:
    """Where it has one; where it is on the bus matters only as long as its use is unknown."""
    context = server(ethernet=True)
    nic = changed_nic(context, 1, id="mlx5_1").topology.nics[1]
    named = topology(context, nics=[nic])

    def subjects(context: RuleContext) -> set[tuple[str, bool]]:
        return {
            (part.subject, isinstance(part, PeerPart))
            for part in list_parts(context)
            if part.subject.startswith("pci:") and (not isinstance(part, PeerPart) or part.kind == "nic")
        }

    assert {(f"pci:{nic.pci}", True)} == subjects(named)
    assert {("pci:mlx5_1", True)} == subjects(topology(named, nics=[replace(nic, pci=None)]))
    assert {("pci:mlx5_1", False)} == subjects(topology(named, nics=[replace(nic, pci=None, role="unknown")]))


def test_vlans_of_management_are_not_compared() -> None:
    """Only those above a rail or storage NIC."""
    context = with_bonds(*("802.3ad",) * 4)
    context = changed_nic(context, 1, role="management")

    assert "bond1" not in {part.label for part in list_parts(context) if isinstance(part, PeerPart)}
    assert "bond0" in {part.label for part in list_parts(context) if isinstance(part, PeerPart)}


def test_each_of_two_odd_parts_has_its_own_evidence_first() -> None:
    """Where one of them is explained by another finding, what is left of it stands alone."""
    context = server(gpus=8)
    gpus = [replace(gpu, vbios="2" if n in (1, 4) else "1") for n, gpu in enumerate(context.topology.gpus)]
    (fault,) = [one for one in fails(peer_differs, topology(context, gpus=gpus)) if one.field == "gpu.vbios"]

    assert ["GPU1", "GPU4"] == [part.evidence[0].what.rpartition(" ")[2] for part in fault.parts]
    assert ["GPU0", "GPU0"] == [part.evidence[1].what.rpartition(" ")[2] for part in fault.parts]


def test_interfaces_of_ports_that_accelerators_have_are_compared() -> None:
    """Where a rule about the card finds the same, it names the port, and is the one finding."""
    report = scan_machine("8xgaudi3-2s")

    def find(row: Netdev, **fields: Any) -> list[tuple[str, str, list[str]]]:
        """With these fields on one interface: each finding, the severity, and what it explains."""
        netdevs = [replace(one, **fields) if one is row else one for one in report.topology.netdevs]
        changed = replace(report, topology=replace(report.topology, netdevs=netdevs))
        findings = evaluate_report(changed, Configuration()).findings
        return [(finding.rule, finding.severity, finding.absorbs) for finding in findings]

    own = next(row for row in report.topology.netdevs if row.id == "0000:4d:00.0/20")
    explained = ["peer-differs netdev:0000:4d:00.0/20"]

    assert [] == find(own)
    assert [("gaudi-external-uneven", "warning", explained)] == find(own, mtu=1500)
    assert [("peer-differs", "warning", [])] == find(own, speed_gbit_s=100.0)
    counters = {**own.counters, "carrier_down_count": 5000}
    assert [("counter-outlier", "warning", [])] == find(own, counters=counters)
    assert [] == find(own, mtu=1500, label="of no port")


def test_an_interface_of_a_port_that_is_down_is_not_compared() -> None:
    """Of an accelerator as of any NIC."""
    context = context_of(scan_machine("8xgaudi3-2s"))
    names = {part.label for part in list_parts(context) if isinstance(part, PeerPart) and part.kind == "netdev"}
    nics = [
        replace(nic, ports=[replace(port, state="DOWN" if port.port == 5 else port.state) for port in nic.ports])
        for nic in context.accelerator_nics
    ]
    fewer = {
        part.label
        for part in list_parts(replace(context, accelerator_nics=tuple(nics)))
        if isinstance(part, PeerPart) and part.kind == "netdev"
    }

    assert {"enp51s0d5"} == {name for name in names - fewer if name.startswith("enp51")}
    assert len(fewer) < len(names)


def test_gpus_that_nvidia_smi_alone_lists_without_a_name_are_compared() -> None:
    """A query for widths has no names; of other makers' tools no list without names is known."""
    context = server()
    gpus = [
        replace(gpu, id=f"gpu-index-{n}", pci=None, name=None, memory_mib=40_960 if n == 1 else 81_920)
        for n, gpu in enumerate(context.topology.gpus)
    ]

    def odd_gpus(vendor: str) -> set[str]:
        unnamed = topology(context, gpus=[replace(gpu, vendor=vendor) for gpu in gpus])
        return {label for label, field in odd(unnamed) if field == "gpu.memory_mib"}

    assert {gpus[1].label} == odd_gpus("NVIDIA")
    assert set() == odd_gpus("Huawei")
