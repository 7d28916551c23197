"""A dataset that one ingest holds: what others left half-done is tidied, and a commit replaces the manifest."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec

from agent.fleet.dataset import (
    HISTORY,
    KNOWN_FILES,
    LATEST,
    MANIFEST,
    QUARANTINE,
    STATE,
    BadDataset,
    Manifest,
    read_manifest,
    store_at,
)
from agent.fleet.ingest.files import PARQUET_NAME
from agent.fleet.ingest.quarantine import QUARANTINE_FILE, REASONS
from agent.fleet.store import Folder, Store, hide_secrets
from probes.own_files import hold_lock, list_foreign, open_lock, remove_left_behind, remove_own_file
from probes.planted import PathUse, follow_links, make_folder

LOCK, STAGING = ".lock", ".staging"
_SYNCS = 16
GRACE_SECONDS = 3600.0  # at an object store, which has no lock: what is younger may be of an ingest that is under way
_FOLDERS = (
    rf"{LATEST}/(?:[a-z_]+/(?:bucket=[0-9]+/)?)?|{HISTORY}/(?:[a-z_]+/(?:dt=[0-9-]+/)?)?|{STATE}/(?:bucket=[0-9]+/)?"
)
_OURS = re.compile(
    rf"(?:{LATEST}/[a-z_]+/bucket=[0-9]+|{HISTORY}/[a-z_]+/dt=[0-9-]+|{STATE}/bucket=[0-9]+)/{PARQUET_NAME.pattern}"
)
_EPOCH = r"[0-9]+-(?:judged-)?[0-9]+"
_STAGED = re.compile(
    rf"(?:files/(?:{_FOLDERS}|{QUARANTINE}/)?|epochs/(?:{_EPOCH}/)?)|epochs/[0-9]+-(?:texts|refused)|"
    rf"files/(?:{_OURS.pattern}|{QUARANTINE_FILE.pattern})|epochs/{_EPOCH}/(?:entries|[a-z_]+\.arrow)"
)
_BEFORE_A_MANIFEST = re.compile(
    rf"{re.escape(LOCK)}|{re.escape(KNOWN_FILES)}|{_FOLDERS}|{_OURS.pattern}|"
    rf"{QUARANTINE}/|{QUARANTINE_FILE.pattern}|{re.escape(REASONS)}|"
    rf"{re.escape(STAGING)}/(?:{_STAGED.pattern})?"
)
_REPLACED = re.compile("|".join(re.escape(os.path.basename(name)) for name in (MANIFEST, KNOWN_FILES, REASONS)))


class OpenDataset:
    """The dataset, as it is while no one else writes."""

    def __init__(self, store: Store, manifest: Manifest | None, staging: str, lock: int | None = None) -> None:
        self.store, self.staging = store, staging
        self._lock = lock  # a descriptor; an object store has none
        self.new = manifest is None
        self.committed = False
        self.manifest = manifest or Manifest()

    def commit(self, manifest: Manifest, placed: dict[str, bytes]) -> None:
        """Put new files in place, then the manifest, then remove what it no longer names. Raises OSError, BadDataset.

        `placed`: small files that are no part of the manifest.
        """
        store = self.store
        if isinstance(store, Folder):
            self._check_place()
            self._place(store)
            self._check_place()  # what was put there before a move is in no manifest; the next ingest removes it
        for path, data in placed.items():
            store.replace(path, data)
        if store.remote:
            now = read_manifest(store)
            if (now.generation if now else 0) != self.manifest.generation:
                raise BadDataset(f"{hide_secrets(store.url)}: another ingest has committed meanwhile; run it again")
        data = msgspec.json.encode(manifest, order="deterministic")
        store.replace(MANIFEST, msgspec.json.format(data, indent=1) + b"\n")
        self.committed = True
        gone = _list_names(self.manifest) - _list_names(manifest)
        self.manifest = manifest
        for path in sorted(gone):
            with contextlib.suppress(OSError):  # the next ingest tries again
                store.remove(path)

    @property
    def is_in_place(self) -> bool:
        """Whether its path still leads to it: a folder can be moved, and another one put in its place."""
        if self._lock is None or not isinstance(self.store, Folder):
            return True
        try:
            return os.path.samestat(os.fstat(self._lock), os.stat(self.store.full(LOCK)))
        except OSError:
            return False

    def _check_place(self) -> None:
        if not self.is_in_place:
            raise BadDataset(
                f"{hide_secrets(self.store.url)}: was moved or replaced while this ingest ran; nothing was written to "
                "it: run it again"
            )

    def tidy(self) -> None:
        """Remove files of ours that no manifest names: an ingest was killed. Raises OSError."""
        if self.new and not self.store.remote:
            return
        named = _list_names(self.manifest)
        limit = time.time() - GRACE_SECONDS if self.store.remote else float("inf")
        for folder in (LATEST, HISTORY, STATE):
            for listed in self.store.listed(folder):
                if _OURS.fullmatch(listed.path) and listed.path not in named and listed.modified < limit:
                    self.store.remove(listed.path)

    def _place(self, store: Folder) -> None:
        """Sync every new file, many at once, so that a disk can do them together; then rename each.

        Folders are not synced: renames reach the disk in their order, and the manifest's is the last.
        """
        paths = [os.path.join(place, name) for place, _, names in os.walk(self.staging) for name in names]
        with ThreadPoolExecutor(_SYNCS) as pool:
            list(pool.map(_sync, paths))
        if os.path.isdir(os.path.join(self.staging, QUARANTINE)):
            quarantine = store.full(QUARANTINE)
            os.makedirs(quarantine, 0o700, exist_ok=True)  # bytes of unknown content: not for all readers
            with contextlib.suppress(OSError):  # another user's
                os.chmod(quarantine, 0o700)
        for local in paths:
            store.take(local, os.path.relpath(local, self.staging))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_dataset(url: str, wait_seconds: float) -> Iterator[OpenDataset]:
    """Hold a dataset, made where there is none. Raises BadDataset, OSError."""
    store = store_at(url)
    if isinstance(store, Folder):
        try:
            follow_links(store.root, PathUse.OWN_FOLDER)
        except OSError as error:
            raise BadDataset(f"{error.filename}: {error.strerror}") from error
        if os.path.isdir(store.root):
            _refuse_foreign(store)
        with _list_locked(store, wait_seconds) as (made, lock):
            manifest = _refuse_foreign(store)
            for folder in (store.root, store.full(QUARANTINE)):
                if os.path.isdir(folder):
                    remove_left_behind(folder, _REPLACED)
            place = store.full(STAGING)
            _remove_staging(place)
            os.mkdir(place, 0o700)
            staging = os.path.join(place, "files")
            os.mkdir(staging)
            dataset = OpenDataset(store, manifest, staging, lock)
            try:
                dataset.tidy()
                yield dataset
            finally:
                if dataset.is_in_place:  # what is there else is another's
                    with contextlib.suppress(BadDataset):
                        _remove_staging(place)
                    if dataset.new and not dataset.committed:
                        _remove_empty(store, made)
        return
    with tempfile.TemporaryDirectory(prefix="fabricscope-ingest-", ignore_cleanup_errors=True) as place:
        staging = os.path.join(place, "files")
        os.makedirs(staging)
        dataset = OpenDataset(store, read_manifest(store), staging)
        dataset.tidy()
        yield dataset


def _refuse_foreign(store: Folder) -> Manifest | None:
    """Only an empty folder becomes a dataset: files in it might be someone's. Raises BadDataset, OSError."""
    manifest = read_manifest(store)
    if manifest is None:
        foreign = list_foreign(store.root, _BEFORE_A_MANIFEST, _REPLACED)
        if foreign:
            raise BadDataset(f"{store.root}: not a dataset, and not empty: {foreign[0]!r:.80} is there")
    return manifest


def _remove_staging(place: str) -> None:
    """Remove what an ingest was writing. Raises BadDataset for a folder of that name that is not of an ingest."""
    if not os.path.lexists(place):
        return
    foreign = [""] if os.path.islink(place) or not os.path.isdir(place) else list_foreign(place, _STAGED, _REPLACED)
    if foreign:
        raise BadDataset(f"{os.path.join(place, foreign[0])!r:.200} is there, and is not of an ingest")
    shutil.rmtree(place, ignore_errors=True)


def _remove_empty(store: Folder, made: bool) -> None:
    """Remove what was made for a dataset that did not come about; a folder that was there before stays."""
    with contextlib.suppress(OSError):
        if os.listdir(store.root) == [LOCK]:
            if not os.path.getsize(store.full(LOCK)):
                remove_own_file(store.full(LOCK))
            if made:
                os.rmdir(store.root)


@contextlib.contextmanager
def _list_locked(store: Folder, wait_seconds: float) -> Iterator[tuple[bool, int]]:
    """Hold the folder; whether it was made for this, and the descriptor of its lock."""
    until = time.monotonic() + wait_seconds
    while True:
        made = not os.path.isdir(store.root)
        descriptor = _open_lock(store)
        try:
            if _lock(store, descriptor):
                yield made, descriptor
                return
        finally:
            os.close(descriptor)
        if time.monotonic() >= until:
            raise BadDataset(f"{store.root}: another ingest holds it (waited {wait_seconds:g} s: --wait)")
        time.sleep(0.1)


def _open_lock(store: Folder) -> int:
    try:
        make_folder(store.root, PathUse.OWN_FOLDER)
        return open_lock(store.full(LOCK))
    except OSError as error:
        raise BadDataset(f"{store.root}: cannot be written: {error.strerror}") from error


def _lock(store: Folder, descriptor: int) -> bool:
    """Lock the file, if it is free and still the one of that name: an ingest that made no dataset removes its own."""
    try:
        if not hold_lock(descriptor):
            return False
    except OSError as error:
        raise BadDataset(f"{store.root}: cannot be locked: {error.strerror}") from error
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(store.full(LOCK)))
    except FileNotFoundError:
        return False


def _list_names(manifest: Manifest) -> set[str]:
    parts = [*manifest.latest.values(), *manifest.history.values(), manifest.state]
    return {file.path for part in parts for file in part}
