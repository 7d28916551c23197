"""Small machines for rule tests: healthy ones of model objects, and ways to change one thing about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from agent.model.gpu import Gpu, Partition, XgmiPorts
from agent.model.node import Driver, Module, Nccl, NcclSetting, Node, NumaNode, Platform, Software
from agent.model.pci import Link
from agent.model.report import ProbeRun
from agent.model.topology import Path, Topology
from agent.rules.context import RuleContext
from agent.rules.rule import Fail, Result, Rule
from probes.catalogue import providers
from tests.agent.rules.rows import bridge, gpu, gpu_function, netdev, nic, nic_function, xgmi_links

PROBES = ("kernel", "numa", "pci", "nvml", "rdma", "netdev", "optics", "modules", "nccl", "limits", "kernel_log")
S = TypeVar("S", bound=msgspec.Struct)


def server(gpus: int = 4, ethernet: bool = False) -> RuleContext:
    """A healthy node: each GPU shares a switch with its rail, below a root port of its own.

    GPU n is 0000:n4:00.0, its rail 0000:n5:00.0; above both: downstream ports n2:00.0 and n2:01.0, upstream port
    n1:00.0, root port n0:01.0 (n in hex, from 1).
    """
    functions, devices, nics, netdevs, paths = [], [], [], [], []
    for n in range(gpus):
        b = f"0000:{n + 1:x}"
        functions += [
            bridge(f"{b}0:01.0", None, "root_port"),
            bridge(f"{b}1:00.0", f"{b}0:01.0", "upstream"),
            bridge(f"{b}2:00.0", f"{b}1:00.0", "downstream"),
            bridge(f"{b}2:01.0", f"{b}1:00.0", "downstream"),
            gpu_function(f"{b}4:00.0", f"{b}2:00.0"),
            nic_function(f"{b}5:00.0", f"{b}2:01.0"),
        ]
        devices.append(msgspec.structs.replace(gpu(f"{b}4:00.0", n), p2p=_peers(n, gpus)))
        nics.append(nic(f"{b}5:00.0", n, ethernet))
        netdevs.append(netdev(f"{b}5:00.0", n))
    for a in range(gpus):
        paths += [way(a, b) for b in range(gpus)]
        paths += [
            Path(a=gpu_id(a), b=gpu_id(b), kind="NV18", pcie_kind="NODE", source="nvml") for b in range(a + 1, gpus)
        ]
    return RuleContext(
        node=Node(
            kernel="6.8.0-60-generic",
            cmdline="ro quiet",
            virtualization_known=True,
            uptime_seconds=86_400.0,
            numa_nodes=_numa_nodes(),
        ),
        platform=Platform(),
        probes={name: ProbeRun(name=name, status="ok") for name in PROBES},
        providers=providers(),
        software=Software(
            driver=Driver(version="570.124.06", open=True, cuda="12.8"),
            modules=[Module(name="nvidia_peermem")],
            rdma_namespaces="shared",
            nccl=nccl(NCCL_IB_TC="106"),
            device_nodes=[*(f"infiniband/uverbs{n}" for n in range(gpus)), "gdrdrv"],
            shared_memory_mib=65536,
            limits={"memlock slurmd.service": "unlimited"},
        ),
        events=(),
        topology=Topology(
            pci=functions,
            gpus=devices,
            nics=nics,
            netdevs=netdevs if ethernet else [],
            paths=paths,
            bandwidth_mode="full",
        ),
    )


def instinct() -> RuleContext:
    """Eight MI300X in one hive, each with a RoCE rail, in the places of `server`."""
    context = server(8, ethernet=True)
    part = {"class_code": "0x120000", "vendor": "0x1002", "device": "0x74a1", "driver": "amdgpu"}
    for each in context.topology.gpus:
        context = function(context, each.id, **part)
    ids = [gpu.id for gpu in context.topology.gpus]
    gpus = [
        Gpu(
            id=each.id,
            label=each.label,
            name="Instinct MI300X",
            vendor="AMD",
            pci=each.id,
            vbios="113-M3000100-103",
            driver_state="open",
            partition=Partition(compute="SPX", memory="NPS1", count=1, expected=1),
            hive="5a01",
            xgmi=XgmiPorts(width=16, lane_gbit_s=32, states=[*7 * ["active"], "inactive"]),
            links=xgmi_links([other for other in ids if other != each.id]),
            links_known=True,
        )
        for each in context.topology.gpus
    ]
    paths = [
        msgspec.structs.replace(path, kind="XGMI", bandwidth_gbyte_s=64.0, source="kfd")
        if path.kind == "NV18"
        else path
        for path in context.topology.paths
    ]
    probes = {**context.probes, "kfd": ProbeRun(name="kfd", status="ok")}
    probes["nvml"] = ProbeRun(name="nvml", status="absent", reason="no NVIDIA driver")
    return replace(_topology(context, gpus=gpus, paths=paths), probes=probes)


def _numa_nodes() -> list[NumaNode]:
    """Two sockets, and the memory of a GPU."""
    cpus = ("0-55", "56-111", "")
    return [NumaNode(id=number, cpus=some, memory_mib=524_288) for number, some in enumerate(cpus)]


def nccl(**settings: str) -> Nccl:
    """NCCL whose only file sets these; no job runs."""
    lines = [
        NcclSetting(key=key, value=value, source=f"/etc/nccl.conf:{n}", line=f"{key}={value}")
        for n, (key, value) in enumerate(settings.items(), 1)
    ]
    return Nccl(settings=lines, searched=["/etc/nccl.conf"], jobs=0, jobs_unread=0)


def way(a: int, b: int) -> Path:
    """The path of GPU a to rail b of `server`."""
    one, other = f"0000:{a + 1:x}", f"0000:{b + 1:x}"
    if a == b:
        hops, kind = [f"{one}2:00.0", f"{one}1:00.0", f"{one}2:01.0"], "PIX"
    else:
        up, down = (
            [f"{one}2:00.0", f"{one}1:00.0", f"{one}0:01.0"],
            [f"{other}0:01.0", f"{other}1:00.0", f"{other}2:01.0"],
        )
        hops, kind = up + down, "NODE"
    return Path(a=f"{one}4:00.0", b=f"{other}5:00.0", kind=kind, pcie_kind=kind, hops=hops, bandwidth_gbyte_s=63.0)


def gpu_id(n: int) -> str:
    """The id of GPU n of `server`."""
    return f"0000:{n + 1:x}4:00.0"


def nic_id(n: int) -> str:
    """The id of rail n of `server`."""
    return f"0000:{n + 1:x}5:00.0"


def function(context: RuleContext, address: str, **changes: Any) -> RuleContext:
    """The same machine with one PCI function changed."""
    return _topology(context, pci=_changed(context.topology.pci, address, changes))


def relinked(context: RuleContext, address: str, made: Link | None) -> RuleContext:
    """The same machine with one PCI function's link replaced."""
    return function(context, address, link=made)


def changed_gpu(context: RuleContext, n: int, **changes: Any) -> RuleContext:
    """The same machine with GPU n changed."""
    return _topology(context, gpus=_changed(context.topology.gpus, gpu_id(n), changes))


def changed_gpus(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with all its GPUs changed."""
    return _topology(context, gpus=[msgspec.structs.replace(each, **changes) for each in context.topology.gpus])


def changed_nic(context: RuleContext, n: int, **changes: Any) -> RuleContext:
    """The same machine with rail n changed."""
    return _topology(context, nics=_changed(context.topology.nics, nic_id(n), changes))


def changed_nics(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with all its NICs changed."""
    return _topology(context, nics=[msgspec.structs.replace(each, **changes) for each in context.topology.nics])


def changed_port(context: RuleContext, n: int, **changes: Any) -> RuleContext:
    """The same machine with the port of rail n changed."""
    ports = [msgspec.structs.replace(port, **changes) for port in context.topology.nics[n].ports]
    return changed_nic(context, n, ports=ports)


def changed_ports(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with the ports of all rails changed."""
    for n in range(len(context.topology.nics)):
        context = changed_port(context, n, **changes)
    return context


def changed_netdev(context: RuleContext, n: int, **changes: Any) -> RuleContext:
    """The same machine with the interface of rail n changed."""
    return _topology(context, netdevs=_changed(context.topology.netdevs, nic_id(n), changes))


def all_functions(context: RuleContext, class_code: str, **changes: Any) -> RuleContext:
    """The same machine with every function of a class changed."""
    return _topology(
        context,
        pci=[msgspec.structs.replace(f, **changes) if f.class_code == class_code else f for f in context.topology.pci],
    )


def models(context: RuleContext, device: str) -> RuleContext:
    """The same machine with GPUs of another product."""
    return all_functions(context, "0x030200", device=device)


def topology(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with parts of its topology replaced."""
    return _topology(context, **changes)


def node(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with facts of the node changed."""
    return replace(context, node=msgspec.structs.replace(context.node, **changes))


def virtual(context: RuleContext) -> RuleContext:
    """The same machine, seen by a guest."""
    return node(context, virtualization="kvm")


def probe(
    context: RuleContext, name: str, status: str, reason: str | None = None, code: str | None = None
) -> RuleContext:
    """The same machine with one probe that ended otherwise."""
    run = ProbeRun(name=name, status=status, reason=reason, reason_code=code)
    return replace(context, probes={**context.probes, name: run})


def software(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with other software."""
    return replace(context, software=msgspec.structs.replace(context.software, **changes))


def fails(rule: Rule, context: RuleContext) -> list[Fail]:
    """The faults that a rule sees; of what is at fault it says nothing else."""
    told = list(rule.check(context))
    found = [answer for answer in told if isinstance(answer, Fail)]
    faulty = {fault.subject for fault in found}
    also = [answer for answer in told if answer.subject in faulty and not isinstance(answer, Fail)]
    assert not also, also
    return found


def answers(rule: Rule, context: RuleContext, subject: str) -> list[Result]:
    """What a rule says of one subject."""
    return [answer for answer in rule.check(context) if answer.subject == subject]


def kinds(rule: Rule, context: RuleContext) -> set[type[Result]]:
    """The kinds of all answers of a rule."""
    return {type(answer) for answer in rule.check(context)}


def _peers(n: int, gpus: int) -> dict[str, dict[str, str]]:
    words = {"read": "OK", "write": "OK", "nvlink": "OK", "atomics": "OK"}
    return {gpu_id(peer): words for peer in range(gpus) if peer != n}


def _changed(rows: Iterable[S], which: str, changes: dict[str, Any]) -> list[S]:
    rows = list(rows)
    assert any(row.id == which for row in rows), which  # type: ignore[attr-defined]  # every row of a topology has an id
    return [msgspec.structs.replace(row, **changes) if row.id == which else row for row in rows]  # type: ignore[attr-defined]  # as above


def _topology(context: RuleContext, **changes: Any) -> RuleContext:
    return replace(context, topology=msgspec.structs.replace(context.topology, **changes))
