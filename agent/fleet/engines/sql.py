"""One SELECT in DuckDB's dialect that a person wrote, run in a thread.

The main thread alone receives Ctrl-C, and not while it waits within a library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import duckdb

from agent.fleet.engines.engine import EngineRefused, one_line
from agent.fleet.engines.query import Row, make_distinct, not_one_select

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


def select_rows(
    database: duckdb.DuckDBPyConnection, work: AtWork, sql: str, name: str
) -> tuple[list[str], Iterator[list[Row]]]:
    """Names of its columns, and its rows in pieces. Raises EngineRefused, also from the pieces."""
    try:
        sql.encode()
        statements = database.extract_statements(sql)
        kinds = [statement.type.name for statement in statements]
        if kinds != ["SELECT"]:
            raise EngineRefused(not_one_select(kinds))
        relation = work.done(database, lambda: database.sql(statements[0]))
        if any(
            _WITH_ZONE in str(kind) for kind in relation.types
        ):  # fetched without Arrow, they need a further library
            reader = work.done(database, lambda: relation.to_arrow_reader(_PIECE))
            return make_distinct(relation.columns), _pieces(work, database, name, lambda: _of_batch(reader))
        cursor = work.done(database, lambda: database.execute(statements[0]))
        names = make_distinct([column[0] for column in cursor.description or []])
        return names, _pieces(work, database, name, lambda: cursor.fetchmany(_PIECE))
    except UnicodeEncodeError as error:
        raise EngineRefused("the query is not UTF-8") from error
    except duckdb.Error as error:
        raise EngineRefused(one_line(name, error)) from error


def _pieces(
    work: AtWork, database: duckdb.DuckDBPyConnection, name: str, more: Callable[[], list[Row]]
) -> Iterator[list[Row]]:
    try:
        while rows := work.done(database, more):
            yield rows
    except (duckdb.Error, ValueError, OverflowError) as error:  # the last two: a time that Python has none for
        raise EngineRefused(one_line(name, error)) from error


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
