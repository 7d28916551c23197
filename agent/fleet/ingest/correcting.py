"""Files of history that are written again: without rows that a late report made void, or several small ones as one."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa

from agent.fleet.columns import TYPES, schema
from agent.fleet.dataset import File
from agent.fleet.ingest.files import Staging, Writer, written
from agent.fleet.ingest.past import batches, day
from agent.fleet.store import Store
from agent.fleet.tables import TIME

MOST_FILES = 12  # small ones of a table and day
SMALL_ROWS = 1 << 20
Void = tuple[str, str, int]  # table, node, moment


def corrected(
    store: Store, staging: Staging, history: dict[str, list[File]], voids: list[Void]
) -> dict[str, list[File]]:
    """History's files without some rows; a change is taken out with the rows of its table. Raises OSError."""
    by_day: defaultdict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)
    for table, node, moment in voids:
        by_day[table, day(moment)].append((node, table, moment))
        if table != "sighting":
            by_day["change", day(moment)].append((node, table, moment))
    made = dict(history)
    for (table, when), mine in by_day.items():
        made[table] = [
            kept
            for file in made[table]
            for kept in ([file] if f"/dt={when}/" not in file.path else _without(store, staging, file, table, mine))
        ]
    return made


def gathered(store: Store, staging: Staging, history: dict[str, list[File]]) -> dict[str, list[File]]:
    """History's files, where a day of a table has many small ones made into one. Raises OSError."""
    made = {}
    for table, files in history.items():
        days: defaultdict[str, list[File]] = defaultdict(list)
        for file in files:
            if file.rows <= SMALL_ROWS:
                days[file.path.rpartition("/")[0]].append(file)
        many = {folder: small for folder, small in days.items() if len(small) > MOST_FILES}
        gone = {file.path for small in many.values() for file in small}
        made[table] = [file for file in files if file.path not in gone]
        plain = schema(table, True)
        for folder, small in many.items():
            rows = (batch for file in small for batch in batches(store, file, plain))
            new = written(staging, store, f"{folder}/{staging.name()}", plain, rows)
            made[table] += [new] if new else []
    return made


def filled(store: Store, staging: Staging, latest: dict[str, list[File]], history: dict[str, list[File]]) -> None:
    """No table is without a file: an engine would not know its columns. Raises OSError."""
    name = staging.name
    for files, path, past in (
        (latest, "latest/{}/bucket=00/{}", False),
        (history, "history/{}/dt=1970-01-01/{}", True),
    ):
        for table, row in files.items():
            full = [each for each in row if each.rows]
            if not row:
                full = [Writer(staging, store, path.format(table, name()), schema(table, past)).close()]
            files[table] = full or row[:1]


def _without(store: Store, staging: Staging, file: File, table: str, voids: list[Void]) -> list[File]:
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
    parts = [_kept(batch, void, names) for batch in batches(store, file, plain)]
    if sum(len(part) for part in parts) == file.rows:
        return [file]
    folder = file.path.rpartition("/")[0]
    new = written(staging, store, f"{folder}/{staging.name()}", plain, parts)
    return [new] if new else []


def _kept(batch: Any, void: Any, names: list[str]) -> Any:
    keys = pa.table({name: batch[name].cast(void[name].type) for name in names})
    keys = keys.append_column("place", pa.array(range(len(batch)), pa.int64()))
    left = keys.join(void, keys=names, join_type="left anti")
    return batch.take(left["place"].combine_chunks().sort())
