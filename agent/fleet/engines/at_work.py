"""What DuckDB is asked, in threads: the main one alone hears Ctrl-C, and not while it waits within a library."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import duckdb

_T = TypeVar("_T")


class AtWork:
    """Work on connections to one database: one at a time that is waited for, and one beside it."""

    def __init__(self) -> None:
        self._here, self._beside = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._open: dict[Future[Any], duckdb.DuckDBPyConnection] = {}

    def done(self, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> _T:
        """What it gives."""
        return self._begun(self._here, connection, work).result()

    def begun(self, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]) -> Future[_T]:
        """The same, to be waited for later."""
        return self._begun(self._beside, connection, work)

    def close(self) -> None:
        """Interrupt what nobody waits for any more, and wait until it has ended."""
        for each in (self._here, self._beside):
            each.shutdown(wait=False, cancel_futures=True)
        while self._open:
            for connection in list(self._open.values()):
                connection.interrupt()  # more than once: one that is only beginning does not notice
            time.sleep(0.01)

    def _begun(
        self, by: ThreadPoolExecutor, connection: duckdb.DuckDBPyConnection, work: Callable[[], _T]
    ) -> Future[_T]:
        future = by.submit(work)
        self._open[future] = connection
        future.add_done_callback(lambda done: self._open.pop(done, None))
        return future
