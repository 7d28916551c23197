"""A board of H100 on NVSwitches, with a fabric manager, and a tray of a GB200 rack: what the fabric rules judge."""

from __future__ import annotations

import msgspec

from agent.model.gpu import C2c, Fabric, NvSwitch
from agent.model.node import NumaNode, Service
from agent.model.pci import PciFunction
from agent.model.profile import Expected, Profile
from agent.rules.context import RuleContext
from tests.agent.rules.build import changed_gpu, changed_gpus, gpu_id, models, node, probe, server, software, topology
from tests.agent.rules.rows import GB200, HEALTHY

RACK = "3a5c0000-0000-0000-0000-0000000000a1"
SWITCH = "0000:91:00.0"
FM, IMEX = "nvidia-fabricmanager", "nvidia-imex"
SUBJECTS = [f"gpu:{gpu_id(n)}" for n in range(8)]


def switch(**changes) -> PciFunction:
    values = {"vendor": "0x10de", "device": "0x22a3", "class_code": "0x068000", "driver": "nvidia-nvswitch"} | changes
    return PciFunction(id=SWITCH, **values)


def service(context: RuleContext, name: str, state: str, version: str | None = None) -> RuleContext:
    """The same machine with one service in another state."""
    others = [service for service in context.software.services if service.name != name]
    return software(context, services=[*others, Service(name=name, state=state, version=version)])


def hgx(gpus: int = 8) -> RuleContext:
    """Healthy: a switch, its manager in the driver's version, every GPU registered."""
    context = probe(server(gpus), "services", "ok")
    context = topology(context, pci=[*context.topology.pci, switch()], nvswitches=[NvSwitch(id=SWITCH, pci=SWITCH)])
    return service(context, FM, "active", "570.124.06")


def tray() -> RuleContext:
    """Healthy: four GB200, one cluster, C2C and ATS on, IMEX configured and ready."""
    context = models(probe(server(), "services", "ok"), GB200)
    completed = Fabric(state="completed", status="success", clique=1, cluster_uuid=RACK)
    context = changed_gpus(
        context,
        architecture="Blackwell",
        name="NVIDIA GB200",
        fabric=completed,
        c2c=C2c(enabled=True, links=["active"] * 10, max_gbyte_s=447.1),
        addressing_mode="ats",
    )
    for n in range(4):
        context = changed_gpu(context, n, memory_numa_node=2 + n)
    nodes = [
        NumaNode(id=0, cpus="0-71"),
        NumaNode(id=1, cpus="72-143"),
        *(NumaNode(id=2 + n, cpus="") for n in range(4)),
    ]
    context = software(
        node(context, numa_nodes=nodes), imex={"nodes_config": "18", "node": "READY"}, device_nodes=[CHANNEL]
    )
    return service(context, IMEX, "active")


CHANNEL = "nvidia-caps-imex-channels/channel0"


def registration(context: RuleContext, n: int | None, **changes) -> RuleContext:
    """The same machine with the fabric facts of GPU n changed; None: of every GPU."""
    for item in range(len(context.topology.gpus)) if n is None else (n,):
        fabric = context.topology.gpus[item].fabric or Fabric()
        context = changed_gpu(context, item, fabric=msgspec.structs.replace(fabric, **changes))
    return context


def health(context: RuleContext, n: int | None, **words: str) -> RuleContext:
    """The same machine with words of the fabric health changed."""
    return registration(context, n, health={**HEALTHY, **words})


def driver(context: RuleContext, **changes) -> RuleContext:
    """The same machine with another driver."""
    return software(context, driver=msgspec.structs.replace(context.software.driver, **changes))


def profile(**numbers: float) -> Profile:
    """A profile that expects these numbers."""
    return Profile(name="site", **{name: Expected(value=value, source="test") for name, value in numbers.items()})
