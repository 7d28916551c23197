"""Network functions that have, or could have, an RDMA device; and network interfaces."""

from __future__ import annotations

import msgspec


class Gid(msgspec.Struct, frozen=True, kw_only=True):
    """A used GID table entry."""

    index: int
    gid: str
    type: str | None = None
    netdev: str | None = None


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """One RDMA port. `rate_gbit_s`: as the field quotes it; null where the port is not active."""

    port: int
    link_layer: str | None = None  # InfiniBand | Ethernet | unspecified
    state: str | None = None  # ACTIVE | INIT | ARMED | DOWN | ...
    phys_state: str | None = None  # LinkUp | Polling | Disabled | ...
    rate_gbit_s: float | None = None
    width: str | None = None  # "4X"
    speed: str | None = None  # "NDR"
    lid: int | None = None
    sm_lid: int | None = None
    port_guid: str | None = None
    netdevs: list[str] = []
    active_mtu: int | None = None
    gids: list[Gid] = []
    gids_known: bool = False
    pkeys: list[str] = []
    counters: dict[str, int] = {}
    hw_counters: dict[str, int] = {}


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """One network function: with an RDMA device, or one that could have it."""

    id: str
    label: str
    pci: str | None = None
    rdma_device: str | None = None
    node_type: str | None = None  # "CA"; "RNIC" is iWARP, where nothing of RoCE applies
    numa_node: int | None = None
    driver: str | None = None
    firmware: str | None = None
    board_id: str | None = None
    node_guid: str | None = None
    system_image_guid: str | None = None
    model: str | None = None
    bond: str | None = None
    virtual_functions: int | None = None
    virtual_function: bool = False
    software: bool = False  # rxe, siw: never carries GPU traffic
    limited: str | None = None  # owned by a fabric manager: not a NIC for jobs
    state: str = "present"  # present | no_driver | vfio | no_rdma_device | other_namespace
    role: str = "unknown"  # rail | storage | management | auxiliary | unused | unknown
    role_evidence: list[str] = []
    ports: list[Port] = []


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Global pause (802.3x)."""

    rx: bool | None = None
    tx: bool | None = None


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    """DCB state of one interface."""

    trust: str | None = None
    pfc: list[bool] = []
    prio_tc: list[int] = []
    dscp_prio: dict[str, int] = {}
    tc_bandwidth: list[int] = []
    tc_tsa: list[str] = []
    buffers: dict[str, list[int]] = {}
    dcbx: str | None = None
    ecn: dict[str, bool] = {}


class Netdev(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface."""

    id: str
    label: str
    pci: str | None = None
    nic: str | None = None
    mac: str | None = None
    addresses: list[str] = []
    operstate: str | None = None
    admin_up: bool | None = None
    speed_gbit_s: float | None = None
    max_speed_gbit_s: float | None = None
    mtu: int | None = None
    driver: str | None = None
    master: str | None = None
    bond: dict[str, str | list[str]] | None = None
    vlan: dict[str, int | str] | None = None
    fec: str | None = None
    module: dict[str, str | float | None] | None = None
    neighbor: dict[str, str | None] | None = None
    counters: dict[str, int] = {}
    pause: Pause | None = None
    qos: Qos | None = None
