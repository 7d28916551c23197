"""Files of an archive, kept in memory: nothing of it is ever written to disk, and no link of it leaves it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import TypeAlias

from probes.host.files import follow, follow_on, parent_and_name, read_each
from probes.host.filter_secrets import filter_content
from probes.host.interface import READ_LIMIT_BYTES, Absent, Failed, ReadError
from probes.named_tuple import NamedTuple


class SymlinkNode(NamedTuple):
    """A symbolic link: its text."""

    text: str


class SpecialNode(NamedTuple):
    """What is no file, link or directory: a device, a FIFO. `what` states it with its article."""

    what: str


Node: TypeAlias = dict[str, "Node"] | bytes | SymlinkNode | SpecialNode


class MemoryFiles:
    """A rooted tree in memory, filled by `add` before it is asked: directories that were walked to once are kept."""

    def __init__(self, root: dict[str, Node] | None = None) -> None:
        self.root: dict[str, Node] = {} if root is None else root
        self._latest: tuple[str, dict[str, Node]] = ("", self.root)  # directory of what was added last
        self._folders: dict[str, dict[str, Node]] = {}  # by their path without links
        self._resolved: dict[str, str] = {}  # directories whose links were followed
        self._located: dict[str, str] = {}  # likewise, as far as they go

    def add(self, path: str, node: Node) -> int:
        """Put a node in its place, over what is there; how many nodes are new. Raises ValueError where a part of its
        path is no directory, or climbs."""
        parent, _, name = path.rpartition("/")
        new = 0
        if parent == self._latest[0] and name not in ("", ".", ".."):
            folder = self._latest[1]
        else:
            names = [name for name in path.split("/") if name not in ("", ".")]
            if ".." in names:
                raise ValueError("climbs out of its directory with '..'")
            if not names:
                return new
            folder, new = self._make_folders(names[:-1])
            if name == names[-1]:
                self._latest = parent, folder
            name = names[-1]
        if isinstance(folder.get(name), dict):
            if isinstance(node, dict):
                return new
            self._latest = "", self.root
            self._folders.clear()
        if self._resolved or self._located:
            self._resolved.clear()
            self._located.clear()
        new += name not in folder
        folder[name] = node
        return new

    def _make_folders(self, names: Iterable[str]) -> tuple[dict[str, Node], int]:
        """A directory below the root, and how many of its path are new. Raises ValueError."""
        folder, new = self.root, 0
        for name in names:
            below = folder.get(name)
            if below is None:
                below = folder[name] = {}
                new += 1
            if not isinstance(below, dict):
                raise ValueError("lies below something that is no directory")
            folder = below
        return folder, new

    def find(self, path: str) -> Node | None:
        """What is at a member's name, as it stands; None where there is nothing."""
        try:
            return self.node("/".join(name for name in path.split("/") if name != "."))
        except Absent:
            return None

    def node(self, real: str) -> Node:
        """What is at a path without links. Raises Absent."""
        parent, _, name = real.rpartition("/")
        folder = self._folders.get(parent)
        if folder is None:
            found = self._walk(real, parent)
            if not isinstance(found, dict):
                raise make_absent(real, errno.ENOTDIR)
            folder = self._folders[parent] = found
        if not name:
            return folder
        if name not in folder:
            raise make_absent(real, errno.ENOENT)
        return folder[name]

    def _walk(self, real: str, directory: str) -> Node:
        node: Node = self.root
        for name in directory.split("/"):
            if not name:
                continue
            if not isinstance(node, dict):
                raise make_absent(real, errno.ENOTDIR)
            if name not in node:
                raise make_absent(real, errno.ENOENT)
            node = node[name]
        return node

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        node = self._find_node(path)
        if isinstance(node, bytes):
            return filter_content(path, node[:limit])
        what = node.what if isinstance(node, SpecialNode) else "a directory"
        raise Failed(f"{path}: is {what}, which is not read", "EINVAL")

    def attributes(self, directory: str, names: Iterable[str]) -> dict[str, bytes | ReadError]:
        """See Host.attributes."""
        folder = self._find_node(directory)
        if not isinstance(folder, dict):
            raise make_absent(directory, errno.ENOTDIR)
        answers: dict[str, bytes | ReadError] = {}
        for name in dict.fromkeys(names):
            node = folder.get(name)
            if isinstance(node, bytes):
                answers[name] = filter_content(f"{directory}/{name}", node[:READ_LIMIT_BYTES])
            elif node is not None or "/" in name:
                answers.update(read_each(self.read, directory, (name,)))
        return answers

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        node = self._find_node(path)
        if not isinstance(node, dict):
            raise make_absent(path, errno.ENOTDIR)
        return sorted(node)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        directory, name = parent_and_name(path)
        try:
            node = self.node(f"{self._follow_directory(directory)}/{name}")
        except Absent as why:
            raise _rename(path, why) from None
        if not isinstance(node, SymlinkNode):
            raise Absent(f"{path}: not a symbolic link", "EINVAL")
        return node.text

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        directory, name = parent_and_name(path)
        try:
            return follow(name, self._link_text, self._follow_directory(directory))
        except Absent as why:
            raise _rename(path, why) from None

    def locate(self, path: str) -> str:
        """See Files.locate."""
        if (known := self._located.get(path)) is not None:
            return known or "/"
        directory, name = parent_and_name(path)
        try:
            start = self._located.get(directory)
            if start is None:
                found = follow_on(directory, self._link_text_or_none, self._located)
                start = self._located[directory] = found.rstrip("/")
            return follow(name, self._link_text_or_none, start)
        except Absent:  # a loop
            return follow(path, lambda _: None)

    def below(self, directory: str) -> MemoryFiles | None:
        """See Files.below."""
        node = self.find(directory)
        return MemoryFiles(node) if isinstance(node, dict) else None

    def _follow_directory(self, path: str) -> str:
        """Where a directory is, "" for the root: probes ask for many files of each. Raises Absent."""
        real = self._resolved.get(path)
        if real is None:
            real = self._resolved[path] = follow_on(path, self._link_text, self._resolved).rstrip("/")
        return real

    def _find_node(self, path: str) -> Node:
        directory, _, name = path.rpartition("/")
        if (real := self._resolved.get(directory)) is not None and name not in ("", ".", ".."):
            folder = self._folders.get(real)
            node = None if folder is None else folder.get(name)
            if node is not None and not isinstance(node, SymlinkNode):
                return node  # nearly always: a plain file of a directory that was asked before
        return self.node(self.resolve(path))

    def _link_text(self, here: str) -> str | None:
        node = self.node(here)
        return node.text if isinstance(node, SymlinkNode) else None

    def _link_text_or_none(self, here: str) -> str | None:
        try:
            return self._link_text(here)
        except Absent:
            return None


def make_absent(path: str, code: int) -> Absent:
    """The same words as a folder's answer: a replay must read like the original."""
    return Absent(f"{path}: {os.strerror(code)}", errno.errorcode[code])


def _rename(path: str, why: Absent) -> Absent:
    """The reason names the path that was asked for, not the component where it ended."""
    return make_absent(path, getattr(errno, why.code or "ENOENT"))
