# ruff: noqa: D101  # each is a part of the class in agent.model that has its name without Fields, where fields are explained
"""What is read of a report's devices: the columns of their tables, and what is computed for others.

A class declares what code here needs; a field for each other column of its table is added (row_columns.py).
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from agent.fleet.rows.row_columns import Int as Int
from agent.fleet.rows.row_columns import RowColumns, add_compared
from agent.fleet.tables import GPU, NETDEV, NIC, NVLINK, PCI, PORT
from agent.model import gpu, nic

NONE, NULL, EMPTY = Raw(b"[]"), Raw(b"null"), Raw(b"{}")

FUNCTION_ROWS = RowColumns(PCI, "acs")
GPU_ROWS = RowColumns(
    GPU, *("mig", "nvlinks", "nvlinks_active"), *("fabric_state", "fabric_status", "clique", "cluster_uuid")
)
NVLINK_ROWS = RowColumns(NVLINK, *("gpu", "remote_kind", "remote_id", "remote_link", "up"))
NIC_ROWS = RowColumns(NIC, "rail")
PORT_ROWS = RowColumns(
    PORT,
    *("nic", "label", "rail", "role", "virtual_function"),
    *("gid_types", "netdev", "neighbor_guid", "neighbor_name", "neighbor_port", "subnet", "roce_gid_index"),
)
NETDEV_ROWS = RowColumns(
    NETDEV,
    *("rail", "fec", "pause_rx", "pause_tx", "trust", "pfc", "dscp_prio", "tc_bandwidth", "ecn"),
    *("module_vendor", "module_part", "module_serial", "neighbor_system", "neighbor_chassis", "neighbor_port"),
    *("prio_tc", "cnp_dscp", "cnp_priority"),
)


class AcsFields(msgspec.Struct, frozen=True, gc=False):
    capability: list[str] = []
    control: list[str] = []


class QualityFields(msgspec.Struct, frozen=True, gc=False):
    state: str | None = None


class LinkFields(msgspec.Struct, frozen=True, gc=False):
    speed_gt_s: float | None = None
    width: Int | None = None
    max_speed_gt_s: float | None = None
    max_width: Int | None = None
    bandwidth_gbyte_s: float | None = None
    quality: QualityFields = QualityFields()


@FUNCTION_ROWS.add_fields
class FunctionFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    parent: str | None = None
    class_code: str | None = msgspec.field(name="class", default=None)
    vendor: str | None = None
    device: str | None = None
    port_type: str | None = None
    serial: str | None = None
    acs: AcsFields | None = None
    aer: Raw = NULL
    link: LinkFields | None = None


class FarFields(msgspec.Struct, frozen=True, gc=False):
    kind: str | None = None
    id: str | None = None
    link: Int | None = None


@NVLINK_ROWS.add_fields
class GpuLinkFields(msgspec.Struct, frozen=True, gc=False):
    link: Int
    state: str | None = None
    remote: FarFields | None = None
    errors: dict[str, int] = {}


class FabricFields(msgspec.Struct, frozen=True, gc=False):
    state: str | None = None
    status: str | None = None
    clique: Int | None = None
    cluster_uuid: str | None = None


@add_compared(gpu.C2c)
class C2cFields(msgspec.Struct, frozen=True, gc=False):
    errors: dict[str, int] = {}


class MigFields(msgspec.Struct, frozen=True, gc=False):
    current: bool | None = None


@add_compared(gpu.GpuHealth)
class HealthFields(msgspec.Struct, frozen=True, gc=False):
    pass


@add_compared(gpu.Partition)
class PartitionFields(msgspec.Struct, frozen=True, gc=False):
    pass


@add_compared(gpu.Gpu)
@GPU_ROWS.add_fields
class GpuFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    label: str | None = None
    uuid: str | None = None
    serial: str | None = None
    name: str | None = None
    vendor: str | None = None
    pci: str | None = None
    mig: MigFields | None = None
    driver_state: str | None = None
    links: Raw = NONE
    links_known: bool = False
    fabric: FabricFields | None = None
    health: HealthFields | None = None
    partition: PartitionFields | None = None
    c2c: C2cFields | None = None
    pcie_counters: dict[str, int] = {}
    error_counts: dict[str, int] = {}


class GidFields(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    index: Int | None = None
    gid: str | None = None


class FabricNeighborFields(msgspec.Struct, frozen=True, gc=False):
    node_guid: str | None = None
    name: str | None = None
    port: Int | None = None


@PORT_ROWS.add_fields
class PortFields(msgspec.Struct, frozen=True, gc=False):
    port: Int
    link_layer: str | None = None
    state: str | None = None
    port_guid: str | None = None
    netdevs: list[str] = []
    gids: list[GidFields] = []
    gids_known: bool = False
    neighbor: FabricNeighborFields | None = None
    counters: dict[str, int] = {}
    hw_counters: dict[str, int] = {}


@NIC_ROWS.add_fields
class NicFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    label: str | None = None
    accelerator: str | None = None
    board_id: str | None = None
    node_guid: str | None = None
    system_image_guid: str | None = None
    model: str | None = None
    virtual_function: bool = False
    role: str | None = None
    ports: list[PortFields] = []


@add_compared(nic.Fec)
class FecFields(msgspec.Struct, frozen=True, gc=False):
    active: str | None = None


@add_compared(nic.TransceiverModule)
class ModuleFields(msgspec.Struct, frozen=True, gc=False):
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None


class NeighborFields(msgspec.Struct, frozen=True, gc=False):
    system: str | None = None
    chassis: str | None = None
    port: str | None = None


@add_compared(nic.Pause)
class PauseFields(msgspec.Struct, frozen=True, gc=False):
    rx: bool | None = None
    tx: bool | None = None


@add_compared(nic.Qos)
class QosFields(msgspec.Struct, frozen=True, gc=False):
    trust: str | None = None
    pfc: tuple[bool, ...] = ()
    prio_tc: tuple[Int, ...] = ()
    dscp_prio: Raw = EMPTY
    tc_bandwidth: tuple[Int, ...] = ()
    ecn: Raw = EMPTY
    cnp_dscp: Int | None = None
    cnp_priority: Int | None = None
    pfc_frames_sent: list[int] = []
    pfc_frames_received: list[int] = []


@add_compared(nic.Netdev)
@NETDEV_ROWS.add_fields
class NetdevFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    label: str | None = None
    nic: str | None = None
    mac: str | None = None
    addresses: list[str] = []
    driver: str | None = None
    fec: FecFields | None = None
    module: ModuleFields | None = None
    neighbor: NeighborFields | None = None
    counters: dict[str, int] | None = None
    pause: PauseFields | None = None
    qos: QosFields | None = None


@add_compared(gpu.NpuPort)
class NpuPortFields(msgspec.Struct, frozen=True, gc=False):
    npu: int
    nic: str | None = None
    address: str | None = None


class PathFields(msgspec.Struct, frozen=True, gc=False):
    a: str
    b: str
    kind: str | None = None
    pcie_kind: str | None = None
    bandwidth_gbyte_s: float | None = None
    limiting: str | None = None
