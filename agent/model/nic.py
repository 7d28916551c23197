"""Network functions that have, or could have, an RDMA device; and network interfaces."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent.model.peers import equal, free, setting, unique, usual


class Gid(msgspec.Struct, frozen=True, kw_only=True):
    """A used GID table entry."""

    index: Annotated[int, free("place")]
    gid: Annotated[str, free("identity")]
    type: Annotated[str | None, free("place")] = None
    netdev: Annotated[str | None, free("name")] = None


class FabricNeighbor(msgspec.Struct, frozen=True, kw_only=True):
    """The port at the far end of an InfiniBand cable, as saved outputs of a fabric show (ibnetdiscover, iblinkinfo)."""

    node_guid: Annotated[str | None, free("identity")] = None
    name: Annotated[str | None, free("name")] = None  # the node's description: "MF0;leaf-1:MQM9700/U1"
    port: Annotated[int, free("place")]
    lid: Annotated[int | None, free("identity")] = None
    width: Annotated[str | None, free("derived")] = None  # "4X": what ran on the link when the output was made
    speed: Annotated[str | None, free("derived")] = None  # "NDR"
    rate_gbit_s: Annotated[float | None, free("derived")] = None
    # what both ends support, where the tool states that it is more
    could_width: Annotated[str | None, free("derived")] = None
    could_speed: Annotated[str | None, free("derived")] = None
    could_rate_gbit_s: Annotated[float | None, free("derived")] = None
    source: Annotated[str, free("evidence")]  # the commands that show it


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """One RDMA port. `rate_gbit_s`: as the field quotes it; null where the port is not active."""

    port: Annotated[int, free("place")]
    link_layer: Annotated[str | None, free("use")] = None  # InfiniBand | Ethernet | unspecified
    state: Annotated[str | None, free("intent")] = None  # ACTIVE | INIT | ARMED | DOWN | ...
    phys_state: Annotated[str | None, free("intent")] = None  # LinkUp | Polling | Disabled | ...
    rate_gbit_s: Annotated[float | None, equal("rate", "Gb/s")] = None
    width: Annotated[str | None, free("derived")] = None  # "4X"
    speed: Annotated[str | None, free("derived")] = None  # "NDR"
    lid: Annotated[int | None, unique("LID")] = None
    sm_lid: Annotated[int | None, usual("LID of the subnet manager")] = None
    port_guid: Annotated[str | None, unique("port GUID")] = None
    netdevs: Annotated[list[str], free("name")] = []
    protocol: Annotated[str | None, equal("RDMA protocol")] = (
        None  # roce | ib | iw | opa | usnic, as RDMA netlink states
    )
    # a vendor's forced traffic class (ToS byte) for every QP; null: none, or not read
    traffic_class: Annotated[int | None, setting("forced traffic class")] = None
    # of rdma-cm, where configfs already shows it: "RoCE v2"
    default_roce_mode: Annotated[str | None, setting("default RoCE mode")] = None
    active_mtu: Annotated[int | None, setting("active MTU", "bytes")] = None
    gids: list[Gid] = []
    gids_known: Annotated[bool, free("evidence")] = False
    pkeys: Annotated[list[str], setting("partition keys")] = []
    neighbor: FabricNeighbor | None = None  # on InfiniBand; of an Ethernet port its interface has it
    counters: Annotated[dict[str, int], free("counter")] = {}
    hw_counters: Annotated[dict[str, int], free("counter")] = {}


def is_link_local(address: str) -> bool:
    """Whether an address of an interface is made by itself, and shows no intention ("fe80::1/64").

    >>> is_link_local("fe80::1/64"), is_link_local("169.254.3.4/16"), is_link_local("10.0.0.1/24")
    (True, True, False)
    """
    return address.lower().startswith(("fe80:", "169.254."))


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """One network function: with an RDMA device, or one that could have it; or the ports inside an accelerator."""

    id: Annotated[str, free("identity")]
    label: Annotated[str, free("name")]
    pci: Annotated[str | None, free("place")] = None
    accelerator: Annotated[str | None, free("place")] = (
        None  # id in gpus of what the ports are inside; "npu-3": which GPU has number 3 is not known
    )
    rdma_device: Annotated[str | None, free("name")] = None
    # "CA"; "RNIC" is iWARP, where nothing of RoCE applies
    node_type: Annotated[str | None, equal("RDMA node type")] = None
    numa_node: Annotated[int | None, free("place")] = None
    driver: Annotated[str | None, equal("driver")] = None
    firmware: Annotated[str | None, usual("firmware version")] = None
    board_id: Annotated[str | None, usual("board id (PSID)")] = None
    node_guid: Annotated[str | None, unique("node GUID")] = None
    system_image_guid: Annotated[str | None, free("identity")] = None
    model: Annotated[str | None, free("identity")] = None
    bond: Annotated[str | None, free("place")] = None
    virtual_functions: Annotated[int | None, free("derived")] = None
    virtual_function: Annotated[bool, free("use")] = False
    software: Annotated[bool, free("identity")] = False  # rxe, siw: never carries GPU traffic
    limited: Annotated[str | None, free("use")] = None  # owned by a fabric manager: not a NIC for jobs
    state: Annotated[str, free("state")] = "present"  # present | no_driver | vfio | no_rdma_device | other_namespace
    role: Annotated[str, free("use")] = "unknown"  # rail | storage | management | auxiliary | unused | unknown
    role_evidence: Annotated[list[str], free("evidence")] = []
    ports: list[Port] = []


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Global pause (802.3x)."""

    rx: Annotated[bool | None, setting("pause, receiving")] = None
    tx: Annotated[bool | None, setting("pause, sending")] = None
    autoneg: Annotated[bool | None, usual("pause negotiation")] = None


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    """DCB state of one interface. Lists are by priority or traffic class 0 to 7; empty: not known."""

    trust: Annotated[str | None, setting("trust mode")] = None  # dscp | pcp
    # "APP table", "trust table", "qos/trust", "mlnx_qos": how it is known
    trust_source: Annotated[str | None, free("evidence")] = None
    pfc: Annotated[list[bool], setting("PFC by priority")] = []  # by priority
    prio_tc: Annotated[list[int], setting("traffic class by priority")] = []
    # "26" -> 3; a DSCP that is not here lands in priority 0
    dscp_prio: Annotated[dict[str, int], setting("priority of DSCP")] = {}
    tc_bandwidth: Annotated[list[int], setting("ETS share by traffic class", "%")] = []  # percent
    # strict | cbs | ets | vendor | unused (no priority has it)
    tc_tsa: Annotated[list[str], setting("scheduler by traffic class")] = []
    # by traffic class; 0: no limit
    max_rate_kbit_s: Annotated[list[int], setting("rate limit by traffic class", "kbit/s")] = []
    # "prio_buffer": buffer of every priority; "size_bytes": size of every buffer
    buffers: Annotated[dict[str, list[int]], equal("receive buffers")] = {}
    # what headroom was computed for (mlx5)
    cable_metres: Annotated[int | None, equal("cable length for headroom", "m")] = None
    dcbx: Annotated[str | None, setting("DCBX owner")] = None  # host | firmware
    dcbx_modes: Annotated[list[str], setting("DCBX modes")] = []  # host lld_managed cee ieee static
    # what the neighbour reported to the driver by DCBX
    peer_pfc: Annotated[list[bool], setting("PFC of the switch port")] = []
    pfc_frames_sent: Annotated[list[int], free("traffic")] = []  # by priority, cumulative
    pfc_frames_received: Annotated[list[int], free("traffic")] = []
    # "np" (notification point), "rp" (reaction point): by priority
    ecn: Annotated[dict[str, list[bool]], setting("ECN")] = {}
    cnp_dscp: Annotated[int | None, setting("DSCP of CNPs")] = None
    cnp_priority: Annotated[int | None, setting("priority of CNPs")] = None


class Fec(msgspec.Struct, frozen=True, kw_only=True):
    """Forward error correction: off | baser | rs | llrs."""

    active: Annotated[str | None, equal("FEC in use")] = None
    configured: Annotated[list[str], equal("configured FEC")] = []
    supported: Annotated[list[str], free("catalogue")] = []
    auto: Annotated[bool | None, usual("automatic FEC")] = None


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One lane of an optical module, as the module measures it."""

    lane: Annotated[int, free("place")]
    rx_power_dbm: Annotated[float | None, free("measured")] = None
    tx_power_dbm: Annotated[float | None, free("measured")] = None
    tx_bias_ma: Annotated[float | None, free("measured")] = None
    # what the module itself flags: rx_los, tx_fault, rx_lol, rx_power_low_alarm, ..
    flags: Annotated[list[str], free("state")] = []


class TransceiverModule(msgspec.Struct, frozen=True, kw_only=True):
    """The cable or optical module in a port. Thresholds are the module's own; null: it has none."""

    identifier: Annotated[str | None, free("derived")] = None  # "QSFP28", "OSFP", "QSFP-DD"
    media: Annotated[str | None, usual("cable media")] = None  # copper | active_copper | optical | unknown
    vendor: Annotated[str | None, free("derived")] = None
    part: Annotated[str | None, usual("part number of the cable or module")] = None
    serial: Annotated[str | None, free("identity")] = None
    length_m: Annotated[float | None, free("place")] = None
    standard: Annotated[str | None, free("derived")] = None  # "100GBASE-LR4", where the module names one
    # CMIS: low_power | ready | fault | ..; of an NPU's port also absent
    state: Annotated[str | None, free("state")] = None
    temperature_c: Annotated[float | None, free("measured")] = None
    voltage_v: Annotated[float | None, free("measured")] = None
    # "temperature_high_alarm_c", "rx_power_low_warning_dbm", "tx_power_..", ..
    thresholds: Annotated[dict[str, float], free("catalogue")] = {}
    flags: Annotated[list[str], free("state")] = []
    lanes: list[Lane] = []


class Neighbor(msgspec.Struct, frozen=True, kw_only=True):
    """The switch port at the far end, by LLDP."""

    system: Annotated[str | None, free("place")] = None
    chassis: Annotated[str | None, free("place")] = None
    port: Annotated[str | None, free("place")] = None
    port_description: Annotated[str | None, free("place")] = None
    max_frame_bytes: Annotated[int | None, setting("longest frame of the switch port", "bytes")] = None
    vlan: Annotated[int | None, setting("untagged VLAN of the switch port")] = None
    pfc: Annotated[list[bool], setting("PFC of the switch port, by LLDP")] = []  # by priority; empty: not reported
    # "udp:4791" -> priority, "dscp:26" -> priority
    applications: Annotated[dict[str, int], setting("application priority of the switch port")] = {}
    tc_bandwidth: Annotated[list[int], setting("ETS share of the switch port", "%")] = []
    prio_tc: Annotated[list[int], setting("traffic class by priority of the switch port")] = []


class Netdev(msgspec.Struct, frozen=True, kw_only=True):
    """One network interface."""

    id: Annotated[str, free("identity")]
    label: Annotated[str, free("name")]
    pci: Annotated[str | None, free("place")] = None
    nic: Annotated[str | None, free("place")] = None
    mac: Annotated[str | None, unique("MAC address")] = None
    addresses: Annotated[list[str], unique("address", prefix="prefix length of IPv4 addresses")] = []
    operstate: Annotated[str | None, free("intent")] = None
    admin_up: Annotated[bool | None, free("intent")] = None
    speed_gbit_s: Annotated[float | None, equal("speed", "Gb/s")] = None
    max_speed_gbit_s: Annotated[float | None, usual("highest speed", "Gb/s")] = None
    # from 4192 on RoCE sends its largest packets
    mtu: Annotated[int | None, setting("MTU", "bytes", enough=4192)] = None
    driver: Annotated[str | None, free("derived")] = None
    master: Annotated[str | None, free("place")] = None
    autoneg: Annotated[bool | None, usual("autonegotiation")] = None
    bond: Annotated[dict[str, str | list[str]] | None, equal("bond setting", without=("active_slave", "slaves"))] = None
    vlan: Annotated[dict[str, int | str] | None, equal("VLAN setting", without=("id", "parent"))] = (
        None  # id, parent, egress_map ("0:3,4:3")
    )
    fec: Fec | None = None
    module: TransceiverModule | None = None
    module_reason: Annotated[str | None, free("evidence")] = None  # why nothing is known of the module
    # no-module | needs-root, where rules decide by it
    module_reason_code: Annotated[str | None, free("evidence")] = None
    neighbor: Neighbor | None = None
    # kernel's and driver's, cumulative; carrier_down_count and such among them
    counters: Annotated[dict[str, int], free("counter")] = {}
    pause: Pause | None = None
    qos: Qos | None = None
    # of IPv4, in force here: arp_ignore, arp_announce, arp_filter, rp_filter
    arp: Annotated[dict[str, int], setting("ARP setting")] = {}
    # why DCB is not known: "the driver has no DCB here (EOPNOTSUPP)"
    qos_reason: Annotated[str | None, free("evidence")] = None
