"""What any source states of PCI functions: the facts of the probes `pci` and `lspci`, and the builder that makes them.

Kernel pages: Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-pci-devices-aer_stats, sysfs-kernel-iommu_groups.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from probes.named_tuple import NamedTuple
from probes.pci.config_space import ConfigSpace, VirtualFunctions
from probes.pci.tree import UNPLACED, Place, address_key, neighbour, places_from_buses


class Acs(NamedTuple):
    """ACS extended capability: bit sets as the field names them (SV TB RR CR UF EC DT)."""

    capability: frozenset[str]
    control: frozenset[str]


class PciFunction(NamedTuple):
    """One PCI function. None: could not be read, or the source does not show it."""

    address: str  # "0000:19:00.0", as the kernel prints it, lower case
    parent: str | None  # address of the bridge above; None: directly on a root bus, or (root_bus None) not known
    # "0000:15": the root bus it hangs from (its host bridge); "": unknown which; None: the place is not known
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
    link_downgraded: tuple[str, ...] | None = None  # lspci's "(downgraded)" where it prints no LnkCap: speed, width
    link_error: str | None = None  # "EINVAL": the kernel could not read the registers
    link_gbyte_s: float | None = (
        None  # what it carries one way now, where speed and width are not distinguished (hwloc)
    )
    link_doubt: str | None = None  # why the source's own numbers describe no link of this machine that was read
    # endpoint | legacy_endpoint | root_port | upstream | downstream | bridge | rciep | rcec
    port_type: str | None = None
    target_link_speed_gt_s: float | None = None  # LnkCtl2
    link_disabled: bool | None = None  # LnkCtl bit 4
    slot_occupied: bool | None = None  # SltSta bit 6, of ports with a slot: presence is detected
    slot_powered: bool | None = None  # SltCtl bit 10, turned round; True too where the slot has no power controller
    link_active: bool | None = None  # LnkSta bit 13, of ports that report it
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
    aer_status: tuple[str, ...] | None = (
        None  # AER: uncorrectable errors whose bit is set, as lspci names them; undated
    )
    bars_bytes: Mapping[str, int] | None = None  # {"0": 16777216, "2": 68719476736}
    config_bytes: int | None = None  # how much of config could be read: 64, 256, 4096
    gone: bool = False  # all-ones: the device does not answer
    vanished: bool = False  # it went away while it was read


class PciFacts(NamedTuple):
    """Every PCI function, sorted by address (numbers as numbers)."""

    functions: tuple[PciFunction, ...]


_AT_ROOT = ("root_port", "rciep", "rcec")
_HOST_BRIDGE = "0x0600"


class PciFunctionBuilder:
    """What one source reported of one function: fields of PciFunction by name, and what only its neighbours can use."""

    __slots__ = ("address", "cut", "fields", "place", "secondary_bus", "virtual_functions")

    def __init__(self, address: str, fields: dict[str, Any] | None = None, place: Place = UNPLACED) -> None:
        self.address = address
        self.fields = {} if fields is None else fields
        self.place = place  # where the source itself shows it
        self.secondary_bus: int | None = None
        self.virtual_functions: VirtualFunctions | None = None
        self.cut = False  # the source may state more of it

    def add(self, other: "PciFunctionBuilder") -> None:
        """Take from another output of the same function what this one does not show."""
        self.fields = other.fields | self.fields
        self.secondary_bus = other.secondary_bus if self.secondary_bus is None else self.secondary_bus
        self.virtual_functions = self.virtual_functions or other.virtual_functions
        self.cut = self.cut and other.cut

    def add_config(self, space: ConfigSpace) -> None:
        """Take over what config space states, beside what is there: see `merge_config`."""
        self.set_merged(merge_config(self.fields, space, reads_link_control_2(space, self.address)), space)

    def set_merged(self, fields: dict[str, Any], space: ConfigSpace) -> None:
        """Fields with those of config space, and what it states of the functions below."""
        self.fields = fields
        self.secondary_bus = space.secondary_bus
        self.virtual_functions = space.virtual_functions


def merge_config(fields: Mapping[str, Any], space: ConfigSpace, with_link_control_2: bool) -> dict[str, Any]:
    """Fields with what config space states. Those that are there already stay: the kernel's word comes first.

    But for the speed that a port is capable of: the kernel takes the highest of LnkCap2, which may list speeds
    that LnkCap, and so the port, does not go to (Thunderbolt bridges, ports that are strapped down).
    """
    config = _config_fields(space, with_link_control_2)
    stated = {name: value for name, value in fields.items() if value is not None}
    if "max_link_speed_gt_s" in config:
        stated["max_link_speed_gt_s"] = config["max_link_speed_gt_s"]
    return {**config, **stated}


def build_functions(drafts: Sequence[PciFunctionBuilder]) -> tuple[PciFunction, ...]:
    """The facts, sorted by address: drafts that no source has placed are placed by bus numbers.

    A function without a driver differs from a source without driver links by the others: where none has a driver,
    nothing is known.
    """
    placed = _places(drafts)
    physical = _physical_functions(drafts)
    driverless = "" if any(draft.fields.get("driver") for draft in drafts) else None
    done = []
    for draft in sorted(drafts, key=lambda draft: address_key(draft.address)):
        fields = draft.fields
        if fields.get("driver") is None and not draft.cut:
            fields["driver"] = driverless
        if fields.get("physical_function") is None:
            fields["physical_function"] = physical.get(draft.address)
        parent, root_bus = placed[draft.address]
        done.append(PciFunction(draft.address, parent, root_bus, **fields))
        draft.fields = {}  # of a large host they are a megabyte
    return tuple(done)


def _places(drafts: Sequence[PciFunctionBuilder]) -> dict[str, Place]:
    placed = {draft.address: draft.place for draft in drafts}
    if all(root_bus for _, root_bus in placed.values()):
        return placed
    bridges = {draft.address: draft.secondary_bus for draft in drafts if draft.secondary_bus}
    at_root = [draft.address for draft in drafts if _sits_at_root(draft)]
    derived = places_from_buses(placed, bridges, at_root)
    return {address: place if place[1] else derived[address] for address, place in placed.items()}


def _sits_at_root(draft: PciFunctionBuilder) -> bool:
    kind, class_code = draft.fields.get("port_type"), draft.fields.get("class_code") or ""
    return kind in _AT_ROOT or class_code.startswith(_HOST_BRIDGE)


def _physical_functions(drafts: Sequence[PciFunctionBuilder]) -> dict[str, str]:
    """Virtual function -> its physical one, by the routing ids of the SR-IOV capability."""
    functions_of = {}
    for draft in drafts:
        virtual = draft.virtual_functions
        if virtual is None or not virtual.offset:
            continue
        for number in range(virtual.enabled):
            address = neighbour(draft.address, virtual.offset + number * virtual.stride)
            if address is None:
                break
            functions_of[address] = draft.address
    return functions_of


@lru_cache(maxsize=512)
def _config_fields(space: ConfigSpace, with_link_control_2: bool) -> Mapping[str, Any]:
    """What is stated at all: most functions of a host have the registers of another one."""
    fields: dict[str, Any] = {
        "config_bytes": space.size,
        "gone": space.gone,
        "class_code": space.class_code,
        "vendor": space.vendor,
        "device": space.device,
        "subsystem_vendor": space.subsystem_vendor,
        "subsystem_device": space.subsystem_device,
        "revision": space.revision,
        "power_state": space.power_state,
        "ats": space.ats_enabled,
        "serial": space.serial,
        "acs_known": space.extended_known or space.acs_control is not None,
    }
    if space.acs_capability is not None and space.acs_control is not None:
        fields["acs"] = Acs(space.acs_capability, space.acs_control)
    if space.virtual_functions is not None:
        fields["virtual_functions"] = space.virtual_functions.enabled
        fields["virtual_functions_supported"] = space.virtual_functions.total
    if space.pcie is not None:
        fields |= space.pcie._asdict()
        if not with_link_control_2:
            fields["target_link_speed_gt_s"] = None
    return {name: value for name, value in fields.items() if value is not None}


def has_link_control_2(port_type: str | None, address: str) -> bool:
    """Whether LnkCtl2 means something: below a link only in function 0 of the device, elsewhere it is reserved."""
    return port_type not in ("endpoint", "legacy_endpoint") or address_key(address)[2:] == (0, 0)


def reads_link_control_2(space: ConfigSpace, address: str) -> bool:
    """The same of a function's config space."""
    return space.pcie is not None and has_link_control_2(space.pcie.port_type, address)
