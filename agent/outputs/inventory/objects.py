"""The desired objects as plain data. None: the report does not tell, and nothing that an inventory has is replaced.

Lengths are NetBox's (netbox/dcim/models, 4.6): every text here is one printable line that fits its column.
"""

from __future__ import annotations

import msgspec

SCHEMA = "fabricscope.netbox/1"


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, NIC card or NVSwitch in its place.

    `certain`: the model is what the device's driver or firmware says, not a guess by PCI id. `board_serial`: the serial
    is the one on the board; else the PCI Device Serial Number, which is as unique but printed nowhere.
    """

    bay: str
    kind: str  # GPU | NIC | NVSwitch
    position: str | None = None  # the slot's own name, where firmware tells it
    manufacturer: str
    model: str
    part_number: str | None = None
    certain: bool = True
    serial: str | None = None
    board_serial: bool = True
    description: str | None = None  # the other lasting identity: "GPU-<uuid>", "node GUID <guid>"
    ports_known: bool = True  # false: no driver tells the ports, so one that is not listed may still be there


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a NIC. `certain`: its type is what the hardware can do, and not only what is known of it."""

    name: str
    bay: str
    type: str
    certain: bool = True
    speed_kbit_s: int | None = None  # the most that the port can do, not what it runs at
    mac: str | None = None  # "B8:3F:D2:33:9C:BF"
    wwn: str | None = None  # port GUID of InfiniBand, "B8:3F:D2:03:00:76:F9:6B"


class Cable(msgspec.Struct, frozen=True, kw_only=True):
    """Where LLDP says that a port leads."""

    interface: str
    device: str
    ports: list[str]  # names that the far end gives its port: its id, its description


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding as a journal tells it."""

    fingerprint: str
    severity: str
    rule: str
    label: str
    summary: str


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """All that an inventory should hold of one node."""

    schema: str = SCHEMA
    name: str | None = None
    serial: str | None = None
    machine_id: str | None = None
    observed_at: str | None = None
    verdict: str
    modules_known: bool  # the PCI tree was read as a whole: what is not listed is not there
    interfaces_known: bool
    modules: list[Module] = []
    interfaces: list[Interface] = []
    cables: list[Cable] = []
    findings: list[Finding] = []
    not_judged: list[str] = []  # rules that could not be judged: their findings may still stand
