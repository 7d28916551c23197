"""What a spool records of itself (`state.json`), and the tombstones that are not yet counted in it.

A report is dropped in three steps: its file becomes a tombstone (a rename, which needs no room), is emptied, and at
the next chance is counted and removed. Killed between any two of them, it is counted once; on a full disk, later.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable

import msgspec

from agent.reports import replace_file
from probes.own_files import empty_own_file

Warn = Callable[[str], None]
SCHEMA = "fabricscope.spool/1"
_STATE_LIMIT_BYTES = 1 << 20
ENTRY_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)_(ok|unknown|warning|error|critical)_[0-9a-f]{64}\.json\.gz")


_TOMBSTONE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _Head(msgspec.Struct):
    schema: str = ""


class DroppedCounts(msgspec.Struct, kw_only=True):
    """Reports that were given up because the spool was full, since `SpoolState.since`."""

    healthy: int = 0  # verdict ok
    not_judged: int = 0  # verdict unknown
    with_findings: int = 0
    set_aside: int = 0  # damaged ones, and those that the endpoint would not have


class SpoolState(msgspec.Struct, kw_only=True):
    """The file; a person may read it."""

    schema: str = SCHEMA
    since: str = ""  # when counting began
    handed_over: int = 0
    dropped: DroppedCounts = msgspec.field(default_factory=DroppedCounts)
    set_aside: int = 0
    waiting: int = 0  # reports, at the end of the last run
    waiting_bytes: int = 0
    last_run: str | None = None
    last_handed_over: str | None = None
    last_failure: str | None = None  # what kept reports waiting, in the last run
    not_before: float | None = None  # unix seconds: the endpoint asked to be left alone until then
    not_before_of: str | None = None  # which one
    folding: list[str] = []  # tombstones that are counted already, and perhaps not yet removed


DROP_KINDS = tuple(DroppedCounts.__struct_fields__)
TOMBSTONE = re.compile(rf"(?:{'|'.join(DROP_KINDS)})\.{ENTRY_NAME.pattern}")


def drop_kind(verdict: str) -> str:
    """Under what a dropped report is counted."""
    return {"ok": "healthy", "unknown": "not_judged"}.get(verdict, "with_findings")


class Journal:
    """`state.json` and `dropped/` of a spool."""

    def __init__(self, folder: str, warn: Warn) -> None:
        self.state = SpoolState()
        self.dropped = dict.fromkeys(DROP_KINDS, 0)  # in this run
        self._path = os.path.join(folder, "state.json")
        self._tombstones = os.path.join(folder, "dropped")
        self._warn = warn

    def load(self) -> None:
        """Read the state; a damaged one is put aside, and counting starts again. Raises OSError."""
        try:
            with open(self._path, "rb") as file:
                self.state = msgspec.json.decode(file.read(_STATE_LIMIT_BYTES), type=SpoolState)
            if self.state.schema != SCHEMA:
                raise ValueError(f"its schema is {self.state.schema!r:.40}")
        except FileNotFoundError:
            self.state = SpoolState(since=utc_now())
        except (ValueError, RecursionError) as error:  # msgspec's and UTF-8's errors are ValueErrors
            with contextlib.suppress(OSError):
                os.replace(self._path, f"{self._path}.damaged")
            self._warn(f"{self._path}: damaged, kept as state.json.damaged; counting starts again: {error}"[:300])
            self.state = SpoolState(since=utc_now())
        self.count_tombstones()

    def is_ours(self) -> bool:
        """Whether the state is there, and of a spool."""
        try:
            with open(self._path, "rb") as file:
                head = msgspec.json.decode(file.read(_STATE_LIMIT_BYTES), type=_Head)
        except (OSError, ValueError, RecursionError):
            return False
        return head.schema.startswith(SCHEMA.partition("/")[0] + "/")

    def discard(self, path: str, kind: str, name: str) -> bool:
        """Give up a file of the spool; False where it cannot be moved."""
        tombstone = self._tombstone_path(kind, name)
        try:
            os.rename(path, tombstone)
        except OSError as error:
            self._warn(f"{path}: cannot be dropped: {error.strerror}")
            return False
        with contextlib.suppress(OSError):
            empty_own_file(tombstone)
        self.dropped[kind] += 1
        return True

    def count_drop(self, kind: str, name: str) -> None:
        """Give up a report that never was in the spool."""
        self.dropped[kind] += 1
        try:
            os.close(os.open(self._tombstone_path(kind, name), _TOMBSTONE_FLAGS, 0o600))
        except OSError:  # no room for as much as a name: it is counted if the state can be written
            self._count_up(kind)

    def save(self) -> None:
        """Count, and write the state. What cannot be written is reported."""
        self.count_tombstones(always=True)

    def count_tombstones(self, always: bool = False) -> None:
        """Tombstones become numbers of the state."""
        names = sorted(name for name in os.listdir(self._tombstones) if TOMBSTONE.fullmatch(name))
        counted = {name for name in self.state.folding if name in names}
        if not names and not always:
            return
        for name in names:
            if name not in counted:
                self._count_up(name.partition(".")[0])
        self.state.folding = names
        try:
            self._write()
        except OSError as error:
            self._warn(f"{self._path} is not written: {error.strerror}")
            return
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._tombstones, name))

    def _count_up(self, kind: str) -> None:
        setattr(self.state.dropped, kind, getattr(self.state.dropped, kind) + 1)

    def _write(self) -> None:
        data = msgspec.json.format(msgspec.json.encode(self.state), indent=2) + b"\n"
        replace_file(self._path, data, sole=True)

    def _tombstone_path(self, kind: str, name: str) -> str:
        return os.path.join(self._tombstones, f"{kind}.{name}")


def utc_now() -> str:
    """The time, UTC, as reports have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
