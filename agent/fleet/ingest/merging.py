"""One bucket: what its nodes are now, and what of that goes into their history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from agent.fleet.columns import TYPES, schema
from agent.fleet.dataset import File, Manifest, slot_of
from agent.fleet.ingest.boots import order_by_uptime
from agent.fleet.ingest.files import HistoryFiles, Staging, write_file
from agent.fleet.ingest.history import (
    Edit,
    NodeHistory,
    TableVersion,
    day_of,
    is_late,
    merge_reports,
    read_batches,
    read_copies,
    read_history,
)
from agent.fleet.ingest.node_state import KEPT, STATE_SCHEMA, State, read_states, state_rows
from agent.fleet.ingest.spill import Entry, Spilled, SpilledBlock
from agent.fleet.ingest.windows import QuietChecks, WindowJudge, patch_host_rows
from agent.fleet.rows import NAMES
from agent.fleet.store import Store
from agent.fleet.tables import CHECK, COUNTER, HOST, TIME

_SLICE_ROWS = 1 << 15  # about; of entries whose rows are taken at once
_BY_EPOCH = attrgetter("epoch", "node", "observed")
_PIECE_BYTES = 8 << 20  # of entries on disk that are held at once, three times as much in memory
Changed = dict[str, list[tuple[str, list[Entry]]]]  # by table, entries of each day


class MergeJob(msgspec.Struct, frozen=True):
    """A bucket to be written again."""

    bucket: int
    buckets: int
    blocks: list[SpilledBlock]
    manifest: Manifest  # what is in force, with other buckets perhaps
    sources: list[File]  # of state: the old bucket's
    staging: Staging


class Merged(msgspec.Struct):
    """What became of it; without a state it stays as it was."""

    bucket: int
    latest: dict[str, File]  # tables that have rows
    state: File | None
    removed: list[tuple[str, str, int]]  # table, node, moment: of history, to be taken out
    fresh: int = 0  # reports that count
    late: int = 0  # of these, those that are older than what was known of their node
    unjudged: int = 0  # of those, reports without an earlier sample
    repeated: int = 0


def merge(job: MergeJob, store: Store, spilled: Spilled, history: HistoryFiles, windows: WindowJudge) -> Merged:
    """Write the bucket's new files. Raises OSError."""
    return _BucketMerge(job, store, spilled, history, windows).merge()


class _BucketMerge:
    """What is known of a bucket's nodes while its entries are counted, piece by piece."""

    def __init__(
        self, job: MergeJob, store: Store, spilled: Spilled, history: HistoryFiles, windows: WindowJudge
    ) -> None:
        self._job, self._store, self._spilled, self._history, self._windows = job, store, spilled, history, windows
        self._state = read_states(job.sources, store, lambda node: slot_of(node) % job.buckets == job.bucket)
        self._result = Merged(job.bucket, {}, None, [])
        self._newest: dict[str, Entry] = {}
        self._quiet: dict[str, QuietChecks] = {}

    def merge(self) -> Merged:
        """See merge."""
        job, store, result, state = self._job, self._store, self._result, self._state
        *first, last = _split_pieces(job.blocks)
        for blocks in first:
            self._write_changed_rows(KEPT, self._merge_piece(blocks))
        changed = self._merge_piece(last)
        if not result.fresh and job.buckets == job.manifest.buckets:
            return result
        for name in NAMES:
            self._write_changed_rows((name,), changed)
            path = f"latest/{name}/bucket={job.bucket:02d}/{job.staging.name()}"
            file = write_file(job.staging, store, path, schema(name), self._read_latest(name))
            if file:
                result.latest[name] = file
            pa.default_memory_pool().release_unused()  # what is freed in small pieces would stay with this process
        for node, entry in self._newest.items():
            digests = dict(zip(NAMES, entry.digests, strict=True))
            shape, standing, _ = entry.counted
            state[node] = State(entry.sighting, digests, entry.boot_id, entry.uptime_seconds, shape, standing)
        path = f"state/bucket={job.bucket:02d}/{job.staging.name()}"
        result.state = write_file(job.staging, store, path, STATE_SCHEMA, [state_rows(state)])
        return result

    def _merge_piece(self, blocks: list[SpilledBlock]) -> Changed:
        """Count what some nodes' reports are, and note their newest; what is left to do of their history."""
        by_node: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in self._spilled.entries(blocks):
            by_node[entry.node].append(entry)
        state, result = self._state, self._result
        given: dict[str, list[Entry]] = {}
        for node, entries in by_node.items():
            given[node] = order_by_uptime(entries, state[node].boot_time if node in state else None)
        samples = {node: state[node].sample if node in state else None for node in given}
        judged = self._windows.judge(given, samples, self._list_old_files(COUNTER.name))
        self._quiet |= judged.quiet
        edits = self._plan_edits(judged.entries)
        self._newest |= {node: edit.newest for node, edit in sorted(edits.items()) if isinstance(edit.newest, Entry)}
        for node, edit in edits.items():
            result.removed += [(table, node, moment) for table, moment in edit.removed]
            result.removed += [("sighting", node, moment) for moment in edit.unseen]
            result.repeated += edit.repeated
            result.fresh += len(edit.seen)
            result.late += edit.late
            result.unjudged += len(judged.late.get(node, set()) & {*edit.seen})
        return self._write_history(edits)

    def _list_old_files(self, table: str) -> list[File]:
        """The files in force that hold rows of this bucket's nodes."""
        manifest = self._job.manifest
        old = f"/bucket={self._job.bucket % manifest.buckets:02d}/"
        return [file for file in manifest.latest.get(table, []) if old in file.path and file.rows]

    def _write_changed_rows(self, tables: Iterable[str], changed: Changed) -> None:
        for table in tables:
            for day, entries in changed.get(table, []):
                for part in _slice_entries(entries, table):
                    for rows in _read_rows(self._spilled, table, part, dated=True):
                        self._history.add(table, schema(table, True), day, rows)

    def _plan_edits(self, given: dict[str, list[Entry]]) -> dict[str, Edit]:
        """What is to be done for each node; all of its past is read only where a report comes late."""
        short = {node: _shorten_history(self._state.get(node)) for node in given}
        late = sorted(node for node, entries in given.items() if is_late(short[node], entries))
        if late:
            short |= read_history(self._store, self._job.manifest, late)
        return {node: merge_reports(short[node], entries, KEPT) for node, entries in given.items()}

    def _read_latest(self, table: str) -> Iterator[Any]:
        """Rows of nodes that stay as they are, then those of nodes that have a newer report."""
        newest, quiet = self._newest, self._quiet
        if self._state.keys() - newest.keys():
            new = pa.array(sorted(newest), pa.string())
            own = pa.array(sorted(self._state), pa.string())
            for file in self._list_old_files(table):
                for batch in read_batches(self._store, file, schema(table)):
                    nodes = batch["node"].cast(pa.string())
                    stays = pc.and_not(pc.is_in(nodes, value_set=own), pc.is_in(nodes, value_set=new))
                    yield batch.filter(stays)
        entries = [
            quiet[node].entry if table == CHECK.name and node in quiet else entry for node, entry in newest.items()
        ]
        for part in _slice_entries(entries, table):
            start = 0
            for rows in _read_rows(self._spilled, table, part):
                own = part[start : start + len(rows)]
                start += len(rows)
                yield patch_host_rows(rows, own, quiet) if table == HOST.name else rows

    def _write_history(self, edits: dict[str, Edit]) -> Changed:
        """The changes, the sightings, and rows of earlier changes; what is left: by table, entries of each day."""
        added = [(node, addition) for node, edit in edits.items() for addition in edit.added]
        by_day: defaultdict[str, defaultdict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
        wanted = []
        for node, version in added:
            if isinstance(version.given, Entry):
                by_day[version.table][day_of(version.moment)].append(version.given)
            elif version.change.rows:
                wanted.append((node, version))
        for _, version, rows in read_copies(self._store, self._job.manifest, wanted):
            moments = pa.repeat(pa.scalar(version.moment, TYPES[TIME]), len(rows))
            rows = rows.set_column(rows.column_names.index("observed_at"), "observed_at", moments)
            self._history.add(version.table, schema(version.table, True), day_of(version.moment), rows)
        changed = [
            (node, addition.table, addition.moment, addition.change.digest, addition.change.rows)
            for node, addition in added
        ]
        _by_day("change", ("node", "table", "observed_at", "digest", "rows"), changed, self._history)
        seen = [(node, *sighting) for node, edit in edits.items() for sighting in edit.seen]
        _by_day("sighting", ("node", "observed_at", "generated_at", "report"), seen, self._history)
        return {table: sorted(days.items()) for table, days in by_day.items()}


def _split_pieces(blocks: list[SpilledBlock]) -> list[list[SpilledBlock]]:
    """At least one; all that is of a slot, and so of a node, is in one: of many reports a node memory stays bounded."""
    pieces: list[list[SpilledBlock]] = [[]]
    size, slot = 0, -1
    for block in sorted(blocks, key=lambda block: block.slot):
        if size >= _PIECE_BYTES and block.slot != slot:
            pieces.append([])
            size = 0
        pieces[-1].append(block)
        size, slot = size + block.size, block.slot
    return pieces


def _shorten_history(state: State | None) -> NodeHistory:
    """What the state shows: enough for reports that are newer."""
    if state is None:
        return NodeHistory({}, {})
    moment = state.sighting.observed
    changes = {name: {moment: TableVersion(digest, 0)} for name, digest in state.digests.items() if digest}
    return NodeHistory({moment: state.sighting}, changes)


def _read_rows(spilled: Spilled, table: str, entries: list[Entry], dated: bool = False) -> Iterable[Any]:
    """Rows of entries; those of table host have the moment that counts."""
    parts = spilled.rows(table, entries, dated)
    return _correct_times(parts, entries) if table == HOST.name else parts


def _correct_times(parts: list[Any], entries: list[Entry]) -> Iterator[Any]:
    """Rows of table host, one an entry: of a clock that was set back, the moment by uptime."""
    start = 0
    for rows in parts:
        own = entries[start : start + len(rows)]
        start += len(rows)
        if any(entry.corrected for entry in own):
            moments = pa.array([entry.observed if entry.corrected else None for entry in own], pa.int64())
            moments = moments.cast(TYPES[TIME])
            later = pc.fill_null(pc.less(rows["received_at"], moments), False)
            for name, column in (
                ("observed_at", pc.coalesce(moments, rows["observed_at"])),
                ("received_at", pc.if_else(later, moments, rows["received_at"])),
            ):
                rows = rows.set_column(rows.column_names.index(name), name, column)
        yield rows


def _slice_entries(entries: list[Entry], table: str) -> Iterator[list[Entry]]:
    """Entries by epoch, so that few maps are open, in pieces of a bounded number of rows."""
    place = NAMES.index(table)
    entries = sorted(entries, key=_BY_EPOCH)
    part: list[Entry] = []
    rows = 0
    for entry in entries:
        if not entry.rows[place]:  # a switch has no row of table host
            continue
        part.append(entry)
        rows += len(entry.rows[place]) // 4
        if rows >= _SLICE_ROWS:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _by_day(table: str, names: tuple[str, ...], rows: list[tuple[Any, ...]], history: HistoryFiles) -> None:
    at = names.index("observed_at")
    days: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        days[day_of(row[at])].append(row)
    plain = schema(table, True)
    for day, mine in sorted(days.items()):
        columns = []
        for name, values in zip(names, zip(*mine, strict=True), strict=True):
            kind = plain.field(name).type
            column = pa.array(values, pa.int64() if pa.types.is_timestamp(kind) else kind)
            columns.append(column.cast(kind))
        history.add(table, plain, day, pa.table(columns, names=list(names)))
