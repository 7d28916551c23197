"""A sosreport: the files that sos copied, and the outputs under sos_commands/ with how each command ended.

sos 4 writes sos_reports/manifest.json: which command line is in which file, and its exit status. Before that only
file names show (the command line with odd characters as "_", cut at the longest file name, ".1" behind a repeated
one), and the log shows what timed out. An output over sos's size limit keeps its last part only, in sos_strings/.
Layout: sos/report/plugins/__init__.py of sosreport/sos, as its versions 4.0 to 4.10 write it.
"""

from __future__ import annotations

import re
from typing import Any

from probes.host.commands import KERNEL_LOG, KERNEL_LOG_EARLIER, KERNEL_LOG_SAVED, KNOWN, SOS_FOLDER
from probes.host.files import Files, is_file
from probes.host.interface import OUTPUT_LIMIT_BYTES, Completed, Failed, ReadError, TimedOut
from probes.kernel.log_files import is_log_file
from probes.named_tuple import NamedTuple
from probes.services.sentences import LOG_FILES, UNITS
from probes.sources.dump import SavedOutputs
from probes.sources.output_names import saved_name
from probes.sources.tree import BundleHost, parse_date_output
from probes.text import lazy_pattern

MANIFEST = "/sos_reports/manifest.json"
LOG = "/sos_logs/sos.log"
DATES = ("/sos_commands/date/date_--utc", "/sos_commands/date/date", "/date")
MANIFEST_LIMIT_BYTES = 4 << 20  # one line per command and a file; parsed, a hostile one takes thirty times as much
NAMES_LIMIT = 5000
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
TIMED_OUT, NOT_RUNNABLE, NOT_FOUND = 124, 126, 127  # exit statuses as sos notes them

_OURS = lazy_pattern(rf"(?:{'|'.join(sorted({argv[0] for argv in KNOWN}))})(?:[_.].*)?", re.DOTALL)
# sos saves many, and large ones
_JOURNALS = frozenset(saved_name(argv) for argv in KERNEL_LOG + KERNEL_LOG_SAVED + KERNEL_LOG_EARLIER)
_OUTPUT = lazy_pattern(r"(?:\./)?(?:[^/]+/)?sos_(?:commands|strings)/(?:[^/]+/)*([^/]*)")
_LOGS = lazy_pattern(r"(?:\./)?(?:[^/]+/)?var/")
_READ_LOG = lazy_pattern(r"(?:\./)?(?:[^/]+/)?(var/log/[^/]+)")
_OF_SERVICE = lazy_pattern(
    rf"journalctl(?:_--no-pager)?_(?:-u|--unit)_(?:{'|'.join(unit for unit in UNITS if ' ' not in unit)})(?:\.service)?"
)
_TIMED_OUT = lazy_pattern(r"\[plugin:\w{1,40}\] command '([^'\n]{1,1000})' timed out")


def is_of_sos(name: str) -> bool:
    """Whether the member of this name shows that an archive is a sosreport."""
    return _OUTPUT.fullmatch(name) is not None


def is_read(name: str) -> bool:
    """Whether anything is ever asked of a member of a sosreport. Its logs are most of what it weighs.

    >>> folder = "sosreport-a/sos_commands"
    >>> is_read(f"{folder}/pci/lspci_-nnvv"), is_read(f"{folder}/logs/journalctl_--no-pager_--boot")
    (True, True)
    >>> is_read(f"{folder}/logs/journalctl_--no-pager_--boot_-1"), is_read("sosreport-a/var/log/messages")
    (True, True)
    """
    output = _OUTPUT.fullmatch(name)
    if output:
        return _is_ours(output[1]) or output[1].startswith("date")
    return not _LOGS.match(name) or is_read_log(name)


def is_read_log(name: str) -> bool:
    """Whether a member is a log that is read: of the kernel, or of a service.

    >>> is_read_log("sosreport-a/var/log/messages-20260115"), is_read_log("sosreport-a/var/log/secure")
    (True, False)
    """
    log = _READ_LOG.fullmatch(name)
    return log is not None and (is_log_file(f"/{log[1]}") or log[1].rpartition("/")[2] in LOG_FILES)


def shorten_log(name: str, content: bytes) -> bytes | None:
    """The lines of a log that are read; None of one that is cut at the limit. A compressed one stays as it is."""
    from probes.services.logs import shorten_mixed, shorten_own  # lazy: few archives hold a log

    if len(content) >= OUTPUT_LIMIT_BYTES:
        return None
    if content.startswith(_PACKED):
        return content
    return shorten_own(content) if name.endswith(LOG_FILES) else shorten_mixed(content)


def sos_host(path: str, files: Files) -> BundleHost:
    """The machine of a sosreport."""
    runs = _from_manifest(files)
    outputs = _SosOutputs(files, _from_names(files) | {name: run for name, run in runs.items() if run.place})
    notes = {run.tool: "sos found no such command" for run in runs.values() if not run.place}
    return BundleHost("sosreport", path, files, outputs, noun="sosreport", observed_at=_observed_at(files), notes=notes)


class _SosCommand(NamedTuple):
    """One command: where its output lies ("": nowhere), and how it ended."""

    tool: str
    place: str
    status: int = 0
    cut: bool = False


class _SosOutputs(SavedOutputs):
    def __init__(self, files: Files, runs: dict[str, _SosCommand]) -> None:
        super().__init__(files, {name: run.place for name, run in runs.items()})
        self._runs = runs

    def completed(self, argv: tuple[str, ...]) -> Completed:
        """See Host.run."""
        run = self._runs.get(self.name_of(argv) or "")
        command = " ".join(argv)
        if run is not None and run.status == TIMED_OUT:
            raise TimedOut(f"{command}: sos gave up waiting for it")
        if run is not None and run.cut:
            raise Failed(f"{command}: sos kept only the last part of its output", "EFBIG")
        done = super().completed(argv)
        return done._replace(returncode=run.status) if run is not None else done


def _from_manifest(files: Files) -> dict[str, _SosCommand]:
    """Name as sos mangles it -> the command, as the manifest has it; one that ended well before one that did not."""
    commands: dict[str, _SosCommand] = {}
    for command in _commands(_read_manifest(files)):
        line, status, place = command.get("exec"), command.get("return_code"), command.get("filepath")
        if not isinstance(line, str):
            continue
        name = saved_name(tuple(line.split()))
        run = _SosCommand(
            saved_name(tuple(line.split()[:1])),
            f"/{place.lstrip('/')}" if isinstance(place, str) and place else "",
            status if isinstance(status, int) else 0,
            bool(command.get("truncated")),
        )
        if not _is_ours(name) or (not run.place and run.status not in (NOT_RUNNABLE, NOT_FOUND)):
            continue
        if run.place and not is_file(files, run.place):
            continue
        known = commands.get(name)
        if known is None or (known.status and not run.status):
            commands[name] = run._replace(cut=run.cut or _is_cut(files, run.place))
    return commands


def _from_names(files: Files) -> dict[str, _SosCommand]:
    """The same from the file names alone."""
    slow = {saved_name(tuple(line.split())) for line in _TIMED_OUT.findall(_text(files, LOG))}
    commands: dict[str, _SosCommand] = {}
    for plugin in _list_folder(files, SOS_FOLDER):
        folder = f"{SOS_FOLDER}/{plugin}"
        for name in filter(_is_ours, _list_folder(files, folder)):
            if name not in commands and is_file(files, f"{folder}/{name}"):
                status = TIMED_OUT if name in slow else 0
                commands[name] = _SosCommand(name, f"{folder}/{name}", status, _is_cut(files, f"{folder}/{name}"))
    return commands


def _is_ours(name: str) -> bool:
    if name.startswith("journalctl"):
        return name in _JOURNALS or _OF_SERVICE.fullmatch(name) is not None
    return _OURS.fullmatch(name) is not None


def _is_cut(files: Files, place: str) -> bool:
    try:
        return "sos_strings/" in files.readlink(place)
    except ReadError:
        return False


def _read_manifest(files: Files) -> Any:
    import json  # a scan of no sosreport does not pay for it

    try:
        content = files.read(MANIFEST, MANIFEST_LIMIT_BYTES)
        return json.loads(content) if len(content) < MANIFEST_LIMIT_BYTES else None
    except (ReadError, ValueError, RecursionError):
        return None


def _commands(document: Any) -> list[dict[str, Any]]:
    """What is below components.report.plugins.*.commands."""
    for key in ("components", "report", "plugins"):
        document = document.get(key) if isinstance(document, dict) else None
    rows_of: list[dict[str, Any]] = []
    for plugin in document.values() if isinstance(document, dict) else ():
        rows = plugin.get("commands") if isinstance(plugin, dict) else None
        rows_of += [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return rows_of


def _list_folder(files: Files, folder: str) -> list[str]:
    try:
        return files.listdir(folder)[:NAMES_LIMIT]
    except ReadError:
        return []


def _text(files: Files, place: str) -> str:
    try:
        return files.read(place, OUTPUT_LIMIT_BYTES).decode("utf-8", "replace")
    except ReadError:
        return ""


def _observed_at(files: Files) -> str | None:
    """When it was made, where a date is there with its zone: the manifest and the log keep local time without one."""
    lines = (line for place in DATES for line in _text(files, place).splitlines()[:5])
    return next((moment for line in lines if (moment := parse_date_output(line))), None)
