"""Reports that the dataset has: found by their digest, before anything of them is decoded.

The digest of a file that has not changed since it was read is remembered: it is not even opened. Only a report whose
digest the dataset has is left out, so that a list that is old, or of another dataset, costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from os import stat_result

import pyarrow as pa
import pyarrow.compute as pc

from agent.fleet.columns import schema
from agent.fleet.dataset import KNOWN_FILES, Manifest
from agent.fleet.ingest.history import read_batches
from agent.fleet.ingest.sources import Item
from agent.fleet.store import FileIdentity, Store, identity_of

MOST = 4_000_000  # digests that are held, the latest days first: 32 MB
MOST_FILES = 1_000_000  # that are remembered: 16 MB
SETTLED_SECONDS = 2.0  # a file that changed later than that may change once more within the same tick of its clock
_SIGHTING = "sighting"
_MAGIC = b"files1" + sys.byteorder[:1].encode()  # the numbers behind it are this machine's
ReadFile = tuple[int, int]  # key of a file as it was, start of its report's digest


class KnownReports:
    """Digests of the reports of one cluster. They are read when one is first asked for."""

    def __init__(self, store: Store, manifest: Manifest, cluster: str | None) -> None:
        self._store, self._manifest, self._cluster = store, manifest, cluster
        self._digests: array[int] | None = None

    def __contains__(self, digest: str) -> bool:
        """Raises BadDataset."""
        return self.has(int(digest[:16], 16))

    def has(self, number: int) -> bool:
        """Whether a digest starts with this number. Raises BadDataset."""
        if self._digests is None:
            self._digests = self._read()
        place = bisect_left(self._digests, number)
        return place < len(self._digests) and self._digests[place] == number

    def _read(self) -> array[int]:
        digests: array[int] = array("Q")
        plain = pa.schema([column for column in schema(_SIGHTING, True) if column.name in ("node", "report")])
        newest_first = sorted(self._manifest.history.get(_SIGHTING, []), key=lambda file: file.path, reverse=True)
        for file in newest_first:
            if len(digests) >= MOST:
                break
            # of a process without threads, workers can be copies
            for batch in read_batches(self._store, file, plain, threads=False):
                ours = self._filter_cluster(batch["node"].cast(pa.string()))
                digests.extend(int(digest, 16) for digest in batch.filter(ours)["report"].to_pylist() if digest)
        return _sort_numbers(digests)

    def _filter_cluster(self, nodes: pa.ChunkedArray) -> pa.ChunkedArray:
        """The same report with another --cluster is that of another node."""
        if self._cluster is None:
            return pc.invert(pc.match_substring(nodes, "/"))
        return pc.starts_with(nodes, f"{self._cluster}/")


class KnownFiles:
    """Files of drop folders that were read, as they were then."""

    def __init__(self, store: Store, reports: KnownReports) -> None:
        self._store, self._reports = store, reports
        self._keys, self._digests = _load(store)
        self._seen = bytearray(len(self._keys))
        self._new: dict[int, int] = {}
        self.skipped = 0

    def unknown(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items that have to be read. Raises BadDataset."""
        for item in items:
            if item.identity and self._has(_make_key(item.file, item.identity)):
                self.skipped += 1
            else:
                yield item

    def add(self, files: list[ReadFile]) -> None:
        """These were read."""
        self._new.update(files)

    def save(self) -> None:
        """Where there are too many, those of this run; a list that cannot be written is the old one."""
        if not self._new:
            return
        crowded = len(self._keys) + len(self._new) > MOST_FILES
        old = zip(self._keys, self._digests, self._seen, strict=True)
        remaining = {key: digest for key, digest, seen in old if seen or not crowded} | self._new
        rows = sorted(remaining.items())[:MOST_FILES]
        columns = (array("Q", (row[at] for row in rows)).tobytes() for at in (0, 1))
        with contextlib.suppress(OSError):
            self._store.replace(KNOWN_FILES, _MAGIC + b"".join(columns))

    def _has(self, key: int) -> bool:
        place = bisect_left(self._keys, key)
        if place == len(self._keys) or self._keys[place] != key or not self._reports.has(self._digests[place]):
            return False
        self._seen[place] = 1
        return True


def read_file(path: str, file_stat: stat_result, digest: str) -> ReadFile | None:
    """What to remember of a file; `file_stat`: of before it was read. None: it may be changing still."""
    if time.time() - file_stat.st_ctime < SETTLED_SECONDS:
        return None
    return _make_key(path, identity_of(file_stat)), int(digest[:16], 16)


def _sort_numbers(numbers: array[int]) -> array[int]:
    """As `sorted` does it, which makes an object of each."""
    digests = array("Q")
    if numbers:
        column = pa.Array.from_buffers(pa.uint64(), len(numbers), [None, pa.py_buffer(numbers)])
        digests.frombytes(column.take(pc.array_sort_indices(column)).buffers()[1])
    return digests


def _make_key(path: str, identity: FileIdentity) -> int:
    text = "/".join((*map(str, identity), path)).encode("utf-8", "surrogateescape")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def _load(store: Store) -> tuple[array[int], array[int]]:
    """None where it is not there, or not as it was written."""
    keys, digests = array("Q"), array("Q")
    try:
        data = store.read(KNOWN_FILES)
    except OSError:
        return keys, digests
    count, rest = divmod(len(data) - len(_MAGIC), 16)
    if data.startswith(_MAGIC) and not rest and count <= MOST_FILES:
        middle = len(_MAGIC) + 8 * count
        keys.frombytes(data[len(_MAGIC) : middle])
        digests.frombytes(data[middle:])
    return keys, digests
