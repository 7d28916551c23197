"""Tables of any form in a text: columns of blanks, bars or boxes, separated values, HTML, LaTeX; records of labels and
values that come again with other values.

No column is known here. What cells mean is a matter of `cells.py`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.tables.records import list_record_tables

FEWEST = 3  # rows
_LONGEST, _MOST_LINES, _MOST_COLUMNS, _MOST_ROWS = 400, 2000, 40, 500
_NO_NAME = lazy_pattern(r"[-+]?\d|[0-9a-f]{2,8}:|\w{0,40}[=:]|$")  # of a column
_BLANKS, WIDE = lazy_pattern(r"[ \t]+"), lazy_pattern(r"[ ]{2,}|\t+")
_MARKS = ("|", "&", ";", _BLANKS, WIDE, ",")
_BOX = str.maketrans(dict.fromkeys("│┃║", "|"))
_CELLS_OF_HTML = lazy_pattern(r"</t[dh]> {0,8}<t[dh][^>]{0,80}>", re.IGNORECASE)
_TAG = lazy_pattern(r"</?[a-zA-Z][^>]{0,80}>")
_OF_LATEX = lazy_pattern(r"\\\\$|\\(?=[_%&#])|\$[^$]{0,20}\$")
RULE = lazy_pattern(r"[-=+|:\s─═━┄╌┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬]{1,1000}|\\[a-z]{3,12}rule")
_SECTION = lazy_pattern(r"\[{1,2}(?P<name>[\w .:/\"-]{2,60})\]{1,2}[ \t]*")
_LABELLED = lazy_pattern(
    r"[ \t-]{0,20}(?P<label>[A-Za-z][\w ./()%°-]{0,40}?)[ \t]{0,20}[:=][ \t]{0,20}(?P<value>\S.{0,79})"
)


class FoundTable(NamedTuple):
    """The names of its columns, and its rows with the line that each begins in."""

    names: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], str], ...]
    is_record: bool = False  # whose cells stand beside their label


def read_tables(text: str) -> Iterator[FoundTable]:
    """Each with three rows or more.

    >>> list(read_tables("a b c\\n1 2 3\\n4 5 6\\n7 8 9\\n"))[0].names
    ('a', 'b', 'c')
    >>> list(read_tables("".join(f"t,host=n{n} up={n}i,down=0\\n" for n in range(4))))[0].names
    ('host', 'up', 'down')
    >>> list(read_tables("".join(f"link: {n}\\nerrors: {n}\\n\\n" for n in range(4))))[0].rows[1]
    (('1', '1'), '1 1')
    """
    lines = [_clean(line) if len(line) <= _LONGEST else "" for line in text.splitlines()[:_MOST_LINES]]
    at = 0
    while at < len(lines) - FEWEST:
        table = next(filter(None, (_read_columns(lines, at, mark) for mark in _MARKS)), None)
        if table:
            yield table
        at += 1 + (len(table.rows) if table else 0)
    sections = list(_read_sections(lines))
    yield from sections
    for names, rows in list_record_tables(text) if not sections else ():
        records = tuple((tuple(cells), " ".join(cells)) for cells in rows[:_MOST_ROWS])
        yield FoundTable(tuple(names), records, is_record=True)


def cut(line: str, mark: str | re.Pattern[str]) -> tuple[str, ...]:
    """The cells of a line, without the marks of Markdown; a separator in quotes is none.

    >>> cut("| a | `b` |  |", "|"), cut('a,"b, c"', ","), cut(" a b   c ", WIDE)
    (('a', 'b', ''), ('a', 'b, c'), ('a b', 'c'))
    """
    if not isinstance(mark, str):
        return tuple(mark.split(line.strip())) if line.strip() else ()
    if '"' in line and mark != "|":
        cells = next(csv.reader([line], delimiter=mark, skipinitialspace=True), [])
    else:
        cells = (line.strip(" \t>").strip("|") if mark == "|" else line).split(mark)
    return tuple(cell.strip(' \t*`"_') for cell in cells)


def _clean(line: str) -> str:
    """A line with one bar between its cells, whatever its form is."""
    if "<t" in line:
        line = _TAG.sub("", _CELLS_OF_HTML.sub(" | ", line))
    if line.endswith("\\\\"):
        line = _OF_LATEX.sub("", line)
    return line.translate(_BOX)


def _read_columns(lines: Sequence[str], start: int, mark: str | re.Pattern[str]) -> FoundTable | None:
    names = cut(lines[start], mark)
    if not 3 <= len(names) <= _MOST_COLUMNS or len(set(names)) < len(names):
        return None
    if any(map(_NO_NAME.match, names if names[0] else names[1:])):
        return None
    if mark is _BLANKS and names[0].endswith(":"):
        return None
    rows: list[tuple[tuple[str, ...], str]] = []
    for line in lines[start + 1 : start + _MOST_ROWS]:
        if RULE.fullmatch(line):
            continue
        cells = cut(line, mark)
        if mark is WIDE and len(cells) == len(names) - 1 > 2 and not rows:
            names = names[1:]  # of two cells with one blank between them
        elif len(cells) == len(names) + 1 and not rows and not isinstance(mark, str):
            names = ("", *names)  # the rows of a matrix have names
        is_labelled = mark is _BLANKS and any(cell.endswith(":") for cell in cells[:-1])
        if len(cells) != len(names) or cells == names or is_labelled:
            break
        rows.append((cells, line))
    if len(rows) < FEWEST or not any(map(str.isdigit, "".join(line for _, line in rows))):
        return None
    return FoundTable(names, tuple(rows))


def _read_sections(lines: Sequence[str]) -> Iterator[FoundTable]:
    """Labels and values below a line in brackets that names what they are of."""
    records: list[tuple[dict[str, str], str]] = []
    for line in lines:
        if heading := _SECTION.fullmatch(line):
            records.append(({"": heading["name"]}, line))
        elif records and (match := _LABELLED.fullmatch(line)):
            records[-1][0].setdefault(match["label"], match["value"].strip("\"' ,"))
    alike = [(record, line) for record, line in records if len(record) > 1 and record.keys() == records[0][0].keys()]
    if len(alike) >= FEWEST:
        rows = tuple((tuple(record.values()), line) for record, line in alike[:_MOST_ROWS])
        yield FoundTable(tuple(alike[0][0]), rows, is_record=True)
