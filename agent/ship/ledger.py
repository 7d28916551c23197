"""A spool's account of itself: `state.json`, and the tombstones that are not yet counted in it.

A report is given up in three steps: its file becomes a tombstone (a rename, which needs no room), is emptied, and at
the next chance is counted and removed. Killed between any two of them, it is counted once; on a full disk, later.
"""

from __future__ import annotations

import contextlib
import os
import time

import msgspec

from agent.reports import replace_file
from agent.ship.state import KINDS, SPOOL, Say, State

_STATE_LIMIT_BYTES = 1 << 20


class Ledger:
    """`state.json` and `dropped/` of a spool."""

    def __init__(self, folder: str, say: Say) -> None:
        self.state = State()
        self.dropped = dict.fromkeys(KINDS, 0)  # in this run
        self._path = os.path.join(folder, "state.json")
        self._tombstones = os.path.join(folder, "dropped")
        self._say = say

    def load(self) -> None:
        """Read the state; a damaged one is put aside, and counting begins anew. Raises OSError."""
        try:
            with open(self._path, "rb") as file:
                self.state = msgspec.json.decode(file.read(_STATE_LIMIT_BYTES), type=State)
            if self.state.schema != SPOOL:
                raise ValueError(f"its schema is {self.state.schema!r:.40}")
        except FileNotFoundError:
            self.state = State(since=now())
        except (ValueError, RecursionError) as error:  # msgspec's and UTF-8's errors are ValueErrors
            with contextlib.suppress(OSError):
                os.replace(self._path, f"{self._path}.damaged")
            self._say(f"{self._path}: damaged, kept as state.json.damaged; counting begins anew: {error}"[:300])
            self.state = State(since=now())
        self.fold()

    def bury(self, path: str, kind: str, name: str) -> bool:
        """Give up a file of the spool; False where it cannot be moved."""
        tombstone = self._tombstone(kind, name)
        try:
            os.rename(path, tombstone)
        except OSError as error:
            self._say(f"{path}: cannot be dropped: {error.strerror}")
            return False
        with contextlib.suppress(OSError):
            os.truncate(tombstone, 0)
        self.dropped[kind] += 1
        return True

    def count(self, kind: str, name: str) -> None:
        """Give up a report that never was in the spool."""
        self.dropped[kind] += 1
        try:
            os.close(os.open(self._tombstone(kind, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        except OSError:  # no room for as much as a name: it is counted if the state can be written
            self._add(kind)

    def close(self) -> None:
        """Count, and write the state. What cannot be written is told."""
        self.fold(always=True)

    def fold(self, always: bool = False) -> None:
        """Tombstones become numbers of the state."""
        names = sorted(os.listdir(self._tombstones))
        counted = {name for name in self.state.folding if name in names}
        if not names and not always:
            return
        for name in names:
            kind = name.partition(".")[0]
            if name not in counted and kind in KINDS:
                self._add(kind)
        self.state.folding = names
        try:
            self._save()
        except OSError as error:
            self._say(f"{self._path} is not written: {error.strerror}")
            return
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._tombstones, name))

    def _add(self, kind: str) -> None:
        setattr(self.state.dropped, kind, getattr(self.state.dropped, kind) + 1)

    def _save(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._path}.new")
        replace_file(
            self._path, f"{self._path}.new", msgspec.json.format(msgspec.json.encode(self.state), indent=2) + b"\n"
        )

    def _tombstone(self, kind: str, name: str) -> str:
        return os.path.join(self._tombstones, f"{kind}.{name}")


def now() -> str:
    """The time, UTC, as reports have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
