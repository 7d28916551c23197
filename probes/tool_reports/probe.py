"""Saved outputs in which tools state faults: each by its reader. Never run on a live host: some ask every GPU."""

from __future__ import annotations

from collections.abc import Callable

from probes.host.commands import (
    AMD_HEALTH_SAVED,
    AMD_SMI_SAVED,
    CONTAINER_SAVED,
    DCGM_DIAG,
    DCGM_HEALTH,
    DCGM_LINKS,
    GPU_LINES,
    HL_SMI_SAVED,
    IB_ERRORS_SAVED,
    IB_LINKS,
    KUBE_NODE,
    NO_DRIVER_SAVED,
    NPU_INFO,
    NVIDIA_SMI_TABLE,
    PCI_LINES,
    ROCM_PAGES_SAVED,
    ROCM_RAS_SAVED,
)
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.probe import Reading
from probes.text import ParseError
from probes.tool_reports import accelerators, containers, dcgmi, unnamed
from probes.tool_reports.facts import ToolFacts, ToolReport
from probes.tool_reports.port_errors import list_port_errors, list_slow_links

READERS: tuple[tuple[tuple[tuple[str, ...], ...], Callable[[str], list[ToolReport]]], ...] = (
    (NVIDIA_SMI_TABLE, accelerators.list_smi_errors),
    ((NPU_INFO,), accelerators.list_npu_states),
    (HL_SMI_SAVED, accelerators.list_gaudi_errors),
    (ROCM_RAS_SAVED, accelerators.list_ras_errors),
    (ROCM_PAGES_SAVED, accelerators.list_bad_pages),
    (AMD_SMI_SAVED + AMD_HEALTH_SAVED, accelerators.list_amd_errors),
    (DCGM_HEALTH, dcgmi.parse_health),
    (DCGM_DIAG, dcgmi.parse_diag),
    (DCGM_LINKS, dcgmi.list_links_down),
    (IB_ERRORS_SAVED, list_port_errors),
    (IB_LINKS, list_slow_links),
    (KUBE_NODE, containers.list_node_faults),
    (CONTAINER_SAVED, containers.list_sentences),
    (NO_DRIVER_SAVED, accelerators.list_missing_drivers),
    ((PCI_LINES,), unnamed.list_pci_lines),
    ((GPU_LINES,), unnamed.list_gpu_lines),
)


def read(host: Host) -> Reading:
    """Every fault that a saved output states. Raises Absent where there is none of these outputs, Failed where none
    could be read."""
    reports: list[tuple[str, ToolReport]] = []
    sources: list[str] = []
    gaps: list[str] = []
    for commands, list_faults in READERS if not host.live else ():
        for argv in commands:
            if not host.has_output(*argv):
                continue
            name = " ".join(argv)
            try:
                faults = list_faults(host.run(*argv).stdout)
            except (ParseError, ReadError) as why:
                gaps.append(f"{name}: {why}")
                continue
            sources.append(name)
            reports += [(name, fault) for fault in faults]
    if not sources:
        raise Failed("; ".join(gaps)) if gaps else Absent("no saved output of a tool that states faults")
    return Reading(ToolFacts(tuple(reports)), tuple(sources), "; ".join(gaps) or None)
