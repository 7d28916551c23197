# ruff: noqa: D101  # each is a part of the class in agent.model that has its name without Fields, where fields are explained
"""What is read of a report's devices: the fields that tables have (shapes.py)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Raw

Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
NONE, NULL, EMPTY = Raw(b"[]"), Raw(b"null"), Raw(b"{}")


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


class FunctionFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    parent: str | None = None
    class_code: str | None = msgspec.field(name="class", default=None)
    vendor: str | None = None
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    revision: str | None = None
    name: str | None = None
    driver: str | None = None
    numa_node: Int | None = None
    slot: str | None = None
    port_type: str | None = None
    iommu_group: Int | None = None
    iommu_type: str | None = None
    physical_function: str | None = None
    serial: str | None = None
    power_state: str | None = None
    acs: AcsFields | None = None
    ats: bool | None = None
    aer: Raw = NULL
    max_payload_bytes: Int | None = None
    max_read_request_bytes: Int | None = None
    relaxed_ordering: bool | None = None
    state: str | None = None
    link: LinkFields | None = None


class FarFields(msgspec.Struct, frozen=True, gc=False):
    kind: str | None = None
    id: str | None = None
    link: Int | None = None


class GpuLinkFields(msgspec.Struct, frozen=True, gc=False):
    link: Int
    protocol: str | None = None
    state: str | None = None
    version: str | None = None
    signal_gbyte_s: float | None = None
    remote: FarFields | None = None
    errors: dict[str, int] = {}


class FabricFields(msgspec.Struct, frozen=True, gc=False):
    state: str | None = None
    status: str | None = None
    clique: Int | None = None
    cluster_uuid: str | None = None


class C2cFields(msgspec.Struct, frozen=True, gc=False):
    errors: dict[str, int] = {}


class MigFields(msgspec.Struct, frozen=True, gc=False):
    current: bool | None = None


class GpuFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    label: str | None = None
    index: Int | None = None
    uuid: str | None = None
    serial: str | None = None
    name: str | None = None
    vendor: str | None = None
    pci: str | None = None
    numa_node: Int | None = None
    module_id: Int | None = None
    vbios: str | None = None
    memory_mib: Int | None = None
    bar1_mib: Int | None = None
    mig: MigFields | None = None
    driver_state: str | None = None
    links: Raw = NONE
    links_known: bool = False
    fabric: FabricFields | None = None
    c2c: C2cFields | None = None
    recovery_action: str | None = None
    pstate: str | None = None
    pcie_counters: dict[str, int] = {}


class GidFields(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    index: Int | None = None
    gid: str | None = None


class FabricNeighborFields(msgspec.Struct, frozen=True, gc=False):
    node_guid: str | None = None
    name: str | None = None
    port: Int | None = None


class PortFields(msgspec.Struct, frozen=True, gc=False):
    port: Int
    link_layer: str | None = None
    state: str | None = None
    phys_state: str | None = None
    rate_gbit_s: float | None = None
    width: str | None = None
    speed: str | None = None
    lid: Int | None = None
    sm_lid: Int | None = None
    port_guid: str | None = None
    netdevs: list[str] = []
    active_mtu: Int | None = None
    gids: list[GidFields] = []
    gids_known: bool = False
    neighbor: FabricNeighborFields | None = None
    counters: dict[str, int] = {}
    hw_counters: dict[str, int] = {}


class NicFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    label: str | None = None
    rdma_device: str | None = None
    numa_node: Int | None = None
    driver: str | None = None
    firmware: str | None = None
    board_id: str | None = None
    node_guid: str | None = None
    system_image_guid: str | None = None
    model: str | None = None
    virtual_function: bool = False
    state: str | None = None
    role: str | None = None
    ports: list[PortFields] = []


class FecFields(msgspec.Struct, frozen=True, gc=False):
    active: str | None = None


class ModuleFields(msgspec.Struct, frozen=True, gc=False):
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None


class NeighborFields(msgspec.Struct, frozen=True, gc=False):
    system: str | None = None
    chassis: str | None = None
    port: str | None = None


class PauseFields(msgspec.Struct, frozen=True, gc=False):
    rx: bool | None = None
    tx: bool | None = None


class QosFields(msgspec.Struct, frozen=True, gc=False):
    trust: str | None = None
    pfc: tuple[bool, ...] = ()
    dscp_prio: Raw = EMPTY
    tc_bandwidth: tuple[Int, ...] = ()
    ecn: Raw = EMPTY
    pfc_frames_sent: list[int] = []
    pfc_frames_received: list[int] = []


class NetdevFields(msgspec.Struct, frozen=True, gc=False):
    id: str
    label: str | None = None
    nic: str | None = None
    mac: str | None = None
    addresses: list[str] = []
    operstate: str | None = None
    speed_gbit_s: float | None = None
    mtu: Int | None = None
    driver: str | None = None
    master: str | None = None
    fec: FecFields | None = None
    module: ModuleFields | None = None
    neighbor: NeighborFields | None = None
    counters: dict[str, int] | None = None
    pause: PauseFields | None = None
    qos: QosFields | None = None


class PathFields(msgspec.Struct, frozen=True, gc=False):
    a: str
    b: str
    kind: str | None = None
    pcie_kind: str | None = None
    bandwidth_gbyte_s: float | None = None
    limiting: str | None = None
