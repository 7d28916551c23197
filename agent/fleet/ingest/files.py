"""Parquet files of a dataset: being written, moved into place, and files of history that are written again."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from agent.fleet.columns import PARQUET, TYPES, by_dictionary, packed_schema, schema
from agent.fleet.dataset import File
from agent.fleet.ingest.history import day_of, join_tables, read_batches
from agent.fleet.store import Store
from agent.fleet.tables import TIME
from probes.own_files import create_private

GROUP_ROWS = 122_880  # as DuckDB writes them, and shares them out among threads
HELD_BYTES = 8 << 20  # of one file: a host's row is a hundred times a counter's
HELD_PARTS = 16  # each costs tens of KiB beside its bytes
HISTORY_BYTES = 16 << 20  # of all files of history that a worker writes
MOST_OPEN = 96
PARQUET_NAME = re.compile(r"[0-9]{8,20}-[0-9a-f]{12}\.parquet")
_WITH_STATISTICS = (
    "node",
    "observed_at",
    "table",
)  # what leaves out whole groups; of all columns they cost as much again


class Staging(msgspec.Struct, frozen=True):
    """Where a worker writes: what is in the folder goes to the same path of the dataset, at once or at the commit."""

    folder: str
    generation: int

    def name(self) -> str:
        """Of a new file, which no other has or had; PARQUET_NAME recognizes it."""
        return f"{self.generation:08d}-{os.urandom(6).hex()}.parquet"

    def finished(self, path: str, store: Store) -> None:
        """A file is whole: to an object store it goes at once, where no one sees it before the manifest names it."""
        if store.remote:
            store.take(os.path.join(self.folder, path), path)


def make_staged_folder(staging: str, path: str) -> str:
    """Create the folder of a staged file; the file's local path. Raises OSError where the staging folder is gone: the
    dataset was moved, and nothing is made where it was."""
    os.stat(staging)
    local = os.path.join(staging, path)
    os.makedirs(os.path.dirname(local), exist_ok=True)
    return local


class Writer:
    """One new Parquet file of a table."""

    def __init__(self, staging: Staging, store: Store, path: str, plain: Any) -> None:
        self._staging, self._store, self.path, self._plain = staging, store, path, plain
        local = make_staged_folder(staging.folder, path)
        create_private(local)
        known = [name for name in _WITH_STATISTICS if name in plain.names]
        self._writer = pq.ParquetWriter(
            local, packed_schema(plain), write_statistics=known, use_dictionary=by_dictionary(plain), **PARQUET
        )
        self._held: list[Any] = []
        self._count = self._bytes = 0
        self._firm = 0  # of those, made of several
        self.rows = 0

    def add(self, rows: Any) -> None:
        """Rows in any columns of the table."""
        if not len(rows):
            return
        self._held.append(rows)
        self._count += len(rows)
        self._bytes += _count_bytes(rows)
        if self._count >= GROUP_ROWS or self._bytes >= HELD_BYTES:
            self.flush()
        elif len(self._held) - self._firm >= HELD_PARTS:
            self._held[self._firm :] = [join_tables(self._held[self._firm :], self._plain)]
            self._firm += 1

    @property
    def held(self) -> int:
        """Bytes of rows that are not written yet, about."""
        return self._bytes

    def close(self) -> File:
        """The finished file."""
        self.flush()
        self._writer.close()
        self._staging.finished(self.path, self._store)
        return File(self.path, self.rows)

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            whole = join_tables(self._held, self._plain)
            self._writer.write_table(whole, row_group_size=GROUP_ROWS)
            self.rows += len(whole)
        self._held, self._count, self._bytes, self._firm = [], 0, 0, 0


class HistoryFiles:
    """New files of history, one a table and day."""

    def __init__(self, staging: Staging, store: Store) -> None:
        self._staging, self._store = staging, store
        self._open: dict[tuple[str, str], Writer] = {}
        self._done: list[tuple[str, File]] = []

    def add(self, table: str, plain: Any, day: str, rows: Any) -> None:
        """Rows of one day."""
        key = (table, day)
        if key not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._close()
            path = f"history/{table}/dt={day}/{self._staging.name()}"
            self._open[key] = Writer(self._staging, self._store, path, plain)
        self._open[key].add(rows)
        while sum(writer.held for writer in self._open.values()) > HISTORY_BYTES:
            max(self._open.values(), key=lambda writer: writer.held).flush()

    def close(self) -> list[tuple[str, File]]:
        """Table and file, all that were written."""
        self._close()
        done, self._done = self._done, []
        return done

    def _close(self) -> None:
        self._done += [(table, writer.close()) for (table, _), writer in self._open.items()]
        self._open.clear()


def _count_bytes(rows: Any) -> int:
    """About; dictionaries are shared with other rows."""
    return sum(4 * len(rows) if pa.types.is_dictionary(column.type) else column.nbytes for column in rows.columns)


def write_file(staging: Staging, store: Store, path: str, plain: Any, parts: Iterable[Any]) -> File | None:
    """A file with these rows; None, and no file, where there are none."""
    writer = None
    for rows in parts:
        if len(rows):
            writer = writer or Writer(staging, store, path, plain)
            writer.add(rows)
    return writer.close() if writer else None


MOST_FILES = 12  # small ones of a table and day
SMALL_ROWS = 1 << 20
Void = tuple[str, str, int]  # table, node, moment


def correct_history(
    store: Store, staging: Staging, history: dict[str, list[File]], voids: list[Void]
) -> dict[str, list[File]]:
    """History's files without some rows; a change is taken out with the rows of its table. Raises OSError."""
    by_day: defaultdict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)
    for table, node, moment in voids:
        by_day[table, day_of(moment)].append((node, table, moment))
        if table != "sighting":
            by_day["change", day_of(moment)].append((node, table, moment))
    corrected_history = dict(history)
    for (table, day), mine in by_day.items():
        corrected_history[table] = [
            remaining
            for file in corrected_history[table]
            for remaining in (
                [file] if f"/dt={day}/" not in file.path else _write_without(store, staging, file, table, mine)
            )
        ]
    return corrected_history


def gather_small(store: Store, staging: Staging, history: dict[str, list[File]]) -> dict[str, list[File]]:
    """History's files, where a day of a table has many small ones made into one. Raises OSError."""
    by_table = {}
    for table, files in history.items():
        days: defaultdict[str, list[File]] = defaultdict(list)
        for file in files:
            if file.rows <= SMALL_ROWS:
                days[file.path.rpartition("/")[0]].append(file)
        many = {folder: small for folder, small in days.items() if len(small) > MOST_FILES}
        gone = {file.path for small in many.values() for file in small}
        by_table[table] = [file for file in files if file.path not in gone]
        plain = schema(table, True)
        for folder, small in many.items():
            rows = (batch for file in small for batch in read_batches(store, file, plain))
            new = write_file(staging, store, f"{folder}/{staging.name()}", plain, rows)
            by_table[table] += [new] if new else []
    return by_table


def _write_without(store: Store, staging: Staging, file: File, table: str, voids: list[Void]) -> list[File]:
    plain = schema(table, True)
    names = ["node", "table", "observed_at"] if table == "change" else ["node", "observed_at"]
    columns = dict(zip(("node", "table", "observed_at"), zip(*voids, strict=True), strict=True))
    void = pa.table(
        {
            "node": pa.array(columns["node"], pa.string()),
            "table": pa.array(columns["table"], pa.string()),
            "observed_at": pa.array(columns["observed_at"], pa.int64()).cast(TYPES[TIME]),
        }
    ).select(names)
    parts = [_select_kept(batch, void, names) for batch in read_batches(store, file, plain)]
    if sum(len(part) for part in parts) == file.rows:
        return [file]
    folder = file.path.rpartition("/")[0]
    new = write_file(staging, store, f"{folder}/{staging.name()}", plain, parts)
    return [new] if new else []


def _select_kept(batch: Any, void: Any, names: list[str]) -> Any:
    keys = pa.table({name: batch[name].cast(void[name].type) for name in names})
    keys = keys.append_column("place", pa.array(range(len(batch)), pa.int64()))
    left = keys.join(void, keys=names, join_type="left anti")
    return batch.take(left["place"].combine_chunks().sort())


def fill_missing(store: Store, staging: Staging, latest: dict[str, list[File]], history: dict[str, list[File]]) -> None:
    """No table is without a file: an engine would not find its columns. Raises OSError."""
    name = staging.name
    for files, path, past in (
        (latest, "latest/{}/bucket=00/{}", False),
        (history, "history/{}/dt=1970-01-01/{}", True),
    ):
        for table, row in files.items():
            full = [file for file in row if file.rows]
            if not row:
                full = [Writer(staging, store, path.format(table, name()), schema(table, past)).close()]
            files[table] = full or row[:1]
