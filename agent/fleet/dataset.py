"""A dataset: Parquet files that never change, and one manifest that states which of them count.

    DATASET/manifest.json                                what is in force; replacing it is the only commit
    DATASET/latest/<table>/bucket=07/<name>.parquet      each node as its newest report states
    DATASET/history/<table>/dt=2026-01-15/<name>.parquet rows of a node from a moment on, where they became others
    DATASET/state/bucket=07/<name>.parquet               of ingest alone: newest report and digests of each node
    DATASET/known_files.bin                              of ingest alone: files that need not be read again
    DATASET/quarantine/                                  reports that could not be taken, reasons.ndjson

Readers take the file lists of the manifest. Where one of these files is gone, an ingest has committed meanwhile: open
the dataset again. At rest, files on disk are those of the manifest, so that
a plain `latest/host/**/*.parquet` is right.

As of a moment t: of every node and table the row of `change` with the largest `observed_at` <= t, and of the table
itself the history rows of that node and `observed_at`; `rows` 0 states that there are none. Volatile columns of history
are those of some report of that state. A report that comes late is put in at its own time, and what follows from it
after that time is put right: the history is the same in whatever order the reports came.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from typing import Literal, NamedTuple

import msgspec

from agent.fleet.store import BadStore, Store, hide_secrets, store_of
from agent.fleet.tables import FORMAT

MANIFEST = "manifest.json"
KNOWN_FILES = "known_files.bin"
LATEST, HISTORY, STATE, QUARANTINE = "latest", "history", "state", "quarantine"
NodeKey = Literal["hostname", "machine-id", "serial"]  # by what a node is known
HOSTNAME: NodeKey = "hostname"
SLOTS = 1024  # the most buckets that there can be; a power of two, as every number of buckets


class BadDataset(Exception):
    """No dataset that can be read or written; the message is one line that names it."""


class File(msgspec.Struct, frozen=True):
    """A Parquet file of the dataset."""

    path: str  # below the dataset
    rows: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force. Fields are added, never renamed."""

    format: str = ""  # FORMAT; with none it is damaged
    generation: int = 0
    written_at: str = ""  # RFC 3339
    generator: str = ""  # version that wrote it
    buckets: int = 1
    node_key: NodeKey = HOSTNAME  # datasets of earlier versions do not show it
    nodes: int = 0
    quarantined: int = 0  # reports in quarantine/reasons.ndjson
    latest: dict[str, list[File]] = {}
    history: dict[str, list[File]] = {}
    state: list[File] = []


class Dataset(NamedTuple):
    """An opened dataset: one moment of it."""

    store: Store
    manifest: Manifest

    def latest(self, table: str, buckets: Collection[int] | None = None) -> list[str]:
        """Files (paths, or URLs of an object store) of a table; none for one that its writer did not have.

        `buckets`: only of these.
        """
        folders = None if buckets is None else {f"bucket={bucket:02d}" for bucket in buckets}
        return [
            self.store.full(file.path)
            for file in self.manifest.latest.get(table, ())
            if folders is None or file.path.split("/")[-2] in folders
        ]

    def bucket(self, node: str) -> int:
        """In which bucket the newest rows of a node are."""
        return slot_of(node) % self.manifest.buckets

    def history(self, table: str) -> list[str]:
        """The same of a table's history."""
        return [self.store.full(file.path) for file in self.manifest.history.get(table, ())]


def open_dataset(url: str) -> Dataset:
    """The dataset at a folder or URL as it is now. Raises BadDataset."""
    store = store_at(url)
    manifest = read_manifest(store)
    if manifest is None:
        raise BadDataset(f"{hide_secrets(url)}: no dataset: it has no {MANIFEST} (fabricscope fleet ingest makes one)")
    return Dataset(store, manifest)


def store_at(url: str) -> Store:
    """The store of a dataset. Raises BadDataset."""
    try:
        url.encode()
        return store_of(url)
    except BadStore as error:
        raise BadDataset(str(error)) from error
    except UnicodeEncodeError as error:  # what reads and writes Parquet takes no such name
        plain = hide_secrets(url).encode("utf-8", "backslashreplace").decode()
        raise BadDataset(f"{plain}: a dataset's name has to be UTF-8") from error


def read_manifest(store: Store) -> Manifest | None:
    """The manifest, or None where there is none. Raises BadDataset."""
    where = f"{hide_secrets(store.url).rstrip('/')}/{MANIFEST}"
    try:
        data = store.read(MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadDataset(f"{where}: {error.strerror or str(error)[:200]}") from error
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDataset(f"{where}: damaged: {error}") from error
    if not manifest.format:
        raise BadDataset(f"{where}: damaged: it has no format")
    if manifest.format != FORMAT:
        raise BadDataset(f"{where}: its format is {manifest.format!r:.60}, and this version reads {FORMAT}")
    wrong = _wrong(manifest)
    if wrong:
        raise BadDataset(f"{where}: damaged: {wrong}")
    return manifest


def slot_of(node: str) -> int:
    """0 .. SLOTS - 1, of a node's name, the same for ever; its bucket is the rest after division by their number."""
    return zlib.crc32(node.encode("utf-8", "surrogatepass")) % SLOTS


def _wrong(manifest: Manifest) -> str | None:
    if not 1 <= manifest.buckets <= SLOTS or manifest.buckets & (manifest.buckets - 1):
        return f"{manifest.buckets} buckets"
    for part in (*manifest.latest.values(), *manifest.history.values(), manifest.state):
        for file in part:
            if file.path.startswith("/") or ".." in file.path.split("/"):
                return f"a path leads out of it: {file.path!r:.80}"
    return None
