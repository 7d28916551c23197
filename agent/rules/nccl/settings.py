"""NCCL settings that are in force, with their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from agent.model.finding import Evidence
from agent.model.node import NcclSetting
from agent.model.reasons import Reason
from agent.rules.context import RuleContext

PROBE = "nccl"
SYSTEM_FILE = "/etc/nccl.conf"
_ORDER = {"job": 0, "user": 1, "service": 2, "system": 3}
_NUMBER = r"[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))"
_PROCESS = r"environment of pid (\d{1,10}) "


class EffectiveSetting(msgspec.Struct, frozen=True):
    """One value that is in force for someone: for one job, one user, or all that set nothing themselves."""

    value: str
    source: str  # "/etc/nccl.conf:3", "environment of pid 4711 (python3)"
    scope: str  # job | user | service | system

    @property
    def unit(self) -> str:
        """The file or process that sets it."""
        return source_unit(self.source)

    @property
    def persistent(self) -> bool:
        """Whether it stays when the job ends: it was set on purpose for all, not to try something."""
        return self.scope != "job"

    @property
    def process(self) -> tuple[tuple[str, str], ...]:
        """`Fail.values` of the process that has it; none where a file does."""
        match = re.match(_PROCESS, self.source)
        return (("PID", match[1]),) if match else ()

    def evidence(self, key: str) -> Evidence:
        """The setting for people."""
        return Evidence(key, self.value, self.source)


def effective_settings(context: RuleContext, key: str) -> list[EffectiveSetting]:
    """Every value of a variable that is in force, jobs first, then users, then the system's.

    Empty: no one who could be looked at sets it. Whether that is all of them: see `files_unread_reason`
    and `jobs_unread_reason`.
    """
    return list(_settings_in_force(context, key))


def why_files_unread(context: RuleContext) -> Reason | None:
    """Why it is not known what NCCL's files set; None where they were read, or are not there."""
    why = context.why_probe_failed(PROBE)
    if why:
        return why
    nccl = context.software.nccl
    if SYSTEM_FILE not in nccl.searched:
        unread = next((why for why in nccl.unread if why.startswith(SYSTEM_FILE)), f"{SYSTEM_FILE} was not looked for")
        return Reason("not-shown", detail=unread)
    return None


def why_jobs_unread(context: RuleContext) -> Reason | None:
    """Why it is not known what running jobs set; None where every one was looked into, or none runs."""
    why = context.why_probe_failed(PROBE)
    if why:
        return why
    nccl = context.software.nccl
    if nccl.jobs is None:
        hidden = f": {nccl.jobs_hidden}" if nccl.jobs_hidden else ""
        return Reason("not-shown", detail=f"which processes use a GPU is not known{hidden}")
    if nccl.jobs_unread:
        return Reason(
            "needs-root", detail=f"the environment of {nccl.jobs_unread} of {nccl.jobs} jobs may not be read: root may"
        )
    return None


def is_surely_unset(context: RuleContext) -> bool:
    """Whether a variable that `effective_settings` does not find is set nowhere: files and all jobs were read."""
    return why_files_unread(context) is None and why_jobs_unread(context) is None


def source_unit(source: str) -> str:
    """The file or process of a source, without the line.

    >>> source_unit("/etc/nccl.conf:3"), source_unit("environment of pid 4711 (python3)")
    ('/etc/nccl.conf', 'environment of pid 4711 (python3)')
    """
    file, _, line = source.rpartition(":")
    return file if line.isdecimal() else source


def parse_number(value: str) -> int | None:
    """An integer setting as NCCL reads it: strtoll with any base, which stops at what is no digit and begins with 0.
    None: empty or too large, for which NCCL takes its default.

    >>> [parse_number(text) for text in ("106", " 0x6a # DSCP 26", '"106"', "Yes", "", "-1")]
    [106, 106, 0, 0, None, -1]
    """
    if not value:
        return None
    match = re.match(_NUMBER, value)
    if not match:
        return 0
    sign, sixteen, eight, ten = match.groups()
    digits, base = (sixteen, 16) if sixteen else (eight, 8) if eight else (ten, 10)
    bounded = digits.lstrip("0")[:23] or "0"  # 23 digits are beyond 64 bits in every base
    read = int(bounded, base) * (-1 if sign == "-" else 1)
    return read if -(1 << 63) <= read < 1 << 63 else None


def _settings_in_force(context: RuleContext, key: str) -> Iterator[EffectiveSetting]:
    """The first setting of every unit: within a file or an environment what comes later is not taken."""
    mine = [setting for setting in context.software.nccl.settings if setting.key == key]
    seen: set[str] = set()
    for setting in sorted(mine, key=_rank):
        unit = source_unit(setting.source)
        if unit not in seen:
            seen.add(unit)
            yield EffectiveSetting(setting.value, setting.source, setting.scope)


def _rank(setting: NcclSetting) -> tuple[int, str, int]:
    _, _, line = setting.source.rpartition(":")
    return _ORDER.get(setting.scope, 1), source_unit(setting.source), parse_number(line) or 0
