"""The one error of every text parser."""

from __future__ import annotations


class Unparsable(ValueError):
    """The text is not what this parser reads; the message says what was expected and what was found."""
