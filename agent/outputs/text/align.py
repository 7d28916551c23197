"""Lays rows of cells out in columns: as many as the width allows, and what does not fit goes on below its row."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from agent.outputs.text.lines import Line, Span, line_length
from agent.outputs.text.rows import TreeRow

ALL_CELLS, LINK_ONLY = 4, 1  # columns: link, state, role, interface; or the link only
_BRANCHES = str.maketrans({"├": "│", "└": " ", "─": " "})
_MIN_COLUMNS = 20  # of a continued line, however deep it is


def align_rows(rows: Sequence[TreeRow | Line], width: int, columns: int) -> list[Line]:
    """The lines of rows; a plain line is unchanged."""
    first, wide = _measure(rows, columns)
    lines: list[Line] = []
    for row in rows:
        lines += _layout_row(row, first, wide, width) if isinstance(row, TreeRow) else [row]
    return lines


def rows_fit(rows: Sequence[TreeRow | Line], width: int, columns: int) -> bool:
    """Whether every row fits on one line, those of groups and marks of findings aside."""
    first, wide = _measure(rows, columns)
    own = [row for row in rows if isinstance(row, TreeRow) and not row.is_group]
    return all(line_length(_join_cells(row, first, wide, row.items)) <= width for row in own)


def _measure(rows: Sequence[TreeRow | Line], columns: int) -> tuple[int, list[int]]:
    """The width of the first column, and of the aligned cells."""
    full = [row for row in rows if isinstance(row, TreeRow) and len(row.aligned) > 1 and not row.is_group]
    wide = [max((line_length(row.aligned[k]) for row in full), default=0) for k in range(columns)]
    return max((line_length(row.device) for row in full), default=0), wide


def _layout_row(row: TreeRow, first: int, wide: list[int], width: int) -> list[Line]:
    """One line; where it does not fit, items go on below, indented to the second column."""
    items = [*row.findings, *row.items]
    lines = [_join_cells(row, first, wide, ())]
    indent = _continue_branch(row.device[0], first + 2)
    for item in items:
        used = line_length(lines[-1]) + 2
        if used + len(item[0]) <= width:
            lines[-1] = (*lines[-1], ("  ", ""), item)
            continue
        room = max(width - line_length(indent), _MIN_COLUMNS)
        if len(item[0]) <= room:
            lines.append((*indent, item))
            continue
        begun = " " * max(used - line_length(indent), 0)
        texts = textwrap.wrap(item[0], room, initial_indent=begun, break_on_hyphens=False)
        lines[-1] = (*lines[-1], ("  ", ""), (texts[0].strip(), item[1]))
        lines += [(*indent, (text, item[1])) for text in texts[1:]]
    return lines


def _continue_branch(branch: Span, column: int) -> Line:
    """The vertical lines of a branch, up to a column."""
    return ((branch[0].translate(_BRANCHES).ljust(column), branch[1]),)


def _join_cells(row: TreeRow, first: int, wide: Sequence[int], items: Sequence[Span]) -> Line:
    """Join cells with two spaces; a cell without a column follows if it is not empty."""
    spans = [*row.device, _spaces(first - line_length(row.device))]
    for k, cell in enumerate(row.aligned):
        column = wide[k] if k < len(wide) else 0
        if column or cell:
            spans += [_spaces(2), *cell, _spaces(column - line_length(cell))]
    while spans and not items and not spans[-1][0].strip():
        spans.pop()
    for item in items:
        spans += [_spaces(2), item]
    return tuple(spans)


def _spaces(columns: int) -> Span:
    return (" " * columns, "")
