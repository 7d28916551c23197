"""systemd's units as they are put in place: ours, with the program that is installed here in ExecStart.

The texts are those of systemd/; the folder of that name beside this file is a link there, and in a wheel a copy. A unit
that we wrote says so in its first line, with a hash of the rest: a newer version replaces it, and one that a person
changed is kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from typing import NamedTuple

DIRECTORY = "/etc/systemd/system"
NAMED = "/opt/fabricscope/bin/fabricscope"  # what the texts start
FIRST = "scan"  # the part that is always installed
CACHE = """\
# This fabricscope is one file, which unpacks itself: where root has not run it yet, here, for this service alone.
CacheDirectory=%N
"""
_TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "systemd")
_NAME = re.compile(r"fabricscope-([a-z]+)\.(service|timer|path|socket)")
_MARK = re.compile(rb"# Written by fabricscope install-units; ([0-9a-f]{64}); .*\n")
_PLAIN = re.compile(r"[A-Za-z0-9/._+@:,=~-]+( [A-Za-z0-9/._+@:,=~-]+)*")
_HOMES, _SCRATCH = ("/home", "/root", "/run/user"), ("/tmp", "/var/tmp")  # noqa: S108  # named, not written to


class Unit(NamedTuple):
    """One unit's file name and text."""

    name: str
    text: str

    @property
    def enabled(self) -> bool:
        """Whether it is one to enable: others are started by it."""
        return "\n[Install]" in self.text

    @property
    def conflicts(self) -> list[str]:
        """The units that do not run beside it."""
        values = (line.partition("=")[2] for line in self.text.splitlines() if line.startswith("Conflicts="))
        return [name for names in values for name in names.split()]


class BadUnits(Exception):
    """Units that are not there, or may not be put in place; the message is for a person."""


def parts() -> dict[str, list[str]]:
    """What may be installed: the units' names by part (scan, ship, ...). Raises BadUnits."""
    names_by_part: dict[str, list[str]] = {}
    for name in sorted(os.listdir(_folder())):
        named = _NAME.fullmatch(name)
        if named:
            names_by_part.setdefault(named[1], []).append(name)
    return names_by_part


def units(requested: list[str], program: str, unpacks: bool = False) -> list[Unit]:
    """The units of these parts, which start `program` (a command line); `unpacks`: a zipapp. Raises BadUnits."""
    if not _PLAIN.fullmatch(program) or not program.startswith("/"):
        raise BadUnits(f"{program!r} cannot stand in ExecStart: a full path without quotes, %, $ or the like is needed")
    known = parts()
    for part in requested:
        if part not in known:
            raise BadUnits(f"no unit {part!r}; there are {', '.join(known)}")
    return [_unit(name, program, unpacks) for part in known if part in requested for name in known[part]]


def _unit(name: str, program: str, unpacks: bool) -> Unit:
    with open(os.path.join(_folder(), name), encoding="utf-8") as file:
        text = file.read()
    changed = []
    for line in text.splitlines(keepends=True):
        if line.startswith("ExecStart="):
            line = line.replace(NAMED, program, 1) + (CACHE if unpacks else "")
        changed.append(line)
    return Unit(name, "".join(changed))


def _folder() -> str:
    if not os.path.isfile(os.path.join(_TEXTS, f"fabricscope-{FIRST}.service")):
        raise BadUnits(f"no units in {_TEXTS}: this copy of fabricscope was installed without them")
    return _TEXTS


def signed(unit: Unit, version: str) -> bytes:
    """What is written: the text below a line that tells it from one that was changed."""
    body = unit.text.encode()
    return f"# Written by fabricscope install-units; {hashlib.sha256(body).hexdigest()}; {version}\n".encode() + body


def changed_by_hand(path: str, data: bytes) -> str | None:
    """Why the file there is not ours to replace by `data`; None where there is none, or it is as we wrote it."""
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


def put(path: str, data: bytes) -> bool:
    """Write a unit, whole or not at all, in the place of a link too; False where it stands there already."""
    try:
        with open(path, "rb") as file:
            if not os.path.islink(path) and file.read(len(data) + 1) == data:
                return False
    except FileNotFoundError:
        pass
    from agent import reports

    folder, name = os.path.split(path)
    reports.replace(path, os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp"), data)
    return True


def out_of_reach(path: str) -> str | None:
    """Why a service with a user of its own cannot run or read what is there; None where it can."""
    for path_to_check in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        for place in (*_HOMES, *_SCRATCH):
            if path_to_check.startswith(place + "/"):
                setting = "ProtectHome" if place in _HOMES else "PrivateTmp"
                return f"{path_to_check} is below {place}, which the service does not see ({setting})"
        if not os.path.exists(path_to_check):
            return f"{path_to_check} does not exist"
        while path_to_check != "/":
            mode = os.stat(path_to_check).st_mode
            need = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if not mode & need:
                return f"{path_to_check} is closed to other users, and the service is one (DynamicUser)"
            path_to_check = os.path.dirname(path_to_check)
    return None
