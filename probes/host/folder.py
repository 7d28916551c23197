"""Files of a folder: as another host's root, confined to that folder, or as this host's own root.

Only regular files are opened, and none of them so that it can block: a FIFO, a socket or a device node has an
answer of its own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from sys import intern

from probes.host.files import (
    NEVER_READ,
    OPEN,
    RegisterFile,
    absent_or,
    follow,
    follow_on,
    locate,
    open_regular,
    parent_and_name,
    refuse_never_read,
)
from probes.host.filter_secrets import filter_content
from probes.host.interface import (
    LOG_LIMIT_BYTES,
    READ_LIMIT_BYTES,
    Absent,
    ReadError,
    error_from_errno,
)

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FIRST_CHUNK_BYTES = 8192  # holds any sysfs attribute and a whole config space
CHUNK_BYTES = 1 << 18
PAGE_BYTES = 4096  # sysfs gives an attribute in one read, of a page at most: less than that is its end
SYSFS = "/sys/"  # of the kernel alone: no other process can put another file in the place of one, nothing is filtered
FEW = 4  # names that are looked up one by one, not in a listing of their directory
MOST_LISTED = 4096  # directories whose listings are kept
_OF_A_PAGE = "config"  # config space is never longer: its end need not be asked for
_OPEN_HERE = OPEN | os.O_NOFOLLOW
NOT_THERE = os.strerror(errno.ENOENT)


class FolderFiles:
    """A folder as a root. Links are followed here, inside the folder; what they lead to is remembered, so that a
    device is resolved once. The folder may be hostile, but is not changed by an enemy while it is read."""

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root).rstrip("/")
        self._links: dict[str, str | None] = {}
        self._directories: dict[str, str] = {}
        self._straight: set[str] = set()  # directories in whose paths no link is left
        self._listed: dict[str, dict[str, int]] = {}  # directory -> what it holds, by name: see `_list_kinds`
        self._last = os.O_NOFOLLOW

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        refuse_never_read(path)
        try:
            descriptor = open_regular(self._place(path), not self._last, path)
            try:
                return filter_content(path, _read_content(descriptor, limit, path))
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise _explain(error, path) from None

    def attributes(self, directory: str, names: Iterable[str]) -> dict[str, bytes | ReadError]:
        """See Host.attributes. What is there, and what of it is a regular file, is known before anything is opened.

        The listing is kept: what comes up a moment later might as well have come up after the scan.
        """
        wanted = _first_parts(tuple(names))
        kinds = self._listed.get(directory)
        try:
            if kinds is None:
                if len(self._listed) >= MOST_LISTED:
                    self._listed.clear()
                kinds = self._listed[directory] = _list_kinds(self._directory(directory))
            if kinds.keys().isdisjoint(wanted.values()):
                return {}
            descriptor = os.open(self._directory(directory), DIRECTORY | os.O_NOFOLLOW)
            try:
                return self._read_there(directory, descriptor, wanted, kinds)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise _explain(error, directory) from None

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        if path in self._listed:
            return sorted(self._listed[path])
        directory, name = parent_and_name(path)
        if self._is_missing(directory, name):
            raise Absent(f"{path}: {NOT_THERE}", "ENOENT")
        try:
            return sorted(os.listdir(self._directory(path)))
        except (OSError, ValueError) as error:
            raise _explain(error, path) from None

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        directory, name = parent_and_name(path)
        if self._is_missing(directory, name):
            raise Absent(f"{path}: {NOT_THERE}", "ENOENT")
        try:
            place = f"{self._directory(directory)}/{name}"
            text = self._link_text(place[len(self._root) :]) if self._last else _read_link(place)
        except (OSError, ValueError) as error:
            raise _explain(error, path) from None
        if text is None:
            raise Absent(f"{path}: not a symbolic link", "EINVAL")
        return text

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        try:
            return follow(path, self._link_text)
        except (OSError, ValueError) as error:
            raise _explain(error, path) from None

    def locate(self, path: str) -> str:
        """See Files.locate."""
        return locate(path, self._link_text)

    def below(self, directory: str) -> FolderFiles | None:
        """See Files.below."""
        place = self._root + locate(directory, lambda _: None)
        return FolderFiles(place) if os.path.isdir(place) and not os.path.islink(place) else None

    def _place(self, path: str) -> str:
        """Where the path lies on this machine, with no link left in it."""
        return self._root + follow_on(path, self._link_text, self._directories, self._straight)

    def _directory(self, path: str) -> str:
        """The place of a directory, which is asked for many of its files: walked to once."""
        if path not in self._directories:
            place = self._directories[path] = self._place(path)[len(self._root) :]
            self._straight |= {place, place.rpartition("/")[0]}
        return self._root + self._directories[path]

    def _link_text(self, here: str) -> str | None:
        if here not in self._links:
            self._links[here] = _read_link(self._root + here)
        return self._links[here]

    def _is_missing(self, directory: str, name: str) -> bool:
        """Whether a listing of the directory shows that it does not hold the name."""
        listed = self._listed.get(directory)
        return listed is not None and name not in listed and name not in ("", ".", "..")

    def _read_there(
        self, directory: str, descriptor: int, wanted: Mapping[str, str], kinds: Mapping[str, int]
    ) -> dict[str, bytes | ReadError]:
        """Those of some files of an open directory that it holds: see `_list_kinds`.

        One of /sys is read as it is, anything else by its path: a link, or nothing to be opened. In one loop: there
        are thousands.
        """
        in_sysfs = directory.startswith(SYSFS)
        contents: dict[str, bytes | ReadError] = {}
        for name, first in wanted.items():
            if first not in kinds:
                continue
            kind = kinds[first]
            if kind == stat.S_IFDIR:
                kind = _kind_below(name, descriptor)
            try:
                if kind != stat.S_IFREG or not in_sysfs or name in NEVER_READ:
                    contents[name] = self.read(f"{directory}/{name}")
                    continue
                opened = os.open(name, _OPEN_HERE, dir_fd=descriptor)
                try:
                    content = os.read(opened, FIRST_CHUNK_BYTES)
                    if len(content) >= PAGE_BYTES and name != _OF_A_PAGE:
                        content = _rest(opened, content, READ_LIMIT_BYTES)
                finally:
                    os.close(opened)
                contents[name] = content
            except OSError as error:
                why: ReadError | None = absent_or(error_from_errno(error, f"{directory}/{name}"))
                if why is not None:
                    contents[name] = why
            except ReadError as error:
                if (why := absent_or(error)) is not None:
                    contents[name] = why
        return contents


class LiveFiles(FolderFiles):
    """This machine's own files: the kernel follows the links, also those that have no text (/proc/PID/root)."""

    def __init__(self) -> None:
        super().__init__("/")
        self._last = 0

    def attributes(self, directory: str, names: Iterable[str]) -> dict[str, bytes | ReadError]:
        """See Host.attributes. Nothing is kept: a device may come or go."""
        wanted = _first_parts(tuple(names))
        try:
            descriptor = os.open(self._place(directory), DIRECTORY)
            try:
                return self._read_there(directory, descriptor, wanted, _find_kinds(descriptor, {*wanted.values()}))
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise _explain(error, directory) from None

    def open_registers(self, path: str) -> RegisterFile:
        """A file of a device's registers, for a reader that needs few of them. Raises ReadError."""
        refuse_never_read(path)
        try:
            descriptor = open_regular(path, path=path)
            try:
                return RegisterFile(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        except (OSError, ValueError) as error:
            raise _explain(error, path) from None

    def _place(self, path: str) -> str:
        return path if path.startswith("/") else f"/{path}"


def _explain(error: OSError | ValueError, path: str) -> ReadError:
    """An error of the system as the reason why there is no answer."""
    if isinstance(error, OSError):
        return error_from_errno(error, path)
    return Absent(f"{path!a}: no file can have this name", "EINVAL")  # a NUL, or a character that no name can hold


@lru_cache(maxsize=64)
def _first_parts(names: tuple[str, ...]) -> dict[str, str]:
    """Each name once, and where its way begins: `power` of `power/runtime_status`."""
    return {name: name.partition("/")[0] for name in names}


def _read_link(place: str) -> str | None:
    """The text of a link; None: it is something else."""
    try:
        return os.readlink(place)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return None


def _list_kinds(directory: str | int) -> dict[str, int]:
    """What a directory holds, without another system call: S_IFREG, S_IFDIR; 0: anything else."""
    with os.scandir(directory) as entries:
        return {
            intern(entry.name): 0
            if entry.is_symlink()
            else stat.S_IFREG
            if entry.is_file()
            else stat.S_IFDIR
            if entry.is_dir()
            else 0
            for entry in entries
        }


def _find_kinds(descriptor: int, names: set[str]) -> Mapping[str, int]:
    """Which of the names an open directory holds, and what they are: see `_list_kinds`."""
    if len(names) > FEW:
        return _list_kinds(descriptor)
    kinds = {}
    for name in names:
        with suppress(OSError):
            kinds[name] = stat.S_IFMT(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    return kinds


def _kind_below(name: str, descriptor: int) -> int:
    """What `power/runtime_status` is where `power` is a directory and no link; 0 where the way is longer."""
    try:
        return (
            stat.S_IFMT(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode) if name.count("/") == 1 else 0
        )
    except (OSError, ValueError):
        return 0


def _read_content(descriptor: int, limit: int, path: str) -> bytes:
    """To the end or the limit. A short read is no end: seq files give a page at a time."""
    limit = min(limit, LOG_LIMIT_BYTES)
    content = os.read(descriptor, min(limit, FIRST_CHUNK_BYTES))
    if len(content) < PAGE_BYTES and path.startswith(SYSFS):
        return content
    return _rest(descriptor, content, limit)


def _rest(descriptor: int, content: bytes, limit: int) -> bytes:
    """What has been read, and all that follows."""
    if not content or len(content) == limit:
        return content
    parts = [content]
    left = limit - len(content)
    size = FIRST_CHUNK_BYTES  # most files end here: a large buffer for nothing is dear
    while left and (chunk := os.read(descriptor, min(left, size))):
        parts.append(chunk)
        left -= len(chunk)
        size = CHUNK_BYTES if len(chunk) == size else size  # a seq file gives a page at a time, whatever is asked for
    return b"".join(parts) if len(parts) > 1 else content
