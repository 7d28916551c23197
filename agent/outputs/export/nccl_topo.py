"""A topology as NCCL_TOPO_FILE takes it: what NCCL would detect on this node, with the faults of this node in it.

Contract: NCCL src/graph/xml.cc, xml.h, topo.cc (2.30). An attribute that is not here NCCL fills in itself, and one that
is here it believes; so what is not known is left out, and a device whose place is not known is left out as a whole.

- a switch is its upstream port; root ports and downstream ports are not there;
- link_speed and link_width are what a link runs at where that can be believed, with a comment where it can do more; of
  an idle GPU what the link can do, as it speeds up under load; else they are left out;
- <nvlink> counts active links by where they lead; with a far end that is not known, a GPU's links are left out;
- <net> is every active RDMA port, speed in Mb/s, the GUID that of the system image with its bytes reversed;
- gdr is 1 where GPUDirect RDMA of the device with some rail works, 0 where it works with none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent.model.gpu import Gpu
from agent.model.nic import Nic, Port
from agent.model.node import Cpu
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.outputs.export.markup import Comment, Element, element, written
from agent.outputs.export.nccl_links import ADDRESS, link_attributes, nvlinks
from agent.outputs.formatting import cpu_numbers, known, line

MOST_ELEMENTS = 256  # NCCL_TOPO_XML_MAX_NODES: NCCL refuses a file with more
MASK_LIMIT = 254  # characters of a value
_ID = re.compile(r"0x[0-9a-f]{1,8}")
_NAME = re.compile(r"[^A-Za-z0-9_.:@+-]")  # NCCL reads no entities: what would need one is no name of a device
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "ppc64le": "ppc64", "ppc64": "ppc64"}
_PORTS = {"root_port": "root", "upstream": "up", "downstream": "down", "bridge": "up"}
_BELOW = {"root": "up", "up": "down", "down": "up"}
_NOT_NCCLS = ("vfio", "no_driver", "not_open", "error")


def export(report: Report) -> str:
    """The file. Where it would be too long for NCCL, NICs that are no rails are left out."""
    system = _System(report, report.topology.nics).made()
    if _size(system) > MOST_ELEMENTS:
        rails = [nic for nic in report.topology.nics if nic.role == "rail"]
        system = _System(report, rails).made()
        system.children.insert(0, Comment(f"NICs that are no rails are left out: NCCL reads {MOST_ELEMENTS} elements"))
    return written(system)


class _System:
    """Builds the tree of one report."""

    def __init__(self, report: Report, nics: Sequence[Nic]) -> None:
        self.report = report
        physical = [nic for nic in nics if not nic.virtual_function and not nic.software]
        self.nics = physical or nics  # virtual functions are a guest's, where the host has physical ones
        self.functions = {function.id: function for function in report.topology.pci}
        self.placed: dict[str, Element] = {}  # by PCI id
        self.cpus: dict[int, Element] = {}
        self.notes: list[Comment] = []
        self.nets = 0

    def made(self) -> Element:
        """The whole tree: devices in the order of the bus, each below its switches."""
        system = element("system", {"version": "1"})
        gpus = {gpu.pci: gpu for gpu in self.report.topology.gpus if gpu.pci and self._has_gpu(gpu)}
        nics = {nic.pci: nic for nic in self.nics if nic.pci and self._has_nic(nic)}
        for function in self.report.topology.pci:
            if function.id in gpus:
                self._place(function).children.append(self._gpu(gpus[function.id]))
            elif function.id in nics:
                nic, place = nics[function.id], self._place(function)
                ports = [port for port in nic.ports if port.state == "ACTIVE"]
                if ports:
                    place.children.append(self._nic(nic, ports))
        said = f"{self.report.generator.name} {self.report.generator.version}"
        system.children.append(Comment(f"what {line(said, 60)} saw; NCCL detects what is left out"))
        system.children.extend(self.notes)
        system.children.extend(self.cpus[node] for node in sorted(self.cpus))
        return system

    def _has_gpu(self, gpu: Gpu) -> bool:
        """Whether NCCL can use it; why not is a comment."""
        if gpu.vendor not in (None, "NVIDIA"):
            return self._left_out(gpu.label, "not an NVIDIA GPU")
        if gpu.driver_state in _NOT_NCCLS:
            return self._left_out(gpu.label, f"the driver does not offer it ({gpu.driver_state})")
        return self._has_place(gpu.label, gpu.pci)

    def _has_nic(self, nic: Nic) -> bool:
        if nic.software or nic.limited or nic.state in ("vfio", "other_namespace"):
            return False
        return self._has_place(nic.label, nic.pci)

    def _has_place(self, label: str, pci: str | None) -> bool:
        function = self.functions.get(pci or "")
        if function is None or function.root_bus is None or not ADDRESS.fullmatch(function.id):
            return self._left_out(label, "its place on the bus is not known")
        return function.state not in ("gone", "changed_during_scan") or self._left_out(label, function.state)

    def _left_out(self, label: str, why: str) -> bool:
        self.notes.append(Comment(f"{line(label, 60)} is left out: {line(why)}"))
        return False

    def _place(self, function: PciFunction) -> Element:
        """The <pci> of a function, below the switches above it and its <cpu>. A second call gives the same."""
        above = [each for each in _switches(function, self.functions) if ADDRESS.fullmatch(each.id)]
        at = self._cpu((above[0] if above else function).numa_node)
        for each in (*above, function):
            if each.id not in self.placed:
                attributes, comment = link_attributes(each, self.functions.get(each.parent or ""))
                made = element("pci", {**_ids(each), **attributes})
                if comment:
                    made.children.append(Comment(comment))
                self.placed[each.id] = made
                at.children.append(made)
            at = self.placed[each.id]
        return at

    def _cpu(self, node: int | None) -> Element:
        """-1 is NCCL's own word for a NUMA node that the firmware does not tell."""
        number = -1 if node is None or node < 0 else node
        if number not in self.cpus:
            masks = _masks({each.id: each.cpus for each in self.report.node.numa_nodes})
            arch = _ARCHITECTURES.get(self.report.node.arch or "")
            said = known(numaid=number, affinity=masks.get(number), arch=arch)
            self.cpus[number] = element("cpu", {**said, **(_model(self.report.node.cpu) if arch == "x86_64" else {})})
        return self.cpus[number]

    def _gpu(self, gpu: Gpu) -> Element:
        capability = re.fullmatch(r"(\d{1,2})\.(\d)", gpu.compute_capability or "")
        sm = "".join(capability.groups()) if capability else None
        made = element("gpu", known(dev=gpu.index, sm=sm, gdr=self._direct(gpu=gpu.id)))
        links, why = nvlinks(gpu, self.functions)
        made.children.extend([Comment(f"its NVLinks are left out: {line(why)}")] if why else links)
        if gpu.c2c and gpu.c2c.max_gbyte_s and gpu.c2c.links and set(gpu.c2c.links) == {"active"}:
            each_mbyte_s = round(gpu.c2c.max_gbyte_s * 1000 / len(gpu.c2c.links))
            made.children.append(element("c2c", known(bw=each_mbyte_s, count=len(gpu.c2c.links))))
        return made

    def _nic(self, nic: Nic, ports: Sequence[Port]) -> Element:
        made = element("nic")
        name = _NAME.sub("_", nic.rdma_device or nic.label)[:64]
        for port in ports:
            speed = round(port.rate_gbit_s * 1000) if port.rate_gbit_s else None
            said = known(name=name, dev=self.nets, speed=speed, port=port.port, guid=_guid(nic.system_image_guid))
            made.children.append(element("net", {**said, **known(gdr=self._direct(nic=nic.id))}))
            self.nets += 1
        return made

    def _direct(self, gpu: str | None = None, nic: str | None = None) -> int | None:
        verdicts = {row.verdict for row in self.report.gpudirect if gpu in (None, row.gpu) and nic in (None, row.nic)}
        if verdicts & {"ready", "degraded"}:
            return 1
        return 0 if verdicts == {"blocked"} else None


def _switches(function: PciFunction, functions: Mapping[str, PciFunction]) -> list[PciFunction]:
    """The upstream ports above a function, the topmost first; what a port's type does not say its place does."""
    chain: list[PciFunction] = []
    at = functions.get(function.parent or "")
    while at is not None and at not in chain and at.id != function.id:
        chain.insert(0, at)
        at = functions.get(at.parent or "")
    found, kind = [], ""
    for bridge in chain:
        kind = _PORTS.get(bridge.port_type or "") or _BELOW.get(kind, "root")
        if kind == "up":
            found.append(bridge)
    return found


def _ids(function: PciFunction) -> dict[str, str]:
    said = {
        "class": function.class_code,
        "vendor": function.vendor,
        "device": function.device,
        "subsystem_vendor": function.subsystem_vendor,
        "subsystem_device": function.subsystem_device,
    }
    return {"busid": function.id, **{name: value for name, value in said.items() if value and _ID.fullmatch(value)}}


def _masks(lists: Mapping[int, str | None]) -> dict[int, str]:
    """Each node's processors in hexadecimal groups of 32, as many as all nodes need.

    >>> _masks({0: "0-3", 1: "32", 2: "", 3: None})
    {0: '00000000,0000000f', 1: '00000001,00000000'}
    """
    masks = {node: sum(1 << cpu for cpu in cpu_numbers(text)) for node, text in lists.items() if text}
    groups = (max((mask.bit_length() for mask in masks.values()), default=0) + 31) // 32
    if groups * 9 - 1 > MASK_LIMIT:
        return {}
    shifts = range(32 * (groups - 1), -1, -32)
    return {
        node: ",".join(f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in shifts) for node, mask in masks.items() if mask
    }


def _model(cpu: Cpu) -> dict[str, str]:
    """NCCL adds the extended family shifted by four: AMD's 25 is 15 + (10 << 4) there."""
    if not cpu.vendor or not re.fullmatch(r"[ A-Za-z]{1,12}", cpu.vendor):
        return {}
    family = cpu.family
    if family is not None and family > 15:
        family = 15 + ((family - 15) << 4)
    return known(vendor=cpu.vendor, familyid=family, modelid=cpu.model)


def _guid(text: str | None) -> str | None:
    """
    >>> _guid("b83f:d203:0076:f96b")
    '0x6bf9760003d23fb8'
    """
    digits = (text or "").replace(":", "")
    if not re.fullmatch(r"[0-9a-f]{16}", digits) or not int(digits, 16):
        return None
    return f"{int.from_bytes(bytes.fromhex(digits), 'little'):#x}"


def _size(node: Element) -> int:
    return 1 + sum(_size(child) for child in node.children if isinstance(child, Element))
