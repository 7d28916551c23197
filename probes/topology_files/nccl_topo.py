"""A NCCL or RCCL topology (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE) -> facts: PCI tree, NUMA, GPUs, their links, NICs.

Source: NCCL src/graph/xml.cc, topo.cc and transport/net_ib/init.cc (2.30). What the format means:

- a bridge stands for a whole switch, and is its upstream port: NCCL leaves out root ports and downstream ports;
- `link_speed` and `link_width` are what a link can do (the lesser of both ends). Of a NVIDIA GPU they are that up to
  NCCL 2.29, and what it ran at from then on; the file does not show which. Where the driver has no answer it is a
  constant. So no number here is a trained state that could be judged;
- clouds ship files for a kind of machine: bridges that do not exist (ffff:ff:01.0), ids ffff, "8 GT/s" for everything;
- `<net>` of InfiniBand and RoCE devices is written for active ports only, and its GUID is the system image's, bytes
  reversed; port 0 is a plain network interface (socket transport), with its place in a list for a GUID;
- the functions of one card are one <pci>, the first of them, whose address has its last digit cut, and their ports are
  numbered through (ncclIbGetPciPath).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from probes.gpu.facts import Gpu, GpuFacts, PairCell, normal_address
from probes.kernel.system import KernelFacts
from probes.named_tuple import NamedTuple
from probes.netdev.probe import Netdev, NetdevFacts
from probes.pci.facts import PciFacts, PciFunction
from probes.pci.sysfs import decimal, identifier, link_speed
from probes.pci.tree import address_key
from probes.rdma.facts import RdmaDevice, RdmaFacts, RdmaPort
from probes.system import cpu as masks
from probes.system.cpu import CpuPackage
from probes.system.numa import NumaFacts, NumaNodeFacts
from probes.text import ParseError, require
from probes.topology_files import xml_tree
from probes.topology_files.preparsed import PreparsedFacts
from probes.topology_files.xml_tree import Element
from probes.topology_files.xml_tree import parse as parse_xml

_FUNCTIONS = 8  # of one card


class Net(NamedTuple):
    """One <net>, below the <pci> of this address, with its port's number."""

    address: str | None
    number: int | None
    element: Element


def of_functions(given: Sequence[Net], functions: dict[str, PciFunction]) -> list[Net]:
    """The same, where a second device of a card has the function that NCCL folded into the first: it is made here."""
    nets: list[Net] = []
    seen: dict[str, set[str | None]] = {}
    for net in given:
        first, number, name = functions.get(net.address or ""), net.number or 0, net.element.said("name")
        names = seen.setdefault(net.address or "", set())
        address = f"{(net.address or '')[:-1]}{number - 1}"
        if first and names - {name} and 1 < number <= _FUNCTIONS and address not in functions:
            functions[address] = first._replace(address=address)
            net = Net(address, 1, net.element)
        if number > 0:
            names.add(name)
        nets.append(net)
    return nets


_MOST_LINKS = 64
_SWITCH = "0x068000"  # tclass; a switch that no PCI bus shows is called fffffff:ffff:ff


class LinkedGpu(NamedTuple):
    """A <gpu> and the PCI function that it is."""

    address: str
    element: Element

    @property
    def number(self) -> int | None:
        """The driver's number of it."""
        number = decimal(self.element.said("dev") or "")
        return number if number is not None and 0 <= number < 4096 else None


def pairs(gpus: Sequence[LinkedGpu]) -> Iterator[PairCell]:
    """One cell for each two GPUs that are linked. GPUs that share a number, or have none, cannot be named."""
    numbers = Counter(gpu.number for gpu in gpus)
    named = [gpu for gpu in gpus if gpu.number is not None and numbers[gpu.number] == 1]
    direct = {gpu.address: _targets(gpu, "nvlink") for gpu in named}
    xgmi = {gpu.address: _targets(gpu, "xgmi") for gpu in named}
    switched = {gpu.address: _to_switches(gpu) for gpu in named}
    for one, other in combinations(named, 2):
        a, b = one.address, other.address
        count = max(direct[a].get(b, 0), direct[b].get(a, 0)) or min(switched[a], switched[b])
        if count:
            yield PairCell(f"GPU{one.number}", f"GPU{other.number}", f"NV{count}")
        elif b in xgmi[a] or a in xgmi[b]:
            yield PairCell(f"GPU{one.number}", f"GPU{other.number}", "XGMI")


def _targets(gpu: LinkedGpu, tag: str) -> dict[str, int]:
    """Links by where they lead. A file for a kind of machine may let a GPU lead to itself: that is none."""
    targets: dict[str, int] = {}
    for link in gpu.element.each(tag):
        target = (link.said("target") or "").lower()
        if target != gpu.address:
            targets[target] = targets.get(target, 0) + _count(link)
    return targets


def _to_switches(gpu: LinkedGpu) -> int:
    return sum(_count(link) for link in gpu.element.each("nvlink") if link.said("tclass") == _SWITCH)


def _count(link: Element) -> int:
    count = decimal(link.said("count") or "")
    return count if count is not None and 0 < count <= _MOST_LINKS else 0


NAME = "nccl-topo"
SAID = "a NCCL topology"
_AMD, _NVIDIA = "0x1002", "0x10de"
_PLACEHOLDER = "ffff:ff:"  # no machine has this bus in this domain
_ARCHITECTURES = {"arm64": "aarch64"}
_LEAST_GUID = 1 << 40  # an EUI-64 has a vendor in it; smaller ones are places in a list

_GPU_LINK = "a NCCL topology has the current rate of a GPU's link or only its maximum, depending on NCCL's version"
_BY_HAND = "written by hand for a kind of machine: the topology does not name the device"


class _NcclNode(NamedTuple):
    """One <cpu>, or nothing known of it. `id` None: NCCL did not know the NUMA node (-1)."""

    element: Element
    id: int | None


class _TopologyParts:
    """What a walk through one system has found."""

    def __init__(self, amd: bool) -> None:
        self.gpu_vendor = _AMD if amd else _NVIDIA
        self.functions: dict[str, PciFunction] = {}
        self.gpus: list[LinkedGpu] = []
        self.nets: list[Net] = []

    def add(self, function: PciFunction) -> None:
        """One more function. Raises ParseError for a second of the same address."""
        require(function.address not in self.functions, f"contradicts itself: {function.address} is in two places")
        self.functions[function.address] = function


def parse(content: bytes) -> PreparsedFacts:
    """Everything that one topology states. Raises ParseError.

    >>> said = parse(b'<system version="1"><cpu numaid="1" affinity="f0" arch="x86_64">'
    ...     b'<pci busid="0000:0c:00.0" class="0x060400"><pci busid="0000:0f:00.0" class="0x030200"/></pci>'
    ...     b'</cpu></system>')
    >>> [(f.address, f.parent, f.numa_node, f.port_type) for f in said.facts["pci"].functions]
    [('0000:0c:00.0', None, 1, 'upstream'), ('0000:0f:00.0', '0000:0c:00.0', 1, None)]
    """
    system = parse_xml(content, "system")
    version = decimal(system.said("version") or "1")
    nodes = [_NcclNode(cpu, _node_id(cpu)) for cpu in system.each("cpu")]
    hosts = {node.element.said("host_hash") for node in nodes}
    require(len(hosts) <= 1, f"describes {len(hosts)} hosts, fused for NVLink between nodes: not one machine")
    parts = _TopologyParts(amd=version is not None and version >= 2)
    for node in nodes:
        _walk(parts, node, node.element, None)
    require(parts.functions or parts.nets, "no <cpu> with a device in it")
    parts.nets = of_functions(parts.nets, parts.functions)
    xml_tree.check(parts.functions.values())
    facts = {
        "pci": PciFacts(tuple(sorted(parts.functions.values(), key=lambda f: address_key(f.address)))),
        "numa": _numa(nodes),
        "cpu": _cpu(nodes),
        "kernel": _kernel(nodes),
        "nvml": _gpus(parts),
        "rdma": _devices(parts),
        "netdev": _interfaces(parts),
    }
    unsaid = dict(_UNSAID)
    if version is None or version > 2:
        unsaid["pci"] += f"; its version ({system.said('version')!r:.20}) is newer than 2, and was read as that"
    return PreparsedFacts({name: fact for name, fact in facts.items() if fact is not None}, unsaid)


_UNSAID = {
    "kernel": f"{SAID} has nothing of the running system but its architecture",
    "dmi": f"{SAID} does not name its machine",
    "cpu": f"{SAID} has neither the number of sockets, nor the name of the processor",
    "numa": f"{SAID} names only NUMA nodes that devices are attached to, without memory and distances",
    "pci": f"{SAID} leaves out root ports, downstream ports and whatever NCCL does not use, and has of links what they"
    " support, not what they trained to",
    "nvml": f"{SAID} names the GPUs of one job, and counts their active links by where they lead",
    "rdma": f"{SAID} names active ports with their rate, without link layer, LID and counters",
    "netdev": f"{SAID} names no interfaces but those of NCCL's socket transport",
    "modules": f"{SAID} does not list what is loaded",
}


def _walk(parts: _TopologyParts, node: _NcclNode, element: Element, above: str | None) -> None:
    """Everything below one <cpu> or <pci>, whose address is `above`."""
    for child in element.children:
        if child.tag == "pci":
            function = _function(parts, node, child, above)
            parts.add(function)
            _walk(parts, node, child, function.address)
        elif child.tag == "gpu" and above is not None and len(parts.gpus) < xml_tree.GPUS_LIMIT:
            parts.gpus.append(LinkedGpu(above, child))
        elif child.tag == "nic":
            parts.nets += [Net(above, decimal(net.said("port") or ""), net) for net in child.each("net")]


def _function(parts: _TopologyParts, node: _NcclNode, element: Element, above: str | None) -> PciFunction:
    address = normal_address(element.said("busid") or "")
    class_code = identifier(element.said("class") or "")
    vendor = _id(element, "vendor")
    nested = any(child.tag == "pci" for child in element.children)
    port = nested or (class_code or "").startswith("0x0604")
    gpu = not port and (xml_tree.is_gpu(class_code) or any(element.each("gpu")))
    speed = link_speed(element.said("link_speed") or "")
    width = decimal(element.said("link_width") or "") or None  # 0: sysfs had no number
    placeholder = address.startswith(_PLACEHOLDER)
    said_by_driver = gpu and vendor == _NVIDIA
    return PciFunction(
        address,
        above,
        "",
        class_code=class_code,
        vendor=vendor or (parts.gpu_vendor if gpu else None),
        device=_id(element, "device"),
        subsystem_vendor=_id(element, "subsystem_vendor"),
        subsystem_device=_id(element, "subsystem_device"),
        name="placeholder of a switch" if placeholder else None,
        numa_node=node.id,
        current_link_speed_gt_s=speed if said_by_driver else None,
        current_link_width=width if said_by_driver else None,
        max_link_speed_gt_s=None if placeholder or said_by_driver else speed,
        max_link_width=None if placeholder or said_by_driver else width,
        port_type="upstream" if port else None,
        link_doubt=_doubt(vendor, said_by_driver) if (speed or width) and not placeholder else None,
    )


def _doubt(vendor: str | None, said_by_driver: bool) -> str | None:
    if vendor is None:
        return _BY_HAND
    return _GPU_LINK if said_by_driver else None


def _id(element: Element, name: str) -> str | None:
    """An id; None for the ffff of a function that does not exist."""
    value = identifier(element.said(name) or "")
    return None if value == "0xffff" else value


def _node_id(cpu: Element) -> int | None:
    number = decimal(cpu.said("numaid") or "")
    return number if number is not None and number >= 0 else None


def _numa(nodes: Sequence[_NcclNode]) -> NumaFacts | None:
    by_id: dict[int, NumaNodeFacts] = {}
    for node in nodes:
        if node.id is not None:
            by_id.setdefault(node.id, NumaNodeFacts(node.id, _cpulist(node.element.said("affinity"))))
    return NumaFacts(tuple(by_id[number] for number in sorted(by_id))) if by_id else None


def _cpulist(affinity: str | None) -> str | None:
    try:
        return masks.cpulist(masks.members(affinity)) if affinity else None
    except ParseError:
        return None


def _cpu(nodes: Sequence[_NcclNode]) -> CpuPackage | None:
    first = nodes[0].element
    package = CpuPackage(
        vendor=first.said("vendor"),
        family=_family(decimal(first.said("familyid") or "")),
        model=decimal(first.said("modelid") or ""),
    )
    return None if package == CpuPackage() else package


def _family(value: int | None) -> int | None:
    """NCCL adds the extended family of cpuid shifted by four: 175 is AMD's 25, 15 + 10. Files by hand state 25.

    >>> _family(175), _family(25), _family(6), _family(None)
    (25, 25, 6, None)
    """
    return 15 + (value >> 4) if value is not None and value > 15 and value & 15 == 15 else value


def _kernel(nodes: Sequence[_NcclNode]) -> KernelFacts | None:
    architecture = nodes[0].element.said("arch")
    return KernelFacts(arch=_ARCHITECTURES.get(architecture, architecture)) if architecture else None


def _gpus(parts: _TopologyParts) -> GpuFacts | None:
    if not parts.gpus:
        return None
    gpus = [_gpu(parts, linked) for linked in parts.gpus]
    return GpuFacts(tuple(gpus), pairs=tuple(pairs(parts.gpus)), told_by=NAME)


def _gpu(parts: _TopologyParts, linked: LinkedGpu) -> Gpu:
    sm = decimal(linked.element.said("sm") or "")
    nvidia = parts.gpu_vendor == _NVIDIA
    return Gpu(
        index=linked.number,
        address=linked.address,
        compute_capability=f"{sm // 10}.{sm % 10}" if nvidia and sm is not None and 10 <= sm < 1000 else None,
        nvlink_reason=f"{SAID} counts active NVLinks by where they lead; it has nothing of those that are not",
        c2c_enabled=True if any(linked.element.each("c2c")) else None,
    )


def _devices(parts: _TopologyParts) -> RdmaFacts | None:
    """RDMA devices with their ports. NCCL's own merged devices ("mlx5_0+mlx5_1") are none."""
    devices: dict[str, RdmaDevice] = {}
    for address, number, net in parts.nets:
        name = net.said("name")
        if name is None or number is None or not 0 < number < 256 or "+" in name or address is None:
            continue
        guid = _guid(net.said("guid"))
        device = devices.setdefault(name, RdmaDevice(name, address=address, system_image_guid=guid))
        if device.address == address and number not in [port.port for port in device.ports]:
            devices[name] = device._replace(ports=(*device.ports, _port(net, number, guid)))
    return RdmaFacts(tuple(devices[name] for name in sorted(devices))) if devices else None


def _port(net: Element, number: int, guid: str | None) -> RdmaPort:
    """A file that was written by hand has no GUIDs, and is no evidence of a port's state."""
    speed = decimal(net.said("speed") or "")
    return RdmaPort(
        port=number,
        state="ACTIVE" if guid else None,
        rate_text=f"{speed / 1000:g} Gb/sec" if speed is not None and 0 < speed < 10**8 else None,
    )


def _guid(text: str | None) -> str | None:
    try:
        value = int(text or "", 0)
    except ValueError:
        return None
    if not _LEAST_GUID <= value < 1 << 64:
        return None
    digits = value.to_bytes(8, "little").hex()
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4))


def _interfaces(parts: _TopologyParts) -> NetdevFacts | None:
    """Their speed is not reported: 10 Gb/s is what NCCL writes where it has none."""
    names = {net.said("name"): address for address, number, net in parts.nets if number == 0}
    plain = [Netdev(name, address=names[name]) for name in sorted(filter(None, names))]
    return NetdevFacts(tuple(plain)) if plain else None
