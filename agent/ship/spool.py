"""The spool: reports that wait, within bounds, on a disk that may be full, for runs that may be killed at any moment.

    lock  state.json
    waiting/20260115T080000Z_error_<sha256>.json.gz     whole, or not there
    aside/    what is damaged or was refused, each with a .why
    dropped/  tombstones (state.py)

A name states what a report is worth and what its digest has to be; nothing else has to be trusted of a file. A file of
any other name is someone's: it is not read, not moved, not counted and not removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from agent.reports import replace_file, sync_folder
from agent.ship.payload import BadPayload, Payload, compress, read_payload
from agent.ship.state import ENTRY_NAME, TOMBSTONE, Journal, Warn, drop_kind
from probes.own_files import hold_lock, list_foreign, open_lock, remove_left_behind, remove_own_file
from probes.planted import PathUse, follow_links, make_folder

FULL = (errno.ENOSPC, errno.EDQUOT)
_RANK = {"ok": 0, "unknown": 1}
_ASIDE_RANK, _FINDINGS_RANK = -1, 2
_ORPHAN_SECONDS = 3600.0
_TEMPORARY = re.compile(rf"{ENTRY_NAME.pattern}(?:\.why)?|state\.json|new|late-[0-9a-f]{{16}}")  # the last two: to 0.9
_OURS = re.compile(
    rf"lock|state\.json(?:\.damaged)?|(?:waiting|aside|dropped)/|"
    rf"(?:waiting|aside)/{ENTRY_NAME.pattern}|aside/{ENTRY_NAME.pattern}\.why|dropped/{TOMBSTONE.pattern}"
)


class NoSpool(Exception):
    """The folder is someone's: it holds other files, and nothing in it is touched. The message names one."""


class SpoolEntry(NamedTuple):
    """A file of the spool. In this order they are dropped: the least worth first, then the oldest."""

    rank: int
    timestamp: str
    name: str
    size: int  # bytes
    folder: str = "waiting"

    @property
    def kind(self) -> str:
        """Under what it is counted when it is dropped."""
        return "set_aside" if self.folder == "aside" else drop_kind(self.name.split("_")[1])


def make_entry(payload: Payload, size: int) -> SpoolEntry:
    """The entry that a report would be."""
    name = f"{payload.timestamp}_{payload.verdict}_{payload.digest}.json.gz"
    return SpoolEntry(_RANK.get(payload.verdict, _FINDINGS_RANK), payload.timestamp, name, size)


class Spool:
    """A folder; everything but `lock` and `put_unlocked` is for the run that holds the lock."""

    def __init__(self, path: str, limit_bytes: int, limit_count: int, warn: Warn) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.limit_count = limit_count
        self.journal = Journal(path, warn)
        self._warn = warn
        self.is_disk_full = False  # which bounded this run before the limits did

    @contextlib.contextmanager
    def lock(self, until: float) -> Iterator[bool]:
        """Make the folders and hold the spool; False where another run holds it until then. Raises NoSpool, OSError."""
        follow_links(self.path, PathUse.OWN_FOLDER)
        self._refuse_foreign()
        make_folder(self.path, PathUse.OWN_FOLDER, 0o700)
        for name in ("waiting", "aside", "dropped"):
            os.makedirs(os.path.join(self.path, name), exist_ok=True)
        descriptor = open_lock(os.path.join(self.path, "lock"))
        try:
            is_locked = hold_lock(descriptor, until)
            if is_locked:
                self.journal.load()
                self._tidy()
            yield is_locked
        finally:
            os.close(descriptor)

    def waiting(self) -> list[SpoolEntry]:
        """What waits."""
        return self._list_folder("waiting")

    def put(self, payload: Payload, drop: bool) -> bool:
        """Keep a report; `drop`: what is worth less may go for it. False where there is no room. Raises OSError."""
        data = compress(payload.data, "gzip")
        entry = make_entry(payload, len(data))
        if os.path.exists(self._path(entry)):
            return True
        victims = self._victims(entry)
        if victims is None or (victims and not drop):
            return False
        while all(self._drop(victim) for victim in victims):
            try:
                self._write(entry, data, payload.mode, sole=True)
                return True
            except OSError as error:
                if error.errno not in FULL:
                    raise
                self.is_disk_full = True
            victims = [item for item in self._list_all()[:1] if item < entry]  # the disk is full: one by one
            if not victims or not drop:
                break
        return False

    def put_unlocked(self, payload: Payload) -> None:
        """Keep a report while another run holds the spool; the next one sees to the bounds. Raises OSError."""
        data = compress(payload.data, "gzip")
        self._write(make_entry(payload, len(data)), data, payload.mode, sole=False)

    def load(self, entry: SpoolEntry) -> Payload:
        """The report of an entry, checked by the digest in its name. Raises BadPayload, OSError."""
        payload = read_payload(self._path(entry))
        if make_entry(payload, entry.size).name != entry.name:
            raise BadPayload("damaged: its content does not match its name")
        return payload

    def remove(self, entry: SpoolEntry) -> None:
        """It is handed over. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(entry))

    def set_aside(self, entry: SpoolEntry, why: str) -> None:
        """Out of the way of the others, with the reason beside it. What cannot be moved stays, and is reported."""
        place = os.path.join(self.path, "aside", entry.name)
        try:
            os.rename(self._path(entry), place)
        except OSError as error:
            self._warn(f"{self._path(entry)}: {why}; it cannot be set aside: {error.strerror}")
            return
        self.journal.state.set_aside += 1
        self._warn(f"set aside as {place}: {why}")
        with contextlib.suppress(OSError):
            replace_file(f"{place}.why", f"{why}\n".encode("utf-8", "replace"), sole=True)

    def close(self) -> int:
        """Drop what is beyond the bounds (of a smaller limit than before, or put by a run that came late), count what
        was dropped, and leave the state. How many reports still wait."""
        entries = self._list_all()
        size, count = sum(item.size for item in entries), len(entries)
        for entry in entries:
            if (size > self.limit_bytes or count > self.limit_count) and self._drop(entry):
                size, count = size - entry.size, count - 1
        entries = self.waiting()
        self.journal.state.waiting = len(entries)
        self.journal.state.waiting_bytes = sum(item.size for item in entries)
        self.journal.save()
        return len(entries)

    def _victims(self, entry: SpoolEntry) -> list[SpoolEntry] | None:
        """What has to go to make room, all of it worth less; None where that is not enough."""
        entries = self._list_all()
        size, count = sum(item.size for item in entries) + entry.size, len(entries) + 1
        victims: list[SpoolEntry] = []
        for candidate in entries:
            if size <= self.limit_bytes and count <= self.limit_count:
                return victims
            if candidate > entry:
                return None
            victims.append(candidate)
            size, count = size - candidate.size, count - 1
        return victims if size <= self.limit_bytes and count <= self.limit_count else None

    def _drop(self, entry: SpoolEntry) -> bool:
        if not self.journal.discard(self._path(entry), entry.kind, entry.name):
            return False
        if entry.folder == "aside":
            remove_own_file(f"{self._path(entry)}.why")
        return True

    def _tidy(self) -> None:
        """What killed runs left: the holder's temporary files, and old ones of runs that did not hold the spool."""
        for name in ("waiting", "aside"):
            remove_left_behind(os.path.join(self.path, name), _TEMPORARY, _ORPHAN_SECONDS, sole=True)

    def _refuse_foreign(self) -> None:
        """Raises NoSpool for a folder that neither is a spool nor could become one; in a spool such files are named."""
        if not os.path.isdir(self.path):
            return
        foreign, ours = list_foreign(self.path, _OURS, _TEMPORARY), self.journal.is_ours()
        if not foreign and not ours and os.path.lexists(os.path.join(self.path, "state.json")):
            parts = [os.path.isdir(os.path.join(self.path, name)) for name in ("waiting", "aside", "dropped")]
            foreign = [] if all(parts) else ["state.json"]  # a damaged one of ours has its folders beside it
        if foreign:
            names = f"{foreign[0]!r:.80}{f' and {len(foreign) - 1} more' if foreign[1:] else ''}"
            if not ours:
                raise NoSpool(f"{self.path}: not a spool, and not empty: it holds {names}")
            self._warn(f"{self.path}: {names}: no files of a spool, left as they are")

    def _write(self, entry: SpoolEntry, data: bytes, mode: int, sole: bool) -> None:
        folder = os.path.join(self.path, "waiting")
        replace_file(self._path(entry), data, mode, sole)
        sync_folder(folder)

    def _list_all(self) -> list[SpoolEntry]:
        """Everything that takes room, the least worth first."""
        return sorted(self.waiting() + self._list_folder("aside"))

    def _list_folder(self, folder: str) -> list[SpoolEntry]:
        """What is ours by its name; anything else stays as it is."""
        entries = []
        with os.scandir(os.path.join(self.path, folder)) as files:
            for file in files:
                match = ENTRY_NAME.fullmatch(file.name)
                with contextlib.suppress(FileNotFoundError):
                    if match:
                        rank = _ASIDE_RANK if folder == "aside" else _RANK.get(match[2], _FINDINGS_RANK)
                        size = file.stat(follow_symlinks=False).st_size
                        entries.append(SpoolEntry(rank, match[1], file.name, size, folder))
        return entries

    def _path(self, entry: SpoolEntry) -> str:
        return os.path.join(self.path, entry.folder, entry.name)
