"""The endpoints that the NetBox of the tests has, with their fields: NetBox 4.6, netbox/dcim/models."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

Row = dict[str, Any]
TYPES = re.compile(r"other|virtual|lag|bridge|infiniband-[a-z]+|[0-9.]+[gt]?base-x-[a-z0-9-]+", re.ASCII)
KINDS = ("info", "success", "warning", "danger")


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
