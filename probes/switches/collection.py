"""Which outputs a folder, a tar or a file holds, of which switches; each is recognized by its content.

A folder is a switch with its saved outputs; a folder of folders, a fleet of them. Several configurations in one folder
are a switch each. Normalized lines name their switches themselves.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from probes.switches import normalized, nvue, sonic_config, sonic_tables
from probes.switches.facts import SwitchFacts, load_json
from probes.switches.text_tables import find_tables
from probes.text import ESCAPES, decode_saved

FILE_BYTES, MOST_FILES, DEEPEST = 64 << 20, 100_000, 4
_GENERIC = frozenset(("sonic", "localhost", "cumulus", "switch", "leaf", "spine"))
_PROMPT = re.compile(r"^\s{0,8}[\w.-]{1,64}@([\w.-]{1,64}):[^\n$#]{0,200}[$#] ?", re.MULTILINE)
_MOMENT = re.compile(
    r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-][0-9:]{4,6})"
)
_ERROR = re.compile(
    r"command not found|No such command|Invalid input|Usage: |Permission denied|Traceback \(most recent call last\)|"
    r"^\s*(?:Error|ERROR|%)\b[^\n]|Could not connect|Connection refused|404 Not Found|not found$|"
    r"Root privileges are required|is not recognized",
    re.MULTILINE,
)
_PROFILES = re.compile(r"^(?:Profile|Pool): ", re.MULTILINE)


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


class _GivenFile(NamedTuple):
    folder: str
    name: str
    read: Callable[[], bytes]

    @property
    def path(self) -> str:
        return os.path.join(self.folder, self.name) if self.folder else self.name


class UnreadableCollection(ValueError):
    """Nothing can be read from a path; the message says why."""


def read_collection(paths: Sequence[str]) -> Collection:
    """All switches of the paths. Raises UnreadableCollection for a path that is not there."""
    reader = _CollectionReader()
    for path in paths:
        folders: defaultdict[str, list[_GivenFile]] = defaultdict(list)
        for file in _list_files(path):
            folders[file.folder].append(file)
        for folder, files in folders.items():
            reader.read_folder(folder, files)
    reader.drop_doubles()
    return Collection(reader.switches, reader.files, reader.problems)


def _list_files(path: str) -> Iterator[_GivenFile]:
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
                    yield _GivenFile(folder, name, _opener(os.path.join(folder, name)))
            return
        with open(path, "rb") as file:
            start = file.read(4)
        if start and tarfile.is_tarfile(path):
            yield from _list_members(path)
            return
    except (OSError, tarfile.TarError, EOFError) as error:
        raise UnreadableCollection(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    yield _GivenFile("", path, _opener(path))


def _opener(path: str) -> Callable[[], bytes]:
    def read() -> bytes:
        if not os.path.isfile(path):
            raise OSError("not a regular file")
        with open(path, "rb") as file:
            return file.read(FILE_BYTES + 1)

    return read


def _list_members(path: str) -> Iterator[_GivenFile]:
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
            yield _GivenFile(folder or os.path.basename(path), name, partial(bytes, content))


class _CollectionReader:
    def __init__(self) -> None:
        self.switches: dict[str, SwitchFacts] = {}
        self.files: list[OutputFile] = []
        self.problems: list[str] = []
        self.made: defaultdict[str, list[str]] = defaultdict(list)  # name -> where it was made
        self.normalized: dict[str, SwitchFacts] = {}

    def read_folder(self, folder: str, files: list[_GivenFile]) -> None:
        """The outputs of one switch, or of several that have a configuration each."""
        outputs = [output for file in files if (output := self._look_at(file)) is not None]
        configurations = [output for output in outputs if output.host is not None or output.is_configuration]
        distinct = {output.host or output.file.name for output in configurations}
        if not folder:
            for output in outputs:
                self._make_switch(output.host, _stem(output.file.name), [output], output.file.path)
        elif len(distinct) > 1 and len(configurations) > 1:
            by_host: defaultdict[str, list[_SavedOutput]] = defaultdict(list)
            for output in configurations:
                by_host[output.host or _stem(output.file.name)].append(output)
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

    def _make_switch(self, host: str | None, fallback: str, outputs: list[_SavedOutput], place: str) -> None:
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

    def _look_at(self, file: _GivenFile) -> _SavedOutput | None:
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
        output = _recognize(file, text)
        if isinstance(output, str):
            self._refuse(file, output)
            return None
        return output

    def _refuse(self, file: _GivenFile, reason: str) -> None:
        self.files.append(OutputFile(file.path, None, None, reason))
        self.problems.append(f"{file.path}: {reason}")


class _SavedOutput(NamedTuple):
    """A recognized file. `read`: adds it to a switch; the output that it is, and what of it was not read."""

    file: _GivenFile
    read: Callable[[SwitchFacts], tuple[str, list[str]]]
    host: str | None = None
    is_configuration: bool = False


def _recognize(file: _GivenFile, text: str) -> _SavedOutput | str:
    """The output in a text, or why it is none that is read."""
    hosts = set(_PROMPT.findall(text)) if "@" in text else set()
    if len(hosts) > 1:
        return f"has prompts of {len(hosts)} hosts: save the outputs of each switch in a folder of its own"
    host = hosts.pop() if hosts else None
    body = _PROMPT.sub("", text) if hosts else text
    start = re.match(r"\s*(?:[a-z][^\n{\[]{0,200}\n\s*)?(?=[{\[]\s*[\"{\[\]}])", body)
    if start:
        try:
            return _recognize_json(file, load_json(body[start.end() :]), host)
        except RecursionError:
            return "is nested too deeply"
        except ValueError as error:
            where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "a number"
            return f"is no valid JSON at {where}: cut or changed; save it again"
    if _MOMENT.fullmatch(text.strip()):
        return _SavedOutput(file, lambda switch: (_set_moment(switch, text.strip()), []), host)
    tables = [(table, sonic_tables.find_kind(table)) for table in find_tables(text)]
    known = [(table, kind) for table, kind in tables if kind is not None]
    if known:
        return _SavedOutput(file, lambda switch: _read_tables(switch, known), host)
    if len(text) < 4096 and _ERROR.search(text):
        first = next(line.strip() for line in text.split("\n") if line.strip())
        return f"is an error text, not an output: {first[:80]}"
    if _PROFILES.search(text):
        return "lists profiles or pools without their ports: config_db.json has both"
    return "is not an output that is read here; `fabricscope fleet lossless --recipe NOS` lists those that are"


def _recognize_json(file: _GivenFile, data: Any, host: str | None) -> _SavedOutput | str:
    if sonic_config.is_configuration(data):
        own = sonic_config.host_name(data)
        return _SavedOutput(file, lambda switch: _read_sonic(switch, data), own or host, True)
    if sonic_tables.is_queue_counters(data):
        return _SavedOutput(file, lambda switch: (sonic_tables.read_queue_counters(data, switch), []), host)
    if sonic_tables.is_group_table(data):
        return "has watermarks of shared buffers, which no rule checks"
    root = nvue.find_root(data)
    if root is not None:
        return _SavedOutput(file, lambda switch: _read_nvue(switch, root), nvue.host_name(root) or host, True)
    if nvue.is_interfaces(data):
        return _SavedOutput(file, lambda switch: (_read_nvue_interfaces(switch, data), []), host)
    port = nvue.counters_port(file.name)
    if port is not None and nvue.is_counters(data):
        return _SavedOutput(file, lambda switch: (_read_nvue_counters(switch, data, port), []), host)
    if port is not None and nvue.is_watchdog(data):
        return _SavedOutput(file, lambda switch: (_read_nvue_watchdog(switch, data, port), []), host)
    if nvue.is_counters(data):
        return "has counters of a port that is not in its name: nv_show_interface_PORT_counters_qos.json"
    if isinstance(data, dict) and any(str(key).startswith("SAI_") for key in _flatten(data)):
        return (
            "is COUNTERS_DB as gNMI gives it, which is not read: save `show queue counters -j` and `show pfc counters`"
        )
    return "is JSON of no output that is read here; `fabricscope fleet lossless --recipe NOS` lists those that are"


def _flatten(data: dict[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        yield key
        if isinstance(value, dict):
            yield from value


def _set_moment(switch: SwitchFacts, moment: str) -> str:
    switch.observed_at = moment
    return "date"


def _read_sonic(switch: SwitchFacts, data: Any) -> tuple[str, list[str]]:
    sonic_config.read_configuration(data, switch)
    switch.outputs.add("config_db.json")
    return "config_db.json", []


def _read_nvue(switch: SwitchFacts, root: Any) -> tuple[str, list[str]]:
    nvue.read_configuration(root, switch)
    switch.outputs.add("nv config show")
    return "nv config show", []


def _read_nvue_interfaces(switch: SwitchFacts, data: Any) -> str:
    nvue.read_interfaces(data, switch)
    return "nv show interface"


def _read_nvue_counters(switch: SwitchFacts, data: Any, port: str) -> str:
    nvue.read_counters(data, switch.port(port))
    switch.nos, switch.cli = "cumulus", nvue.CLI
    switch.outputs.add("nv show interface counters qos")
    return "nv show interface counters qos"


def _read_nvue_watchdog(switch: SwitchFacts, data: Any, port: str) -> str:
    nvue.read_watchdog(data, switch.port(port))
    switch.outputs.add("nv show interface qos pfc-watchdog")
    return "nv show interface qos pfc-watchdog"


def _read_tables(switch: SwitchFacts, known: Sequence[tuple[Any, sonic_tables.TableKind]]) -> tuple[str, list[str]]:
    problems = []
    for table, kind in known:
        others = sonic_tables.read_table(kind, table, switch)
        if table.unread or others:
            problems.append(f"{table.unread + others} rows of `{kind.command}` are not of its form, and are left out")
        if table.cut:
            problems.append(f"`{kind.command}` ends within a row: cut; that row is left out")
    return ", ".join(dict.fromkeys(kind.command for _, kind in known)), problems


def _stem(path: str) -> str:
    return os.path.basename(path).partition(".")[0]
