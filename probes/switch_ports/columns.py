"""Rows of a table by the names of its columns, whatever their order: with dashes below the names or without, with names
of several lines, aligned left or right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern

_DASHES = lazy_pattern(r"[ \t|+]*[-=]{2,}(?:[ \t|+]+[-=]+)*[ \t|+]*")
_WORD = re.compile(r"\S+")
_CHUNK = re.compile(r"\S+(?: \S+)*")
_MOST_NAME_LINES = 4
_MOST_NAME_WORDS = 3
_ALIGNED = 2  # one cell in how many


class Columns(NamedTuple):
    """The names of a table's columns, and where each stands."""

    names: tuple[str, ...]  # without blanks and signs, in small letters
    printed: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    is_ruled: bool  # by dashes as long as the cells
    by_gaps: Columns | None = None  # the same, if a single blank is within a name


def simplify(name: str) -> str:
    """A name as the vocabulary has it.

    >>> simplify("FCS-Err"), simplify("Err (pkts)"), simplify("in-errors")
    ('fcserr', 'errpkts', 'inerrors')
    """
    return "".join(letter for letter in name.lower() if letter.isalnum())


def is_rule(line: str) -> bool:
    """Whether a line has dashes and nothing else."""
    return _DASHES.fullmatch(line) is not None


def find_columns(above: Sequence[str], is_known: Callable[[str], bool]) -> Columns | None:
    """The columns that the lines above a row name; of several ways to take them that by which most are known, and the
    nearest of these.

    >>> above = ["       Admin   Oper", "Port   Status  Status", "-----  ------  ------", "mgmt0  up      up"]
    >>> find_columns(above, {"port", "adminstatus", "operstatus"}.__contains__).names
    ('port', 'adminstatus', 'operstatus')
    """
    best: Columns | None = None
    most = 0
    has_name = [any(is_known(simplify(word)) for word in line.split()) for line in above]
    for end in range(len(above), 0, -1):
        ruled = _find_spans(above[end]) if end < len(above) else []
        for start in range(end - 1, max(-1, end - 1 - _MOST_NAME_LINES), -1):
            if not above[start].strip() or is_rule(above[start]):
                break
            if not any(has_name[start:end]):
                continue
            columns = _join_names(above[start:end], ruled, is_known)
            known = len(set(filter(is_known, columns.names)))
            if known > most:
                best, most = columns, known
    return best


def _find_spans(line: str) -> list[tuple[int, int]]:
    spans = [match.span() for match in re.finditer(r"[-=]+", line)] if is_rule(line) else []
    return spans if len(spans) > 1 else []


def _join_names(lines: Sequence[str], ruled: Sequence[tuple[int, int]], is_known: Callable[[str], bool]) -> Columns:
    words = [(word[0], *word.span()) for line in lines for word in _WORD.finditer(line)]
    if ruled and all(_overlap(ruled[_nearest(ruled, first, last)], first, last) > 0 for _, first, last in words):
        parts: list[list[str]] = [[] for _ in ruled]
        for word, first, last in words:
            parts[_nearest(ruled, first, last)].append(word)
        return _build([" ".join(part) for part in parts], ruled, True)
    base = max(range(len(lines)), key=lambda number: len(lines[number].split()))
    by_gaps = _join_lines(lines, base, _CHUNK)
    columns = _join_lines(lines, base, _WORD)
    printed, spans = list(columns.printed), list(columns.spans)
    at = 0
    while at < len(printed):
        for count in range(_MOST_NAME_WORDS, 1, -1):
            part = spans[at : at + count]
            is_phrase = len(part) == count and all(left[1] + 1 == right[0] for left, right in pairwise(part))
            name = " ".join(printed[at : at + count])
            if is_phrase and is_known(simplify(name)):
                printed[at : at + count] = [name]
                spans[at : at + count] = [(part[0][0], part[-1][1])]
                break
        at += 1
    return _build(printed, spans, False)._replace(by_gaps=by_gaps if len(by_gaps.names) < len(printed) else None)


def _join_lines(lines: Sequence[str], base: int, pattern: re.Pattern[str]) -> Columns:
    """The names of the longest line, each with what stands above and below it."""
    parts = list(pattern.finditer(lines[base]))
    printed, spans = [part[0] for part in parts], [part.span() for part in parts]
    for number, line in enumerate(lines):
        for word in _WORD.finditer(line) if number != base else ():
            at = _nearest(spans, *word.span())
            if _overlap(spans[at], *word.span()) > 0:
                printed[at] = f"{word[0]} {printed[at]}" if number < base else f"{printed[at]} {word[0]}"
    return _build(printed, spans, False)


def _build(printed: Sequence[str], spans: Sequence[tuple[int, int]], is_ruled: bool) -> Columns:
    return Columns(tuple(map(simplify, printed)), tuple(printed), tuple(spans), is_ruled)


def _overlap(span: tuple[int, int], start: int, end: int) -> int:
    return min(end, span[1]) - max(start, span[0])


def _nearest(spans: Sequence[tuple[int, int]], start: int, end: int) -> int:
    """The column that a word overlaps most; else the one that it is nearest to."""
    nearest = [(end if end < last else last) - (start if start > first else first) for first, last in spans]
    return nearest.index(max(nearest))


_Cell = tuple[str, int, int]  # its text, and where it begins and ends


def read_cells(columns: Columns, row: str) -> list[tuple[str, str, str]]:
    """Name, printed name and cell of each column of a row that has a cell. Of the ways to cut a row that one is taken
    by which most cells begin or end as the name of their column does: at each blank, at gaps, by place.

    >>> columns = find_columns(["Port      FCS-Err  Rcv-Err"], str.isalpha)
    >>> read_cells(columns, "Eth1/14     42117    42117")
    [('port', 'Port', 'Eth1/14'), ('fcserr', 'FCS-Err', '42117'), ('rcverr', 'Rcv-Err', '42117')]
    >>> columns = find_columns(["Port   Name    Status      Type"], str.isalpha)
    >>> [cell for _, _, cell in read_cells(columns, "Et3/1          notconnect  Not Present")]
    ['Et3/1', 'notconnect', 'Not Present']
    """
    words = [(word[0], *word.span()) for word in _WORD.finditer(row)]
    if len(words) == len(columns.names) and _ALIGNED * _count_aligned(columns, words) >= len(words):
        return list(zip(columns.names, columns.printed, (word[0] for word in words), strict=True))
    best, cells = columns, _cut_by_place(columns, row)
    most = _count_aligned(columns, cells) if _fits(columns, cells) else -1
    for one in filter(None, (columns, columns.by_gaps)):
        for pattern in (_CHUNK, _WORD):
            parts = [(part[0], *part.span()) for part in pattern.finditer(row)]
            if len(parts) == len(one.names) and (aligned := _count_aligned(one, parts)) > most:
                best, cells, most = one, parts, aligned
    rows = zip(best.names, best.printed, cells, strict=True)
    return [(name, printed, cell[0]) for name, printed, cell in rows if cell[0]]


def _cut_by_place(columns: Columns, row: str) -> list[_Cell]:
    cells: list[_Cell] = [("", -1, -1)] * len(columns.names)
    for word in _WORD.finditer(row):
        at = _nearest(columns.spans, *word.span())
        text, start, _ = cells[at]
        cells[at] = (f"{text} {word[0]}".strip(), word.start() if start < 0 else start, word.end())
    return cells


def _fits(columns: Columns, cells: Sequence[_Cell]) -> bool:
    """Whether a row has its cells where the names are: within the dashes, or most of them as their names."""
    filled = [(cell, span) for cell, span in zip(cells, columns.spans, strict=True) if cell[0]]
    if columns.is_ruled:
        return all(span[0] <= cell[1] and cell[2] <= span[1] for cell, span in filled)
    return _ALIGNED * _count_aligned(columns, cells) >= len(filled)


def _count_aligned(columns: Columns, cells: Sequence[_Cell]) -> int:
    pairs = zip(cells, columns.spans, strict=True)
    return sum(start == first or end == last for (_, start, end), (first, last) in pairs)
