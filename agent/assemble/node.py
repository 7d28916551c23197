"""The node of the report (names, processors, NUMA nodes, chassis), its software (driver, modules, services, RDMA stack,
NCCL, limits), the events of its logs, and the faults that tools state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent.assemble.facts import ProbeFacts, build_row, sort_key
from agent.model.node import (
    Chassis,
    Cpu,
    Driver,
    Event,
    Module,
    Nccl,
    NcclLibrary,
    NcclSetting,
    Node,
    NumaNode,
    RdmaStack,
    Service,
    Software,
)
from probes.gpu import facts as gpu
from probes.kernel import system as kernel
from probes.system import cpu, dmi, numa

if TYPE_CHECKING:
    from probes.kernel.log_facts import KernelLogFacts
    from probes.kernel.modules import ModuleFacts
    from probes.kernel.system import KernelFacts
    from probes.nccl.jobs import NcclVariable
    from probes.nccl.probe import NcclFacts, NcclLibraryFile
    from probes.rdma.netlink import RdmaNetlinkFacts
    from probes.services.probe import ServiceFacts
    from probes.system.limits import LimitFacts
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


def build_software(facts: ProbeFacts) -> Software:
    """Build the software of the node. The running driver's values win over those of a tool."""
    loaded: ModuleFacts | None = facts.get("modules")
    listed: ModuleFacts | None = facts.get("lsmod")
    either = loaded or listed
    rdma: RdmaNetlinkFacts | None = facts.get("rdma_netlink")
    log: KernelLogFacts | None = facts.get("kernel_log")
    return Software(
        driver=_driver(facts, either),
        modules=_modules(loaded, listed),
        services=_services(facts.get("services")),
        rdma_stack=RdmaStack(kind=either.rdma_stack, version=either.ofed) if either else RdmaStack(),
        imex=_imex(facts.get("services")),
        nccl=build_nccl(facts),
        limits=build_limits(facts),
        device_nodes=list_device_nodes(facts),
        shared_memory_mib=compute_shared_memory(facts),
        peer_memory_clients=sorted(either.peer_memory_clients) if either else [],
        kernel_settings=_kernel_settings(facts),
        rdma_namespaces=rdma.namespaces if rdma else None,
        kernel_log_since=log.since if log else None,
        kernel_log_whole=log.whole if log else None,
    )


def _driver(facts: ProbeFacts, loaded: ModuleFacts | None) -> Driver:
    nvml = facts.of("nvml", gpu.GpuFacts) or gpu.GpuFacts(())
    tool = facts.of("nvidia_smi", gpu.GpuFacts) or gpu.GpuFacts(())
    return Driver(
        version=nvml.driver_version or (loaded.nvidia_version if loaded else None) or tool.driver_version,
        open=loaded.nvidia_open if loaded else None,
        cuda=nvml.cuda_version or tool.cuda_version,
        library=loaded.nvidia_library if loaded else None,
        packages=list(loaded.nvidia_packages) if loaded else [],
        built=loaded.nvidia_built if loaded else None,
        parameters=select_parameters(loaded),
        confidential_computing=nvml.confidential_computing,
    )


def _kernel_settings(facts: ProbeFacts) -> dict[str, str]:
    settings: dict[str, str] = {}
    for _, source in facts.all_of("gpu", gpu.GpuFacts):
        settings |= source.settings or {}
    return dict(sorted(settings.items()))


def _modules(*sources: ModuleFacts | None) -> list[Module]:
    versions: dict[str, str | None] = {}
    for module in (module for source in sources if source for module in source.modules):
        versions[module.name] = versions.get(module.name) or module.version
    return [Module(name=name, version=versions[name]) for name in sorted(versions, key=sort_key)]


def _imex(facts: ServiceFacts | None) -> dict[str, str]:
    return dict(sorted(facts.imex.items())) if facts and facts.imex else {}


def _services(facts: ServiceFacts | None) -> list[Service]:
    rows = sorted(facts.services, key=lambda s: sort_key(s.name)) if facts else []
    return [build_row(Service, service) for service in rows]


# Parameters of the NVIDIA driver that affect links; RegistryDwords holds those without a name of their own.
PARAMETERS = (
    "EnableStreamMemOPs", "EnablePCIERelaxedOrderingMode", "GrdmaPciTopoCheckOverride", "CoherentGPUMemoryMode",
    "NvLinkDisable", "EnablePCIeGen3", "EnableGpuFirmware", "ImexChannelCount", "CreateImexChannel0", "RegistryDwords",
    "RegistryDwordsPerDevice", "ExcludedGpus", "GpuBlacklist",
)  # fmt: skip
VALUE_CHARACTERS = 512


def build_nccl(facts: ProbeFacts) -> Nccl:
    """NCCL of this node: libraries, plugins, settings, jobs."""
    nccl: NcclFacts | None = facts.get("nccl")
    if nccl is None:
        return Nccl()
    return Nccl(
        libraries=_libraries(nccl.libraries),
        plugins=_libraries(nccl.plugins),
        helpers=_libraries(nccl.others),
        settings=_settings(nccl.settings),
        not_settings=_settings(nccl.not_settings),
        searched=sorted(nccl.searched, key=sort_key),
        unread=sorted(nccl.unread, key=sort_key),
        jobs=nccl.jobs,
        jobs_hidden=nccl.jobs_hidden,
        jobs_unread=nccl.jobs_unread,
        files=sorted(nccl.files, key=sort_key),
        topology_devices={path: list(nccl.devices[path]) for path in sorted(nccl.devices)},
    )


def build_limits(facts: ProbeFacts) -> dict[str, str]:
    """Locked memory limits by user or service; "exempt WHO" and "rdma WHO" where a process has CAP_IPC_LOCK or an RDMA
    device open."""
    stated: LimitFacts | None = facts.get("limits")
    nccl: NcclFacts | None = facts.get("nccl")
    rows: dict[str, str] = {}
    services, users, shell = (stated.services, stated.users, stated.shell) if stated else ((), (), None)
    for limit in (*services, *(nccl.limits if nccl else ()), *users, *((shell,) if shell else ())):
        rows[f"memlock {limit.who}"] = limit.memlock
        if limit.exempt is not None:
            rows[f"exempt {limit.who}"] = "yes" if limit.exempt else "no"
        if limit.rdma:
            rows[f"rdma {limit.who}"] = "yes"
    return {who: rows[who] for who in sorted(rows, key=sort_key)}


def list_device_nodes(facts: ProbeFacts) -> list[str] | None:
    """Device nodes of GPUs and RDMA, sorted; None: unknown."""
    limits: LimitFacts | None = facts.get("limits")
    return sorted(limits.device_nodes, key=sort_key) if limits and limits.device_nodes is not None else None


def compute_shared_memory(facts: ProbeFacts) -> int | None:
    """The size of /dev/shm, MiB."""
    nccl: NcclFacts | None = facts.get("nccl")
    kernel: KernelFacts | None = facts.get("kernel")
    if nccl is None or nccl.shared_memory is None:
        return None
    if nccl.shared_memory != "default":
        return int(nccl.shared_memory) >> 10
    return kernel.memory_mib // 2 if kernel and kernel.memory_mib else None


def select_parameters(loaded: ModuleFacts | None) -> dict[str, str]:
    """The driver parameters that affect links."""
    parameters = (loaded.nvidia_params if loaded else None) or {}
    return {name: parameters[name][:VALUE_CHARACTERS] for name in PARAMETERS if name in parameters}


def _libraries(libraries: Iterable[NcclLibraryFile]) -> list[NcclLibrary]:
    rows = sorted(libraries, key=lambda library: sort_key(library.path))
    return [build_row(NcclLibrary, library) for library in rows]


def _settings(settings: Iterable[NcclVariable]) -> list[NcclSetting]:
    """Settings in the order of files and lines."""
    rows = sorted(settings, key=lambda setting: (sort_key(setting.source), sort_key(setting.key)))
    return [build_row(NcclSetting, setting) for setting in rows]
