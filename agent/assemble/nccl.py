"""NCCL and limits in the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agent.assemble.facts import Facts
from agent.assemble.identity import identity
from agent.model.node import Nccl, NcclLibrary, NcclSetting
from probes.kernel.modules import ModuleFacts
from probes.kernel.system import KernelFacts
from probes.system.limits import LimitFacts

if TYPE_CHECKING:
    from probes.nccl.jobs import Setting
    from probes.nccl.probe import Library, NcclFacts

# Parameters of the NVIDIA driver that matter for links; RegistryDwords holds those that have no name of their own.
PARAMETERS = (
    "EnableStreamMemOPs",
    "EnablePCIERelaxedOrderingMode",
    "GrdmaPciTopoCheckOverride",
    "CoherentGPUMemoryMode",
    "NvLinkDisable",
    "EnablePCIeGen3",
    "EnableGpuFirmware",
    "ImexChannelCount",
    "CreateImexChannel0",
    "RegistryDwords",
    "RegistryDwordsPerDevice",
    "ExcludedGpus",
    "GpuBlacklist",
)
VALUE_CHARACTERS = 512


def nccl_of(facts: Facts) -> Nccl:
    """What is known of NCCL on this node."""
    found: NcclFacts | None = facts.told("nccl")
    if found is None:
        return Nccl()
    return Nccl(
        libraries=_libraries(found.libraries),
        plugins=_libraries(found.plugins),
        helpers=_libraries(found.others),
        settings=_settings(found.settings),
        not_settings=_settings(found.not_settings),
        searched=sorted(found.searched, key=identity),
        unread=sorted(found.unread, key=identity),
        jobs=found.jobs,
        jobs_unread=found.jobs_unread,
        files=sorted(found.files, key=identity),
        topology_devices={path: list(found.devices[path]) for path in sorted(found.devices)},
    )


def limits_of(facts: Facts) -> dict[str, str]:
    """Locked memory by who may lock it; "exempt WHO" and "rdma WHO" where a process has CAP_IPC_LOCK, or an RDMA
    device open."""
    found = facts.of("limits", LimitFacts) or LimitFacts()
    nccl: NcclFacts | None = facts.told("nccl")
    rows: dict[str, str] = {}
    for limit in (*found.services, *(nccl.limits if nccl else ()), *found.users):
        rows[f"memlock {limit.who}"] = limit.memlock
        if limit.exempt is not None:
            rows[f"exempt {limit.who}"] = "yes" if limit.exempt else "no"
        if limit.rdma:
            rows[f"rdma {limit.who}"] = "yes"
    return {who: rows[who] for who in sorted(rows, key=identity)}


def device_nodes_of(facts: Facts) -> list[str] | None:
    """Device nodes of GPUs and RDMA."""
    found = facts.of("limits", LimitFacts)
    return sorted(found.device_nodes, key=identity) if found and found.device_nodes is not None else None


def shared_memory_of(facts: Facts) -> int | None:
    """The size of /dev/shm, MiB."""
    found: NcclFacts | None = facts.told("nccl")
    kernel = facts.of("kernel", KernelFacts)
    if found is None or found.shared_memory is None:
        return None
    if found.shared_memory != "default":
        return int(found.shared_memory) >> 10
    return kernel.memory_mib // 2 if kernel and kernel.memory_mib else None


def parameters_of(loaded: ModuleFacts | None) -> dict[str, str]:
    """The driver's parameters that matter for links."""
    said = (loaded.nvidia_params if loaded else None) or {}
    return {name: said[name][:VALUE_CHARACTERS] for name in PARAMETERS if name in said}


def _libraries(found: Iterable[Library]) -> list[NcclLibrary]:
    rows = sorted(found, key=lambda each: identity(each.path))
    return [NcclLibrary(path=each.path, version=each.version, used_by=each.used_by) for each in rows]


def _settings(found: Iterable[Setting]) -> list[NcclSetting]:
    """In the order of files and lines."""
    rows = sorted(found, key=lambda each: (identity(each.source), identity(each.key)))
    return [
        NcclSetting(key=each.key, value=each.value, source=each.source, scope=each.scope, line=each.line)
        for each in rows
    ]
