"""Which outputs a folder, a tar or a file holds, of which switches; each is recognized by its content.

A folder is a switch with its saved outputs; a folder of folders, a fleet of them. Several configurations in one folder
are a switch each. Normalized lines name their switches themselves.
"""

from __future__ import annotations

import os
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from probes.switches import normalized
from probes.switches.facts import SwitchFacts
from probes.switches.recognizing import SavedOutput, SwitchFile, recognize
from probes.text import ESCAPES, decode_saved

FILE_BYTES, MOST_FILES, DEEPEST = 64 << 20, 100_000, 4
_GENERIC = frozenset(("sonic", "localhost", "cumulus", "switch", "leaf", "spine"))


class OutputFile(NamedTuple):
    """One file that was given. `read_as`: None where it was not read, and `reason` says why."""

    name: str
    switch: str | None
    read_as: str | None
    reason: str | None = None


class Collection(NamedTuple):
    """All that was read. `problems`: one line each, of what was read in part or not at all."""

    switches: dict[str, SwitchFacts]
    files: list[OutputFile]
    problems: list[str]


class UnreadableCollection(ValueError):
    """Nothing can be read from a path; the message says why."""


def read_collection(paths: Sequence[str]) -> Collection:
    """All switches of the paths. Raises UnreadableCollection for a path that is not there."""
    reader = _CollectionReader()
    for path in paths:
        folders: defaultdict[str, list[SwitchFile]] = defaultdict(list)
        for file in _list_files(path):
            folders[file.folder].append(file)
        for folder, files in folders.items():
            reader.read_folder(folder, files)
    reader.drop_doubles()
    return Collection(reader.switches, reader.files, reader.problems)


def _list_files(path: str) -> Iterator[SwitchFile]:
    """Files of a path, sorted. Raises UnreadableCollection."""
    count = 0
    try:
        if os.path.isdir(path):
            for folder, names, files in os.walk(path):
                names[:] = sorted(name for name in names if not name.startswith("."))
                if os.path.relpath(folder, path).count(os.sep) >= DEEPEST:
                    names.clear()
                for name in sorted(files):
                    count += 1
                    if name.startswith(".") or count > MOST_FILES:
                        continue
                    yield SwitchFile(folder, name, _opener(os.path.join(folder, name)))
            return
        with open(path, "rb") as file:
            start = file.read(4)
        if start and tarfile.is_tarfile(path):
            yield from _list_members(path)
            return
    except (OSError, tarfile.TarError, EOFError) as error:
        raise UnreadableCollection(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    yield SwitchFile("", path, _opener(path))


def _opener(path: str) -> Callable[[], bytes]:
    def read() -> bytes:
        if not os.path.isfile(path):
            raise OSError("not a regular file")
        with open(path, "rb") as file:
            return file.read(FILE_BYTES + 1)

    return read


def _list_members(path: str) -> Iterator[SwitchFile]:
    """Files of a tar; each is read as it comes, for a packed one cannot be read at a place."""
    total = 0
    with tarfile.open(path) as tar:
        for count, member in enumerate(tar):
            if not member.isfile() or count > MOST_FILES or total > 16 * FILE_BYTES:
                continue
            stream = tar.extractfile(member)
            content = stream.read(FILE_BYTES + 1) if stream else b""
            total += len(content)
            folder, name = os.path.split(member.name)
            yield SwitchFile(folder or os.path.basename(path), name, partial(bytes, content))


class _CollectionReader:
    def __init__(self) -> None:
        self.switches: dict[str, SwitchFacts] = {}
        self.files: list[OutputFile] = []
        self.problems: list[str] = []
        self.made: defaultdict[str, list[str]] = defaultdict(list)  # name -> where it was made
        self.normalized: dict[str, SwitchFacts] = {}

    def read_folder(self, folder: str, files: list[SwitchFile]) -> None:
        """The outputs of one switch, or of several that have a configuration each."""
        outputs = [output for file in files if (output := self._look_at(file)) is not None]
        configurations = [output for output in outputs if output.host is not None or output.is_configuration]
        distinct = {output.host or output.file.name for output in configurations}
        if not folder:
            for output in outputs:
                self._make_switch(output.host, output.file.stem, [output], output.file.path)
        elif len(distinct) > 1 and len(configurations) > 1:
            by_host: defaultdict[str, list[SavedOutput]] = defaultdict(list)
            for output in configurations:
                by_host[output.host or output.file.stem].append(output)
            for name, these in by_host.items():
                self._make_switch(name, name, these, f"{folder}, {these[0].file.name}")
            for output in outputs:
                if output not in configurations:
                    self._refuse(
                        output.file, f"{folder} has outputs of {len(distinct)} switches: which is its is unknown"
                    )
        elif outputs:
            host = next((output.host for output in configurations if output.host), None)
            self._make_switch(host, os.path.basename(folder), outputs, folder)

    def drop_doubles(self) -> None:
        """Leave out names that several folders have; add normalized rows of switches that have none."""
        for name, places in self.made.items():
            if len(places) > 1:
                self.switches.pop(name, None)
                self.problems.append(
                    f"{name}: {len(places)} switches have this name, none of them is read: {', '.join(places[:4])}"
                )
        for name, switch in self.normalized.items():
            if name in self.made:
                self.problems.append(f"{name}: normalized rows are left out, its own outputs are there")
            else:
                switch.drop_other_classes()
                self.switches[name] = switch

    def _make_switch(self, host: str | None, fallback: str, outputs: list[SavedOutput], place: str) -> None:
        name = host if host and host.lower() not in _GENERIC else fallback
        switch = SwitchFacts(" ".join(name.split())[:100] or "switch")
        for output in outputs:
            label = output.file.path
            try:
                read_as, trouble = output.read(switch)
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                self._refuse(output.file, f"is not of the form that is known: {type(error).__name__}")
                continue
            switch.sources.append(label)
            self.files.append(OutputFile(label, switch.name, read_as))
            self.problems += [f"{label}: {line}" for line in trouble]
        switch.drop_other_classes()
        if switch.sources:
            self.made[switch.name].append(place)
            self.switches[switch.name] = switch

    def _look_at(self, file: SwitchFile) -> SavedOutput | None:
        """What a file holds; None where it is read already or refused."""
        try:
            content = file.read()
        except (OSError, tarfile.TarError, EOFError) as error:
            self._refuse(file, str(getattr(error, "strerror", None) or error))
            return None
        if len(content) > FILE_BYTES:
            self._refuse(file, f"larger than {FILE_BYTES >> 20} MiB")
            return None
        text = decode_saved(content)
        if "\x1b" in text:
            text = ESCAPES.sub("", text)
        text = text.replace("\r\n", "\n")
        if not text.strip():
            self._refuse(file, "empty")
            return None
        if "\0" in text[:4096]:
            self._refuse(file, "is not text")
            return None
        if normalized.looks_normalized(text):
            problems = normalized.read_lines(text, file.path, self.normalized)
            self.files.append(OutputFile(file.path, None, "normalized lines"))
            self.problems += problems[:20]
            if len(problems) > 20:
                self.problems.append(f"{file.path}: {len(problems) - 20} more lines are not read")
            return None
        output = recognize(file, text)
        if isinstance(output, str):
            self._refuse(file, output)
            return None
        return output

    def _refuse(self, file: SwitchFile, reason: str) -> None:
        self.files.append(OutputFile(file.path, None, None, reason))
        self.problems.append(f"{file.path}: {reason}")
