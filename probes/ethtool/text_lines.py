"""How `ethtool` prints what it knows: a key, a colon, a value, with any blanks between (ethtool(8))."""

from __future__ import annotations

from collections.abc import Iterator

KEY_CHARACTERS = 80
_BLANKS = " \t\r"


def pair(line: str) -> tuple[str, str] | None:
    r"""Key and value of a line; None where it has no key.

    >>> pair("\tAuto-negotiation: on"), pair("\t\t200000baseCR4/Full")
    (('Auto-negotiation', 'on'), None)
    """
    key, colon, value = line.partition(":")
    key = key.strip(_BLANKS)
    return (key, value.strip(_BLANKS)) if colon and 0 < len(key) <= KEY_CHARACTERS else None


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Of every line that has a key."""
    return (found for line in text.splitlines() if (found := pair(line)) is not None)
