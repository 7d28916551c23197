"""Collects changes one by one and hands them out grouped: what changed alike is one change with many subjects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agent.diff.change import GROUPS, KINDS, Change, ChangedThing, Value


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


def natural(text: str) -> list[tuple[int, str]]:
    """Sorts GPU2 before GPU10.

    >>> sorted(["GPU10", "GPU2"], key=natural)
    ['GPU2', 'GPU10']
    """
    parts: Callable[[str], tuple[int, str]] = lambda part: (len(part), part) if part.isdigit() else (0, part)  # noqa: E731  # one expression
    return [parts(part) for part in re.split(r"([0-9]+)", text)]


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
