"""`job --dataset`: the hosts of a job as a fleet's dataset has them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from agent.cli.errors import print_warning
from agent.cli.fleet.options import open_engine

if TYPE_CHECKING:
    from agent.job.evidence import Evidence
    from agent.job.join.context import HostReport


def read_dataset(dataset: str, evidence: Evidence, at: str | None) -> list[HostReport]:
    """A report of each host of the job that the dataset has. Raises CliError."""
    from agent.fleet.questions.job_hosts import read_hosts
    from agent.job.join.context import HostReport

    names = list_hosts(evidence)
    moment = parse_moment(at) if at is not None else assume_moment(evidence)
    with open_engine(dataset, None) as engine:
        reports, problems = read_hosts(engine, names, moment)
    for problem in problems[:5]:
        print_warning(problem)
    return [HostReport(report, f"dataset ({name})") for report, name in reports]


def list_hosts(evidence: Evidence) -> list[str]:
    """All hosts that the files name."""
    named = dict.fromkeys(evidence.ranks.hosts())
    for hosts in evidence.ranks.file_hosts.values():
        named |= hosts
    for snapshot in evidence.snapshots:
        named |= {row.node: None for rows in snapshot.listed.values() for row in rows}
        named |= {row.node: None for row in (*snapshot.dead, *snapshot.unanswered)}
    if evidence.metrics is not None:
        named |= {host: None for host, _ in evidence.metrics.files}
    if evidence.inspector is not None:
        named |= {host: None for members in evidence.inspector.members.values() for host, _ in members.values()}
    return list(named)


def parse_moment(at: str) -> datetime:
    """UTC without a zone, as tables have it."""
    moment = datetime.fromisoformat(at.replace("Z", "+00:00"))
    return moment.astimezone(timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment


def assume_moment(evidence: Evidence) -> datetime | None:
    """The log's last time, taken as UTC, which is stated; none where no line has a date with a year."""
    last = evidence.last_at
    if last is None:
        return None
    year = last.year or evidence.year
    if year is None:
        print_warning("the log's times have no year: --at TIME chooses the state of the dataset; its newest is used")
        return None
    print_warning(f"the state of the dataset at {last.format(year)}, taken as UTC: --at chooses another")
    return datetime.fromisoformat(last.format(year))
