"""Outputs of `nvidia-smi` and `rocm-smi` of a report's GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu, GpuHealth
from agent.model.report import Report

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
