"""One PCI function and its link in the kernel's and PCI-SIG's terms, and the GB/s that a link carries one way."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent.model.peers import STORED, equal, free, stored, usual

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


def speed_of_generation(number: int | None) -> float | None:
    """The lane speed of a PCIe generation, GT/s; None for one that does not exist.

    >>> speed_of_generation(5), speed_of_generation(0), speed_of_generation(None)
    (32.0, None, None)
    """
    return next((speed for speed, generation in _GENERATION.items() if generation == number), None)


class Acs(msgspec.Struct, frozen=True, kw_only=True):
    """ACS: what the function can do and what is switched on, as SV TB RR CR UF EC DT. Both empty: it has no ACS."""

    capability: Annotated[list[str], usual("ACS capabilities")] = []
    control: Annotated[list[str], equal("ACS")] = []


class LinkQuality(msgspec.Struct, frozen=True, kw_only=True):
    """How far the link's numbers may be trusted."""

    state: Annotated[str, free("evidence")]  # conclusive | idle | untrusted | asleep | unreadable
    reason: Annotated[str | None, free("evidence")] = None
    # Where rules decide by it: inside-card, downgraded-speed, -width, -speed-width
    reason_code: Annotated[str | None, free("evidence")] = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """The link between this function and the port above it. Bandwidth: one direction, after line coding."""

    speed_gt_s: Annotated[float | None, free("power")] = None
    width: Annotated[int | None, free("power")] = None  # 0: no link
    max_speed_gt_s: Annotated[float | None, usual("highest PCIe speed", "GT/s")] = None
    max_width: Annotated[int | None, usual("highest PCIe width", "lanes")] = None
    target_speed_gt_s: Annotated[float | None, usual("target PCIe speed", "GT/s")] = None
    bandwidth_gbyte_s: Annotated[float | None, free("derived")] = None
    quality: LinkQuality


class PciFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One PCI function. Null: could not be read, or the source does not show it."""

    id: Annotated[str, free("identity"), STORED]
    parent: Annotated[str | None, free("place"), STORED] = None
    # "0000:15": the root bus (host bridge) it hangs from; "": the source does not show which; null: hierarchy not known
    root_bus: Annotated[str | None, free("place")] = None
    class_code: Annotated[str | None, free("identity"), STORED] = msgspec.field(name="class", default=None)
    vendor: Annotated[str | None, free("identity"), STORED] = None
    device: Annotated[str | None, free("identity"), STORED] = None
    subsystem_vendor: Annotated[str | None, usual("subsystem vendor"), STORED] = None
    subsystem_device: Annotated[str | None, usual("subsystem"), STORED] = None
    revision: Annotated[str | None, usual("revision"), STORED] = None
    name: Annotated[str | None, free("identity"), STORED] = None
    driver: Annotated[str | None, equal("driver"), STORED] = None  # "": known to have none
    numa_node: Annotated[int | None, free("place"), STORED] = None
    # false: the kernel states -1, the firmware gave none; null: not read
    numa_declared: Annotated[bool | None, free("place")] = None
    slot: Annotated[str | None, free("place"), STORED] = None
    port_type: Annotated[str | None, free("place"), STORED] = None
    iommu_group: Annotated[int | None, free("name"), STORED] = None
    iommu_type: Annotated[str | None, equal("IOMMU mode"), STORED] = None
    physical_function: Annotated[str | None, free("identity"), STORED] = None
    virtual_functions: Annotated[int | None, usual("number of virtual functions")] = None
    # D0 .. D3cold, or the runtime status where that is all there is
    power_state: Annotated[str | None, free("power"), stored(volatile=True)] = None
    serial: Annotated[str | None, free("identity"), STORED] = None
    acs: Annotated[Acs | None, stored("control bits that are set, blank between; null: unknown or no ACS")] = None
    ats: Annotated[bool | None, equal("ATS"), STORED] = None
    aer: Annotated[dict[str, dict[str, int]] | None, free("counter")] = None
    # uncorrectable errors whose bit of AER is set since it was last cleared, as lspci names them
    aer_status: Annotated[list[str] | None, free("counter")] = None
    max_payload_bytes: Annotated[int | None, equal("maximum payload", "bytes"), STORED] = None
    max_payload_supported_bytes: Annotated[int | None, usual("supported maximum payload", "bytes")] = None
    # these two as gdr-mrrs-small and gdr-relaxed-ordering-off: notes, unless something shows that they cost
    max_read_request_bytes: Annotated[int | None, usual("maximum read request", "bytes"), STORED] = None
    relaxed_ordering: Annotated[bool | None, usual("relaxed ordering"), STORED] = None
    extended_tags: Annotated[bool | None, equal("extended tags")] = None
    extended_tags_supported: Annotated[bool | None, usual("support of extended tags")] = None
    ten_bit_tags: Annotated[bool | None, equal("10-bit tags")] = None  # requester enabled
    # as requester; a port's: as completer
    ten_bit_tags_supported: Annotated[bool | None, usual("support of 10-bit tags")] = None
    # of a port's link status: "bandwidth_managed", "autonomous"; sticky, undated
    retrained: Annotated[list[str] | None, free("state")] = None
    link_disabled: Annotated[bool | None, free("state")] = None
    # of a port with a slot: a card is detected; null: no slot, or not readable
    slot_occupied: Annotated[bool | None, free("state")] = None
    slot_powered: Annotated[bool | None, free("state")] = None
    link_active: Annotated[bool | None, free("state")] = None  # of a port, as it reports it itself
    aspm: Annotated[str | None, equal("ASPM")] = None
    bars_bytes: Annotated[dict[str, int] | None, equal("BAR", "bytes")] = None
    config_bytes: Annotated[int | None, free("evidence")] = None
    # present | asleep | gone | changed_during_scan
    state: Annotated[str, free("state"), stored("present, asleep, gone")] = "present"
    link: Link | None = None


# The PCIe switch on an AMD GPU's card or module, as (vendor, device) of its upstream and downstream port. Sources:
# pci.ids; of MI300 and MI350 the lspci output of machines with MI300X and MI350P: the two ports differ in their vendor.
CARD_SWITCHES = frozenset({("0x1002", "0x1478"), ("0x1002", "0x1479"), ("0x1022", "0x1500"), ("0x1002", "0x1501")})
CXL_MEMORY = "0x0502"  # PCI class of its devices, without the programming interface


class CxlDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One CXL memory device: a function of PCI class 0502, and what the kernel's CXL bus shows of it."""

    id: Annotated[str, free("identity")]  # PCI address; where that is not known the name of the memory device
    memdev: Annotated[str | None, free("name")] = None  # mem0; null: the CXL driver made none, or the bus was not read
    endpoint: Annotated[str | None, free("name")] = None  # without one its memory cannot be used
    ports: Annotated[list[str], free("place")] = []  # of CXL, above its endpoint, from the root on
    ram_mib: Annotated[int | None, equal("volatile memory", "MiB")] = None
    pmem_mib: Annotated[int | None, equal("persistent memory", "MiB")] = None
    # how much of it is part of a region, or was set up by the firmware
    decoded_mib: Annotated[int | None, free("use")] = None
    # of its volatile memory: what it can do, in classes of the platform
    qos_class: Annotated[int | None, equal("QoS class")] = None
    firmware: Annotated[str | None, equal("firmware version")] = None
    numa_node: Annotated[int | None, free("place")] = None  # of its slot
    health: Annotated[list[str] | None, free("state")] = (
        None  # what it reports of itself: maintenance_needed, media_data_lost, ..; null: not asked
    )
    media_errors: Annotated[dict[str, int] | None, free("counter")] = (
        None  # poisoned ranges by source: Internal, External, Injected, ..; null: not asked
    )


class CxlRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A range of memory over one or several CXL devices."""

    id: Annotated[str, free("name")]  # region0
    size_mib: Annotated[int | None, free("use")] = None
    ways: Annotated[int | None, free("use")] = None
    granularity_bytes: Annotated[int | None, free("use")] = None
    committed: Annotated[bool | None, free("state")] = None
    devices: Annotated[list[str], free("place")] = []  # ids, by position; one that is lost is not there
    numa_node: Annotated[int | None, free("place")] = None  # the node that is its memory
    mode: Annotated[str | None, free("use")] = None  # system-ram | devdax: used as a device, by choice
    online_blocks: Annotated[int | None, free("state")] = None
    total_blocks: Annotated[int | None, free("use")] = None
    # that the platform gives the window of the host which it is in
    qos_class: Annotated[int | None, free("place")] = None


class Cxl(msgspec.Struct, frozen=True, kw_only=True):
    """CXL memory."""

    devices: list[CxlDevice] = []
    regions: list[CxlRegion] = []
