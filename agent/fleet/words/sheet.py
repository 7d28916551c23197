"""Answers as CSV: a line an answer, fields as in JSON, lists in one cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agent.outputs.text.lines import clean

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would work out instead of showing it


def sheet(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> str:
    """CSV with a head of the fields' names."""
    names = kind.__struct_fields__
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for each in rows:
        built = msgspec.to_builtins(each)
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
        return text(f"{cell(key)}={cell(each)}" for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return text(str(cell(each)) for each in value)
    if isinstance(value, str):
        shown = clean(value)
        return f"'{shown}" if value.startswith(_FORMULA) else shown
    return value


def text(parts: Iterable[str]) -> str:
    """Several values as one."""
    return "; ".join(parts)
