"""The systemd units to install: the templates of systemd/ with this program in ExecStart.

The folder `systemd` beside this file is a link to the templates, and in a wheel a copy. An installed unit
carries a signature in its first line, with a hash of the rest: a newer version replaces it, and one that was
edited is kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import NamedTuple

TEMPLATE_PROGRAM = "/opt/fabricscope/bin/fabricscope"  # in the templates' ExecStart
SCAN_PART = "scan"  # the part that is always installed
CACHE_LINES = """\
# This fabricscope is one file, which unpacks itself: where root has not run it yet, here, for this service alone.
CacheDirectory=%N
"""
_TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "systemd")
_NAME = re.compile(r"fabricscope-([a-z]+)\.(service|timer|path|socket)")
_MARK = re.compile(rb"# Written by fabricscope install-units; ([0-9a-f]{64}); .*\n")
_UNQUOTED = re.compile(r"[A-Za-z0-9/._+@:,=~-]+( [A-Za-z0-9/._+@:,=~-]+)*")
_HOMES, _SCRATCH = ("/home", "/root", "/run/user"), ("/tmp", "/var/tmp")  # noqa: S108  # named, not written to


class SystemdUnit(NamedTuple):
    """The file name and text of one unit."""

    name: str
    text: str

    @property
    def enabled(self) -> bool:
        """Whether it can be enabled: other units are started by it."""
        return "\n[Install]" in self.text

    @property
    def conflicts(self) -> list[str]:
        """The units that must not run beside it."""
        values = (line.partition("=")[2] for line in self.text.splitlines() if line.startswith("Conflicts="))
        return [name for names in values for name in names.split()]


class UnitsError(Exception):
    """Units that do not exist or must not be installed; the message is for a person."""


def list_parts() -> dict[str, list[str]]:
    """The installable units, by part (scan, ship, ...). Raises UnitsError."""
    names_by_part: dict[str, list[str]] = {}
    for name in sorted(os.listdir(_template_folder())):
        named = _NAME.fullmatch(name)
        if named:
            names_by_part.setdefault(named[1], []).append(name)
    return names_by_part


def render_units(requested: list[str], program: str, unpacks: bool = False) -> list[SystemdUnit]:
    """The units of these parts, starting `program` (a command line); `unpacks`: it is a zipapp. Raises UnitsError."""
    if not _UNQUOTED.fullmatch(program) or not program.startswith("/"):
        raise UnitsError(
            f"{program!r} is not allowed in ExecStart: a full path without quotes, %, $ or the like is needed"
        )
    known = list_parts()
    for part in requested:
        if part not in known:
            raise UnitsError(f"no unit {part!r}; there are {', '.join(known)}")
    return [_render_unit(name, program, unpacks) for part in known if part in requested for name in known[part]]


def _render_unit(name: str, program: str, unpacks: bool) -> SystemdUnit:
    with open(os.path.join(_template_folder(), name), encoding="utf-8") as file:
        text = file.read()
    changed: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("ExecStart="):
            line = line.replace(TEMPLATE_PROGRAM, program, 1)
            if unpacks and CACHE_LINES not in changed:
                changed.append(CACHE_LINES)
        changed.append(line)
    return SystemdUnit(name, "".join(changed))


def _template_folder() -> str:
    if not os.path.isfile(os.path.join(_TEMPLATES, f"fabricscope-{SCAN_PART}.service")):
        raise UnitsError(f"no units in {_TEMPLATES}: this copy of fabricscope was installed without them")
    return _TEMPLATES


def add_signature(unit: SystemdUnit, version: str) -> bytes:
    """The content to write: the text below a signature line."""
    body = unit.text.encode()
    return f"# Written by fabricscope install-units; {hashlib.sha256(body).hexdigest()}; {version}\n".encode() + body


def why_not_replaceable(path: str, data: bytes) -> str | None:
    """Why an existing file must not be replaced by `data`; None if it may be."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return f"a link to {os.readlink(path)}"
    if not stat.S_ISREG(status.st_mode):
        return "no file"
    with open(path, "rb") as file:
        there = file.read(1 << 20)
    mark = _MARK.match(there)
    if there in (data, data.partition(b"\n")[2]) or (
        mark and hashlib.sha256(there[mark.end() :]).hexdigest().encode() == mark[1]
    ):
        return None
    return "changed by hand" if mark else "not written by install-units"


def install_file(path: str, data: bytes) -> bool:
    """Write a unit atomically, replacing a link too; False if it is already there."""
    try:
        with open(path, "rb") as file:
            if not os.path.islink(path) and file.read(len(data) + 1) == data:
                return False
    except FileNotFoundError:
        pass
    from agent import reports

    reports.replace_file(path, data, reports.PUBLIC)
    return True


def why_unreachable(path: str) -> str | None:
    """Why a service with its own user cannot run or read a path; None if it can."""
    paths = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    for path_to_check in paths:
        for place in (*_HOMES, *_SCRATCH):
            if path_to_check.startswith(place + "/"):
                setting = "ProtectHome" if place in _HOMES else "PrivateTmp"
                return f"{path_to_check} is below {place}, which the service does not see ({setting})"
    for path_to_check in paths:
        if not os.path.exists(path_to_check):
            return f"{path_to_check} does not exist"
        while path_to_check != "/":
            mode = os.stat(path_to_check).st_mode
            need = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if not mode & need:
                return f"{path_to_check} is not readable for other users, such as that of the service (DynamicUser)"
            path_to_check = os.path.dirname(path_to_check)
    return None
