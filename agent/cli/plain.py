"""Command lines that need no parser: those by which nodes are scanned again and again.

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
CheckAs = Literal["nagios", "npd", "slurm-prolog"]
EXPORT_FORMATS: tuple[str, ...] = get_args(ExportFormat)  # each a module of agent/outputs/export

TEXT, SWITCH, SECONDS = "text", "switch", "seconds"
Kind = str | tuple[str, ...]  # one of these, or the choices
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
}

DEFAULTS: Mapping[str, Any] = {"profile": "auto", "as_": "nagios"}


def parse_plain(arguments: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """The command, and a value for each of its parameters; None: typer has to read the line.

    >>> parse_plain(["check", "--as=npd", "--timeout", "5"])[1]["as_"]
    'npd'
    >>> parse_plain(["scan", "--formt", "json"]), parse_plain(["scan", "--timeout", "-1"]), parse_plain(["scan", "-h"])
    (None, None, None)
    """
    command, *rest = arguments or ("",)
    options = COMMANDS.get(command)
    if options is None or COMPLETION in os.environ:
        return None
    given: dict[str, Any] = {}
    if command == "export":
        if not rest or rest[0] not in EXPORT_FORMATS:
            return None
        given["form"] = rest.pop(0)
    rest.reverse()
    while rest:
        flag, equals, text = rest.pop().partition("=")
        parameter, kind = options.get(flag, ("", ""))
        if not parameter or parameter in given or (equals and (kind == SWITCH or not flag.startswith("--"))):
            return None
        if kind == SWITCH:
            given[parameter] = True
            continue
        value = _read_value(kind, text if equals else rest.pop() if rest else "")
        if value is None:
            return None
        given[parameter] = value
    unset = {parameter: False if kind == SWITCH else None for parameter, kind in options.values()}
    if command == "scan":
        unset["path"] = None  # an argument: read by typer
    return command, {**unset, **{name: value for name, value in DEFAULTS.items() if name in unset}, **given}


def _read_value(kind: Kind, text: str) -> str | float | None:
    """What is certainly a value of this kind; whole seconds only."""
    if not text or text.startswith("-"):
        return None
    if kind == SECONDS:
        return float(text) if text.isascii() and text.isdecimal() and len(text) < 9 and int(text) else None
    return text if kind == TEXT or text in kind else None
