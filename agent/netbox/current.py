"""What NetBox has of a device, as plain data. Field names and shapes: NetBox's serializers, 4.3 to 4.6."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from agent.netbox.trouble import BadAccess

T = TypeVar("T")

TAG = "fabricscope"
FIELDS = ("fabricscope_verdict", "fabricscope_findings")  # custom fields of a device


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever NetBox has: an object with a number."""

    id: int


class Nested(Row, frozen=True, kw_only=True):
    """An object that another one names."""

    name: str | None = None
    slug: str | None = None
    model: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """A value of a list."""

    value: str


class Owned(Row, frozen=True, kw_only=True):
    """What carries tags: ours is what has our tag."""

    tags: list[Nested] = []

    @property
    def ours(self) -> bool:
        """Whether this tool made it (and nobody took it over by taking the tag away)."""
        return any(tag.slug == TAG for tag in self.tags)


class Device(Owned, frozen=True, kw_only=True):
    """dcim/devices."""

    name: str | None = None
    serial: str = ""
    site: Nested | None = None
    custom_fields: dict[str, Any] = {}


class Bay(Owned, frozen=True, kw_only=True):
    """dcim/module-bays."""

    device: Nested
    name: str
    module: Nested | None = None  # the module whose bay it is; None: the device's
    installed_module: Nested | None = None


class Module(Owned, frozen=True, kw_only=True):
    """dcim/modules."""

    device: Nested
    module_bay: Nested
    module_type: Nested
    serial: str = ""
    asset_tag: str | None = None
    description: str = ""


class ModuleType(Owned, frozen=True, kw_only=True):
    """dcim/module-types."""

    manufacturer: Nested
    model: str
    part_number: str = ""


class Peer(msgspec.Struct, frozen=True):
    """The far end of a cable."""

    id: int
    name: str | None = None
    device: Nested | None = None


class Linked(msgspec.Struct, frozen=True):
    """A cable, as an interface names it."""

    id: int


class Interface(Owned, frozen=True, kw_only=True):
    """dcim/interfaces."""

    device: Nested
    name: str
    type: Choice
    module: Nested | None = None
    speed: int | None = None
    wwn: str | None = None
    primary_mac_address: Nested | None = None
    cable: Linked | None = None
    link_peers: list[Peer] = []
    link_peers_type: str | None = None


class MacAddress(Owned, frozen=True, kw_only=True):
    """dcim/mac-addresses."""

    mac_address: str
    assigned_object_type: str | None = None
    assigned_object_id: int | None = None


class Cable(Owned, frozen=True, kw_only=True):
    """dcim/cables."""


class Journal(Owned, frozen=True, kw_only=True):
    """extras/journal-entries."""

    assigned_object_id: int
    comments: str = ""


class CustomField(Row, frozen=True, kw_only=True):
    """extras/custom-fields."""

    name: str
    object_types: list[str] = []


class Holding(msgspec.Struct, kw_only=True):
    """Everything of one device. Empty: a device that is to be made."""

    device: Device | None = None
    bays: list[Bay] = []
    modules: list[Module] = []
    interfaces: list[Interface] = []
    macs: list[MacAddress] = []
    cables: dict[int, Cable] = {}
    journal: Journal | None = None  # the last entry of ours; None also where it was not asked for


class Shared(msgspec.Struct, kw_only=True):
    """What all devices use."""

    tags: list[Nested] = []
    custom_fields: list[CustomField] = []
    manufacturers: list[Nested] = []
    module_types: list[ModuleType] = []
    devices: list[Device] = []  # far ends of cables
    interfaces: list[Interface] = []  # of these


def parsed(kind: type[T], rows: list[dict[str, Any]]) -> list[T]:
    """Rows as `kind`. Raises BadAccess where they are not as documented."""
    try:
        return [msgspec.convert(row, kind) for row in rows]
    except msgspec.ValidationError as error:
        raise BadAccess(f"an answer that is not as NetBox documents {kind.__name__}: {error}") from error
