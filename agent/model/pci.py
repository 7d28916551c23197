"""One PCI function and its link in the kernel's and PCI-SIG's terms, and the GB/s that a link carries one way."""

from __future__ import annotations

import msgspec

_GBYTE_S_PER_LANE = {
    2.5: 0.25,
    5.0: 0.5,
    8.0: 8 * 128 / 130 / 8,
    16.0: 16 * 128 / 130 / 8,
    32.0: 32 * 128 / 130 / 8,
    64.0: 64 * 236 / 256 / 8,
    128.0: 128 * 236 / 256 / 8,
}
_GENERATION = {speed: number for number, speed in enumerate(_GBYTE_S_PER_LANE, start=1)}


def bandwidth_gbyte_s(speed_gt_s: float | None, width: int | None) -> float | None:
    """Bandwidth of a link in one direction; None where speed or width are not known.

    >>> bandwidth_gbyte_s(32.0, 16), bandwidth_gbyte_s(64.0, 16), bandwidth_gbyte_s(None, 16)
    (63.015, 118.0, None)
    """
    lane = _GBYTE_S_PER_LANE.get(speed_gt_s) if speed_gt_s is not None else None
    return round(lane * width, 3) if lane is not None and width else None


def generation(speed_gt_s: float | None) -> int | None:
    """The PCIe generation of a lane speed, 1 for 2.5 GT/s; None for a speed that no generation has."""
    return _GENERATION.get(speed_gt_s) if speed_gt_s is not None else None


class Acs(msgspec.Struct, frozen=True, kw_only=True):
    """ACS: what the function can do and what is switched on, as SV TB RR CR UF EC DT. Both empty: it has no ACS."""

    capability: list[str] = []
    control: list[str] = []


class LinkQuality(msgspec.Struct, frozen=True, kw_only=True):
    """How far the link's numbers may be believed."""

    state: str  # conclusive | idle | untrusted | asleep | unreadable
    reason: str | None = None
    reason_code: str | None = None  # where rules decide by it: inside-card, downgraded-speed, -width, -speed-width


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """The link between this function and the port above it. Bandwidth: one direction, after line coding."""

    speed_gt_s: float | None = None
    width: int | None = None  # 0: no link
    max_speed_gt_s: float | None = None
    max_width: int | None = None
    target_speed_gt_s: float | None = None
    bandwidth_gbyte_s: float | None = None
    quality: LinkQuality


class PciFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One PCI function. Null: could not be read, or the source does not say."""

    id: str
    parent: str | None = None
    # "0000:15": the root bus (host bridge) it hangs from; "": the source does not say which; null: hierarchy not known
    root_bus: str | None = None
    class_code: str | None = msgspec.field(name="class", default=None)
    vendor: str | None = None
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    revision: str | None = None
    name: str | None = None
    driver: str | None = None  # "": known to have none
    numa_node: int | None = None
    numa_declared: bool | None = None  # false: the kernel says -1, the firmware gave none; null: not read
    slot: str | None = None
    port_type: str | None = None
    iommu_group: int | None = None
    iommu_type: str | None = None
    physical_function: str | None = None
    virtual_functions: int | None = None
    power_state: str | None = None  # D0 .. D3cold, or the runtime status where that is all there is
    serial: str | None = None
    acs: Acs | None = None
    ats: bool | None = None
    aer: dict[str, dict[str, int]] | None = None
    max_payload_bytes: int | None = None
    max_payload_supported_bytes: int | None = None
    max_read_request_bytes: int | None = None
    relaxed_ordering: bool | None = None
    extended_tags: bool | None = None
    extended_tags_supported: bool | None = None
    ten_bit_tags: bool | None = None  # requester enabled
    ten_bit_tags_supported: bool | None = None  # as requester; a port's: as completer
    retrained: list[str] | None = None  # of a port's link status: "bandwidth_managed", "autonomous"; sticky, undated
    link_disabled: bool | None = None
    slot_occupied: bool | None = None  # of a port with a slot: a card is detected; null: no slot, or not readable
    slot_powered: bool | None = None
    link_active: bool | None = None  # of a port, as it reports it itself
    aspm: str | None = None
    bars_bytes: dict[str, int] | None = None
    config_bytes: int | None = None
    state: str = "present"  # present | asleep | gone | changed_during_scan
    link: Link | None = None


# The PCIe switch on an AMD GPU's card or module, as (vendor, device) of its upstream and downstream port. Sources:
# pci.ids; of MI300 and MI350 the lspci output of machines with MI300X and MI350P: the two ports differ in their vendor.
CARD_SWITCHES = frozenset({("0x1002", "0x1478"), ("0x1002", "0x1479"), ("0x1022", "0x1500"), ("0x1002", "0x1501")})
CXL_MEMORY = "0x0502"  # PCI class of its devices, without the programming interface


class CxlDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One CXL memory device: a function of PCI class 0502, and what the kernel's CXL bus shows of it."""

    id: str  # PCI address; where that is not known the name of the memory device
    memdev: str | None = None  # mem0; null: the CXL driver made none, or the bus was not read
    endpoint: str | None = None  # without one its memory cannot be used
    ports: list[str] = []  # of CXL, above its endpoint, from the root on
    ram_mib: int | None = None
    pmem_mib: int | None = None
    decoded_mib: int | None = None  # how much of it is part of a region, or was set up by the firmware
    qos_class: int | None = None  # of its volatile memory: what it can do, in classes of the platform
    firmware: str | None = None
    numa_node: int | None = None  # of its slot
    health: list[str] | None = (
        None  # what it reports of itself: maintenance_needed, media_data_lost, ..; null: not asked
    )
    media_errors: dict[str, int] | None = (
        None  # poisoned ranges by source: Internal, External, Injected, ..; null: not asked
    )


class CxlRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A range of memory over one or several CXL devices."""

    id: str  # region0
    size_mib: int | None = None
    ways: int | None = None
    granularity_bytes: int | None = None
    committed: bool | None = None
    devices: list[str] = []  # ids, by position; one that is lost is not there
    numa_node: int | None = None  # the node that is its memory
    mode: str | None = None  # system-ram | devdax: used as a device, by choice
    online_blocks: int | None = None
    total_blocks: int | None = None
    qos_class: int | None = None  # that the platform gives the window of the host which it is in


class Cxl(msgspec.Struct, frozen=True, kw_only=True):
    """CXL memory."""

    devices: list[CxlDevice] = []
    regions: list[CxlRegion] = []
