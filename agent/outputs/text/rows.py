"""The rows of the topology tree: each device with its link, state, role and interface, as cells."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.model.gpu import Gpu, link_name
from agent.model.nic import FabricNeighbor, Netdev, Nic, Port
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.model.topology import find_npu_link
from agent.outputs.names import DisplayNames, describe_npu_port, describe_port, describe_scale_out, short_model
from agent.outputs.text.lines import Line, Span
from agent.outputs.text.link import Footnotes, format_link

SHOWN_SEVERITIES = ("warning", "error", "critical")
_DRIVER_STATES = {"not_open": "not in the driver's list", "no_driver": "no driver", "vfio": "passed to a guest (vfio)"}
NIC_STATES = {
    "no_driver": "no driver",
    "vfio": "passed to a guest (vfio)",
    "no_rdma_device": "no RDMA device",
    "other_namespace": "interface in another network namespace",
}


class TreeRow(NamedTuple):
    """Cells of one line; `aligned` cells form columns, findings and other items follow."""

    device: Line
    aligned: tuple[Line, ...] = ()  # link, state, role, interface
    findings: tuple[Span, ...] = ()
    items: tuple[Span, ...] = ()  # remarks, details, the model
    is_group: bool = False  # one line for many devices: its long name moves no column

    def comparable(self) -> tuple[object, ...]:
        """Everything but the name and address."""
        return (self.aligned, self.findings, self.items)


class RowBuilder:
    """Builds rows of one report's devices."""

    def __init__(self, report: Report, interfaces: str) -> None:
        self.names = DisplayNames(report)
        self.notes = Footnotes()
        self.netdevs = {netdev.label: netdev for netdev in report.topology.netdevs}
        ports = report.topology.ascend.ports if report.topology.ascend else []
        nics = report.topology.nics
        self.own_ports = {port.gpu: describe_npu_port(port, find_npu_link(nics, port)) for port in ports}
        if not ports:
            self.own_ports = {nic.accelerator: describe_scale_out(nic) for nic in nics if nic.accelerator}
        self.interfaces = interfaces  # full: with MTU and address; name; none
        self.findings: dict[str, list[Span]] = {}
        for finding in report.open_findings:
            place = finding.subject.partition(":")[2].partition("/")[0]
            if finding.severity in SHOWN_SEVERITIES:
                mark = (f"<- {finding.rule}", finding.severity)
                for device in [place] if place else finding.devices:
                    self.findings.setdefault(device, []).append(mark)

    def switch(self, function: PciFunction, kind: str, drives: int) -> TreeRow:
        """A PCIe switch or an NVSwitch, with the number of NVMe drives below it."""
        below = f"+ {drives} NVMe" if drives else ""
        name = short_model(function.name) if kind == "NVSwitch" else function.name or ""
        items = self._items([], below, name)
        return TreeRow(self._device(kind, function.id), (self._link(function),), self._findings(function.id), items)

    def ordinary(self, function: PciFunction, kind: str) -> TreeRow:
        """A device of a machine without GPU or RDMA NIC: its link and interface."""
        interfaces = [netdev.label for netdev in self.netdevs.values() if netdev.pci == function.id]
        cells = (self._link(function), (), (), ((", ".join(interfaces), ""),) if interfaces else ())
        items = self._items(_presence_remarks(function), "", function.name or "")
        return TreeRow(self._device(kind, function.id), cells, self._findings(function.id), items)

    def gpu(self, gpu: Gpu, function: PciFunction | None) -> TreeRow:
        """A GPU: its NVLinks, and why the driver does not have it."""
        remarks = [text] if (text := describe_driver_state(gpu)) else []
        remarks += _presence_remarks(function)
        if gpu.mig and gpu.mig.current:
            remarks.append(f"MIG, {len(gpu.mig.instances)} instances" if gpu.mig.instances else "MIG")
        cells = (self._link(function), _nvlink_cell(gpu), (), ())
        listed_address = gpu.id if ":" in gpu.id else None  # the driver may list addresses that are not on the bus
        place = gpu.pci or listed_address
        items = self._items(remarks, self.own_ports.get(gpu.id, ""), short_model(gpu.name))
        return TreeRow(self._device(gpu.label, place), cells, self._findings(gpu.id), items)

    def nic(self, nic: Nic, function: PciFunction | None) -> TreeRow:
        """A NIC: its ports, role and interface."""
        remarks = [NIC_STATES[nic.state]] if nic.state in NIC_STATES else []
        remarks += _presence_remarks(function)
        remarks += ["NVSwitch management port"] if nic.limited else []
        details = [f"in {nic.bond}"] if nic.bond else []
        details += [f"{nic.virtual_functions} VFs"] if nic.virtual_functions else []
        details += [_describe_far_end(port.neighbor) for port in nic.ports if port.neighbor]
        state: list[Span] = []
        for port in nic.ports:
            state += [("  ", "")] if state else []
            state.append(_port_cell(nic, port))
        role = "role unknown" if nic.role == "unknown" else nic.role
        cells = (self._link(function), tuple(state), ((role, ""),), self._interfaces(nic))
        items = self._items(remarks, ", ".join(details), short_model(nic.model))
        return TreeRow(self._device(nic.label, nic.pci), cells, self._findings(nic.id), items)

    def _device(self, label: str, place: str | None) -> Line:
        short = self.names.short(place or "")
        kind, separator, _ = label.partition("@")
        name = kind if separator else "NIC" if label == place else label
        return ((name, "bold"), (f" {short}" if short else "", ""))

    def _link(self, function: PciFunction | None) -> Line:
        return tuple(format_link(function.link, self.notes)) if function else ()

    def _interfaces(self, nic: Nic) -> Line:
        labels = dict.fromkeys(label for port in nic.ports for label in port.netdevs)
        known = [self.netdevs[label] for label in labels if label in self.netdevs]
        if self.interfaces == "none" or not known:
            return ()
        describe = _describe_interface if self.interfaces == "full" else lambda netdev: netdev.label
        return ((", ".join(map(describe, known)), ""),)

    def _findings(self, place: str) -> tuple[Span, ...]:
        return tuple(self.findings.get(place, ()))

    def _items(self, remarks: list[str], details: str, name: str) -> tuple[Span, ...]:
        spans = [(remark, "warning") for remark in dict.fromkeys(remarks)]
        return (*spans, *((text, "dim") for text in (details, name) if text))


def describe_driver_state(gpu: Gpu) -> str:
    """Why the driver does not have a GPU; nothing for one that it has."""
    if gpu.driver_state == "error":
        return gpu.driver_error or "driver error"
    return _DRIVER_STATES.get(gpu.driver_state, "")


def _presence_remarks(function: PciFunction | None) -> list[str]:
    asleep = function and function.link and function.link.quality.state == "asleep"  # shown by the link already
    if not function or function.state == "present" or (function.state == "asleep" and asleep):
        return []
    return [function.state.replace("_", " ")]


def _nvlink_cell(gpu: Gpu) -> Line:
    states = Counter(link.state for link in gpu.links)
    up = states["active"] + states["sleep"]
    known = up + states["inactive"]
    protocol = link_name(gpu.links)
    spans: list[Span] = []
    if known:
        spans.append((f"{protocol} {up}/{len(gpu.links)}", "warning" if up < known else ""))
    elif gpu.links:
        spans.append((f"{protocol} ?/{len(gpu.links)}", "dim"))
    if gpu.c2c and gpu.c2c.enabled:
        spans.append((" C2C" if spans else "C2C", ""))
    return tuple(spans)


def _port_cell(nic: Nic, port: Port) -> Span:
    """`IB 400G NDR up`, `RoCE 200G up MTU 4096 GID 3`: the GID to use is a v2 one, preferably of an IPv4 address."""
    more = _roce_words(port) if port.link_layer == "Ethernet" else []
    return describe_port(nic, port, "up", *more), "ok" if port.state == "ACTIVE" else "warning"


def _describe_far_end(far: FabricNeighbor) -> str:
    """Describe the far end: `to leaf-1 port 17`."""
    managed = far.name.partition(";")[2].partition(":")[0] if far.name else ""
    return f"to {managed or far.name or far.node_guid or 'a switch'} port {far.port}"


def _roce_words(port: Port) -> list[str]:
    words = [f"MTU {port.active_mtu}"] if port.active_mtu else []
    best = [gid.index for gid in port.gids if "v2" in (gid.type or "") and ":ffff:" in gid.gid]
    best += [gid.index for gid in port.gids if "v2" in (gid.type or "")]
    if best:
        words.append(f"GID {best[0]}")
    elif port.gids and all(gid.type for gid in port.gids):
        words.append("GID v1 only")
    return words


def _describe_interface(netdev: Netdev) -> str:
    address = next((address for address in netdev.addresses if ":" not in address), "")
    return " ".join(part for part in (netdev.label, f"MTU {netdev.mtu}" if netdev.mtu else "", address) if part)
