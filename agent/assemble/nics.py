"""NICs: network functions that have or could have an RDMA device, joined with the RDMA devices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agent.assemble.facts import ProbeFacts, build_row, card_address, sort_key
from agent.model.nic import Nic, Port
from agent.model.pci import PciFunction
from agent.platforms.devices import KnownDevice, can_rdma, find_device, is_accelerator, is_nvlink_management
from probes.rdma.facts import RdmaDevice, RdmaFacts

if TYPE_CHECKING:
    from probes.netdev.probe import Netdev, NetdevFacts

_OF_ACCELERATOR = r"(?:hbl|hlib)_[0-9]+"  # of the driver habanalabs: all ports of one accelerator
_NUMBERED = r"NIC[0-9]+"  # a column of a matrix whose legend is missing


class NetworkFacts(msgspec.Struct, frozen=True):
    """Facts about the network. None: unknown; empty: there are none."""

    devices: Sequence[RdmaDevice]
    devices_known: bool  # which there are; False: none was read, or a list of them is cut
    netdevs: Sequence[Netdev] | None
    names: Sequence[str] = ()  # of a topology matrix

    @property
    def netdevs_placed(self) -> bool:
        """Whether the interfaces are known, each with its device."""
        return self.netdevs is not None and not any(
            n.address is None and n.driver is None and n.kind is None and not n.virtual for n in self.netdevs
        )


def gather_network_facts(facts: ProbeFacts, rows: Sequence[PciFunction], names: Mapping[str, str]) -> NetworkFacts:
    """Gather the facts of the network probes. `names`: RDMA devices by their names in a topology matrix."""
    netdevs: NetdevFacts | None = facts.get("netdev")
    sources = [source for _, source in facts.all_of("rdma", RdmaFacts)]
    devices: list[RdmaDevice] = []
    if sources:
        from agent.assemble.rdma import merge_rdma_devices  # lazy: of a tree of /sys no list may be there

        devices = merge_rdma_devices(facts, {row.id for row in rows})
    return NetworkFacts(
        devices=devices,
        devices_known=any(source.whole for source in sources),
        netdevs=netdevs.netdevs if netdevs else None,
        names=sorted(set(names.values()), key=sort_key),
    )


def build_nics(rows: Sequence[PciFunction], facts: NetworkFacts) -> list[Nic]:
    """One row per function and RDMA device, sorted by id; roles are assigned later.

    The ports of an accelerator itself (Gaudi) are no NIC that GPUs share.
    """
    accelerators = {r.id for r in rows if is_accelerator(r.vendor, r.device, r.class_code)}
    own = [d for d in facts.devices if d.address in accelerators or re.fullmatch(_OF_ACCELERATOR, d.name)]
    facts = replace(facts, devices=[device for device in facts.devices if device not in own]) if own else facts
    by_place: dict[str, RdmaDevice] = {}
    for rdma_device in facts.devices:
        if rdma_device.address:
            by_place.setdefault(
                rdma_device.address, rdma_device
            )  # the function's own comes before those of its sub-functions
    functions = {r.id: r for r in rows}
    on_bus = [r for r in rows if can_rdma(r.vendor, r.device, r.class_code) or r.id in by_place]
    nics = [_nic_of_function(row, by_place.get(row.id), facts) for row in on_bus]
    placed = {d.name for address, d in by_place.items() if address in functions}
    nics += [_nic_of_device(device, functions) for device in facts.devices if device.name not in placed]
    if not nics:
        nics = [
            Nic(id=name, label=name, rdma_device=None if re.fullmatch(_NUMBERED, name) else name)
            for name in facts.names
        ]
    return sorted(nics, key=lambda nic: sort_key(nic.id))


def select_physical_netdevs(netdevs: Sequence[Netdev], address: str) -> list[Netdev]:
    """The interfaces of a function's own ports: no representors of virtual functions, nothing stacked on them."""
    own = [n for n in netdevs if n.address == address and not n.virtual and n.vlan is None]
    return [n for n in own if n.port_name is None or "f" not in n.port_name]


def _nic_of_function(row: PciFunction, device: RdmaDevice | None, facts: NetworkFacts) -> Nic:
    netdevs = select_physical_netdevs(facts.netdevs or (), row.id)
    ports = _build_ports(device, netdevs) if device else []
    kind = find_device(row.vendor, row.device)
    bond = _bond(device, netdevs, facts)
    limited = device.limited if device else None
    if limited is None and is_nvlink_management(row.subsystem_vendor, row.subsystem_device, row.name):
        limited = "a management function of the NVLink switches"
    return build_row(
        Nic,
        device or RdmaDevice(""),
        id=row.id,
        label=device.name if device else netdevs[0].name if netdevs else row.id,
        pci=row.id,
        rdma_device=device.name if device else None,
        numa_node=row.numa_node,
        driver=row.driver or (netdevs[0].driver if netdevs else row.driver),
        firmware=(device.firmware if device else None) or next((n.firmware for n in netdevs if n.firmware), None),
        model=kind.name if kind else row.name,
        bond=bond,
        virtual_functions=row.virtual_functions,
        virtual_function=row.physical_function is not None or bool(kind and kind.virtual_function),
        limited=limited,
        state=_state(row, device, ports, netdevs, bond, facts),
        ports=ports,
    )


def _nic_of_device(device: RdmaDevice, functions: Mapping[str, PciFunction]) -> Nic:
    """A device without a function of its own; or a sub-function, which shares the PCI function of its parent."""
    shared = device.address in functions
    from agent.assemble.rdma import is_name_of_virtual_function

    names = [name for port in device.ports for name in port.netdevs]
    is_named = bool(names) and all(map(is_name_of_virtual_function, names))
    return build_row(
        Nic,
        device,
        id=device.name if shared or not device.address else device.address,
        label=device.name,
        pci=device.address if shared else None,
        virtual_function=shared or is_virtual_hca(device.hca_type) or is_named,
        rdma_device=device.name,
        model=hca_model(device.hca_type),
        ports=_build_ports(device, ()),
    )


def _build_ports(device: RdmaDevice, netdevs: Sequence[Netdev]) -> list[Port]:
    from agent.assemble.rdma import build_ports

    return build_ports(device, netdevs)


def is_virtual_hca(hca_type: str | None) -> bool:
    """Whether an HCA type is that of a virtual function.

    >>> is_virtual_hca("MT4124"), is_virtual_hca("MT4129"), is_virtual_hca(None)
    (True, False, False)
    """
    kind = _find_hca(hca_type)
    return kind is not None and kind.virtual_function


def _find_hca(hca_type: str | None) -> KnownDevice | None:
    """The device behind an HCA type, whose number is the PCI device id in decimal."""
    if hca_type and hca_type.startswith("MT") and hca_type[2:].isdecimal() and len(hca_type) <= 8:
        return find_device("0x15b3", f"{int(hca_type[2:]):#06x}")
    return None


def hca_model(hca_type: str | None) -> str | None:
    """The model behind an HCA type: for NVIDIA, the number is the PCI device id in decimal.

    >>> hca_model("MT4129"), hca_model("7322"), hca_model(None)
    ('ConnectX-7', '7322', None)
    """
    kind = _find_hca(hca_type)
    return kind.name if kind else hca_type


def _bond(device: RdmaDevice | None, netdevs: Sequence[Netdev], facts: NetworkFacts) -> str | None:
    """The bond that carries this function's RDMA: its interface is a slave, and one RDMA device serves all slaves."""
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
    """Whether the other port of the same card has the RDMA device of both."""
    return any(d.address and card_address(d.address) == card_address(row.id) for d in facts.devices)
