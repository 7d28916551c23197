"""What any source says of PCI functions: the facts of the probes `pci` and `lspci`.

Kernel pages: Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-pci-devices-aer_stats, sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Acs(NamedTuple):
    """ACS extended capability: bit sets as the field names them (SV TB RR CR UF EC DT)."""

    capability: frozenset[str]
    control: frozenset[str]


class PciFunction(NamedTuple):
    """One PCI function. None: could not be read, or the source does not say."""

    address: str  # "0000:19:00.0", as the kernel prints it, lower case
    parent: str | None  # address of the bridge above; None: directly on a root bus, or (root_bus None) not known
    # "0000:15": the root bus it hangs from (its host bridge); "": it is not told which; None: the place is not known
    root_bus: str | None
    class_code: str | None = None  # class: "0x030200"
    vendor: str | None = None  # vendor: "0x10de"
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    revision: str | None = None
    name: str | None = None  # udev ID_MODEL_FROM_DATABASE, or what lspci printed
    vendor_name: str | None = None
    driver: str | None = None  # driver link; "" : none bound (known)
    numa_node: int | None = None  # numa_node; -1: the firmware gave none
    local_cpus: str | None = None  # local_cpulist
    slot: str | None = None  # physical slot name
    iommu_group: int | None = None
    iommu_type: str | None = None  # "DMA", "DMA-FQ", "identity"
    physical_function: str | None = None  # physfn
    virtual_functions: int | None = None  # virtfn* links, sriov_numvfs
    virtual_functions_supported: int | None = None  # sriov_totalvfs
    runtime_status: str | None = None  # power/runtime_status: read before anything that reaches the device
    power_state: str | None = None  # power_state: "D0"
    asleep: bool = False  # suspended: nothing past runtime_status was read
    current_link_speed_gt_s: float | None = None
    current_link_width: int | None = None  # raw: 0 no link, 63 all-ones, 255 unknown
    max_link_speed_gt_s: float | None = None
    max_link_width: int | None = None  # raw
    link_error: str | None = None  # "EINVAL": the kernel could not read the registers
    link_gbyte_s: float | None = None  # what it carries one way now, where speed and width are not told apart (hwloc)
    link_doubt: str | None = None  # why the source's own numbers describe no link of this machine that was read
    # endpoint | legacy_endpoint | root_port | upstream | downstream | bridge | rciep | rcec
    port_type: str | None = None
    target_link_speed_gt_s: float | None = None  # LnkCtl2
    link_disabled: bool | None = None  # LnkCtl bit 4
    max_payload_bytes: int | None = None  # DevCtl
    max_payload_supported_bytes: int | None = None  # DevCap
    max_read_request_bytes: int | None = None  # DevCtl
    relaxed_ordering: bool | None = None  # DevCtl bit 4
    extended_tags: bool | None = None  # DevCtl bit 8
    extended_tags_supported: bool | None = None  # DevCap bit 5
    ten_bit_tags: bool | None = None  # DevCtl2 bit 12: requester enabled
    ten_bit_tags_supported: bool | None = None  # DevCap2: of a port as completer, of others as requester
    aspm: str | None = None  # LnkCtl: "off" | "L0s" | "L1" | "L0s L1"
    bandwidth_management_status: bool | None = None  # LnkSta LBMS (ports)
    autonomous_bandwidth_status: bool | None = None  # LnkSta LABS (ports)
    acs: Acs | None = None
    acs_known: bool = False  # True: acs None means "no such capability"; False: not readable
    ats: bool | None = None  # ATS enabled; None: not readable or no capability
    serial: str | None = None  # device serial number capability: "b8-3f-d2-ff-ff-00-00-01"
    aer: Mapping[str, Mapping[str, int]] | None = (
        None  # {"correctable": {"RxErr": 0, ...}, "nonfatal": .., "fatal": ..}
    )
    bars_bytes: Mapping[str, int] | None = None  # {"0": 16777216, "2": 68719476736}
    config_bytes: int | None = None  # how much of config could be read: 64, 256, 4096
    gone: bool = False  # all-ones: the device does not answer
    vanished: bool = False  # it went away while it was read


class PciFacts(NamedTuple):
    """Every PCI function, sorted by address (numbers as numbers)."""

    functions: tuple[PciFunction, ...]
