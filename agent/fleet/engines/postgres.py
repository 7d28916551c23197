"""PostgreSQL: the tables that `fleet load` copies into a schema of its own, and queries to them.

What others made there stays: tables keep their grants, indexes and views, and no table is touched that an earlier
load did not make.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.fleet.engines import schema
from agent.fleet.engines.engine import ABOUT, Engine, EngineRefused, one_line, raise_refused, views
from agent.fleet.engines.query import Relation, Row, identifiers, quote, table_query
from agent.fleet.engines.translated import ANSWER_SECONDS, AnswerSize, Translated
from agent.fleet.store import hide_secrets
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME, Column
from agent.fleet.tables import FORMAT

_COLLATION = ' COLLATE "C"'
_LISTS = {TEXT: "text", INT: "bigint", FLOAT: "double precision", BOOL: "boolean", TIME: "timestamptz"}
TYPES = {**_LISTS, TEXT: f"text{_COLLATION}"}  # collation C: text compares by its bytes, as in every other engine
_CATALOG_TYPES = {**_LISTS, TIME: "timestamp with time zone"}
_PIECE_ROWS = 1000
_PARAMETER = re.compile(r"%\((\w+)\)s")  # as sqlglot writes one


class Postgres(Translated):
    """A database that has the tables in schema `fabricscope`."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__("postgres")
        try:
            import psycopg

            self._connection = psycopg.connect(url, connect_timeout=20, autocommit=True)
        except ImportError as error:
            raise EngineRefused(one_line(f"{hide_secrets(url)}: a library is missing", error)) from error
        except Exception as error:  # as in `raise_refused`; many repeat the address
            raise EngineRefused(one_line(hide_secrets(url), error).replace(url, hide_secrets(url))) from error
        self._connection.adapters.register_loader("timestamptz", _without_zone())
        self._cursor = psycopg.RawCursor(self._connection)
        self._piece_rows = _PIECE_ROWS if psycopg.capabilities.has_stream_chunked() else 1
        with raise_refused(self.name):
            self._connection.execute("SET TIME ZONE 'UTC'")
            self._connection.execute(f"SET search_path = {SCHEMA}")
            self._connection.execute(f"SET statement_timeout = '{ANSWER_SECONDS:.0f}s'")  # it works no longer, either
            ((host,),) = self.fetch("SELECT to_regclass('host')::text", {})
        if host is None:
            raise EngineRefused(
                f"{hide_secrets(url)}: no table {SCHEMA}.host: `fabricscope fleet load --engine URL` puts them there"
            )

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
        numbered = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", sql)
        return self._take_answer(numbered, [parameters[name] for name in names])

    def fetch_named(self, sql: str) -> tuple[Sequence[str], list[Row]]:
        """See Translated."""
        self._connection.execute("SET default_transaction_read_only = on")
        rows = self._take_answer(sql, [])
        if not rows:  # then it has not stated its columns
            self._cursor.execute(f"SELECT * FROM ({sql}) AS answer LIMIT 0")  # noqa: S608  # one SELECT, as it ran
        return [column.name for column in self._cursor.description or ()], rows

    def _take_answer(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        """By pieces, so that its size is known before all of it has come."""
        size, rows = AnswerSize(self.name), list[Row]()
        for row in self._cursor.stream(sql, parameters, size=self._piece_rows):
            size.add(1, sum(len(value) for value in row if isinstance(value, str)))
            rows.append(row)
        return rows

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _without_zone() -> Any:
    """How a time of PostgreSQL is read: in UTC, which the session is in, and without a zone."""
    from psycopg.types.datetime import TimestamptzLoader

    loader: Any = TimestamptzLoader
    return type("UtcLoader", (loader,), {"load": lambda self, data: loader.load(self, data).replace(tzinfo=None)})


SCHEMA = "fabricscope"
_REGISTRY = "loaded_table"  # what earlier loads created
_LOCK = "fabricscope fleet load"
_LOCK_SECONDS = 60


def load(source: Engine, url: str) -> dict[str, int]:
    """Rows of each table that were copied. All tables take the place of earlier ones at one moment.

    Raises EngineRefused; the database is then as it was.
    """
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=20) as connection, connection.cursor() as cursor:
            return _Load(source, cursor).run()
    except psycopg.errors.LockNotAvailable as error:
        raise EngineRefused(
            f"{hide_secrets(url)}: another session has used its tables for {_LOCK_SECONDS} s"
        ) from error
    except psycopg.Error as error:
        message = " ".join(str(error).replace(url, hide_secrets(url)).split())
        raise EngineRefused(f"{hide_secrets(url)}: {message[:300]}") from error


class _Load:
    """One transaction."""

    def __init__(self, source: Engine, cursor: Any) -> None:
        self._source = source
        self._cursor = cursor

    def run(self) -> dict[str, int]:
        """Everything that may fail by what is in the dataset comes before the first lock that a reader notices."""
        execute = self._cursor.execute
        execute("SET LOCAL TIME ZONE 'UTC'")
        execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        self._wait_for_others()
        self._make_schema()
        self._check_relations()
        for name in schema.names():
            self._stage(name)
        for name in schema.names():
            self._make_table(name)
        counts = self._replace_rows()
        for name, select in views(with_zone=True).items():
            self._make_view(name, select)
        for name in (*counts, *ABOUT):
            execute(
                f"INSERT INTO {_qualify(_REGISTRY)} VALUES (%s, %s, now(), %s) ON CONFLICT (name) DO UPDATE"  # noqa: S608  # our names
                " SET rows = excluded.rows, loaded_at = excluded.loaded_at, format = excluded.format",
                [name, counts.get(name), FORMAT],
            )
        return counts

    def _wait_for_others(self) -> None:
        """Raises EngineRefused where another load is at work for longer than that."""
        import psycopg

        try:
            self._cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [_LOCK])
        except psycopg.errors.LockNotAvailable as error:
            raise EngineRefused(f"another load is at work (waited {_LOCK_SECONDS} s)") from error

    def _make_schema(self) -> None:
        execute = self._cursor.execute
        if self._value("SELECT to_regnamespace(%s)::text", SCHEMA) is None:
            execute(f"CREATE SCHEMA {SCHEMA}")
            execute(f"COMMENT ON SCHEMA {SCHEMA} IS 'Reports of fabricscope, put here by `fabricscope fleet load`'")
        if self._kind(_REGISTRY) is None:
            execute(
                f"CREATE TABLE {_qualify(_REGISTRY)}"
                " (name text PRIMARY KEY, rows bigint, loaded_at timestamptz NOT NULL, format text NOT NULL)"
            )
            execute(f"COMMENT ON TABLE {_qualify(_REGISTRY)} IS 'Tables and views of the last load'")

    def _check_relations(self) -> None:
        """Raises EngineRefused where a relation of our names is not one that a load created."""
        self._cursor.execute(f"SELECT name FROM {_qualify(_REGISTRY)}")  # noqa: S608  # our name
        created = {name for (name,) in self._cursor.fetchall()}
        for name, expected in {**dict.fromkeys(schema.names(), "r"), **dict.fromkeys(ABOUT, "v")}.items():
            kind = self._kind(name)
            if kind is not None and (kind != expected or name not in created):
                raise EngineRefused(f"{SCHEMA}.{name} was not created by `fleet load`: rename it or drop it")
            if kind == "r":
                types = self._column_types(name)
                for column in schema.columns(name):
                    catalog_type, wanted = types.get(column.name), _CATALOG_TYPES[column.type]
                    if catalog_type not in (None, wanted):
                        raise EngineRefused(
                            f"{SCHEMA}.{name}.{column.name} is {catalog_type}, expected {wanted}: drop it"
                        )

    def _stage(self, name: str) -> None:
        """A copy that no other session sees, so that its tables are locked for as long as rows are moved only."""
        wanted = schema.columns(name)
        self._cursor.execute(f"CREATE TEMP TABLE {_name_staging(name)} ({_definitions(wanted)}) ON COMMIT DROP")
        texts = [column.type == TEXT for column in wanted]
        with self._cursor.copy(f"COPY {_name_staging(name)} FROM STDIN (FORMAT csv, NULL '')") as copy:
            for batch in self._source.batches(table_query(name)):
                copy.write(_csv(batch, texts))

    def _make_table(self, name: str) -> None:
        wanted = schema.columns(name)
        execute = self._cursor.execute
        if self._kind(name) is None:
            key = identifiers(schema.key(name))
            execute(f"CREATE TABLE {_qualify(name)} ({_definitions(wanted)}, PRIMARY KEY ({key}))")
        types = self._column_types(name)
        for column in wanted:
            if column.name not in types:
                execute(f"ALTER TABLE {_qualify(name)} ADD COLUMN {_definitions([column])}")
            execute(f"COMMENT ON COLUMN {_qualify(name)}.{quote(column.name)} IS {_literal(column.about)}")
        execute(f"COMMENT ON TABLE {_qualify(name)} IS {_literal(schema.about(name))}")

    def _column_types(self, name: str) -> dict[str, str]:
        self._cursor.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            [_qualify(name)],
        )
        return dict(self._cursor.fetchall())

    def _replace_rows(self) -> dict[str, int]:
        """All tables at one moment: emptied, filled, and every row's node checked to be one of table host."""
        execute = self._cursor.execute
        names = schema.names()
        latest = [name for name in names if name != "host" and not name.startswith(schema.HISTORY)]
        for name in latest:
            execute(f"ALTER TABLE {_qualify(name)} DROP CONSTRAINT IF EXISTS {name}_node_fkey")
        execute(f"TRUNCATE {', '.join(map(_qualify, names))}")
        counts = {}
        for name in names:
            columns = identifiers(column.name for column in schema.columns(name))
            execute(
                f"INSERT INTO {_qualify(name)} ({columns}) SELECT {columns} FROM {_name_staging(name)}"  # noqa: S608  # our names
                " ON CONFLICT DO NOTHING"
            )
            counts[name] = self._cursor.rowcount
        for name in latest:
            execute(
                f"ALTER TABLE {_qualify(name)} ADD CONSTRAINT {name}_node_fkey"
                f" FOREIGN KEY (node) REFERENCES {_qualify('host')} (node)"
            )
        for name in names:
            execute(f"ANALYZE {_qualify(name)}")
        return counts

    def _make_view(self, name: str, select: str) -> None:
        from agent.fleet.engines.translated import translate

        self._cursor.execute(f"SET LOCAL search_path = {SCHEMA}")
        self._cursor.execute(f"CREATE OR REPLACE VIEW {_qualify(name)} AS {translate(select, 'postgres')}")
        self._cursor.execute(f"COMMENT ON VIEW {_qualify(name)} IS {_literal(ABOUT[name])}")

    def _kind(self, name: str) -> str | None:
        """The kind of a relation of the schema, as pg_class has it; None: there is none."""
        kind: str | None = self._value("SELECT relkind::text FROM pg_class WHERE oid = to_regclass(%s)", _qualify(name))
        return kind

    def _value(self, sql: str, *parameters: Any) -> Any:
        row = self._cursor.execute(sql, parameters).fetchone()
        return row and row[0]


def _qualify(name: str) -> str:
    return f"{SCHEMA}.{quote(name)}"


def _name_staging(name: str) -> str:
    return quote(f"staged_{name}")


def _definitions(wanted: Iterable[Column]) -> str:
    return ", ".join(f"{quote(column.name)} {TYPES[column.type]}" for column in wanted)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _csv(batch: Any, texts: list[bool]) -> str:
    """Lines of CSV: texts quoted, so that an empty one is no null; PostgreSQL has no NUL in text."""
    out = io.StringIO()
    columns = [column.to_pylist() for column in batch.columns]
    for row in zip(*columns, strict=True):
        cells = (
            "" if value is None else _quote(value) if text else str(value)
            for value, text in zip(row, texts, strict=True)
        )
        out.write(",".join(cells) + "\n")
    return out.getvalue()


def _quote(value: str) -> str:
    return '"' + value.replace("\0", "\ufffd").replace('"', '""') + '"'
