"""What parsers of texts share: their one error, patterns, and the colours that they take off."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """A pattern that is compiled when it is first used. Its methods are then its own."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(re.compile(*self._arguments), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like re.compile, for what few sources hold: a scan imports a hundred patterns, and uses a fifth of them."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


ESCAPES = lazy_pattern(r"\x1b\[[0-9;]{0,16}m")  # colours, as tools put them into a terminal's text


class ParseError(ValueError):
    """The text is not what this parser reads; the message says what was expected and what was found."""
