"""A hwloc topology (lstopo's XML, formats 1 to 3) -> facts: PCI tree, NUMA, processors, GPUs, RDMA devices, the node.

Source: hwloc's hwloc2.dtd, topology-xml.c and the "Object attributes" page of its documentation. What the format means:

- a bridge "0-1" is a host bridge and begins a root bus; "1-1" is a PCI function; without --whole-io (or --filter
  io:all) bridges that lead to nothing are left out, and so are functions of uninteresting kinds;
- `pci_link_speed` is what the link carries now, GB/s in one direction; speed and width are not distinguished;
- NUMA nodes of memory alone have the processors of the node beside them: of those alike, the first is the node itself.
"""

from __future__ import annotations

import re
from typing import Any

from probes.pci.facts import PciFacts, PciFunction
from probes.pci.lspci_fields import class_code
from probes.pci.sysfs import decimal
from probes.pci.tree import address_key
from probes.text import ParseError, is_pci_address, lazy_pattern, require
from probes.topology_files import hwloc_node, xml_tree
from probes.topology_files.preparsed import PreparsedFacts
from probes.topology_files.xml_tree import Element
from probes.topology_files.xml_tree import parse as parse_xml

NAME = "hwloc-xml"
SAID = "a hwloc topology"
_PLACE = lazy_pattern(r"([0-9a-f]{4,8}):\[([0-9a-f]{2})-[0-9a-f]{2}\]")
_IDS = lazy_pattern(
    r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\] \[([0-9a-f]{4}):([0-9a-f]{4})\] ([0-9a-f]{2})(?: ([0-9a-f]{2}))?"
)
_UNSAID = {
    "kernel": f"{SAID} has neither the command line nor the boot id",
    "dmi": f"{SAID} does not name its machine",
    "cpu": f"{SAID} does not name the processors",
    "numa": f"{SAID} without NUMA nodes",
    "pci": f"{SAID} has the bandwidth of a link, not its speed and width, nor what it supports; and no drivers, config"
    " space, IOMMU",
    "nvml": f"{SAID} has nothing of the driver, of P-states and of NVLinks",
    "rdma": f"{SAID} has of a port its state, LID and GIDs, not its rate, link layer and counters",
    "netdev": f"{SAID} names interfaces with their hardware address, and has nothing of their state",
    "modules": f"{SAID} does not list what is loaded",
}


def parse(content: bytes) -> PreparsedFacts:
    """Everything that one topology states. Raises ParseError.

    >>> said = parse(b'<topology version="2.0"><object type="Machine"><object type="Bridge" bridge_type="0-1"'
    ...     b' bridge_pci="0000:[44-54]"><object type="PCIDev" pci_busid="0000:44:00.0" pci_link_speed="63.015385"'
    ...     b' pci_type="0302 [10de:2330] [10de:16c1] a1"/></object></object></topology>')
    >>> function = said.facts["pci"].functions[0]
    >>> function.root_bus, function.class_code, function.device, function.link_gbyte_s
    ('0000:44', '0x030200', '0x2330', 63.015)
    """
    root = parse_xml(content, "topology")
    machine = next(root.each("object"), None)
    if machine is None:
        raise ParseError("a topology without an object")
    nodes = hwloc_node.numa_nodes(machine)
    locality = hwloc_node.Locality(nodes)
    walk = _Walk(locality, _version(root))
    walk.through(machine, locality.node(machine, None), None, None)
    xml_tree.check(walk.functions.values())
    facts: dict[str, Any] = {
        "numa": hwloc_node.numa_facts(root, machine, nodes),
        "pci": PciFacts(tuple(sorted(walk.functions.values(), key=lambda f: address_key(f.address)))),
        "kernel": hwloc_node.kernel(root, machine, nodes),
        "dmi": hwloc_node.dmi(machine),
        "cpu": hwloc_node.cpu(machine),
        "nvml": hwloc_node.gpus(walk.devices, NAME, {f.address: f.vendor for f in walk.functions.values()}),
        "rdma": hwloc_node.rdma(walk.devices),
        "netdev": hwloc_node.netdevs(walk.devices),
    }
    known = {name: fact for name, fact in facts.items() if fact is not None}
    whole = [name for name in ("numa", "cpu", "dmi") if name in known]
    return PreparsedFacts(known, {name: reason for name, reason in _UNSAID.items() if name not in whole})


class _Walk:
    """What a walk through the objects has found: PCI functions, and the devices that the system calls them."""

    def __init__(self, locality: hwloc_node.Locality, version: int) -> None:
        self.locality = locality
        self.version = version
        self.functions: dict[str, PciFunction] = {}
        self.devices: list[hwloc_node.HwlocDevice] = []

    def through(self, above: Element, node: int | None, bus: str | None, parent: str | None) -> None:
        """Everything below one object. `node`, `bus`, `parent`: NUMA node, root bus and PCI function that it is at."""
        for child in above.each("object"):
            kind, address = child.said("type"), child.said("pci_busid")
            if kind in ("Bridge", "PCIDev") and address is not None:
                function = self._function(child, address, node, bus, parent)
                self.through(child, node, bus, function.address)
            elif kind == "Bridge":
                place = _PLACE.fullmatch(child.said("bridge_pci") or "")
                self.through(child, node, f"{place[1]}:{place[2]}" if place else None, None)
            elif kind == "OSDev":
                self.devices.append(hwloc_node.HwlocDevice(parent, child, self.version))
                self.through(child, node, bus, parent)
            else:
                self.through(child, self.locality.node(child, node), bus, parent)

    def _function(
        self, element: Element, address: str, node: int | None, bus: str | None, parent: str | None
    ) -> PciFunction:
        require(is_pci_address(address), f"not a PCI address: {address[:40]!r}")
        require(address not in self.functions, f"names {address} twice")
        ids = _IDS.fullmatch(element.said("pci_type") or "")
        known = ids if ids and ids[2] + ids[3] != "00000000" else None  # zeros: hwloc could not read them
        info = hwloc_node.infos(element)
        function = PciFunction(
            address,
            parent,
            bus,
            class_code=class_code("", ids[1], ids[7]) if ids else None,
            vendor=f"0x{known[2]}" if known else None,
            device=f"0x{known[3]}" if known else None,
            subsystem_vendor=f"0x{known[4]}" if known else None,
            subsystem_device=f"0x{known[5]}" if known else None,
            revision=f"0x{ids[6]}" if ids else None,
            name=info.get("PCIDevice"),
            vendor_name=info.get("PCIVendor"),
            numa_node=node,
            slot=info.get("PCISlot"),
            link_gbyte_s=_gbyte_s(element.said("pci_link_speed")),
        )
        self.functions[address] = function
        return function


def _version(root: Element) -> int:
    """The format's major number; the first had none."""
    return decimal((root.said("version") or "1").partition(".")[0]) or 1


def _gbyte_s(text: str | None) -> float | None:
    """Zero: no link, or none that could be read."""
    if text is None or not re.fullmatch(r"[0-9]{1,4}(?:\.[0-9]{1,6})?", text):
        return None
    return round(float(text), 3) or None
