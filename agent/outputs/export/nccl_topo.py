"""A topology for NCCL_TOPO_FILE: what NCCL would detect on this node, including the faults of this node.

Contract: NCCL src/graph/xml.cc, xml.h, topo.cc (2.30). NCCL fills in missing attributes itself and trusts present ones;
so unknown attributes are omitted, and a device with an unknown location is omitted as a whole.

- a switch is its upstream port; root ports and downstream ports are omitted;
- link_speed and link_width are the current values where reliable, with a comment where the link can do more; for an
  idle GPU the capability, as it speeds up under load; otherwise omitted;
- <nvlink> counts active links by target; if a far end is unknown, the links of that GPU are omitted; a node whose GPUs
  are of AMD gets RCCL's form of the file: version 2, <xgmi> in place of <nvlink>;
- <net> is every active RDMA port, speed in Mb/s, GUID the system image GUID with its bytes reversed;
- gdr is 1 if GPUDirect RDMA works with some rail, 0 if with none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from agent.model.gpu import Gpu
from agent.model.nic import Nic, Port
from agent.model.node import Cpu
from agent.model.pci import Link, PciFunction
from agent.model.report import Report
from agent.outputs.export.xml_writer import XmlComment, XmlElement, make_element, write_xml
from agent.outputs.formatting import clean_line, known_fields, parse_cpulist

# NCCL accepts only these values: src/graph/topo.cc, kvDictPciGen
SPEEDS = {
    2.5: "2.5 GT/s PCIe",
    5.0: "5.0 GT/s PCIe",
    8.0: "8.0 GT/s PCIe",
    16.0: "16.0 GT/s PCIe",
    32.0: "32.0 GT/s PCIe",
    64.0: "64.0 GT/s PCIe",
}
SWITCH, HIDDEN_SWITCH = "0x068000", "fffffff:ffff:ff"  # a switch that is not on the PCI bus
GPU, CPU = "0x03", "0x068001"
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
Ends = tuple[float | None, int | None]  # GT/s and lanes


def build_link_attributes(function: PciFunction, above: PciFunction | None) -> tuple[dict[str, str], str | None]:
    """Speed and width of the link above a function, and a comment about them."""
    link = function.link
    if link is None:
        return {}, None
    now = link.speed_gt_s, link.width
    can = _link_capability(link, above.link if above else None)
    if link.quality.state == "idle":
        return _format_ends(can), f"idle at {_describe_ends(now)}: written is what the link can do"
    if link.quality.state != "conclusive":
        reason = link.quality.reason or link.quality.state
        return {}, f"link_speed and link_width are left out: {clean_line(reason)}"
    less = any(a is not None and b is not None and a < b for a, b in zip(now, can, strict=True))
    return _format_ends(now), f"it can do {_describe_ends(can)}" if less else None


def _link_capability(link: Link, port: Link | None) -> Ends:
    """What both ends support."""
    ends = [end for end in (link, port) if end]
    speeds = [end.max_speed_gt_s for end in ends if end.max_speed_gt_s]
    widths = [end.max_width for end in ends if end.max_width]
    return min(speeds, default=None), min(widths, default=None)


def _format_ends(ends: Ends) -> dict[str, str]:
    speed, width = ends
    return known_fields(link_speed=SPEEDS.get(speed or 0), link_width=width or None)


def _describe_ends(ends: Ends) -> str:
    speed, width = ends
    return f"{'unknown speed' if speed is None else f'{speed:g} GT/s'} x{'?' if width is None else width}"


def build_nvlinks(
    gpu: Gpu, functions: Mapping[str, PciFunction], protocol: str = "nvlink"
) -> tuple[list[XmlElement], str | None]:
    """A GPU's active links, counted by target, or why they are omitted: NCCL then queries the driver."""
    if not gpu.links_known:
        return [], gpu.links_reason or "they could not be read"
    counts: Counter[tuple[str, str]] = Counter()
    for link in gpu.links:
        if link.protocol != protocol or link.state in ("inactive", "sleep"):
            continue
        remote = link.remote
        if link.state != "active" or remote is None:
            return [], f"of link {link.link} " + (
                "the state" if link.state != "active" else "the far end"
            ) + " is not known"
        far = functions.get(remote.id) if remote.id and ADDRESS.fullmatch(remote.id) else None
        if remote.kind == "switch":
            counts[far.id if far else HIDDEN_SWITCH, SWITCH] += 1
        elif far and remote.kind in ("gpu", "cpu"):
            counts[far.id, _class_code(far) if remote.kind == "gpu" else CPU] += 1
        else:
            return [], f"of link {link.link} the far end is not known"
    return [
        make_element(protocol, known_fields(target=target, count=count, tclass=kind))
        for (target, kind), count in counts.items()
    ], None


def _class_code(gpu: PciFunction) -> str:
    class_code = gpu.class_code or ""
    return class_code if re.fullmatch(r"0x(?:03|12)[0-9a-f]{4}", class_code) else GPU


MAX_ELEMENTS = 256  # NCCL_TOPO_XML_MAX_NODES: NCCL refuses a file with more
MASK_LIMIT = 254  # characters of a value
_ID = re.compile(r"0x[0-9a-f]{1,8}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:@+-]")  # NCCL decodes no entities
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "ppc64le": "ppc64", "ppc64": "ppc64"}
_PORTS = {"root_port": "root", "upstream": "up", "downstream": "down", "bridge": "up"}
_BELOW = {"root": "up", "up": "down", "down": "up"}
_UNUSABLE_STATES = ("vfio", "no_driver", "not_open", "error")


def export(report: Report) -> str:
    """The file. If it would be too long for NCCL, NICs that are no rails are omitted."""
    system = _SystemBuilder(report, report.topology.host_nics).build()
    if _count_elements(system) > MAX_ELEMENTS:
        rails = [nic for nic in report.topology.host_nics if nic.role == "rail"]
        system = _SystemBuilder(report, rails).build()
        system.children.insert(
            0, XmlComment(f"NICs that are no rails are left out: NCCL reads {MAX_ELEMENTS} elements")
        )
    return write_xml(system)


class _SystemBuilder:
    """Builds the XML tree of one report."""

    def __init__(self, report: Report, nics: Sequence[Nic]) -> None:
        self.report = report
        physical = [nic for nic in nics if not nic.virtual_function and not nic.software]
        self.nics = physical or nics  # virtual functions belong to guests if the host has physical ones
        self.functions = {function.id: function for function in report.topology.pci}
        self.pci_elements: dict[str, XmlElement] = {}  # by PCI id
        self.cpus: dict[int, XmlElement] = {}
        self.notes: list[XmlComment] = []
        self.nets = 0
        makers = [gpu.vendor for gpu in report.topology.gpus]
        self.maker = "AMD" if makers and set(makers) == {"AMD"} else "NVIDIA"  # whose collective library reads it

    def build(self) -> XmlElement:
        """The whole tree: devices in bus order, each below its switches."""
        system = make_element("system", {"version": "2" if self.maker == "AMD" else "1"})
        gpus = {gpu.pci: gpu for gpu in self.report.topology.gpus if gpu.pci and self._has_gpu(gpu)}
        nics = {nic.pci: nic for nic in self.nics if nic.pci and self._has_nic(nic)}
        for function in self.report.topology.pci:
            if function.id in gpus:
                self._pci_element(function).children.append(self._gpu(gpus[function.id]))
            elif function.id in nics:
                nic, place = nics[function.id], self._pci_element(function)
                ports = [port for port in nic.ports if port.state == "ACTIVE"]
                if ports:
                    place.children.append(self._nic(nic, ports))
        generator = f"{self.report.generator.name} {self.report.generator.version}"
        system.children.append(XmlComment(f"what {clean_line(generator, 60)} saw; NCCL detects what is left out"))
        system.children.extend(self.notes)
        system.children.extend(self.cpus[node] for node in sorted(self.cpus))
        return system

    def _has_gpu(self, gpu: Gpu) -> bool:
        """Whether NCCL can use it; if not, the reason becomes a comment."""
        if gpu.vendor not in (None, self.maker):
            return self._omit(gpu.label, f"not an {self.maker} GPU")
        if gpu.driver_state in _UNUSABLE_STATES:
            return self._omit(gpu.label, f"the driver does not offer it ({gpu.driver_state})")
        return self._has_location(gpu.label, gpu.pci)

    def _has_nic(self, nic: Nic) -> bool:
        if nic.software or nic.limited or nic.state in ("vfio", "other_namespace"):
            return False
        return self._has_location(nic.label, nic.pci)

    def _has_location(self, label: str, pci: str | None) -> bool:
        function = self.functions.get(pci or "")
        if function is None or function.root_bus is None or not ADDRESS.fullmatch(function.id):
            return self._omit(label, "its place on the bus is not known")
        return function.state not in ("gone", "changed_during_scan") or self._omit(label, function.state)

    def _omit(self, label: str, why: str) -> bool:
        self.notes.append(XmlComment(f"{clean_line(label, 60)} is left out: {clean_line(why)}"))
        return False

    def _pci_element(self, function: PciFunction) -> XmlElement:
        """The <pci> of a function, below its switches and its <cpu>. A second call returns the same."""
        above = [
            find_switch for find_switch in _find_switches(function, self.functions) if ADDRESS.fullmatch(find_switch.id)
        ]
        element = self._cpu((above[0] if above else function).numa_node)
        for bridge in (*above, function):
            if bridge.id not in self.pci_elements:
                attributes, comment = build_link_attributes(bridge, self.functions.get(bridge.parent or ""))
                child = make_element("pci", {**_id_attributes(bridge), **attributes})
                if comment:
                    child.children.append(XmlComment(comment))
                self.pci_elements[bridge.id] = child
                element.children.append(child)
            element = self.pci_elements[bridge.id]
        return element

    def _cpu(self, node: int | None) -> XmlElement:
        """The <cpu> of a NUMA node; -1 is NCCL's value for an undeclared one."""
        number = -1 if node is None or node < 0 else node
        if number not in self.cpus:
            masks = _cpu_masks({numa_node.id: numa_node.cpus for numa_node in self.report.node.numa_nodes})
            arch = _ARCHITECTURES.get(self.report.node.arch or "")
            attributes = known_fields(numaid=number, affinity=masks.get(number), arch=arch)
            self.cpus[number] = make_element(
                "cpu", {**attributes, **(_cpu_model(self.report.node.cpu) if arch == "x86_64" else {})}
            )
        return self.cpus[number]

    def _gpu(self, gpu: Gpu) -> XmlElement:
        capability = re.fullmatch(r"(\d{1,2})\.(\d)", gpu.compute_capability or "")
        sm = "".join(capability.groups()) if capability else None
        element = make_element("gpu", known_fields(dev=gpu.index, sm=sm, gdr=self._gdr(gpu=gpu.id)))
        protocol, name = ("xgmi", "XGMI links") if self.maker == "AMD" else ("nvlink", "NVLinks")
        links, why = build_nvlinks(gpu, self.functions, protocol)
        element.children.extend([XmlComment(f"its {name} are left out: {clean_line(why)}")] if why else links)
        if gpu.c2c and gpu.c2c.max_gbyte_s and gpu.c2c.links and set(gpu.c2c.links) == {"active"}:
            each_mbyte_s = round(gpu.c2c.max_gbyte_s * 1000 / len(gpu.c2c.links))
            element.children.append(make_element("c2c", known_fields(bw=each_mbyte_s, count=len(gpu.c2c.links))))
        return element

    def _nic(self, nic: Nic, ports: Sequence[Port]) -> XmlElement:
        element = make_element("nic")
        name = _NOT_IN_NAMES.sub("_", nic.rdma_device or nic.label)[:64]
        for port in ports:
            speed = round(port.rate_gbit_s * 1000) if port.rate_gbit_s else None
            attributes = known_fields(
                name=name, dev=self.nets, speed=speed, port=port.port, guid=_reverse_guid(nic.system_image_guid)
            )
            element.children.append(make_element("net", {**attributes, **known_fields(gdr=self._gdr(nic=nic.id))}))
            self.nets += 1
        return element

    def _gdr(self, gpu: str | None = None, nic: str | None = None) -> int | None:
        verdicts = {row.verdict for row in self.report.gpudirect if gpu in (None, row.gpu) and nic in (None, row.nic)}
        if verdicts & {"ready", "degraded"}:
            return 1
        return 0 if verdicts == {"blocked"} else None


def _find_switches(function: PciFunction, functions: Mapping[str, PciFunction]) -> list[PciFunction]:
    """The upstream ports above a function, topmost first; an unknown port type is derived from its position."""
    chain: list[PciFunction] = []
    bridge_above = functions.get(function.parent or "")
    while bridge_above is not None and bridge_above not in chain and bridge_above.id != function.id:
        chain.insert(0, bridge_above)
        bridge_above = functions.get(bridge_above.parent or "")
    switches, kind = [], ""
    for bridge in chain:
        kind = _PORTS.get(bridge.port_type or "") or _BELOW.get(kind, "root")
        if kind == "up":
            switches.append(bridge)
    return switches


def _id_attributes(function: PciFunction) -> dict[str, str]:
    ids = {
        "class": function.class_code,
        "vendor": function.vendor,
        "device": function.device,
        "subsystem_vendor": function.subsystem_vendor,
        "subsystem_device": function.subsystem_device,
    }
    return {"busid": function.id, **{name: value for name, value in ids.items() if value and _ID.fullmatch(value)}}


def _cpu_masks(lists: Mapping[int, str | None]) -> dict[int, str]:
    """Each node's processors in hexadecimal groups of 32, as many as all nodes need.

    >>> _cpu_masks({0: "0-3", 1: "32", 2: "", 3: None})
    {0: '00000000,0000000f', 1: '00000001,00000000'}
    """
    masks = {node: sum(1 << cpu for cpu in parse_cpulist(text)) for node, text in lists.items() if text}
    groups = (max((mask.bit_length() for mask in masks.values()), default=0) + 31) // 32
    if groups * 9 - 1 > MASK_LIMIT:
        return {}
    shifts = range(32 * (groups - 1), -1, -32)
    return {
        node: ",".join(f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in shifts) for node, mask in masks.items() if mask
    }


def _cpu_model(cpu: Cpu) -> dict[str, str]:
    """The CPU model; NCCL adds the extended family shifted by four: AMD's 25 is 15 + (10 << 4)."""
    if not cpu.vendor or not re.fullmatch(r"[ A-Za-z]{1,12}", cpu.vendor):
        return {}
    family = cpu.family
    if family is not None and family > 15:
        family = 15 + ((family - 15) << 4)
    return known_fields(vendor=cpu.vendor, familyid=family, modelid=cpu.model)


def _reverse_guid(text: str | None) -> str | None:
    """
    >>> _reverse_guid("b83f:d203:0076:f96b")
    '0x6bf9760003d23fb8'
    """
    digits = (text or "").replace(":", "")
    if not re.fullmatch(r"[0-9a-f]{16}", digits) or not int(digits, 16):
        return None
    return f"{int.from_bytes(bytes.fromhex(digits), 'little'):#x}"


def _count_elements(node: XmlElement) -> int:
    return 1 + sum(_count_elements(child) for child in node.children if isinstance(child, XmlElement))
