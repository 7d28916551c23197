"""Whether a path leads where its user means: not by a link or folder that another user put into a shared folder.

The rule is the kernel's (fs.protected_symlinks, protected_regular), which not every host has on, and which a path that
is resolved before it is opened would go around. A shared folder is one like /tmp: all may write to it, and remove only
what is theirs.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum

_MOST_LINKS = 40  # in a row, as the kernel has it


class PathUse(Enum):
    """For what a path is given: it decides what of another user's is refused in a shared folder."""

    READ = "read"  # a link
    REPLACE = "replace"  # and what is at the path
    FOLDER = "folder"  # and each folder on the way: its owner can replace all that is below
    OWN_FOLDER = "own folder"  # and the path may not be a shared folder itself


def follow_links(path: str, use: PathUse) -> str:
    """Where a path leads, with no link left in it; its end may be missing. Raises OSError for what is refused."""
    if not path:  # not the current directory
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    place, ahead, links = os.sep, os.path.abspath(path).split(os.sep)[::-1], 0
    while ahead:
        part = ahead.pop()
        if part in ("", os.curdir, os.pardir):
            place = os.path.dirname(place) if part == os.pardir else place
            continue
        following = os.path.join(place, part)
        try:
            part_stat, above = os.lstat(following), os.stat(place)
        except OSError:
            return os.path.join(following, *ahead[::-1])  # opening it states why
        is_link = stat.S_ISLNK(part_stat.st_mode)
        _refuse_planted(following, (part_stat, above), is_link, not ahead, use)
        if not is_link:
            place = following
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(following)
        place = os.sep if target.startswith(os.sep) else place
        ahead += target.split(os.sep)[::-1]
    if use is PathUse.OWN_FOLDER and _is_shared(os.stat(place)):
        raise OSError(errno.EACCES, "a folder that all may write to: choose one below it", place)
    return place


def check_not_planted(path: str, path_stat: os.stat_result) -> None:
    """For the moment after `follow_links`, in which another user can have put something else at the path.

    `path_stat`: of what is there, or was opened. Raises OSError for a link, or for what is refused to be replaced.
    """
    if stat.S_ISLNK(path_stat.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    _refuse_planted(path, (path_stat, os.stat(os.path.dirname(path) or ".")), False, True, PathUse.REPLACE)


def make_folder(path: str, use: PathUse, mode: int = 0o777) -> str:
    """The folder that a path leads to, created where it is missing (`mode`: of the last one). Raises OSError.

    It is looked at again once it is there: another user may have been faster.
    """
    os.makedirs(follow_links(path, use), mode, exist_ok=True)
    return follow_links(path, use)


def _refuse_planted(
    path: str, stats: tuple[os.stat_result, os.stat_result], is_link: bool, is_last: bool, use: PathUse
) -> None:
    """Raises OSError. `stats`: of the path, and of the folder that it is in."""
    path_stat, above = stats
    is_folder_use = use in (PathUse.FOLDER, PathUse.OWN_FOLDER)
    is_checked = is_link or is_folder_use or (is_last and use is PathUse.REPLACE)
    trusted = (os.geteuid(), above.st_uid, *((0,) if is_folder_use else ()))
    if is_checked and _is_shared(above) and path_stat.st_uid not in trusted:
        raise OSError(errno.EACCES, "another user put it into a folder that all may write to", path)


def _is_shared(folder: os.stat_result) -> bool:
    return bool(folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH)
