"""The machine as a tree: NUMA nodes, shared root buses, switches, GPUs, NICs, NVSwitches, each with its link's state.

Only what leads to such a device is drawn; a switch's upstream and downstream ports are one line. A root bus has a line
where several devices share it: they meet in one host bridge.
"""

from __future__ import annotations

from agent.model.node import NumaNode
from agent.model.pci import PciFunction
from agent.model.report import Report
from agent.outputs.names import ranged
from agent.outputs.text.lines import Line, Span, line, paragraph
from agent.outputs.text.row import Row, Rows, aligned
from agent.outputs.wiring import Wiring

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
        self.make = Rows(report, width)
        self.node_of = {n.id: n for n in report.node.numa_nodes}
        self.wiring = Wiring(report)
        self.nodes_drawn: set[int] = set()

    def rows(self) -> list[Row | Line]:
        """NUMA nodes with their root buses, then what hangs nowhere."""
        found: list[Row | Line] = []
        for node, buses in self.wiring.nodes().items():
            found.append(_node(node, self.node_of.get(-1 if node is None else node)))
            self.nodes_drawn |= set() if node is None else {node}
            found += self._buses(buses)
        gpus, nics = self.wiring.loose_gpus, self.wiring.loose_nics
        if gpus or nics:
            found.append(line(("place in the PCI tree not known", "bold")))
            found += _hung([self.make.gpu(g, None) for g in gpus] + [self.make.nic(n, None) for n in nics], "")
        return found

    def _buses(self, buses: dict[str, list[PciFunction]]) -> list[Row | Line]:
        """A bus of one device is not worth a line; a bus of several is where they meet."""
        rows: list[Row | Line] = []
        for k, (bus, visible) in enumerate(buses.items()):
            last = k == len(buses) - 1
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
            rows += self._siblings(self.wiring.below(function), indent + ("   " if last else "│  "), closed=True)
        return rows

    def _alike(self, visible: list[PciFunction]) -> int:
        """How many of the first ones make one line."""
        first = visible[0]
        nic = self.wiring.nics.get(first.id)
        if first.id not in self.wiring.switches and not (nic and nic.virtual_function):
            return 1
        same = self._row(first).same()
        count = 1
        while (
            count < len(visible) and visible[count].id in self.wiring.drawn and self._row(visible[count]).same() == same
        ):
            count += 1
        return count if count >= ALIKE else 1

    def _many(self, alike: list[PciFunction]) -> Line:
        name = (
            "NVSwitch"
            if alike[0].id in self.wiring.switches
            else ranged(self.wiring.nics[each.id].label for each in alike)
        )
        first, last = (self.make.names.short(each.id) for each in (alike[0], alike[-1]))
        return ((f"{len(alike)}x {name}", "bold"), (f" {first} .. {last}", ""))

    def _row(self, function: PciFunction) -> Row:
        if gpu := self.wiring.gpus.get(function.id):
            return self.make.gpu(gpu, function)
        if nic := self.wiring.nics.get(function.id):
            return self.make.nic(nic, function)
        kind = "NVSwitch" if function.id in self.wiring.switches else "switch"
        return self.make.switch(function, kind, self.wiring.drives(function))


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
