"""What parsers of texts share: their one error, and the colours that they take off."""

from __future__ import annotations

import re

ESCAPES = re.compile(r"\x1b\[[0-9;]{0,16}m")  # colours, as tools put them into a terminal's text


class ParseError(ValueError):
    """The text is not what this parser reads; the message says what was expected and what was found."""
