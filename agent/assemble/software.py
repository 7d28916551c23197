"""The software of the report: GPU driver, kernel modules, services, RDMA stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.assemble.facts import Facts
from agent.assemble.identity import identity
from agent.assemble.nccl import device_nodes_of, limits_of, nccl_of, parameters_of, shared_memory_of
from agent.model.node import Driver, Module, RdmaStack, Service, Software
from probes.gpu import facts as gpu
from probes.kernel import modules
from probes.system import services

if TYPE_CHECKING:
    from probes.kernel.log import KernelLogFacts
    from probes.rdma.netlink import RdmaNetlinkFacts


def software_of(facts: Facts) -> Software:
    """What runs this node. The running driver's own words come before those of a tool."""
    loaded = facts.of("modules", modules.ModuleFacts)
    listed = facts.of("lsmod", modules.ModuleFacts)
    either = loaded or listed
    rdma: RdmaNetlinkFacts | None = facts.told("rdma_netlink")
    log: KernelLogFacts | None = facts.told("kernel_log")
    return Software(
        driver=_driver(facts, either),
        modules=_modules(loaded, listed),
        services=_services(facts.of("services", services.ServiceFacts)),
        rdma_stack=RdmaStack(kind=either.rdma_stack, version=either.ofed) if either else RdmaStack(),
        imex=_imex(facts.of("services", services.ServiceFacts)),
        nccl=nccl_of(facts),
        limits=limits_of(facts),
        device_nodes=device_nodes_of(facts),
        shared_memory_mib=shared_memory_of(facts),
        peer_memory_clients=sorted(either.peer_memory_clients) if either else [],
        rdma_namespaces=rdma.namespaces if rdma else None,
        kernel_log_since=log.since if log else None,
        kernel_log_whole=log.whole if log else None,
    )


def _driver(facts: Facts, loaded: modules.ModuleFacts | None) -> Driver:
    nvml = facts.of("nvml", gpu.GpuFacts) or gpu.GpuFacts(())
    tool = facts.of("nvidia_smi", gpu.GpuFacts) or gpu.GpuFacts(())
    return Driver(
        version=nvml.driver_version or (loaded.nvidia_version if loaded else None) or tool.driver_version,
        open=loaded.nvidia_open if loaded else None,
        cuda=nvml.cuda_version or tool.cuda_version,
        parameters=parameters_of(loaded),
        confidential_computing=nvml.confidential_computing,
    )


def _modules(*sources: modules.ModuleFacts | None) -> list[Module]:
    versions: dict[str, str | None] = {}
    for module in (module for source in sources if source for module in source.modules):
        versions[module.name] = versions.get(module.name) or module.version
    return [Module(name=name, version=versions[name]) for name in sorted(versions, key=identity)]


def _imex(found: services.ServiceFacts | None) -> dict[str, str]:
    return dict(sorted(found.imex.items())) if found and found.imex else {}


def _services(found: services.ServiceFacts | None) -> list[Service]:
    rows = sorted(found.services, key=lambda s: identity(s.name)) if found else []
    return [Service(name=s.name, state=s.state, version=s.version) for s in rows]
