"""What every file store of a source answers: a folder, an archive in memory, changes laid over either."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from probes.host.interface import READ_LIMIT_BYTES, Absent, Unanswered


class Files(Protocol):
    """The file questions of `Host`, with the same answers and the same errors."""

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """At most `limit` bytes of a file."""

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | Unanswered]:
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
    except Unanswered:
        return False
    return True


def is_file(files: Files, path: str) -> bool:
    """Whether there is a file that can be read."""
    try:
        files.read(path, 1)
    except Unanswered:
        return False
    return True


def gone_or(why: Unanswered) -> Unanswered | None:
    """A file that is not there is left out of many; any other reason is an answer."""
    return None if isinstance(why, Absent) and why.code == "ENOENT" else why


def each_read(read: Callable[[str], bytes], directory: str, names: Iterable[str]) -> dict[str, bytes | Unanswered]:
    """`attributes` for a store where a read costs no system call."""
    answers: dict[str, bytes | Unanswered] = {}
    for name in names:
        try:
            answers[name] = read(f"{directory.rstrip('/')}/{name}")
        except Unanswered as why:
            if (answer := gone_or(why)) is not None:
                answers[name] = answer
    return answers
