"""Where a dataset or reports lie: a folder of this machine, or an object store that pyarrow supports."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, Protocol, TypeVar

MOST_LEVELS = 64  # of folders: a walk goes into itself for each, and a path has an end
MOST_FILES = 4_000_000  # of one listing
# Of one file that is read as a whole: a manifest, lists of a dataset. Tables are read by columns.
READ_BYTES, READ_SECONDS, _PIECE_BYTES = 1 << 30, 600.0, 8 << 20
_T = TypeVar("_T")


class BadStore(Exception):
    """An address that cannot be used; the message is one line for a person."""


FileIdentity = tuple[int, ...]  # of a local file as it is now; empty: not reported


class FileInfo(NamedTuple):
    """A file of a store."""

    path: str  # below the store's root, "/" between
    size: int
    modified: float  # seconds since 1970; 0: not reported
    identity: FileIdentity = ()
    trouble: str = ""  # of a folder: why nothing below it is listed


class Store(Protocol):
    """Files below one address. Everything raises OSError."""

    url: str
    remote: bool

    def full(self, path: str) -> str:
        """The whole path or URL of a file."""

    def read(self, path: str) -> bytes:
        """A whole file. Raises FileNotFoundError."""

    def opened(self, path: str) -> Any:
        """What pyarrow reads a Parquet file from."""

    def replace(self, path: str, data: bytes) -> None:
        """Let a file be these bytes: the old ones or the new ones, whatever happens."""

    def take(self, local: str, path: str) -> None:
        """Move a finished local file here."""

    def remove(self, path: str) -> None:
        """Remove a file; none is there: fine."""

    def listed(self, folder: str) -> Iterator[FileInfo]:
        """Every file below a folder, however deep; none where there is no such folder."""


def store_of(url: str) -> Store:
    """The store at a path or URL. Raises BadStore."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return Folder(os.path.abspath(url))
    if scheme == "file":
        return Folder(os.path.abspath(rest))
    from pyarrow import fs

    try:
        filesystem, root = fs.FileSystem.from_uri(url)
    except (OSError, ValueError, NotImplementedError) as error:  # no store, no URL, none in this pyarrow
        raise BadStore(f"{hide_secrets(url)}: {_first_line(error).replace(url, hide_secrets(url))}") from error
    return ObjectStore(url, filesystem, root)


def hide_secrets(url: str) -> str:
    """An address without what may be a secret: user, password, options."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


class Folder:
    """A folder of this machine."""

    remote = False

    def __init__(self, path: str) -> None:
        self.url = self.root = path

    def full(self, path: str) -> str:
        """Below the root."""
        return os.path.join(self.root, path)

    def read(self, path: str) -> bytes:
        """All bytes."""
        with open(self.full(path), "rb") as file:
            return file.read()

    def opened(self, path: str) -> Any:
        """The path itself: pyarrow maps or reads it."""
        return self.full(path)

    def replace(self, path: str, data: bytes) -> None:
        """Temporary name, sync, rename."""
        from agent.reports import replace_file, sync_folder

        place = self.full(path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        replace_file(place, data)
        sync_folder(os.path.dirname(place))

    def take(self, local: str, path: str) -> None:
        """A rename where it is one file system; the caller has synced the file."""
        place = self.full(path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        try:
            os.rename(local, place)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.move(local, place)

    def remove(self, path: str) -> None:
        """Unlink."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.full(path))

    def listed(self, folder: str) -> Iterator[FileInfo]:
        """By os.walk, at most MOST_LEVELS deep and MOST_FILES; links to folders are not followed."""
        top = self.full(folder).rstrip(os.sep)
        count, above = 0, _FoldersAbove(top)
        for place, folders, names in os.walk(top):
            folders.sort()
            if above.has_itself(place):  # mounted into itself
                folders.clear()
                loop = "is a folder that it is in itself: not read again"
                yield FileInfo(os.path.relpath(place, self.root), 0, 0.0, trouble=loop)
                continue
            count += len(names)
            if count > MOST_FILES:
                more = f"not read: {MOST_FILES:,} files are, and this folder has more"
                yield FileInfo(os.path.relpath(place, self.root), 0, 0.0, trouble=more)
                return
            if folders and place.removeprefix(top).count(os.sep) >= MOST_LEVELS:
                folders.clear()
                deeper = f"folders below it are not read: {MOST_LEVELS} levels are"
                yield FileInfo(os.path.relpath(place, self.root), 0, 0.0, trouble=deeper)
            for name in sorted(names):
                path = os.path.join(place, name)
                with contextlib.suppress(OSError):  # gone meanwhile
                    folder_stat = os.stat(path)
                    yield FileInfo(
                        os.path.relpath(path, self.root),
                        folder_stat.st_size,
                        folder_stat.st_mtime,
                        identity_of(folder_stat),
                    )


class ObjectStore:
    """An object store, or any other file system of pyarrow's."""

    remote = True

    def __init__(self, url: str, filesystem: Any, root: str) -> None:
        self.url, self.root, self.filesystem = url, root.rstrip("/"), filesystem
        self._options = url.partition("?")[2]

    @property
    def address(self) -> str:
        """What `store_of` makes the same store of, in another process too."""
        return f"{self.full('')}?{self._options}" if self._options else self.full("")

    def full(self, path: str) -> str:
        """Scheme, root, path; without the options of the address."""
        return f"{self.url.partition('://')[0]}://{self.at(path)}"

    def read(self, path: str) -> bytes:
        """All bytes, as they are. Raises OSError for more than READ_BYTES, or where they take READ_SECONDS."""
        return self.within(lambda: self._read_pieces(path), path)

    def within(self, work: Callable[[], _T], path: str) -> _T:
        """What a call of the store gives; a server that trickles, or lists without end, is given up.

        Raises OSError after READ_SECONDS. The call goes on in its thread, as no signal reaches it, until this process
        ends.
        """
        results: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

        def run() -> None:
            try:
                results.put((True, work()))
            except BaseException as error:  # noqa: BLE001  # raised where it is waited for
                results.put((False, error))

        Thread(target=run, daemon=True).start()
        try:
            done, result = results.get(timeout=max(READ_SECONDS, 0.0))
        except Empty:
            late = f"not all was read in {READ_SECONDS:g} s"
            raise OSError(errno.ETIMEDOUT, late, self.full(path)) from None
        if not done:
            raise result
        return result  # type: ignore[no-any-return]

    def _read_pieces(self, path: str) -> bytes:
        until, pieces, size = time.monotonic() + READ_SECONDS, [], 0
        with self.filesystem.open_input_stream(self.at(path), compression=None) as stream:
            while piece := stream.read(_PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size > READ_BYTES:
                    raise OSError(errno.EFBIG, f"has more than {READ_BYTES >> 20} MiB", self.full(path))
                if time.monotonic() > until:
                    raise OSError(errno.ETIMEDOUT, f"not all was read in {READ_SECONDS:g} s", self.full(path))
        return b"".join(pieces)

    def opened(self, path: str) -> Any:
        """A file that can be read from anywhere."""
        return self.filesystem.open_input_file(self.at(path))

    def replace(self, path: str, data: bytes) -> None:
        """One PUT: an object store shows an object whole or not at all."""
        with self.filesystem.open_output_stream(self.at(path), compression=None) as stream:
            stream.write(data)

    def take(self, local: str, path: str) -> None:
        """Upload and remove the local one."""
        with open(local, "rb") as file, self.filesystem.open_output_stream(self.at(path), compression=None) as stream:
            shutil.copyfileobj(file, stream, 8 << 20)
        os.unlink(local)

    def remove(self, path: str) -> None:
        """One DELETE."""
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.at(path))

    def listed(self, folder: str) -> Iterator[FileInfo]:
        """One listing, of at most MOST_FILES."""
        from pyarrow import fs

        selector = fs.FileSelector(self.at(folder), allow_not_found=True, recursive=True)
        skip = len(self.root) + 1 if self.root else 0
        found = self.within(lambda: self.filesystem.get_file_info(selector), folder)
        if len(found) > MOST_FILES:
            yield FileInfo(folder, 0, 0.0, trouble=f"{len(found):,} files, of which {MOST_FILES:,} are read")
        for info in islice(found, MOST_FILES):
            if info.type == fs.FileType.File:
                yield FileInfo(info.path[skip:], info.size or 0, (info.mtime_ns or 0) / 1e9)

    def at(self, path: str) -> str:
        """The path of a file as pyarrow takes it."""
        return "/".join(part for part in (self.root, path) if part)


class _FoldersAbove:
    """The folders that a walk is in, by their numbers of device and file."""

    def __init__(self, top: str) -> None:
        self._top = len(top)
        self._path: list[tuple[int, int] | None] = []

    def has_itself(self, place: str) -> bool:
        """Whether a folder is one of those that it is in. Folders come in the order of os.walk."""
        del self._path[place.count(os.sep, self._top) :]
        try:
            folder_stat = os.stat(place)
        except OSError:  # gone meanwhile
            self._path.append(None)
            return False
        own = folder_stat.st_dev, folder_stat.st_ino
        is_above = own in self._path
        self._path.append(own)
        return is_above


def identity_of(file_stat: os.stat_result) -> FileIdentity:
    """Another one after every change: the time of change (ctime) cannot be set back."""
    return file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns, file_stat.st_ino


def open_no_link(path: str, flags: int) -> int:
    """As `os.open`; a link is an error."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "a symbolic link, which is not followed", path) from error
        raise


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
