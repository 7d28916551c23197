"""A difference as what is to be done about it. What is not there yet is named by a key, and gets its id on the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

# The order in which things are done: what others need comes first, what is taken away before what takes its place
STAGES = (
    "tag",
    "custom field",
    "manufacturer",
    "module type",
    "device",
    "prune cable",
    "prune interface",
    "prune module",
    "prune module bay",
    "module bay",
    "move module",
    "module",
    "rename interface",
    "interface",
    "MAC address",
    "primary MAC",
    "cable",
    "journal entry",
    "verdict",
)


class Ref(NamedTuple):
    """An object by what tells it from others: the device it is of (or ""), and its name there."""

    kind: str
    of: str
    name: str


class Change(msgspec.Struct, frozen=True):
    """One object to be made, altered or deleted."""

    stage: str
    action: str  # create | update | delete
    kind: str
    of: str  # the device's key; "": shared by all
    name: str  # for people, too
    body: dict[str, Any] = {}  # as it is sent; values may be a Ref
    id: int | None = None
    before: dict[str, str] = {}  # for people: what it was, by field
    after: dict[str, str] = {}
    step: int = 0  # within its stage: one after the other
    needs: tuple[Ref, ...] = ()  # not done where a change of one of these failed

    @property
    def ref(self) -> Ref:
        """What others call it."""
        return Ref(self.kind, self.of, self.name)


class Note(NamedTuple):
    """What is told and not done. `conflict`: NetBox and the node disagree, and a person has to say who is right."""

    of: str
    text: str
    conflict: bool = False


class Differences(NamedTuple):
    """Of one device, or of what all share."""

    changes: list[Change]
    notes: list[Note]


def resolved(value: Any, ids: dict[Ref, int]) -> Any:
    """A body with ids for names. Raises KeyError with the first Ref that has none."""
    if isinstance(value, Ref):
        return ids[value]
    if isinstance(value, dict):
        return {name: resolved(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [resolved(each, ids) for each in value]
    return value
