"""Files whose reports the dataset has are moved out of a drop folder, once the dataset is committed."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from agent.fleet.ingest.sources import Item, ReportSource, UnreadableSource
from agent.fleet.store import FileIdentity, Folder, identity_of
from agent.reports import REPORT_FILE
from probes.own_files import remove_own_file
from probes.planted import PathUse, follow_links, make_folder

_MOST_NAMES = 10_000  # of one name: it is in the folder that often
_MOVED = re.compile(rf"{REPORT_FILE.pattern}(?:\.[0-9]{{1,4}})?")
_DAY_SECONDS = 86400.0


class Keep(NamedTuple):
    """How much of what was moved is kept; None: no bound."""

    size_bytes: int | None = None
    days: float | None = None


class Mover:
    """Remembers the files that items come from. Raises UnreadableSource for a target that cannot be meant."""

    def __init__(self, target: str, sources: list[ReportSource]) -> None:
        try:
            self._target = follow_links(target, PathUse.FOLDER)
        except OSError as error:
            raise UnreadableSource(f"--move {target}: {error.strerror}") from error
        self._roots: list[str] = []
        self._files: dict[str, FileIdentity] = {}
        for source in sources:
            if not isinstance(source.store, Folder):
                raise UnreadableSource(
                    f"--move {target}: only files of this machine are moved, not those of {source.name}"
                )
            root = os.path.abspath(source.store.root)
            self._roots.append(root)
            if not source.path and os.path.commonpath((root, self._target)) == root:
                raise UnreadableSource(f"--move {target}: it is in {source.name}, and would be read again")

    def noting(self, items: Iterator[Item]) -> Iterator[Item]:
        """The items, and their files are remembered; not one with something that could not be read to its end."""
        broken = set()
        for item in items:
            if item.trouble:
                broken.add(item.file)
            if item.file not in self._files:
                self._files[item.file] = item.identity or _identify(item.file)
            yield item
        self.leave(broken)

    def leave(self, files: set[str]) -> None:
        """These stay where they are."""
        for file in files:
            self._files.pop(file, None)

    def move(self) -> tuple[int, list[str]]:
        """How many were moved, and a line for each that was not."""
        failed = []
        for file, identity in self._files.items():
            try:
                if _identify(file) != identity:
                    failed.append(f"{file}: not moved: it was replaced while it was read")
                    continue
                self._move(file)
            except OSError as error:
                failed.append(f"{file}: not moved: {error.strerror or str(error)[:200]}")
        return len(self._files) - len(failed), failed

    def remove_old(self, keep: Keep, now: float) -> int:
        """Remove received reports beyond these bounds, the oldest first; how many. Files of other names stay."""
        if keep == Keep() or not os.path.isdir(self._target):
            return 0
        files = []
        with os.scandir(self._target) as entries:
            for entry in entries:
                if _MOVED.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        files.append((status.st_mtime, entry.path, status.st_size))
        size, removed = sum(bytes_ for _, _, bytes_ in files), 0
        for modified, path, bytes_ in sorted(files):
            is_old = keep.days is not None and now - modified > keep.days * _DAY_SECONDS
            if not is_old and (keep.size_bytes is None or size <= keep.size_bytes):
                break
            remove_own_file(path)
            size, removed = size - bytes_, removed + 1
        return removed

    def _move(self, file: str) -> None:
        root = max((root for root in self._roots if os.path.commonpath((root, file)) == root), key=len)
        place = os.path.join(self._target, os.path.relpath(file, root))
        make_folder(os.path.dirname(place), PathUse.FOLDER)
        for name in (place, *(f"{place}.{number}" for number in range(1, _MOST_NAMES))):
            if not os.path.lexists(name) and _move_to(file, name):
                return
        raise OSError(errno.EEXIST, f"{_MOST_NAMES} files of that name are there")


def _move_to(file: str, place: str) -> bool:
    """Nothing that was moved before is replaced, nor by another ingest; False where the name is no longer free. A file
    with holes is not copied to another file system: one of a terabyte takes no room until then."""
    try:
        os.link(file, place, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:  # another file system, or one without such links
        if error.errno == errno.EXDEV and _has_holes(file):
            raise OSError(errno.EFBIG, "it has holes, and would be written in full on the other file system") from None
        shutil.move(file, place)
        return True
    os.unlink(file)
    return True


def _has_holes(file: str) -> bool:
    with open(file, "rb") as opened:
        return os.lseek(opened.fileno(), 0, os.SEEK_HOLE) < os.fstat(opened.fileno()).st_size


def _identify(file: str) -> FileIdentity:
    """What a local file is now; empty where it cannot be read."""
    try:
        return identity_of(os.stat(file))
    except OSError:
        return ()
