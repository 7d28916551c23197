"""The desired objects of an inventory as plain data, and the cleaning of untrusted text for its columns.

None: unknown, so the inventory's value is not replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from agent.outputs.formatting import clean_line

NAME, MODEL, SERIAL, PART, POSITION, DESCRIPTION, SLUG = 64, 100, 50, 50, 30, 200, 100  # characters
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)


def fit_text(text: str | None, limit: int) -> str | None:
    """A text that a column stores unchanged; None if nothing is left.

    >>> fit_text("  gpu\\n01 ", 64), fit_text(" ", 64), fit_text("x" * 5, 4)
    ('gpu?01', None, 'xxx…')
    """
    fitted = " ".join(clean_line(" ".join((text or "").split(" ")), limit * 2).split())
    return (fitted if len(fitted) <= limit else fitted[: limit - 1].rstrip() + "…") or None


def format_mac(text: str | None) -> str | None:
    """A MAC address in NetBox's format; None for others (an IPoIB address has 20 bytes).

    >>> format_mac("b8:3f:d2:33:9c:bf"), format_mac("00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:4f:4d:df")
    ('B8:3F:D2:33:9C:BF', None)
    """
    return _format_bytes(text, 12)


def format_wwn(text: str | None) -> str | None:
    """A GUID in NetBox's format of a WWN.

    >>> format_wwn("b83f:d203:0076:f96b"), format_wwn("0000:0000:0000:0000")
    ('B8:3F:D2:03:00:76:F9:6B', None)
    """
    return _format_bytes(text, 16)


def _format_bytes(text: str | None, digits: int) -> str | None:
    digits_only = re.sub("[:.-]", "", (text or "").lower())
    if len(digits_only) != digits or not _HEX.fullmatch(digits_only) or not digits_only.strip("0"):
        return None
    return ":".join(digits_only[index : index + 2] for index in range(0, digits, 2)).upper()


def make_slug(text: str) -> str:
    """A slug as NetBox's own pages would make it.

    >>> make_slug("Dell Inc."), make_slug("日本")
    ('dell-inc', 'x')
    """
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower(), flags=re.ASCII).strip("-")
    return slug[:SLUG].strip("-") or "x"


class UniqueNames:
    """Names that are unique within a device: NetBox rejects duplicates."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def assign(self, text: str | None, other: str) -> str:
        """Assign a unique name: the text; if empty or taken, with `other` (an id) appended, then with a number."""
        for name in self._tries(text, other):
            if name.lower() not in self._taken:
                self._taken.add(name.lower())
                return name
        raise AssertionError("unreachable")

    def _tries(self, text: str | None, other: str) -> Iterator[str]:
        fitted = fit_text(text, NAME)
        if fitted:
            yield fitted
        both = fit_text(f"{fitted or ''} {other}", NAME) or "?"
        yield both
        number = 1
        while True:
            number += 1
            yield f"{both[: NAME - 8]} #{number}"


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
