"""Saved outputs in which tools state faults: each by its reader. Never run on a live host: some ask every GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module

from probes.host.commands import (
    ALERTS,
    AMD_HEALTH_SAVED,
    AMD_LINKS,
    AMD_METRICS,
    AMD_SMI_SAVED,
    BMC_LOG,
    BMC_SENSORS,
    BONDING,
    C2C_LINKS,
    CHECKS,
    CMA_MODE,
    CONTAINER_SAVED,
    COUNTERS,
    COUNTS,
    CXI_PORTS,
    DCGM_DIAG,
    DCGM_HEALTH,
    DCGM_LINKS,
    DCGM_METRICS,
    DCGM_SAMPLES,
    DEVICE_LABELS,
    DMI_MEMORY,
    DMON,
    ETHTOOL_COUNTERS,
    ETHTOOL_FEC,
    ETHTOOL_SETTINGS,
    FLINT,
    GAUDI_PORTS,
    GDS_CHECK,
    GPU_LINES,
    HL_SMI_QUERY,
    HL_SMI_SAVED,
    IB_ERRORS_SAVED,
    IB_LINKS,
    IB_NODES,
    IBV_DEVICES,
    IMEX_NODES,
    INTERFACE_LOG,
    IP_LINK_SAVED,
    KERNEL_LOG_SAVED,
    KUBE_NODE,
    LDD,
    MACHINE_TEXTS,
    MEASURED,
    MLXCONFIG,
    MLXLINK,
    NIC_PORTS,
    NIC_REPORTERS,
    NPU_HEALTH,
    NPU_INFO,
    NVIDIA_SMI_SAVED,
    NVIDIA_SMI_TABLE,
    NVLINK_ERRORS,
    NVSM_HEALTH,
    OPA_PORTS,
    OWN_REPORT,
    PCI_LINES,
    PODS,
    QDISC,
    RDMA_GUIDS,
    REDFISH,
    REPEATED,
    ROCM_PAGES_SAVED,
    ROCM_RAS_SAVED,
    ROCM_SHORT,
    ROCM_XGMI,
    ROUTES,
    SHEET,
    SHOW_GIDS,
    SLURM_HELD,
    SLURM_LOG,
    SLURM_NODE,
    STATED,
    SWITCH_PORTS,
    SYSFS_SAVED,
    SYSTEM,
    TOOL_ERRORS_SAVED,
    UFM_EVENTS,
)
from probes.host.interface import Absent, Failed, Host, ReadError
from probes.named_tuple import NamedTuple
from probes.probe import Reading
from probes.text import ParseError
from probes.tool_reports.facts import ToolFacts, ToolReport
from probes.tool_reports.network.pauses import list_odd_pauses
from probes.tool_reports.sentences.stated import list_stated, list_tool_errors, list_unexplained_beside
from probes.tool_reports.unequal import list_unequal


def _reader(module: str, name: str) -> Callable[[str], list[ToolReport]]:
    """A reader of this package, whose module is imported when a source has such an output."""

    def read_reports(text: str) -> list[ToolReport]:
        reports: list[ToolReport] = getattr(import_module(f"probes.tool_reports.{module}"), name)(text)
        return reports

    read_reports.__name__ = name
    return read_reports


READERS: tuple[tuple[tuple[tuple[str, ...], ...], Callable[[str], list[ToolReport]]], ...] = (
    (NVIDIA_SMI_TABLE, _reader("accelerators", "list_smi_errors")),
    ((NVLINK_ERRORS,), _reader("accelerators", "list_link_errors")),
    ((NPU_INFO,), _reader("accelerators", "list_npu_states")),
    ((NPU_HEALTH,), _reader("accelerators", "list_npu_health")),
    ((NIC_PORTS, CXI_PORTS), _reader("network.port_tools", "list_nic_ports")),
    (HL_SMI_SAVED, _reader("accelerators", "list_gaudi_errors")),
    ((HL_SMI_QUERY,), _reader("accelerators", "list_gaudi_counts")),
    (SYSTEM, _reader("unnamed", "list_module_lines")),
    ((ROCM_SHORT,), _reader("accelerators", "list_silent_rows")),
    (ROCM_RAS_SAVED, _reader("accelerators", "list_ras_errors")),
    ((ROCM_XGMI,), _reader("accelerators", "list_xgmi_errors")),
    (ROCM_PAGES_SAVED, _reader("accelerators", "list_bad_pages")),
    (AMD_SMI_SAVED + AMD_HEALTH_SAVED, _reader("accelerators", "list_amd_errors")),
    ((AMD_LINKS,), _reader("accelerators", "list_amd_links")),
    (DCGM_HEALTH, _reader("dcgmi", "parse_health")),
    (DCGM_DIAG, _reader("dcgmi", "parse_diag")),
    (DCGM_LINKS, _reader("dcgmi", "list_links_down")),
    ((DCGM_METRICS,), _reader("dcgmi", "list_metrics")),
    ((AMD_METRICS,), _reader("alerts", "list_gpu_metrics")),
    ((ALERTS,), _reader("alerts", "list_alerts")),
    ((REDFISH,), _reader("redfish", "list_resource_faults")),
    (IB_ERRORS_SAVED, _reader("network.port_errors", "list_port_errors")),
    (IB_LINKS, _reader("network.port_errors", "list_slow_links")),
    (IB_NODES, _reader("network.port_errors", "list_narrow_links")),
    (KUBE_NODE, _reader("containers", "list_node_faults")),
    ((SLURM_NODE,), _reader("slurm", "list_node_states")),
    ((SLURM_HELD,), _reader("slurm", "list_held_nodes")),
    ((SLURM_LOG,), _reader("slurm", "list_controller_lines")),
    (CONTAINER_SAVED, list_stated),
    (TOOL_ERRORS_SAVED, list_tool_errors),
    ((MLXLINK,), _reader("network.port_tools", "list_link_states")),
    ((NVSM_HEALTH,), _reader("dcgmi", "list_failed_checks")),
    ((MEASURED,), _reader("measured", "list_slow_gpus")),
    (DMI_MEMORY, _reader("host_memory", "list_memory_faults")),
    ((GDS_CHECK,), _reader("storage", "list_storage_faults")),
    ((NIC_REPORTERS,), _reader("network.port_tools", "list_failed_reporters")),
    ((GAUDI_PORTS,), _reader("network.port_tools", "list_gaudi_ports")),
    ((BONDING,), _reader("network.bonding", "list_bond_faults")),
    ((SWITCH_PORTS,), _reader("network.switch_ports", "list_switch_ports")),
    ((ROUTES,), _reader("network.addresses", "list_shared_networks")),
    ((MLXCONFIG,), _reader("network.nic_settings", "list_settings")),
    ((CMA_MODE,), _reader("network.nic_settings", "list_roce_modes")),
    ((FLINT,), _reader("network.nic_settings", "list_versions")),
    ((OPA_PORTS,), _reader("network.port_tools", "list_omni_path_ports")),
    ((INTERFACE_LOG,), _reader("network.interface_log", "list_carrier_faults")),
    ((QDISC,), _reader("network.sending", "list_queue_drops")),
    ((UFM_EVENTS,), _reader("network.ufm", "list_ufm_events")),
    ((CHECKS,), _reader("checks", "list_failed_results")),
    ((OWN_REPORT,), _reader("own_report", "list_own_findings")),
    ((COUNTERS,), _reader("network.moments", "list_growing")),
    ((COUNTS,), _reader("counted", "list_counts")),
    ((SHEET,), _reader("tables.sheets", "list_sheet_faults")),
    ((LDD,), _reader("libraries", "list_missing_libraries")),
    ((PCI_LINES,), _reader("unnamed", "list_pci_lines")),
    ((GPU_LINES,), _reader("unnamed", "list_gpu_lines")),
    ((REPEATED,), _reader("unnamed", "list_repeated_lines")),
    (BMC_LOG, _reader("bmc", "list_log_events")),
    (BMC_SENSORS, _reader("bmc", "list_sensor_states")),
    ((STATED,), list_stated),
    ((PODS,), _reader("pods", "list_pods")),
    (CONTAINER_SAVED[:1], _reader("pods", "list_failed_containers")),
    ((DMON, DCGM_SAMPLES), _reader("nvidia_tools", "list_held_back")),
    ((C2C_LINKS,), _reader("nvidia_tools", "list_c2c_links")),
    ((IMEX_NODES,), _reader("nvidia_tools", "list_unready_nodes")),
)
OF_INTERFACES = (  # the interface follows
    (ETHTOOL_SETTINGS, _reader("network.port_tools", "list_lost_link")),
    (ETHTOOL_FEC, _reader("network.port_tools", "list_fec_off")),
)
_ALLOWANCES = _reader("network.sending", "list_allowances")


class _Output(NamedTuple):
    """A saved output and its reader. `is_own`: it is read for its faults alone, so that one without any is a source,
    and one that cannot be read a gap."""

    argv: tuple[str, ...]
    list_faults: Callable[[str], list[ToolReport]]
    is_own: bool = True


def read(host: Host) -> Reading:
    """Every fault that a saved output states. Raises Absent where there is none of these outputs, Failed where none
    could be read."""
    reports: list[tuple[str, ToolReport]] = []
    sources: list[str] = []
    gaps: list[str] = []
    for output in _list_outputs(host):
        name = " ".join(output.argv)
        try:
            faults = output.list_faults(host.run(*output.argv).stdout)
        except (ParseError, ReadError) as why:
            gaps += [f"{name}: {why}"] if output.is_own else []
            continue
        sources += [name] if faults or output.is_own else []
        reports += [(fault.text if output.argv in SYSFS_SAVED else name, fault) for fault in faults]
    for name, report in () if host.live else list_odd_pauses(host):
        sources += [name] if name not in sources else []
        reports.append((name, report))
    unequal = list_unequal(host)
    sources += [label.source for label in unequal if label.source not in sources]
    if not sources:
        raise Failed("; ".join(gaps)) if gaps else Absent("no saved output of a tool that states faults")
    return Reading(ToolFacts(tuple(reports), tuple(unequal)), tuple(dict.fromkeys(sources)), "; ".join(gaps) or None)


def _list_outputs(host: Host) -> Iterator[_Output]:
    """What a recorded source may hold."""
    if host.live:
        return
    for commands, list_faults in READERS:
        yield from (_Output(argv, partial(_read, list_faults)) for argv in commands if host.has_output(*argv))
    for argv, list_faults in OF_INTERFACES:
        for interface in host.saved_arguments(*argv):
            yield _Output((*argv, interface), partial(_read_interface, interface, list_faults))
    for interface in host.saved_arguments(*ETHTOOL_COUNTERS):
        yield _Output((*ETHTOOL_COUNTERS, interface), partial(_read_interface, interface, _ALLOWANCES), False)
    journals = KERNEL_LOG_SAVED if host.kind in ("dump", "text") else ()  # with lines of hypervisors, too
    texts = MACHINE_TEXTS if host.kind != "capture" else ()
    rows = (
        (journals, partial(list_stated, is_log=True)),
        (journals, _reader("network.interface_log", "list_carrier_faults")),
        (SYSFS_SAVED, _reader("unnamed", "list_shown_files")),
        (texts[:1], _reader("nvidia_tools", "list_hot_gpus")),
        (texts[:1], _reader("nvidia_tools", "list_slowed_gpus")),
        (texts[:1], _reader("nvidia_tools", "list_spent_banks")),
        (NVIDIA_SMI_SAVED, _reader("nvidia_tools", "list_slow_clocks")),
        (AMD_HEALTH_SAVED[2:], _reader("nvidia_tools", "list_slow_amd")),
        (texts[1:], _reader("host_memory", "list_memory_faults")),
        (RDMA_GUIDS, _reader("unnamed", "list_zero_guids")),
        (IP_LINK_SAVED, _reader("network.addresses", "list_link_faults")),
        ((SHOW_GIDS, IBV_DEVICES), _reader("network.addresses", "list_empty_tables")),
        ((DEVICE_LABELS,), _reader("network.addresses", "list_open_settings")),
        ((SHEET, STATED), list_unexplained_beside),  # texts of which a part alone is read for what it states
    )
    yield from (_Output(argv, list_faults, False) for commands, list_faults in rows for argv in commands)


def _read(list_faults: Callable[[str], list[ToolReport]], text: str) -> list[ToolReport]:
    """The faults that an output states, or the error that is in its place. Raises ParseError."""
    try:
        faults = list_faults(text)
    except ParseError:
        with suppress(ParseError):
            return list_tool_errors(text, logged=True)
        raise
    if not faults:
        with suppress(ParseError):
            return list_tool_errors(text, logged=True)
    return faults


def _read_interface(interface: str, list_faults: Callable[[str], list[ToolReport]], text: str) -> list[ToolReport]:
    """The same of an output about one interface. Raises ParseError."""
    return [fault._replace(subject=interface) for fault in list_faults(text)]
