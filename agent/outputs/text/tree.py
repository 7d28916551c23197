"""The machine as a tree: NUMA nodes, shared root buses, switches, GPUs, NICs, NVSwitches, each with its link's state.

Only what leads to such a device is drawn; a switch's upstream and downstream ports are one line. A root bus has a line
where several devices share it: they meet in one host bridge.
"""

from __future__ import annotations

from agent.model.node import NumaNode
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.outputs.text.lines import Line, Span, line, paragraph
from agent.outputs.text.names import ranged, shown_nics
from agent.outputs.text.row import Row, Rows, aligned

ALIKE = 3  # so many NVSwitches or virtual functions that differ in nothing but their address are one line


def tree(report: Report, width: int) -> list[Line]:
    """The drawn tree, the notes on its numbers; devices that are on no known bus come last."""
    drawing = _Tree(report, width)
    rows = drawing.rows()
    if not rows:
        return []
    return [*aligned(rows, width), *_other_nodes(report, drawing.nodes_drawn, width), *drawing.make.notes.lines(width)]


class _Tree:
    """One drawing: the look-ups, and a walk from the roots."""

    def __init__(self, report: Report, width: int) -> None:
        topology = report.topology
        nics = shown_nics(report)
        self.make = Rows(report, width)
        self.node_of = {n.id: n for n in report.node.numa_nodes}
        self.functions = {f.id: f for f in topology.pci}
        self.gpus = {g.pci: g for g in topology.gpus if g.pci in self.functions}
        self.nics = {n.pci: n for n in nics if n.pci in self.functions}
        self.switches = {s.pci for s in topology.nvswitches if s.pci in self.functions}
        self.loose = (
            [g for g in topology.gpus if g.pci not in self.functions],
            [n for n in nics if n.pci not in self.functions],
        )
        self.children: dict[str, list[PciFunction]] = {}
        for function in topology.pci:
            if function.parent:
                self.children.setdefault(function.parent, []).append(function)
        self.drawn = self._leading_to_devices()
        self.nodes_drawn: set[int] = set()

    def rows(self) -> list[Row | Line]:
        """NUMA nodes with their root buses, then what hangs nowhere."""
        nodes: dict[int | None, dict[str, list[PciFunction]]] = {}
        for function in self.functions.values():
            if function.id in self.drawn and (function.parent or "") not in self.functions:
                buses = nodes.setdefault(function.numa_node, {})
                buses.setdefault(function.root_bus or "", []).append(function)
        found: list[Row | Line] = []
        for node in sorted(nodes, key=lambda each: (each is None, each or 0)):
            found.append(_node(node, self.node_of.get(-1 if node is None else node)))
            self.nodes_drawn |= set() if node is None else {node}
            found += self._buses(nodes[node])
        if any(self.loose):
            found.append(line(("place on the PCI bus not known", "bold")))
            alone = [self.make.gpu(g, None) for g in self.loose[0]] + [self.make.nic(n, None) for n in self.loose[1]]
            found += _hung(alone, "")
        return found

    def _buses(self, buses: dict[str, list[PciFunction]]) -> list[Row | Line]:
        """A bus of one device is not worth a line; a bus of several is where they meet."""
        rows: list[Row | Line] = []
        entries = [(bus, self._visible(tops, below_switch=False)) for bus, tops in buses.items()]
        for k, (bus, visible) in enumerate(entries):
            last = k == len(entries) - 1
            if len(visible) == 1:
                rows += self._siblings(visible, "", last)
            elif bus:
                rows.append(line(("└─ " if last else "├─ ", "dim"), f"root bus {self.make.names.short(bus)}"))
                rows += self._siblings(visible, "   " if last else "│  ", closed=True)
            else:
                rows += self._siblings(visible, "", closed=last)
        return rows

    def _siblings(self, visible: list[PciFunction], indent: str, closed: bool) -> list[Row | Line]:
        """Functions side by side with what is below them. `closed`: the last of them ends the branch."""
        rows: list[Row | Line] = []
        place = 0
        while place < len(visible):
            function = visible[place]
            alike = self._alike(visible[place:])
            place += alike
            row = self._row(function)
            if alike > 1:
                row = row._replace(device=self._many(visible[place - alike : place]), several=True)
            last = closed and place == len(visible)
            rows += _hung([row], indent, closed=last)
            below = self._visible(self.children.get(function.id, []), below_switch=True)
            rows += self._siblings(below, indent + ("   " if last else "│  "), closed=True)
        return rows

    def _alike(self, visible: list[PciFunction]) -> int:
        """How many of the first ones make one line."""
        first = visible[0]
        nic = self.nics.get(first.id)
        if first.id not in self.switches and not (nic and nic.virtual_function):
            return 1
        same = self._row(first).same()
        count = 1
        while count < len(visible) and visible[count].id in self.drawn and self._row(visible[count]).same() == same:
            count += 1
        return count if count >= ALIKE else 1

    def _many(self, alike: list[PciFunction]) -> Line:
        name = "NVSwitch" if alike[0].id in self.switches else ranged(self.nics[each.id].label for each in alike)
        first, last = (self.make.names.short(each.id) for each in (alike[0], alike[-1]))
        return ((f"{len(alike)}x {name}", "bold"), (f" {first} .. {last}", ""))

    def _visible(self, functions: list[PciFunction], below_switch: bool) -> list[PciFunction]:
        """What is drawn of one bus. Ports are passed through: what is below them is drawn in their place."""
        visible: list[PciFunction] = []
        for function in functions:
            if function.id in self.drawn:
                through = _is_port(function, below_switch or (function.parent or "") not in self.functions)
                visible += self.children.get(function.id, []) if through else [function]
        return [each for each in visible if each.id in self.drawn]

    def _row(self, function: PciFunction) -> Row:
        if gpu := self.gpus.get(function.id):
            return self.make.gpu(gpu, function)
        if nic := self.nics.get(function.id):
            return self.make.nic(nic, function)
        kind = "NVSwitch" if function.id in self.switches else "switch"
        return self.make.switch(function, kind, self._drives(function))

    def _drives(self, switch: PciFunction) -> int:
        return sum(
            (leaf.class_code or "").startswith("0x0108")
            for port in self.children.get(switch.id, [])
            for leaf in self.children.get(port.id, [])
        )

    def _leading_to_devices(self) -> set[str]:
        """Devices that are drawn, and every bridge above them. A circle of parents ends the climb."""
        drawn: set[str] = set()
        for place in (*self.gpus, *self.nics, *self.switches):
            at = self.functions.get(place or "")
            while at and at.id not in drawn:
                drawn.add(at.id)
                at = self.functions.get(at.parent or "")
        return drawn


def _hung(rows: list[Row], indent: str, closed: bool = True) -> list[Row | Line]:
    """Rows with their branch before them."""
    ends = ["├─ "] * (len(rows) - 1) + ["└─ " if closed else "├─ "]
    return [row._replace(device=((indent + end, "dim"), *row.device)) for row, end in zip(rows, ends, strict=True)]


def _node(node: int | None, known: NumaNode | None) -> Line:
    if node is None:
        return line(("NUMA node not known", "bold"))
    told = [f"cpus {known.cpus}"] if known and known.cpus else []
    told += [f"{known.memory_mib / 1024:.0f} GiB"] if known and known.memory_mib else []
    spans: list[Span | str] = [(f"NUMA {node}", "bold"), *(f"  {each}" for each in told)]
    return line(*spans)


def _other_nodes(report: Report, drawn: set[int], width: int) -> list[Line]:
    """NUMA nodes with nothing of the above: memory of GPUs or CXL; plain ones, where devices have a node."""
    owners = {gpu.memory_numa_node: gpu.label for gpu in report.topology.gpus if gpu.memory_numa_node is not None}
    others = [node for node in report.node.numa_nodes if node.id not in drawn]
    plain = ranged(f"NUMA {node.id}" for node in others if node.cpus) if drawn else ""
    memory = [
        f"NUMA {node.id}" + (f" of {owners[node.id]}" if node.id in owners else "")
        for node in others
        if node.cpus == ""
    ]
    told = [f"without GPU or NIC: {plain}" if plain else "", f"memory only: {', '.join(memory)}" if memory else ""]
    return [each for text in told if text for each in paragraph(text, width, style="dim")]


def _is_port(function: PciFunction, by_place: bool) -> bool:
    if not (function.class_code or "").startswith("0x0604"):
        return False
    if function.port_type:
        return function.port_type in ("root_port", "downstream")
    return by_place
