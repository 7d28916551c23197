"""Takes nodes out of a dataset, and history that is older than is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from agent.fleet.columns import TYPES, schema
from agent.fleet.dataset import BadDataset, File, Manifest
from agent.fleet.hostlist import NodeNames
from agent.fleet.ingest.files import HistoryFiles, Staging, Void, correct_history, fill_missing, write_file
from agent.fleet.ingest.history import day_of, read_batches
from agent.fleet.ingest.locked_dataset import open_dataset
from agent.fleet.ingest.node_state import KEPT, STATE_SCHEMA
from agent.fleet.store import Store
from agent.fleet.tables import CHANGE, HOST, SIGHTING, SWITCH, TABLES, TIME
from agent.version import VERSION

_MOMENT = TYPES[TIME]


class Forgotten(msgspec.Struct, kw_only=True):
    """What was taken out; `unknown`: names that the dataset does not have."""

    nodes: list[str] = []
    unknown: list[str] = []
    history_rows: int = 0


class ForgetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to take out: nodes by name, of the dataset or their host names; nodes without a report for so long; history
    before so long ago.
    """

    dataset: str
    nodes: list[str] = []
    unseen: timedelta | None = None
    history: timedelta | None = None
    dry_run: bool = False
    wait_seconds: float = 60.0


def forget(wanted: ForgetRequest, now: datetime | None = None) -> Forgotten:
    """Raises BadDataset, AmbiguousName, OSError; then the dataset is as it was."""
    now = now or datetime.now(timezone.utc)
    with open_dataset(wanted.dataset, wanted.wait_seconds) as dataset:
        if dataset.new:
            raise BadDataset(f"{wanted.dataset}: no dataset: nothing to forget")
        store, before = dataset.store, dataset.manifest
        staging = Staging(dataset.staging, before.generation + 1)
        nodes, unknown = _choose_nodes(store, before, wanted, now)
        forgotten = Forgotten(nodes=nodes, unknown=unknown)
        latest, state, history = dict(before.latest), list(before.state), dict(before.history)
        if wanted.history is not None:
            history, forgotten.history_rows = _drop_old(store, staging, history, now - wanted.history)
        if nodes and not wanted.dry_run:
            latest = {
                table: _rewrite_files(store, staging, files, schema(table), nodes) for table, files in latest.items()
            }
            state = _rewrite_files(store, staging, state, STATE_SCHEMA, nodes)
            _add_ends(store, staging, history, nodes, now)
        if not wanted.dry_run and (nodes or forgotten.history_rows):
            fill_missing(store, staging, latest, history)
            manifest = msgspec.structs.replace(
                before,
                generation=before.generation + 1,
                written_at=now.isoformat(),
                generator=VERSION,
                nodes=sum(file.rows for file in latest[HOST.name]),
                latest=latest,
                state=state,
                history=history,
            )
            dataset.commit(manifest, {})
        return forgotten


def _choose_nodes(
    store: Store, manifest: Manifest, wanted: ForgetRequest, now: datetime
) -> tuple[list[str], list[str]]:
    """Nodes of the dataset that are meant, and names that it does not have. Raises AmbiguousName."""
    rows = [
        *_read_names(store, manifest, HOST.name, ("node", "hostname", "observed_at", "received_at")),
        *_read_names(store, manifest, SWITCH.name, ("node", "observed_at")),
    ]
    cut = now - wanted.unseen if wanted.unseen is not None else None
    names = NodeNames((row["node"], row.get("hostname")) for row in rows)
    found = {name: names.find(name) for name in wanted.nodes}
    chosen = {node for node in found.values() if node is not None}
    for row in rows:
        seen = row.get("received_at") or row["observed_at"]
        if cut is not None and (seen is None or seen < cut):
            chosen.add(row["node"])
    return sorted(chosen), sorted(name for name, node in found.items() if node is None)


def _read_names(store: Store, manifest: Manifest, table: str, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    plain = pa.schema([column for column in schema(table) if column.name in columns])
    for file in manifest.latest.get(table, []):
        for batch in read_batches(store, file, plain):
            yield from batch.to_pylist()


def _rewrite_files(store: Store, staging: Staging, files: Iterable[File], plain: Any, nodes: list[str]) -> list[File]:
    """The files without rows of these nodes; one that has none stays."""
    gone = pa.array(nodes, pa.string())
    new_files = []
    for file in files:
        parts = [_filter_nodes(batch, gone) for batch in read_batches(store, file, plain)]
        if sum(map(len, parts)) == file.rows:
            new_files.append(file)
            continue
        new = write_file(staging, store, f"{file.path.rpartition('/')[0]}/{staging.name()}", plain, parts)
        new_files += [new] if new else []
    return new_files


def _filter_nodes(batch: Any, gone: Any) -> Any:
    return batch.filter(pc.invert(pc.is_in(batch["node"].cast(pa.string()), value_set=gone)))


def _add_ends(store: Store, staging: Staging, history: dict[str, list[File]], nodes: list[str], now: datetime) -> None:
    """From now on these nodes have no rows: what the state was until then stays in history."""
    names = [(node, table) for node in nodes for table in KEPT]
    moment = int(now.timestamp() * 1_000_000)
    plain = schema(CHANGE.name, True)
    rows = pa.table(
        {
            "node": pa.array([node for node, _ in names], pa.string()),
            "table": pa.array([table for _, table in names], pa.string()),
            "observed_at": pa.array([moment] * len(names), pa.int64()).cast(_MOMENT),
            "digest": pa.array([""] * len(names), pa.string()),
            "rows": pa.array([0] * len(names), pa.int64()),
        }
    )
    files = HistoryFiles(staging, store)
    files.add(CHANGE.name, plain, day_of(moment), rows)
    for table, file in files.close():
        history[table] = [*history.get(table, []), file]


def _drop_old(
    store: Store, staging: Staging, history: dict[str, list[File]], cut: datetime
) -> tuple[dict[str, list[File]], int]:
    """History without what was no longer so at `cut`: of each node and table the state of that moment stays."""
    before = sum(file.rows for files in history.values() for file in files)
    moment = int(cut.timestamp() * 1_000_000)
    old = [file for file in history.get(CHANGE.name, []) if _find_day(file) <= day_of(moment)]
    last = _find_last_changes(store, old, moment)
    moments: defaultdict[str, set[int]] = defaultdict(set)
    for (node, _), observed in last.items():
        moments[node].add(observed)
    for day in sorted({_find_day(file) for file in old}):
        voids = list(_list_void(store, [file for file in old if _find_day(file) == day], last, moment))
        history = correct_history(store, staging, history, voids)
    for day in sorted({_find_day(file) for file in history.get(SIGHTING.name, [])}):
        if day <= day_of(moment):
            files = [file for file in history[SIGHTING.name] if _find_day(file) == day]
            history = correct_history(
                store, staging, history, list(_list_void_sightings(store, files, moments, moment))
            )
    return history, before - sum(file.rows for files in history.values() for file in files)


def _find_day(file: File) -> str:
    return file.path.split("/dt=")[1].split("/")[0]


def _read_changes(store: Store, files: list[File], table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    plain = pa.schema([column for column in schema(table, True) if column.name in columns])
    for file in files:
        for batch in read_batches(store, file, plain):
            moments = batch["observed_at"].cast(pa.int64()).to_pylist()
            others = [batch[name].to_pylist() for name in columns if name != "observed_at"]
            yield from zip(*others, moments, strict=True)


def _find_last_changes(store: Store, files: list[File], moment: int) -> dict[tuple[str, str], int]:
    """Of each node and table, when it last changed until a moment."""
    newest: dict[tuple[str, str], int] = {}
    for node, table, observed in _read_changes(store, files, CHANGE.name, ("node", "table", "observed_at")):
        if observed <= moment and observed > newest.get((node, table), -1):
            newest[node, table] = observed
    return newest


def _list_void(store: Store, files: list[File], last: dict[tuple[str, str], int], moment: int) -> Iterator[Void]:
    for node, table, observed in _read_changes(store, files, CHANGE.name, ("node", "table", "observed_at")):
        if observed <= moment and last[node, table] != observed and table in TABLES:
            yield table, node, observed


def _list_void_sightings(store: Store, files: list[File], moments: dict[str, set[int]], moment: int) -> Iterator[Void]:
    """Reports that no state that is kept is of."""
    for node, observed in _read_changes(store, files, SIGHTING.name, ("node", "observed_at")):
        if observed <= moment and observed not in moments.get(node, ()):
            yield SIGHTING.name, node, observed
