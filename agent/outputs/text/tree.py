"""The machine as a tree: NUMA nodes, shared root buses, switches, GPUs, NICs, NVSwitches, each with its link state.

Only what leads to such a device is drawn, or to drives, displays and network controllers if there is none.
Upstream and downstream ports of a switch are one line. A root bus has a line if several devices share it: they meet
in one host bridge. Rows are laid out in columns, as many as the width allows; what does not fit goes on below its row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from agent.model.labels import compress_names
from agent.model.node import NumaNode
from agent.model.pci import PciFunction, generation
from agent.model.report import Report
from agent.outputs.bus_tree import BusTree
from agent.outputs.names import DisplayNames, format_gib
from agent.outputs.text.lines import Line, Span, line_length, make_line, wrap_all
from agent.outputs.text.rows import RowBuilder, TreeRow

ALL_CELLS, LINK_ONLY = 4, 1  # columns: link, state, role, interface; or the link only
_BRANCHES = str.maketrans({"├": "│", "└": " ", "─": " "})
_MIN_COLUMNS = 20  # of a continued line, however deep it is
LAYOUTS = (("full", ALL_CELLS), ("name", ALL_CELLS), ("none", ALL_CELLS), ("none", LINK_ONLY))  # widest first
MIN_GROUP = 3  # equal NVSwitches, virtual functions or devices without a place: from this number on one line


def render_tree(report: Report, width: int) -> list[Line]:
    """The tree and its footnotes; devices without a known bus come last."""
    for interfaces, columns in LAYOUTS:
        drawing = _TreeBuilder(report, interfaces)
        rows = drawing.rows()
        if rows_fit(rows, width, columns):
            break
    if not rows:
        return _render_cxl(report, drawing.make.names, width)
    return [
        *align_rows(rows, width, columns),
        *_render_other_nodes(report, drawing.nodes_drawn, width),
        *_render_cxl(report, drawing.make.names, width),
        *drawing.make.notes.lines(width),
    ]


class _TreeBuilder:
    """Builds the tree by a walk from the roots."""

    def __init__(self, report: Report, interfaces: str) -> None:
        self.make = RowBuilder(report, interfaces)
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
            rows.append(make_line(("unknown position in the PCI tree", "bold")))
            unplaced = [self.make.gpu(gpu, None) for gpu in gpus] + [self.make.nic(nic, None) for nic in nics]
            rows += _add_branches(list(_join_alike(unplaced)), "")
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
            alike = self._count_alike(visible[place:])
            place += alike
            row = self._row(function)
            if alike > 1:
                row = row._replace(device=self._many(visible[place - alike : place]), is_group=True)
            last = closed and place == len(visible)
            rows += _add_branches([row], indent, closed=last)
            rows += self._siblings(self.tree.visible_below(function), indent + ("   " if last else "│  "), closed=True)
        return rows

    def _count_alike(self, visible: list[PciFunction]) -> int:
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
        if ordinary := self.tree.ordinary.get(function.id):
            return self.make.ordinary(function, ordinary)
        kind = "NVSwitch" if function.id in self.tree.switches else "switch"
        return self.make.switch(function, kind, self.tree.count_drives(function))


def _join_alike(rows: Iterable[TreeRow]) -> Iterator[TreeRow]:
    """Rows one after the other that have an address each or differ in more than their name; equal ones are one row."""
    for _, group in groupby(rows, lambda row: (row.device[1:], row.comparable())):
        alike = list(group)
        if len(alike) < MIN_GROUP or alike[0].device[1][0]:
            yield from alike
        else:
            (_, style), *rest = alike[0].device
            yield alike[0]._replace(device=((compress_names(row.device[0][0] for row in alike), style), *rest))


def _add_branches(rows: list[TreeRow], indent: str, closed: bool = True) -> list[TreeRow | Line]:
    """Prefix rows with their branches."""
    ends = ["├─ "] * (len(rows) - 1) + ["└─ " if closed else "├─ "]
    return [row._replace(device=((indent + end, "dim"), *row.device)) for row, end in zip(rows, ends, strict=True)]


def _node_line(node: int | None, known: NumaNode | None) -> Line:
    if node is None:
        return make_line(("NUMA node unknown", "bold"))
    parts = [f"cpus {known.cpus}"] if known and known.cpus else []
    parts += [f"{known.memory_mib / 1024:.0f} GiB"] if known and known.memory_mib else []
    spans: list[Span | str] = [(f"NUMA {node}", "bold"), *(f"  {part}" for part in parts)]
    return make_line(*spans)


def _render_other_nodes(report: Report, drawn: set[int], width: int) -> list[Line]:
    """Other NUMA nodes: memory of GPUs or CXL; plain ones, if devices have a node."""
    owners = {gpu.memory_numa_node: gpu.label for gpu in report.topology.gpus if gpu.memory_numa_node is not None}
    regions = report.topology.cxl.regions if report.topology.cxl else []
    owners |= {region.numa_node: region.id for region in regions if region.numa_node is not None}
    others = [node for node in report.node.numa_nodes if node.id not in drawn]
    plain = compress_names(f"NUMA {node.id}" for node in others if node.cpus) if drawn else ""
    memory = [
        f"NUMA {node.id}" + (f" of {owners[node.id]}" if node.id in owners else "")
        for node in others
        if node.cpus == ""
    ]
    texts = [f"without GPU or NIC: {plain}" if plain else "", f"memory only: {', '.join(memory)}" if memory else ""]
    return wrap_all(filter(None, texts), width, "  ", None, "dim")


def _render_cxl(report: Report, names: DisplayNames, width: int) -> list[Line]:
    """CXL memory: a line for each device with its link, and one for each region."""
    cxl, functions = report.topology.cxl, {function.id: function for function in report.topology.pci}
    if cxl is None:
        return []
    texts = []
    for device in cxl.devices:
        function = functions.get(device.id)
        link = function.link if function else None
        parts = [
            format_gib(device.ram_mib) if device.memdev else "no memory device",
            f"Gen{generation(link.speed_gt_s)} x{link.width}" if link and link.width and link.speed_gt_s else "",
            f"at NUMA {device.numa_node}" if device.numa_node is not None else "",
            function.driver or "no driver" if function and function.driver is not None else "",
        ]
        name = f"CXL {device.memdev or 'memory'}"
        texts.append(f"{name} {names.short(device.id)}  {', '.join(part for part in parts if part)}")
    memdevs = {device.id: device.memdev or device.id for device in cxl.devices}
    for region in cxl.regions:
        members = ", ".join(memdevs.get(device, device) for device in region.devices) or "no device"
        node = f", NUMA {region.numa_node}" if region.numa_node is not None else ""
        state = ", not committed" if region.committed is False else ""
        texts.append(f"CXL {region.id}  {format_gib(region.size_mib)} over {members}{node}{state}")
    return wrap_all(texts, width, "  ", None)


def align_rows(rows: Sequence[TreeRow | Line], width: int, columns: int) -> list[Line]:
    """The lines of rows; a plain line is unchanged."""
    first, wide = _measure(rows, columns)
    lines: list[Line] = []
    for row in rows:
        lines += _layout_row(row, first, wide, width) if isinstance(row, TreeRow) else [row]
    return lines


def rows_fit(rows: Sequence[TreeRow | Line], width: int, columns: int) -> bool:
    """Whether every row fits on one line, those of groups and marks of findings aside."""
    first, wide = _measure(rows, columns)
    own = [row for row in rows if isinstance(row, TreeRow) and not row.is_group]
    return all(line_length(_join_cells(row, first, wide, row.items)) <= width for row in own)


def _measure(rows: Sequence[TreeRow | Line], columns: int) -> tuple[int, list[int]]:
    """The width of the first column, and of the aligned cells."""
    full = [row for row in rows if isinstance(row, TreeRow) and len(row.aligned) > 1 and not row.is_group]
    wide = [max((line_length(row.aligned[k]) for row in full), default=0) for k in range(columns)]
    return max((line_length(row.device) for row in full), default=0), wide


def _layout_row(row: TreeRow, first: int, wide: list[int], width: int) -> list[Line]:
    """One line; where it does not fit, items go on below, indented to the second column."""
    items = [*row.findings, *row.items]
    lines = [_join_cells(row, first, wide, ())]
    branch, style = row.device[0]
    indent = ((branch.translate(_BRANCHES).ljust(first + 2), style),)
    for item in items:
        used = line_length(lines[-1]) + 2
        if used + len(item[0]) <= width:
            lines[-1] = (*lines[-1], ("  ", ""), item)
            continue
        room = max(width - line_length(indent), _MIN_COLUMNS)
        if len(item[0]) <= room:
            lines.append((*indent, item))
            continue
        begun = " " * max(used - line_length(indent), 0)
        texts = textwrap.wrap(item[0], room, initial_indent=begun, break_on_hyphens=False)
        lines[-1] = (*lines[-1], ("  ", ""), (texts[0].strip(), item[1]))
        lines += [(*indent, (text, item[1])) for text in texts[1:]]
    return lines


def _join_cells(row: TreeRow, first: int, wide: Sequence[int], items: Sequence[Span]) -> Line:
    """Join cells with two spaces; a cell without a column follows if it is not empty."""
    spans = [*row.device, _spaces(first - line_length(row.device))]
    for k, cell in enumerate(row.aligned):
        column = wide[k] if k < len(wide) else 0
        if column or cell:
            spans += [_spaces(2), *cell, _spaces(column - line_length(cell))]
    while spans and not items and not spans[-1][0].strip():
        spans.pop()
    for item in items:
        spans += [_spaces(2), item]
    return tuple(spans)


def _spaces(columns: int) -> Span:
    return (" " * columns, "")
