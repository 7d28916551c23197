"""The head of the page: which node this is, what is in it, where the evidence came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.model.report import Report
from agent.outputs.text.lines import Line, joined, paragraph


def header(report: Report, width: int) -> list[Line]:
    """Three short paragraphs: the machine, its software, the source."""
    node = report.node
    title = joined((node.hostname or "(host name not known)", joined((node.vendor, node.product), " ")))
    return [
        *paragraph(title, width, indent="", style="bold"),
        *paragraph(_hardware(report), width, indent=""),
        *paragraph(_software(report), width, indent=""),
        *paragraph(_source(report), width, indent="", style="dim"),
    ]


def _hardware(report: Report) -> str:
    node, topology = report.node, report.topology
    cpu_nodes = [n for n in node.numa_nodes if n.cpus]
    memory_nodes = sum(n.cpus == "" for n in node.numa_nodes)
    nics = [n for n in topology.nics if not n.virtual_function and not n.software]
    return joined(
        (
            counted(g.name or "GPU" for g in topology.gpus) or "no GPU",
            f"{len(topology.nvswitches)}x NVSwitch" if topology.nvswitches else None,
            counted(n.model or "RDMA NIC" for n in nics) or "no RDMA NIC",
            f"{node.cpu.sockets} sockets" if (node.cpu.sockets or 0) > 1 else node.cpu.name,
            f"{len(cpu_nodes)} NUMA nodes" if len(cpu_nodes) > 1 else None,
            f"{memory_nodes} memory-only NUMA nodes" if memory_nodes else None,
            f"{node.memory_mib / 1024:.0f} GiB" if node.memory_mib else None,
        )
    )


def _software(report: Report) -> str:
    node, driver, stack = report.node, report.software.driver, report.software.rdma_stack
    flavour = {True: " (open)", False: " (proprietary)", None: ""}[driver.open]
    where = f"{node.virtualization} guest" if node.virtualization else None
    return joined(
        (
            node.os,
            f"kernel {node.kernel}" if node.kernel else None,
            f"driver {driver.version}{flavour}" if driver.version else None,
            f"CUDA {driver.cuda}" if driver.cuda else None,
            f"OFED {stack.version or ''}".strip() if stack.kind == "ofed" else None,
            where,
            f"in a {node.container} container" if node.container else None,
        )
    )


def _source(report: Report) -> str:
    platform = report.platform
    return joined(
        (
            f"platform {platform.profile} ({platform.confidence})" if platform.profile else None,
            f"source {report.source.kind}" + (f" {report.source.path}" if report.source.path else ""),
            f"observed {report.observed_at}" if report.observed_at else None,
            f"fabricscope {report.generator.version}",
        )
    )


def counted(names: Iterable[str]) -> str:
    """How many of what, most first.

    >>> counted(["H100", "H100", "L4"])
    '2x H100, 1x L4'
    """
    return ", ".join(f"{n}x {name}" for name, n in sorted(Counter(names).items(), key=lambda each: (-each[1], each[0])))
