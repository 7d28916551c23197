"""Which outputs a folder, a tar or a file holds, of which switches; each is recognized by its content.

A folder is a switch with its saved outputs; a folder of folders, a fleet of them. Several configurations in one folder
are a switch each. Normalized lines name their switches themselves.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from probes.host.files import open_saved
from probes.host.interface import BadSource
from probes.named_tuple import NamedTuple
from probes.planted import PathUse, follow_links
from probes.sources.archive import BLOCK_BYTES, CONTENT_LIMIT_BYTES, DIRECTORY, FILE, is_tar, members
from probes.sources.decompress import DecompressedStream
from probes.switches import normalized
from probes.switches.facts import SwitchFacts
from probes.switches.recognizing import SavedOutput, SwitchFile, recognize
from probes.text import ESCAPES, decode_saved, lazy_pattern

FILE_BYTES, MOST_FILES, DEEPEST = CONTENT_LIMIT_BYTES, 100_000, 4
KEPT_BYTES, TOTAL_BYTES = 1 << 30, 4 << 30  # in memory, of an archive or of a folder's outputs; read in all
_BINARY = lazy_pattern(r"[\x00-\x06\x0e-\x1a\x7f]")  # of a text only a bell and a backspace
_GENERIC = frozenset(("sonic", "localhost", "cumulus", "switch", "leaf", "spine"))


class OutputFile(NamedTuple):
    """One file that was given. `read_as`: None where it was not read, and `reason` states why."""

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
    """Nothing can be read from a path; the message states why."""


def read_collection(paths: Sequence[str], dscp: int | None = None) -> Collection:
    """All switches of the paths. `dscp`: counters of its class are kept even where it has no PFC.

    Raises UnreadableCollection for a path that is not there.
    """
    reader = _CollectionReader(dscp)
    for path in paths:
        folders: defaultdict[str, list[SwitchFile]] = defaultdict(list)
        for file in _list_files(path):
            folders[file.folder].append(file)
        for folder, files in folders.items():
            reader.read_folder(folder, files)
    reader.drop_doubles()
    return Collection(reader.switches, reader.files, reader.problems)


def _list_files(path: str) -> Iterator[SwitchFile]:
    """Files of a path, sorted; what is not read has a reader that states why. Raises UnreadableCollection."""
    try:
        follow_links(path, PathUse.READ)
        status = os.stat(path)
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            yield from _list_folder(path)
            return
        if not stat.S_ISREG(mode):
            raise UnreadableCollection(f"{path}: is neither a folder nor a regular file")
        with DecompressedStream(path) as stream:
            is_archive = is_tar(stream.peek(BLOCK_BYTES))
        if is_archive:
            yield from _list_members(path, status.st_mtime)
            return
    except OSError as error:
        raise UnreadableCollection(f"{path}: {error.strerror or error}") from error
    except BadSource as error:
        raise UnreadableCollection(str(error)) from error
    yield SwitchFile("", path, partial(_read_file, path, True), status.st_mtime)


def _list_folder(path: str) -> Iterator[SwitchFile]:
    """Links are not followed: one leads to what only this user may read, or around in a circle."""
    count = 0
    unread: list[OSError] = []
    for folder, names, files in os.walk(path, onerror=unread.append):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in names:
            if os.path.islink(os.path.join(folder, name)):
                yield SwitchFile(folder, name, partial(_refuse_read, "is a symbolic link, which is not read"))
        if names and folder.removeprefix(path).count(os.sep) >= DEEPEST:
            yield SwitchFile("", folder, partial(_refuse_read, f"folders below it are not read: {DEEPEST} levels are"))
            names.clear()
        for name in sorted(files):
            if name.startswith("."):
                continue
            count += 1
            if count > MOST_FILES:
                continue
            file = os.path.join(folder, name)
            yield SwitchFile(folder, name, partial(_read_file, file), _read_mtime(file))
    if count > MOST_FILES:
        yield SwitchFile("", path, partial(_refuse_read, f"{count:,} files, of which {MOST_FILES:,} are read"))
    for error in unread:
        yield SwitchFile("", str(error.filename), partial(_refuse_read, error.strerror or str(error)))


def _read_mtime(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _refuse_read(reason: str) -> bytes:
    raise OSError(reason)


def _read_file(path: str, follow: bool = False) -> bytes:
    """A regular file. Raises OSError, also for one that is too large: nothing of it is read."""
    with open_saved(path, follow) as file:
        before = os.fstat(file.fileno())
        if before.st_size < FILE_BYTES and len(content := file.read(FILE_BYTES)) < FILE_BYTES:
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise OSError("changed while it was read")
            return content
    raise OSError(f"{FILE_BYTES >> 20} MiB or more")


def _list_members(path: str, saved_at: float) -> Iterator[SwitchFile]:
    """Files of a tar; each is read as it comes, for a packed one cannot be read at a place. Raises BadSource."""
    size = count = 0
    with DecompressedStream(path) as stream:
        for member in members(stream):
            folder, name = os.path.split(member.name)
            if member.kind == DIRECTORY or name.startswith("."):
                continue
            count, size = count + 1, size + len(member.content)
            if count > MOST_FILES or size > KEPT_BYTES:
                bound = f"{MOST_FILES:,} files" if count > MOST_FILES else f"{KEPT_BYTES >> 20} MiB"
                raise stream.bad(f"holds more than {bound}: unpack it into a folder")
            read = partial(bytes, member.content)
            if member.kind != FILE:
                read = partial(_refuse_read, f"is a {member.kind}, which is not read")
            yield SwitchFile(folder or os.path.basename(path), name, read, saved_at)


class _CollectionReader:
    def __init__(self, dscp: int | None) -> None:
        self.dscp = dscp
        self.switches: dict[str, SwitchFacts] = {}
        self.files: list[OutputFile] = []
        self.problems: list[str] = []
        self.made: defaultdict[str, list[str]] = defaultdict(list)  # name -> where it was made
        self.normalized: dict[str, SwitchFacts] = {}
        self.saved_at: dict[str, float] = {}  # of files of normalized lines
        self.room = normalized.Room()
        self.read_bytes = 0

    def read_folder(self, folder: str, files: list[SwitchFile]) -> None:
        """The outputs of one switch, or of several that have a configuration each."""
        outputs = list(self._list_outputs(files))
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

    def _list_outputs(self, files: list[SwitchFile]) -> Iterator[SavedOutput]:
        """Those that there is room for: their texts are in memory together."""
        kept_bytes = 0
        for file in files:
            if kept_bytes > KEPT_BYTES:
                self._refuse(file, f"the files before it in its folder have more than {KEPT_BYTES >> 20} MiB")
                continue
            before = self.read_bytes
            output = self._look_at(file)
            if output is not None:
                kept_bytes += self.read_bytes - before
                yield output

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
                switch.drop_other_classes(self.dscp)
                switch.saved_at = max(
                    (self.saved_at[path] for path in switch.sources if path in self.saved_at), default=0.0
                )
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
            switch.saved_at = max(switch.saved_at, output.file.saved_at)
            self.files.append(OutputFile(label, switch.name, read_as))
            self.problems += [f"{label}: {line}" for line in trouble]
        switch.drop_other_classes(self.dscp)
        self.room.ports -= len(switch.ports)
        if switch.sources:
            self.made[switch.name].append(place)
            self.switches[switch.name] = switch

    def _look_at(self, file: SwitchFile) -> SavedOutput | None:
        """What a file holds; None where it is read already or refused."""
        if self.read_bytes > TOTAL_BYTES or self.room.is_used_up():
            in_bytes = f"more than {TOTAL_BYTES >> 30} GiB with the files before it"
            self._refuse(file, self.room.reason if self.room.is_used_up() else in_bytes)
            return None
        try:
            content = file.read()
        except OSError as error:
            self._refuse(file, error.strerror or str(error))
            return None
        self.read_bytes += len(content)
        if len(content) >= FILE_BYTES:  # of an archive
            self._refuse(file, f"{FILE_BYTES >> 20} MiB or more")
            return None
        text = decode_saved(content)
        if "\x1b" in text:
            text = ESCAPES.sub("", text)
        text = text.replace("\r\n", "\n")
        if not text.strip():
            self._refuse(file, "empty")
            return None
        if _BINARY.search(text[:4096]):
            self._refuse(file, "is not text")
            return None
        if normalized.looks_normalized(text):
            problems = normalized.read_lines(text, file.path, self.normalized, self.room)
            self.files.append(OutputFile(file.path, None, "normalized lines"))
            self.saved_at[file.path] = file.saved_at
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
