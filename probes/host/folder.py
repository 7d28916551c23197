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
NOT_THERE = os.strerror(errno.ENOENT)


class FolderFiles:
    """A folder as a root. Links are followed here, inside the folder; what they lead to is remembered, so that a
    device is resolved once. The folder may be hostile, but is not changed by an enemy while it is read."""

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root).rstrip("/")
        self._links: dict[str, str | None] = {}
        self._directories: dict[str, str] = {}
        self._listed: dict[str, dict[str, int]] = {}  # directory -> what it holds, by name: see `_list_kinds`
        self._last = os.O_NOFOLLOW

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        refuse_never_read(path)
        with Reasons(path):
            descriptor = open_regular(self._place(path), not self._last, path)
            try:
                return filter_content(path, _read_content(descriptor, limit, path))
            finally:
                os.close(descriptor)

    def attributes(self, directory: str, names: Iterable[str]) -> dict[str, bytes | ReadError]:
        """See Host.attributes. What is there, and what of it is a regular file, is known before anything is opened."""
        wanted = _first_parts(tuple(names))
        contents: dict[str, bytes | ReadError] = {}
        listed = self._listed.get(directory)
        if listed is not None and listed.keys().isdisjoint(wanted.values()):
            return contents
        in_sysfs = directory.startswith(SYSFS)
        with Reasons(directory):
            descriptor = os.open(self._directory(directory), DIRECTORY | self._last)
            try:
                kinds = self._kinds(directory, descriptor, wanted.values())
                for name, first in wanted.items():
                    if (kind := kinds.get(first)) is None:
                        continue
                    if name in NEVER_READ:
                        kind = 0  # `read` refuses it
                    if kind == stat.S_IFDIR:
                        kind = _kind_below(name, descriptor)
                    direct = in_sysfs and kind == stat.S_IFREG
                    content = self._attribute(directory, name, descriptor if direct else None)
                    if content is not None:
                        contents[name] = content
            finally:
                os.close(descriptor)
        return contents

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        directory, name = parent_and_name(path)
        if self._is_missing(directory, name):
            raise Absent(f"{path}: {NOT_THERE}", "ENOENT")
        if path in self._listed:
            return sorted(self._listed[path])
        with Reasons(path):
            return sorted(os.listdir(self._directory(path)))

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        directory, name = parent_and_name(path)
        if self._is_missing(directory, name):
            raise Absent(f"{path}: {NOT_THERE}", "ENOENT")
        with Reasons(path):
            place = f"{self._directory(directory)}/{name}"
            text = self._link_text(place[len(self._root) :]) if self._last else _read_link(place)
        if text is None:
            raise Absent(f"{path}: not a symbolic link", "EINVAL")
        return text

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        with Reasons(path):
            return follow(path, self._link_text)

    def locate(self, path: str) -> str:
        """See Files.locate."""
        return locate(path, self._link_text)

    def below(self, directory: str) -> FolderFiles | None:
        """See Files.below."""
        place = self._root + locate(directory, lambda _: None)
        return FolderFiles(place) if os.path.isdir(place) and not os.path.islink(place) else None

    def _place(self, path: str) -> str:
        """Where the path lies on this machine, with no link left in it."""
        return self._root + follow_on(path, self._link_text, self._directories)

    def _directory(self, path: str) -> str:
        """The place of a directory, which is asked for many of its files: walked to once."""
        if path not in self._directories:
            self._directories[path] = self._place(path)[len(self._root) :]
        return self._root + self._directories[path]

    def _link_text(self, here: str) -> str | None:
        try:
            return self._links[here]
        except KeyError:
            pass
        text = self._links[here] = _read_link(self._root + here)
        return text

    def _is_missing(self, directory: str, name: str) -> bool:
        """Whether a listing of the directory shows that it does not hold the name."""
        listed = self._listed.get(directory)
        return listed is not None and name not in listed and name not in ("", ".", "..")

    def _kinds(self, directory: str, descriptor: int, wanted: Iterable[str]) -> Mapping[str, int]:
        """Which of the names an open directory holds, and what they are: S_IFREG, S_IFDIR, or anything else.

        The listing of another root is kept: what comes up a moment later might as well have come up after the scan.
        """
        if self._last:
            if directory not in self._listed:
                if len(self._listed) >= MOST_LISTED:
                    self._listed.clear()
                self._listed[directory] = _list_kinds(descriptor)
            return self._listed[directory]
        kinds, names = {}, set(wanted)
        if len(names) > FEW:
            there = _list_kinds(descriptor)
            return {name: there[name] for name in names & there.keys()}
        for name in names:
            with suppress(OSError):
                kinds[name] = stat.S_IFMT(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
        return kinds

    def _attribute(self, directory: str, name: str, descriptor: int | None) -> bytes | ReadError | None:
        """One file: of an open directory of /sys, or by its path where it is a link or is nothing to be opened."""
        try:
            if descriptor is None:
                return self.read(f"{directory}/{name}")
            try:
                opened = os.open(name, OPEN | os.O_NOFOLLOW, dir_fd=descriptor)
                try:
                    content = os.read(opened, FIRST_CHUNK_BYTES)
                    return content if len(content) < PAGE_BYTES else _rest(opened, content, READ_LIMIT_BYTES)
                finally:
                    os.close(opened)
            except OSError as error:
                return absent_or(error_from_errno(error, f"{directory}/{name}"))
        except ReadError as why:
            return absent_or(why)


class LiveFiles(FolderFiles):
    """This machine's own files: the kernel follows the links, also those that have no text (/proc/PID/root)."""

    def __init__(self) -> None:
        super().__init__("/")
        self._last = 0

    def open_registers(self, path: str) -> RegisterFile:
        """A file of a device's registers, for a reader that needs few of them. Raises ReadError."""
        refuse_never_read(path)
        with Reasons(path):
            descriptor = open_regular(path, path=path)
            try:
                return RegisterFile(descriptor)
            except BaseException:
                os.close(descriptor)
                raise

    def _place(self, path: str) -> str:
        return path if path.startswith("/") else f"/{path}"


class Reasons:
    """Any error of the system as the reason why there is no answer. A class: a scan enters it ten times a device."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise error_from_errno(error, self.path) from None
        if isinstance(error, ValueError):  # a NUL, or a character that no file name can hold
            raise Absent(f"{self.path!a}: no file can have this name", "EINVAL") from None


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


def _list_kinds(descriptor: int) -> dict[str, int]:
    """What an open directory holds, without another system call; 0: neither a regular file nor a directory."""
    with os.scandir(descriptor) as entries:
        return {
            intern(entry.name): stat.S_IFREG
            if entry.is_file(follow_symlinks=False)
            else stat.S_IFDIR
            if entry.is_dir(follow_symlinks=False)
            else 0
            for entry in entries
        }


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
