"""One device of the tree as cells: what it is called, its link, its state, its role, what is remarkable about it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import FabricNeighbor, Netdev, Nic, Port
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.outputs.names import Names, model
from agent.outputs.text.lines import Line, Span, length
from agent.outputs.text.link import Notes, link_text

ROOMY = 120  # columns of the page from which on everything stands in columns, and interfaces have one
ALL_ALIGNED, FEW_ALIGNED = 4, 1  # cells: link, state, role, interface; or the link only
LOUD = ("warning", "error", "critical")
DRIVER = {"not_open": "not in the driver's list", "no_driver": "no driver", "vfio": "given to a guest (vfio)"}
NIC_STATE = {
    "no_driver": "no driver",
    "vfio": "given to a guest (vfio)",
    "no_rdma_device": "no RDMA device",
    "other_namespace": "interface in another network namespace",
}


class Row(NamedTuple):
    """Cells of one line; `aligned` ones stand below each other, `rest` follows."""

    device: Line
    aligned: tuple[Line, ...] = ()  # link, state, role, interface
    rest: Line = ()
    several: bool = False  # one line for many devices: its long name moves no column

    def same(self) -> tuple[object, ...]:
        """Everything but the name and the place."""
        return (self.aligned, self.rest)


class Rows:
    """Makes rows of one report's devices."""

    def __init__(self, report: Report, width: int) -> None:
        self.names = Names(report)
        self.notes = Notes()
        self.netdevs = {netdev.label: netdev for netdev in report.topology.netdevs}
        self.roomy = width >= ROOMY
        self.findings: dict[str, list[Span]] = {}
        for finding in report.findings:
            place = finding.subject.partition(":")[2].partition("/")[0]
            if place and finding.severity in LOUD:
                mark = (f"<- {finding.rule}", finding.severity)
                self.findings.setdefault(place, []).append(mark)

    def switch(self, function: PciFunction, kind: str, drives: int) -> Row:
        """A PCIe switch or an NVSwitch; drives below it are the neighbours that people ask for."""
        below = f"+ {drives} NVMe" if drives else ""
        rest = self._rest(function.id, [], below, model(function.name) if kind == "NVSwitch" else function.name or "")
        return Row(self._device(kind, function.id), (self._link(function),), rest)

    def gpu(self, gpu: Gpu, function: PciFunction | None) -> Row:
        """A GPU: its NVLinks, and why the driver does not have it."""
        remarks = [gpu.driver_error or "driver error"] if gpu.driver_state == "error" else []
        remarks += [DRIVER[gpu.driver_state]] if gpu.driver_state in DRIVER else []
        remarks += _presence(function)
        if gpu.mig and gpu.mig.current:
            remarks.append(f"MIG, {len(gpu.mig.instances)} instances")
        cells = (self._link(function), _nvlinks(gpu), (), ())
        told = gpu.id if ":" in gpu.id else None  # the driver knows the address of more than the bus shows
        place = gpu.pci or told
        return Row(self._device(gpu.label, place), cells, self._rest(gpu.id, remarks, "", model(gpu.name)))

    def nic(self, nic: Nic, function: PciFunction | None) -> Row:
        """A NIC: its ports, what it is for, its interface."""
        remarks = [NIC_STATE[nic.state]] if nic.state in NIC_STATE else []
        remarks += _presence(function)
        remarks += ["belongs to the fabric manager"] if nic.limited else []
        details = [f"in {nic.bond}"] if nic.bond else []
        details += [f"{nic.virtual_functions} VFs"] if nic.virtual_functions else []
        details += [_far_end(port.neighbor) for port in nic.ports if port.neighbor]
        state: list[Span] = []
        for port in nic.ports:
            state += [("  ", "")] if state else []
            state.append(_port(port, several=len(nic.ports) > 1))
        role = "role unknown" if nic.role == "unknown" else nic.role
        cells = (self._link(function), tuple(state), ((role, ""),), self._interfaces(nic) if self.roomy else ())
        rest = self._rest(nic.id, remarks, ", ".join(details), model(nic.model))
        return Row(self._device(nic.label, nic.pci), cells, rest)

    def _device(self, label: str, place: str | None) -> Line:
        short = self.names.short(place or "")
        kind, at, _ = label.partition("@")
        name = kind if at else "NIC" if label == place else label
        return ((name, "bold"), (f" {short}" if short else "", ""))

    def _link(self, function: PciFunction | None) -> Line:
        return tuple(link_text(function.link, self.notes)) if function else ()

    def _interfaces(self, nic: Nic) -> Line:
        labels = dict.fromkeys(label for port in nic.ports for label in port.netdevs)
        told = ", ".join(_interface(self.netdevs[each]) for each in labels if each in self.netdevs)
        return ((told, ""),) if told else ()

    def _rest(self, place: str, remarks: list[str], details: str, name: str) -> Line:
        """Findings first: what is cut at the end of a line is the name."""
        spans = list(self.findings.get(place, ()))
        spans += [(each, "warning") for each in dict.fromkeys(remarks)]
        spans += [(each, "dim") for each in (details, name) if each]
        return tuple(span for each in spans for span in (("  ", ""), each))[1:]


def aligned(rows: list[Row | Line], width: int) -> list[Line]:
    """Lines of rows with their cells below each other, as many as the width allows; a plain line stays as it is.

    What is too long is cut.
    """
    full = [row for row in rows if isinstance(row, Row) and len(row.aligned) > 1 and not row.several]
    count = ALL_ALIGNED if width >= ROOMY else FEW_ALIGNED
    wide = [max((length(row.aligned[k]) for row in full), default=0) for k in range(count)]
    first = max((length(row.device) for row in full), default=0)
    return [cut(_joined(row, first, wide) if isinstance(row, Row) else row, width) for row in rows]


def cut(each: Line, width: int) -> Line:
    """Cut what is too long for the page: the name at the end goes first."""
    over = length(each) - width
    spans = list(each)
    while over > 0 and spans:
        text, style = spans.pop()
        if len(text) > over + 1:
            spans.append((text[: -over - 1] + "…", style))
        over -= len(text)
    return tuple(spans)


def _joined(row: Row, first: int, wide: list[int]) -> Line:
    """Columns have two spaces between them; a cell without a column follows where it is not empty."""
    spans = [*row.device, _space(first - length(row.device))]
    for k, cell in enumerate(row.aligned):
        column = wide[k] if k < len(wide) else 0
        if column or cell:
            spans += [_space(2), *cell, _space(column - length(cell))]
    return (*spans, _space(2), *row.rest) if row.rest else tuple(spans)


def _space(columns: int) -> Span:
    return (" " * columns, "")


def _presence(function: PciFunction | None) -> list[str]:
    asleep = function and function.link and function.link.quality.state == "asleep"  # the link says so already
    if not function or function.state == "present" or (function.state == "asleep" and asleep):
        return []
    return [function.state.replace("_", " ")]


def _nvlinks(gpu: Gpu) -> Line:
    states = Counter(link.state for link in gpu.links)
    up = states["active"] + states["sleep"]
    known = up + states["inactive"]
    protocol = {"xgmi": "XGMI", "hccs": "HCCS"}.get(gpu.links[0].protocol, "NVLink") if gpu.links else "NVLink"
    spans: list[Span] = []
    if known:
        spans.append((f"{protocol} {up}/{len(gpu.links)}", "warning" if up < known else ""))
    elif gpu.links:
        spans.append((f"{protocol} ?/{len(gpu.links)}", "dim"))
    if gpu.c2c and gpu.c2c.enabled:
        spans.append((" C2C" if spans else "C2C", ""))
    return tuple(spans)


def _port(port: Port, several: bool) -> Span:
    """`IB 400G NDR up`, `RoCE 200G up MTU 4096 GID 3`: the GID to use is a v2 one, of an IPv4 address if there is."""
    up = port.state == "ACTIVE"
    roce = port.link_layer == "Ethernet"
    layer = {"InfiniBand": "IB", "Ethernet": "RoCE"}.get(port.link_layer or "", port.link_layer or "")
    words = [f"p{port.port}" if several else "", layer, f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else ""]
    words.append(port.speed if port.speed and not roce else "")
    if up:
        words += ["up", *(_roce(port) if roce else [])]
    else:
        words += [(port.state or "state not known").lower(), port.phys_state or ""]
    return (" ".join(word for word in words if word), "ok" if up else "warning")


def _far_end(far: FabricNeighbor) -> str:
    """`to leaf-1 port 17`: the switch as people call it."""
    managed = far.name.partition(";")[2].partition(":")[0] if far.name else ""
    return f"to {managed or far.name or far.node_guid or 'a switch'} port {far.port}"


def _roce(port: Port) -> list[str]:
    words = [f"MTU {port.active_mtu}"] if port.active_mtu else []
    best = [gid.index for gid in port.gids if "v2" in (gid.type or "") and ":ffff:" in gid.gid]
    best += [gid.index for gid in port.gids if "v2" in (gid.type or "")]
    if best:
        words.append(f"GID {best[0]}")
    elif port.gids and all(gid.type for gid in port.gids):
        words.append("GID v1 only")
    return words


def _interface(netdev: Netdev) -> str:
    address = next((each for each in netdev.addresses if ":" not in each), "")
    return " ".join(each for each in (netdev.label, f"MTU {netdev.mtu}" if netdev.mtu else "", address) if each)
