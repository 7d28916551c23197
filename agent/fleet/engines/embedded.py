"""DuckDB in this process, over the dataset's Parquet files: the default. Nothing is copied and nothing is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from agent.fleet.dataset import Dataset
from agent.fleet.engines import shapes
from agent.fleet.engines.at_work import AtWork
from agent.fleet.engines.engine import Asked, EngineRefused, Unbound, dataset_at, one_line
from agent.fleet.engines.query import ASKED, Choice, Dated, Query, Row
from agent.fleet.engines.sql import selected
from agent.fleet.tables import BOOL, FLOAT, INT, TEXT, TIME

if TYPE_CHECKING:
    from ibis.expr import types as ir

_BATCH = 65_536  # rows
TYPES = {TEXT: "VARCHAR", INT: "BIGINT", FLOAT: "DOUBLE", BOOL: "BOOLEAN", TIME: "TIMESTAMP"}


class Prepared(msgspec.Struct, frozen=True):
    """A query that Ibis has compiled before (release/prepared.py), and the tables that it asks.

    `asked`: types of the columns of ASKED.
    """

    tables: list[str]
    sql: str
    asked: list[str] = []


class _File(msgspec.Struct):
    queries: dict[str, Prepared]


class Embedded(Unbound):
    """One opened dataset. Where an ingest replaced files meanwhile, the dataset is opened again, once."""

    name = "duckdb"

    def __init__(self, url: str) -> None:
        self._url = url
        self._dataset = dataset_at(url)
        self._database = duckdb.connect(config={"preserve_insertion_order": False})
        self._database.execute("SET enable_progress_bar = false")
        self._database.execute("SET parquet_metadata_cache = true")
        self._views: set[str] = set()
        self._work = AtWork()

    def latest(self, name: str) -> ir.Table:
        """The view of that table."""
        self._view(name)
        return super().latest(name)

    def history(self, name: str) -> ir.Table:
        """The view of that table's history."""
        self._view(shapes.HISTORY + name)
        return super().history(name)

    def rows(self, expression: ir.Table) -> list[Row]:
        """Compiled and fetched. Raises EngineRefused."""
        return self._answered(compiled(expression))

    def later(self, expression: ir.Table) -> Asked:
        """Answered by a thread, while further questions are compiled here."""
        return self._begun(compiled(expression))

    def begun(self, query: Query) -> Asked:
        """Without Ibis, which takes half a second to come."""
        known = self._known(query.name)
        return self._begun(known.sql) if known else super().begun(query)

    def chosen(self, choice: Choice, values: Iterable[Row]) -> list[Row]:
        """The same. They are bound, so as many as there are."""
        known = self._known(choice.name)
        if known is None:
            return super().chosen(choice, values)
        columns = [list(each) for each in zip(*values, strict=True)]
        if not columns:
            return []
        given = ", ".join(f"unnest(?::{kind}[]) AS k{at}" for at, kind in enumerate(known.asked))
        return self._answered(f"WITH {ASKED} AS (SELECT {given}) FROM ({known.sql})", columns)  # noqa: S608  # our types

    def since(self, query: Dated, moment: datetime) -> Asked:
        """The same."""
        known = self._known(query.name)
        if known is None:
            return super().since(query, moment)
        sql = f"WITH {ASKED} AS (SELECT ?::{known.asked[0]} AS k0) FROM ({known.sql})"  # noqa: S608  # our types
        return self._begun(sql, [moment])

    def _known(self, name: str) -> Prepared | None:
        known = prepared_queries().get(name)
        for table in known.tables if known else ():
            self._view(table)
        return known

    def _begun(self, sql: str, values: list[Any] | None = None) -> Asked:
        if self._dataset.store.remote:  # what is registered belongs to one connection
            return partial(self._answered, sql, values)
        cursor = self._database.cursor()  # a connection of its own to the same database
        begun = self._work.begun(cursor, lambda: _fetched(cursor, sql, values))

        def rows() -> list[Row]:
            try:
                return begun.result()
            except duckdb.Error:
                return self._answered(sql, values)  # in this thread, where files that have moved are opened again

        return rows

    def batches(self, expression: ir.Table) -> Any:
        """A pyarrow.RecordBatchReader, for what is too large for one list. Raises EngineRefused."""
        try:
            return streamed(self._database, expression)
        except duckdb.Error as error:
            raise EngineRefused(one_line(Embedded.name, error)) from error

    def query(self, sql: str) -> tuple[list[str], Iterator[list[Row]]]:
        """Names of the columns of one SELECT, and its rows in pieces. Nothing else can be read, nothing written.

        Raises EngineRefused, also from the pieces.
        """
        for name in shapes.names():
            self._view(name)
        self._database.execute("SET TimeZone = 'UTC'")
        self._shut()
        return selected(self._database, self._work, sql, Embedded.name)

    def close(self) -> None:
        """Close the database, which was never on disk."""
        self._work.close()
        with contextlib.suppress(duckdb.Error):  # Ctrl-C may come while something is asked: the process ends anyhow
            self._database.close()

    def _answered(self, sql: str, values: list[Any] | None = None) -> list[Row]:
        try:
            return self._work.done(self._database, lambda: _fetched(self._database, sql, values))
        except duckdb.IOException as error:  # a file is gone: an ingest has committed since
            if not self._moved():
                raise EngineRefused(one_line(Embedded.name, error)) from error
        except duckdb.Error as error:
            raise EngineRefused(one_line(Embedded.name, error)) from error
        try:
            return self._work.done(self._database, lambda: _fetched(self._database, sql, values))
        except duckdb.Error as error:
            raise EngineRefused(one_line(Embedded.name, error)) from error

    def _view(self, name: str) -> None:
        if name in self._views:
            return
        try:
            self._make(name)
        except duckdb.IOException as error:
            if not self._moved():
                raise EngineRefused(one_line(Embedded.name, error)) from error
            self._make(name)
        except duckdb.Error as error:
            raise EngineRefused(one_line(Embedded.name, error)) from error
        self._views.add(name)

    def _moved(self) -> bool:
        """Whether another state of the dataset is in force now; its files are taken then."""
        before = self._dataset.manifest
        self._dataset = dataset_at(self._url)
        if self._dataset.manifest == before:
            return False
        for name in self._views:
            self._make(name)
        return True

    def _make(self, name: str) -> None:
        """A view with all columns, also those that files of an earlier version lack: it may have no file at all."""
        files = _files(self._dataset, name)
        source = self._source(name, files) if files else "range(0)"
        there = {row[0] for row in self._database.execute(f"DESCRIBE FROM {source}").fetchall()} if files else set()
        chosen = ", ".join(
            _time(each.name)
            if each.type == TIME and each.name in there
            else f'"{each.name}"'
            if each.name in there
            else f'CAST(NULL AS {TYPES[each.type]}) AS "{each.name}"'
            for each in shapes.columns(name)
        )
        self._database.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {chosen} FROM {source}')  # noqa: S608  # our names

    def _source(self, name: str, files: list[str]) -> str:
        if not self._dataset.store.remote:
            listed = ", ".join("'" + each.replace("'", "''") + "'" for each in files)
            return f"read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
        # DuckDB's own readers of object stores are extensions, fetched from the network: pyarrow's are here
        from pyarrow import dataset as arrow

        store: Any = self._dataset.store
        skip = len(store.full("")) if store.full("").endswith("/") else len(store.full("")) + 1
        paths = ["/".join(part for part in (store.root, each[skip:]) if part) for each in files]
        self._database.register(f"files_{name}", arrow.dataset(paths, filesystem=store.filesystem, format="parquet"))
        return f'"files_{name}"'

    def _shut(self) -> None:
        """From here on: no file but the dataset's, no network, no extension, no setting."""
        if not self._dataset.store.remote:
            files = [path for name in shapes.names() for path in _files(self._dataset, name)]
            listed = ", ".join("'" + each.replace("'", "''") + "'" for each in files)
            self._database.execute(f"SET allowed_paths = [{listed}]")
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")


@cache
def prepared_queries() -> dict[str, Prepared]:
    """By name."""
    file = resources.files("agent.fleet.engines").joinpath("prepared.json")
    return msgspec.json.decode(file.read_bytes(), type=_File).queries


def streamed(database: duckdb.DuckDBPyConnection, expression: ir.Table) -> Any:
    """A pyarrow.RecordBatchReader, whatever this DuckDB calls the way to one."""
    found: Any = database.sql(compiled(expression))
    return (getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader)(_BATCH)


def compiled(expression: ir.Table) -> str:
    """The SQL of an expression."""
    import ibis

    return str(ibis.to_sql(expression, dialect="duckdb", pretty=False))


def _fetched(connection: duckdb.DuckDBPyConnection, sql: str, values: list[Any] | None) -> list[Row]:
    found: list[Row] = connection.execute(sql, values).fetchall()
    return found


def _files(dataset: Dataset, name: str) -> list[str]:
    if name.startswith(shapes.HISTORY):
        return dataset.history(name.removeprefix(shapes.HISTORY))
    return dataset.latest(name)


def _time(name: str) -> str:
    """UTC without a zone: times with one need a further library to be fetched."""
    return f'make_timestamp(epoch_us("{name}")) AS "{name}"'
