"""Network functions that have, or could have, an RDMA device: those of the bus and the RDMA devices, joined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.assemble.facts import Facts
from agent.assemble.identity import identity, slot_of
from agent.assemble.ports import ports_of
from agent.assemble.rdma_devices import rdma_devices
from agent.model.nic import Nic, Port
from agent.model.pci import PciFunction
from agent.platforms.devices import can_rdma, is_nvlink_management, known
from probes.netdev.probe import Netdev, NetdevFacts
from probes.rdma.facts import RdmaDevice, RdmaFacts

_NUMBERED = re.compile(r"NIC[0-9]+")  # a column of a matrix whose legend is missing


class NetworkFacts(NamedTuple):
    """What is said of the network. None: nobody answered; empty: there are none."""

    devices: Sequence[RdmaDevice]
    devices_known: bool
    netdevs: Sequence[Netdev] | None
    names: Sequence[str] = ()  # of a topology matrix

    @property
    def netdevs_placed(self) -> bool:
        """Whether the interfaces are known, each with the device that it belongs to."""
        return self.netdevs is not None and not any(
            n.address is None and n.driver is None and n.kind is None and not n.virtual for n in self.netdevs
        )


def network_facts(facts: Facts, rows: Sequence[PciFunction], names: Mapping[str, str]) -> NetworkFacts:
    """Gathers what the network probes say. `names`: RDMA devices by what a topology matrix calls them."""
    netdevs = facts.of("netdev", NetdevFacts)
    return NetworkFacts(
        devices=rdma_devices(facts, {row.id for row in rows}),
        devices_known=facts.of("rdma", RdmaFacts) is not None or facts.of("rdma_tools", RdmaFacts) is not None,
        netdevs=netdevs.netdevs if netdevs else None,
        names=sorted(set(names.values()), key=identity),
    )


def nics_of(rows: Sequence[PciFunction], facts: NetworkFacts) -> list[Nic]:
    """One row for every function and every RDMA device, sorted by identity; roles are not decided yet."""
    by_place: dict[str, RdmaDevice] = {}
    for each in facts.devices:
        if each.address:
            by_place.setdefault(each.address, each)  # the function's own comes before those of its sub-functions
    functions = {r.id: r for r in rows}
    on_bus = [r for r in rows if can_rdma(r.vendor, r.device, r.class_code) or r.id in by_place]
    made = [_of_function(row, by_place.get(row.id), functions, facts) for row in on_bus]
    placed = {d.name for address, d in by_place.items() if address in functions}
    made += [_of_device(device, functions) for device in facts.devices if device.name not in placed]
    if not made:
        made = [
            Nic(id=name, label=name, rdma_device=None if _NUMBERED.fullmatch(name) else name) for name in facts.names
        ]
    return sorted(made, key=lambda nic: identity(nic.id))


def physical_netdevs(netdevs: Sequence[Netdev], address: str) -> list[Netdev]:
    """The interfaces of a function's own ports: no representors of virtual functions, nothing stacked on them."""
    own = [n for n in netdevs if n.address == address and not n.virtual and n.vlan is None]
    return [n for n in own if n.port_name is None or "f" not in n.port_name]


def _of_function(
    row: PciFunction, device: RdmaDevice | None, functions: Mapping[str, PciFunction], facts: NetworkFacts
) -> Nic:
    netdevs = physical_netdevs(facts.netdevs or (), row.id)
    ports = ports_of(device, netdevs) if device else []
    kind = known(row.vendor, row.device)
    bond = _bond(device, netdevs, facts)
    limited = device.limited if device else None
    if limited is None and is_nvlink_management(row.subsystem_vendor, row.subsystem_device, row.name):
        limited = "a management function of the NVLink switches"
    return Nic(
        id=row.id,
        label=device.name if device else netdevs[0].name if netdevs else row.id,
        pci=row.id,
        rdma_device=device.name if device else None,
        numa_node=row.numa_node,
        driver=row.driver or (netdevs[0].driver if netdevs else row.driver),
        firmware=(device.firmware if device else None) or next((n.firmware for n in netdevs if n.firmware), None),
        board_id=device.board_id if device else None,
        node_type=device.node_type if device else None,
        node_guid=device.node_guid if device else None,
        system_image_guid=device.system_image_guid if device else None,
        model=kind.name if kind else row.name,
        bond=bond,
        virtual_functions=row.virtual_functions,
        virtual_function=row.physical_function is not None or bool(kind and kind.virtual_function),
        limited=limited,
        state=_state(row, device, ports, netdevs, bond, facts),
        ports=ports,
    )


def _of_device(device: RdmaDevice, functions: Mapping[str, PciFunction]) -> Nic:
    """A device that no function stands for; or a sub-function, which shares the PCI function of its parent."""
    shared = device.address in functions
    return Nic(
        id=device.name if shared or not device.address else device.address,
        label=device.name,
        pci=device.address if shared else None,
        virtual_function=shared,
        rdma_device=device.name,
        firmware=device.firmware,
        board_id=device.board_id,
        node_type=device.node_type,
        node_guid=device.node_guid,
        system_image_guid=device.system_image_guid,
        model=model_of(device.hca_type),
        software=device.software,
        limited=device.limited,
        ports=ports_of(device, ()),
    )


def model_of(hca_type: str | None) -> str | None:
    """What an HCA type names: of NVIDIA's, the number is the PCI device id in decimal.

    >>> model_of("MT4129"), model_of("7322"), model_of(None)
    ('ConnectX-7', '7322', None)
    """
    if hca_type and hca_type.startswith("MT") and hca_type[2:].isdecimal() and len(hca_type) <= 8:
        device = known("0x15b3", f"0x{int(hca_type[2:]):04x}")
        return device.name if device else hca_type
    return hca_type


def _bond(device: RdmaDevice | None, netdevs: Sequence[Netdev], facts: NetworkFacts) -> str | None:
    """The bond that carries this function's RDMA: its interface is a slave, and one device speaks for all slaves."""
    bonds = {n.name for n in facts.netdevs or () if n.bond is not None}
    masters = [n.master for n in netdevs if n.master in bonds]
    if not masters:
        return None
    named = {netdev for d in facts.devices for port in d.ports for netdev in port.netdevs}
    speaks_for_bond = "bond" in device.name if device else False
    return masters[0] if device is None or speaks_for_bond or masters[0] in named else None


def _state(
    row: PciFunction,
    device: RdmaDevice | None,
    ports: Sequence[Port],
    netdevs: Sequence[Netdev],
    bond: str | None,
    facts: NetworkFacts,
) -> str:
    if (row.driver or "").startswith("vfio"):
        return "vfio"
    if row.driver == "":
        return "no_driver"
    if device:
        ethernet = any(port.link_layer == "Ethernet" for port in ports)
        named = any(port.netdevs for port in ports)
        hidden = ethernet and facts.netdevs_placed and not netdevs and not named
        return "other_namespace" if hidden else "present"
    nameless = any(not d.address and not d.software for d in facts.devices)
    if not facts.devices_known or nameless or row.driver is None or (bond and _has_partner(row, facts)):
        return "present"
    ethernet_function = (row.class_code or "").startswith("0x0200")
    if ethernet_function and facts.netdevs_placed and not netdevs:
        return "other_namespace"
    return "no_rdma_device"


def _has_partner(row: PciFunction, facts: NetworkFacts) -> bool:
    """The other port of the same card has the RDMA device that stands for both."""
    return any(d.address and slot_of(d.address) == slot_of(row.id) for d in facts.devices)
