"""What parsers of texts share: their one error, patterns, and the colours that they take off."""

from __future__ import annotations

import codecs
import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """A pattern that is compiled when it is first used. Its methods are then its own."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.arguments = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(re.compile(*self.arguments), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like re.compile, for what few sources hold: a scan imports a hundred patterns, and uses a fifth of them."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))


_BYTE_ORDER_MARKS = (  # the longer first: that of UTF-32 begins as that of UTF-16 does
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_saved(content: bytes) -> str:
    """Text that somebody saved: UTF-8, or what its byte order mark says (PowerShell and editors of Windows write one).

    >>> decode_saved(b"\\xff\\xfeG\\x00P\\x00U\\x00"), decode_saved(b"\\xef\\xbb\\xbfGPU")
    ('GPU', 'GPU')
    """
    mark, encoding = next((row for row in _BYTE_ORDER_MARKS if content.startswith(row[0])), (b"", "utf-8"))
    return content[len(mark) :].decode(encoding, "replace")


ESCAPES = lazy_pattern(r"\x1b\[[0-9;]{0,16}m")  # colours, as tools put them into a terminal's text


class ParseError(ValueError):
    """The text is not what this parser reads; the message says what was expected and what was found."""


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts numbers as numbers.

    >>> sorted(["ens10", "ens9", "bond0"], key=natural)
    ['bond0', 'ens9', 'ens10']
    """
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    key = [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts]
    return (*key, (-2, name))  # "ens01" and "ens1" differ
