"""What the NetBox of the tests has, refuses, deletes along, filters by and computes: fields of NetBox 4.6
(netbox/dcim/models), the rest measured on a real NetBox 4.6.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.agent.netbox.store import Store


Row = dict[str, Any]
TYPES = re.compile(r"other|virtual|lag|bridge|infiniband-[a-z]+|[0-9.]+[gt]?base-x-[a-z0-9-]+", re.ASCII)
KINDS = ("info", "success", "warning", "danger")
Test = Callable[[Row], bool]
CHOICE = "Select a valid choice. {} is not one of the available choices."


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(body)
        self.status, self.body = status, body


class Table(NamedTuple):
    """An endpoint. `texts`: fields and their lengths; `links`: fields that name rows of other endpoints."""

    name: str  # as messages call it
    texts: dict[str, int] = {}  # noqa: RUF012
    links: dict[str, str] = {}  # noqa: RUF012
    others: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()  # alone
    brief: tuple[str, ...] = ("id", "name")
    exact: tuple[str, ...] = ()  # filters that tell capitals from small letters


TABLES = {
    "dcim/sites": Table("site", {"name": 100, "slug": 100}, unique=("name", "slug"), brief=("id", "name", "slug")),
    "dcim/device-roles": Table("device role", {"name": 100, "slug": 100}, unique=("name", "slug")),
    "dcim/manufacturers": Table(
        "manufacturer",
        {"name": 100, "slug": 100},
        needed=("name", "slug"),
        unique=("name", "slug"),
        brief=("id", "name", "slug"),
        exact=("name", "slug"),
    ),
    "dcim/device-types": Table("device type", {"model": 100, "slug": 100}, {"manufacturer": "dcim/manufacturers"}),
    "dcim/module-types": Table(
        "module type",
        {"model": 100, "part_number": 50},
        {"manufacturer": "dcim/manufacturers"},
        needed=("manufacturer", "model"),
        brief=("id", "model", "manufacturer"),
        exact=("model", "part_number"),
    ),
    "dcim/devices": Table(
        "device",
        {"name": 64, "serial": 50},
        {"site": "dcim/sites", "role": "dcim/device-roles", "device_type": "dcim/device-types"},
        ("status", "custom_fields"),
        needed=("site", "role", "device_type"),
    ),
    "dcim/module-bays": Table(
        "module bay",
        {"name": 64, "position": 30},
        {"device": "dcim/devices", "module": "dcim/modules"},
        needed=("device", "name"),
    ),
    "dcim/modules": Table(
        "module",
        {"serial": 50, "asset_tag": 50, "description": 200},
        {"device": "dcim/devices", "module_bay": "dcim/module-bays", "module_type": "dcim/module-types"},
        ("status", "replicate_components"),
        needed=("device", "module_bay", "module_type"),
        brief=("id", "module_bay", "serial", "description"),
    ),
    "dcim/interfaces": Table(
        "interface",
        {"name": 64},
        {"device": "dcim/devices", "module": "dcim/modules", "primary_mac_address": "dcim/mac-addresses"},
        ("type", "speed", "wwn"),
        needed=("device", "name", "type"),
        brief=("id", "name", "device"),
        exact=("name",),
    ),
    "dcim/mac-addresses": Table(
        "MAC address",
        {},
        {},
        ("mac_address", "assigned_object_type", "assigned_object_id"),
        needed=("mac_address",),
        brief=("id", "mac_address"),
    ),
    "dcim/cables": Table("cable", {}, {}, ("a_terminations", "b_terminations", "status"), brief=("id",)),
    "extras/tags": Table(
        "tag", {"name": 100, "slug": 100, "description": 200}, {}, ("color",), unique=("name", "slug")
    ),
    "extras/custom-fields": Table(
        "custom field",
        {"name": 50, "label": 50, "description": 200},
        {},
        ("type", "object_types", "ui_editable"),
        unique=("name",),
    ),
    "extras/journal-entries": Table(
        "journal entry",
        {"comments": 1 << 20},
        {},
        ("assigned_object_type", "assigned_object_id", "kind"),
        needed=("assigned_object_type", "assigned_object_id", "comments"),
    ),
}


def errors(store: Store, path: str, row: Row | None, body: Row) -> Iterator[tuple[str, str]]:
    """What is wrong with an object by itself, by field; "__all__" is the object as a whole."""
    table = TABLES[path]
    now = {**(row or {}), **body}
    for field in table.needed if row is None else ():
        if field not in body:
            yield field, "This field is required."
    for field, most in table.texts.items():
        value = body.get(field)
        if isinstance(value, str) and len(value) > most:
            yield field, f"Ensure this field has no more than {most} characters."
        if isinstance(value, str) and "\x00" in value:
            yield field, "Null characters are not allowed."
        if field in table.needed and isinstance(value, str) and not value.strip():
            yield field, "This field may not be blank."
    if isinstance(body.get("slug"), str) and not re.fullmatch(r"[-a-zA-Z0-9_]+", body["slug"]):
        yield "slug", 'Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.'
    for field in table.unique:
        if field in body and any(item["id"] != now.get("id") for item in store.each(path, **{field: body[field]})):
            yield field, f"{table.name} with this {field} already exists."
    for field, there in table.links.items():
        value = body.get(field)
        if value is not None and value not in store.tables[there]:
            yield field, f"Related object not found using the provided numeric ID: {value}"
    slugs = {row["slug"] for row in store.rows("extras/tags")}
    for tag in body.get("tags", ()):
        if tag["slug"] not in slugs:
            yield "tags", f"Related object not found using the provided attributes: {tag}"
    yield from _own(store, path, now, body)


def _own(store: Store, path: str, now: Row, body: Row) -> Iterator[tuple[str, str]]:
    others = [row for row in store.rows(path) if row["id"] != now.get("id")]
    if path == "dcim/devices":
        if any((other["name"] or "").lower() == (now.get("name") or "").lower() for other in others):
            yield "__all__", "Device name must be unique per site."
        known = {row["name"] for row in store.rows("extras/custom-fields") if "dcim.device" in row["object_types"]}
        for name in set(body.get("custom_fields", ())) - known:
            yield "custom_fields", f"Custom field '{name}' does not exist for this object type."
    if path == "dcim/interfaces":
        if body.get("type") is not None and not TYPES.fullmatch(body["type"]):
            yield "type", f"{body['type']} is not a valid choice."
        if any((other["device"], other["name"]) == (now["device"], now["name"]) for other in others):
            yield "__all__", "Interface with this Device and Name already exists."
        if body.get("wwn") and not re.fullmatch(r"([0-9A-Fa-f]{2}:){7}[0-9A-Fa-f]{2}", body["wwn"]):
            yield "wwn", f"Invalid WWN format: {body['wwn']}"
        mac = store.tables["dcim/mac-addresses"].get(body.get("primary_mac_address") or 0)
        if mac and mac["assigned_object_id"] != now.get("id"):
            yield "primary_mac_address", f"MAC address {mac['mac_address']} is assigned to a different interface."
    if path == "dcim/mac-addresses" and not re.fullmatch(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", now["mac_address"]):
        yield "mac_address", f"Invalid MAC address format: {now['mac_address']}"
    if path == "dcim/modules":
        bay = store.tables["dcim/module-bays"].get(now.get("module_bay") or 0)
        if bay and bay["device"] != now.get("device"):
            yield "__all__", "Module must be installed within a module bay belonging to the assigned device."
    if path == "dcim/module-types":
        same = (now.get("manufacturer"), now.get("model"))
        if any((other["manufacturer"], other["model"]) == same for other in others):
            yield "__all__", "Module type with this Manufacturer and Model already exists."
    if path == "dcim/cables":
        for end in _ends(now):
            for other in others:
                if end in _ends(other):
                    yield "__all__", f"Duplicate termination found for dcim.interface {end}: cable {other['id']}"
    if path == "extras/journal-entries":
        if now["assigned_object_id"] not in store.tables["dcim/devices"]:
            yield "non_field_errors", f"Invalid assigned_object: DCIM > Device ID {now['assigned_object_id']}"
        if now.get("kind") not in (None, *KINDS):
            yield "kind", f"{now['kind']} is not a valid choice."


def check_together(store: Store, path: str, rows: list[Row]) -> None:
    """What the database refuses, and nobody looked at before: an exception in NetBox, and an answer that says so."""
    if path == "dcim/modules":
        for row in rows:
            if len(list(store.each(path, module_bay=row["module_bay"]))) > 1:
                why = 'duplicate key value violates unique constraint "dcim_module_module_bay_id_key"'
                raise Refused(
                    500, {"error": f"{why}\nDETAIL: ..", "exception": "IntegrityError", "netbox_version": "4.6.8"}
                )
    if path == "dcim/interfaces":
        names = [(row["device"], row["name"]) for row in store.rows(path)]
        if len(set(names)) < len(names):
            raise Refused(500, {"error": "duplicate key value", "exception": "IntegrityError"})


def hanging_on(store: Store, path: str, number: int) -> Iterator[tuple[str, int]]:
    """What is deleted along. A cable is not: it stays at its other end."""
    if path == "dcim/module-bays":
        yield from (("dcim/modules", row["id"]) for row in list(store.each("dcim/modules", module_bay=number)))
    if path == "dcim/modules":
        yield from (("dcim/interfaces", row["id"]) for row in list(store.each("dcim/interfaces", module=number)))
    if path == "dcim/interfaces":
        same = {"assigned_object_type": "dcim.interface", "assigned_object_id": number}
        yield from (("dcim/mac-addresses", row["id"]) for row in list(store.each("dcim/mac-addresses", **same)))


def check_unused(store: Store, path: str, number: int) -> None:
    """A type with modules of it stays."""
    if path == "dcim/module-types" and any(store.each("dcim/modules", module_type=number)):
        raise Refused(409, {"detail": "Unable to delete object. 1 dependent objects were found: .."})


def filters(store: Store, path: str, name: str, values: list[str]) -> Test | None:
    """What one filter lets through. Raises Refused where it names a row that is not there."""
    table = TABLES[path]
    if name == "id" or name == "assigned_object_id":
        return lambda row: str(row[name]) in values
    if name == "device_id":
        if path == "dcim/mac-addresses":
            own = {row["id"] for row in store.rows("dcim/interfaces") if str(row["device"]) in values}
            return lambda row: row["assigned_object_id"] in own
        _check_choices(name, values, {str(number) for number in store.tables["dcim/devices"]})
        return lambda row: str(row["device"]) in values
    if name == "tag":
        slugs = {row["slug"]: row["id"] for row in store.rows("extras/tags")}
        _check_choices(name, values, set(slugs))
        return lambda row: all(slugs[value] in row["tags"] for value in values)
    if name in ("site", "manufacturer"):
        there = {row["slug"]: row["id"] for row in store.rows(table.links[name])}
        _check_choices(name, values, set(there))
        return lambda row: row[name] in [there[value] for value in values]
    field, _, how = name.partition("__")
    if field not in table.texts and field != "assigned_object_type":
        return None
    if how == "ie" or field not in table.exact:
        small = [value.lower() for value in values]
        return lambda row: (row[field] or "").lower() in small
    return lambda row: row[field] in values


def _check_choices(name: str, values: list[str], known: set[str]) -> None:
    wrong = [value for value in values if value not in known]
    if wrong:
        raise Refused(400, {name: [CHOICE.format(wrong[0])]})


def computed(store: Store, path: str, row: Row) -> dict[str, Any]:
    """Fields that no row holds."""
    if path == "dcim/module-bays":
        inside = next(store.each("dcim/modules", module_bay=row["id"]), None)
        return {"installed_module": store.brief("dcim/modules", inside["id"]) if inside else None}
    if path == "dcim/devices":
        names = [row["name"] for row in store.rows("extras/custom-fields") if "dcim.device" in row["object_types"]]
        return {"custom_fields": {name: row["custom_fields"].get(name) for name in names}}
    if path != "dcim/interfaces":
        return {}
    cable = next((each for each in store.rows("dcim/cables") if row["id"] in _ends(each)), None)
    peers = [end for end in _ends(cable) if end != row["id"] and end in store.tables[path]] if cable else []
    return {
        "cable": {"id": cable["id"]} if cable else None,
        "link_peers": [store.brief(path, end) for end in peers],
        "link_peers_type": "dcim.interface" if peers else None,
    }


def _ends(cable: Row) -> list[int]:
    sides = (cable.get("a_terminations") or []) + (cable.get("b_terminations") or [])
    return [end["object_id"] for end in sides if end["object_type"] == "dcim.interface"]
