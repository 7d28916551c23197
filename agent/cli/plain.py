"""Command lines that need no parser: those by which nodes are scanned again and again, by which what people paste is
read, and questions of the fleet.

What is read here is read as typer reads it (a test compares both). Anything else, and whatever may be an error, is
left to typer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

ScanFormat = Literal["text", "json", "ndjson", "html"]
ExportFormat = Literal[
    "ansible",
    "html",
    "junit",
    "nccl-topo",
    "netbox",
    "nfd",
    "prometheus",
    "slurm",
    "svg",
]
FailOn = Literal["warning", "error", "critical"]
JobFormat = Literal["text", "json", "html"]
CheckAs = Literal["nagios", "npd", "slurm-prolog"]
AnswerFormat = Literal["text", "json", "csv"]
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)  # each a module of agent/outputs/export

TEXT, TEXTS, SWITCH, SECONDS = "text", "texts", "switch", "seconds"  # texts: of an option that may be repeated
Kind = str | tuple[str, ...]  # one of these, or the choices
_UNSET: Mapping[Kind, Any] = {SWITCH: False, TEXTS: ()}
Options = Mapping[str, tuple[str, Kind]]  # by flag: the parameter of the command, and what it takes
COMPLETION = "_FABRICSCOPE_COMPLETE"  # typer completes where it is set

_EVIDENCE: Options = {
    "--source": ("source", TEXT),
    "--root": ("root", TEXT),
    "--report": ("report", TEXT),
    "--only": ("only", TEXT),
    "--skip": ("skip", TEXT),
    "--timeout": ("timeout", SECONDS),
    "--state-dir": ("state_dir", TEXT),
    "--accept-inventory": ("accept_inventory", SWITCH),
    "--interval": ("interval", SECONDS),
    "--config": ("config", TEXT),
    "--profile": ("profile", TEXT),
    "--quiet": ("quiet", SWITCH),
    "-q": ("quiet", SWITCH),
}
_OUTPUT: Options = {"--output": ("output", TEXT), "-o": ("output", TEXT)}
_QUESTION: Options = {
    **_OUTPUT,
    "--dataset": ("dataset", TEXT),
    "--engine": ("engine", TEXT),
    "--where": ("where", TEXTS),
    "--format": ("form", get_args(AnswerFormat)),
    "--no-color": ("no_color", SWITCH),
}
COMMANDS: Mapping[str, Options] = {
    "scan": {
        **_EVIDENCE,
        **_OUTPUT,
        "--format": ("form", get_args(ScanFormat)),
        "--capture": ("capture", TEXT),
        "--redact": ("redact", SWITCH),
        "--no-color": ("no_color", SWITCH),
        "--brief": ("brief", SWITCH),
        "--topology": ("topology", SWITCH),
        "--verbose": ("verbose", SWITCH),
        "-v": ("verbose", SWITCH),
    },
    "check": {
        **_EVIDENCE,
        "--fail-on": ("fail_on", get_args(FailOn)),
        "--fail-on-unknown": ("fail_on_unknown", SWITCH),
        "--max-age": ("max_age", SECONDS),
        "--as": ("as_", get_args(CheckAs)),
    },
    "export": {**_EVIDENCE, **_OUTPUT},
    "job": {
        **_OUTPUT,
        "--report": ("report", TEXTS),
        "--source": ("source", TEXT),
        "--dataset": ("dataset", TEXT),
        "--at": ("at", TEXT),
        "--profile": ("profile", TEXT),
        "--format": ("form", get_args(JobFormat)),
        "--timeout": ("timeout", SECONDS),
        "--no-color": ("no_color", SWITCH),
        "--quiet": ("quiet", SWITCH),
        "-q": ("quiet", SWITCH),
    },
    "fleet summary": {**_QUESTION, "--stale-after": ("stale_after", TEXT)},
    "fleet findings": {**_QUESTION, "--silences": ("silences", TEXT)},
    "fleet outliers": _QUESTION,
    "fleet duplicates": _QUESTION,
}

_SCAN: Mapping[str, Any] = {"profile": "auto"}
DEFAULTS: Mapping[str, Mapping[str, Any]] = {  # of each command, where they are no empty ones
    "scan": _SCAN,
    "check": {**_SCAN, "as_": "nagios"},
    "export": _SCAN,
    "fleet summary": {"stale_after": "24h"},
    "fleet outliers": {"majority": 0.8, "fewest": 5},
}
ENVIRONMENT: Mapping[str, str] = {  # of options of `fleet` that are not given
    "dataset": "FABRICSCOPE_DATASET",
    "engine": "FABRICSCOPE_ENGINE",
    "silences": "FABRICSCOPE_SILENCES",
}


def parse_plain(arguments: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """The command, and a value for each of its parameters; None: typer has to read the line.

    >>> parse_plain(["check", "--as=npd", "--timeout", "5"])[1]["as_"]
    'npd'
    >>> parse_plain(["scan", "--formt", "json"]), parse_plain(["scan", "--timeout", "-1"]), parse_plain(["scan", "-h"])
    (None, None, None)
    """
    command, *rest = arguments or ("",)
    if command == "fleet" and rest:
        command = f"fleet {rest.pop(0)}"
    options = COMMANDS.get(command)
    if options is None or COMPLETION in os.environ:
        return None
    given: dict[str, Any] = {}
    if command == "export":
        if not rest or rest[0] not in EXPORT_FORMATS:
            return None
        given["form"] = rest.pop(0)
    rest.reverse()
    paths: list[str] = []
    while rest:
        word = rest.pop()
        if _is_path(word):
            paths.append(word)
            continue
        flag, equals, text = word.partition("=")
        parameter, kind = options.get(flag, ("", ""))
        is_again = parameter in given and kind != TEXTS
        if not parameter or is_again or (equals and (kind == SWITCH or not flag.startswith("--"))):
            return None
        if kind == SWITCH:
            given[parameter] = True
            continue
        value = _read_value(kind, text if equals else rest.pop() if rest else "")
        if value is None:
            return None
        given[parameter] = (*given.get(parameter, ()), value) if kind == TEXTS else value
    by_place = _read_paths(command, paths)
    if by_place is None:
        return None
    unset = {parameter: _UNSET.get(kind) for parameter, kind in options.values()}
    if command.startswith("fleet "):
        for parameter in unset.keys() & ENVIRONMENT.keys():
            set_to = os.environ.get(ENVIRONMENT[parameter])
            if set_to and not _is_path(set_to):
                return None
            unset[parameter] = set_to or None
    return command, {**unset, **DEFAULTS.get(command, {}), **by_place, **given}


def _read_paths(command: str, paths: Sequence[str]) -> dict[str, Any] | None:
    """What the words by their place are for; None where there are too few or too many."""
    if command == "job":
        return {"paths": tuple(paths)} if paths else None
    if command in ("scan", "fleet findings") and len(paths) < 2:
        return {"path" if command == "scan" else "name": paths[0] if paths else None}
    return None if paths else {}


def _is_path(word: str) -> bool:
    """Whether it is an argument by its place: a path, or - for stdin."""
    return word == "-" or (word.strip() != "" and not word.startswith("-"))


def _read_value(kind: Kind, text: str) -> str | float | None:
    """What is certainly a value of this kind; whole seconds only."""
    if not _is_path(text):
        return None
    if kind == SECONDS:
        return float(text) if text.isascii() and text.isdecimal() and len(text) < 9 and int(text) else None
    return text if kind in (TEXT, TEXTS) or text in kind else None
