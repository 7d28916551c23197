"""`fleet load` into ClickHouse: the files of a dataset that are not there yet, and all in force at one moment.

A dataset's files never change, so a load copies those that the manifest names and no earlier load copied:

    rows_of_host       rows of table host, and the number of the file that each is of
    host               a view of it: rows of the files that are in force
    loaded_file        which files belong to which load
    load_event         when a load began, that it is at work, and when its files came into force

One inserted row of `load_event` is the commit: a query sees the files of one load, whatever a load does meanwhile, and
one that is killed leaves rows that no view shows. The next load deletes them.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from agent.fleet.dataset import Dataset
from agent.fleet.engines import schema
from agent.fleet.engines.clickhouse import TYPES, connect_client
from agent.fleet.engines.engine import ABOUT, EngineRefused, raise_refused, views
from agent.fleet.engines.query import identifiers, quote
from agent.fleet.engines.translated import translate
from agent.fleet.store import hide_secrets
from agent.fleet.table import Column
from agent.model.labels import group_by_key

_MARK = "fabricscope fleet load: "  # the comment of a table or view that a load made begins so
_ROWS = "rows_of_"
_FILE = "file_number"
_FILES, _EVENTS = "loaded_file", "load_event"
_BEGAN, _AT_WORK, _IN_FORCE, _GIVEN_UP = "began", "at work", "in force", "given up"
_SIGN_SECONDS = 60  # between two signs of a load that it is at work
_DEAD_MINUTES = 15  # one without a sign for as long was killed
_CHANCE = 1 << 16  # two that begin at one moment have two numbers
_BATCH = 262_144  # rows of an insert
_NEWEST = f"(SELECT max(load) FROM {_EVENTS} WHERE event = '{_IN_FORCE}')"  # noqa: S608  # our names


class _DatasetFile(NamedTuple):
    """A file of the dataset."""

    table: str  # as engines name it
    path: str  # below the dataset
    rows: int


def load(dataset: Dataset, url: str) -> dict[str, int]:
    """Rows of each table that were copied, those of earlier loads not counted. Raises EngineRefused."""
    client = connect_client(url)
    try:
        with raise_refused(hide_secrets(url)):
            return _FileLoad(dataset, client).run()
    finally:
        client.close()


class _FileLoad:
    """One load: its number is larger than those of all that began before."""

    def __init__(self, dataset: Dataset, client: Any) -> None:
        self._dataset, self._client = dataset, client
        self._number = 0
        self._signed = 0.0  # when this load last wrote an event

    def run(self) -> dict[str, int]:
        self._make_tables()
        self._begin()
        try:
            counts = self._copy_new()
            self._make_views()
            self._check_alone()
        except BaseException:  # Ctrl-C, too: the next load need not wait
            with contextlib.suppress(Exception):
                self._event(_GIVEN_UP)
            raise
        self._event(_IN_FORCE)
        self._delete_others()
        return counts

    def _copy_new(self) -> dict[str, int]:
        wanted = list(self._files())
        there = dict(
            self._rows(f"SELECT path, {_FILE} FROM {_FILES} WHERE load = {_NEWEST}")  # noqa: S608  # our names
        )
        numbers = {file.path: there.get(file.path) or secrets.randbits(63) for file in wanted}
        files = [[self._number, numbers[file.path], file.table, file.path, file.rows] for file in wanted]
        if files:
            self._client.insert(_FILES, files)
        counts = dict.fromkeys(schema.names(), 0)
        for file in wanted:
            if file.path not in there:
                self._copy(file, numbers[file.path])
                counts[file.table] += file.rows
        return counts

    def _files(self) -> Iterator[_DatasetFile]:
        manifest = self._dataset.manifest
        for name in schema.names():
            bare = name.removeprefix(schema.HISTORY)
            for file in (manifest.latest if bare == name else manifest.history).get(bare, ()):
                yield _DatasetFile(name, file.path, file.rows)

    def _make_tables(self) -> None:
        """Raises EngineRefused where a table of our names is not one that a load made."""
        comments = dict(self._rows("SELECT name, comment FROM system.tables WHERE database = currentDatabase()"))
        for name in (*schema.names(), *ABOUT, *(_ROWS + name for name in schema.names()), _FILES, _EVENTS):
            if not comments.get(name, _MARK).startswith(_MARK):
                raise EngineRefused(f"{name} was not made by `fleet load`: rename it or drop it")
        self._command(
            f"CREATE TABLE IF NOT EXISTS {_EVENTS}"
            " (load UInt64, event String, at DateTime64(6, 'UTC') DEFAULT now64(6))"
            f" ENGINE = MergeTree ORDER BY load COMMENT '{_MARK}when each load began and came into force'"
        )
        self._command(
            f"CREATE TABLE IF NOT EXISTS {_FILES}"
            f" (load UInt64, {_FILE} UInt64, in_table String, path String, rows Int64)"
            f" ENGINE = MergeTree ORDER BY (load, in_table, {_FILE}) COMMENT '{_MARK}the files of each load'"
        )
        there = set(self._rows("SELECT table, name FROM system.columns WHERE database = currentDatabase()"))
        for name in schema.names():
            if (_ROWS + name, _FILE) not in there:
                self._make_rows(name)
            else:
                missing = [column for column in schema.columns(name) if (_ROWS + name, column.name) not in there]
                for column in missing:
                    self._command(f"ALTER TABLE {quote(_ROWS + name)} ADD COLUMN {_definition(column)}")

    def _make_rows(self, name: str) -> None:
        """The table of its rows, sorted by its key; that of a history in a part for each day."""
        by_day = f" PARTITION BY toDate({schema.MOMENT})" if name.startswith(schema.HISTORY) else ""
        columns = schema.columns(name)
        self._command(
            f"CREATE TABLE IF NOT EXISTS {quote(_ROWS + name)} ({_FILE} UInt64, {', '.join(map(_definition, columns))})"
            f" ENGINE = MergeTree{by_day} ORDER BY ({identifiers(schema.key(name))})"
            f" SETTINGS allow_nullable_key = 1 COMMENT {_literal(_MARK + schema.about(name))}"
        )

    def _begin(self) -> None:
        """Raises EngineRefused where another load is at work."""
        ((newest,),) = self._rows(f"SELECT max(load) FROM {_EVENTS}")  # noqa: S608  # our name
        self._number = newest + 1 + secrets.randbelow(_CHANCE)
        self._event(_BEGAN)
        others = self._rows(
            f"SELECT toString(max(at)) FROM {_EVENTS} WHERE load < {self._number} GROUP BY load"  # noqa: S608  # our names
            f" HAVING countIf(event IN ('{_IN_FORCE}', '{_GIVEN_UP}')) = 0"
            f" AND max(at) > now() - INTERVAL {_DEAD_MINUTES} MINUTE"
        )
        if others:
            self._event(_GIVEN_UP)
            raise EngineRefused(
                f"another load was at work at {others[0][0]} UTC: wait for its end; "
                f"one that was killed counts for {_DEAD_MINUTES} minutes"
            )

    def _check_alone(self) -> None:
        """Raises EngineRefused where a later load took this one for dead, or began at the same moment."""
        later = self._rows(
            f"SELECT load FROM {_EVENTS} WHERE load > {self._number} GROUP BY load"  # noqa: S608  # our names
            f" HAVING countIf(event = '{_GIVEN_UP}') = 0"
        )
        if later:
            raise EngineRefused("a load that began later has taken its place")
        if time.monotonic() - self._signed > _SIGN_SECONDS:
            self._event(_AT_WORK)

    def _event(self, event: str) -> None:
        self._client.insert(_EVENTS, [[self._number, event]], column_names=["load", "event"])
        self._signed = time.monotonic()

    def _copy(self, file: _DatasetFile, number: int) -> None:
        """Columns that an older file lacks are null."""
        import pyarrow as pa
        from pyarrow import parquet

        from agent.fleet.columns import schema as arrow_schema

        bare = file.table.removeprefix(schema.HISTORY)
        whole = arrow_schema(bare, bare != file.table)
        source = parquet.ParquetFile(self._dataset.store.opened(file.path))
        for batch in source.iter_batches(_BATCH):
            self._check_alone()
            table = pa.Table.from_batches([batch])
            columns = [
                table[field.name].cast(field.type)
                if field.name in table.column_names
                else pa.nulls(len(table), field.type)
                for field in whole
            ]
            numbered = pa.array([number] * len(table), pa.uint64())
            names = [_FILE, *whole.names]
            self._client.insert_arrow(_ROWS + file.table, pa.Table.from_arrays([numbered, *columns], names=names))

    def _make_views(self) -> None:
        for name in schema.names():
            columns = identifiers(column.name for column in schema.columns(name))
            in_force = f"SELECT {_FILE} FROM {_FILES} WHERE load = {_NEWEST} AND in_table = '{name}'"  # noqa: S608
            select = f"SELECT {columns} FROM {quote(_ROWS + name)} WHERE {_FILE} IN ({in_force})"  # noqa: S608
            self._command(
                f"CREATE OR REPLACE VIEW {quote(name)} AS {select} COMMENT {_literal(_MARK + schema.about(name))}"
            )
        for name, select in views().items():
            translated = translate(select, "clickhouse")
            self._command(
                f"CREATE OR REPLACE VIEW {quote(name)} AS {translated} COMMENT {_literal(_MARK + ABOUT[name])}"
            )

    def _delete_others(self) -> None:
        """Rows of files that only earlier loads have, whether these came into force or not."""
        others = (
            f"SELECT DISTINCT in_table, {_FILE} FROM {_FILES} WHERE load < {self._number}"  # noqa: S608  # our names
            f" AND {_FILE} NOT IN (SELECT {_FILE} FROM {_FILES} WHERE load >= {self._number})"
        )
        for name, numbers in group_by_key((name, str(number)) for name, number in self._rows(others)).items():
            self._command(f"DELETE FROM {quote(_ROWS + name)} WHERE {_FILE} IN ({', '.join(numbers)})")  # noqa: S608
        self._command(f"DELETE FROM {_FILES} WHERE load < {self._number}")  # noqa: S608  # our name

    def _command(self, sql: str) -> None:
        self._client.command(sql)

    def _rows(self, sql: str) -> list[Any]:
        return list(self._client.query(sql).result_rows)


def _definition(column: Column) -> str:
    return f"{quote(column.name)} Nullable({TYPES[column.type]}) COMMENT {_literal(column.about)}"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
