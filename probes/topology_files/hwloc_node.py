"""The machine of a hwloc topology: its NUMA nodes and what is near them, processors, names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from probes.kernel.system import KernelFacts
from probes.kernel.virtualization import Signs, virtualization
from probes.pci.attributes import decimal
from probes.system.cpu import ARM_IMPLEMENTERS, Cpu
from probes.system.dmi import DmiFacts, meaning
from probes.system.numa import NumaFacts, NumaNode
from probes.text import Unparsable
from probes.topology_files import masks
from probes.topology_files.xml_tree import Element

_DMI = {
    "DMISysVendor": "vendor",
    "DMIProductName": "product",
    "DMIProductSerial": "serial",
    "DMIBoardName": "board",
    "DMIBoardVendor": "board_vendor",
    "DMIBIOSVersion": "bios_version",
    "DMIChassisSerial": "chassis_serial",
    "DMIChassisAssetTag": "chassis_asset_tag",
}
_SIGNS = {
    "DMIProductName": "product_name",
    "DMISysVendor": "sys_vendor",
    "DMIBoardVendor": "board_vendor",
    "DMIBIOSVendor": "bios_vendor",
    "DMIProductVersion": "product_version",
}
_PACKAGES = ("Package", "Socket")  # the latter up to hwloc 1.10
_NOT_OF_THE_TREE = ("Bridge", "PCIDev", "OSDev", "Misc")
_NODES_LIMIT = 4096


class Node(NamedTuple):
    """One NUMA node as the file has it. `cpus`: those near it; `own`: whether they are its own, not its neighbour's."""

    id: int
    cpus: frozenset[int] | None
    own: bool
    memory_mib: int | None


def infos(said: Element) -> dict[str, str]:
    """The name-value pairs of an object, the first of each name; empty values are none."""
    found: dict[str, str] = {}
    for info in said.each("info"):
        name, value = info.said("name"), info.said("value")
        if name and value:
            found.setdefault(name, value)
    return found


def numa_nodes(machine: Element) -> list[Node]:
    """Every NUMA node, in the order of the file. Raises Unparsable."""
    found: dict[int, Node] = {}
    for said in objects(machine, "NUMANode"):
        number = decimal(said.said("os_index") or "")
        if number is None or number < 0 or number in found or len(found) >= _NODES_LIMIT:
            raise Unparsable("NUMA nodes without a number of their own")
        found[number] = Node(number, _members(said.said("cpuset")), True, _mib(said.said("local_memory")))
    taken: set[int] = set()
    for number in sorted(found):
        node = found[number]
        if node.cpus is not None and node.cpus & taken:
            found[number] = node._replace(own=False)  # the kernel gives a processor to one node only
        elif node.cpus:
            taken |= node.cpus
    return list(found.values())


class Locality:
    """Which NUMA node an object is at."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.with_cpus = frozenset(node.id for node in nodes if node.own and node.cpus != frozenset())

    def node(self, said: Element, above: int | None) -> int | None:
        """The one node with processors that the object is near; None where it is near several. `above`: of the
        object that holds it, for what says nothing of itself."""
        near = _members(said.said("nodeset"))
        if near is None:
            own = [child for child in said.each("object") if child.said("type") == "NUMANode"]
            numbers = [decimal(each.said("os_index") or "") for each in (own or [said] if _is_node(said) else own)]
            near = frozenset(number for number in numbers if number is not None)
        if not near:
            return above
        choice = near & self.with_cpus
        return next(iter(choice)) if len(choice) == 1 else None


def numa_facts(root: Element, machine: Element, nodes: Sequence[Node]) -> NumaFacts | None:
    """The nodes by number, with the kernel's distances where the file holds them."""
    rows = _distances(root, machine, [node.id for node in nodes])
    made = [NumaNode(node.id, _cpus(node), node.memory_mib, rows.get(node.id, ())) for node in nodes]
    return NumaFacts(tuple(sorted(made, key=lambda node: node.id))) if made else None


def kernel(root: Element, machine: Element, nodes: Sequence[Node]) -> KernelFacts:
    """Names of the system, and whether its firmware is a virtual machine's."""
    said = infos(root) | infos(machine)
    signs = {name: said[key] for key, name in _SIGNS.items() if key in said}
    platform = f"platform\t: {said['PlatformName']}" if "PlatformName" in said else None
    kind, known = virtualization(Signs(cpuinfo=platform, dmi=signs))
    sizes = [node.memory_mib for node in nodes]
    return KernelFacts(
        hostname=said.get("HostName"),
        kernel=said.get("OSRelease"),
        arch=said.get("Architecture"),
        virtualization=kind,
        virtualization_known=known,
        memory_mib=sum(size for size in sizes if size) if sizes and None not in sizes else None,
    )


def dmi(machine: Element) -> DmiFacts | None:
    """What the firmware calls the machine; on POWER, its model."""
    said = infos(machine)
    found = {name: meaning(said[key]) for key, name in _DMI.items() if key in said}
    if not found and "PlatformModel" in said:
        found["product"] = said["PlatformModel"]
    return DmiFacts(**found) if found else None


def cpu(machine: Element) -> Cpu | None:
    """The processors, as the first package names them."""
    packages = [said for kind in _PACKAGES for said in objects(machine, kind)]
    said = infos(machine) | (infos(packages[0]) if packages else {})
    online = _members(machine.said("cpuset"))
    found = Cpu(
        vendor=said.get("CPUVendor") or _implementer(said.get("CPUImplementer")),
        family=decimal(said.get("CPUFamilyNumber", "")),
        model=decimal(said.get("CPUModelNumber", "")),
        name=said.get("CPUModel"),
        sockets=len(packages) or None,
        online=masks.cpulist(sorted(online)) if online else None,
    )
    return None if found == Cpu() else found


def objects(above: Element, kind: str) -> Iterator[Element]:
    """Objects of one kind below another, in the order of the file; what is below devices is none of the machine."""
    for child in above.each("object"):
        said = child.said("type")
        if said == kind:
            yield child
        if said not in _NOT_OF_THE_TREE:
            yield from objects(child, kind)


def _is_node(said: Element) -> bool:
    return said.said("type") == "NUMANode"


def _members(mask: str | None) -> frozenset[int] | None:
    """None too for a mask without end ("0xf...f")."""
    try:
        return frozenset(masks.members(mask)) if mask else None
    except Unparsable:
        return None


def _mib(text: str | None) -> int | None:
    """From bytes."""
    return int(text) >> 20 if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else None


def _cpus(node: Node) -> str | None:
    if node.cpus is None:
        return None
    return masks.cpulist(sorted(node.cpus)) if node.own else ""


def _implementer(text: str | None) -> str | None:
    try:
        return ARM_IMPLEMENTERS.get(int(text or "", 0))
    except ValueError:
        return None


def _distances(root: Element, machine: Element, ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Rows by node, each in the order of the numbers. Format 1 has them in the machine, relative to a base."""
    for table in root.each("distances2"):
        if table.said("name") == "NUMALatency" and table.said("indexing") == "os":
            indexes = _numbers("".join(word for each in table.each("indexes") for word in each.words))
            values = _numbers("".join(word for each in table.each("u64values") for word in each.words))
            return _rows(indexes, values, ids)
    for table in machine.each("distances"):
        base = _real(table.said("latency_base"))
        latencies = [_real(each.said("value")) for each in table.each("latency")]
        return _rows(list(ids), [round(base * each) for each in latencies], ids)
    return {}


def _rows(indexes: Sequence[int], values: Sequence[int], ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    size = len(indexes)
    if sorted(indexes) != sorted(ids) or len(values) != size * size or any(not 0 < value < 1000 for value in values):
        return {}
    order = sorted(range(size), key=lambda place: indexes[place])
    return {indexes[row]: tuple(values[row * size + column] for column in order) for row in order}


def _numbers(text: str) -> list[int]:
    return [number if (number := decimal(word)) is not None else -1 for word in text.split()]


def _real(text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        return 0.0
    return value if 0 < value < 1000 else 0.0
