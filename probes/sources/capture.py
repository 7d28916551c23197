"""A capture, replayed: every question has the answer, or the refusal, that was recorded.

The format is `fabricscope.capture/1`, docs/capture.md. What was not recorded is absent.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from probes.host.files import Files, absent_or, parent_and_name
from probes.host.interface import (
    KINDS,
    OUTPUT_LIMIT_BYTES,
    READ_LIMIT_BYTES,
    BadSource,
    Completed,
    ReadError,
    Refusal,
)
from probes.host.udev import properties_in
from probes.netlink import same_question
from probes.sources.capture_nvml import RecordedNvml, replay

FORMAT = "fabricscope.capture/1"
MANIFEST = "/manifest.json"
RECAPTURED = ("tree", "dump", "text", "sosreport", "bug-report")  # kinds that hold less than their machine did


class CaptureHost:
    """One capture. `lost`: the probes whose child did not answer when it was taken, and why; `unanswered`: those that
    gave no facts, and why. `kind` is that of the source that was captured, where that was no host: what a pruned tree
    does not have is not known to be absent."""

    live = False

    def __init__(self, path: str, evidence: Files, files: Files) -> None:
        """`evidence` is the capture itself, `files` the tree under its files/. Raises BadSource."""
        self.path: str | None = path
        self._files = files
        reader = _DocumentReader(path, evidence)
        manifest = reader.document(MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise reader.bad(f"is a capture of another format; this version reads {FORMAT}")
        of = manifest.get("source_kind")
        self.kind: str = of if of in RECAPTURED else "capture"
        self.observed_at: str | None = reader.typed(manifest, "captured_at", (str, type(None)), MANIFEST)
        self._listings: dict[str, list[str]] = reader.table(manifest, "listings", _names)
        self._refusals: dict[str, Refusal] = reader.table(manifest, "errors", _refusal)
        self.lost: dict[str, Refusal] = reader.table(manifest, "lost", _refusal)
        self.unanswered: dict[str, Refusal] = reader.table(manifest, "unanswered", _ending)
        self._commands: dict[tuple[str, ...], Completed | Refusal] = dict(reader.each("/commands", _command))
        self._nvml: RecordedNvml = reader.calls("/nvml.json")
        self._netlink: dict[tuple[int, bytes], bytes | Refusal] = dict(reader.each("/netlink", _exchange))
        self._ethtool: dict[tuple[str, bytes], bytes | Refusal] = dict(reader.each("/ethtool", _parse_question))
        self._refused_names: dict[str, list[str]] = {}
        for place in self._refusals:
            directory, name = parent_and_name(place)
            self._refused_names.setdefault(directory, []).append(name)

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> bytes:
        """See Host.read."""
        try:
            return self._files.read(path, limit)
        except ReadError as why:
            raise self._refusal(path) or why from None

    def attributes(self, directory: str, names: Iterable[str]) -> Mapping[str, bytes | ReadError]:
        """See Host.attributes."""
        wanted = list(names)
        try:
            answers = dict(self._files.attributes(directory, wanted))
        except ReadError as why:
            raise self._refusal(directory) or why from None
        refused = self._refused_names.get(self._files.locate(directory), ())
        for name in wanted:
            if (name in refused or "/" in name) and not isinstance(answers.get(name), bytes):
                refusal = self._refusal(f"{directory}/{name}")
                if refusal is not None and absent_or(refusal) is not None:
                    answers[name] = refusal
        return answers

    def listdir(self, path: str) -> list[str]:
        """See Host.listdir."""
        listing = self._listings.get(self._files.locate(path))
        if listing is not None:
            return list(listing)
        if (refusal := self._refusal(path)) is not None:
            raise refusal
        return self._files.listdir(path)

    def readlink(self, path: str) -> str:
        """See Host.readlink."""
        try:
            return self._files.readlink(path)
        except ReadError as why:
            if why.code == "EINVAL":  # it is there and no link: what was refused is its content
                raise
            raise self._refusal(path) or why from None

    def resolve(self, path: str) -> str:
        """See Host.resolve."""
        try:
            return self._files.resolve(path)
        except ReadError as why:
            raise self._refusal(path) or why from None

    def run(self, *argv: str) -> Completed:
        """See Host.run."""
        return replay(self._commands, argv, " ".join(argv))

    def has_output(self, *argv: str) -> bool:
        """See Host.has_output."""
        return isinstance(self._commands.get(argv), Completed)

    def saved_arguments(self, *argv: str) -> list[str]:
        """See Host.saved_arguments."""
        return sorted(command[-1] for command in self._commands if command[:-1] == argv and self.has_output(*command))

    def nvml(self, function: str, *arguments: Any) -> Any:
        """See Host.nvml."""
        return self._nvml.answer(function, arguments)

    def netlink(self, protocol: int, request: bytes) -> bytes:
        """See Host.netlink."""
        return replay(self._netlink, (protocol, same_question(request)), f"netlink protocol {protocol}")

    def ethtool(self, interface: str, request: bytes) -> bytes:
        """See Host.ethtool."""
        return replay(self._ethtool, (interface, request), f"ethtool of {interface}")

    def udev(self, path: str) -> Mapping[str, str]:
        """See Host.udev."""
        return properties_in(self, path)

    def _refusal(self, path: str) -> ReadError | None:
        """What was refused at this place, by whatever name it was asked for."""
        place = self._files.locate(path)
        refusal = self._refusals.get(place)
        if refusal is not None:
            return refusal.renamed(place, path).error()
        refusal = self._refusals.get(path)
        return refusal.error() if refusal else None


class _DocumentReader:
    """The JSON documents of a capture, with one clear line for each that is not as it should be."""

    def __init__(self, path: str, evidence: Files) -> None:
        self._path = path
        self._evidence = evidence
        self._names = frozenset(evidence.listdir("/"))  # what is there and leads nowhere is damage, no absence

    def bad(self, what: str) -> BadSource:
        return BadSource(f"{self._path}: {what}")

    def document(self, place: str) -> Any:
        try:
            return json.loads(self._evidence.read(place, OUTPUT_LIMIT_BYTES))
        except ReadError as why:
            raise self.bad(f"is a capture that cannot be read: {why}") from None
        except (ValueError, RecursionError):
            raise self.bad(f"is a damaged capture: {place[1:]} is not JSON") from None

    def typed(self, table: Any, key: str, types: tuple[type, ...], place: str) -> Any:
        value = table.get(key)
        if not isinstance(value, types):
            raise self.bad(f"is a damaged capture: {place[1:]}: {key}")
        return value

    def table(self, manifest: Any, key: str, convert: Callable[[Any], Any]) -> dict[str, Any]:
        rows = manifest.get(key) or {}
        return dict(
            self._convert(
                lambda: [(str(name), convert(value)) for name, value in rows.items()], f"manifest.json: {key}"
            )
        )

    def each(self, folder: str, convert: Callable[[Any], tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        if folder[1:] not in self._names:
            return []
        try:
            names = self._evidence.listdir(folder)
        except ReadError as why:
            raise self.bad(f"is a capture that cannot be read: {why}") from None
        return [
            self._convert(partial(convert, self.document(f"{folder}/{name}")), f"{folder[1:]}/{name}") for name in names
        ]

    def calls(self, place: str) -> RecordedNvml:
        if place[1:] not in self._names:
            return RecordedNvml()
        rows = self.document(place)
        recorded: RecordedNvml = self._convert(lambda: RecordedNvml([_call(row) for row in rows]), place[1:])
        return recorded

    def _convert(self, convert: Callable[[], Any], place: str) -> Any:
        try:
            return convert()
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise self.bad(f"is a damaged capture: {place}") from None


def _ending(row: Any) -> Refusal:
    return Refusal("skipped", _text(row["reason"])) if row["status"] == "skipped" else _refusal(row)


def _refusal(row: Any) -> Refusal:
    if row["status"] not in KINDS:
        raise ValueError(row["status"])
    return Refusal(row["status"], _text(row["reason"]), None if row.get("code") is None else _text(row["code"]))


def _names(row: Any) -> list[str]:
    return sorted(_text(name) for name in row)


def _command(row: Any) -> tuple[tuple[str, ...], Completed | Refusal]:
    argv = tuple(_text(word) for word in row["argv"])
    if "error" in row:
        return argv, _refusal(row["error"])
    returncode, seconds = int(row["returncode"]), float(row["seconds"])
    return argv, Completed(argv, returncode, _text(row["stdout"]), _text(row["stderr"]), seconds)


def _call(row: Any) -> tuple[tuple[str, str], Any]:
    call = _text(row["function"]), json.dumps(tuple(row["arguments"]))
    return call, _refusal(row["error"]) if "error" in row else row["answer"]


def _exchange(row: Any) -> tuple[tuple[int, bytes], bytes | Refusal]:
    question = int(row["protocol"]), same_question(_bytes(row["request"]))
    return question, _refusal(row["error"]) if "error" in row else _bytes(row["reply"])


def _parse_question(row: Any) -> tuple[tuple[str, bytes], bytes | Refusal]:
    question = _text(row["interface"]), _bytes(row["request"])
    return question, _refusal(row["error"]) if "error" in row else _bytes(row["reply"])


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(_text(text), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
