"""What one node's reports make of its history, and what a dataset's history holds where a report comes late.

Pure but for reading files: the result depends on the reports, never on their order. A node's history is, for every
table, the moments at which its rows became others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agent.fleet.columns import TYPES, packed_schema, schema
from agent.fleet.dataset import BadDataset, File, Manifest
from agent.fleet.store import Store, hide_secrets
from agent.fleet.tables import TIME


class Sighting(NamedTuple):
    """A report that counts. Times are microseconds since 1970. Ordered: of one moment the largest counts."""

    observed: int
    generated: int
    report: str


class TableVersion(NamedTuple):
    """What a table's rows became. No rows: digest ""."""

    digest: str
    rows: int


class NodeHistory(NamedTuple):
    """What is known of a node: by moment, and by table and moment.

    Where all that is given is newer, the newest sighting and the newest change of each table are enough.
    """

    sightings: Mapping[int, Sighting]
    changes: Mapping[str, Mapping[int, TableVersion]]


class Given(Protocol):
    """A report that is given."""

    @property
    def sighting(self) -> Sighting:
        """When it is of."""

    def change(self, table: str) -> TableVersion:
        """What its rows of a table are."""


class Added(NamedTuple):
    """A change that is not in history. Its rows are those of a given report, or those of an earlier change."""

    table: str
    moment: int
    change: TableVersion
    given: Given | None
    copied: int  # moment of the change that has the same rows, where no report is given


class Edit(NamedTuple):
    """What is to be done to a node's history, and which report is its newest (None: the one it has)."""

    newest: Given | None
    added: list[Added]
    removed: list[tuple[str, int]]  # table, moment
    seen: list[Sighting]
    unseen: list[int]  # moments whose sighting is another now
    late: int  # of the given reports, those that count and are not newer than all that was known
    repeated: int  # of the given reports, those that change nothing: known, or of a moment that has a better one


def is_late(known: NodeHistory, given: Iterable[Given]) -> bool:
    """Whether more has to be known of the node than its newest sighting."""
    newest = max(known.sightings.values(), default=None)
    return newest is not None and any(
        report.sighting.observed <= newest.observed and report.sighting != newest for report in given
    )


def merge_reports(known: NodeHistory, given: Sequence[Given], tables: Sequence[str]) -> Edit:
    """Put reports into a node's history."""
    best: dict[int, Given] = {}
    for report in given:
        moment = report.sighting.observed
        if moment not in best or best[moment].sighting < report.sighting:
            best[moment] = report
    fresh = {
        moment: given
        for moment, given in best.items()
        if moment not in known.sightings or known.sightings[moment] < given.sighting
    }
    if not fresh:
        return Edit(None, [], [], [], [], 0, len(given))
    moments = sorted(known.sightings.keys() | fresh.keys())
    added: list[Added] = []
    removed: list[tuple[str, int]] = []
    for table in tables:
        _check_table(table, known.changes.get(table, {}), fresh, moments, added, removed)
    seen = [fresh[moment].sighting for moment in sorted(fresh)]
    unseen = sorted(fresh.keys() & known.sightings.keys())
    late = sum(moment <= max(known.sightings) for moment in fresh) if known.sightings else 0
    return Edit(fresh.get(moments[-1]), added, removed, seen, unseen, late, len(given) - len(fresh))


def _check_table(
    table: str,
    known: Mapping[int, TableVersion],
    fresh: Mapping[int, Given],
    moments: Sequence[int],
    added: list[Added],
    removed: list[tuple[str, int]],
) -> None:
    """One table: go through all moments as they are now, beside what was known at each."""
    state = before = TableVersion("", 0)
    since = 0  # moment of the known change that `before` is of
    for moment in moments:
        old = known.get(moment)
        if old is not None:
            before, since = old, moment
        given = fresh.get(moment)
        now = given.change(table) if given is not None else before
        if now.digest == state.digest:
            if old is not None:
                removed.append((table, moment))
            continue
        state = now
        if old is not None and (given is None or old.digest == now.digest):
            continue  # it is there
        if old is not None:
            removed.append((table, moment))
        added.append(Added(table, moment, now, given, since))


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY_MICROS = 86_400_000_000
BATCH_ROWS = 1 << 16


def read_history(store: Store, manifest: Manifest, nodes: list[str]) -> dict[str, NodeHistory]:
    """All sightings and changes of some nodes. Raises OSError."""
    histories = {node: NodeHistory({}, {}) for node in nodes}
    sightings: dict[str, dict[int, Sighting]] = defaultdict(dict)
    changes: dict[str, dict[str, dict[int, TableVersion]]] = defaultdict(lambda: defaultdict(dict))
    for row in _read_rows(store, manifest.history.get("sighting", []), nodes, "sighting"):
        sightings[row["node"]][row["observed_at"]] = Sighting(row["observed_at"], row["generated_at"], row["report"])
    for row in _read_rows(store, manifest.history.get("change", []), nodes, "change"):
        changes[row["node"]][row["table"]][row["observed_at"]] = TableVersion(row["digest"], row["rows"])
    return {node: NodeHistory(sightings[node], changes[node]) for node in histories}


def read_copies(store: Store, manifest: Manifest, wanted: list[tuple[str, Added]]) -> Iterator[tuple[str, Added, Any]]:
    """The rows of earlier changes (node, change) as Arrow tables in history's columns. Raises OSError."""
    by_file: dict[tuple[str, str], list[tuple[str, Added]]] = defaultdict(list)
    for node, added in wanted:
        by_file[added.table, day_of(added.copied)].append((node, added))
    for (table, day), rows_wanted in by_file.items():
        files = [file for file in manifest.history.get(table, []) if f"/dt={day}/" in file.path]
        nodes = sorted({node for node, _ in rows_wanted})
        parts = [part for part in _filter_files(store, files, schema(table, True), nodes) if len(part)]
        if not parts:
            continue
        rows = pa.concat_tables(parts)
        for node, added in rows_wanted:
            same = pc.and_(
                pc.equal(rows["node"], node), pc.equal(rows["observed_at"], pa.scalar(added.copied, TYPES[TIME]))
            )
            yield node, added, rows.filter(same)


def read_batches(store: Store, file: File, plain: Any, threads: bool = True) -> Iterator[Any]:
    """A Parquet file in pieces, with the columns of `packed_schema`: a missing one is null. `threads`: some are
    started, which stay.

    Raises BadDataset.
    """
    try:
        source = store.opened(file.path)
        footer = pq.read_metadata(source, memory_map=not store.remote)
        there = [field.name for field in plain if field.name in footer.schema.names]
        text = [name for name in there if pa.types.is_dictionary(packed_schema(plain).field(name).type)]
        opened = pq.ParquetFile(
            source, metadata=footer, read_dictionary=text, memory_map=not store.remote, pre_buffer=threads
        )
        with opened:
            for batch in opened.iter_batches(BATCH_ROWS, columns=there, use_threads=threads):
                yield fit_columns(pa.Table.from_batches([batch]), plain)
    except (pa.ArrowException, OSError) as error:
        where = f"{hide_secrets(store.url).rstrip('/')}/{file.path}"
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise BadDataset(f"{where}: cannot be read, or damaged: {reason}") from error


def fit_columns(rows: Any, plain: Any) -> Any:
    """A table with exactly the columns of `packed_schema`."""
    return join_tables([rows], plain)


def join_tables(parts: list[Any], plain: Any) -> Any:
    """Tables as one, in one piece, with exactly the columns of `packed_schema`; a missing one is null."""
    there = [set(part.column_names) for part in parts]
    columns = []
    for field in packed_schema(plain):
        chunks = []
        for rows, names in zip(parts, there, strict=True):
            if field.name in names:
                chunks += rows.column(field.name).chunks
            else:
                chunks.append(pa.nulls(len(rows), field.type))
        columns.append(_read_column(chunks, field.type))
    return pa.table(columns, schema=packed_schema(plain))


def _read_column(chunks: list[Any], kind: Any) -> Any:
    if len(chunks) == 1 and chunks[0].type == kind:
        return chunks[0]
    if not pa.types.is_dictionary(kind):
        return pa.chunked_array([chunk if chunk.type == kind else chunk.cast(kind) for chunk in chunks], kind)
    if all(chunk.type == kind for chunk in chunks):
        return pa.chunked_array(chunks, kind).unify_dictionaries().combine_chunks()
    text = kind.value_type
    plain = pa.chunked_array([chunk if chunk.type == text else chunk.cast(text) for chunk in chunks], text)
    return plain.combine_chunks().dictionary_encode()


def day_of(micros: int) -> str:
    """The partition of a moment: "2026-01-15"."""
    return _find_day(micros // _DAY_MICROS)


@lru_cache(1024)
def _find_day(number: int) -> str:
    return (EPOCH + timedelta(days=number)).date().isoformat()


def _filter_files(store: Store, files: Iterable[File], plain: Any, nodes: list[str]) -> Iterator[Any]:
    wanted = pa.array(nodes, pa.string())
    for file in files:
        for batch in read_batches(store, file, plain):
            yield batch.filter(pc.is_in(batch["node"].cast(pa.string()), value_set=wanted))


def _read_rows(store: Store, files: list[File], nodes: list[str], table: str) -> Iterator[dict[str, Any]]:
    """As dictionaries, with times in microseconds."""
    for part in _filter_files(store, files, schema(table, True), nodes):
        plain = {
            name: part[name].cast(pa.int64()) for name in part.column_names if pa.types.is_timestamp(part[name].type)
        }
        columns = pa.table({name: plain.get(name, part[name]) for name in part.column_names})
        yield from columns.to_pylist()
