"""What a dataset's history holds of some nodes: read where a report comes late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agent.fleet.columns import packed_schema, schema
from agent.fleet.dataset import BadDataset, File, Manifest
from agent.fleet.ingest.timeline import Added, NodeHistory, Sighting, TableVersion
from agent.fleet.store import Store, shown

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY_MICROS = 86_400_000_000
BATCH_ROWS = 1 << 16


def known(store: Store, manifest: Manifest, nodes: list[str]) -> dict[str, NodeHistory]:
    """All sightings and changes of some nodes. Raises OSError."""
    found = {node: NodeHistory({}, {}) for node in nodes}
    sightings: dict[str, dict[int, Sighting]] = defaultdict(dict)
    changes: dict[str, dict[str, dict[int, TableVersion]]] = defaultdict(lambda: defaultdict(dict))
    for row in _rows(store, manifest.history.get("sighting", []), nodes, "sighting"):
        sightings[row["node"]][row["observed_at"]] = Sighting(row["observed_at"], row["generated_at"], row["report"])
    for row in _rows(store, manifest.history.get("change", []), nodes, "change"):
        changes[row["node"]][row["table"]][row["observed_at"]] = TableVersion(row["digest"], row["rows"])
    return {node: NodeHistory(sightings[node], changes[node]) for node in found}


def copies(store: Store, manifest: Manifest, wanted: list[tuple[str, Added]]) -> Iterator[tuple[str, Added, Any]]:
    """The rows of earlier changes (node, change) as Arrow tables in history's columns. Raises OSError."""
    by_file: dict[tuple[str, str], list[tuple[str, Added]]] = defaultdict(list)
    for node, added in wanted:
        by_file[added.table, day(added.copied)].append((node, added))
    for (table, when), asked in by_file.items():
        files = [file for file in manifest.history.get(table, []) if f"/dt={when}/" in file.path]
        nodes = sorted({node for node, _ in asked})
        parts = [part for part in _filtered(store, files, schema(table, True), nodes) if len(part)]
        if not parts:
            continue
        rows = pa.concat_tables(parts)
        for node, added in asked:
            same = pc.and_(
                pc.equal(rows["node"], node), pc.equal(rows["observed_at"], pa.scalar(added.copied, _moment()))
            )
            yield node, added, rows.filter(same)


def batches(store: Store, file: File, plain: Any) -> Iterator[Any]:
    """A Parquet file in pieces, with the columns of `plain`, text by dictionary: a column that it lacks is null.

    Raises BadDataset.
    """
    text = [each.name for each in plain if each.type == pa.string()]
    try:
        opened = pq.ParquetFile(store.opened(file.path), read_dictionary=text, memory_map=not store.remote)
        with opened:
            there = [each.name for each in plain if each.name in opened.schema_arrow.names]
            for batch in opened.iter_batches(BATCH_ROWS, columns=there):
                yield fitted(pa.Table.from_batches([batch]), plain)
    except (pa.ArrowException, OSError) as error:
        where = f"{shown(store.url).rstrip('/')}/{file.path}"
        said = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise BadDataset(f"{where}: cannot be read, or damaged: {said}") from error


def fitted(rows: Any, plain: Any) -> Any:
    """A table with exactly the columns of `plain`, text by dictionary."""
    return joined([rows], plain)


def joined(parts: list[Any], plain: Any) -> Any:
    """Tables as one, in one piece, with exactly the columns of `plain`, text by dictionary; what one lacks is null."""
    there = [set(each.column_names) for each in parts]
    columns = []
    for field in packed_schema(plain):
        chunks = []
        for rows, names in zip(parts, there, strict=True):
            if field.name in names:
                chunks += rows.column(field.name).chunks
            else:
                chunks.append(pa.nulls(len(rows), field.type))
        columns.append(_column(chunks, field.type))
    return pa.table(columns, schema=packed_schema(plain))


def _column(chunks: list[Any], kind: Any) -> Any:
    if not pa.types.is_dictionary(kind):
        return pa.chunked_array([each if each.type == kind else each.cast(kind) for each in chunks], kind)
    if all(each.type == kind for each in chunks):
        return pa.chunked_array(chunks, kind).unify_dictionaries().combine_chunks()
    text = kind.value_type
    plain = pa.chunked_array([each if each.type == text else each.cast(text) for each in chunks], text)
    return plain.combine_chunks().dictionary_encode()


def day(micros: int) -> str:
    """The partition of a moment: "2026-01-15"."""
    return _day(micros // _DAY_MICROS)


@lru_cache(1024)
def _day(number: int) -> str:
    return (_START + timedelta(days=number)).date().isoformat()


def _filtered(store: Store, files: Iterable[File], plain: Any, nodes: list[str]) -> Iterator[Any]:
    wanted = pa.array(nodes, pa.string())
    for file in files:
        for batch in batches(store, file, plain):
            yield batch.filter(pc.is_in(batch["node"].cast(pa.string()), value_set=wanted))


def _rows(store: Store, files: list[File], nodes: list[str], table: str) -> Iterator[dict[str, Any]]:
    """As dictionaries, with times in microseconds."""
    for part in _filtered(store, files, schema(table, True), nodes):
        plain = {
            name: part[name].cast(pa.int64()) for name in part.column_names if pa.types.is_timestamp(part[name].type)
        }
        made = pa.table({name: plain.get(name, part[name]) for name in part.column_names})
        yield from made.to_pylist()


def _moment() -> Any:
    return pa.timestamp("us", tz="UTC")
