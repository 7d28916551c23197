"""The lines of a tool's output, as every reader takes them: of a text that is not too long, without lines that are."""

from __future__ import annotations

from probes.text import MOST_CHARACTERS, check_length


def short_lines(text: str, longest: int, most: int = MOST_CHARACTERS) -> list[str]:
    """Its lines that are shorter than `longest`: patterns are tried on no other. Raises ParseError.

    >>> short_lines("up\\n" + "x" * 9, longest=4)
    ['up']
    """
    return [line for line in check_length(text, most).splitlines() if len(line) < longest]
