"""Machines with settings of NCCL: in the system's file, in a user's, in a running job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from agent.model.node import NcclLibrary, NcclSetting
from agent.rules.context import RuleContext
from tests.agent.rules.build import software

SYSTEM, USER, JOB = "/etc/nccl.conf", "/root/.nccl.conf", "environment of pid 4711 (python3)"


def lines(unit: str, scope: str, values: Mapping[str, str]) -> list[NcclSetting]:
    """Settings of one file, a line each, or of one environment."""
    if scope == "job":
        return [NcclSetting(key=key, value=value, source=unit, scope=scope) for key, value in values.items()]
    return [
        NcclSetting(key=key, value=value, source=f"{unit}:{n}", scope=scope, line=f"{key}={value}")
        for n, (key, value) in enumerate(values.items(), 1)
    ]


def said(
    context: RuleContext,
    system: Mapping[str, str] | None = None,
    user: Mapping[str, str] | None = None,
    job: Mapping[str, str] | None = None,
) -> RuleContext:
    """The same machine with these settings, and no others."""
    rows = lines(SYSTEM, "system", system or {}) + lines(USER, "user", user or {}) + lines(JOB, "job", job or {})
    return changed(context, settings=rows, jobs=1 if job else 0)


def changed(context: RuleContext, **changes: Any) -> RuleContext:
    """The same machine with facts of NCCL replaced."""
    return software(context, nccl=msgspec.structs.replace(context.software.nccl, **changes))


def using(context: RuleContext, *paths: str, version: str | None = None) -> RuleContext:
    """The same machine with one running job that has these libraries mapped."""
    rows = [NcclLibrary(path=path, version=version, used_by=1) for path in paths]
    return changed(
        context,
        jobs=1,
        libraries=[row for row in rows if "libnccl.so" in row.path],
        plugins=[row for row in rows if "libnccl-" in row.path],
        helpers=[row for row in rows if "libnccl" not in row.path],
    )


def unread(context: RuleContext) -> RuleContext:
    """The same machine, its /etc/nccl.conf not readable."""
    return changed(context, searched=[], settings=[], unread=["/etc/nccl.conf: Permission denied"])


def jobs_hidden(context: RuleContext) -> RuleContext:
    """The same machine without privilege: whether jobs run is not known."""
    return changed(context, jobs=None, jobs_unread=None)
