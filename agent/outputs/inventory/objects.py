"""The desired objects as plain data. None: unknown, so the inventory's value is not replaced.

Lengths are NetBox's (netbox/dcim/models, 4.6): every text here is one printable line that fits its column.
"""

from __future__ import annotations

import msgspec

SCHEMA = "fabricscope.netbox/1"


class InventoryModule(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, NIC card or NVSwitch in its bay.

    `certain`: the model is reported by driver or firmware, not guessed by PCI id. `board_serial`: the serial
    is the one on the board; otherwise the PCI Device Serial Number, which is as unique but not printed anywhere.
    """

    bay: str
    kind: str  # GPU | NIC | NVSwitch
    position: str | None = None  # the slot's name, if firmware reports it
    manufacturer: str
    model: str
    part_number: str | None = None
    certain: bool = True
    serial: str | None = None
    board_serial: bool = True
    description: str | None = None  # another permanent identity: "GPU-<uuid>", "node GUID <guid>"
    ports_known: bool = True  # false: no driver reports the ports, so unlisted ones may exist


class InventoryInterface(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a NIC. `certain`: its type follows the hardware's capability, not only what is known of it."""

    name: str
    bay: str
    type: str
    certain: bool = True
    speed_kbit_s: int | None = None  # maximum of the port, not its current speed
    mac: str | None = None  # "B8:3F:D2:33:9C:BF"
    wwn: str | None = None  # port GUID of InfiniBand, "B8:3F:D2:03:00:76:F9:6B"


class InventoryCable(msgspec.Struct, frozen=True, kw_only=True):
    """The far end of a port as LLDP reports it."""

    interface: str
    device: str
    ports: list[str]  # names of the far end's port: its id, its description


class InventoryFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding as a journal entry."""

    fingerprint: str
    severity: str
    rule: str
    label: str
    summary: str


class DesiredNode(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an inventory should contain for one node."""

    schema: str = SCHEMA
    name: str | None = None
    serial: str | None = None
    machine_id: str | None = None
    observed_at: str | None = None
    verdict: str
    modules_known: bool  # the PCI tree was read completely: unlisted devices do not exist
    interfaces_known: bool
    modules: list[InventoryModule] = []
    interfaces: list[InventoryInterface] = []
    cables: list[InventoryCable] = []
    findings: list[InventoryFinding] = []
    not_judged: list[str] = []  # rules that could not run: their earlier findings may still hold
