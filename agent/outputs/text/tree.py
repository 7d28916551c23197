"""The machine as a tree: NUMA nodes, shared root buses, switches, GPUs, NICs, NVSwitches, each with its link state.

Only what leads to such a device is drawn; upstream and downstream ports of a switch are one line. A root bus has a line
if several devices share it: they meet in one host bridge.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from agent.model.gpu import Gpu
from agent.model.nic import FabricNeighbor, Netdev, Nic, Port
from agent.model.node import NumaNode
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.outputs.bus_tree import BusTree
from agent.outputs.names import DisplayNames, compress_names, short_model
from agent.outputs.text.lines import Line, Span, line_length, make_line, wrap_paragraph
from agent.outputs.text.link import Footnotes, format_link

WIDE_PAGE = 120  # columns of the page from which on everything stands in columns, and interfaces have one
ALL_ALIGNED, FEW_ALIGNED = 4, 1  # cells: link, state, role, interface; or the link only
SHOWN_SEVERITIES = ("warning", "error", "critical")
DRIVER_STATES = {"not_open": "not in the driver's list", "no_driver": "no driver", "vfio": "given to a guest (vfio)"}
NIC_STATES = {
    "no_driver": "no driver",
    "vfio": "given to a guest (vfio)",
    "no_rdma_device": "no RDMA device",
    "other_namespace": "interface in another network namespace",
}


class TreeRow(NamedTuple):
    """Cells of one line; `aligned` cells form columns, `rest` follows."""

    device: Line
    aligned: tuple[Line, ...] = ()  # link, state, role, interface
    rest: Line = ()
    is_group: bool = False  # one line for many devices: its long name moves no column

    def comparable(self) -> tuple[object, ...]:
        """Everything but the name and address."""
        return (self.aligned, self.rest)


class RowBuilder:
    """Builds rows of one report's devices."""

    def __init__(self, report: Report, width: int) -> None:
        self.names = DisplayNames(report)
        self.notes = Footnotes()
        self.netdevs = {netdev.label: netdev for netdev in report.topology.netdevs}
        self.is_wide = width >= WIDE_PAGE
        self.findings: dict[str, list[Span]] = {}
        for finding in report.findings:
            place = finding.subject.partition(":")[2].partition("/")[0]
            if place and finding.severity in SHOWN_SEVERITIES:
                mark = (f"<- {finding.rule}", finding.severity)
                self.findings.setdefault(place, []).append(mark)

    def switch(self, function: PciFunction, kind: str, drives: int) -> TreeRow:
        """A PCIe switch or an NVSwitch, with the number of NVMe drives below it."""
        below = f"+ {drives} NVMe" if drives else ""
        rest = self._rest(
            function.id, [], below, short_model(function.name) if kind == "NVSwitch" else function.name or ""
        )
        return TreeRow(self._device(kind, function.id), (self._link(function),), rest)

    def gpu(self, gpu: Gpu, function: PciFunction | None) -> TreeRow:
        """A GPU: its NVLinks, and why the driver does not have it."""
        remarks = [gpu.driver_error or "driver error"] if gpu.driver_state == "error" else []
        remarks += [DRIVER_STATES[gpu.driver_state]] if gpu.driver_state in DRIVER_STATES else []
        remarks += _presence_remarks(function)
        if gpu.mig and gpu.mig.current:
            remarks.append(f"MIG, {len(gpu.mig.instances)} instances")
        cells = (self._link(function), _nvlink_cell(gpu), (), ())
        listed_address = gpu.id if ":" in gpu.id else None  # the driver may list addresses that are not on the bus
        place = gpu.pci or listed_address
        return TreeRow(self._device(gpu.label, place), cells, self._rest(gpu.id, remarks, "", short_model(gpu.name)))

    def nic(self, nic: Nic, function: PciFunction | None) -> TreeRow:
        """A NIC: its ports, role and interface."""
        remarks = [NIC_STATES[nic.state]] if nic.state in NIC_STATES else []
        remarks += _presence_remarks(function)
        remarks += ["belongs to the fabric manager"] if nic.limited else []
        details = [f"in {nic.bond}"] if nic.bond else []
        details += [f"{nic.virtual_functions} VFs"] if nic.virtual_functions else []
        details += [_describe_far_end(port.neighbor) for port in nic.ports if port.neighbor]
        state: list[Span] = []
        for port in nic.ports:
            state += [("  ", "")] if state else []
            state.append(_port_cell(port, several=len(nic.ports) > 1))
        role = "role unknown" if nic.role == "unknown" else nic.role
        cells = (self._link(function), tuple(state), ((role, ""),), self._interfaces(nic) if self.is_wide else ())
        rest = self._rest(nic.id, remarks, ", ".join(details), short_model(nic.model))
        return TreeRow(self._device(nic.label, nic.pci), cells, rest)

    def _device(self, label: str, place: str | None) -> Line:
        short = self.names.short(place or "")
        kind, separator, _ = label.partition("@")
        name = kind if separator else "NIC" if label == place else label
        return ((name, "bold"), (f" {short}" if short else "", ""))

    def _link(self, function: PciFunction | None) -> Line:
        return tuple(format_link(function.link, self.notes)) if function else ()

    def _interfaces(self, nic: Nic) -> Line:
        labels = dict.fromkeys(label for port in nic.ports for label in port.netdevs)
        text = ", ".join(_interface_text(self.netdevs[label]) for label in labels if label in self.netdevs)
        return ((text, ""),) if text else ()

    def _rest(self, place: str, remarks: list[str], details: str, name: str) -> Line:
        """Findings first: a long line loses the name at its end."""
        spans = list(self.findings.get(place, ()))
        spans += [(remark, "warning") for remark in dict.fromkeys(remarks)]
        spans += [(text, "dim") for text in (details, name) if text]
        return tuple(span for item in spans for span in (("  ", ""), item))[1:]


def align_rows(rows: list[TreeRow | Line], width: int) -> list[Line]:
    """Align the cells of rows, as many as the width allows; a plain line is unchanged.

    Long lines are cut.
    """
    full = [row for row in rows if isinstance(row, TreeRow) and len(row.aligned) > 1 and not row.is_group]
    count = ALL_ALIGNED if width >= WIDE_PAGE else FEW_ALIGNED
    wide = [max((line_length(row.aligned[k]) for row in full), default=0) for k in range(count)]
    first = max((line_length(row.device) for row in full), default=0)
    return [cut_line(_join_cells(row, first, wide) if isinstance(row, TreeRow) else row, width) for row in rows]


def cut_line(line: Line, width: int) -> Line:
    """Cut a line to the page's width, from its end."""
    over = line_length(line) - width
    spans = list(line)
    while over > 0 and spans:
        text, style = spans.pop()
        if len(text) > over + 1:
            spans.append((text[: -over - 1] + "…", style))
        over -= len(text)
    return tuple(spans)


def _join_cells(row: TreeRow, first: int, wide: list[int]) -> Line:
    """Join cells with two spaces; a cell without a column follows if it is not empty."""
    spans = [*row.device, _spaces(first - line_length(row.device))]
    for k, cell in enumerate(row.aligned):
        column = wide[k] if k < len(wide) else 0
        if column or cell:
            spans += [_spaces(2), *cell, _spaces(column - line_length(cell))]
    return (*spans, _spaces(2), *row.rest) if row.rest else tuple(spans)


def _spaces(columns: int) -> Span:
    return (" " * columns, "")


def _presence_remarks(function: PciFunction | None) -> list[str]:
    asleep = function and function.link and function.link.quality.state == "asleep"  # shown by the link already
    if not function or function.state == "present" or (function.state == "asleep" and asleep):
        return []
    return [function.state.replace("_", " ")]


def _nvlink_cell(gpu: Gpu) -> Line:
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


def _port_cell(port: Port, several: bool) -> Span:
    """`IB 400G NDR up`, `RoCE 200G up MTU 4096 GID 3`: the GID to use is a v2 one, preferably of an IPv4 address."""
    up = port.state == "ACTIVE"
    roce = port.link_layer == "Ethernet"
    layer = {"InfiniBand": "IB", "Ethernet": "RoCE"}.get(port.link_layer or "", port.link_layer or "")
    words = [f"p{port.port}" if several else "", layer, f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else ""]
    words.append(port.speed if port.speed and not roce else "")
    if up:
        words += ["up", *(_roce_words(port) if roce else [])]
    else:
        words += [(port.state or "state not known").lower(), port.phys_state or ""]
    return (" ".join(word for word in words if word), "ok" if up else "warning")


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


def _interface_text(netdev: Netdev) -> str:
    address = next((address for address in netdev.addresses if ":" not in address), "")
    return " ".join(part for part in (netdev.label, f"MTU {netdev.mtu}" if netdev.mtu else "", address) if part)


MIN_GROUP = 3  # equal NVSwitches or virtual functions from this number on share one line


def render_tree(report: Report, width: int) -> list[Line]:
    """The tree and its footnotes; devices without a known bus come last."""
    drawing = _TreeBuilder(report, width)
    rows = drawing.rows()
    if not rows:
        return []
    return [
        *align_rows(rows, width),
        *_render_other_nodes(report, drawing.nodes_drawn, width),
        *drawing.make.notes.lines(width),
    ]


class _TreeBuilder:
    """Builds the tree by a walk from the roots."""

    def __init__(self, report: Report, width: int) -> None:
        self.make = RowBuilder(report, width)
        self.node_of = {n.id: n for n in report.node.numa_nodes}
        self.tree = BusTree(report)
        self.nodes_drawn: set[int] = set()

    def rows(self) -> list[TreeRow | Line]:
        """NUMA nodes with their root buses, then devices without a location."""
        rows: list[TreeRow | Line] = []
        for node, buses in self.tree.nodes().items():
            rows.append(_node_line(node, self.node_of.get(-1 if node is None else node)))
            self.nodes_drawn |= set() if node is None else {node}
            rows += self._buses(buses)
        gpus, nics = self.tree.unplaced_gpus, self.tree.unplaced_nics
        if gpus or nics:
            rows.append(make_line(("place in the PCI tree not known", "bold")))
            rows += _add_branches([self.make.gpu(g, None) for g in gpus] + [self.make.nic(n, None) for n in nics], "")
        return rows

    def _buses(self, buses: dict[str, list[PciFunction]]) -> list[TreeRow | Line]:
        """A bus of one device has no line of its own; a bus of several has one."""
        rows: list[TreeRow | Line] = []
        for k, (bus, visible) in enumerate(buses.items()):
            last = k == len(buses) - 1
            if len(visible) == 1:
                rows += self._siblings(visible, "", last)
            elif bus:
                rows.append(make_line(("└─ " if last else "├─ ", "dim"), f"root bus {self.make.names.short(bus)}"))
                rows += self._siblings(visible, "   " if last else "│  ", closed=True)
            else:
                rows += self._siblings(visible, "", closed=last)
        return rows

    def _siblings(self, visible: list[PciFunction], indent: str, closed: bool) -> list[TreeRow | Line]:
        """Sibling functions with everything below them. `closed`: the last of them ends the branch."""
        rows: list[TreeRow | Line] = []
        place = 0
        while place < len(visible):
            function = visible[place]
            alike = self._alike(visible[place:])
            place += alike
            row = self._row(function)
            if alike > 1:
                row = row._replace(device=self._many(visible[place - alike : place]), is_group=True)
            last = closed and place == len(visible)
            rows += _add_branches([row], indent, closed=last)
            rows += self._siblings(self.tree.visible_below(function), indent + ("   " if last else "│  "), closed=True)
        return rows

    def _alike(self, visible: list[PciFunction]) -> int:
        """How many of the first siblings share one line."""
        first = visible[0]
        nic = self.tree.nics.get(first.id)
        if first.id not in self.tree.switches and not (nic and nic.virtual_function):
            return 1
        same = self._row(first).comparable()
        count = 1
        while (
            count < len(visible)
            and visible[count].id in self.tree.drawn
            and self._row(visible[count]).comparable() == same
        ):
            count += 1
        return count if count >= MIN_GROUP else 1

    def _many(self, alike: list[PciFunction]) -> Line:
        name = (
            "NVSwitch"
            if alike[0].id in self.tree.switches
            else compress_names(self.tree.nics[function.id].label for function in alike)
        )
        first, last = (self.make.names.short(function.id) for function in (alike[0], alike[-1]))
        return ((f"{len(alike)}x {name}", "bold"), (f" {first} .. {last}", ""))

    def _row(self, function: PciFunction) -> TreeRow:
        if gpu := self.tree.gpus.get(function.id):
            return self.make.gpu(gpu, function)
        if nic := self.tree.nics.get(function.id):
            return self.make.nic(nic, function)
        kind = "NVSwitch" if function.id in self.tree.switches else "switch"
        return self.make.switch(function, kind, self.tree.count_drives(function))


def _add_branches(rows: list[TreeRow], indent: str, closed: bool = True) -> list[TreeRow | Line]:
    """Prefix rows with their branches."""
    ends = ["├─ "] * (len(rows) - 1) + ["└─ " if closed else "├─ "]
    return [row._replace(device=((indent + end, "dim"), *row.device)) for row, end in zip(rows, ends, strict=True)]


def _node_line(node: int | None, known: NumaNode | None) -> Line:
    if node is None:
        return make_line(("NUMA node not known", "bold"))
    parts = [f"cpus {known.cpus}"] if known and known.cpus else []
    parts += [f"{known.memory_mib / 1024:.0f} GiB"] if known and known.memory_mib else []
    spans: list[Span | str] = [(f"NUMA {node}", "bold"), *(f"  {part}" for part in parts)]
    return make_line(*spans)


def _render_other_nodes(report: Report, drawn: set[int], width: int) -> list[Line]:
    """Other NUMA nodes: memory of GPUs or CXL; plain ones, if devices have a node."""
    owners = {gpu.memory_numa_node: gpu.label for gpu in report.topology.gpus if gpu.memory_numa_node is not None}
    others = [node for node in report.node.numa_nodes if node.id not in drawn]
    plain = compress_names(f"NUMA {node.id}" for node in others if node.cpus) if drawn else ""
    memory = [
        f"NUMA {node.id}" + (f" of {owners[node.id]}" if node.id in owners else "")
        for node in others
        if node.cpus == ""
    ]
    texts = [f"without GPU or NIC: {plain}" if plain else "", f"memory only: {', '.join(memory)}" if memory else ""]
    return [line for text in texts if text for line in wrap_paragraph(text, width, style="dim")]
