"""Tables as SONiC prints them (Python's tabulate): a line of names, a line of dashes, rows.

Columns are found by their names, cells by the dashes above them; numbers are aligned right, texts left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import itemgetter

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

LONGEST_LINE = 4096
_DASHES = lazy_pattern(r"[ \t]*-{2,}(?:[ \t]+-{2,})*[ \t]*")
_CHUNK = lazy_pattern(r"\S+(?: \S+)*")


class TextTable(NamedTuple):
    """One table. `title`: the line above its names. `unread`: rows that do not fit its columns. `cut`: the output
    ends within a row."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    unread: int = 0
    cut: bool = False


def find_tables(text: str) -> Iterator[TextTable]:
    """Every table of a text, in order."""
    ended = text.endswith("\n")
    lines = [line.rstrip()[:LONGEST_LINE] for line in text.expandtabs().split("\n")]
    if ended:
        lines.pop()
    at = 1
    while at < len(lines):
        if not _DASHES.fullmatch(lines[at]) or not lines[at - 1].strip() or _DASHES.fullmatch(lines[at - 1]):
            at += 1
            continue
        spans = [match.span() for match in re.finditer(r"-+", lines[at])]
        names = _cut_cells(lines[at - 1], spans)
        start = at + 1
        at = start
        while at < len(lines) and lines[at].strip() and not _DASHES.fullmatch(lines[at]):
            at += 1
        if names is None or not all(names):
            continue
        if at < len(lines) and _DASHES.fullmatch(lines[at]) and len(re.findall(r"-+", lines[at])) > 1:
            at -= 1  # the names of the next table, without a blank line between
        title = lines[start - 3].strip() if start >= 3 else ""
        yield _read_rows(title, names, spans, lines[start:at], at == len(lines) and not ended)


def _read_rows(
    title: str, names: tuple[str, ...], spans: list[tuple[int, int]], lines: list[str], open_end: bool
) -> TextTable:
    cut = open_end and bool(lines) and len(lines[-1]) < spans[-1][1]
    rows, unread = [], 0
    slice_cells = _make_slicer(spans)
    for line in lines[: len(lines) - cut]:
        cells = slice_cells(line) or _cut_cells(line, spans)
        if cells is None:
            unread += 1
        else:
            rows.append(cells)
    return TextTable(title, names, rows, unread, cut)


def _make_slicer(spans: list[tuple[int, int]]) -> Callable[[str], tuple[str, ...] | None]:
    """A quick way to the cells of most rows; None: a row that has a letter between columns, or two blanks in a cell.

    >>> slice_cells = _make_slicer([(0, 10), (12, 18), (19, 24)])
    >>> slice_cells(" Ethernet8  a b    1,200"), slice_cells(" Ethernet8  a  b   1,200")
    (('Ethernet8', 'a b', '1,200'), None)
    >>> slice_cells("Ethernet8    x     1,200,000")
    """
    if len(spans) < 2:
        return lambda line: None
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), LONGEST_LINE]
    take_cells = itemgetter(*(slice(start, end) for start, end in spans))
    take_gaps = itemgetter(*(slice(end, start) for end, start in zip(ends, starts, strict=True)))

    def slice_cells(line: str) -> tuple[str, ...] | None:
        if "".join(take_gaps(line)).strip():
            return None
        cells = tuple([cell.strip() for cell in take_cells(line)])
        return None if "  " in "\t".join(cells) else cells

    return slice_cells


def _cut_cells(line: str, spans: list[tuple[int, int]]) -> tuple[str, ...] | None:
    """The cells of a row by the dashes above them; None where it does not fit.

    >>> _cut_cells(" Ethernet8  a  b   1,200", [(0, 10), (12, 18), (19, 24)])
    ('Ethernet8', 'a  b', '1,200')
    """
    cells = [""] * len(spans)
    column, last = 0, len(spans) - 1
    for match in _CHUNK.finditer(line):
        start, end = match.span()
        while column < last and spans[column][1] < end:
            column += 1
        if start < spans[column][0] or end > spans[column][1]:
            return _by_number(line, len(spans))
        cells[column] = f"{cells[column]}  {match[0]}" if cells[column] else match[0]
    return tuple(cells)


def _by_number(line: str, count: int) -> tuple[str, ...] | None:
    """A row that an editor or a page has moved: only where every column has a cell."""
    cells = tuple(_CHUNK.findall(line))
    return cells if len(cells) == count else None
