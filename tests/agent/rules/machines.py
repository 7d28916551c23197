"""Machines that rows begin from, where `build.server` alone would have to be changed in many places; of other kinds a
Grace board with data-direct functions, a guest, a host of guests.
"""

from __future__ import annotations

import msgspec

from agent.model.gpu import Ascend, Gpu, GpuLink, NpuPort, Remote
from agent.model.nic import Netdev, Nic, Port
from agent.model.node import Module, NumaNode
from agent.model.pci import Acs, Cxl, CxlDevice, CxlRegion, PciFunction
from agent.model.report import CountersWindow, History, ProbeRun
from agent.model.topology import Path
from agent.rules.ascend.npus import DIES
from agent.rules.context import RuleContext
from agent.rules.host.inventory_matching import build_inventory
from tests.agent.rules.build import (
    all_functions,
    changed_netdev,
    changed_nic,
    changed_port,
    function,
    gpu_id,
    models,
    nic_id,
    node,
    server,
    topology,
)
from tests.agent.rules.rows import GB200, bridge, gpu_function, link, optical

RISER_UP, RISER_DOWN = "0000:13:00.0", "0000:13:01.0"
DARK = {"state": "DOWN", "phys_state": "Polling", "rate_gbit_s": None}
_STATES = {
    "lo": "unknown",
    "docker0": "up",
    "bond0": "up",
    "eth0": "down",
    "eth1": None,
    "ib0": "unknown",
    "veth1": "up",
}
_HABANALABS = {"habanalabs": "ee698fb", "habanalabs_cn": "95323a5", "habanalabs_en": "95323a5"}  # module -> build
_NEURON_ERRORS = {
    "mem_ecc_uncorrected": 0,
    "mem_ecc_repairable_uncorrected": 2,
    "sram_ecc_uncorrected": 0,
    "hw_error": 3,
    "hw_nc_ue_error": 1,
}
DMA = "0000:16:00.0"  # beside GPU 0, below its switch
PORT_DMA, PORT_GPU, ROOT = "0000:12:02.0", "0000:12:00.0", "0000:10:01.0"


def seen_before(context: RuleContext) -> RuleContext:
    """The same machine, which was the same when it was scanned before."""
    history = History(last_good="2026-01-01T00:00:00Z", runs=1, inventory=build_inventory(context.topology))
    return msgspec.structs.replace(context, history=history)


def riser() -> RuleContext:
    """GPU 0 sits on a riser with a switch of its own, whose uplink has 8 lanes and can have no more."""
    context, gpu = server(), gpu_id(0)
    up = msgspec.structs.replace(bridge(RISER_UP, "0000:12:00.0", "upstream"), link=link(width=8, max_width=8))
    down = bridge(RISER_DOWN, RISER_UP, "downstream")
    context = function(topology(context, pci=[*context.topology.pci, up, down]), gpu, parent=RISER_DOWN)
    return topology(context, paths=[_longer(path) if path.a == gpu else path for path in context.topology.paths])


def _longer(path: Path) -> Path:
    kind = "PXB" if path.pcie_kind == "PIX" else path.pcie_kind
    return msgspec.structs.replace(path, hops=[RISER_DOWN, RISER_UP, *path.hops], pcie_kind=kind)


def two_port_cards() -> RuleContext:
    """A second function on every InfiniBand card, its port without a cable."""
    context = server()
    twins = [_second(nic) for nic in context.topology.nics]
    functions = [msgspec.structs.replace(context.functions[twin.id[:-1] + "0"], id=twin.id) for twin in twins]
    return topology(context, nics=[*context.topology.nics, *twins], pci=[*context.topology.pci, *functions])


def _second(nic: Nic) -> Nic:
    place = f"{nic.id[:-1]}1"
    ports = [msgspec.structs.replace(port, **DARK) for port in nic.ports]
    return msgspec.structs.replace(nic, id=place, pci=place, label=f"{nic.label}b", ports=ports)


def interfaces() -> RuleContext:
    """Interfaces of every kind that a list of NCCL may name, instead of those of rails."""
    return topology(server(), netdevs=[Netdev(id=name, label=name, operstate=state) for name, state in _STATES.items()])


def bonded_card(one_device: bool = True) -> RuleContext:
    """Both ports of the card of rail 1 in a bond, with one RDMA device for both, else one each."""
    nic_1 = nic_id(1)
    context = changed_port(changed_netdev(server(ethernet=True), 1, master="bond0"), 1, netdevs=["bond0"])
    above = Netdev(id="bond0", label="bond0", mtu=4200, operstate="up", speed_gbit_s=800.0, bond={"mode": "802.3ad"})
    nic, netdev, second = context.topology.nics[1], context.netdevs["eth1"], f"{nic_1[:-1]}1"
    more = {"rdma_device": None, "ports": [], "role": "auxiliary", "bond": "bond0"} if one_device else {}
    twin = msgspec.structs.replace(nic, id=second, pci=second, label="mlx5_9", **more)
    port = msgspec.structs.replace(netdev, id=second, pci=second, nic=second, label="eth9")
    context = topology(context, nics=[*context.topology.nics, twin], netdevs=[*context.topology.netdevs, above, port])
    return changed_nic(context, 1, rdma_device="mlx5_bond_0", bond="bond0") if one_device else context


def expanders() -> RuleContext:
    """Two GPUs, and four CXL expanders of 128 GiB, two in each of two regions, which are NUMA nodes 2 and 3."""
    context = server(2)
    ids = [f"0000:a{n}:00.0" for n in range(1, 5)]
    part = {"class_code": "0x050210", "vendor": "0x144d", "device": "0xc0de", "driver": "cxl_pci"}
    functions = list(context.topology.pci)
    for number, address in enumerate(ids, 1):
        own = msgspec.structs.replace(gpu_function(address, f"0000:a0:0{number}.0"), root_bus="0000:a0", **part)
        functions += [
            bridge(f"0000:a0:0{number}.0", None, "root_port"),
            msgspec.structs.replace(own, link=link(width=8, max_width=8)),
        ]
    devices = [
        CxlDevice(
            id=address,
            memdev=f"mem{number}",
            endpoint=f"endpoint{number}",
            ram_mib=131_072,
            pmem_mib=0,
            decoded_mib=131_072,
            qos_class=1,
            firmware="2.0.1",
        )
        for number, address in enumerate(ids)
    ]
    whole = {"size_mib": 262_144, "ways": 2, "granularity_bytes": 256, "committed": True, "qos_class": 1}
    regions = [
        CxlRegion(id="region0", devices=ids[:2], numa_node=2, **whole),
        CxlRegion(id="region1", devices=ids[2:], numa_node=3, **whole),
    ]
    nodes = [*context.node.numa_nodes, NumaNode(id=3, cpus="", memory_mib=262_144)]
    context = topology(node(context, numa_nodes=nodes), pci=functions, cxl=Cxl(devices=devices, regions=regions))
    return msgspec.structs.replace(context, probes={**context.probes, "cxl": ProbeRun(name="cxl", status="ok")})


def gaudi_modules() -> RuleContext:
    """A board of eight Gaudi modules: three links to each other one (ports 3n to 3n+2 lead to module n)."""
    return gaudi_cards(8, 3, (30, 31, 32))


def gaudi_cards(count: int = 4, links: int = 2, outside: tuple[int, ...] = (20, 21)) -> RuleContext:
    """Four Gaudi cards: two links to each other one (ports 2n and 2n+1 lead to card n), and ports 20 and 21 outside."""
    context = server(count)
    for gpu in context.topology.gpus:
        context = function(
            context, gpu.id, class_code="0x120000", vendor="0x1da3", device="0x1060", driver="habanalabs"
        )
    gpus = [
        Gpu(
            id=gpu_id(own),
            label=f"GPU{own}",
            name="Gaudi3",
            vendor="Intel Habana",
            pci=gpu_id(own),
            module_id=own,
            driver_state="open",
            links=[
                _gaudi_port(links * peer + port, Remote(kind="gpu", id=gpu_id(peer), link=links * own + port))
                for peer in range(count)
                if peer != own
                for port in range(links)
            ],
            links_known=True,
            error_counts={"hard_resets": 2},
        )
        for own in range(count)
    ]
    modules = [Module(name=name, version=f"1.18.0-{build}") for name, build in _HABANALABS.items()]
    scale_out = tuple(
        Nic(
            id=f"{gpu_id(own)}-scale-out",
            label=f"hbl_{own}",
            accelerator=gpu_id(own),
            role="rail",
            ports=[
                Port(port=n, link_layer="Ethernet", state="ACTIVE", rate_gbit_s=200.0, netdevs=[f"gaudi{own}d{n}"])
                for n in outside
            ],
        )
        for own in range(count)
    )
    netdevs = [
        Netdev(id=f"{nic.accelerator}/{port.port}", label=port.netdevs[0], pci=nic.accelerator, mtu=8000)
        for nic in scale_out
        for port in nic.ports
    ]
    return msgspec.structs.replace(
        topology(context, gpus=gpus, netdevs=netdevs),
        accelerator_nics=scale_out,
        software=msgspec.structs.replace(context.software, modules=modules),
        window=CountersWindow(since="2026-08-16T08:00:00Z", seconds=3600.0),
    )


def _gaudi_port(number: int, remote: Remote) -> GpuLink:
    return GpuLink(protocol="gaudi", link=number, state="active", signal_gbyte_s=25.0, remote=remote)


def neuron_devices() -> RuleContext:
    """Sixteen Neuron devices as a torus of four by four."""
    context = server(16)
    for gpu in context.topology.gpus:
        context = function(
            context, gpu.id, class_code="0x088000", vendor="0x1d0f", device="0x7164", driver="neuron-driver"
        )
    gpus = []
    for own in range(16):
        row, column = divmod(own, 4)
        peers = {row * 4 + (column + step) % 4 for step in (1, -1)} | {
            (row + step) % 4 * 4 + column for step in (1, -1)
        }
        links = [
            GpuLink(protocol="neuron", link=peer, state="active", remote=Remote(kind="gpu", id=gpu_id(peer), link=own))
            for peer in sorted(peers)
        ]
        gpus.append(
            Gpu(
                id=gpu_id(own), label=f"GPU{own}", index=own, name="Trainium", vendor="Amazon", pci=gpu_id(own),
                driver_state="open", links=links, links_known=True, error_counts=_NEURON_ERRORS,
            )
        )  # fmt: skip
    window = CountersWindow(since="2026-08-16T08:00:00Z", seconds=3600.0)
    return msgspec.structs.replace(topology(context, gpus=gpus), window=window)


def npus(device: str = "0xd802") -> RuleContext:
    """Eight NPUs of an Ascend 910B board in the places of `server`: seven HCCS ports each, every pair by HCCS, and a
    RoCE port each with an address in one network."""
    context = server(8, ethernet=True)
    ids = [gpu.id for gpu in context.topology.gpus]
    part = {"class_code": "0x120000", "vendor": "0x19e5", "device": device, "driver": "devdrv_device_driver"}
    for each in ids:
        context = function(context, each, **part)
    none = {"crc": 0, "retries": 0}
    ports = [GpuLink(protocol="hccs", link=n, state="active", signal_gbyte_s=28.0, errors=none) for n in range(1, 8)]
    gpus = [
        Gpu(
            id=item,
            label=f"GPU{n}",
            index=n,
            vendor="Huawei",
            pci=item,
            driver_state="open",
            links=ports,
            links_known=True,
            error_counts={"sio.tx": 0, "sio.rx": 0} if device in DIES else {},
        )
        for n, item in enumerate(ids)
    ]
    paths = [
        msgspec.structs.replace(path, kind="HCCS", source="npu", bandwidth_gbyte_s=28.0)
        if path.kind == "NV18"
        else path
        for path in context.topology.paths
    ]
    limits = {name: dbm for name, dbm in optical().thresholds.items() if "warning" not in name}  # as hccn_tool has them
    module = msgspec.structs.replace(optical(), state=None, thresholds=limits)
    roce = [
        NpuPort(
            npu=n, gpu=item, nic=f"npu-{n}-roce", address=f"192.0.2.{n}", netmask="255.255.255.0",
            gateway="192.0.2.254", mtu=4200, pfc=[4], tls=False, health="Success", module=module, fec="rs",
        )
        for n, item in enumerate(ids)
    ]  # fmt: skip
    stalls = {"tx_pfc4_duration_warn_cnt": 1, "tx_pfc4_duration_err_cnt": 0, "tx_pfc5_duration_err_cnt": 0}
    link = Port(port=1, link_layer="Ethernet", state="ACTIVE", rate_gbit_s=200.0, hw_counters=stalls)
    own = tuple(
        Nic(id=f"npu-{n}-roce", label=f"NPU{n}", accelerator=item, role="rail", ports=[link])
        for n, item in enumerate(ids)
    )
    known = Ascend(device_nodes=8, configuration="read", ports=roce)
    probes = {**context.probes, "npu": ProbeRun(name="npu", status="ok"), "hccn": ProbeRun(name="hccn", status="ok")}
    probes["nvml"] = ProbeRun(name="nvml", status="absent", reason="no NVIDIA driver")
    return msgspec.structs.replace(
        topology(context, gpus=gpus, paths=paths, ascend=known),
        probes=probes,
        accelerator_nics=own,
        window=CountersWindow(since="2026-08-16T08:00:00Z", seconds=3600.0),
    )


def acs(*control: str) -> Acs:
    """A port that can do all, with these switched on."""
    return Acs(capability=["SV", "TB", "RR", "CR", "UF", "EC", "DT"], control=list(control))


def direct_nic(context: RuleContext) -> RuleContext:
    """The same machine as a Grace board: GPU 0 and a data-direct function meet at a switch, ACS as it must be."""
    more = [
        PciFunction(id=PORT_DMA, parent="0000:11:00.0", class_code="0x060400", vendor="0x15b3", port_type="downstream"),
        PciFunction(
            id=DMA, parent=PORT_DMA, class_code="0x080100", vendor="0x15b3", device="0x2100", driver="mlx5_core",
            iommu_group=7,
        ),
    ]  # fmt: skip
    context = topology(context, pci=[*context.topology.pci, *more])
    context = function(context, PORT_DMA, acs=acs("SV", "CR", "UF"))
    context = function(context, PORT_GPU, acs=acs("SV", "RR", "UF"))
    context = function(context, ROOT, acs=acs("RR", "CR", "UF"))
    return function(models(node(context, arch="aarch64"), GB200), gpu_id(0), iommu_group=7)


def grace(context: RuleContext) -> RuleContext:
    """GPUs on C2C, rails behind the CPU."""
    return models(node(context, arch="aarch64"), GB200)


def grouped(context: RuleContext, kind: str | None) -> RuleContext:
    """Every GPU and NIC in an IOMMU group of that type."""
    for code in ("0x030200", "0x020700"):
        context = all_functions(context, code, iommu_group=3, iommu_type=kind)
    return context
