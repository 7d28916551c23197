"""What changed between two reports, as plain data: `fabricscope.diff/1`."""

from __future__ import annotations

import msgspec

SCHEMA = "fabricscope.diff/1"
GROUPS = ("devices", "links", "software", "settings", "findings", "counters", "evidence")
KINDS = ("gone", "new", "replaced", "moved", "renumbered", "renamed", "changed", "grew", "reset", "lost", "gained")

Value = str | int | float | bool | list[str] | None


class ChangedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that changed: its id in OLD and in NEW (null where it is not there), and what people call it."""

    old: str | None = None
    new: str | None = None
    label: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change, with everything that changed in the same way.

    kind: gone and new are things; replaced is another thing in the same place; moved and renumbered the same thing in
    another place, or in the same place under another address; changed a value; grew and reset a counter; lost a fact
    that only OLD knows; gained one that only NEW knows.
    """

    group: str
    kind: str
    what: str  # "gpu", "width", "mtu", a counter's name, a rule's
    old: Value = None
    new: Value = None
    per_second: float | None = None  # of a counter that grew, where both reports say when they were made
    note: str | None = None
    subjects: list[ChangedThing]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Which report stood on one side."""

    hostname: str | None
    source: str
    observed_at: str | None
    generator: str
    verdict: str


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """All changes, in a fixed order. Notes say how the two were compared; they are no differences themselves."""

    schema: str = SCHEMA
    old: Side
    new: Side
    same_host: bool
    notes: list[str] = []
    changes: list[Change] = []
