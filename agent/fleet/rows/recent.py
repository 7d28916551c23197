"""Parts of reports that were seen last: equal bytes are found by comparing them, many times faster than by a hash.

What differs in serial numbers alone counts as equal, where they stand as `scan` writes them and need no decoding.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


class DamagedPart(Exception):
    """A part of a report that is not what the schema states; the message states where and what."""


def once(keys: Sequence[_Key], where: str, what: str = "an id") -> frozenset[_Key]:
    """What distinguishes the members of a list. Raises DamagedPart where two have the same."""
    distinct = frozenset(keys)
    if len(distinct) != len(keys):
        raise DamagedPart(f"{what} appears twice - in {where}")
    return distinct


def decode_part(decoder: Decoder[_T], raw: Raw | bytes, where: str, place: int | None = None) -> _T:
    """Raises DamagedPart."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedPart(f"{error} - in {where}{'' if place is None else f'[{place}]'}") from error


_MOST = 12  # at one place: kinds of nodes that come in turn
_SLACK = 4096  # bytes by which a list may stand elsewhere than in an earlier report
_SERIAL_LIMIT = 256
_NEXT = re.compile(rb"[ \t\r\n]*,?[ \t\r\n]*")


class Recent:
    """Texts, or values that cannot be hashed, by place, the newest first."""

    def __init__(self) -> None:
        self._seen: dict[object, list[tuple[object, Any]]] = {}

    def find(self, place: object, text: object) -> Any:
        """What was made of equal bytes or values; None: nothing."""
        seen = self._seen.get(place, ())
        for known, part in seen:
            if known is text:  # what was cut out: others would be compared with it up to their first difference
                return part
        for known, part in seen:
            if known == text:
                return part
        return None

    def add(self, place: object, text: object, part: Any) -> None:
        """Remember."""
        row = self._seen.setdefault(place, [])
        row.insert(0, (text, part))
        del row[_MOST:]


class Hit(NamedTuple):
    """A member of a list that was seen before."""

    part: Any
    end: int  # where its text ends
    serial: str | None  # None: it has none, or none apart


class Members:
    """Objects of a list by place, the newest first: found while going through the list's text.

    A whole JSON object that is where one begins is that object: none is a part of another's beginning.
    """

    def __init__(self) -> None:
        self._seen: dict[object, list[tuple[bytes, bytes, Any]]] = {}

    def find(self, place: object, text: bytes, at: int) -> Hit | None:
        """The member that begins at `at`."""
        for before, after, part in self._seen.get(place, ()):
            if text.startswith(before, at):
                start = at + len(before)
                if not after:
                    return Hit(part, start, None)
                serial = _serial(text, start)
                if serial and text.startswith(after, start + len(serial)):
                    return Hit(part, start + len(serial) + len(after), serial)
        return None

    def add(self, place: object, member: bytes, part: Any, hole: tuple[int, int]) -> None:
        """Remember; `hole`: where its serial number stands (serial_place)."""
        start, end = hole
        row = self._seen.setdefault(place, [])
        row.insert(0, (member[:start], member[end:], part) if end else (member, b"", part))
        del row[_MOST:]


class Lists:
    """Whole lists by kind of node, what was seen last first, with a hole where each serial number stood."""

    def __init__(self) -> None:
        self._seen: dict[object, list[tuple[list[bytes], list[int], Any]]] = {}

    def find(self, kind: object, text: bytes, at: int = 0) -> tuple[Any, list[int], list[str], int] | None:
        """The list that begins at `at`: what was made of such a one, the places in it that have a serial number apart,
        these numbers, and where it ends."""
        seen = self._seen.get(kind, [])
        for order, (pieces, places, result) in enumerate(seen):
            hit = _serials(text, pieces, at)
            if hit is not None:
                if order:  # what most nodes have is compared first
                    seen.insert(0, seen.pop(order))
                return result, places, *hit
        return None

    def add(self, kind: object, text: bytes, holes: Sequence[tuple[int, int, int]], result: Any) -> None:
        """Remember; `holes`: place of a member in the list, start and end of its serial number in the text."""
        pieces, at = [], 0
        for _, start, end in holes:
            pieces.append(text[at:start])
            at = end
        row = self._seen.setdefault(kind, [])
        row.insert(0, ([*pieces, text[at:]], [place for place, _, _ in holes], result))
        del row[_MOST:]


Find = Callable[[object, bytes, int], "tuple[Any, int] | None"]


class Cut(NamedTuple):
    """A report without the lists that are known. After a name and its colon stands a value, and a whole JSON list where
    a value begins is that value: what is left is JSON exactly where the report is, with `HOLE` as value of each."""

    text: bytes
    known: Mapping[str, Any]  # by name of a list, what was found


HOLE = b'["' + os.urandom(16).hex().encode() + b'"]'  # no report can have one by itself


def is_hole(value: Raw) -> bool:
    """Whether a list was cut out there."""
    return len(value) == len(HOLE) and bytes(value) == HOLE


class Cutter:
    """Takes lists out of reports where earlier ones had them: to skip them would cost more than all that is decoded.

    `finders`: by name, in their order in a report, what finds a known list of a kind at a place, and where it ends.
    `series`: of these the name that several lists have; their kind is that name and which of them it is.
    """

    def __init__(self, finders: Mapping[str, Find], series: str = "") -> None:
        self._finders = {name: (b'"%s":' % name.encode(), find) for name, find in finders.items()}
        self._places: dict[str, list[tuple[int, object]]] = {name: [] for name in finders}
        self._series = series

    def cut(self, text: bytes) -> Cut:
        """Without the lists that are found."""
        parts: list[bytes | memoryview] = []
        known: dict[str, Any] = {}
        view, at = memoryview(text), 0
        for name, (key, find) in self._finders.items():
            if name == self._series:
                if at:
                    known[name] = list[Any]()
                    at = self._cut_series(text, at, parts, known[name])
                continue
            for place, kind in self._places[name]:
                near = place if place >= 0 else len(text) + place
                start = _find_value(text, key, max(at, near - _SLACK), near + _SLACK)
                hit = find(kind, text, start) if start else None
                if hit is not None:
                    known[name], end = hit
                    parts += (view[at:start], HOLE)
                    at = end
                    break
        return Cut(b"".join((*parts, view[at:])) if parts else text, known)

    def _cut_series(self, text: bytes, at: int, parts: list[bytes | memoryview], hits: list[Any]) -> int:
        """Lists of one name, one after the other behind what was cut out: what is found, and where the last ends."""
        key, find = self._finders[self._series]
        view, place, start = memoryview(text), 0, _find_value(text, key, at, at + 2 * _SLACK)
        while start:
            hit = find((self._series, place), text, start)
            if hit is not None:
                part, end = hit
                hits.append(part)
                parts += (view[at:start], HOLE)
                at = start = end
            place, start = place + 1, _find_value(text, key, start, start + 2 * _SLACK)
        return at

    def learn(self, name: str, kind: object, text: bytes, value: bytes) -> None:
        """A list that was found, and was not cut out: where it stands. From the nearer end of the report."""
        places = self._places[name]
        if len(places) >= _MOST:  # what comes at ever other places is not looked for each time
            return
        key, start = self._finders[name][0], 0
        while start := _find_value(text, key, start, len(text)):
            if text.startswith(value, start):
                places.insert(0, (start if 2 * start < len(text) else start - len(text), kind))
                return


def _find_value(text: bytes, key: bytes, start: int, end: int) -> int:
    """Where the value of the next such key begins; 0: nowhere."""
    at = text.find(key, start, end)
    if at < 0:
        return 0
    at += len(key)
    return at + 1 if text.startswith(b" ", at) else at


def following(text: bytes, end: int) -> int:
    """Where the next member begins, or the list ends."""
    if text.startswith(b",{", end):
        return end + 1
    match = _NEXT.match(text, end)
    assert match is not None  # nothing matches, too
    return match.end()


def serial_place(member: bytes, serial: str | None) -> tuple[int, int]:
    """Where the text of its field `serial` is; (0, 0) where it has none, or it cannot be found so."""
    if serial and member.count(b'"serial"') == 1:
        for words in (b'"serial":"', b'"serial": "'):
            start = member.find(words) + len(words)
            if start >= len(words):
                return (start, start + len(serial)) if _serial(member, start) == serial else (0, 0)
    return 0, 0


def _serials(text: bytes, pieces: list[bytes], at: int) -> tuple[list[str], int] | None:
    """The serial numbers between these pieces, and where the last piece ends."""
    serials = []
    for piece in pieces[:-1]:
        if not text.startswith(piece, at):
            return None
        at += len(piece)
        serial = _serial(text, at)
        if not serial:
            return None
        serials.append(serial)
        at += len(serial)
    last = pieces[-1]
    return (serials, at + len(last)) if text.startswith(last, at) else None


def _serial(text: bytes, start: int) -> str:
    """Letters, digits and dashes up to the closing quote; "": something else."""
    end = text.find(b'"', start, start + _SERIAL_LIMIT)
    serial = text[start:end] if end > start else b""
    return serial.decode() if serial.isalnum() or serial.replace(b"-", b"").isalnum() else ""
