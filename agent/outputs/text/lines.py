"""Lines of styled text: what the page is made of, with no terminal in sight. A control character never gets through."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

Span = tuple[str, str]  # text, style: "" dim bold head ok info warning error critical
Line = tuple[Span, ...]

BLANK: Line = ()
PLAIN = str.maketrans("├└─│·…×µ→–", "|`-|-.xu>-")


def line(*spans: Span | str) -> Line:
    """One line of spans; a bare string has no style."""
    return tuple((clean(s), "") if isinstance(s, str) else (clean(s[0]), s[1]) for s in spans)


def heading(text: str) -> Line:
    """A section's title."""
    return line((text, "head"))


def paragraph(text: str, width: int, indent: str = "  ", style: str = "", first: str | None = None) -> list[Line]:
    """Fold one text with a hanging indent; `first` stands before its first line instead of the indent."""
    folded = textwrap.wrap(
        clean(text),
        max(width, 40),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line((each, style)) for each in folded]


def joined(parts: Iterable[str | None], separator: str = "  ·  ") -> str:
    """The parts that are known, with a separator between them."""
    return separator.join(part for part in parts if part)


def clean(text: str) -> str:
    """Host names and firmware strings are untrusted: no escape sequence may reach the terminal.

    >>> clean("gpu\\x1b[31m-1\\n")
    'gpu?[31m-1?'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def plain(lines: Sequence[Line]) -> str:
    """The page without styles, as a pipe or a file gets it."""
    return "".join(clean("".join(text for text, _ in each)).rstrip() + "\n" for each in lines)


def ascii_only(lines: Sequence[Line]) -> list[Line]:
    """The same page for a terminal or a file that cannot show more; columns stay where they are.

    >>> ascii_only([line("└─ GPU0  ·  1…")])
    [(('`- GPU0  -  1.', ''),)]
    """
    return [tuple((_ascii(text), style) for text, style in each) for each in lines]


def _ascii(text: str) -> str:
    return text.translate(PLAIN).encode("ascii", "replace").decode()


def length(each: Line) -> int:
    """How many columns a line takes."""
    return sum(len(text) for text, _ in each)
