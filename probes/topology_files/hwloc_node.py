"""What a hwloc topology states of its machine beside the PCI tree: NUMA nodes and what is near them, processors, names;
and what the system calls the devices (OSDev objects): GPUs, RDMA devices, interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from probes.gpu.facts import Gpu, GpuFacts, PairCell
from probes.kernel.system import KernelFacts, VirtualizationSigns, detect_virtualization
from probes.named_tuple import NamedTuple
from probes.netdev.probe import Netdev, NetdevFacts
from probes.pci.sysfs import decimal
from probes.rdma.facts import GidEntry, RdmaDevice, RdmaFacts, RdmaPort
from probes.system import cpu as masks
from probes.system.cpu import ARM_IMPLEMENTERS, CpuPackage
from probes.system.dmi import DmiFacts, meaning
from probes.system.numa import NumaFacts, NumaNodeFacts
from probes.text import ParseError, lazy_pattern
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


class HwlocNode(NamedTuple):
    """One NUMA node as the file has it. `cpus`: those near it; `own`: whether they are its own, not its neighbour's."""

    id: int
    cpus: frozenset[int] | None
    own: bool
    memory_mib: int | None


def infos(element: Element) -> dict[str, str]:
    """The name-value pairs of an object, the first of each name; empty values are none."""
    values: dict[str, str] = {}
    for info in element.each("info"):
        name, value = info.said("name"), info.said("value")
        if name and value:
            values.setdefault(name, value)
    return values


def numa_nodes(machine: Element) -> list[HwlocNode]:
    """Every NUMA node, in the order of the file. Raises ParseError."""
    nodes: dict[int, HwlocNode] = {}
    for element in objects(machine, "NUMANode"):
        number = decimal(element.said("os_index") or "")
        if number is None or number < 0 or number in nodes or len(nodes) >= _NODES_LIMIT:
            raise ParseError("NUMA nodes without a number of their own")
        nodes[number] = HwlocNode(number, _members(element.said("cpuset")), True, _mib(element.said("local_memory")))
    taken: set[int] = set()
    for number in sorted(nodes):
        node = nodes[number]
        if node.cpus is not None and node.cpus & taken:
            nodes[number] = node._replace(own=False)  # the kernel gives a processor to one node only
        elif node.cpus:
            taken |= node.cpus
    return list(nodes.values())


class Locality:
    """Which NUMA node an object is at."""

    def __init__(self, nodes: Sequence[HwlocNode]) -> None:
        self.with_cpus = frozenset(node.id for node in nodes if node.own and node.cpus != frozenset())

    def node(self, numa_element: Element, above: int | None) -> int | None:
        """The one node with processors that the object is near; None where it is near several. `above`: of the
        object that holds it, for what reports nothing of itself."""
        near = _members(numa_element.said("nodeset"))
        if near is None:
            own = [child for child in numa_element.each("object") if child.said("type") == "NUMANode"]
            numbers = [
                decimal(element.said("os_index") or "")
                for element in (own or [numa_element] if numa_element.said("type") == "NUMANode" else own)
            ]
            near = frozenset(number for number in numbers if number is not None)
        if not near:
            return above
        choice = near & self.with_cpus
        return next(iter(choice)) if len(choice) == 1 else None


def numa_facts(root: Element, machine: Element, nodes: Sequence[HwlocNode]) -> NumaFacts | None:
    """The nodes by number, with the kernel's distances where the file holds them."""
    rows = _distances(root, machine, [node.id for node in nodes])
    facts = [NumaNodeFacts(node.id, _cpus(node), node.memory_mib, rows.get(node.id, ())) for node in nodes]
    return NumaFacts(tuple(sorted(facts, key=lambda node: node.id))) if facts else None


def kernel(root: Element, machine: Element, nodes: Sequence[HwlocNode]) -> KernelFacts:
    """Names of the system, and whether its firmware is a virtual machine's."""
    values = infos(root) | infos(machine)
    signs = {name: values[key] for key, name in _SIGNS.items() if key in values}
    platform = f"platform\t: {values['PlatformName']}" if "PlatformName" in values else None
    kind, known = detect_virtualization(VirtualizationSigns(cpuinfo=platform, dmi=signs))
    sizes = [node.memory_mib for node in nodes]
    return KernelFacts(
        hostname=values.get("HostName"),
        kernel=values.get("OSRelease"),
        arch=values.get("Architecture"),
        virtualization=kind,
        virtualization_known=known,
        memory_mib=sum(size for size in sizes if size) if sizes and None not in sizes else None,
    )


def dmi(machine: Element) -> DmiFacts | None:
    """What the firmware calls the machine; on POWER, its model."""
    values = infos(machine)
    fields = {name: meaning(values[key]) for key, name in _DMI.items() if key in values}
    if not fields and "PlatformModel" in values:
        fields["product"] = values["PlatformModel"]
    return DmiFacts(**fields) if fields else None


def cpu(machine: Element) -> CpuPackage | None:
    """The processors, as the first package names them."""
    packages = [package for kind in _PACKAGES for package in objects(machine, kind)]
    values = infos(machine) | (infos(packages[0]) if packages else {})
    online = _members(machine.said("cpuset"))
    package = CpuPackage(
        vendor=values.get("CPUVendor") or _implementer(values.get("CPUImplementer")),
        family=decimal(values.get("CPUFamilyNumber", "")),
        model=decimal(values.get("CPUModelNumber", "")),
        name=values.get("CPUModel"),
        sockets=len(packages) or None,
        online=masks.cpulist(sorted(online)) if online else None,
    )
    return None if package == CpuPackage() else package


def objects(above: Element, kind: str) -> Iterator[Element]:
    """Objects of one kind below another, in the order of the file; what is below devices is none of the machine."""
    for child in above.each("object"):
        type_name = child.said("type")
        if type_name == kind:
            yield child
        if type_name not in _NOT_OF_THE_TREE:
            yield from objects(child, kind)


def _members(mask: str | None) -> frozenset[int] | None:
    """None too for a mask without end ("0xf...f")."""
    try:
        return frozenset(masks.members(mask)) if mask else None
    except ParseError:
        return None


def _mib(text: str | None) -> int | None:
    """From bytes."""
    return int(text) >> 20 if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else None


def _cpus(node: HwlocNode) -> str | None:
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
            indexes = _numbers("".join(word for element in table.each("indexes") for word in element.words))
            values = _numbers("".join(word for element in table.each("u64values") for word in element.words))
            return _rows(indexes, values, ids)
    for table in machine.each("distances"):
        base = _real(table.said("latency_base"))
        latencies = [_real(value.said("value")) for value in table.each("latency")]
        return _rows(list(ids), [round(base * latency) for latency in latencies], ids)
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


_NUMBERED = lazy_pattern(r"(nvml|rsmi)([0-9]{1,4})")
_PORT = lazy_pattern(r"Port([0-9]{1,3})(State|LID|GID([0-9]{1,3}))")
_STATES = {"1": "DOWN", "2": "INIT", "3": "ARMED", "4": "ACTIVE", "5": "ACTIVE_DEFER"}
_NETWORK, _OPENFABRICS = 2, 3  # osdev_type up to format 2
_NETWORK_BIT, _OPENFABRICS_BIT = 16, 32  # from format 3 on it is a set
_MAKERS = {"0x10de": ("NVIDIA",), "0x1002": ("AMD", "ADVANCED MICRO", "ATI"), "0x8086": ("INTEL",)}
_NOT_SAID = "a hwloc topology does not list NVLinks"


class HwlocDevice(NamedTuple):
    """One OSDev. `address`: the PCI function that it hangs from; None: from none. `version`: of the format."""

    address: str | None
    said: Element
    version: int

    @property
    def name(self) -> str:
        """What the system, or the library that found it, calls it."""
        return self.said.said("name") or ""

    @property
    def is_interface(self) -> bool:
        """Whether it is a network interface."""
        kind = decimal(self.said.said("osdev_type") or "") or 0
        return bool(kind & _NETWORK_BIT) if self.version >= 3 else kind == _NETWORK

    @property
    def is_rdma(self) -> bool:
        """Whether it is an RDMA device."""
        kind = decimal(self.said.said("osdev_type") or "") or 0
        return bool(kind & _OPENFABRICS_BIT) if self.version >= 3 else kind == _OPENFABRICS


def gpus(devices: Sequence[HwlocDevice], told_by: str, vendors: Mapping[str, str | None]) -> GpuFacts | None:
    """GPUs that NVML (the driver's own list) or ROCm SMI numbered, else those that CUDA or OpenCL name by model.
    `vendors`: of the PCI functions by address."""
    numbered = [device for device in devices if device.address and _NUMBERED.fullmatch(device.name)]
    if not numbered:
        models = {
            d.address: model
            for d in devices
            if d.address and (model := infos(d.said).get("GPUModel")) and not _is_misplaced(d, vendors.get(d.address))
        }
        gpus = [Gpu(address=address, name=models[address], nvlink_reason=_NOT_SAID) for address in sorted(models)]
        return GpuFacts(tuple(gpus), told_by=told_by) if gpus else None
    by_nvml = all(device.name.startswith("nvml") for device in numbered)
    return GpuFacts(tuple(map(_gpu, numbered)), pairs=tuple(_xgmi(numbered)), told_by=None if by_nvml else told_by)


def _is_misplaced(device: HwlocDevice, vendor: str | None) -> bool:
    """Whether it is at the function of another maker: OpenCL states the address, and hwloc takes a wrong one (a VGA
    adapter of the board) for that of a GPU."""
    stated = infos(device.said).get("GPUVendor", "").upper()
    makers = [number for number, words in _MAKERS.items() if stated.startswith(words)]
    return bool(vendor and makers) and vendor not in makers


def rdma(devices: Sequence[HwlocDevice]) -> RdmaFacts | None:
    """RDMA devices with state, LID and GIDs of their ports."""
    rdma_devices = {d.name: _device(d) for d in devices if d.name and d.is_rdma}
    return RdmaFacts(tuple(rdma_devices[name] for name in sorted(rdma_devices))) if rdma_devices else None


def netdevs(devices: Sequence[HwlocDevice]) -> NetdevFacts | None:
    """Interfaces of PCI functions."""
    interfaces = {d.name: _netdev(d) for d in devices if d.name and d.is_interface}
    return NetdevFacts(tuple(interfaces[name] for name in sorted(interfaces))) if interfaces else None


def _gpu(device: HwlocDevice) -> Gpu:
    values = infos(device.said)
    uuid = values.get("NVIDIAUUID") or values.get("AMDUUID") or ""
    return Gpu(
        index=_index(device.name),
        address=device.address,
        name=values.get("GPUModel"),
        uuid=uuid if uuid.strip("0") else None,
        serial=values.get("NVIDIASerial") or values.get("AMDSerial"),
        nvlink_reason=_NOT_SAID if device.name.startswith("nvml") else None,
    )


def _index(name: str) -> int | None:
    match = _NUMBERED.fullmatch(name)
    return int(match[2]) if match else None


def _xgmi(devices: Sequence[HwlocDevice]) -> Iterator[PairCell]:
    """Each pair once, where either end names the other."""
    known = {device.name for device in devices}
    pairs = set()
    for device in devices:
        for peer in infos(device.said).get("XGMIPeers", "").split():
            if peer in known and peer != device.name:
                pairs.add(tuple(sorted((_index(device.name) or 0, _index(peer) or 0))))
    for a, b in sorted(pairs):
        yield PairCell(f"GPU{a}", f"GPU{b}", "XGMI")


def _device(device: HwlocDevice) -> RdmaDevice:
    values = infos(device.said)
    ports: dict[int, RdmaPort] = {}
    for key, value in values.items():
        match = _PORT.fullmatch(key)
        if match is None:
            continue
        number = int(match[1])
        port = ports.get(number, RdmaPort(port=number))
        if match[2] == "State":
            port = port._replace(state=_STATES.get(value))
        elif match[2] == "LID":
            port = port._replace(lid=_hexadecimal(value))
        else:
            port = port._replace(gids=(*port.gids, GidEntry(index=int(match[3]), gid=value)))
        ports[number] = port
    return RdmaDevice(
        name=device.name,
        address=device.address,
        node_guid=values.get("NodeGUID"),
        system_image_guid=values.get("SysImageGUID"),
        ports=tuple(ports[number] for number in sorted(ports)),
    )


def _hexadecimal(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else None


def _netdev(device: HwlocDevice) -> Netdev:
    values = infos(device.said)
    port = values.get("Port", "")
    return Netdev(
        device.name,
        address=device.address,
        mac=values.get("Address"),
        dev_port=int(port) - 1 if re.fullmatch(r"[1-9][0-9]{0,2}", port) else None,
    )
