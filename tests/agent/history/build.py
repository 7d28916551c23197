"""Reports of a small machine at different times."""

from __future__ import annotations

from typing import Any

import msgspec

from agent.model.finding import Summary
from agent.model.report import Generator, Report, Source
from agent.rules.context import RuleContext
from tests.agent.rules.build import changed_gpus, changed_netdev, changed_nic, changed_port, function, server

DAY = 86_400.0


def report(context: RuleContext | None = None, uptime: float | None = DAY, kind: str = "live", **node: Any) -> Report:
    """The report of a machine that has run so many seconds; its wall clock says the same."""
    context = context or counting()
    named = {"boot_id": "boot-1", "machine_id": "machine-1", "hostname": "gpu-1", **node}
    return Report(
        generated_at=f"2026-01-{1 + int((uptime or 0) // DAY):02}T00:00:{int((uptime or 0) % 60):02}Z",
        generator=Generator(name="fabricscope", version="0"),
        source=Source(kind=kind),
        node=msgspec.structs.replace(context.node, uptime_seconds=uptime, **named),
        probes=list(context.probes.values()),
        software=context.software,
        topology=context.topology,
        summary=Summary(verdict="unknown", counts={}),
    )


def counting(errors: int = 5, downs: int = 0, context: RuleContext | None = None) -> RuleContext:
    """Four GPUs and four RoCE rails, of which GPU 0, rail 0 and its interface have counted so many errors."""
    context = context or server(ethernet=True)
    rail = context.topology.nics[0]
    context = changed_nic(context, 0, node_guid="b83f:d203:0000:0001")
    context = function(
        context, rail.id, aer={"correctable": {"RxErr": errors}, "fatal": {"DLP": 0}, "nonfatal": {"DLP": 0}}
    )
    context = changed_gpus(context, pcie_counters={"replays": errors})
    context = changed_port(
        context, 0, counters={"link_downed": downs, "port_rcv_data": 1000}, hw_counters={"out_of_sequence": errors}
    )
    return changed_netdev(
        context, 0, counters={"rx_packets": 1000, "rx_crc_errors": errors, "carrier_down_count": downs}
    )


def moved_rail(context: RuleContext, pci: str) -> RuleContext:
    """The same machine with rail 0 and its interface at another address."""
    rail = context.topology.nics[0].id
    context = changed_nic(changed_netdev(context, 0, id=pci, pci=pci, nic=pci), 0, id=pci, pci=pci)
    return function(context, rail, id=pci)
