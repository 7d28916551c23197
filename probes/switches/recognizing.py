"""Which output of a switch a text is, by its content, and the reader of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from probes.named_tuple import NamedTuple
from probes.switches import nvue, sonic_config, sonic_tables
from probes.switches.facts import SwitchFacts, load_json
from probes.switches.text_tables import find_tables
from probes.text import lazy_pattern

_PROMPT = lazy_pattern(r"^\s{0,8}[\w.-]{1,64}@([\w.-]{1,64}):[^\n$#]{0,200}[$#] ?", re.MULTILINE)
_MOMENT = lazy_pattern(
    r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-][0-9:]{4,6})"
)
_ERROR = lazy_pattern(
    r"command not found|No such command|Invalid input|Usage: |Permission denied|Traceback \(most recent call last\)|"
    r"^\s*(?:Error|ERROR|%)\b[^\n]|Could not connect|Connection refused|404 Not Found|not found$|"
    r"Root privileges are required|is not recognized",
    re.MULTILINE,
)
_PROFILES = lazy_pattern(r"^(?:Profile|Pool): ", re.MULTILINE)


class SwitchFile(NamedTuple):
    """A file of a folder or a tar."""

    folder: str
    name: str
    read: Callable[[], bytes]
    saved_at: float = 0.0  # seconds since 1970; 0: not known

    @property
    def path(self) -> str:
        """As it is named to the user."""
        return os.path.join(self.folder, self.name) if self.folder else self.name

    @property
    def stem(self) -> str:
        """Its name without folder and suffix."""
        return os.path.basename(self.name).partition(".")[0]


class SavedOutput(NamedTuple):
    """A recognized file. `read`: adds it to a switch; the output that it is, and what of it was not read."""

    file: SwitchFile
    read: Callable[[SwitchFacts], tuple[str, list[str]]]
    host: str | None = None
    is_configuration: bool = False


def recognize(file: SwitchFile, text: str) -> SavedOutput | str:
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
        return SavedOutput(file, lambda switch: (_set_moment(switch, text.strip()), []), host)
    tables = [(table, sonic_tables.find_kind(table)) for table in find_tables(text)]
    known = [(table, kind) for table, kind in tables if kind is not None]
    if known:
        return SavedOutput(file, lambda switch: _read_tables(switch, known), host)
    if len(text) < 4096 and _ERROR.search(text):
        first = next(line.strip() for line in text.split("\n") if line.strip())
        return f"is an error text, not an output: {first[:80]}"
    if _PROFILES.search(text):
        return "lists profiles or pools without their ports: config_db.json has both"
    return "is not an output that is read here; `fabricscope fleet lossless --recipe NOS` lists those that are"


def _recognize_json(file: SwitchFile, data: Any, host: str | None) -> SavedOutput | str:
    if sonic_config.is_configuration(data):
        own = sonic_config.host_name(data)
        return _save_output(
            file, "config_db.json", lambda switch: sonic_config.read_configuration(data, switch), own or host, True
        )
    if sonic_tables.is_queue_counters(data):
        return SavedOutput(file, lambda switch: (sonic_tables.read_queue_counters(data, switch), []), host)
    if sonic_tables.is_group_table(data):
        return "has watermarks of shared buffers, which no rule checks"
    root = nvue.find_root(data)
    if root is not None:
        own = nvue.host_name(root)
        return _save_output(
            file, "nv config show", lambda switch: nvue.read_configuration(root, switch), own or host, True
        )
    if nvue.is_interfaces(data):
        return _save_output(file, "nv show interface", lambda switch: nvue.read_interfaces(data, switch), host)
    port = nvue.counters_port(file.name)
    if port is not None and nvue.is_counters(data):
        command = "nv show interface counters qos"
        return _save_output(file, command, lambda switch: nvue.read_counters(data, switch, port), host)
    if port is not None and nvue.is_watchdog(data):
        command = "nv show interface qos pfc-watchdog"
        return _save_output(file, command, lambda switch: nvue.read_watchdog(data, switch.port(port)), host)
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


def _save_output(
    file: SwitchFile,
    command: str,
    read: Callable[[SwitchFacts], None],
    host: str | None,
    is_configuration: bool = False,
) -> SavedOutput:
    """An output that is one document."""

    def add(switch: SwitchFacts) -> tuple[str, list[str]]:
        read(switch)
        switch.outputs.add(command)
        return command, []

    return SavedOutput(file, add, host, is_configuration)


def _read_tables(switch: SwitchFacts, known: Sequence[tuple[Any, sonic_tables.TableKind]]) -> tuple[str, list[str]]:
    problems = []
    for table, kind in known:
        others = sonic_tables.read_table(kind, table, switch)
        if table.unread or others:
            problems.append(f"{table.unread + others} rows of `{kind.command}` are not of its form, and are left out")
        if table.cut:
            problems.append(f"`{kind.command}` ends within a row: cut; that row is left out")
    return ", ".join(dict.fromkeys(kind.command for _, kind in known)), problems
