"""What changed between two reports, as plain data: `fabricscope.diff/1`; and where a PCI function physically sits.

Changes are collected one by one and handed out grouped: what changed alike is one change with many subjects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from agent.model.labels import natural
from agent.model.pci import PciFunction

Spot = tuple[str, tuple[str, ...]]  # root bus, ("01.0", "00.0", ...)
DEPTH_LIMIT = 64  # no bus is that deep; a hostile report may go in circles
SCHEMA = "fabricscope.diff/1"
GROUPS = ("devices", "links", "software", "settings", "findings", "counters", "evidence")
KINDS = ("gone", "new", "replaced", "moved", "renumbered", "renamed", "changed", "grew", "reset", "lost", "gained")
Value = str | int | float | bool | list[str] | None


def spots(functions: Sequence[PciFunction]) -> dict[str, Spot]:
    """Spot by id, of those whose way to a root bus is known."""
    rows = {row.id: row for row in functions}
    spots_by_id: dict[str, Spot] = {}
    for row in functions:
        way: list[str] = []
        at: PciFunction | None = row
        while at is not None and len(way) < DEPTH_LIMIT:
            way.append(at.id.rpartition(":")[2])
            if at.parent is None or at.parent not in rows:
                break
            at = rows[at.parent]
        root = at.root_bus if at is not None else None
        if root and len(way) < DEPTH_LIMIT:
            spots_by_id[row.id] = (root, tuple(reversed(way)))
    return spots_by_id


def roots(old: Mapping[str, Spot], new: Mapping[str, Spot], same: Mapping[str, str]) -> dict[str, str]:
    """Which root bus of NEW is which of OLD, by the devices known to be the same (`same`: ids of OLD to ids of NEW).

    Where all root buses are still there, each is itself. Else one that is gone is the new one that all its devices
    hang from now.
    """
    before, after = {root for root, _ in old.values()}, {root for root, _ in new.values()}
    mapped = {root: root for root in before & after}
    if before == after:
        return mapped
    votes: dict[str, set[str]] = {}
    for a, b in same.items():
        if a in old and b in new and old[a][1] == new[b][1]:
            votes.setdefault(old[a][0], set()).add(new[b][0])
    unanimous = {root: next(iter(voted)) for root, voted in votes.items() if len(voted) == 1}
    if len(set(unanimous.values())) == len(unanimous) and any(root not in after for root in unanimous):
        taken = set(unanimous.values())
        mapped = {a: b for a, b in mapped.items() if a in unanimous or b not in taken} | unanimous
    return mapped


def slot_name(ident: str, slot: str | None) -> str:
    """A place for people: the slot's label where the firmware has one, and the address without the function.

    >>> slot_name("0000:19:00.0", "21")
    'slot 21 (0000:19:00)'
    """
    address = ident.rpartition(".")[0] or ident
    return f"slot {slot} ({address})" if slot else address


class ChangedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that changed: its id in OLD and in NEW (null where it is not there), and what people call it."""

    old: str | None = None
    new: str | None = None
    label: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change, with everything that changed in the same way.

    kind: gone and new are things; replaced is another thing in the same place; moved and renumbered the same thing in
    another place, or in the same place under another address; changed a value; grew and reset a counter; lost a fact
    of OLD only; gained one of NEW only.
    """

    group: str
    kind: str
    what: str  # "gpu", "width", "mtu", a counter's name, a rule's
    old: Value = None
    new: Value = None
    per_second: float | None = None  # of a counter that grew, where both reports state when they were made
    note: str | None = None
    subjects: list[ChangedThing]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Which report stood on one side."""

    hostname: str | None
    source: str
    observed_at: str | None
    generator: str
    verdict: str  # the report's own, without the other one as a baseline
    missing: list[str] = []  # labels of GPUs and NICs that the other report of this host has and this one has not


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """All changes, in a fixed order. Notes state how the two were compared; they are no differences themselves."""

    schema: str = SCHEMA
    old: Side
    new: Side
    same_host: bool
    notes: list[str] = []
    changes: list[Change] = []


class _Key(NamedTuple):
    group: str
    kind: str
    what: str
    old: Value
    new: Value
    per_second: float | None
    note: str | None


class Ledger:
    """Everything that was found so far."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[_Key, dict[ChangedThing, None]]] = {}
        self._unknown: dict[tuple[str, str, ChangedThing], list[str]] = {}

    def add(
        self,
        group: str,
        kind: str,
        what: str,
        place: ChangedThing,
        old: Value = None,
        new: Value = None,
        per_second: float | None = None,
        note: str | None = None,
    ) -> None:
        """One change of one subject."""
        key = _Key(group, kind, what, old, new, per_second, note)
        self._found.setdefault(repr(key), (key, {}))[1][place] = None

    def compare(
        self, group: str, what: str, place: ChangedThing, old: Value, new: Value, note: str | None = None
    ) -> None:
        """A value on both sides. None is unknown: a fact lost or gained, and no change of the machine."""
        if old == new:
            return
        if old is None or new is None:
            self.unknown("gained" if old is None else "lost", what, place)
        else:
            self.add(group, "changed", what, place, old, new, note=note)

    def fields(self, place: ChangedThing, old: Any, new: Any, groups: Mapping[str, str], prefix: str = "") -> None:
        """Fields of the same name on two rows, each with the group that it belongs to."""
        for name, group in groups.items():
            self.compare(group, prefix + name, place, plain(getattr(old, name)), plain(getattr(new, name)))

    def unknown(self, kind: str, what: str, place: ChangedThing) -> None:
        """A fact of one side only."""
        self._unknown.setdefault((kind, subject_kind(place), place), []).append(what)

    def have_both(self, what: str, place: ChangedThing, old: object, new: object) -> bool:
        """Whether both sides have a part; where one of them has, it is a fact of that side only."""
        if bool(old) != bool(new):
            self.unknown("lost" if old else "gained", what, place)
        return bool(old and new)

    def changes(self) -> list[Change]:
        """In the order of the groups, kinds, names and subjects."""
        for (kind, _, place), names in self._unknown.items():
            self.add("evidence", kind, ", ".join(sorted(set(names))), place)
        self._unknown.clear()
        changes = [
            Change(**key._asdict(), subjects=sorted(places, key=lambda place: (natural(place.label), repr(place))))
            for key, places in self._found.values()
        ]
        return sorted(changes, key=_order)


def subject_kind(place: ChangedThing) -> str:
    """What kind of thing a subject is.

    >>> subject_kind(ChangedThing(old="gpu:0000:19:00.0", label="GPU0"))
    'gpu'
    """
    return (place.old or place.new or "").partition(":")[0]


def plain(value: Any) -> Value:
    """A field of a row as a value of a change: maps and lists as lists of words."""
    if isinstance(value, dict):
        return [f"{key}={plain(item)}" for key, item in sorted(value.items())]
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _order(change: Change) -> tuple[Any, ...]:
    first = change.subjects[0]
    return (
        GROUPS.index(change.group),
        KINDS.index(change.kind),
        subject_kind(first) == "pair",  # paths follow from links
        subject_kind(first),
        natural(change.what),
        natural(first.label),
        repr(change),
    )
