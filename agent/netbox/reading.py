"""From NetBox to plain data: what it has of some devices, and of what they share, in as few requests as can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from agent.netbox.asking import IN_ADDRESS, Client
from agent.netbox.current import (
    FIELDS,
    TAG,
    Bay,
    Cable,
    CustomField,
    Device,
    Holding,
    Interface,
    Journal,
    MacAddress,
    Module,
    ModuleType,
    Nested,
    Row,
    Shared,
    parsed,
)
from agent.netbox.journal import opened
from agent.netbox.matching import names_of
from agent.outputs.inventory.fields import make_slug
from agent.outputs.inventory.objects import DesiredNode

T = TypeVar("T", bound=Row)


def devices_like(client: Client, nodes: Sequence[DesiredNode], site: str | None) -> list[Device]:
    """Devices with a serial or a name of these nodes."""
    where = {"site": site} if site else {}
    serials = {node.serial for node in nodes if node.serial}
    names = {name for node in nodes for name in names_of(node)}
    same = _rows(client, "device", Device, "serial", serials, **where)
    return _once(same + _rows(client, "device", Device, "name", names, **where))


def holdings(client: Client, devices: Sequence[Device]) -> dict[int, Holding]:
    """What NetBox has of each of these devices, but for journals."""
    found = {device.id: Holding(device=device) for device in devices}
    for bay in _rows(client, "module bay", Bay, "device_id", found):
        if bay.module is None:  # bays of modules are theirs
            found[bay.device.id].bays.append(bay)
    for module in _rows(client, "module", Module, "device_id", found):
        found[module.device.id].modules.append(module)
    owners: dict[int, Holding] = {}
    for interface in _rows(client, "interface", Interface, "device_id", found):
        owner = owners[interface.id] = found[interface.device.id]
        owner.interfaces.append(interface)
    for mac in _rows(client, "MAC address", MacAddress, "device_id", found):
        if mac.assigned_object_type == "dcim.interface" and mac.assigned_object_id in owners:
            owners[mac.assigned_object_id].macs.append(mac)
    cables = {each.cable.id: owner for owner in found.values() for each in owner.interfaces if each.cable}
    for cable in _rows(client, "cable", Cable, "id", cables):
        cables[cable.id].cables[cable.id] = cable
    return found


def shared(client: Client, nodes: Sequence[DesiredNode], found: Iterable[Holding]) -> Shared:
    """Tags, fields, makers, types (those that devices want, and those of modules of ours), and far ends of cables."""
    modules = [module for node in nodes for module in node.modules]
    makers = {module.manufacturer for module in modules}
    models = {module.model for module in modules}
    used = {module.module_type.id for holding in found for module in holding.modules if module.ours}
    made = Shared(
        tags=_rows(client, "tag", Nested, "slug", {TAG}),
        custom_fields=_rows(client, "custom field", CustomField, "name", FIELDS),
        manufacturers=_once(
            _rows(client, "manufacturer", Nested, "name__ie", makers)
            + _rows(client, "manufacturer", Nested, "slug", {make_slug(name) for name in makers})
        ),
        module_types=_once(
            _rows(client, "module type", ModuleType, "model", models)
            + _rows(client, "module type", ModuleType, "part_number", models)
            + _rows(client, "module type", ModuleType, "id", used)
        ),
    )
    cables = [cable for node in nodes for cable in node.cables]
    switches = {name for cable in cables for name in (cable.device, cable.device.partition(".")[0])}
    made.devices = _rows(client, "device", Device, "name", switches)
    ports = sorted({port for cable in cables for port in cable.ports})
    for at in range(0, len(ports), IN_ADDRESS):
        some = ports[at : at + IN_ADDRESS]
        ids = {device.id for device in made.devices}
        made.interfaces += _rows(client, "interface", Interface, "device_id", ids, name__ie=some)
    return made


def with_journals(client: Client, found: Iterable[Holding]) -> None:
    """Add the last entry of ours to each of these devices."""
    by_id = {holding.device.id: holding for holding in found if holding.device}
    about = {"assigned_object_type": "dcim.device", "tag": TAG}
    for entry in _rows(client, "journal entry", Journal, "assigned_object_id", by_id, **about):  # by id: in time
        if opened(entry.comments) is not None:
            by_id[entry.assigned_object_id].journal = entry


def _once(rows: Sequence[T]) -> list[T]:
    return list({row.id: row for row in rows}.values())


def _rows(client: Client, kind: str, made: type[T], field: str, values: Iterable[Any], **others: Any) -> list[T]:
    """Rows with one of many values, in requests that fit an address; of each, only the fields that are looked at."""
    wanted = sorted(values)
    rows: list[T] = []
    for at in range(0, len(wanted), IN_ADDRESS):
        some = {field: wanted[at : at + IN_ADDRESS]}
        rows += parsed(made, client.read(kind, fields=",".join(made.__struct_fields__), **some, **others))
    return rows
