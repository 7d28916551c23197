"""Tables of any form in a text: columns of blanks, bars or boxes, separated values, HTML, LaTeX; records of labels and
values that come again with other values.

No column is known here. What cells mean is a matter of `cells.py`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from probes.text import lazy_pattern
from probes.tool_reports.tables.entries import CALM, FoundTable, shape
from probes.tool_reports.tables.records import list_record_tables

FEWEST = 3  # rows
_LONGEST, _MOST_LINES, _MOST_COLUMNS, _MOST_ROWS = 400, 2000, 40, 500
_NO_NAME = lazy_pattern(r"[-+]?\d|[0-9a-f]{2,8}:|\w{0,40}[=:]|$")  # of a column
_OF_PROSE = lazy_pattern(r"(?i)per|of|by|the|to|in|for|on|over|last|and|with|vs|is|are")
_BLANKS, WIDE = lazy_pattern(r"[ \t]+"), lazy_pattern(r"[ ]{2,}|\t+")
_MARKS = ("|", "&", ";", _BLANKS, WIDE, ",")
_BOX = str.maketrans(dict.fromkeys("│┃║", "|"))
_CELLS_OF_HTML = lazy_pattern(r"</t[dh]> {0,8}<t[dh][^>]{0,80}>", re.IGNORECASE)
_TAG = lazy_pattern(r"</?[a-zA-Z][^>]{0,80}>")
_OF_LATEX = lazy_pattern(r"\\\\$|\\(?=[_%&#])|\$[^$]{0,20}\$")
RULE = lazy_pattern(r"[-=+|:\s─═━┄╌┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬]{1,1000}|\\[a-z]{3,12}rule")
_METRIC = lazy_pattern(r"# (?:TYPE|HELP) |[A-Za-z_][\w:]{1,80}\{[^{}\n]{3,300}\} ")  # of Prometheus, without columns
_IN_BRACKETS = lazy_pattern(r"[ \t]{1,200}(?:\([^()]{1,40}\)[ \t]{0,200}){1,20}")
_LIST_CELL = lazy_pattern(r",[ \t]{2,40}")  # one cell: "0x74a1,   28851"
_SECTION = lazy_pattern(r"\[{1,2}(?P<name>[\w .:/\"-]{2,60})\]{1,2}[ \t]*")
_LABELLED = lazy_pattern(
    r"[ \t-]{0,20}(?P<label>[A-Za-z][\w ./()%°-]{0,40}?)[ \t]{0,20}[:=][ \t]{0,20}(?P<value>\S.{0,79})"
)


def read_tables(text: str) -> Iterator[FoundTable]:
    """Each with three rows or more.

    >>> list(read_tables("a b c\\n1 2 3\\n4 5 6\\n7 8 9\\n"))[0].names
    ('a', 'b', 'c')
    >>> list(read_tables("".join(f"t,host=n{n} up={n}i,down=0\\n" for n in range(4))))[0].names
    ('host', 'up', 'down')
    >>> list(read_tables("".join(f"link: {n}\\nerrors: {n}\\n\\n" for n in range(4))))[0].rows[1]
    (('link 1', '1'), 'link 1: errors 1')
    """
    from probes.tool_reports.tables.repeats import tabulate_parts  # lazy: few texts have a table
    from probes.tool_reports.tables.rows import fold_pairs, read_rows

    lines = [_clean(line) if len(line) <= _LONGEST else "" for line in text.splitlines()[:_MOST_LINES]]
    at, title = 0, ""
    while at < len(lines) - FEWEST:
        if _METRIC.match(lines[at]):
            at += 1
            continue
        table, end = next(filter(None, (_read_columns(lines, at, mark) for mark in _MARKS)), (None, at + 1))
        if table:
            table = table._replace(title=f"{title} {lines[at].strip()}" if "(" in lines[at] else title)
            yield fold_pairs(table) or _turn(table)
            lines[at:end] = [""] * (end - at)  # read
        title = lines[end - 1].strip() or title
        at = end
    sections = list(_read_sections(lines))
    yield from sections
    rows = list(read_rows("\n".join(lines)))
    yield from rows
    is_read = sections or (rows and not text.lstrip().startswith(("{", "[")))
    of_records = list(list_record_tables(text)) if not is_read else []
    parts = tabulate_parts(lines) if not is_read else None
    if parts is not None and all(len(rows) <= len(parts.rows) for _, rows in of_records):  # none of them is left out
        yield parts
        return
    for names, cells_of_rows in of_records:
        records = tuple((tuple(cells), " ".join(cells)) for cells in cells_of_rows[:_MOST_ROWS])
        yield FoundTable(tuple(names), records, is_record=True, title=text[:_LONGEST] if not rows else "")


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


def _read_columns(lines: Sequence[str], start: int, mark: str | re.Pattern[str]) -> tuple[FoundTable, int] | None:
    """A table, and the line behind it."""
    names, end = cut(lines[start], mark), start + 1
    if not 3 <= len(names) <= _MOST_COLUMNS or len(set(names)) < len(names):
        return None
    is_matrix = names == tuple(map(str, range(len(names))))
    if not is_matrix and any(map(_NO_NAME.match, names if names[0] else names[1:])):
        return None
    if not isinstance(mark, str) and names[0].startswith("|"):
        return None  # of a box with two cells
    if mark is _BLANKS and (names[0].endswith(":") or any(map(_OF_PROSE.fullmatch, names))):
        return None
    rows: list[tuple[tuple[str, ...], str]] = []
    for at, line in enumerate(lines[start + 1 : start + _MOST_ROWS], start + 1):
        if RULE.fullmatch(line):
            continue
        cells = cut(line, mark)
        if mark is WIDE and not rows and _IN_BRACKETS.fullmatch(line):
            continue  # more of the heading
        if mark is WIDE and len(cells) > len(names):
            cells = cut(_LIST_CELL.sub(", ", line), mark)
        if mark is WIDE and len(cells) == len(names) - 1 > 2 and not rows:
            names = names[1:]  # of two cells with one blank between them
        elif len(cells) == len(names) + 1 and not rows and not isinstance(mark, str):
            names = ("", *names)  # the rows of a matrix have names
        elif len(cells) == len(names) - 1 and names[-1][:1] in ("(", "[") and not rows:
            names = names[:-1]  # the unit of all
        is_labelled = mark is _BLANKS and any(cell.endswith(":") for cell in cells[:-1])
        if len(cells) != len(names) or cells == names or is_labelled:
            break
        rows.append((cells, line))
        end = at + 1
    if len(rows) < FEWEST or not any(map(str.isdigit, "".join(line for _, line in rows))):
        return None
    if any(map(str.isdigit, names[0])) and shape(names[0]) == shape(rows[0][0][0]):
        return None  # the first of rows without a heading
    with_numbers = [any(map(str.isdigit, "".join(cells))) for cells, _ in rows]
    if mark is _BLANKS and not with_numbers[0] and all(with_numbers[1:]) and not any(map(CALM.fullmatch, rows[0][0])):
        return None  # a title above the heading
    return FoundTable(names, tuple(rows)), end


def _turn(table: FoundTable) -> FoundTable:
    """A table of which each column is of a host or part, with a row for each."""
    from probes.tool_reports.tables.quantities import is_sweep  # lazy, as above

    parts, rows = table.names[1:], table.rows
    is_of_parts = len(parts) >= FEWEST and len({shape(part) for part in parts}) == 1 and any(map(str.isdigit, parts[0]))
    firsts = [cells[0] for cells, _ in rows]
    if not is_of_parts or (len(set(map(shape, firsts))) < 2 and not is_sweep("", firsts)):
        return table
    names = ("", *("" if is_sweep("", [first]) else first for first in firsts))
    turned = tuple(
        ((part, *(cells[at] for cells, _ in rows)), f"{part}: {', '.join(cells[at] for cells, _ in rows)}")
        for at, part in enumerate(parts, 1)
    )
    return table if len(set(firsts)) < len(firsts) else FoundTable(names, turned, title=f"{table.title} {parts[0]}")


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
