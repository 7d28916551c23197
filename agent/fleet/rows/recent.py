"""Parts of reports that were seen last: equal bytes are found by comparing them, many times faster than by a hash.

What differs in serial numbers alone counts as equal, where they stand as `scan` writes them and need no decoding.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
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
_SERIAL_LIMIT = 256
_NEXT = re.compile(rb"[ \t\r\n]*,?[ \t\r\n]*")


class Recent:
    """Texts by place, the newest first."""

    def __init__(self) -> None:
        self._seen: dict[object, list[tuple[bytes, Any]]] = {}

    def find(self, place: object, text: bytes) -> Any:
        """What was made of equal bytes; None: nothing."""
        for known, part in self._seen.get(place, ()):
            if known == text:
                return part
        return None

    def add(self, place: object, text: bytes, part: Any) -> None:
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
    """Whole lists by kind of node, the newest first, with a hole where each serial number stood."""

    def __init__(self) -> None:
        self._seen: dict[object, list[tuple[list[bytes], list[int], Any]]] = {}

    def find(self, kind: object, text: bytes) -> tuple[Any, list[int], list[str]] | None:
        """What was made of such a list, the places in it that have a serial number apart, and these numbers."""
        for pieces, places, result in self._seen.get(kind, ()):
            serials = _serials(text, pieces)
            if serials is not None:
                return result, places, serials
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


def _serials(text: bytes, pieces: list[bytes]) -> list[str] | None:
    serials, at = [], 0
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
    return serials if len(text) == at + len(last) and text.endswith(last) else None


def _serial(text: bytes, start: int) -> str:
    """Letters, digits and dashes up to the closing quote; "": something else."""
    end = text.find(b'"', start, start + _SERIAL_LIMIT)
    serial = text[start:end] if end > start else b""
    return serial.decode() if serial.isalnum() or serial.replace(b"-", b"").isalnum() else ""
