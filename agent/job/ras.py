"""Snapshots of NCCL's RAS (`ncclras`, port 28028), text or JSON: which rank is behind, which process is gone.

In one snapshot ranks differ while a job runs; equal counts in two are a hang. The ranks that RAS lists are the
minority, which may be ahead: those with the smaller count are behind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from agent.job.candidate import PossibleCause, name_numbers
from agent.job.evidence import Evidence
from agent.model.job_answer import JobEvidence

_COMMUNICATOR = re.compile(r"#\d{1,5}-\d{1,5} \((?P<hash>[0-9a-f]{1,40})\) (?P<errors>[A-Z, ]{2,60})")
_FUNCTION = re.compile(r"\s{0,8}Communicator ranks have different (?P<function>\w{1,30}) operation counts")
_MANY = re.compile(r"\s{0,8}(?P<ranks>\d{1,7}) ranks? ha(?:ve|s) launched up to operation (?P<count>\d{1,15})")
_ONE = re.compile(
    r"\s{0,8}Rank (?P<rank>\d{1,7})(?: has launched up to operation (?P<count>\d{1,15}))? -- GPU (?P<gpu>\d{1,4})"
    r"(?: \(NVML \d{1,4}\))? managed by process (?P<pid>\d{1,9}) on node (?P<node>\S{1,80})"
)
_PROCESS = re.compile(
    r"\s{0,8}Process (?P<pid>\d{1,9}) on node (?P<node>\S{1,80}?)(?: managing GPUs? (?P<gpus>[\d, ]{1,60}))?\s*$"
)
_DEAD = re.compile(r"\s{0,8}(?P<count>\d{1,7}) job process(?:es)? (?:is|are) considered dead")
_MISSING = re.compile(r"\s{0,8}Missing communicator data from (?P<count>\d{1,7}) job process")
_VERSION = re.compile(r"NCCL version (?P<version>\d{1,2}\.\d{1,3}\.\d{1,3}) compiled with CUDA")
_RANKS = re.compile(
    r"\s{1,8}\d{1,6}\s{1,12}[\d-]{1,12}\s{1,12}[\d-]{1,12}\s{1,12}(?P<processes>\d{1,7})\s{1,12}(?P<gpus>\d{1,7})\s*$"
)
_MOST = 10_000


class Listed(NamedTuple):
    """A rank that a snapshot lists."""

    rank: int
    gpu: int | None
    pid: int | None
    node: str
    line: JobEvidence


class RasProcess(NamedTuple):
    """A process that is dead, or did not answer."""

    pid: int
    node: str
    gpus: str | None
    line: JobEvidence


class Snapshot:
    """One dump of RAS."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version: str | None = None
        self.ranks: int | None = None
        self.counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # communicator, function: count: ranks
        self.listed: dict[tuple[str, str, int], list[Listed]] = defaultdict(list)
        self.dead: list[RasProcess] = []
        self.unanswered: list[RasProcess] = []
        self.lines = 0


def is_ras_text(head: str) -> bool:
    """Whether a text is a snapshot."""
    return _VERSION.search(head) is not None and "Job summary" in head


def read_text(name: str, lines: list[str]) -> Snapshot:
    """A snapshot in RAS's own layout."""
    snapshot = Snapshot(name)
    communicator, function, count = "", "", 0
    processes: list[RasProcess] | None = None
    for number, line in enumerate(lines[:200_000], 1):
        evidence = JobEvidence(text=line.strip()[:300], source=name, line=number)
        if match := _VERSION.search(line):
            snapshot.version = match["version"]
        elif match := _RANKS.match(line):
            snapshot.ranks = snapshot.ranks or int(match["gpus"])
        elif match := _COMMUNICATOR.match(line):
            communicator, processes = match["hash"], None
        elif match := _FUNCTION.match(line):
            function = match["function"]
        elif match := _MANY.match(line):
            count = int(match["count"])
            snapshot.counts[communicator, function][count] = int(match["ranks"])
        elif match := _ONE.match(line):
            if match["count"]:
                count = int(match["count"])
                ranks = snapshot.counts[communicator, function]
                ranks[count] = ranks.get(count, 0) + 1
            listed = Listed(int(match["rank"]), int(match["gpu"]), int(match["pid"]), match["node"], evidence)
            if len(snapshot.listed) < _MOST:
                snapshot.listed[communicator, function, count].append(listed)
        elif _DEAD.match(line):
            processes = snapshot.dead
        elif _MISSING.match(line):
            processes = snapshot.unanswered
        elif processes is not None and (match := _PROCESS.match(line)) and len(processes) < _MOST:
            processes.append(RasProcess(int(match["pid"]), match["node"], match["gpus"], evidence))
    snapshot.lines = len(lines)
    return snapshot


class _RasStatus(msgspec.Struct, frozen=True):
    considered_dead: bool = False
    unresponsive: bool = False


class _Rank(msgspec.Struct, frozen=True):
    rank: int = -1
    host: str = ""
    pid: int = 0
    cuda_dev: int | None = None
    collective_counts: dict[str, int] = {}
    status: _RasStatus = _RasStatus()


class _Communicator(msgspec.Struct, frozen=True):
    hash: str | int = ""
    size: int = 0
    ranks: list[_Rank] = []
    missing_ranks: list[_Rank] = []


class _Document(msgspec.Struct, frozen=True):
    nccl_version: str | int | None = None
    communicators: list[_Communicator] = []


def read_json(name: str, data: bytes) -> Snapshot:
    """A snapshot as JSON. Raises ValueError."""
    document = msgspec.json.decode(data, type=_Document)
    snapshot = Snapshot(name)
    snapshot.version = str(document.nccl_version) if document.nccl_version is not None else None
    for communicator in document.communicators[:_MOST]:
        key = str(communicator.hash)
        snapshot.ranks = max(snapshot.ranks or 0, communicator.size)
        functions = sorted({function for rank in communicator.ranks for function in rank.collective_counts})
        for function in functions:
            counts: dict[int, list[_Rank]] = defaultdict(list)
            for rank in communicator.ranks:
                counts[rank.collective_counts.get(function, 0)].append(rank)
            if len(counts) < 2:
                continue
            for count, ranks in counts.items():
                snapshot.counts[key, function][count] = len(ranks)
                if len(ranks) <= max(10, communicator.size // 4):
                    snapshot.listed[key, function, count] += [_list_rank(name, key, function, rank) for rank in ranks]
        for rank in communicator.missing_ranks:
            text = (
                f"communicator {key}: rank {rank.rank} on {rank.host}, process {rank.pid}: "
                f"{'considered dead' if rank.status.considered_dead else 'no answer'}"
            )
            row = RasProcess(rank.pid, rank.host, str(rank.cuda_dev), JobEvidence(text=text, source=name))
            (snapshot.dead if rank.status.considered_dead else snapshot.unanswered).append(row)
    return snapshot


def _list_rank(name: str, key: str, function: str, rank: _Rank) -> Listed:
    text = (
        f"communicator {key}: rank {rank.rank} on {rank.host} is at {function} "
        f"{rank.collective_counts.get(function, 0)}"
    )
    return Listed(rank.rank, rank.cuda_dev, rank.pid, rank.host, JobEvidence(text=text, source=name))


def find_ras_hangs(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks that are behind in two snapshots, and processes that are gone."""
    snapshots: list[Snapshot] = sorted(evidence.snapshots, key=lambda snapshot: _natural(snapshot.name))
    if not snapshots:
        return
    last = snapshots[-1]
    for kind, processes in (("dead", last.dead), ("no answer", last.unanswered)):
        if processes:
            yield _gone(evidence, kind, processes)
    for (communicator, function), counts in sorted(last.counts.items()):
        if len(counts) < 2:
            continue
        least, most = min(counts), max(counts)
        behind = last.listed.get((communicator, function, least), [])
        equal = [one for one in snapshots[:-1] if one.counts.get((communicator, function)) == counts]
        if not behind:
            continue  # those that are listed are ahead: normal, or it is not known who is behind
        yield _behind(evidence, function, behind, (least, most), counts, equal, last)


def _natural(name: str) -> list[int | str]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _behind(
    evidence: Evidence,
    function: str,
    behind: list[Listed],
    ends: tuple[int, int],
    counts: dict[int, int],
    equal: list[Snapshot],
    last: Snapshot,
) -> PossibleCause:
    least, most = ends
    ranks = sorted(row.rank for row in behind)
    nodes = list(dict.fromkeys(evidence.ranks.find_host(row.node) or row.node for row in behind))
    first = behind[0]
    place = (
        f"rank {first.rank} (GPU {first.gpu} on {nodes[0]}, process {first.pid})"
        if len(ranks) == 1
        else f"ranks {name_numbers(ranks)} on {', '.join(nodes[:3])}"
    )
    waiting = sum(number for count, number in counts.items() if count > least)
    if equal:
        text = (
            f"{place} stays at {function} {least} while {waiting} ranks wait at {most}, with equal counts in "
            f"{len(equal) + 1} snapshots: a hang"
        )
        candidate = PossibleCause("rank-behind", "missing", "rank", text)
    else:
        text = (
            f"{place} is behind at {function} {least}, {waiting} ranks are at {most}; one snapshot does not separate "
            f"a hang from a step that runs"
        )
        candidate = PossibleCause("rank-behind", "missing", "rank", text, "low")
    candidate.ranks |= dict.fromkeys(ranks)
    candidate.hosts |= dict.fromkeys(nodes)
    candidate.evidence += [row.line for row in behind[:3]]
    for snapshot in equal[-1:]:
        candidate.evidence += [row.line for rows in snapshot.listed.values() for row in rows if row.rank in ranks][:2]
    candidate.next = [
        f"`py-spy dump --pid {first.pid}` on {nodes[0]}, and its kernel log",
        "a second snapshot more than 10 s later"
        if not equal
        else f"`fabricscope scan` on {nodes[0]}: the GPU of that rank",
    ]
    return candidate


def _gone(evidence: Evidence, kind: str, processes: list[RasProcess]) -> PossibleCause:
    nodes = list(dict.fromkeys(evidence.ranks.find_host(row.node) or row.node for row in processes))
    who = (
        f"process {processes[0].pid} on {nodes[0]}"
        if len(processes) == 1
        else f"{len(processes)} processes on {', '.join(nodes[:3])}"
    )
    if kind == "dead":
        candidate = PossibleCause(
            "process-dead",
            "dead",
            "rank",
            f"{who} is dead: RAS cannot reach it" if len(processes) == 1 else f"{who} are dead: RAS cannot reach them",
        )
    else:
        candidate = PossibleCause(
            "process-silent", "missing", "rank", f"{who} did not report to RAS: dead, or stopped", "medium"
        )
    candidate.hosts |= dict.fromkeys(nodes)
    candidate.evidence += [row.line for row in processes[:3]]
    candidate.next = [f"the log of {who}, and the kernel log of {nodes[0]}"]
    return candidate
