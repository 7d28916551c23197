"""Rows of a dataset, as the parts of a report or an answer that they were made of: a column has its field's name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)
StoredRow = Mapping[str, Any]  # by column


def build_part(kind: type[S], row: StoredRow, **computed: Any) -> S:
    """A part of the columns that have its fields' names, unless a value is computed.

    Null is what the part has by default; a text that it must have is empty.
    """
    required = _list_fields(kind)
    known = {name: value for name, value in row.items() if name in required and value is not None}
    empty = dict.fromkeys((name for name in row if required.get(name)), "")
    return kind(**{**empty, **known, **computed})


def build_named(kind: type[S], row: StoredRow, **computed: Any) -> S:
    """A device: without a label it is called by its id."""
    return build_part(kind, row, label=row["label"] or row["id"], **computed)


@cache
def _list_fields(kind: type[msgspec.Struct]) -> dict[str, bool]:
    """By name: whether a part must have it."""
    return {field.name: field.required for field in msgspec.structs.fields(kind)}
