"""A tee on the host interface: every call passes through to a host, and is kept here with its answer or its error.

What a probe asked is what a capture holds, so a capture can never forget a file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from probes.host.files import locate, parent_and_name
from probes.host.interface import READ_LIMIT_BYTES, Absent, Completed, Host, ReadError, Refusal
from probes.host.udev import record, record_of
from probes.netlink import same_question

_OF_A_PROCESS = ("/proc/self", "/proc/thread-self")  # links to another place for each child that asks
_ANSWERS = ("commands", "nvml", "netlink", "ethtool")  # of a Recording, by question
Call = tuple[str, str]  # NVML function, arguments as JSON
K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Recording:
    """Questions and answers as plain data, so that the recordings of many children become one.

    Paths are real paths of that host: the links on the way to them are in `links`. `directories` are known to be
    there, without a listing. `lost` are probes whose child ended without an answer: its questions are not known.
    `unanswered` are probes that gave no facts, and why: on a live host some leave before they ask anything.
    `missing` are lines for people: what a capture should hold and does not. `source_kind` is the host's own kind.
    """

    observed_at: str | None = None
    links: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    listings: dict[str, list[str]] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    commands: dict[tuple[str, ...], Completed | Refusal] = field(default_factory=dict)
    nvml: dict[Call, Any] = field(default_factory=dict)  # plain data or Refusal
    netlink: dict[tuple[int, bytes], bytes | Refusal] = field(default_factory=dict)
    ethtool: dict[tuple[str, bytes], bytes | Refusal] = field(default_factory=dict)
    lost: dict[str, Refusal] = field(default_factory=dict)
    unanswered: dict[str, Refusal] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    source_kind: str = "live"

    def add(self, later: Recording) -> None:
        """Take over what was asked after the probes: only where the probes asked nothing, so that a replay answers
        them as the host did."""
        known = self.files.keys() | self.refusals.keys() | self.links.keys() | self.listings.keys()
        for name in ("links", "files", "listings", "refusals"):
            _fill(getattr(self, name), {path: row for path, row in getattr(later, name).items() if path not in known})
        self.directories |= later.directories - self.files.keys() - self.links.keys()

    def merge(self, other: Recording) -> None:
        """Take over what another one has. Of two answers the first stays; of two files the longer one."""
        for path, content in other.files.items():
            self.keep(path, content)
        self.directories |= other.directories
        for name in ("links", "listings", "refusals", *_ANSWERS, "lost", "unanswered"):
            _fill(getattr(self, name), getattr(other, name))

    def over(self, earlier: Recording) -> Recording:
        """This one, with what only the earlier one was asked: a replay answers as the host did at last."""
        self.add(earlier)
        for name in _ANSWERS:
            _fill(getattr(self, name), getattr(earlier, name))
        self.lost = {**earlier.lost, **self.lost}
        self.unanswered = {**earlier.unanswered, **self.unanswered}
        self.missing = [*earlier.missing, *self.missing]
        return self

    def keep(self, path: str, content: bytes) -> None:
        """A file as far as it was read: the same file may have been asked for with different limits."""
        if len(content) > len(self.files.get(path, b"")) or path not in self.files:
            self.files[path] = content


class RecordingHost:
    """Any host, with a memory. Answers are those of the host, errors too."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.kind = host.kind
        self.path = host.path
        self.live = host.live
        self.observed_at = host.observed_at
        self.recording = Recording(observed_at=host.observed_at, source_kind=host.kind)
        self._no_links: set[str] = set()

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        try:
            content = self._host.read(path, limit)
        except ReadError as why:
            self._record_refusal(self._real(path), path, why)
            raise
        self.recording.keep(self._real(path), content)
        return content

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """See Host.attributes."""
        try:
            answers = self._host.attributes(directory, names)
        except ReadError as why:
            self._record_refusal(self._real(directory), directory, why)
            raise
        real = self._real(directory)
        self.recording.directories.add(real)
        for name, answer in answers.items():
            place = self._real(f"{real}/{name}")
            if isinstance(answer, ReadError):
                self._record_refusal(place, f"{directory}/{name}", answer)
            else:
                self.recording.keep(place, answer)
        return answers

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        try:
            names = self._host.listdir(path)
        except ReadError as why:
            self._record_refusal(self._real(path), path, why)
            raise
        self.recording.listings.setdefault(self._real(path), names)
        return names

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        directory, name = parent_and_name(path)
        place = f"{self._real(directory).rstrip('/')}/{name}"
        try:
            text = self._host.readlink(path)
        except ReadError as why:
            if why.code == "EINVAL":  # it is there, and no link
                self.recording.directories.add(place)
            else:
                self._record_refusal(place, path, why)
            raise
        self.recording.links.setdefault(place, text)
        return text

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        try:
            real = self._host.resolve(path)
        except ReadError as why:
            self._record_refusal(self._real(path), path, why)
            raise
        self.recording.directories.add(self._real(path))
        return real

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        return _keep_answer(self.recording.commands, argv, lambda: self._host.run(*argv))

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return self._host.has_output(*argv)

    def saved_arguments(self, *argv: str) -> list[str]:
        """See Host.saved_arguments."""
        return self._host.saved_arguments(*argv)

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        import json

        call = function, json.dumps(arguments)
        return _keep_answer(self.recording.nvml, call, lambda: self._host.nvml(function, *arguments))

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        question = protocol, same_question(request)
        return _keep_answer(self.recording.netlink, question, lambda: self._host.netlink(protocol, request))

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool."""
        question = interface, request
        return _keep_answer(self.recording.ethtool, question, lambda: self._host.ethtool(interface, request))

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev. It is kept as the record of udev's own database."""
        place = record_of(path)
        try:
            answer = self._host.udev(path)
        except ReadError as why:
            self._record_refusal(place, place, why)
            raise
        self.recording.keep(place, record(answer))
        return answer

    def _real(self, path: str) -> str:
        """Where the path leads; every link on the way is kept."""
        return locate(path, self._link_text)

    def _link_text(self, here: str) -> str | None:
        if here in self._no_links or here in _OF_A_PROCESS:
            return None
        text = self.recording.links.get(here)
        if text is None:
            try:
                text = self._host.readlink(here)
            except ReadError:
                self._no_links.add(here)
                return None
            self.recording.links[here] = text
        return text

    def _record_refusal(self, place: str, path: str, why: ReadError) -> None:
        """What a replay would answer by itself, because nothing is there, needs no record."""
        if not (isinstance(why, Absent) and why.reason == f"{path}: {os.strerror(errno.ENOENT)}"):
            self.recording.refusals.setdefault(place, Refusal.of(why).renamed(path, place))


def _keep_answer(answers: dict[K, V | Refusal], question: K, ask: Callable[[], V]) -> V:
    """What the host answers, or its error: the first of each question is kept."""
    try:
        answer = ask()
    except ReadError as why:
        answers.setdefault(question, Refusal.of(why))
        raise
    answers.setdefault(question, answer)
    return answer


def _fill(known: dict[K, V], more: Mapping[K, V]) -> None:
    for key, value in more.items():
        known.setdefault(key, value)
