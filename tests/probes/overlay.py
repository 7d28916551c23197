"""Another host with something changed: files, links, commands or NVML answers. For tests, and for faults."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from probes.host.files import follow, locate, parent_and_name, read_each
from probes.host.interface import READ_LIMIT_BYTES, Absent, Completed, Failed, Host, ReadError, Refusal
from probes.host.udev import properties_in, record_of
from probes.sources.memory import SymlinkNode, make_absent

Change = bytes | str | SymlinkNode | ReadError | None
Answer = str | Completed | ReadError


class OverlayHost:
    """`base` with changes.

    `files`: path -> content, a Link, a refusal, or None where it is gone (a folder with all that is below it).
    `commands`: argument vector -> stdout, a Completed or a refusal. `nvml`: (function, *arguments) -> the same.
    """

    def __init__(
        self,
        base: Host,
        files: Mapping[str, Change] | None = None,
        commands: Mapping[tuple[str, ...], Answer] | None = None,
        nvml: Mapping[tuple[Any, ...], Any] | None = None,
        kind: str = "",
    ) -> None:
        self._base = base
        self.kind = kind or base.kind
        self.path = base.path
        self.live = base.live
        self.observed_at = base.observed_at
        self._files: dict[str, Change] = {}
        self._added: dict[str, set[str]] = {}
        for path, change in (files or {}).items():
            self._change(path, change)
        self._commands = dict(commands or {})
        self._nvml = {json.dumps(call): answer for call, answer in (nvml or {}).items()}

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        real = self.resolve(path)
        if real not in self._files:
            if real in self._added:
                raise Failed(f"{path}: is a directory, which is not read", "EINVAL")
            with _renaming(real, path):
                return self._base.read(real, limit)
        change = self._files[real]
        if isinstance(change, ReadError):
            raise change
        content = change.encode() if isinstance(change, str) else change
        assert isinstance(content, bytes), "resolve() ends at no link and at nothing that is gone"
        return content[:limit]

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """See Host.attributes."""
        self.listdir(directory)
        return read_each(self.read, directory, dict.fromkeys(names))

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        real = self.resolve(path)
        if real in self._files:
            raise make_absent(path, errno.ENOTDIR)
        added = self._added.get(real, set())
        try:
            with _renaming(real, path):
                names = set(self._base.listdir(real))
        except Absent:
            if not added:
                raise
            names = set()
        here = real.rstrip("/")
        return sorted(name for name in names | added if self._files.get(f"{here}/{name}", b"") is not None)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        directory, name = parent_and_name(path)
        with _renaming(directory, path):
            place = f"{self.resolve(directory).rstrip('/')}/{name}"
        with _renaming(place, path):
            text = self._link_text(place)
        if text is None:
            raise Absent(f"{path}: not a symbolic link", "EINVAL")
        return text

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        here = ""

        def text(place: str) -> str | None:
            nonlocal here
            here = place
            return self._link_text(place)

        try:
            return follow(path, text)
        except ReadError as why:
            raise Refusal.of(why).renamed(here, path).error() from None

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        if argv not in self._commands:
            return self._base.run(*argv)
        answer = self._commands[argv]
        if isinstance(answer, ReadError):
            raise answer
        return answer if isinstance(answer, Completed) else Completed(argv, 0, answer, "", 0.0)

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        if self.live or argv not in self._commands:
            return self._base.has_output(*argv)
        return not isinstance(self._commands[argv], ReadError)

    def saved_arguments(self, *argv: str) -> list[str]:
        """See Host.saved_arguments."""
        mine = [command for command in self._commands if not self.live and command[:-1] == argv]
        names = {name for name in self._base.saved_arguments(*argv) if (*argv, name) not in self._commands}
        return sorted(names | {command[-1] for command in mine if self.has_output(*command)})

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        call = json.dumps((function, *arguments))
        if call not in self._nvml:
            return self._base.nvml(function, *arguments)
        if isinstance(self._nvml[call], ReadError):
            raise self._nvml[call]
        return self._nvml[call]

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        return self._base.netlink(protocol, request)

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool."""
        return self._base.ethtool(interface, request)

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev."""
        return properties_in(self, path) if record_of(path) in self._files else self._base.udev(path)

    def _change(self, path: str, change: Change) -> None:
        """Put a change at its real place; the folders on the way exist from now on."""
        directory, name = parent_and_name(path)
        place = locate(directory, self._link_text).rstrip("/")
        self._files[f"{place}/{name}"] = change
        while change is not None:
            self._added.setdefault(place or "/", set()).add(name)
            if not place:
                break
            place, _, name = place.rpartition("/")

    def _link_text(self, here: str) -> str | None:
        if here in self._files:
            change = self._files[here]
            if change is None:
                raise make_absent(here, errno.ENOENT)
            return change.text if isinstance(change, SymlinkNode) else None
        if here in self._added:
            return None
        try:
            return self._base.readlink(here)
        except Absent as why:
            if why.code == "EINVAL":
                return None
            raise


@contextmanager
def _renaming(real: str, path: str) -> Iterator[None]:
    """A reason names the path that was asked for, not the place where it leads."""
    try:
        yield
    except ReadError as why:
        raise Refusal.of(why).renamed(real, path).error() from None
