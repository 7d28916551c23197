"""The outputs that people save of a machine, in the forms of the tools, made from its report; those of bus and GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent.model.gpu import Gpu, GpuHealth
from agent.model.node import Event
from agent.model.pci import PciFunction
from agent.model.report import Report
from tests.agent.contradictions import device_outputs


def render_outputs(report: Report, interfaces: int | None = None) -> dict[str, str]:
    """Name of the file -> text, of the outputs that this machine has something to print in. `interfaces`: of so many
    the outputs about one are made; None: of all."""
    outputs = {
        "lspci_-D_-nn_-vvv.txt": render_lspci(report.topology.pci),
        "nvidia-smi_-q.txt": render_query(report),
        "nvidia-smi_-L.txt": render_list(report),
        "nvidia-smi_nvlink_-s.txt": render_nvlink(report),
        "nvidia-smi_topo_-m.txt": render_matrix(report),
        "rocm-smi_--showtopo.txt": render_showtopo(report),
        "ibstat.txt": device_outputs.render_ibstat(report),
        "ibv_devinfo_-v.txt": device_outputs.render_devinfo(report),
        "rdma_link.txt": device_outputs.render_rdma_link(report),
        "show_gids.txt": device_outputs.render_gids(report),
        "ip_-d_link.txt": device_outputs.render_ip_link(report),
        "lsmod.txt": _lsmod(report),
        "cat_proc_cmdline.txt": f"{report.node.cmdline}\n" if report.node.cmdline else "",
        "dmesg.txt": _dmesg(report),
        **device_outputs.render_accelerators(report),
    }
    for netdev in report.topology.netdevs[:interfaces]:
        outputs |= dict(device_outputs.render_of_interface(netdev))
    return {name: text for name, text in outputs.items() if text}


def _dmesg(report: Report) -> str:
    types = {function.iommu_type for function in report.topology.pci} - {None}
    default = [f"iommu: Default domain type: {'Passthrough' if 'identity' in types else 'Translated'}"] if types else []
    lines = [*default, *map(_line, report.events)]
    return "".join(f"[{n:5}.000000] {line}\n" for n, line in enumerate(lines))


_LINES = {  # what the driver writes of an event whose text is only a name for it
    "xid": "NVRM: Xid (PCI:{bus}): {code}, pid=77, name=python, GPU has fallen off the bus.",
    "mlx5": "mlx5_core {subject}: poll_health:825:(pid 0): device's health compromised - reached miss count",
    "amd_fatal": "amdgpu {subject}: amdgpu: uncorrectable hardware error({code}) detected!",
    "amd_reset": "amdgpu {subject}: amdgpu: GPU reset begin!",
    "amd_bad_pages": "amdgpu {subject}: amdgpu: RAS records:129 exceed threshold",
}


def _line(event: Event) -> str:
    form = _LINES.get(event.kind) if len(event.text) < _NAMES else None
    return form.format(bus=(event.subject or "")[:10], **msgspec.structs.asdict(event)) if form else event.text


_NAMES = 40  # no sentence of a driver is shorter


def _lsmod(report: Report) -> str:
    rows = [f"{module.name:<20} 16384  0" for module in report.software.modules]
    return "\n".join(["Module                  Size  Used by", *rows, ""]) if rows else ""


# The output of `lspci -D -nn -vvv` of a report's PCI functions.


_CLASSES = {
    "0x0300": "VGA compatible controller", "0x0302": "3D controller", "0x0200": "Ethernet controller",
    "0x0207": "Infiniband controller", "0x0108": "Non-Volatile memory controller", "0x0604": "PCI bridge",
    "0x0600": "Host bridge", "0x0680": "Bridge", "0x1200": "Processing accelerators", "0x0502": "CXL",
}  # fmt: skip
_PORTS = {
    "root_port": "Root Port (Slot+)", "upstream": "Upstream Port", "downstream": "Downstream Port (Slot+)",
    "legacy_endpoint": "Legacy Endpoint", "rciep": "Root Complex Integrated Endpoint",
}  # fmt: skip
_ACS = {"SV": "SrcValid", "TB": "TransBlk", "RR": "ReqRedir", "CR": "CmpltRedir", "UF": "UpstreamFwd",
        "EC": "EgressCtrl", "DT": "DirectTrans"}  # fmt: skip
_UNITS = ((40, "T"), (30, "G"), (20, "M"), (10, "K"))


def render_lspci(functions: Iterable[PciFunction]) -> str:
    """A block for each function that answers."""
    listed = [function for function in functions if function.state != "changed_during_scan"]
    below = {function.parent: function.id for function in listed if function.parent}
    blocks = ["\n".join([*_block(function, below.get(function.id)), ""]) for function in listed]
    if blocks and not any((function.class_code or "").startswith("0x0600") for function in listed):
        blocks.insert(0, "0000:00:00.0 Host bridge [0600]: Device [8086:09a2]\n\tControl: I/O- Mem+ BusMaster+\n")
    return "\n".join(blocks)


def _block(function: PciFunction, below: str | None) -> Iterator[str]:
    code = (function.class_code or "0xffff")[:6]
    ids = f"{(function.vendor or '0xffff')[2:]}:{(function.device or '0xffff')[2:]}"
    yield f"{function.id} {_CLASSES.get(code, 'System peripheral')} [{code[2:]}]: Device [{ids}]"
    if function.subsystem_vendor and function.subsystem_device:
        yield f"\tSubsystem: Device [{function.subsystem_vendor[2:]}:{function.subsystem_device[2:]}]"
    if function.slot:
        yield f"\tPhysical Slot: {function.slot}"
    if function.state == "gone":
        yield "\t!!! Unknown header type 7f"
    else:
        yield from _body(function, below)
    if function.driver:
        yield f"\tKernel driver in use: {function.driver}"


def _body(function: PciFunction, below: str | None) -> Iterator[str]:
    yield "\tControl: I/O- Mem+ BusMaster+"
    yield from ([f"\tNUMA node: {function.numa_node}"] if function.numa_node is not None else [])
    yield from ([f"\tIOMMU group: {function.iommu_group}"] if function.iommu_group is not None else [])
    for number, size in (function.bars_bytes or {}).items():
        shift, unit = next(((shift, unit) for shift, unit in _UNITS if size >> shift), (0, ""))
        yield f"\tRegion {number}: Memory at 90000000 (64-bit, prefetchable) [size={size >> shift}{unit}]"
    if below:
        bus = below.split(":")[1]
        yield f"\tBus: primary={function.id.split(':')[1]}, secondary={bus}, subordinate={bus}, sec-latency=0"
    if function.link or function.port_type:
        yield from _express(function)
    if function.serial:
        yield f"\tCapabilities: [148 v1] Device Serial Number {function.serial}"
    yield "\tCapabilities: [100 v2] Advanced Error Reporting"
    if function.acs and function.acs.capability:
        yield "\tCapabilities: [158 v1] Access Control Services"
        for register, values in (("ACSCap", function.acs.capability), ("ACSCtl", function.acs.control)):
            yield f"\t\t{register}:\t{' '.join(f'{name}{_sign(flag in values)}' for flag, name in _ACS.items())}"
    if function.ats is not None:
        yield "\tCapabilities: [170 v1] Address Translation Service (ATS)"
        yield f"\t\tATSCtl:\tEnable{_sign(function.ats)}, Smallest Translation Unit: 00"
    if function.virtual_functions is not None:
        yield "\tCapabilities: [180 v1] Single Root I/O Virtualization (SR-IOV)"
        yield f"\t\tIOVCtl:\tEnable{_sign(bool(function.virtual_functions))} Migration- Interrupt- MSE-"
        yield f"\t\tInitial VFs: 16, Total VFs: 16, Number of VFs: {function.virtual_functions}, Link: 00"


def _sign(flag: bool | None) -> str:
    return "+" if flag else "-"


def _express(function: PciFunction) -> Iterator[str]:
    yield f"\tCapabilities: [40] Express (v2) {_PORTS.get(function.port_type or '', 'Endpoint')}, MSI 00"
    if function.max_payload_supported_bytes:
        yield f"\t\tDevCap:\tMaxPayload {function.max_payload_supported_bytes} bytes, PhantFunc 0"
        yield f"\t\t\tExtTag{_sign(function.extended_tags_supported)} AttnBtn- AttnInd- PwrInd- RBE+"
    if function.max_payload_bytes:
        yield "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq-"
        yield f"\t\t\tRlxdOrd{_sign(function.relaxed_ordering)} ExtTag{_sign(function.extended_tags)} NoSnoop+"
        read = f", MaxReadReq {function.max_read_request_bytes} bytes" if function.max_read_request_bytes else ""
        yield f"\t\t\tMaxPayload {function.max_payload_bytes} bytes{read}"
    link = function.link
    if link is None:
        return
    yield f"\t\tLnkCap:\tPort #0, Speed {_speed(link.max_speed_gt_s)}, Width x{link.max_width or 0}, ASPM not supported"
    yield f"\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, LnkDisable{_sign(function.link_disabled)} CommClk+"
    yield f"\t\tLnkSta:\tSpeed {_speed(link.speed_gt_s)}, Width x{link.width or 0}"
    retrained = function.retrained or []
    managed, autonomous = _sign("bandwidth_managed" in retrained), _sign("autonomous" in retrained)
    yield f"\t\t\tTrErr- Train- SlotClk+ DLActive{_sign(function.link_active)} BWMgmt{managed} ABWMgmt{autonomous}"
    if function.slot_occupied is not None:
        yield "\t\tSltCap:\tAttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug-"
        yield f"\t\tSltSta:\tStatus: AttnBtn- PowerFlt- MRL- CmdCplt- PresDet{_sign(function.slot_occupied)} Interlock-"
    if link.target_speed_gt_s:
        yield f"\t\tLnkCtl2: Target Link Speed: {_speed(link.target_speed_gt_s)}, EnterCompliance- SpeedDis-"


def _speed(gt_s: float | None) -> str:
    return f"{gt_s:g}GT/s" if gt_s else "unknown"


# Outputs of `nvidia-smi` and `rocm-smi` of a report's GPUs.


_LIMITS = {
    "idle": "Idle", "applications_clocks_setting": "Applications Clocks Setting", "sw_power_cap": "SW Power Cap",
    "hw_slowdown": "HW Slowdown", "sync_boost": "Sync Boost", "sw_thermal_slowdown": "SW Thermal Slowdown",
    "hw_thermal_slowdown": "HW Thermal Slowdown", "hw_power_brake_slowdown": "HW Power Brake Slowdown",
}  # fmt: skip
_FABRIC = {"not_supported": "N/A", "not_started": "Not Started", "in_progress": "In Progress", "completed": "Completed"}
_HEALTH = {"degraded_bandwidth": ("Bandwidth", {"false": "Full", "true": "Degraded"}),
           "route_unhealthy": ("Route Unhealthy", {"false": "False", "true": "True"}),
           "incorrect_configuration": ("Incorrect Configuration", {})}  # fmt: skip


def list_offered(report: Report) -> list[Gpu]:
    """The GPUs that NVIDIA's driver lists."""
    return [
        gpu
        for gpu in report.topology.gpus
        if gpu.index is not None and gpu.vendor in ("NVIDIA", None) and gpu.driver_state == "open"
    ]


def render_query(report: Report) -> str:
    """`nvidia-smi -q`."""
    gpus = list_offered(report)
    if not gpus:
        return ""
    driver = report.software.driver
    head = f"\n==============NVSMI LOG==============\n\nDriver Version : {driver.version or 'N/A'}\n"
    head += f"CUDA Version : {driver.cuda or 'N/A'}\n\nAttached GPUs : {len(gpus)}\n"
    return head + "".join("\n".join([*_query_gpu(gpu), ""]) for gpu in gpus)


def _query_gpu(gpu: Gpu) -> Iterator[str]:
    yield f"GPU 0000{(gpu.pci or '').upper()}"
    for label, value in (
        ("Product Name", gpu.name), ("Product Architecture", gpu.architecture),
        ("Persistence Mode", _enabled(gpu.health.persistence) if gpu.health else None),
        ("Addressing Mode", gpu.addressing_mode), ("Serial Number", gpu.serial), ("GPU UUID", gpu.uuid),
        ("Minor Number", gpu.minor), ("VBIOS Version", gpu.vbios),
        ("GPU Recovery Action", (gpu.recovery_action or "").replace("_", " ").title() or None),
        ("Performance State", gpu.pstate),
    ):  # fmt: skip
        yield f"    {label} : {'N/A' if value is None else value}"
    if gpu.mig:
        yield f"    MIG Mode\n        Current : {_enabled(gpu.mig.current)}"
        yield f"        Pending : {_enabled(gpu.mig.pending)}"
    if gpu.module_id is not None:
        yield f"    Platform Info\n        Module Id : {gpu.module_id}"
    if gpu.pcie:
        generations, widths = (gpu.pcie.max_generation, gpu.pcie.generation), (gpu.pcie.max_width, gpu.pcie.width)
        yield "    PCI\n        GPU Link Info\n            PCIe Generation"
        yield f"                Max : {generations[0]}\n                Current : {generations[1]}"
        yield f"                Device Max : {generations[0]}\n            Link Width"
        yield f"                Max : {widths[0]}x\n                Current : {widths[1]}x"
    for label, mib in (("FB Memory Usage", gpu.memory_mib), ("BAR1 Memory Usage", gpu.bar1_mib)):
        yield f"    {label}\n        Total : {mib or 'N/A'} MiB"
    yield from _query_health(gpu.health) if gpu.health else ()
    if gpu.fabric:
        yield f"    Fabric\n        State : {_FABRIC.get(gpu.fabric.state or '', 'N/A')}"
        yield f"        Status : {(gpu.fabric.status or 'N/A').title()}"
        yield f"        CliqueId : {gpu.fabric.clique}\n        ClusterUUID : {gpu.fabric.cluster_uuid}\n        Health"
        for name, (label, values) in _HEALTH.items():
            if name in gpu.fabric.health:
                yield f"            {label} : {values.get(gpu.fabric.health[name], gpu.fabric.health[name])}"


def _query_health(health: GpuHealth) -> Iterator[str]:
    if health.clock_limits is not None:
        yield "    Clocks Event Reasons"
        yield from (
            f"        {label} : {'Active' if name in health.clock_limits else 'Not Active'}"
            for name, label in _LIMITS.items()
        )
    yield f"    ECC Mode\n        Current : {_enabled(health.ecc)}\n        Pending : {_enabled(health.ecc_pending)}"
    yield "    ECC Errors"
    for label, errors in (("Volatile", health.uncorrectable_volatile), ("Aggregate", health.uncorrectable_aggregate)):
        yield f"        {label}\n            SRAM Uncorrectable : 0\n            DRAM Uncorrectable : {_value(errors)}"
    if health.sram_threshold_exceeded is not None:
        yield f"            SRAM Threshold Exceeded : {_yes(health.sram_threshold_exceeded)}"
    if health.repairs_pending is not None and health.repairs_failed is not None:
        yield f"        Channel Repair Pending : {_yes('channel' in health.repairs_pending)}"
        yield f"        TPC Repair Pending : {_yes('tpc' in health.repairs_pending)}"
        yield f"        Unrepairable Memory : {_yes('memory' in health.repairs_failed)}"
        yield f"    Remapped Rows\n        Pending : {_yes('row_remap' in health.repairs_pending)}"
        yield f"        Remapping Failure Occurred : {_yes('row_remap' in health.repairs_failed)}"
    yield f"    GPU Power Readings\n        Current Power Limit : {_value(health.power_limit_watts)} W"
    yield f"        Requested Power Limit : {_value(health.power_limit_requested_watts)} W"
    yield f"        Default Power Limit : {_value(health.power_limit_default_watts)} W"
    yield f"    Clocks\n        SM : {_value(health.sm_clock_mhz)} MHz"
    yield f"    Applications Clocks\n        Graphics : {_value(health.application_clock_mhz)} MHz"
    yield f"    Default Applications Clocks\n        Graphics : {_value(health.application_clock_default_mhz)} MHz"
    yield f"    Max Clocks\n        SM : {_value(health.sm_clock_max_mhz)} MHz"


def _enabled(flag: bool | None) -> str:
    return {True: "Enabled", False: "Disabled", None: "N/A"}[flag]


def _yes(flag: bool) -> str:
    return "Yes" if flag else "No"


def _value(number: float | None) -> str:
    return "N/A" if number is None else f"{number:g}"


def render_list(report: Report) -> str:
    """`nvidia-smi -L`."""
    return "".join(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" for gpu in list_offered(report) if gpu.uuid)


def render_nvlink(report: Report) -> str:
    """`nvidia-smi nvlink -s`."""
    links = {gpu.id: [link for link in gpu.links if link.protocol == "nvlink"] for gpu in report.topology.gpus}
    return "".join(
        f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n"
        + "".join(
            f"\t Link {link.link}: {f'{link.signal_gbyte_s:.3f} GB/s' if link.signal_gbyte_s else '<inactive>'}\n"
            for link in links[gpu.id]
        )
        for gpu in list_offered(report)
        if links[gpu.id]
    )


def render_matrix(report: Report) -> str:
    """`nvidia-smi topo -m`."""
    gpus = [gpu.id for gpu in list_offered(report)]
    nics = [nic for nic in report.topology.host_nics if nic.rdma_device]
    kinds = {frozenset((path.a, path.b)): path.kind for path in report.topology.paths}
    names = {**{gpu: f"GPU{n}" for n, gpu in enumerate(gpus)}, **{nic.id: f"NIC{n}" for n, nic in enumerate(nics)}}
    rows = ["\t" + "\t".join(names.values())]
    for a, name in names.items():
        cells = [" X " if a == b else kinds.get(frozenset((a, b))) or "SYS" for b in names]
        rows.append("\t".join([name, *cells]))
    legend = [f"  NIC{n}: {nic.rdma_device}" for n, nic in enumerate(nics)]
    return "\n".join([*rows, "", "NIC Legend:", "", *legend, ""]) if len(gpus) > 1 else ""


def render_showtopo(report: Report) -> str:
    """`rocm-smi --showtopo`: which pairs XGMI joins."""
    gpus = [gpu for gpu in report.topology.gpus if gpu.vendor == "AMD" and gpu.driver_state == "open"]
    if len(gpus) < 2:
        return ""
    kinds = {frozenset((path.a, path.b)): path.kind for path in report.topology.paths}
    title = "=" * 28
    lines = [f"{title} ROCm System Management Interface {title}", f"{title} Link Type between two GPUs {title}"]
    lines.append(" " * 7 + "".join(f"{f'GPU{number}':<13}" for number in range(len(gpus))))
    for number, gpu in enumerate(gpus):
        cells = [
            "0" if gpu is other else "XGMI" if kinds.get(frozenset((gpu.id, other.id))) == "XGMI" else "PCIE"
            for other in gpus
        ]
        lines.append(f"{f'GPU{number}':<7}" + "".join(f"{cell:<13}" for cell in cells))
    lines.append(f"{title} Numa Nodes {title}")
    lines += [f"GPU[{number}]\t\t: (Topology) Numa Node: {gpu.numa_node or 0}" for number, gpu in enumerate(gpus)]
    return "\n".join([*lines, f"{title} End of ROCm SMI Log {title}", ""])
