"""The machine as a tree: root buses, switches, GPUs, NICs, NVSwitches, each with the state of its link.

Only what leads to such a device is drawn; a switch's upstream and downstream ports are one line.
"""

from __future__ import annotations

from collections import Counter

from agent.model.gpu import Gpu
from agent.model.nic import Nic, Port
from agent.model.pci import Link, PciFunction
from agent.model.report import Report
from agent.outputs.text.lines import Line, Span, length, line

GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
TRUSTED = ("conclusive",)


def tree(report: Report, width: int) -> list[Line]:
    """The drawn tree; devices that are on no known bus come last."""
    return [_cut(each, width) for each in _Tree(report).lines()]


class _Tree:
    """One drawing: the look-ups, and a walk from the roots."""

    def __init__(self, report: Report) -> None:
        topology = report.topology
        self.node_of = {n.id: n for n in report.node.numa_nodes}
        self.functions = {f.id: f for f in topology.pci}
        self.gpus = {g.pci: g for g in topology.gpus if g.pci}
        self.nics = {n.pci: n for n in topology.nics if n.pci and not n.virtual_function}
        self.switches = {s.pci for s in topology.nvswitches}
        self.loose = [g for g in topology.gpus if not g.pci], [n for n in topology.nics if not n.pci]
        self.children: dict[str, list[PciFunction]] = {}
        for function in topology.pci:
            if function.parent:
                self.children.setdefault(function.parent, []).append(function)
        self.domains = any(not f.id.startswith("0000:") for f in topology.pci)
        self.drawn = self._leading_to_devices()

    def lines(self) -> list[Line]:
        """Root buses by NUMA node, then what hangs nowhere."""
        roots: dict[tuple[int, str], list[PciFunction]] = {}
        for function in self.functions.values():
            if function.id in self.drawn and (function.parent or "") not in self.functions:
                node = function.numa_node if function.numa_node is not None else 1 << 30
                roots.setdefault((node, function.root_bus or "bus not known"), []).append(function)
        found: list[Line] = []
        shown: int | None = None
        for (node, bus), tops in sorted(roots.items(), key=lambda each: each[0][0]):
            if node != shown:
                found.append(self._numa(node))
                shown = node
            found.append(line("  ", (f"root {self.short(bus)}", "dim")))
            found += self._siblings(tops, "  ", at_port=False)
        for gpu in self.loose[0]:
            found.append(line("  ", *self._gpu(gpu, None)))
        for nic in self.loose[1]:
            found.append(line("  ", *self._nic(nic, None)))
        return found

    def _numa(self, node: int) -> Line:
        known = self.node_of.get(node)
        if node == 1 << 30:
            return line(("NUMA node not known", "bold"))
        return line((f"NUMA {node}", "bold"), f"  cpus {known.cpus}" if known and known.cpus else "")

    def _siblings(self, functions: list[PciFunction], indent: str, at_port: bool) -> list[Line]:
        """Functions below one bus. Ports are passed through: what is below them is drawn in their place."""
        visible: list[PciFunction] = []
        for function in functions:
            if function.id in self.drawn:
                visible += self._below_port(function) if self._is_port(function, at_port) else [function]
        lines: list[Line] = []
        for k, function in enumerate(visible):
            last = k == len(visible) - 1
            lines.append(line((indent + ("└─ " if last else "├─ "), "dim"), *self._device(function)))
            below = self.children.get(function.id, [])
            if below:
                lines += self._siblings(below, indent + ("   " if last else "│  "), at_port=True)
        return lines

    def _is_port(self, function: PciFunction, below_switch: bool) -> bool:
        if not _is_bridge(function):
            return False
        if function.port_type:
            return function.port_type in ("root_port", "downstream")
        return below_switch or (function.parent or "") not in self.functions

    def _below_port(self, port: PciFunction) -> list[PciFunction]:
        return [each for each in self.children.get(port.id, []) if each.id in self.drawn]

    def _device(self, function: PciFunction) -> list[Span]:
        if gpu := self.gpus.get(function.id):
            return self._gpu(gpu, function)
        if nic := self.nics.get(function.id):
            return self._nic(nic, function)
        kind = "NVSwitch" if function.id in self.switches else "switch"
        return [
            (f"{kind} {self.short(function.id)}", ""),
            ("  ", ""),
            *link_text(function.link),
            (f"  {function.name or ''}{self._hidden(function)}", "dim"),
        ]

    def _gpu(self, gpu: Gpu, function: PciFunction | None) -> list[Span]:
        states = Counter(link.state for link in gpu.links)
        links: list[Span] = []
        if states["active"] or states["sleep"]:
            up = states["active"] + states["sleep"]
            style = "error" if up < len(gpu.links) and gpu.links_known else ""
            links = [(f"  NVLink {up}/{len(gpu.links)}", style)]
        elif states["inactive"]:
            links = [(f"  NVLink 0/{len(gpu.links)}", "warning")]
        trouble = {
            "not_open": "not in the driver's list",
            "no_driver": "no driver",
            "vfio": "vfio",
            "error": gpu.driver_error,
        }
        told = trouble.get(gpu.driver_state)
        spans: list[Span] = [(gpu.label, "bold"), (f" {self.short(gpu.pci or '')}  ", "")]
        spans += link_text(function.link) if function else []
        spans += [*links, (f"  {gpu.name or gpu.vendor or ''}", "dim")]
        if function and function.state != "present":
            spans.append((f"  {function.state.replace('_', ' ')}", "warning"))
        return [*spans, (f"  {told}", "warning")] if told else spans

    def _nic(self, nic: Nic, function: PciFunction | None) -> list[Span]:
        spans: list[Span] = [(nic.label, "bold"), (f" {self.short(nic.pci or '')}  ", "")]
        spans += link_text(function.link) if function else []
        for port in nic.ports:
            spans += _port(port, several=len(nic.ports) > 1)
        if nic.state != "present":
            spans.append((f"  {nic.state.replace('_', ' ')}", "warning"))
        return [*spans, (f"  {nic.role}", ""), (f"  {nic.model or ''}", "dim")]

    def _hidden(self, switch: PciFunction) -> str:
        """What else hangs below a switch and is not drawn: drives are the neighbours that people ask for."""
        drives = sum(
            (leaf.class_code or "").startswith("0x0108")
            for port in self.children.get(switch.id, [])
            for leaf in self.children.get(port.id, [])
        )
        return f"  (+ {drives} NVMe)" if drives else ""

    def _leading_to_devices(self) -> set[str]:
        """Devices that are drawn, and every bridge above them. A circle of parents ends the climb."""
        drawn: set[str] = set()
        for place in (*self.gpus, *self.nics, *self.switches):
            at = self.functions.get(place)
            while at and at.id not in drawn:
                drawn.add(at.id)
                at = self.functions.get(at.parent or "")
        return drawn

    def short(self, address: str) -> str:
        """Without the domain where there is only one."""
        return address if self.domains else address.removeprefix("0000:")


def link_text(link: Link | None) -> list[Span]:
    """`Gen5 x16`, and what is not as it could be: `Gen5 x8 of x16`, `Gen1 of Gen4 idle`."""
    if link is None:
        return []
    speed, width, most, widest = link.speed_gt_s, link.width, link.max_speed_gt_s, link.max_width
    told = f"{_generation(speed)} x{width if width is not None else '?'}"
    lacks = [
        _generation(most) if most and speed and speed < most else "",
        f"x{widest}" if widest and width and width < widest else "",
    ]
    less = " ".join(each for each in lacks if each)
    state = link.quality.state
    style = "" if not less or state not in TRUSTED else "warning"
    spans: list[Span] = [(told + (f" of {less}" if less else ""), style)]
    return spans if state in TRUSTED else [*spans, (f" {state}", "dim")]


def _port(port: Port, several: bool) -> list[Span]:
    up = port.state == "ACTIVE"
    layer = {"InfiniBand": "IB", "Ethernet": "RoCE"}.get(port.link_layer or "", port.link_layer or "")
    rate = f"{port.rate_gbit_s:g}G" if port.rate_gbit_s else ""
    speed = port.speed if port.link_layer == "InfiniBand" and port.speed else ""
    state = "up" if up else " ".join(each for each in (port.state or "state not known", port.phys_state) if each)
    told = " ".join(each for each in (f"p{port.port}" if several else "", layer, rate, speed, state) if each)
    return [("  ", ""), (told, "ok" if up else "warning")]


def _generation(speed: float | None) -> str:
    return f"Gen{GENERATION[speed]}" if speed in GENERATION else f"{speed:g}GT/s" if speed else "Gen?"


def _is_bridge(function: PciFunction) -> bool:
    return (function.class_code or "").startswith("0x0604")


def _cut(each: Line, width: int) -> Line:
    """Cut what is too long for the page: the name at the end goes first."""
    over = length(each) - width
    spans = list(each)
    while over > 0 and spans:
        text, style = spans.pop()
        if len(text) > over + 1:
            spans.append((text[: -over - 1] + "…", style))
        over -= len(text)
    return tuple(spans)
