"""A possible cause, while causes are collected, and how ranks and hosts are named in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agent.job.evidence import Evidence, LineEvent
from agent.job.lines import LogLine, Moment
from agent.model.job_answer import JobEvidence
from agent.model.labels import name_runs

MOST_EVIDENCE = 6
_TEXT = 400
# The order of causes: by what a role proves. Those from SLOW on stopped no job
_ROLES = (
    "hard port setup dead network error missing crash exit hang exception connect silent cancel unexplained "
    "consequence slow note"
)
ORDER = {role: number for number, role in enumerate(_ROLES.split())}
SLOW = ORDER["slow"]


class PossibleCause:
    """One possible cause."""

    def __init__(self, key: str, role: str, fault: str, summary: str, confidence: str = "high") -> None:
        self.id, self.role, self.fault, self.summary, self.confidence = key, role, fault, summary, confidence
        self.at: Moment | None = None
        self.ranks: dict[int, None] = {}
        self.hosts: dict[str, None] = {}
        self.gpu: str | None = None
        self.bus: str | None = None
        self.nic: str | None = None
        self.port: int | None = None
        self.peers: dict[str, None] = {}  # hosts that its lines name
        self.pids: set[tuple[str | None, int]] = set()
        self.evidence: list[JobEvidence] = []
        self.next: list[str] = []
        self.findings: list[str] = []
        self.count = 0
        self.first_line: tuple[int, int] | None = None  # file and number
        self.last_number = 0  # of the last line of that file
        self.waiting: frozenset[int] = frozenset()  # of a hang: ranks that are known to have waited
        self.local: int | None = None  # the number of its GPU on every host, of a slow communicator
        self.is_plain = False  # by a row that has less of a line than others
        self.is_general = False  # by a row that has only that something ended, is gone or took too long
        self.steps_after = 0  # lines of steps below all that it rests on, at most so many as are remembered
        self.waits_for_all = False  # a hang in which every rank takes part
        self.facts: dict[str, str] = {}  # what the join looks up: gid, index

    @property
    def order(self) -> int:
        """Its place by role."""
        return ORDER[self.role]

    def blame(self, ranks: Iterable[int] = (), hosts: Iterable[str] = ()) -> None:
        """Ranks and hosts that are at fault, in this order."""
        self.ranks |= dict.fromkeys(ranks)
        self.hosts |= dict.fromkeys(hosts)

    def name(self, evidence: Evidence) -> str:
        """Its ranks and hosts, for a sentence."""
        return name_ranks(evidence, list(self.ranks), list(self.hosts))

    def note_facts(self, match: re.Match[str]) -> None:
        """What a line names; the first line of several counts."""
        for name, value in match.groupdict().items():
            if value:
                self.facts.setdefault(name, value)

    def add(self, evidence: Evidence, line: LogLine, show: bool = True) -> None:
        """A line that shows it."""
        rank, host = evidence.rank_of(line), evidence.host_of(line)
        if rank is not None:
            self.ranks.setdefault(rank)
        if host is not None:
            self.hosts.setdefault(host)
        if line.pid is not None:
            self.pids.add((line.host, line.pid))
        if line.at is not None and (self.at is None or line.at.seconds < self.at.seconds):
            self.at = line.at
        self.count += 1
        self.first_line = min(self.first_line or (line.file, line.number), (line.file, line.number))
        if show:
            self.show(evidence, line)

    def show(self, evidence: Evidence, *lines: LogLine) -> None:
        """Lines, as evidence."""
        for line in lines[: max(0, MOST_EVIDENCE - len(self.evidence))]:
            self.show_text(line.whole.strip()[:_TEXT], evidence.names[line.file], line.number)

    def show_text(self, text: str, source: str, line: int | None = None) -> None:
        """What a file has, as evidence."""
        self.evidence.append(JobEvidence(text=text, source=source, line=line))

    def add_events(self, evidence: Evidence, events: Sequence[LineEvent]) -> None:
        """Events that show it: the first line of each, at most one line of each rank, or host, as evidence."""
        ordered = sorted(events, key=lambda event: sort_key(event.line))
        shown: set[object] = set()
        for event in ordered:
            rank = evidence.rank_of(event.line)
            who = rank, event.line.host if rank is None else None, event.row.id
            self.add(evidence, event.line, show=who not in shown)
            shown.add(who)
            self.count += event.count - 1
            if self.first_line is not None and self.first_line[0] == event.line.file:
                self.last_number = max(self.last_number, event.last)


def sort_key(line: LogLine) -> tuple[bool, float, int, int]:
    """Lines by time, then by place; those without a time come last."""
    return line.at is None, line.at.seconds if line.at else 0.0, line.file, line.number


def first_of(events: Iterable[LineEvent]) -> LineEvent:
    """The earliest, else the first in the files."""
    return min(events, key=lambda event: sort_key(event.line))


def name_ranks(evidence: Evidence, ranks: Sequence[int], hosts: Sequence[str]) -> str:
    """Ranks and their hosts, for a sentence."""
    ranks = sorted(ranks)
    if not ranks:
        return f"a process on {name_hosts(hosts)}" if hosts else "a process"
    if len(ranks) == 1:
        host = evidence.ranks.host(ranks[0]) or (hosts[0] if hosts else None)
        local = evidence.ranks.local(ranks[0])
        gpu = f", GPU {local}" if local is not None else ""
        return f"rank {ranks[0]} on {host}{gpu}" if host else f"rank {ranks[0]}{gpu.replace('GPU', 'device')}"
    where = f" on {name_hosts(hosts)}" if hosts else ""
    world = evidence.ranks.world
    if world and len(ranks) == world:
        return f"all {world} ranks{where}"
    numbers = name_numbers(ranks)
    return f"ranks {numbers}{where}" if len(numbers) < 60 else f"{len(ranks)} ranks{where}"


def suspect_ranks(
    evidence: Evidence, key: str, role: str, ranks: Sequence[int], text: str, confidence: str = "high"
) -> PossibleCause:
    """Ranks at fault, with their hosts; the text is what they did, behind their name."""
    hosts = find_hosts(evidence, ranks)
    candidate = PossibleCause(key, role, "rank", f"{name_ranks(evidence, ranks, hosts)} {text}", confidence)
    candidate.blame(ranks, hosts)
    return candidate


def find_hosts(evidence: Evidence, ranks: Iterable[int]) -> list[str]:
    """The hosts of ranks, each once."""
    return list(dict.fromkeys(host for rank in ranks if (host := evidence.ranks.host(rank)) is not None))


def name_hosts(hosts: Sequence[str]) -> str:
    """Up to three hosts by name, else their number."""
    hosts = list(hosts)
    return ", ".join(hosts) if len(hosts) <= 3 else f"{len(hosts)} hosts ({', '.join(hosts[:2])}, ..)"


def name_numbers(numbers: Iterable[int]) -> str:
    """Numbers as ranges.

    >>> name_numbers([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    return ", ".join(name_runs(set(numbers)))
