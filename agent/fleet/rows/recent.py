"""Parts of reports that were seen last: equal bytes are found by comparing them, many times faster than by a hash."""

from __future__ import annotations

from typing import Any

_MOST = 12  # at one place: kinds of nodes that come in turn
_Seen = tuple[
    bytes, bytes | None, Any
]  # what is before a serial number, what is after it (None: it has none), the part


class Recent:
    """By place (of a list of a report, or its name), the newest first."""

    def __init__(self) -> None:
        self._seen: dict[object, list[_Seen]] = {}

    def find(self, place: object, key: bytes) -> tuple[Any, str | None] | None:
        """What was made of equal bytes; and what stands in `key` where those had another serial number."""
        for before, after, part in self._seen.get(place, ()):
            if after is None:
                if key == before:
                    return part, None
            elif key.startswith(before) and key.endswith(after):
                serial = key[len(before) : len(key) - len(after)]
                if serial and b'"' not in serial and b"\\" not in serial:
                    return part, serial.decode()
        return None

    def add(self, place: object, key: bytes, part: Any, serial: tuple[int, int] = (0, 0)) -> None:
        """Remember; `serial`: where its serial number stands, if it has one."""
        start, end = serial
        row = self._seen.setdefault(place, [])
        row.insert(0, (key[:start], key[end:], part) if end else (key, None, part))
        del row[_MOST:]
