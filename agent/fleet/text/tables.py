"""Answers as CSV, and rows of tables and queries as text, CSV, JSON (one object per line) or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO

import msgspec

from agent.fleet.engines.engine import Tables
from agent.fleet.engines.query import table_query
from agent.outputs.text.lines import clean

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would work out instead of showing it


def sheet(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> str:
    """CSV with a head of the fields' names."""
    names = kind.__struct_fields__
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        built = msgspec.to_builtins(row)
        writer.writerow([cell(built[name]) for name in names])
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
_WIDEST = 60

Batches = Iterable[Sequence[tuple[Any, ...]]]


def write(names: Sequence[str], batches: Batches, form: str, out: BinaryIO) -> None:
    """Rows in that form."""
    for piece in {"csv": _csv, "json": _json, "text": _text}[form](names, batches):
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


def _text(names: Sequence[str], batches: Batches) -> Iterator[str]:
    widths: list[int] = []
    many = 0
    for batch in batches:
        rows = [[clean(_format_value(value)) for value in row] for row in batch]
        if not widths:
            head = [clean(name) for name in names]
            seen = [head, *rows[:_SEEN]]
            widths = [min(_WIDEST, max(len(row[at]) for row in seen)) for at in range(len(names))]
            yield _line(head, widths) + _line(["-" * width for width in widths], widths)
        many += len(rows)
        yield "".join(_line(row, widths) for row in rows)
    if not widths:
        yield _line([clean(name) for name in names], [len(name) for name in names])
    yield f"({many:,} row{'' if many == 1 else 's'})\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip() + "\n"


def _format_value(value: Any) -> str:
    value = _plain(value)
    return "" if value is None else str(cell(value)) if isinstance(value, (bool, list, dict, tuple)) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, float) and value != value:
        return None
    return value
