"""The node of the report (names, processors, NUMA nodes, chassis position), the events of its logs, and the faults that
tools state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, build_row, sort_key
from agent.model.node import Chassis, Cpu, Event, Node, NumaNode
from probes.gpu import facts as gpu
from probes.kernel import system as kernel
from probes.system import cpu, dmi, numa

if TYPE_CHECKING:
    from probes.kernel.log_facts import KernelLogFacts
    from probes.services.probe import ServiceFacts
    from probes.tool_reports.facts import ToolFacts


def build_events(facts: ProbeFacts) -> list[Event]:
    """One row for equal lines, sorted by subject, kind and code."""
    log: KernelLogFacts | None = facts.get("kernel_log")
    services: ServiceFacts | None = facts.get("services")
    found = [(event, event.source or log.source) for event in log.events] if log else []
    found += [(event, event.source or "") for event in services.events] if services else []
    tools: ToolFacts | None = facts.get("tool_reports")
    rows = [
        build_row(Event, report, source=source, detail=dict(report.detail))
        for source, report in (tools.reports if tools else ())
    ]
    rows += [build_row(Event, event, source=source, detail=dict(event.detail)) for event, source in found]
    return sorted(rows, key=lambda row: (sort_key(row.subject or ""), row.kind, row.code or "", row.text))


def build_node(facts: ProbeFacts) -> Node:
    """Build the node. Null: not in the source."""
    system = facts.of("kernel", kernel.KernelFacts) or kernel.KernelFacts()
    firmware = facts.of("dmi", dmi.DmiFacts) or dmi.DmiFacts()
    nodes = facts.of("numa", numa.NumaFacts)
    return build_row(
        Node,
        system,
        vendor=firmware.vendor,
        product=firmware.product,
        bios_version=firmware.bios_version,
        chassis=_chassis(facts, firmware.chassis_serial),
        serial=firmware.serial,
        cpu=build_row(Cpu, facts.of("cpu", cpu.CpuPackage) or cpu.CpuPackage()),
        numa_nodes=[build_row(NumaNode, n) for n in sorted(nodes.nodes, key=lambda n: n.id)] if nodes else [],
        uptime_seconds=round(system.uptime_seconds, 3) if system.uptime_seconds is not None else None,
    )


def _chassis(facts: ProbeFacts, serial: str | None) -> Chassis:
    """Slot and tray as the GPUs of a rack report them, where they agree; the firmware's serial number wins."""
    sources = facts.all_of("gpu", gpu.GpuFacts)
    places = {(g.chassis_serial, g.slot, g.tray) for _, source in sources for g in source.gpus if g.chassis_serial}
    rack, slot, tray = places.pop() if len(places) == 1 else (None, None, None)
    return Chassis(serial=serial or rack, slot=slot, tray=tray)
