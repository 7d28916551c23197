"""The lines of a tool's output, as every reader takes them: of a text that is not too long, without lines that are."""

from __future__ import annotations

from probes.text import ParseError

MOST_CHARACTERS = 4 << 20


def check_length(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text itself. Raises ParseError where it is longer than any output of the tool."""
    if len(text) > most:
        raise ParseError(f"longer than {most} characters")
    return text


def short_lines(text: str, longest: int, most: int = MOST_CHARACTERS) -> list[str]:
    """Its lines that are shorter than `longest`: patterns are tried on no other. Raises ParseError.

    >>> short_lines("up\\n" + "x" * 9, longest=4)
    ['up']
    """
    return [line for line in check_length(text, most).splitlines() if len(line) < longest]
