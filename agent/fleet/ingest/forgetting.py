"""Takes nodes out of a dataset, and history that is older than anybody needs."""

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
from agent.fleet.ingest.files import HistoryFiles, Staging, Void, corrected, filled, written
from agent.fleet.ingest.history import day_of, read_batches
from agent.fleet.ingest.locked_dataset import Held, held
from agent.fleet.ingest.merging import KEPT, STATE_SCHEMA
from agent.fleet.node_names import NodeNames
from agent.fleet.store import Store
from agent.fleet.tables import CHANGE, SIGHTING, TABLES, TIME
from agent.version import VERSION

_MOMENT = TYPES[TIME]


class Forgotten(msgspec.Struct, kw_only=True):
    """What was taken out; `unknown`: names that the dataset does not have."""

    nodes: list[str] = []
    unknown: list[str] = []
    history_rows: int = 0


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to take out: nodes by name, of the dataset or their host names; nodes without a report for so long; history
    before so long ago.
    """

    dataset: str
    nodes: list[str] = []
    unseen: timedelta | None = None
    history: timedelta | None = None
    dry_run: bool = False
    wait_seconds: float = 60.0


def forget(wanted: Wanted, now: datetime | None = None) -> Forgotten:
    """Raises BadDataset, AmbiguousName, OSError; then the dataset is as it was."""
    now = now or datetime.now(timezone.utc)
    with held(wanted.dataset, wanted.wait_seconds) as dataset:
        if dataset.new:
            raise BadDataset(f"{wanted.dataset}: no dataset: nothing to forget")
        store, before = dataset.store, dataset.manifest
        staging = Staging(dataset.staging, before.generation + 1)
        nodes, unknown = _chosen(store, before, wanted, now)
        made = Forgotten(nodes=nodes, unknown=unknown)
        latest, state, history = dict(before.latest), list(before.state), dict(before.history)
        if wanted.history is not None:
            history, made.history_rows = _without_old(store, staging, history, now - wanted.history)
        if nodes and not wanted.dry_run:
            latest = {table: _rewritten(store, staging, files, schema(table), nodes) for table, files in latest.items()}
            state = _rewritten(store, staging, state, STATE_SCHEMA, nodes)
            _add_ends(store, staging, history, nodes, now)
        if not wanted.dry_run and (nodes or made.history_rows):
            filled(store, staging, latest, history)
            _commit(dataset, before, now, latest, state, history)
        return made


def _commit(
    dataset: Held,
    before: Manifest,
    now: datetime,
    latest: dict[str, list[File]],
    state: list[File],
    history: dict[str, list[File]],
) -> None:
    manifest = msgspec.structs.replace(
        before,
        generation=before.generation + 1,
        written_at=now.isoformat(),
        generator=VERSION,
        nodes=sum(file.rows for file in state),
        latest=latest,
        state=state,
        history=history,
    )
    dataset.commit(manifest, {})


def _chosen(store: Store, manifest: Manifest, wanted: Wanted, now: datetime) -> tuple[list[str], list[str]]:
    """Nodes of the dataset that are meant, and names that it does not have. Raises AmbiguousName."""
    wanted_columns = ("node", "hostname", "observed_at", "received_at")
    plain = pa.schema([column for column in schema("host") if column.name in wanted_columns])
    cut = now - wanted.unseen if wanted.unseen is not None else None
    files = manifest.latest.get("host", [])
    rows = [row for file in files for batch in read_batches(store, file, plain) for row in batch.to_pylist()]
    names = NodeNames((row["node"], row["hostname"]) for row in rows)
    found = {name: names.find(name) for name in wanted.nodes}
    chosen = {node for node in found.values() if node is not None}
    for row in rows:
        seen = row["received_at"] or row["observed_at"]
        if cut is not None and (seen is None or seen < cut):
            chosen.add(row["node"])
    return sorted(chosen), sorted(name for name, node in found.items() if node is None)


def _rewritten(store: Store, staging: Staging, files: Iterable[File], plain: Any, nodes: list[str]) -> list[File]:
    """The files without rows of these nodes; one that has none stays."""
    gone = pa.array(nodes, pa.string())
    found = []
    for file in files:
        parts = [_without(batch, gone) for batch in read_batches(store, file, plain)]
        if sum(map(len, parts)) == file.rows:
            found.append(file)
            continue
        new = written(staging, store, f"{file.path.rpartition('/')[0]}/{staging.name()}", plain, parts)
        found += [new] if new else []
    return found


def _without(batch: Any, gone: Any) -> Any:
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


def _without_old(
    store: Store, staging: Staging, history: dict[str, list[File]], cut: datetime
) -> tuple[dict[str, list[File]], int]:
    """History without what was no longer so at `cut`: of each node and table the state of that moment stays."""
    before = sum(file.rows for files in history.values() for file in files)
    moment = int(cut.timestamp() * 1_000_000)
    old = [file for file in history.get(CHANGE.name, []) if _day_of(file) <= day_of(moment)]
    last = _last_changes(store, old, moment)
    kept: defaultdict[str, set[int]] = defaultdict(set)
    for (node, _), observed in last.items():
        kept[node].add(observed)
    for when in sorted({_day_of(file) for file in old}):
        voids = list(_void(store, [file for file in old if _day_of(file) == when], last, moment))
        history = corrected(store, staging, history, voids)
    for when in sorted({_day_of(file) for file in history.get(SIGHTING.name, [])}):
        if when <= day_of(moment):
            files = [file for file in history[SIGHTING.name] if _day_of(file) == when]
            history = corrected(store, staging, history, list(_void_sightings(store, files, kept, moment)))
    return history, before - sum(file.rows for files in history.values() for file in files)


def _day_of(file: File) -> str:
    return file.path.split("/dt=")[1].split("/")[0]


def _changes(store: Store, files: list[File], table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    plain = pa.schema([each for each in schema(table, True) if each.name in columns])
    for file in files:
        for batch in read_batches(store, file, plain):
            moments = batch["observed_at"].cast(pa.int64()).to_pylist()
            others = [batch[name].to_pylist() for name in columns if name != "observed_at"]
            yield from zip(*others, moments, strict=True)


def _last_changes(store: Store, files: list[File], moment: int) -> dict[tuple[str, str], int]:
    """Of each node and table, when it last changed until a moment."""
    found: dict[tuple[str, str], int] = {}
    for node, table, observed in _changes(store, files, CHANGE.name, ("node", "table", "observed_at")):
        if observed <= moment and observed > found.get((node, table), -1):
            found[node, table] = observed
    return found


def _void(store: Store, files: list[File], last: dict[tuple[str, str], int], moment: int) -> Iterator[Void]:
    for node, table, observed in _changes(store, files, CHANGE.name, ("node", "table", "observed_at")):
        if observed <= moment and last[node, table] != observed and table in TABLES:
            yield table, node, observed


def _void_sightings(store: Store, files: list[File], kept: dict[str, set[int]], moment: int) -> Iterator[Void]:
    """Reports that no state that is kept is of."""
    for node, observed in _changes(store, files, SIGHTING.name, ("node", "observed_at")):
        if observed <= moment and observed not in kept.get(node, ()):
            yield SIGHTING.name, node, observed
