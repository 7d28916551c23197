"""PostgreSQL: a dataset's tables copied there, and asked there; other tools may read them, too."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

from agent.fleet.engines import shapes
from agent.fleet.engines.engine import Engine, EngineRefused, one_line
from agent.fleet.engines.query import Relation, Row, table_query
from agent.fleet.engines.translated import Translated, refused
from agent.fleet.store import shown
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME

# collation C: text compares by its bytes, as in every other engine
_COLLATION = ' COLLATE "C"'
_TYPES = {TEXT: f"text{_COLLATION}", INT: "bigint", FLOAT: "double precision", BOOL: "boolean", TIME: "timestamp"}


_LISTS = {**_TYPES, TEXT: "text"}
_PARAMETER = re.compile(r"%\((\w+)\)s")  # as sqlglot writes one


class Postgres(Translated):
    """A database that has the tables."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__("postgres")
        try:
            import psycopg

            self._connection = psycopg.connect(url, connect_timeout=20, autocommit=True)
        except ImportError as error:
            raise EngineRefused(one_line(f"{shown(url)}: a library is missing", error)) from error
        except Exception as error:  # as in `refused`; many repeat the address
            raise EngineRefused(one_line(shown(url), error).replace(url, shown(url))) from error
        self._cursor = psycopg.RawCursor(self._connection)
        with refused(self.name):
            self._connection.execute("SET TIME ZONE 'UTC'")
            ((host,),) = self.fetch("SELECT to_regclass('host')::text", {})
        if host is None:
            raise EngineRefused(f"{shown(url)}: no table host: `fabricscope fleet load --engine URL` puts them there")

    def relation(self, relation: Relation) -> str:
        """See Translated."""
        columns = (
            f'unnest(%({relation.name}_{at})s::{_LISTS[kind]}[]){_COLLATION if kind == TEXT else ""} AS "{name}"'
            for at, (name, kind) in enumerate(relation.columns.items())
        )
        return f"SELECT {', '.join(columns)}"

    def fetch(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Numbered parameters: with named ones, every % would be one."""
        names = list(dict.fromkeys(_PARAMETER.findall(sql)))
        numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)
        rows: list[Row] = self._cursor.execute(numbered, [parameters[name] for name in names]).fetchall()
        return rows

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


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
    texts = [each.type == TEXT for each in wanted]
    rows = 0
    with cursor.copy(f"COPY \"{name}\" FROM STDIN (FORMAT csv, NULL '')") as copy:
        for batch in source.batches(table_query(name)):
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
