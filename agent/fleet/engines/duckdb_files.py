"""DuckDB in this process over the dataset's Parquet files, the default: nothing is copied, nothing is kept.

Queries run in threads: only the main thread receives Ctrl-C, and not while it waits within a library.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from agent.fleet.dataset import Dataset
from agent.fleet.engines import schema
from agent.fleet.engines.engine import Engine, EngineRefused, dataset_at, raise_refused, views
from agent.fleet.engines.query import Pending, Query, Relation, Row, make_distinct, not_one_select, with_ctes
from agent.fleet.table import BOOL, FLOAT, INT, TEXT, TIME

if TYPE_CHECKING:
    import duckdb
else:
    try:  # the engine without the package around it, which takes three times as long to import
        import _duckdb as duckdb
    except ImportError:
        import duckdb

_BATCH = 65_536  # rows
TYPES = {TEXT: "VARCHAR", INT: "BIGINT", FLOAT: "DOUBLE", BOOL: "BOOLEAN", TIME: "TIMESTAMP"}


class _Bound(NamedTuple):
    """Text of a query, and its parameters."""

    sql: str
    parameters: Mapping[str, Any] | None


_Fetch = Callable[[duckdb.DuckDBPyConnection, _Bound], list[Row]]


class Embedded(Engine):
    """One opened dataset. Where an ingest replaced files meanwhile, the dataset is opened again, once."""

    name = "duckdb"

    def __init__(self, url: str) -> None:
        self._url = url
        self._dataset = dataset_at(url)
        self._database = duckdb.connect(config={"preserve_insertion_order": False})
        self._database.execute("SET enable_progress_bar = false")
        self._database.execute("SET parquet_metadata_cache = true")
        self._views: dict[str, str | None] = {}  # the SELECT before FROM; None: files of a table have other columns
        self._work = AtWork()

    def rows(self, query: Query) -> list[Row]:
        """See Tables."""
        return self._run_query(query)

    def many_rows(self, query: Query) -> list[Row]:
        """By Arrow, a third of the memory: fetched as rows, every text is an object of its own."""
        return self._run_query(query, _fetch_shared)

    def bucket(self, node: str) -> int:
        """See Tables."""
        return self._dataset.bucket(node)

    def submit(self, query: Query) -> Pending:
        """Answered by a thread, while other work is done here."""
        if self._dataset.store.remote:  # what is registered belongs to one connection
            return partial(self._run_query, query)
        bound = self._bound(query)
        cursor = self._database.cursor()  # a connection of its own to the same database
        begun = self._work.begun(cursor, lambda: _fetch_rows(cursor, bound))

        def rows() -> list[Row]:
            try:
                return begun.result()
            except duckdb.Error:
                return self._run_query(query)  # in this thread, where files that have moved are opened again

        return rows

    def batches(self, query: Query) -> Any:
        """See Tables."""
        bound = self._bound(query)
        with _refuse():
            return _read_arrow(self._database, bound)

    def query(self, sql: str) -> tuple[list[str], Iterator[list[Row]]]:
        """See Engine. Nothing but the dataset can be read."""
        for name in schema.names():
            self._view(name)
        for name, select in views().items():
            self._database.execute(f'CREATE OR REPLACE VIEW "{name}" AS {select}')
        self._database.execute("SET TimeZone = 'UTC'")
        self._shut()
        return select_rows(self._database, self._work, sql)

    def close(self) -> None:
        """Close the database, which was never on disk."""
        self._work.close()
        with contextlib.suppress(duckdb.Error):  # Ctrl-C may come while something is asked: the process ends anyhow
            self._database.close()

    def _bound(self, query: Query) -> _Bound:
        for table in query.tables:
            self._view(table)
        parameters = dict(query.parameters)
        relations = []
        for relation in query.relations:
            parameters.update(relation.lists)
            relations.append((relation.name, _relation(relation)))
        ctes = query.ctes("main.", self._narrow(query))
        return _Bound(with_ctes([*relations, *ctes], query.sql), parameters or None)

    def _narrow(self, query: Query) -> dict[str, str]:
        """What is read in place of tables, where the query needs no more than some of their files."""
        nodes = query.nodes
        if nodes is None or self._dataset.store.remote:
            return {}
        buckets = {self._dataset.bucket(node) for node in nodes}
        few = {name: self._dataset.latest(name, buckets) for name in query.tables}  # none of history
        return {
            name: f"({self._views[name]} FROM {_read_parquet(files)})"
            for name, files in few.items()
            if self._views[name] and 0 < len(files) < len(self._dataset.latest(name))
        }

    def _run_query(self, query: Query, fetch: _Fetch | None = None) -> list[Row]:
        def work() -> list[Row]:
            return (fetch or _fetch_rows)(self._database, bound)

        bound = self._bound(query)
        with _refuse():
            try:
                return self._work.done(self._database, work)
            except duckdb.IOException:  # a file is gone: an ingest has committed since
                if not self._has_moved():
                    raise
            bound = self._bound(query)
            return self._work.done(self._database, work)

    def _view(self, name: str) -> None:
        if name in self._views:
            return
        with _refuse():
            try:
                self._make(name)
            except duckdb.IOException:
                if not self._has_moved():
                    raise
                self._make(name)

    def _has_moved(self) -> bool:
        """Whether another state of the dataset is in force now; its files are taken then."""
        before = self._dataset.manifest
        self._dataset = dataset_at(self._url)
        if self._dataset.manifest == before:
            return False
        for name in self._views:
            self._make(name)
        return True

    def _make(self, name: str) -> None:
        """A view with all columns, also those that older files do not have: it may have no file at all."""
        files = _files(self._dataset, name)
        if len({*map(_find_generation, files)}) == 1 and not self._dataset.store.remote:
            with contextlib.suppress(duckdb.BinderException):  # of an earlier version: a column is missing
                self._create(name, _read_parquet(files), {column.name for column in schema.columns(name)}, alike=True)
                return
        self._create(name, *(self._source(name, files) if files else ("range(0)", set(), False)))

    def _create(self, name: str, source: str, there: set[str], alike: bool) -> None:
        chosen = ", ".join(  # UTC without a zone: times with one need a further library to be fetched
            f'make_timestamp(epoch_us("{column.name}")) AS "{column.name}"'
            if column.type == TIME and column.name in there
            else f'"{column.name}"'
            if column.name in there
            else f'CAST(NULL AS {TYPES[column.type]}) AS "{column.name}"'
            for column in schema.columns(name)
        )
        self._database.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {chosen} FROM {source}')  # noqa: S608  # our names
        self._views[name] = f"SELECT {chosen}" if alike else None

    def _source(self, name: str, files: list[str]) -> tuple[str, set[str], bool]:
        """What is read, its columns, and whether all files have them."""
        if not self._dataset.store.remote:
            written = {_find_generation(file): file for file in files}  # of one ingest all files have the same columns
            listed = _list_files(written.values())
            counts = self._database.execute(f"SELECT name, count(*) FROM parquet_schema({listed}) GROUP BY name")  # noqa: S608  # our names
            there = dict(counts.fetchall())
            wanted = {column.name for column in schema.columns(name)} & there.keys()
            # set to unite schemas, every query reads that of every file again
            differ = any(there[column] < len(written) for column in wanted)
            return _read_parquet(files, by_name=differ), wanted, not differ
        # DuckDB's own readers of object stores are extensions, fetched from the network: pyarrow's are here
        _import_package()
        from pyarrow import dataset as arrow

        from agent.fleet.columns import schema as arrow_schema

        store: Any = self._dataset.store
        skip = len(store.full("")) if store.full("").endswith("/") else len(store.full("")) + 1
        paths = ["/".join(part for part in (store.root, file[skip:]) if part) for file in files]
        whole = arrow_schema(name.removeprefix(schema.HISTORY), name.startswith(schema.HISTORY))
        made = arrow.dataset(paths, filesystem=store.filesystem, format="parquet", schema=whole)
        self._database.register(f"files_{name}", made)
        return f'"files_{name}"', set(whole.names), False

    def _shut(self) -> None:
        """From here on: no file but the dataset's, no network, no extension, no setting."""
        if not self._dataset.store.remote:
            files = [path for name in schema.names() for path in _files(self._dataset, name)]
            self._database.execute(f"SET allowed_paths = {_list_files(files)}")
        self._database.execute("SET enable_external_access = false")
        self._database.execute("SET lock_configuration = true")


def _refuse() -> AbstractContextManager[None]:
    return raise_refused(Embedded.name, (duckdb.Error,))


def _import_package() -> None:
    """What makes relations and reads Arrow is Python of the package."""
    importlib.import_module("duckdb")


def _list_files(files: Iterable[str]) -> str:
    return "[" + ", ".join("'" + file.replace("'", "''") + "'" for file in files) + "]"


def _read_parquet(files: Iterable[str], by_name: bool = False) -> str:
    return f"read_parquet({_list_files(files)}, hive_partitioning = false{', union_by_name = true' if by_name else ''})"


def _find_generation(file: str) -> str:
    """Which ingest wrote it: its name begins with that."""
    return file.rpartition("/")[2].partition("-")[0]


def _relation(relation: Relation) -> str:
    """A SELECT of its rows, which are bound as a list for each column."""
    names = zip(relation.lists, relation.columns.items(), strict=True)
    columns = (f'unnest(${parameter}::{TYPES[kind]}[]) AS "{name}"' for parameter, (name, kind) in names)
    return f"SELECT {', '.join(columns)}"


def _fetch_rows(connection: duckdb.DuckDBPyConnection, bound: _Bound) -> list[Row]:
    rows: list[Row] = connection.execute(bound.sql, bound.parameters).fetchall()
    return rows


def _read_arrow(connection: duckdb.DuckDBPyConnection, bound: _Bound) -> Any:
    _import_package()
    relation: Any = connection.sql(bound.sql, params=bound.parameters)
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(_BATCH)


def _fetch_shared(connection: duckdb.DuckDBPyConnection, bound: _Bound) -> list[Row]:
    """Each different text of a column is one object."""
    known: defaultdict[int, dict[str, str]] = defaultdict(dict)
    rows: list[Row] = []
    for batch in _read_arrow(connection, bound):
        rows += zip(*(_values(column, known[at]) for at, column in enumerate(batch.columns)), strict=True)
    return rows


def _values(column: Any, known: dict[str, str]) -> Iterable[Any]:
    if str(column.type) != "string":
        return cast("list[Any]", column.to_pylist())
    coded = column.dictionary_encode()
    texts = [None, *(known.setdefault(text, text) for text in coded.dictionary.to_pylist())]
    return [texts[0 if code is None else code + 1] for code in coded.indices.to_pylist()]


def _files(dataset: Dataset, name: str) -> list[str]:
    if name.startswith(schema.HISTORY):
        return dataset.history(name.removeprefix(schema.HISTORY))
    return dataset.latest(name)


_T = TypeVar("_T")


class AtWork:
    """Work on connections to one database: one at a time that is waited for, and two beside it."""

    def __init__(self) -> None:
        self._here, self._beside = ThreadPoolExecutor(1), ThreadPoolExecutor(2)
        self._open: dict[Future[Any], duckdb.DuckDBPyConnection] = {}

    def done(self, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> _T:
        """What it gives."""
        return self._begin(self._here, connection, work).result()

    def begun(self, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> Future[_T]:
        """The same, to be waited for later."""
        return self._begin(self._beside, connection, work)

    def close(self) -> None:
        """Interrupt what no one waits for any more, and wait until it has ended."""
        for thread_pool_executor in (self._here, self._beside):
            thread_pool_executor.shutdown(wait=False, cancel_futures=True)
        while self._open:
            for connection in list(self._open.values()):
                connection.interrupt()  # more than once: one that is only beginning does not notice
            time.sleep(0.01)

    def _begin(
        self, by: ThreadPoolExecutor, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]
    ) -> Future[_T]:
        future = by.submit(work)
        self._open[future] = connection
        future.add_done_callback(lambda done: self._open.pop(done, None))
        return future


_PIECE = 8192  # rows


_WITH_ZONE = "TIMESTAMP WITH TIME ZONE"


def select_rows(database: duckdb.DuckDBPyConnection, work: AtWork, sql: str) -> tuple[list[str], Iterator[list[Row]]]:
    """Names of its columns, and its rows in pieces. Raises EngineRefused, also from the pieces."""
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise EngineRefused("the query is not UTF-8") from error
    _import_package()
    with _refuse():
        statements = database.extract_statements(sql)
        kinds = [statement.type.name for statement in statements]
        if kinds != ["SELECT"]:
            raise EngineRefused(not_one_select(kinds))
        relation = work.done(database, lambda: database.sql(statements[0]))
        if any(
            _WITH_ZONE in str(kind) for kind in relation.types
        ):  # fetched without Arrow, they need a further library
            reader = work.done(database, lambda: relation.to_arrow_reader(_PIECE))
            return make_distinct(relation.columns), _pieces(work, database, lambda: _of_batch(reader))
        cursor = work.done(database, lambda: database.execute(statements[0]))
        names = make_distinct([column[0] for column in cursor.description or []])
        return names, _pieces(work, database, lambda: cursor.fetchmany(_PIECE))


def _pieces(work: AtWork, database: duckdb.DuckDBPyConnection, more: Callable[[], list[Row]]) -> Iterator[list[Row]]:
    # the last two: a time that Python has none for
    with raise_refused(Embedded.name, (duckdb.Error, ValueError, OverflowError)):
        while rows := work.done(database, more):
            yield rows


def _of_batch(reader: Any) -> list[Row]:
    """The next rows; none: all are read. Times are UTC, with no zone on them."""
    import pyarrow as pa

    for batch in reader:
        plain = [
            column.cast(pa.timestamp(column.type.unit))
            if pa.types.is_timestamp(column.type) and column.type.tz
            else column
            for column in batch.columns
        ]
        if len(batch):
            return list(zip(*(column.to_pylist() for column in plain), strict=True))
    return []
