"""A difference as what is to be done about it. What is not there yet is named by a key, and gets its id on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

# Kinds of objects by stage, in the order in which things are done: what others need comes first, what is taken away
# before what takes its place
STAGES = {
    "tag": "tag",
    "custom field": "custom field",
    "manufacturer": "manufacturer",
    "module type": "module type",
    "device": "device",
    "prune cable": "cable",
    "prune interface": "interface",
    "prune module": "module",
    "prune module bay": "module bay",
    "module bay": "module bay",
    "move module": "module",
    "module": "module",
    "rename interface": "interface",
    "interface": "interface",
    "MAC address": "MAC address",
    "primary MAC": "interface",
    "cable": "cable",
    "journal entry": "journal entry",
    "verdict": "device",
}


class ObjectRef(NamedTuple):
    """An object by what distinguishes it from others: the device it is of (or ""), and its name there."""

    kind: str
    device_key: str
    name: str


class NetBoxChange(msgspec.Struct, frozen=True):
    """One object to be made, altered or deleted."""

    stage: str
    action: str  # create | update | delete
    device_key: str  # the device's key; "": shared by all
    name: str  # for people, too
    body: dict[str, Any] = {}  # as it is sent; values may be a Ref
    id: int | None = None
    before: dict[str, str] = {}  # for people: what it was, by field
    after: dict[str, str] = {}
    step: int = 0  # within its stage: one after the other
    needs: tuple[ObjectRef, ...] = ()  # not done where a change of one of these failed

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return STAGES[self.stage]

    @property
    def ref(self) -> ObjectRef:
        """What others call it."""
        return ObjectRef(self.kind, self.device_key, self.name)


class PlanNote(NamedTuple):
    """What is reported and not done. `conflict`: NetBox and the node disagree, and a person has to decide."""

    device_key: str
    text: str
    conflict: bool = False


class DiffResult(NamedTuple):
    """Of one device, or of what all share."""

    changes: list[NetBoxChange]
    notes: list[PlanNote]


def resolve_refs(value: Any, ids: dict[ObjectRef, int]) -> Any:
    """A body with ids for names. Raises KeyError with the first Ref that has none."""
    if isinstance(value, ObjectRef):
        return ids[value]
    if isinstance(value, dict):
        return {name: resolve_refs(item, ids) for name, item in value.items()}
    if isinstance(value, list):
        return [resolve_refs(item, ids) for item in value]
    return value


class OrderedMoves(NamedTuple):
    """Moves of (device, place), one after the other; and the devices whose place is held by one that stays."""

    steps: list[tuple[int, str]]
    stuck: list[int]


def order_moves(places: Mapping[int, str], targets: Mapping[int, str], aside: str) -> OrderedMoves:
    """From where each is to where it belongs. `places`: of all, also of those that stay; `aside`: an empty place.

    >>> order_moves({1: "a", 2: "b"}, {1: "b", 2: "a"}, "x")
    OrderedMoves(steps=[(1, 'x'), (2, 'a'), (1, 'b')], stuck=[])
    >>> order_moves({1: "a", 2: "b", 3: "c"}, {1: "b", 2: "c"}, "x")
    OrderedMoves(steps=[], stuck=[2, 1])
    """
    where, place_of = dict(places), {place: who for who, place in places.items()}
    waiting = {who: to for who, to in targets.items() if where.get(who) != to}
    steps: list[tuple[int, str]] = []
    stuck: list[int] = []

    def move(who: int, to: str) -> None:
        place_of.pop(where.get(who, ""), None)
        where[who], place_of[to] = to, who
        steps.append((who, to))

    while waiting:
        free = [who for who, to in waiting.items() if to not in place_of]
        blocked = [who for who, to in waiting.items() if to in place_of and place_of[to] not in waiting]
        if free:
            move(free[0], waiting.pop(free[0]))
        elif blocked:
            stuck += blocked
            waiting = {who: to for who, to in waiting.items() if who not in blocked}
        else:
            move(_find_ring_member(waiting, place_of), aside)
    return OrderedMoves(steps, stuck)


def _find_ring_member(waiting: Mapping[int, str], place_of: Mapping[str, int]) -> int:
    """One of a ring: the place of each is held by another one that waits."""
    who, seen = next(iter(waiting)), set()
    while who not in seen:
        seen.add(who)
        who = place_of[waiting[who]]
    return who
