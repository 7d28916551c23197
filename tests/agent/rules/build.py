"""Small machines for rule tests: healthy ones of model objects, and ways to change one thing about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from agent.model.gpu import Gpu, GpuLink, Remote
from agent.model.nic import Gid, Netdev, Nic, Port
from agent.model.node import Driver, Module, Node, NumaNode, Platform, Software
from agent.model.pci import Link, LinkQuality, PciFunction
from agent.model.report import ProbeRun
from agent.model.topology import Path, Topology
from agent.rules.case import Case
from agent.rules.rule import Answer, Fail, Rule

PROBES = ("kernel", "numa", "pci", "nvml", "rdma", "netdev", "modules")
H100, B200, GB200, RTX3090, H100_PCIE, H800 = "0x2330", "0x2901", "0x2941", "0x2204", "0x2331", "0x2324"
S = TypeVar("S", bound=msgspec.Struct)


def link(speed: float = 32.0, width: int = 16, quality: str = "conclusive", **more: Any) -> Link:
    """A Gen 5 x16 link that runs at what it can, unless told otherwise."""
    values = {"max_speed_gt_s": 32.0, "max_width": 16} | more
    reason = None if quality == "conclusive" else f"{quality} for the test"
    lane = {2.5: 0.25, 8.0: 0.985, 16.0: 1.969, 32.0: 3.938}[speed]
    return Link(
        speed_gt_s=speed,
        width=width,
        bandwidth_gbyte_s=round(lane * width, 3),
        quality=LinkQuality(state=quality, reason=reason),
        **values,
    )


def bridge(address: str, parent: str | None, kind: str) -> PciFunction:
    """A root port, or a port of a switch."""
    return PciFunction(
        id=address,
        parent=parent,
        class_code="0x060400",
        vendor="0x1000",
        device="0xc030",
        port_type=kind,
        numa_node=0,
        numa_declared=True,
        link=link(),
    )


def gpu_function(address: str, parent: str | None, device: str = H100) -> PciFunction:
    """An NVIDIA GPU on the bus, its driver bound."""
    return PciFunction(
        id=address,
        parent=parent,
        class_code="0x030200",
        vendor="0x10de",
        device=device,
        driver="nvidia",
        port_type="endpoint",
        numa_node=0,
        numa_declared=True,
        serial="00-00-00-00-00-00-00-01",
        link=link(),
    )


def nic_function(address: str, parent: str | None) -> PciFunction:
    """A ConnectX-7 on the bus, its driver bound."""
    return PciFunction(
        id=address,
        parent=parent,
        class_code="0x020700",
        vendor="0x15b3",
        device="0x1021",
        driver="mlx5_core",
        port_type="endpoint",
        numa_node=0,
        numa_declared=True,
        link=link(),
    )


def nvlinks(count: int = 18, remote: str = "switch", rate: float = 26.562) -> list[GpuLink]:
    """Active NVLinks of one GPU."""
    return [
        GpuLink(link=n, state="active", version="4.0", signal_gbyte_s=rate, remote=Remote(kind=remote))
        for n in range(count)
    ]


def gpu(address: str, number: int) -> Gpu:
    """An H100 that the driver offers."""
    return Gpu(
        id=address,
        label=f"GPU{number}",
        index=number,
        uuid=f"GPU-{number:08d}",
        name="NVIDIA H100 80GB HBM3",
        vendor="NVIDIA",
        pci=address,
        architecture="Hopper",
        compute_capability="9.0",
        driver_state="open",
        links=nvlinks(),
        links_known=True,
    )


def nic(address: str, number: int, ethernet: bool = False) -> Nic:
    """A rail at 400 Gb/s, InfiniBand or RoCE, its port active."""
    name = f"mlx5_{number}"
    return Nic(
        id=address,
        label=name,
        pci=address,
        rdma_device=name,
        driver="mlx5_core",
        firmware="28.43.2026",
        board_id="MT_0000000838",
        node_guid=f"0000:0000:0000:{number:04x}",
        model="ConnectX-7",
        role="rail",
        ports=[ethernet_port(number) if ethernet else ib_port(number)],
    )


def ib_port(number: int) -> Port:
    """An active NDR port."""
    return Port(
        port=1,
        link_layer="InfiniBand",
        state="ACTIVE",
        phys_state="LinkUp",
        rate_gbit_s=400.0,
        width="4X",
        speed="NDR",
        lid=10 + number,
        sm_lid=1,
    )


def ethernet_port(number: int) -> Port:
    """An active RoCE port with an address."""
    gids = [
        ("fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1"),
        ("fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"),
    ]
    gids += [(f"0000:0000:0000:0000:0000:ffff:0a00:000{number}", kind) for kind in ("IB/RoCE v1", "RoCE v2")]
    return Port(
        port=1,
        link_layer="Ethernet",
        state="ACTIVE",
        phys_state="LinkUp",
        rate_gbit_s=400.0,
        netdevs=[f"eth{number}"],
        gids=[Gid(index=n, gid=gid, type=kind, netdev=f"eth{number}") for n, (gid, kind) in enumerate(gids)],
        gids_known=True,
    )


def netdev(address: str, number: int) -> Netdev:
    """The interface of a RoCE rail, ready for packets of 4096 bytes."""
    return Netdev(id=address, label=f"eth{number}", pci=address, nic=address, mac=f"02:00:00:00:00:0{number}", mtu=4200)


def server(gpus: int = 4, ethernet: bool = False) -> Case:
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
        devices.append(gpu(f"{b}4:00.0", n))
        nics.append(nic(f"{b}5:00.0", n, ethernet))
        netdevs.append(netdev(f"{b}5:00.0", n))
    for a in range(gpus):
        paths += [way(a, b) for b in range(gpus)]
    return Case(
        node=Node(
            kernel="6.8.0-60-generic",
            virtualization_known=True,
            uptime_seconds=86_400.0,
            numa_nodes=[NumaNode(id=0, cpus="0-55"), NumaNode(id=1, cpus="56-111"), NumaNode(id=2, cpus="")],
        ),
        platform=Platform(),
        probes={name: ProbeRun(name=name, status="ok") for name in PROBES},
        software=Software(
            driver=Driver(version="570.124.06", open=True, cuda="12.8"), modules=[Module(name="nvidia_peermem")]
        ),
        events=(),
        topology=Topology(pci=functions, gpus=devices, nics=nics, netdevs=netdevs if ethernet else [], paths=paths),
    )


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


def function(case: Case, address: str, **changes: Any) -> Case:
    """The same machine with one PCI function changed."""
    return _topology(case, pci=_changed(case.topology.pci, address, changes))


def relinked(case: Case, address: str, made: Link | None) -> Case:
    """The same machine with one PCI function's link replaced."""
    return function(case, address, link=made)


def changed_gpu(case: Case, n: int, **changes: Any) -> Case:
    """The same machine with GPU n changed."""
    return _topology(case, gpus=_changed(case.topology.gpus, gpu_id(n), changes))


def changed_gpus(case: Case, **changes: Any) -> Case:
    """The same machine with all its GPUs changed."""
    return _topology(case, gpus=[msgspec.structs.replace(each, **changes) for each in case.topology.gpus])


def changed_nic(case: Case, n: int, **changes: Any) -> Case:
    """The same machine with rail n changed."""
    return _topology(case, nics=_changed(case.topology.nics, nic_id(n), changes))


def changed_nics(case: Case, **changes: Any) -> Case:
    """The same machine with all its NICs changed."""
    return _topology(case, nics=[msgspec.structs.replace(each, **changes) for each in case.topology.nics])


def changed_port(case: Case, n: int, **changes: Any) -> Case:
    """The same machine with the port of rail n changed."""
    ports = [msgspec.structs.replace(port, **changes) for port in case.topology.nics[n].ports]
    return changed_nic(case, n, ports=ports)


def changed_ports(case: Case, **changes: Any) -> Case:
    """The same machine with the ports of all rails changed."""
    for n in range(len(case.topology.nics)):
        case = changed_port(case, n, **changes)
    return case


def changed_netdev(case: Case, n: int, **changes: Any) -> Case:
    """The same machine with the interface of rail n changed."""
    return _topology(case, netdevs=_changed(case.topology.netdevs, nic_id(n), changes))


def all_functions(case: Case, class_code: str, **changes: Any) -> Case:
    """The same machine with every function of a class changed."""
    return _topology(
        case,
        pci=[msgspec.structs.replace(f, **changes) if f.class_code == class_code else f for f in case.topology.pci],
    )


def models(case: Case, device: str) -> Case:
    """The same machine with GPUs of another product."""
    return all_functions(case, "0x030200", device=device)


def topology(case: Case, **changes: Any) -> Case:
    """The same machine with parts of its topology replaced."""
    return _topology(case, **changes)


def node(case: Case, **changes: Any) -> Case:
    """The same machine with facts of the node changed."""
    return replace(case, node=msgspec.structs.replace(case.node, **changes))


def virtual(case: Case) -> Case:
    """The same machine, seen by a guest."""
    return node(case, virtualization="kvm")


def probe(case: Case, name: str, status: str, reason: str | None = None) -> Case:
    """The same machine with one probe that ended otherwise."""
    return replace(case, probes={**case.probes, name: ProbeRun(name=name, status=status, reason=reason)})


def software(case: Case, **changes: Any) -> Case:
    """The same machine with other software."""
    return replace(case, software=msgspec.structs.replace(case.software, **changes))


def fails(rule: Rule, case: Case) -> list[Fail]:
    """The faults that a rule sees."""
    return [answer for answer in rule.check(case) if isinstance(answer, Fail)]


def answers(rule: Rule, case: Case, subject: str) -> list[Answer]:
    """What a rule says of one subject."""
    return [answer for answer in rule.check(case) if answer.subject == subject]


def kinds(rule: Rule, case: Case) -> set[type[Answer]]:
    """The kinds of all answers of a rule."""
    return {type(answer) for answer in rule.check(case)}


def _changed(rows: Iterable[S], which: str, changes: dict[str, Any]) -> list[S]:
    rows = list(rows)
    assert any(row.id == which for row in rows), which  # type: ignore[attr-defined]  # every row of a topology has an id
    return [msgspec.structs.replace(row, **changes) if row.id == which else row for row in rows]  # type: ignore[attr-defined]  # as above


def _topology(case: Case, **changes: Any) -> Case:
    return replace(case, topology=msgspec.structs.replace(case.topology, **changes))
