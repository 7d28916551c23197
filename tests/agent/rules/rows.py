"""Rows of a healthy machine: functions, GPUs, NICs, ports and interfaces as model objects."""

from __future__ import annotations

from typing import Any

from agent.model.gpu import Fabric, Gpu, GpuHealth, GpuLink, Remote
from agent.model.nic import Fec, Gid, Lane, Neighbor, Netdev, Nic, Pause, Port, Qos, TransceiverModule
from agent.model.pci import Acs, Link, LinkQuality, PciFunction, bandwidth_gbyte_s

NO_CLUSTER = "00000000-0000-0000-0000-000000000000"
HEALTHY = {"degraded_bandwidth": "false", "route_unhealthy": "false", "summary": "healthy"}
H100, B200, GB200, H100_PCIE, H800 = "0x2330", "0x2901", "0x2941", "0x2331", "0x2324"
LIGHT = {"high_alarm": 7.0, "high_warning": 5.0, "low_warning": -6.0, "low_alarm": -8.5}  # dBm

# What config space says of a device that nobody has to tune
SETTINGS: dict[str, Any] = {
    "config_bytes": 4096,
    "max_payload_bytes": 256,
    "max_payload_supported_bytes": 512,
    "max_read_request_bytes": 4096,
    "relaxed_ordering": True,
    "extended_tags": True,
    "extended_tags_supported": True,
    "ten_bit_tags": False,
    "ten_bit_tags_supported": False,
    "aspm": "off",
    "link_disabled": False,
    "subsystem_vendor": "0x10de",
    "subsystem_device": "0x16c1",
}


def link(speed: float = 32.0, width: int = 16, quality: str = "conclusive", **more: Any) -> Link:
    """A Gen 5 x16 link that runs at what it can, unless told otherwise."""
    values = {"max_speed_gt_s": 32.0, "max_width": 16} | more
    reason = None if quality == "conclusive" else f"{quality} for the test"
    return Link(
        speed_gt_s=speed,
        width=width,
        bandwidth_gbyte_s=bandwidth_gbyte_s(speed, width),
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
        **SETTINGS,
        acs=Acs(capability=["SV", "RR", "CR", "UF"]) if kind != "upstream" else Acs(),
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
        **SETTINGS,
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
        **SETTINGS,
    )


def nvlinks(count: int = 18, remote: str = "switch", rate: float = 26.562) -> list[GpuLink]:
    """Active NVLinks of one GPU."""
    return [
        GpuLink(link=n, state="active", version="4.0", signal_gbyte_s=rate, remote=Remote(kind=remote))
        for n in range(count)
    ]


HEALTHY_GPU = GpuHealth(
    clock_limits=[],
    sm_clock_mhz=1980,
    sm_clock_max_mhz=1980,
    application_clock_mhz=1980,
    application_clock_default_mhz=1980,
    utilization_percent=97,
    power_limit_watts=700.0,
    power_limit_requested_watts=700.0,
    power_limit_default_watts=700.0,
    persistence=True,
    ecc=True,
    ecc_pending=True,
    uncorrectable_volatile=0,
    uncorrectable_aggregate=0,
    sram_threshold_exceeded=False,
    repairs_pending=[],
    repairs_failed=[],
)


def xgmi_links(peers: list[str]) -> list[GpuLink]:
    """One XGMI link to each of these GPUs."""
    return [
        GpuLink(protocol="xgmi", link=n, state="active", signal_gbyte_s=64.0, remote=Remote(kind="gpu", id=peer))
        for n, peer in enumerate(peers)
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
        vbios="96.00.99.00.01",
        memory_mib=81559,
        bar1_mib=131072,
        driver_state="open",
        links=nvlinks(),
        links_known=True,
        fabric=Fabric(state="completed", status="success", clique=0, cluster_uuid=NO_CLUSTER, health=HEALTHY),
        recovery_action="none",
        health=HEALTHY_GPU,
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
        pkeys=["0xffff"],
        gids=[Gid(index=0, gid=f"fe80:0000:0000:0000:0000:0000:0000:{number:04x}", type="IB/RoCE v1")],
        gids_known=True,
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
    """The interface of a RoCE rail, ready for packets of 4096 bytes, lossless in priority 3."""
    return Netdev(
        id=address,
        label=f"eth{number}",
        pci=address,
        nic=address,
        mac=f"02:00:00:00:00:0{number}",
        mtu=4200,
        operstate="up",
        speed_gbit_s=400.0,
        max_speed_gbit_s=400.0,
        admin_up=True,
        fec=Fec(active="rs", supported=["off", "rs"], auto=True),
        module=optical(),
        driver="mlx5_core",
        counters={"carrier_down_count": 0, **{f"{way}_prio{n}_bytes": 0 for way in ("rx", "tx") for n in range(8)}},
        pause=Pause(rx=False, tx=False, autoneg=False),
        qos=qos(),
        neighbor=Neighbor(system=f"leaf{number}", port="swp1", pfc=only(3), applications={"udp:4791": 3}),
    )


def optical() -> TransceiverModule:
    """A module of four lanes with light on each, cool, and thresholds of its own."""
    return TransceiverModule(
        identifier="OSFP",
        media="optical",
        vendor="NVIDIA",
        part="MMA4Z00-NS400",
        serial="MT0001",
        state="ready",
        temperature_c=45.0,
        voltage_v=3.3,
        thresholds={
            "temperature_high_alarm_c": 75.0,
            "temperature_high_warning_c": 70.0,
            **{f"{way}_power_{level}_dbm": dbm for way in ("rx", "tx") for level, dbm in LIGHT.items()},
        },
        lanes=[Lane(lane=n, rx_power_dbm=1.0, tx_power_dbm=1.5, tx_bias_ma=7.5) for n in range(1, 5)],
    )


def only(*priorities: int) -> list[bool]:
    """A row by priority with these on."""
    return [n in priorities for n in range(8)]


def qos() -> Qos:
    """DCB of an mlx5 port: trust in DSCP, PFC on priority 3 with a buffer of its own, ECN on, CNPs in priority 6."""
    return Qos(
        trust="dscp",
        trust_source="APP table",
        pfc=only(3),
        prio_tc=[1, 0, 2, 3, 4, 5, 6, 7],
        dscp_prio={str(dscp): dscp // 8 for dscp in range(64)},
        tc_bandwidth=[100] * 8,
        tc_tsa=["vendor"] * 8,
        max_rate_kbit_s=[0] * 8,
        buffers={"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "size_bytes": [156_096, 262_272, 0, 0, 0, 0, 0, 0]},
        cable_metres=7,
        dcbx="host",
        dcbx_modes=["host", "ieee"],
        ecn={"np": [True] * 8, "rp": [True] * 8},
        cnp_dscp=48,
        cnp_priority=6,
    )
