"""Which libraries running jobs have mapped: what they use, as opposed to what is merely installed."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.finding import Evidence
from agent.model.node import NcclLibrary
from agent.rules.case import Case
from agent.rules.nccl.hcas import no_gpus
from agent.rules.nccl.settings import jobs_unread
from agent.rules.rule import Answer, NotApplicable, Unknown


def mapped(case: Case, *names: str) -> list[NcclLibrary]:
    """Libraries of these names ("libnvshmem") that at least one running job has mapped."""
    nccl = case.software.nccl
    rows = [*nccl.libraries, *nccl.plugins, *nccl.helpers]
    return [row for row in rows if row.used_by and row.path.rpartition("/")[2].startswith(names)]


def unused(case: Case, what: str) -> Iterator[Answer]:
    """The answer where no running job uses something: not applicable where all of them were seen."""
    yield from (silent := list(no_gpus(case)))
    if not silent:
        why = jobs_unread(case)
        yield Unknown("node", why) if why else NotApplicable("node", f"no running job uses {what}")


def evidence(rows: list[NcclLibrary]) -> tuple[Evidence, ...]:
    """Which libraries, and by how many processes."""
    return tuple(
        Evidence(what=f"mapped by {row.used_by} processes", value=row.path, source="/proc/*/maps") for row in rows[:4]
    )
