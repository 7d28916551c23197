"""Untrusted text made fit for an inventory's columns: one printable line, of bounded length, without blanks to trim."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.outputs.formatting import line

NAME, MODEL, SERIAL, PART, POSITION, DESCRIPTION, SLUG = 64, 100, 50, 50, 30, 200, 100  # characters
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)


def fit(text: str | None, limit: int) -> str | None:
    """The text as a column takes it and gives it back; None where nothing is left.

    >>> fit("  gpu\\n01 ", 64), fit(" ", 64), fit("x" * 5, 4)
    ('gpu?01', None, 'xxx…')
    """
    said = " ".join(line(" ".join((text or "").split(" ")), limit * 2).split())
    return (said if len(said) <= limit else said[: limit - 1].rstrip() + "…") or None


def mac(text: str | None) -> str | None:
    """A MAC address as NetBox writes it; None for what is none (an IPoIB address has 20 bytes).

    >>> mac("b8:3f:d2:33:9c:bf"), mac("00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:4f:4d:df")
    ('B8:3F:D2:33:9C:BF', None)
    """
    return _bytes(text, 12)


def wwn(text: str | None) -> str | None:
    """A GUID as NetBox writes a WWN.

    >>> wwn("b83f:d203:0076:f96b"), wwn("0000:0000:0000:0000")
    ('B8:3F:D2:03:00:76:F9:6B', None)
    """
    return _bytes(text, 16)


def _bytes(text: str | None, digits: int) -> str | None:
    said = re.sub("[:.-]", "", (text or "").lower())
    if len(said) != digits or not _HEX.fullmatch(said) or not said.strip("0"):
        return None
    return ":".join(said[at : at + 2] for at in range(0, digits, 2)).upper()


def slug(text: str) -> str:
    """A name as NetBox's own pages would put it into an address.

    >>> slug("Dell Inc."), slug("日本")
    ('dell-inc', 'x')
    """
    said = re.sub(r"[^a-z0-9]+", "-", text.lower(), flags=re.ASCII).strip("-")
    return said[:SLUG].strip("-") or "x"


class Names:
    """Names that nobody else of the device has: NetBox refuses a second one."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def own(self, text: str | None, other: str) -> str:
        """The text as a name; where it is empty or taken, with `other` (an id) behind it, and a number at last."""
        for name in self._tries(text, other):
            if name.lower() not in self._taken:
                self._taken.add(name.lower())
                return name
        raise AssertionError("unreachable")

    def _tries(self, text: str | None, other: str) -> Iterator[str]:
        said = fit(text, NAME)
        if said:
            yield said
        both = fit(f"{said or ''} {other}", NAME) or "?"
        yield both
        number = 1
        while True:
            number += 1
            yield f"{both[: NAME - 8]} #{number}"
