"""Tables of any form in a text: columns of blanks, bars or boxes, separated values, HTML, LaTeX; records of labels and
values that come again with other values.

No column is known here. What cells mean is a matter of `cells.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from probes.named_tuple import NamedTuple
from probes.text import lazy_pattern
from probes.tool_reports.tables.records import list_record_tables

FEWEST = 3  # rows
_LONGEST, _MOST_LINES, _MOST_COLUMNS, _MOST_ROWS = 400, 2000, 40, 500
_NO_NAME = lazy_pattern(r"[-+]?\d|[0-9a-f]{2,8}:|\w{0,40}[=:]|$")  # of a column
_BLANKS, _WIDE = lazy_pattern(r"[ \t]+"), lazy_pattern(r"[ ]{2,}|\t+")
_MARKS = ("|", "&", ";", _BLANKS, _WIDE, ",")
_BOX = str.maketrans(dict.fromkeys("│┃║", "|"))
_CELLS_OF_HTML = lazy_pattern(r"</t[dh]> {0,8}<t[dh][^>]{0,80}>", re.IGNORECASE)
_TAG = lazy_pattern(r"</?[a-zA-Z][^>]{0,80}>")
_OF_LATEX = lazy_pattern(r"\\\\$|\\(?=[_%&#])|\$[^$]{0,20}\$")
_RULE = lazy_pattern(r"[-=+|:\s─═━┄╌┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬]{1,400}|\\[a-z]{3,12}rule")
_SECTION = lazy_pattern(r"\[{1,2}(?P<name>[\w .:/\"-]{2,60})\]{1,2}[ \t]*")
_LABELLED = lazy_pattern(
    r"[ \t-]{0,20}(?P<label>[A-Za-z][\w ./()%°-]{0,40}?)[ \t]{0,20}[:=][ \t]{0,20}(?P<value>\S.{0,79})"
)
_THOUSANDS = lazy_pattern(r"[-+]?\d{1,3}(?:(?:[ ,_]\d{3}){1,5}|(?:\.\d{3}){2,5})(?![\d.,])")
_VALUE = lazy_pattern(
    r"(?P<number>[-+]?\d{1,15}(?:[.,]\d{1,9})?(?:[eE][-+]?\d{1,3})?) ?(?P<unit>[A-Za-z%°/²³]{0,10}\d?)"
)


class FoundTable(NamedTuple):
    """The names of its columns, and its rows with the line that each begins in."""

    names: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], str], ...]
    is_record: bool = False  # whose cells stand beside their label


def read_number(cell: str) -> tuple[float, str] | None:
    """A number and its unit, with separators of thousands or a decimal comma.

    >>> read_number("11 240"), read_number("22,8 °C"), read_number("1,048,576 B"), read_number("x")
    ((11240.0, ''), (22.8, '°C'), (1048576.0, 'B'), None)
    """
    bare = cell.strip().strip("'\"")
    if match := _THOUSANDS.match(bare):
        bare = re.sub(r"[ ,_.]", "", match[0]) + bare[match.end() :]
    if not (match := _VALUE.fullmatch(bare)):
        return None
    return float(match["number"].replace(",", ".")), match["unit"]


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


def _clean(line: str) -> str:
    """A line with one bar between its cells, whatever its form is."""
    if "<t" in line:
        line = _TAG.sub("", _CELLS_OF_HTML.sub(" | ", line))
    if line.endswith("\\\\"):
        line = _OF_LATEX.sub("", line)
    return line.translate(_BOX)


def _read_columns(lines: Sequence[str], start: int, mark: str | re.Pattern[str]) -> FoundTable | None:
    names = _cut(lines[start], mark)
    if not 3 <= len(names) <= _MOST_COLUMNS or len(set(names)) < len(names) or any(map(_NO_NAME.match, names)):
        return None
    if mark is _BLANKS and names[0].endswith(":"):
        return None
    rows: list[tuple[tuple[str, ...], str]] = []
    for line in lines[start + 1 : start + _MOST_ROWS]:
        if _RULE.fullmatch(line):
            continue
        cells = _cut(line, mark)
        if mark is _WIDE and len(cells) == len(names) - 1 > 2 and not rows:
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


def _cut(line: str, mark: str | re.Pattern[str]) -> tuple[str, ...]:
    if isinstance(mark, str):
        cells = line.strip(" \t|").split(mark) if mark in line else ()
        return tuple(cell.strip(' \t*`"') for cell in cells)
    return tuple(mark.split(line.strip())) if line.strip() else ()


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
