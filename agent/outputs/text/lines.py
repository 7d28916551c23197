"""Lines of styled text, independent of a terminal. Control characters are always replaced."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Sequence

Span = tuple[str, str]  # text, style: "" dim bold head ok info warning error critical
Line = tuple[Span, ...]

BLANK: Line = ()
PLAIN = str.maketrans("├└─│·…×µ→–", "|`-|-.xu>-")


def make_line(*spans: Span | str) -> Line:
    """Make one line of spans; a plain string has no style."""
    return tuple((clean(s), "") if isinstance(s, str) else (clean(s[0]), s[1]) for s in spans)


def make_heading(text: str) -> Line:
    """The title of a section."""
    return make_line((text, "head"))


def wrap_paragraph(text: str, width: int, indent: str = "  ", style: str = "", first: str | None = None) -> list[Line]:
    """Fold a text with a hanging indent; `first` replaces the indent of its first line."""
    folded = textwrap.wrap(
        clean(text),
        max(width, 40),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [make_line((text_line, style)) for text_line in folded]


def wrap_all(
    texts: Iterable[str], width: int, indent: str = "    ", first: str | None = "  - ", style: str = ""
) -> list[Line]:
    """Fold each text as a paragraph: items of a list, unless `first` is another."""
    return [line for text in texts for line in wrap_paragraph(text, width, indent, style, first)]


def join_known(parts: Iterable[str | None], separator: str = "  ·  ") -> str:
    """Join the known parts."""
    return separator.join(part for part in parts if part)


def join_cells(cells: Sequence[str], widths: Sequence[int], numbers: Container[int]) -> str:
    """A row of a table; in the columns of these numbers, cells end below each other.

    >>> join_cells(["gpu", "7", ""], [5, 3, 4], {1})
    'gpu      7'
    """
    padded = [
        cell.rjust(width) if at in numbers else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def clean(text: str) -> str:
    """Replace unprintable characters: no escape sequence of a host name or firmware string may reach the terminal.

    >>> clean("gpu\\x1b[31m-1\\n")
    'gpu?[31m-1?'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def to_plain_text(lines: Sequence[Line]) -> str:
    """Format the page without styles, for a pipe or file."""
    return "".join(clean("".join(text for text, _ in line)).rstrip() + "\n" for line in lines)


def to_ascii(lines: Sequence[Line]) -> list[Line]:
    """The page in ASCII, with the same columns.

    >>> to_ascii([make_line("└─ GPU0  ·  1…")])
    [(('`- GPU0  -  1.', ''),)]
    """
    return [
        tuple((text.translate(PLAIN).encode("ascii", "replace").decode(), style) for text, style in line)
        for line in lines
    ]


def line_length(line: Line) -> int:
    """The number of columns of a line."""
    return sum(len(text) for text, _ in line)
