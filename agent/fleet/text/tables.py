"""Answers as CSV, and rows of tables and queries as text, CSV, JSON (one object per line) or Parquet."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, BinaryIO, get_args

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import table_query
from agent.outputs.text.lines import clean, join_cells

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would work out instead of showing it


def sheet(answer: msgspec.Struct, rows: str) -> str:
    """A list of rows of an answer, by the name of its field, as CSV with a head of the rows' fields."""
    (kind,) = next(get_args(field.type) for field in msgspec.structs.fields(answer) if field.name == rows)
    names = kind.__struct_fields__
    built_rows = map(msgspec.to_builtins, getattr(answer, rows))
    return format_sheet(names, ([built[name] for name in names] for built in built_rows))


def format_sheet(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """CSV with a head of names, its values as `cell` has them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(map(cell, row) for row in rows)
    return out.getvalue()


def cell(value: Any) -> Any:
    """One value.

    >>> cell(["a", "b"]), cell({"ok": 3, "error": 1}), cell(None), cell(True), cell("=HYPERLINK()"), cell(-1)
    ('a; b', 'ok=3; error=1', '', 'true', "'=HYPERLINK()", -1)
    >>> cell("\\x1b[31mred\\a")
    '?[31mred?'
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return text(f"{cell(key)}={cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return text(str(cell(item)) for item in value)
    if isinstance(value, str):
        cleaned = clean(value)
        return f"'{cleaned}" if value.startswith(_FORMULA) else cleaned
    return value


def text(parts: Iterable[str]) -> str:
    """Several values as one."""
    return "; ".join(parts)


_SEEN = 1000  # rows that columns of a text are made wide enough for
_WIDEST = 200
_NARROWEST = 16  # of a column that is folded

Batches = Iterable[Sequence[tuple[Any, ...]]]


def write(names: Sequence[str], batches: Batches, form: str, out: BinaryIO, width: int | None = None) -> None:
    """Rows in that form; a text fits the width, where one is given."""
    pieces = _text(names, batches, width) if form == "text" else {"csv": _csv, "json": _json}[form](names, batches)
    for piece in pieces:
        out.write(piece.encode("utf-8", "replace"))


def write_table(tables: Tables, table: str, form: str, out: BinaryIO) -> None:
    """A whole table, without having all of it in memory."""
    reader = tables.batches(table_query(table))
    batches = ([tuple(row.values()) for row in batch.to_pylist()] for batch in reader)
    write(reader.schema.names, batches, form, out)


def write_parquet(tables: Tables, table: str, out: BinaryIO) -> None:
    """A whole table as one Parquet file."""
    from pyarrow import parquet

    batches = tables.batches(table_query(table))
    with parquet.ParquetWriter(out, batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def _csv(names: Sequence[str], batches: Batches) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([cell(name) for name in names])
    for batch in batches:
        writer.writerows([[cell(_plain(value)) for value in row] for row in batch])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _json(names: Sequence[str], batches: Batches) -> Iterator[str]:
    encode = msgspec.json.Encoder(enc_hook=str).encode
    for batch in batches:
        lines = [encode(dict(zip(names, map(_plain, row), strict=True))).decode() for row in batch]
        yield "".join(f"{line}\n" for line in lines)


def _text(names: Sequence[str], batches: Batches, width: int | None) -> Iterator[str]:
    layout: _TableLayout | None = None
    many = 0
    for batch in batches:
        rows = [[clean(_format_value(value)) for value in row] for row in batch]
        if layout is None:
            layout = _TableLayout([clean(name) for name in names], batch, rows, width)
            yield layout.head()
        yield "".join(layout.row(row, many + place) for place, row in enumerate(rows, 1))
        many += len(rows)
    if layout is None:
        yield _TableLayout([clean(name) for name in names], [], [], None).names_line()
    yield f"({many:,} row{'' if many == 1 else 's'})\n"


class _TableLayout:
    """Columns as wide as the first rows need. For a width that is too small long texts are folded in their columns;
    where that is not enough, a row is a block of lines: name and value."""

    def __init__(
        self, names: Sequence[str], values: Sequence[tuple[Any, ...]], rows: Sequence[Sequence[str]], width: int | None
    ) -> None:
        self._names = names
        seen = [names, *rows[:_SEEN]]
        self._widths = [min(_WIDEST, max(len(row[at]) for row in seen)) for at in range(len(names))]
        self._numbers = {
            at
            for at in range(len(names))
            if any(row[at] is not None for row in values)
            and all(row[at] is None or (isinstance(row[at], (int, float)) and row[at] is not True) for row in values)
        }
        self._is_folded = width is not None and self._total() > width
        if self._is_folded and width is not None:
            self._shrink(width)
        self._is_block = width is not None and self._total() > width

    def head(self) -> str:
        """The names and a line below them; nothing where rows are blocks."""
        if self._is_block:
            return ""
        return self.names_line() + self._line(["-" * width for width in self._widths])

    def names_line(self) -> str:
        """The names alone."""
        return self._line(self._names)

    def row(self, row: Sequence[str], number: int) -> str:
        """One row, which is the `number`-th."""
        if self._is_block:
            longest = max(map(len, self._names))
            known = [f"  {name.ljust(longest)}  {text}\n" for name, text in zip(self._names, row, strict=True) if text]
            return "".join([f"row {number}\n", *known])
        if not self._is_folded:
            return self._line(row)
        cells = [textwrap.wrap(text, width) or [""] for text, width in zip(row, self._widths, strict=True)]
        return "".join(map(self._line, zip_longest(*cells, fillvalue="")))

    def _total(self) -> int:
        return sum(self._widths) + 2 * (len(self._widths) - 1)

    def _shrink(self, width: int) -> None:
        """Take from the widest columns of text until all fit, or none can give any more."""
        texts = [at for at in range(len(self._widths)) if at not in self._numbers]
        while (over := self._total() - width) > 0 and texts:
            widest = max(texts, key=lambda at: self._widths[at])
            least = max(_NARROWEST, len(self._names[widest]))
            if self._widths[widest] <= least:
                return
            self._widths[widest] = max(least, self._widths[widest] - max(over // len(texts), 1))

    def _line(self, cells: Sequence[str]) -> str:
        return join_cells(cells, self._widths, self._numbers) + "\n"


def _format_value(value: Any) -> str:
    value = _plain(value)
    return "" if value is None else str(cell(value)) if isinstance(value, (bool, list, dict, tuple)) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, float) and value != value:
        return None
    return value
