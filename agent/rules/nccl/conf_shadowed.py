"""gdr-nccl-conf-shadowed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.rules.case import Case
from agent.rules.counting import named
from agent.rules.nccl.hcas import no_gpus
from agent.rules.nccl.settings import Effective, effective, files_unread
from agent.rules.rule import Answer, Fail, Pass, Unknown, rule

_HARMLESS = ("NCCL_DEBUG", "NCCL_COMM_ID", "NCCL_SOCKET_IFNAME")


@rule("gdr-nccl-conf-shadowed", "info", needs=("nccl",), references=("gdr-nccl-conf-shadowed",))
def gdr_nccl_conf_shadowed(case: Case) -> Iterator[Answer]:
    """What the system's NCCL file says is not in force: a user's file or a job says otherwise.

    ## What it checks
    Variables of `/etc/nccl.conf` that a user's file, a file named by `NCCL_CONF_FILE` or a running job's environment
    sets to another value.

    ## Why it matters
    The first one that sets a variable wins: environment, user's file, system's file. Of what an administrator changes
    in `/etc/nccl.conf`, 0 % reaches such a job.

    ## How it is decided
    The same name with two values, one of them in `/etc/nccl.conf`. One finding for the node, that names them.

    ## What keeps it silent
    - Equal values; `NCCL_DEBUG...`, `NCCL_COMM_ID` and `NCCL_SOCKET_IFNAME`, which jobs are meant to set.
    - A file whose lines gdr-nccl-conf-syntax names: mend those first.
    - No GPU: not applicable. The system's file could not be read: unknown.

    ## How to confirm
    `grep -s . /etc/nccl.conf ~/.nccl.conf`; `NCCL_DEBUG=INFO` in a job prints every variable that it took.

    ## How to fix
    Keep one place for what shall hold for all: `/etc/nccl.conf`.

    ## Source
    NCCL `src/misc/param.cc` (initEnv: setenv without overwrite), since 2.23.4 `NCCL_CONF_FILE` instead of
    `~/.nccl.conf`.
    """
    yield from (silent := list(no_gpus(case)))
    if silent:
        return
    why = files_unread(case)
    if why:
        yield Unknown("node", why)
        return
    shadowed = {key: rows for key in _keys(case) if (rows := _rows(case, key))}
    if not shadowed:
        yield Pass("node")
        return
    named_rows = [(key, row) for key, both in shadowed.items() for row in both]
    yield Fail(
        subject="node",
        label="node",
        summary=f"/etc/nccl.conf sets {named(list(shadowed))}, and {shadowed[next(iter(shadowed))][0].unit} otherwise",
        impact="0 % of a change in /etc/nccl.conf reaches these jobs.",
        remedy="Keep these variables in one place.",
        evidence=tuple(Evidence(what=key, value=row.value, source=row.source) for key, row in named_rows[:16]),
        cause="shadowed",
        places=frozenset({row.source for _, row in named_rows} | {row.unit for _, row in named_rows}),
    )


def _keys(case: Case) -> list[str]:
    mine = {each.key for each in case.software.nccl.settings if each.scope == "system"}
    return sorted(key for key in mine if not key.startswith(_HARMLESS))


def _rows(case: Case, key: str) -> list[Effective]:
    """Stronger values that differ from the system's, then the system's; empty: none differs."""
    rows = effective(case, key)
    system = [row for row in rows if row.scope == "system"]
    meant = {row.value for row in system[:1]}
    other = [row for row in rows if row.scope in ("job", "user") and row.value not in meant]
    return other + system if other else []
