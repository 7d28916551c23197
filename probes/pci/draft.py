"""One PCI function while it is being read, and how many of them become facts: places, virtual functions, drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.pci.config_space import ConfigSpace, VirtualFunctions
from probes.pci.facts import Acs, PciFunction
from probes.pci.tree import UNPLACED, Place, address_key, neighbour, places_from_buses

_AT_ROOT = ("root_port", "rciep", "rcec")
_HOST_BRIDGE = "0x0600"


@dataclass(slots=True)
class Draft:
    """What one source said of one function: fields of PciFunction by name, and what only its neighbours can use."""

    address: str
    fields: dict[str, Any] = field(default_factory=dict)
    place: Place = UNPLACED  # where the source itself tells it
    secondary_bus: int | None = None
    virtual_functions: VirtualFunctions | None = None

    def add(self, other: Draft) -> None:
        """Take from another output of the same function what this one does not say."""
        self.fields = other.fields | self.fields
        self.secondary_bus = other.secondary_bus if self.secondary_bus is None else self.secondary_bus
        self.virtual_functions = self.virtual_functions or other.virtual_functions

    def add_config(self, space: ConfigSpace) -> None:
        """Take over what config space says. Fields that are there already stay: the kernel's word comes first.

        But for the speed that a port is capable of: the kernel takes the highest of LnkCap2, which may list speeds
        that LnkCap, and so the port, does not go to (Thunderbolt bridges, ports that are strapped down).
        """
        self.secondary_bus = space.secondary_bus
        self.virtual_functions = space.virtual_functions
        for name, value in _config_fields(space, self.address).items():
            if self.fields.get(name) is None or (name == "max_link_speed_gt_s" and value is not None):
                self.fields[name] = value


def functions(drafts: Sequence[Draft]) -> tuple[PciFunction, ...]:
    """The facts, sorted by address: drafts that no source has placed are placed by bus numbers.

    A function without a driver is told from a source without driver links by the others: where none has a driver,
    nothing is known.
    """
    placed = _places(drafts)
    physical = _physical_functions(drafts)
    driverless = "" if any(draft.fields.get("driver") for draft in drafts) else None
    done = []
    for draft in sorted(drafts, key=lambda draft: address_key(draft.address)):
        fields = draft.fields
        if fields.get("driver") is None:
            fields["driver"] = driverless
        if fields.get("physical_function") is None:
            fields["physical_function"] = physical.get(draft.address)
        parent, root_bus = placed[draft.address]
        done.append(PciFunction(draft.address, parent, root_bus, **fields))
    return tuple(done)


def _places(drafts: Sequence[Draft]) -> dict[str, Place]:
    placed = {draft.address: draft.place for draft in drafts}
    if all(root_bus for _, root_bus in placed.values()):
        return placed
    bridges = {draft.address: draft.secondary_bus for draft in drafts if draft.secondary_bus}
    at_root = [draft.address for draft in drafts if _sits_at_root(draft)]
    derived = places_from_buses(placed, bridges, at_root)
    return {address: place if place[1] else derived[address] for address, place in placed.items()}


def _sits_at_root(draft: Draft) -> bool:
    kind, class_code = draft.fields.get("port_type"), draft.fields.get("class_code") or ""
    return kind in _AT_ROOT or class_code.startswith(_HOST_BRIDGE)


def _physical_functions(drafts: Sequence[Draft]) -> dict[str, str]:
    """Virtual function -> its physical one, by the routing ids of the SR-IOV capability."""
    found = {}
    for draft in drafts:
        virtual = draft.virtual_functions
        if virtual is None or not virtual.offset:
            continue
        for number in range(virtual.enabled):
            address = neighbour(draft.address, virtual.offset + number * virtual.stride)
            if address is None:
                break
            found[address] = draft.address
    return found


def _config_fields(space: ConfigSpace, address: str) -> dict[str, Any]:
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
    return fields | _link_fields(space, address)


def _link_fields(space: ConfigSpace, address: str) -> dict[str, Any]:
    link = space.pcie
    if link is None:
        return {}
    return {
        "port_type": link.port_type,
        "current_link_speed_gt_s": link.speed_gt_s,
        "current_link_width": link.width,
        "max_link_speed_gt_s": link.max_speed_gt_s,
        "max_link_width": link.max_width,
        "target_link_speed_gt_s": link.target_speed_gt_s if has_link_control_2(link.port_type, address) else None,
        "link_disabled": link.link_disabled,
        "max_payload_bytes": link.max_payload_bytes,
        "max_payload_supported_bytes": link.max_payload_supported_bytes,
        "max_read_request_bytes": link.max_read_request_bytes,
        "relaxed_ordering": link.relaxed_ordering,
        "extended_tags": link.extended_tags,
        "extended_tags_supported": link.extended_tags_supported,
        "ten_bit_tags": link.ten_bit_tags,
        "ten_bit_tags_supported": link.ten_bit_tags_supported,
        "aspm": link.aspm,
        "bandwidth_management_status": link.bandwidth_management_status,
        "autonomous_bandwidth_status": link.autonomous_bandwidth_status,
    }


def has_link_control_2(port_type: str | None, address: str) -> bool:
    """Whether LnkCtl2 means something: below a link only in function 0 of the device, elsewhere it is reserved."""
    return port_type not in ("endpoint", "legacy_endpoint") or address_key(address)[2:] == (0, 0)
