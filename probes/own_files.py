"""Which file is ours: temporary files, whose names are made and recognized here, and locks.

A file is written beside the one that it becomes, as `.NAME.XXXXXXXX.tmp`: hidden, so that readers of the folder skip
it. What a killed run left is removed only if NAME is one that the caller writes, and the file is regular and of this
user. A folder, link or pipe of that name, or another user's file, is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
import zlib
from collections.abc import Iterator

PRIVATE_MODE = 0o640  # of a new file that holds facts of a host: names, serial numbers, addresses; less the umask
_TAG = r"[0-9a-f]{8}"
OF_THE_FILE_SYSTEM = r"lost\+found|\.nfs[0-9a-f]+"  # in the root of a disk; an open file that was removed


def temporary_path(path: str, sole: bool = False) -> str:
    """A temporary name beside a path. `sole`: always the same one, for what one process at a time writes."""
    folder, name = os.path.split(path)
    tag = f"{zlib.crc32(os.fsencode(name)):08x}" if sole else os.urandom(4).hex()
    return os.path.join(folder, f".{name}.{tag}.tmp")


def is_temporary(name: str, targets: re.Pattern[str]) -> bool:
    """Whether a name is one of a temporary file for a file with one of these names.

    >>> is_temporary(".state.json.0a1b2c3d.tmp", re.compile(r"state\\.json"))
    True
    >>> is_temporary(".bashrc", re.compile(r"state\\.json"))
    False
    """
    return any(targets.fullmatch(target) for target in _list_targets(name))


def _list_targets(name: str) -> Iterator[str]:
    """The files that it may be a temporary file for; versions up to 0.9 had other forms, too."""
    if name.endswith(".tmp"):
        target, _, tag = name[:-4].rpartition(".")
        if re.fullmatch(_TAG, tag):
            yield target.removeprefix(".")
        if name.startswith("."):
            yield name[1:-4]
    elif name.endswith(".new"):
        yield name[:-4]


def create_temporary(path: str, mode: int, sole: bool = False) -> tuple[int, str]:
    """Create a temporary file for a path: its descriptor and name. Raises OSError.

    `sole`: what a killed run left is replaced, so that there is one at most; what is not ours there stays.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    if sole:
        temporary = temporary_path(path, sole=True)
        remove_own_file(temporary)
        with contextlib.suppress(FileExistsError):
            return os.open(temporary, flags, mode), temporary
    temporary = temporary_path(path)
    return os.open(temporary, flags, mode), temporary


def create_private(path: str) -> None:
    """Create an empty file for facts of a host, to be opened by its name. Raises OSError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_MODE))


def create_temporary_folder(path: str) -> str:
    """Create a temporary folder for a path, for this user alone. Raises OSError."""
    temporary = temporary_path(path)
    os.mkdir(temporary, 0o700)
    return temporary


def is_own_file(path: str, sole_name: bool = False) -> bool:
    """Whether it is a regular file of this user, and no link to one (`sole_name`: nor a hard link). Raises OSError."""
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and (status.st_nlink == 1 or not sole_name)


def remove_own_file(path: str) -> None:
    """Remove a file whose name is ours, if the file is, too. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        if is_own_file(path):
            os.unlink(path)


def remove_left_behind(folder: str, targets: re.Pattern[str], seconds: float = 0.0, sole: bool = False) -> None:
    """Remove the temporary files for these names that killed runs left, those that are so old. Raises OSError.

    `sole`: the caller is the one process that may create sole ones, so that their age does not matter.
    """
    for name in os.listdir(folder):
        if is_temporary(name, targets):
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                is_sole = sole and path == temporary_path(os.path.join(folder, name[1:-13]), sole=True)
                if is_sole or abs(time.time() - os.lstat(path).st_mtime) >= seconds:
                    remove_own_file(path)


def empty_own_file(path: str) -> None:
    """Free the room of a file whose name is ours, if the file is, too, and has no other name. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def list_foreign(folder: str, ours: re.Pattern[str], temporary: re.Pattern[str]) -> list[str]:
    """The paths below a folder that are not ours. `ours`: whole paths; `temporary`: names of files that are written.

    A folder counts by what is in it, an empty one by its path with "/" at the end. Links are not followed.
    """
    foreign = []

    def visit(below: str) -> None:
        with os.scandir(os.path.join(folder, below)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = f"{below}{entry.name}"
                if re.fullmatch(OF_THE_FILE_SYSTEM, entry.name) or ours.fullmatch(path):
                    continue
                if entry.is_dir(follow_symlinks=False) and ours.fullmatch(f"{path}/"):
                    visit(f"{path}/")
                elif not is_temporary(entry.name, temporary):
                    foreign.append(path)

    visit("")
    return foreign


def open_lock(path: str) -> int:
    """Open a lock file, created where it is missing; whoever can read a lock can hold it, so that no other user may.

    It is this user's, root's, or of who owns its folder, to whom root gives it. Raises OSError for any other.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    except PermissionError:  # of root, on a day when it ran a command of this user's
        descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        status, folder = os.fstat(descriptor), os.stat(os.path.dirname(path) or ".")
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), folder.st_uid, 0):
            raise OSError(errno.EACCES, "the lock in it is another user's", os.path.dirname(path))
        if status.st_nlink > 1:  # of any file: its mode and owner would be changed
            raise OSError(errno.EACCES, "the lock in it is a second name of a file", os.path.dirname(path))
        with contextlib.suppress(PermissionError):  # root's
            if status.st_uid != folder.st_uid and not os.geteuid():
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
            if status.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def hold_lock(descriptor: int, until: float = 0.0) -> bool:
    """Hold a lock that is open, waiting for it until then (monotonic); False where another holds it. Raises OSError."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
