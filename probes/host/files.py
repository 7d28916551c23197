"""What every file store of a source answers: a folder, an archive in memory, changes laid over either.

Symbolic links inside a root: walked here, never by this machine's kernel, so none can leave the root.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Container, Iterable, Mapping
from typing import BinaryIO, Protocol, overload

from probes.host.interface import READ_LIMIT_BYTES, Absent, Denied, Failed, ReadError

LINKS_LIMIT = 40  # as Linux's own path walk: more is a loop
TOP_FILES_LIMIT = 1000  # of one folder, where outputs of commands may be saved
DEPTH = 2  # how far above a path a directory is looked for to which the way is known
# Files that act on a device when they are read, by name. No probe asks for one; no live host or folder answers.
NEVER_READ: Mapping[str, str] = {
    "xgmi_error": "reading it clears the error counter of the hardware (amdgpu)",
    "amdgpu_gpu_recover": "reading it resets the GPU (amdgpu)",
    "reset": "reading it resets an index of the device (habanalabs)",
    "devdrv_sysfs_link_info": "reading it sends a message to the firmware of the NPU (Ascend)",
    "CDAT": "reading it asks the device through its mailbox (CXL)",
    "trigger_poison_list": "it starts a scan of the device's memory (CXL)",
}
OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
DESCRIPTORS = "/proc/self/fd"
HEADER_BYTES, REGISTER_BYTES = 64, 4  # that are read first, and at least
KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


def open_regular(place: str, follow: bool = True, path: str | None = None) -> int:
    """A descriptor of a regular file, to be read. Nothing else is ever opened, also not what another process puts in
    its place meanwhile: opening a device may act on it. Raises Failed for what is no regular file, OSError.

    `path`: what the file is called in the reason, where that is not `place`.
    """
    handle = os.open(place, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise read_error(path or place, mode)
        try:
            return os.open(f"{DESCRIPTORS}/{handle}", OPEN)
        except FileNotFoundError:  # no /proc: nothing can be opened by its handle
            return os.open(place, OPEN | (0 if follow else os.O_NOFOLLOW))
    finally:
        os.close(handle)


class RegisterFile:
    """A file whose every byte is a question to a device, such as config space: only what is asked for is read.

    It is sliced like bytes. Raises OSError where the device does not answer.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size
        self._known = bytearray(os.pread(descriptor, HEADER_BYTES, 0))
        if size > len(self._known) and not os.pread(descriptor, REGISTER_BYTES, size - REGISTER_BYTES):
            self._known = bytearray(os.pread(descriptor, size, 0))  # without privilege it is short
            size = len(self._known)
        self._read = bytearray(b"\1" * -(-len(self._known) // REGISTER_BYTES)).ljust(-(-size // REGISTER_BYTES), b"\0")
        self._known = self._known.ljust(size, b"\0")

    def __len__(self) -> int:
        return len(self._known)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> bytes: ...
    def __getitem__(self, at: int | slice) -> int | bytes:
        start, stop, _ = (at if isinstance(at, slice) else slice(at, at + 1)).indices(len(self._known))
        first, last = start // REGISTER_BYTES, -(-stop // REGISTER_BYTES)
        if 0 in self._read[first:last]:
            data = os.pread(self._descriptor, (last - first) * REGISTER_BYTES, first * REGISTER_BYTES)
            self._known[first * REGISTER_BYTES : first * REGISTER_BYTES + len(data)] = data
            self._read[first:last] = b"\1" * (last - first)
        return self._known[at] if isinstance(at, int) else bytes(self._known[at])

    def close(self) -> None:
        """Let the file go."""
        os.close(self._descriptor)


def open_saved(path: str, follow: bool = False) -> BinaryIO:
    """A regular file, by `open_regular`. Raises OSError alone, whose reason does not repeat the path."""
    try:
        return open(open_regular(path, follow), "rb")
    except ReadError as error:
        raise OSError(str(error).removeprefix(f"{path}: ")) from error


def read_error(path: str, mode: int) -> Failed:
    """The answer for what is no regular file."""
    return Failed(f"{path}: is {KINDS.get(stat.S_IFMT(mode), 'not a file')}, which is not read", "EINVAL")


def refuse_never_read(path: str) -> None:
    """Raise Denied for a file that acts on a device when it is read."""
    why = NEVER_READ.get(path.rpartition("/")[2])
    if why is not None:
        raise Denied(f"{path}: never read: {why}", "EPERM")


def follow(path: str, link_text: Callable[[str], str | None], start: str = "", straight: Container[str] = ()) -> str:
    """The path with every link followed, by the rules of a root directory: absolute links start at the root, ".." at
    the root stays there. `link_text` gives the text of a link and None for anything else; what it raises comes through.
    `start`: a directory in whose path no link is left; the path begins there. `straight`: others, to which the way is
    not walked again. Raises Absent for a loop.

    >>> links = {"/sys/bus/pci/devices/0000:19:00.0": "../../../devices/pci0000:15/0000:19:00.0", "/etc/x": "../../.."}
    >>> follow("/sys/bus/pci/devices/0000:19:00.0/config", links.get)
    '/sys/devices/pci0000:15/0000:19:00.0/config'
    >>> follow("/etc/x/proc", links.get)
    '/proc'
    """
    todo = path.split("/")
    todo.reverse()
    real = start
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            real = real.rpartition("/")[0]
            continue
        here = f"{real}/{name}"
        text = link_text(here)
        if text is None:
            real = here
            continue
        links += 1
        if links > LINKS_LIMIT:
            raise Absent(f"{path}: {os.strerror(errno.ELOOP)}", "ELOOP")
        if text.startswith("/"):
            real = ""
        while text.startswith("../"):  # as of nearly every link in /sys
            real, text = real.rpartition("/")[0], text[3:]
        above, _, last = text.rpartition("/")
        if (above := f"{real}/{above}") in straight:
            real, text = above, last
        todo += text.split("/")[::-1]
    return real or "/"


def follow_on(
    path: str, link_text: Callable[[str], str | None], known: Mapping[str, str], straight: Container[str] = ()
) -> str:
    """`follow`, from a directory above where the way to it is known. `known`: directory -> its path without links.

    >>> follow_on("/sys/class/net/eth0/mtu", {}.get, {"/sys/class/net/eth0": "/sys/devices/eth0"})
    '/sys/devices/eth0/mtu'
    """
    above = path
    for _ in range(DEPTH):
        above, _, _ = above.rpartition("/")
        if above in known:
            return follow(path[len(above) :], link_text, known[above], straight)
    return follow(path, link_text, straight=straight)


def locate(path: str, link_text: Callable[[str], str | None]) -> str:
    """`follow` that never fails: what has no answer is no link, and a loop is taken as it stands.

    >>> locate("/sys/./gone/../here", lambda _: None)
    '/sys/here'
    """

    def text_or_none(here: str) -> str | None:
        try:
            return link_text(here)
        except (ReadError, OSError, ValueError):
            return None

    try:
        return follow(path, text_or_none)
    except Absent:
        return follow(path, lambda _: None)


def parent_and_name(path: str) -> tuple[str, str]:
    """The directory of a path and its last name, which may be a link that is not to be followed.

    >>> parent_and_name("/sys/class/net/eth0/"), parent_and_name("/")
    (('/sys/class/net', 'eth0'), ('/', ''))
    """
    directory, _, name = path.rstrip("/").rpartition("/")
    return directory or "/", name


class Files(Protocol):
    """The file questions of `Host`, with the same answers and the same errors."""

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """At most `limit` bytes of a file."""

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """Many small files of one directory."""

    def listdir(self, path: str) -> list[str]:
        """Sorted names."""

    def readlink(self, path: str) -> str:
        """The text of a link, as it stands."""

    def resolve(self, path: str) -> str:
        """The path with every link followed."""

    def locate(self, path: str) -> str:
        """The same as far as it goes: what is not there is taken as it stands. Raises nothing."""

    def below(self, directory: str) -> Files | None:
        """The same files with one of their directories as the root; None where it is none. Links are not followed."""


def is_directory(files: Files, path: str) -> bool:
    """Whether there is a directory that can be listed."""
    try:
        files.listdir(path)
    except ReadError:
        return False
    return True


def list_top_files(files: Files) -> list[str]:
    """The names of files at the top, where people save outputs of commands."""
    try:
        names = files.listdir("/")
    except ReadError:
        return []
    return [name for name in names[:TOP_FILES_LIMIT] if is_file(files, f"/{name}")]


def is_file(files: Files, path: str) -> bool:
    """Whether there is a file that can be read."""
    try:
        files.read(path, 1)
    except ReadError:
        return False
    return True


def absent_or(why: ReadError) -> ReadError | None:
    """A file that is not there is left out of many; any other reason is an answer."""
    return None if isinstance(why, Absent) and why.code == "ENOENT" else why


def read_each(read: Callable[[str], bytes], directory: str, names: Iterable[str]) -> dict[str, bytes | ReadError]:
    """`attributes` for a store where a read costs no system call."""
    answers: dict[str, bytes | ReadError] = {}
    for name in names:
        try:
            answers[name] = read(f"{directory.rstrip('/')}/{name}")
        except ReadError as why:
            if (answer := absent_or(why)) is not None:
                answers[name] = answer
    return answers
