"""Network functions that have, or could have, an RDMA device; and network interfaces."""

from __future__ import annotations

import msgspec


class Gid(msgspec.Struct, frozen=True, kw_only=True):
    """A used GID table entry."""

    index: int
    gid: str
    type: str | None = None
    netdev: str | None = None


class FabricNeighbor(msgspec.Struct, frozen=True, kw_only=True):
    """The port at the far end of an InfiniBand cable, as saved outputs of a fabric tell (ibnetdiscover, iblinkinfo)."""

    node_guid: str | None = None
    name: str | None = None  # the node's description: "MF0;leaf-1:MQM9700/U1"
    port: int
    lid: int | None = None
    width: str | None = None  # "4X": what ran on the link when the output was made
    speed: str | None = None  # "NDR"
    rate_gbit_s: float | None = None
    could_width: str | None = None  # what both ends support, where the tool says that it is more
    could_speed: str | None = None
    could_rate_gbit_s: float | None = None
    source: str  # the commands that tell


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
    protocol: str | None = None  # roce | ib | iw | opa | usnic, as RDMA netlink says
    traffic_class: int | None = None  # a vendor's forced traffic class (ToS byte) for every QP; null: none, or not read
    default_roce_mode: str | None = None  # of rdma-cm, where configfs already shows it: "RoCE v2"
    active_mtu: int | None = None
    gids: list[Gid] = []
    gids_known: bool = False
    pkeys: list[str] = []
    neighbor: FabricNeighbor | None = None  # on InfiniBand; of an Ethernet port its interface has it
    counters: dict[str, int] = {}
    hw_counters: dict[str, int] = {}


def is_link_local(address: str) -> bool:
    """Whether an address of an interface is made by itself, and shows no intention ("fe80::1/64").

    >>> is_link_local("fe80::1/64"), is_link_local("169.254.3.4/16"), is_link_local("10.0.0.1/24")
    (True, True, False)
    """
    return address.lower().startswith(("fe80:", "169.254."))


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """One network function: with an RDMA device, or one that could have it; or the ports inside an accelerator."""

    id: str
    label: str
    pci: str | None = None
    accelerator: str | None = (
        None  # id in gpus of what the ports are inside; "npu-3": which GPU has number 3 is not known
    )
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
    autoneg: bool | None = None


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    """DCB state of one interface. Lists are by priority or traffic class 0 to 7; empty: not known."""

    trust: str | None = None  # dscp | pcp
    trust_source: str | None = None  # "APP table", "trust table", "qos/trust", "mlnx_qos": how it is known
    pfc: list[bool] = []  # by priority
    prio_tc: list[int] = []
    dscp_prio: dict[str, int] = {}  # "26" -> 3; a DSCP that is not here lands in priority 0
    tc_bandwidth: list[int] = []  # percent
    tc_tsa: list[str] = []  # strict | cbs | ets | vendor | unused (no priority has it)
    max_rate_kbit_s: list[int] = []  # by traffic class; 0: no limit
    buffers: dict[str, list[int]] = {}  # "prio_buffer": buffer of every priority; "size_bytes": size of every buffer
    cable_metres: int | None = None  # what headroom was computed for (mlx5)
    dcbx: str | None = None  # host | firmware
    dcbx_modes: list[str] = []  # host lld_managed cee ieee static
    peer_pfc: list[bool] = []  # what the neighbour told the driver by DCBX
    pfc_frames_sent: list[int] = []  # by priority, cumulative
    pfc_frames_received: list[int] = []
    ecn: dict[str, list[bool]] = {}  # "np" (notification point), "rp" (reaction point): by priority
    cnp_dscp: int | None = None
    cnp_priority: int | None = None


class Fec(msgspec.Struct, frozen=True, kw_only=True):
    """Forward error correction: off | baser | rs | llrs."""

    active: str | None = None
    configured: list[str] = []
    supported: list[str] = []
    auto: bool | None = None


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One lane of an optical module, as the module measures it."""

    lane: int
    rx_power_dbm: float | None = None
    tx_power_dbm: float | None = None
    tx_bias_ma: float | None = None
    flags: list[str] = []  # what the module itself flags: rx_los, tx_fault, rx_lol, rx_power_low_alarm, ..


class TransceiverModule(msgspec.Struct, frozen=True, kw_only=True):
    """The cable or optical module in a port. Thresholds are the module's own; null: it has none."""

    identifier: str | None = None  # "QSFP28", "OSFP", "QSFP-DD"
    media: str | None = None  # copper | active_copper | optical | unknown
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None
    length_m: float | None = None
    standard: str | None = None  # "100GBASE-LR4", where the module names one
    state: str | None = None  # CMIS: low_power | ready | fault | ..; of an NPU's port also absent
    temperature_c: float | None = None
    voltage_v: float | None = None
    thresholds: dict[str, float] = {}  # "temperature_high_alarm_c", "rx_power_low_warning_dbm", "tx_power_..", ..
    flags: list[str] = []
    lanes: list[Lane] = []


class Neighbor(msgspec.Struct, frozen=True, kw_only=True):
    """The switch port at the far end, by LLDP."""

    system: str | None = None
    chassis: str | None = None
    port: str | None = None
    port_description: str | None = None
    max_frame_bytes: int | None = None
    vlan: int | None = None
    pfc: list[bool] = []  # by priority; empty: not told
    applications: dict[str, int] = {}  # "udp:4791" -> priority, "dscp:26" -> priority
    tc_bandwidth: list[int] = []
    prio_tc: list[int] = []


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
    autoneg: bool | None = None
    bond: dict[str, str | list[str]] | None = None
    vlan: dict[str, int | str] | None = None  # id, parent, egress_map ("0:3,4:3")
    fec: Fec | None = None
    module: TransceiverModule | None = None
    module_reason: str | None = None  # why nothing is known of the module
    module_reason_code: str | None = None  # no-module | needs-root, where rules decide by it
    neighbor: Neighbor | None = None
    counters: dict[str, int] = {}  # kernel's and driver's, cumulative; carrier_down_count and such among them
    pause: Pause | None = None
    qos: Qos | None = None
    arp: dict[str, int] = {}  # of IPv4, in force here: arp_ignore, arp_announce, arp_filter, rp_filter
    qos_reason: str | None = None  # why DCB is not known: "the driver has no DCB here (EOPNOTSUPP)"
