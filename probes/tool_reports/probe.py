"""Saved outputs in which tools state faults: each by its reader. Never run on a live host: some ask every GPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module

from probes.host import commands
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
    (commands.NVIDIA_SMI_TABLE, _reader("accelerators", "list_smi_errors")),
    ((commands.NVLINK_ERRORS,), _reader("accelerators", "list_link_errors")),
    ((commands.NPU_INFO,), _reader("accelerators", "list_npu_states")),
    ((commands.NPU_HEALTH,), _reader("accelerators", "list_npu_health")),
    ((commands.NIC_PORTS, commands.CXI_PORTS), _reader("network.port_tools", "list_nic_ports")),
    (commands.HL_SMI_SAVED, _reader("accelerators", "list_gaudi_errors")),
    ((commands.HL_SMI_QUERY,), _reader("accelerators", "list_gaudi_counts")),
    (commands.SYSTEM, _reader("unnamed", "list_module_lines")),
    ((commands.ROCM_SHORT,), _reader("accelerators", "list_silent_rows")),
    (commands.ROCM_RAS_SAVED, _reader("accelerators", "list_ras_errors")),
    ((commands.ROCM_XGMI,), _reader("accelerators", "list_xgmi_errors")),
    (commands.ROCM_PAGES_SAVED, _reader("accelerators", "list_bad_pages")),
    (commands.AMD_SMI_SAVED + commands.AMD_HEALTH_SAVED, _reader("accelerators", "list_amd_errors")),
    ((commands.AMD_LINKS,), _reader("accelerators", "list_amd_links")),
    (commands.DCGM_HEALTH, _reader("dcgmi", "parse_health")),
    (commands.DCGM_DIAG, _reader("dcgmi", "parse_diag")),
    (commands.DCGM_LINKS, _reader("dcgmi", "list_links_down")),
    ((commands.DCGM_METRICS,), _reader("dcgmi", "list_metrics")),
    ((commands.AMD_METRICS,), _reader("alerts", "list_gpu_metrics")),
    ((commands.ALERTS,), _reader("alerts", "list_alerts")),
    ((commands.REDFISH,), _reader("redfish", "list_resource_faults")),
    (commands.IB_ERRORS_SAVED, _reader("network.port_errors", "list_port_errors")),
    (commands.IB_LINKS, _reader("network.port_errors", "list_slow_links")),
    (commands.IB_NODES, _reader("network.port_errors", "list_narrow_links")),
    (commands.KUBE_NODE, _reader("containers", "list_node_faults")),
    ((commands.SLURM_NODE,), _reader("slurm", "list_node_states")),
    ((commands.SLURM_HELD,), _reader("slurm", "list_held_nodes")),
    ((commands.SLURM_LOG,), _reader("slurm", "list_controller_lines")),
    (commands.CONTAINER_SAVED, list_stated),
    (commands.TOOL_ERRORS_SAVED, list_tool_errors),
    ((commands.MLXLINK,), _reader("network.port_tools", "list_link_states")),
    ((commands.NVSM_HEALTH,), _reader("dcgmi", "list_failed_checks")),
    ((commands.MEASURED,), _reader("measured", "list_slow_gpus")),
    (commands.DMI_MEMORY, _reader("host", "list_memory_faults")),
    ((commands.GDS_CHECK,), _reader("host", "list_storage_faults")),
    ((commands.NIC_REPORTERS,), _reader("network.port_tools", "list_failed_reporters")),
    ((commands.GAUDI_PORTS,), _reader("network.port_tools", "list_gaudi_ports")),
    ((commands.BONDING,), _reader("network.host_interfaces", "list_bond_faults")),
    ((commands.SWITCH_PORTS,), _reader("network.switch_ports", "list_switch_ports")),
    ((commands.ROUTES,), _reader("network.addresses", "list_shared_networks")),
    ((commands.MLXCONFIG,), _reader("network.nic_settings", "list_settings")),
    ((commands.CMA_MODE,), _reader("network.nic_settings", "list_roce_modes")),
    ((commands.FLINT,), _reader("network.nic_settings", "list_versions")),
    ((commands.OPA_PORTS,), _reader("network.port_tools", "list_omni_path_ports")),
    ((commands.INTERFACE_LOG,), _reader("network.host_interfaces", "list_carrier_faults")),
    ((commands.QDISC,), _reader("network.host_interfaces", "list_queue_drops")),
    ((commands.UFM_EVENTS,), _reader("network.ufm", "list_ufm_events")),
    ((commands.CHECKS,), _reader("checks", "list_failed_results")),
    ((commands.OWN_REPORT,), _reader("own_report", "list_own_findings")),
    ((commands.COUNTERS,), _reader("network.moments", "list_growing")),
    ((commands.COUNTS,), _reader("counted", "list_counts")),
    ((commands.SHEET,), _reader("tables.sheets", "list_sheet_faults")),
    ((commands.LOOP,), _reader("tables.loops", "list_loop_faults")),
    ((commands.PART_LINES,), _reader("tables.loops", "list_weak_faults")),
    ((commands.ENDS,), _reader("ends.agree", "list_disagreements")),
    ((commands.LDD,), _reader("host", "list_missing_libraries")),
    ((commands.PCI_LINES,), _reader("unnamed", "list_pci_lines")),
    ((commands.GPU_LINES,), _reader("unnamed", "list_gpu_lines")),
    ((commands.REPEATED,), _reader("unnamed", "list_repeated_lines")),
    (commands.BMC_LOG, _reader("bmc", "list_log_events")),
    (commands.BMC_SENSORS, _reader("bmc", "list_sensor_states")),
    ((commands.STATED,), list_stated),
    ((commands.PODS,), _reader("pods", "list_pods")),
    (commands.CONTAINER_SAVED[:1], _reader("pods", "list_failed_containers")),
    ((commands.DMON, commands.DCGM_SAMPLES), _reader("nvidia_tools", "list_held_back")),
    ((commands.C2C_LINKS,), _reader("nvidia_tools", "list_c2c_links")),
    ((commands.IMEX_NODES,), _reader("nvidia_tools", "list_unready_nodes")),
)
OF_INTERFACES = (  # the interface follows
    (commands.ETHTOOL_SETTINGS, _reader("network.port_tools", "list_lost_link")),
    (commands.ETHTOOL_FEC, _reader("network.port_tools", "list_fec_off")),
)
_TABLES = (  # with two lines for each GPU
    *commands.NVIDIA_SMI_TABLE,
    *commands.AMD_SMI_SAVED[:1],
    *commands.HL_SMI_SAVED,
    commands.NPU_INFO,
)
_NO_ROWS = ("lspci", *(argv[0] for argv in commands.KERNEL_LOG_SAVED))  # whose facts are compared; no rows
_MOST_COMPARED, _MOST_ODD = 1 << 16, 4  # characters; rows
_MOST_REPORTS = 512  # of one output: more are one fault, again and again
_OF_COUNTERS = (
    _reader("network.host_interfaces", "list_allowances"),
    _reader("network.pauses", "list_lossy_class"),
)


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
            faults = output.list_faults(host.run(*output.argv).stdout)[:_MOST_REPORTS]
        except (ParseError, ReadError) as why:
            gaps += [f"{name}: {why}"] if output.is_own else []
            continue
        sources += [name] if faults or output.is_own else []
        reports += [(fault.text if output.argv in commands.SYSFS_SAVED else name, fault) for fault in faults]
    for name, report in () if host.live else list_odd_pauses(host):
        sources += [name] if name not in sources else []
        reports.append((name, report))
    unequal = list_unequal(host)
    if not reports and host.kind in ("dump", "text"):
        reports += _list_odd_rows(host, {label.source for label in unequal})
        sources += [name for name, _ in reports if name not in sources]
    sources += [label.source for label in unequal if label.source not in sources]
    if not sources:
        raise Failed("; ".join(gaps)) if gaps else Absent("no saved output of a tool that states faults")
    return Reading(ToolFacts(tuple(reports), tuple(unequal)), tuple(dict.fromkeys(sources)), "; ".join(gaps) or None)


def _list_outputs(host: Host) -> Iterator[_Output]:
    """What a recorded source may hold."""
    if host.live:
        return
    for argvs, list_faults in READERS:
        yield from (_Output(argv, partial(_read, list_faults)) for argv in argvs if host.has_output(*argv))
    for argv, list_faults in OF_INTERFACES:
        for interface in host.saved_arguments(*argv):
            yield _Output((*argv, interface), partial(_read_interface, interface, list_faults))
    for interface in host.saved_arguments(*commands.ETHTOOL_COUNTERS):
        counters = (*commands.ETHTOOL_COUNTERS, interface)
        yield from (_Output(counters, partial(_read_interface, interface, reader), False) for reader in _OF_COUNTERS)
    journals = commands.KERNEL_LOG_SAVED if host.kind in ("dump", "text") else ()  # with lines of hypervisors, too
    texts = commands.MACHINE_TEXTS if host.kind != "capture" else ()
    rows = (
        (journals, partial(list_stated, is_log=True)),
        (journals, _reader("network.host_interfaces", "list_carrier_faults")),
        (commands.SYSFS_SAVED, _reader("unnamed", "list_shown_files")),
        (commands.SYSFS_SAVED, _reader("network.pauses", "list_unanswered_marks")),
        (texts[:1], _reader("nvidia_tools", "list_hot_gpus")),
        (texts[:1], _reader("nvidia_tools", "list_slowed_gpus")),
        (texts[:1], _reader("nvidia_tools", "list_spent_banks")),
        (commands.NVIDIA_SMI_SAVED, _reader("nvidia_tools", "list_slow_clocks")),
        (commands.AMD_HEALTH_SAVED[2:], _reader("nvidia_tools", "list_slow_amd")),
        (_TABLES, _reader("nvidia_tools", "list_hot_rows")),
        (texts[1:], _reader("host", "list_memory_faults")),
        (commands.RDMA_GUIDS, _reader("unnamed", "list_zero_guids")),
        (commands.IP_LINK_SAVED, _reader("network.addresses", "list_link_faults")),
        ((commands.SHOW_GIDS, commands.IBV_DEVICES), _reader("network.addresses", "list_empty_tables")),
        ((commands.DEVICE_LABELS,), _reader("network.addresses", "list_open_settings")),
        ((commands.SHEET, commands.STATED), list_unexplained_beside),  # of which a part is read for what it states
    )
    yield from (_Output(argv, list_faults, False) for argvs, list_faults in rows for argv in argvs)


def _list_odd_rows(host: Host, compared: Collection[str]) -> Iterator[tuple[str, ToolReport]]:
    """Of outputs that state no fault the rows in which a number or version is not as in all others."""
    for argv in dict.fromkeys(commands.KNOWN):
        name = " ".join(argv)
        if name in compared or argv[0] in _NO_ROWS or not host.has_output(*argv):
            continue
        with suppress(ReadError):
            text = host.run(*argv).stdout
            if len(text) <= _MOST_COMPARED:
                from probes.tool_reports.tables.cells import list_odd_numbers  # lazy: most outputs state their faults

                rows = list(list_odd_numbers(text))
                yield from ((name, row) for row in rows if len(rows) <= _MOST_ODD)


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
