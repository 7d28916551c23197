"""A dataset's tables copied into PostgreSQL: for `--engine postgres://` afterwards, and for other tools there."""

from __future__ import annotations

import io
from typing import Any

from agent.fleet.engines import shapes
from agent.fleet.engines.engine import Engine, EngineRefused
from agent.fleet.store import shown
from agent.fleet.tables import BOOL, FLOAT, INT, TEXT, TIME

# collation C: text compares by its bytes, as in every other engine
_TYPES = {TEXT: 'text COLLATE "C"', INT: "bigint", FLOAT: "double precision", BOOL: "boolean", TIME: "timestamp"}


def load(source: Engine, url: str) -> dict[str, int]:
    """Rows of each table that were copied. All tables take the place of earlier ones at one moment.

    Raises EngineRefused.
    """
    import psycopg

    if url.partition("://")[0] not in ("postgres", "postgresql"):
        raise EngineRefused(f"{shown(url)}: tables are loaded into postgres:// only; others read the dataset's files")
    counts: dict[str, int] = {}
    try:
        with psycopg.connect(url, connect_timeout=20) as connection, connection.cursor() as cursor:
            for name in shapes.names():
                counts[name] = _copied(source, name, cursor)
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        raise EngineRefused(f"{shown(url)}: {said[:300]}") from error
    return counts


def _copied(source: Engine, name: str, cursor: Any) -> int:
    wanted = shapes.columns(name)
    listed = ", ".join(f'"{each.name}" {_TYPES[each.type]}' for each in wanted)
    cursor.execute(f'DROP TABLE IF EXISTS "{name}"')
    cursor.execute(f'CREATE TABLE "{name}" ({listed})')
    bare = name.removeprefix(shapes.HISTORY)
    expression = source.latest(name) if bare == name else source.history(bare)
    texts = [each.type == TEXT for each in wanted]
    rows = 0
    with cursor.copy(f"COPY \"{name}\" FROM STDIN (FORMAT csv, NULL '')") as copy:
        for batch in source.batches(expression):
            copy.write(_csv(batch, texts))
            rows += batch.num_rows
    cursor.execute(f'ANALYZE "{name}"')
    return rows


def _csv(batch: Any, texts: list[bool]) -> str:
    """Lines of CSV: texts quoted, so that an empty one is no null; PostgreSQL has no NUL in text."""
    out = io.StringIO()
    columns = [column.to_pylist() for column in batch.columns]
    for row in zip(*columns, strict=True):
        cells = (
            "" if value is None else _quoted(value) if text else str(value)
            for value, text in zip(row, texts, strict=True)
        )
        out.write(",".join(cells) + "\n")
    return out.getvalue()


def _quoted(value: str) -> str:
    return '"' + value.replace("\0", "\ufffd").replace('"', '""') + '"'
