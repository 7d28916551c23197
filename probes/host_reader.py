"""Asks a host for small text files, and keeps what answered and the reason of what did not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from probes.host.interface import READ_LIMIT_BYTES, Absent, Denied, Failed, Host, ReadError
from probes.probe import Gap, GapCode
from probes.text import ParseError

_T = TypeVar("_T")
SHORT_BYTES = 4096  # one attribute: sysfs never shows more than a page
REASONS_SHOWN = 5
_FOLDERS = 4096  # of which the listings are kept
FileFacts = Mapping[str, tuple[str, Callable[[str], Any]]]  # small files by name: the fact of each, and its parser
SLEEPING = ("suspended", "suspending")  # of power/runtime_status: a read of the device could wake it


class HostReader:
    """One probe's questions. None stands for "no answer"; why is in `missing`, but for what is simply not there."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._sources: dict[str, None] = {}
        self._gaps: dict[str, None] = {}
        self._code: GapCode | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """What answered, in the order of the questions."""
        return tuple(self._sources)

    @property
    def missing(self) -> str | None:
        """Why the answer is not whole; None: it is."""
        reasons = list(self._gaps)
        if not reasons:
            return None
        more = len(reasons) - REASONS_SHOWN
        text = "; ".join(reasons[:REASONS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        return Gap(self._code, text) if self._code else text

    def answered(self, source: str) -> None:
        """Name a source that a person can repeat."""
        self._sources[source] = None

    def gap(self, reason: str, code: GapCode | None = None) -> None:
        """Name what is not known, and what would make it so."""
        self._gaps[reason] = None
        self._code = self._code or code

    def text(self, path: str, limit: int = SHORT_BYTES, source: str | None = None) -> str | None:
        """A file's text without the white space and NULs around it. `source`: how it is named, where many are read."""
        try:
            content = self.host.read(path, limit)
        except ReadError as why:
            self._note(why)
            return None
        self.answered(source or path)
        return as_text(content)

    def first(self, *paths: str, limit: int = SHORT_BYTES) -> str | None:
        """The text of the first of these files that is there and states something."""
        return next((text for path in paths if (text := self.text(path, limit))), None)

    def attributes(self, directory: str, names: Iterable[str], source: str | None = None) -> dict[str, str]:
        """Many small files of one directory; what has no answer is left out. `source`: the directory's pattern."""
        try:
            contents = self.host.attributes(directory, tuple(names))
        except ReadError as why:
            self._note(why)
            return {}
        texts: dict[str, str] = {}
        for name, content in contents.items():
            if isinstance(content, ReadError):
                self._note(content)
                continue
            texts[name] = as_text(content)
            self.answered(f"{source or directory}/{name}")
        return texts

    def output(self, *argv: str) -> str | None:
        """What a command printed."""
        try:
            done = self.host.run(*argv)
        except ReadError as why:
            self._note(why)
            return None
        self.answered(" ".join(argv))
        return done.stdout

    def saved(self, *argv: str) -> str | None:
        """What a command printed whose output the source holds; a live host is not asked to run it."""
        return self.output(*argv) if self.host.has_output(*argv) else None

    def parsed(self, text: str | None, parse: Callable[[str], _T], about: str = "") -> _T | None:
        """What a parser makes of a text that has an answer. `about`: begins the reason where it is not of its form."""
        try:
            return parse(text) if text is not None else None
        except ParseError as why:
            self.gap(f"{about}{why}")
            return None

    def messages(self, protocol: int, request: bytes, kind: int, source: str) -> list[bytes]:
        """Payloads of the messages of one kind in a netlink answer. Raises ReadError, also for a malformed one."""
        from probes import netlink  # lazy: most sources hold no answer

        try:
            answer = netlink.messages(self.host.netlink(protocol, request))
        except ParseError as why:
            raise Failed(f"{source}: {why}") from why
        self.answered(source)
        return [message.payload for message in answer if message.type == kind]

    def names(self, directory: str) -> list[str] | None:
        """What a directory holds, sorted."""
        try:
            return self.host.listdir(directory)
        except ReadError as why:
            self._note(why)
            return None

    def is_there(self, directory: str) -> bool:
        """Whether there is such a directory, also one that may not be listed."""
        try:
            self.host.listdir(directory)
        except ReadError as why:
            return not isinstance(why, Absent)
        return True

    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as it stands."""
        try:
            return self.host.readlink(path)
        except ReadError as why:
            self._note(why)
            return None

    def _note(self, why: ReadError) -> None:
        if not isinstance(why, Absent):
            self.gap(why.reason, "needs-root" if isinstance(why, Denied) else None)


def parse_files(facts: FileFacts, texts: Mapping[str, str]) -> dict[str, Any]:
    """The facts of those files that have an answer.

    >>> parse_files({"numa_node": ("node", int), "size": ("bytes", int)}, {"numa_node": "1"})
    {'node': 1}
    """
    return {fact: parse(texts[name]) for name, (fact, parse) in facts.items() if name in texts}


@lru_cache(maxsize=_FOLDERS)  # several probes walk the folders of all PCI functions
def list_saved(host: Host, directory: str) -> frozenset[str] | None:
    """What a directory of a recorded source holds; None: it has no answer."""
    try:
        return frozenset(host.listdir(directory))
    except ReadError:
        return None


def may_hold(host: Host, directory: str, name: str) -> bool:
    """Whether a listing of the directory does not rule the name out."""
    listed = list_saved(host, directory)
    return listed is None or name in listed


def is_asleep(host: Host, device: str) -> bool:
    """Whether the device of a folder in sysfs is suspended; False where that is not shown."""
    try:
        return as_text(host.read(f"{device}/power/runtime_status", 64)) in SLEEPING
    except ReadError:
        return False


def as_text(content: bytes) -> str:
    r"""Text of one small file.

    >>> as_text(b"0-15\n"), as_text(b"NVIDIA Jetson AGX Orin\x00")
    ('0-15', 'NVIDIA Jetson AGX Orin')
    """
    return content[:READ_LIMIT_BYTES].decode("utf-8", "replace").strip(" \t\r\n\x00")
