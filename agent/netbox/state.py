"""What NetBox has of a device, as plain data. Field names and shapes: NetBox's serializers, 4.3 to 4.6."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from agent.netbox.api import VALUES_PER_REQUEST, Client, NetBoxError
from agent.netbox.journal import parse_open_findings
from agent.outputs.inventory.objects import DesiredNode, make_slug

T = TypeVar("T")
R = TypeVar("R", bound="Row")

TAG = "fabricscope"
FIELDS = ("fabricscope_verdict", "fabricscope_findings")  # custom fields of a device


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever NetBox has: an object with a number."""

    id: int


class NestedRow(Row, frozen=True, kw_only=True):
    """An object that another one names."""

    name: str | None = None
    slug: str | None = None
    model: str | None = None


class NetBoxChoice(msgspec.Struct, frozen=True):
    """A value of a list."""

    value: str


class TaggedRow(Row, frozen=True, kw_only=True):
    """What carries tags: ours is what has our tag."""

    tags: list[NestedRow] = []

    @property
    def ours(self) -> bool:
        """Whether this tool made it (and no one took it over by taking the tag away)."""
        return any(tag.slug == TAG for tag in self.tags)


class NetBoxDevice(TaggedRow, frozen=True, kw_only=True):
    """dcim/devices."""

    name: str | None = None
    serial: str = ""
    site: NestedRow | None = None
    custom_fields: dict[str, Any] = {}


class ModuleBay(TaggedRow, frozen=True, kw_only=True):
    """dcim/module-bays."""

    device: NestedRow
    name: str
    module: NestedRow | None = None  # the module whose bay it is; None: the device's
    installed_module: NestedRow | None = None


class NetBoxModule(TaggedRow, frozen=True, kw_only=True):
    """dcim/modules."""

    device: NestedRow
    module_bay: NestedRow
    module_type: NestedRow
    serial: str = ""
    asset_tag: str | None = None
    description: str = ""


class ModuleType(TaggedRow, frozen=True, kw_only=True):
    """dcim/module-types."""

    manufacturer: NestedRow
    model: str
    part_number: str = ""


class CablePeer(msgspec.Struct, frozen=True):
    """The far end of a cable."""

    id: int
    name: str | None = None
    device: NestedRow | None = None


class CableRef(msgspec.Struct, frozen=True):
    """A cable, as an interface names it."""

    id: int


class NetBoxInterface(TaggedRow, frozen=True, kw_only=True):
    """dcim/interfaces."""

    device: NestedRow
    name: str
    type: NetBoxChoice
    module: NestedRow | None = None
    speed: int | None = None
    wwn: str | None = None
    primary_mac_address: NestedRow | None = None
    cable: CableRef | None = None
    link_peers: list[CablePeer] = []
    link_peers_type: str | None = None


class MacAddress(TaggedRow, frozen=True, kw_only=True):
    """dcim/mac-addresses."""

    mac_address: str
    assigned_object_type: str | None = None
    assigned_object_id: int | None = None


class NetBoxCable(TaggedRow, frozen=True, kw_only=True):
    """dcim/cables."""


class JournalRow(TaggedRow, frozen=True, kw_only=True):
    """extras/journal-entries."""

    assigned_object_id: int
    comments: str = ""


class CustomField(Row, frozen=True, kw_only=True):
    """extras/custom-fields."""

    name: str
    object_types: list[str] = []


class NetBoxState(msgspec.Struct, kw_only=True):
    """Everything of one device. Empty: a device that is to be made."""

    device: NetBoxDevice | None = None
    bays: list[ModuleBay] = []
    modules: list[NetBoxModule] = []
    interfaces: list[NetBoxInterface] = []
    macs: list[MacAddress] = []
    cables: dict[int, NetBoxCable] = {}
    journal: JournalRow | None = None  # the last entry of ours; None also where it was not asked for


class SharedState(msgspec.Struct, kw_only=True):
    """What all devices use."""

    tags: list[NestedRow] = []
    custom_fields: list[CustomField] = []
    manufacturers: list[NestedRow] = []
    module_types: list[ModuleType] = []
    devices: list[NetBoxDevice] = []  # far ends of cables
    interfaces: list[NetBoxInterface] = []  # of these


def parse_rows(kind: type[T], rows: list[dict[str, Any]]) -> list[T]:
    """Rows as `kind`. Raises BadAccess where they are not as documented."""
    try:
        return [msgspec.convert(row, kind) for row in rows]
    except msgspec.ValidationError as error:
        raise NetBoxError(f"an answer that is not as NetBox documents {kind.__name__}: {error}") from error


def find_devices(client: Client, nodes: Sequence[DesiredNode], site: str | None) -> list[NetBoxDevice]:
    """Devices with a serial or a name of these nodes."""
    where = {"site": site} if site else {}
    serials = {node.serial for node in nodes if node.serial}
    names = {name for node in nodes for name in node_names(node)}
    same = _read_rows(client, "device", NetBoxDevice, "serial", serials, **where)
    return _deduplicate(same + _read_rows(client, "device", NetBoxDevice, "name", names, **where))


def read_states(client: Client, devices: Sequence[NetBoxDevice]) -> dict[int, NetBoxState]:
    """What NetBox has of each of these devices, but for journals."""
    states = {device.id: NetBoxState(device=device) for device in devices}
    for bay in _read_rows(client, "module bay", ModuleBay, "device_id", states):
        if bay.module is None:  # bays of modules are theirs
            states[bay.device.id].bays.append(bay)
    for module in _read_rows(client, "module", NetBoxModule, "device_id", states):
        states[module.device.id].modules.append(module)
    owners: dict[int, NetBoxState] = {}
    for interface in _read_rows(client, "interface", NetBoxInterface, "device_id", states):
        owner = owners[interface.id] = states[interface.device.id]
        owner.interfaces.append(interface)
    for mac in _read_rows(client, "MAC address", MacAddress, "device_id", states):
        if mac.assigned_object_type == "dcim.interface" and mac.assigned_object_id in owners:
            owners[mac.assigned_object_id].macs.append(mac)
    cables = {
        interface_row.cable.id: owner
        for owner in states.values()
        for interface_row in owner.interfaces
        if interface_row.cable
    }
    for cable in _read_rows(client, "cable", NetBoxCable, "id", cables):
        cables[cable.id].cables[cable.id] = cable
    return states


def read_shared(client: Client, nodes: Sequence[DesiredNode], states: Iterable[NetBoxState]) -> SharedState:
    """Tags, fields, makers, types (those that devices need, and those of modules of ours), and far ends of cables."""
    modules = [module for node in nodes for module in node.modules]
    makers = {module.manufacturer for module in modules}
    models = {module.model for module in modules}
    used = {module.module_type.id for holding in states for module in holding.modules if module.ours}
    shared = SharedState(
        tags=_read_rows(client, "tag", NestedRow, "slug", {TAG}),
        custom_fields=_read_rows(client, "custom field", CustomField, "name", FIELDS),
        manufacturers=_deduplicate(
            _read_rows(client, "manufacturer", NestedRow, "name__ie", makers)
            + _read_rows(client, "manufacturer", NestedRow, "slug", {make_slug(name) for name in makers})
        ),
        module_types=_deduplicate(
            _read_rows(client, "module type", ModuleType, "model", models)
            + _read_rows(client, "module type", ModuleType, "part_number", models)
            + _read_rows(client, "module type", ModuleType, "id", used)
        ),
    )
    cables = [cable for node in nodes for cable in node.cables]
    switches = {name for cable in cables for name in (cable.device, cable.device.partition(".")[0])}
    shared.devices = _read_rows(client, "device", NetBoxDevice, "name", switches)
    ports = sorted({port for cable in cables for port in cable.ports})
    for start in range(0, len(ports), VALUES_PER_REQUEST):
        some = ports[start : start + VALUES_PER_REQUEST]
        ids = {device.id for device in shared.devices}
        shared.interfaces += _read_rows(client, "interface", NetBoxInterface, "device_id", ids, name__ie=some)
    return shared


def add_journals(client: Client, states: Iterable[NetBoxState]) -> None:
    """Add the last entry of ours to each of these devices."""
    by_id = {holding.device.id: holding for holding in states if holding.device}
    about = {"assigned_object_type": "dcim.device", "tag": TAG}
    for entry in _read_rows(
        client, "journal entry", JournalRow, "assigned_object_id", by_id, **about
    ):  # by id: in time
        if parse_open_findings(entry.comments) is not None:
            by_id[entry.assigned_object_id].journal = entry


def _deduplicate(rows: Sequence[R]) -> list[R]:
    return list({row.id: row for row in rows}.values())


def _read_rows(
    client: Client, kind: str, row_type: type[R], field: str, values: Iterable[Any], **others: Any
) -> list[R]:
    """Rows with one of many values, in requests that fit an address; of each, only the fields that are looked at."""
    wanted = sorted(values)
    rows: list[R] = []
    for start in range(0, len(wanted), VALUES_PER_REQUEST):
        some = {field: wanted[start : start + VALUES_PER_REQUEST]}
        rows += parse_rows(row_type, client.read(kind, fields=",".join(row_type.__struct_fields__), **some, **others))
    return rows


def node_names(node: DesiredNode) -> list[str]:
    """What a node may be called: its name, and the first word of a whole domain name."""
    name = node.name or ""
    return [text for text in dict.fromkeys((name, name.partition(".")[0])) if text]
