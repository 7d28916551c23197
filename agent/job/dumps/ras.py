"""Snapshots of NCCL's RAS (`ncclras`, port 28028), text or JSON."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from typing import NamedTuple

import msgspec

from agent.model.job_answer import JobEvidence
from probes.text import lazy_pattern

_COMMUNICATOR = lazy_pattern(r"#\d{1,5}-\d{1,5} \((?P<hash>[0-9a-f]{1,40})\) (?P<errors>[A-Z, ]{2,60})")
_FUNCTION = lazy_pattern(r"\s{0,8}Communicator ranks have different (?P<function>\w{1,30}) operation counts")
_MANY = lazy_pattern(r"\s{0,8}(?P<ranks>\d{1,7}) ranks? ha(?:ve|s) launched up to operation (?P<count>\d{1,15})")
_ONE = lazy_pattern(
    r"\s{0,8}Rank (?P<rank>\d{1,7})(?: has launched up to operation (?P<count>\d{1,15}))? -- GPU (?P<gpu>\d{1,4})"
    r"(?: \(NVML \d{1,4}\))? managed by process (?P<pid>\d{1,9}) on node (?P<node>\S{1,80})"
)
_PROCESS = lazy_pattern(
    r"\s{0,8}Process (?P<pid>\d{1,9}) on node (?P<node>\S{1,80}?)(?: managing GPUs? [\d, ]{1,60})?\s*$"
)
_DEAD = lazy_pattern(r"\s{0,8}(?P<count>\d{1,7}) job process(?:es)? (?:is|are) considered dead")
_MISSING = lazy_pattern(r"\s{0,8}Missing communicator data from (?P<count>\d{1,7}) job process")
_FIRST_LINE = lazy_pattern(r"NCCL version \d{1,2}\.\d{1,3}\.\d{1,3} compiled with CUDA")
_RANKS = lazy_pattern(r"\s{1,8}\d{1,6}\s{1,12}[\d-]{1,12}\s{1,12}[\d-]{1,12}\s{1,12}\d{1,7}\s{1,12}\d{1,7}\s*$")
_MOST = 10_000
_MOST_FOREIGN = 200
_RULER = lazy_pattern(r"\s{0,8}[=-]{3,200}\s*|\s{0,8}(?:Errors|Warnings|INCOMPLETE|DEAD|MISMATCH)\s*")


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
    line: JobEvidence


class Snapshot:
    """One dump of RAS."""

    def __init__(self, name: str) -> None:
        self.name = name

        self.counts: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # communicator, function: count: ranks
        self.listed: dict[tuple[str, str, int], list[Listed]] = defaultdict(list)
        self.dead: list[RasProcess] = []
        self.unanswered: list[RasProcess] = []


class SnapshotReader:
    """Reads a snapshot in RAS's own layout, line by line, from "Job summary" on."""

    def __init__(self, name: str) -> None:
        self.snapshot = Snapshot(name)
        self.ended = False
        self._communicator, self._function, self._count = "", "", 0
        self._processes: list[RasProcess] | None = None
        self._foreign = 0  # lines since the last one of the snapshot

    def read_line(self, line: str, number: int) -> bool:
        """Whether it is a line of the snapshot."""
        own = self._read(line, JobEvidence(text=line.strip()[:300], source=self.snapshot.name, line=number))
        self._foreign = 0 if own else self._foreign + bool(line.strip())
        self.ended = self._foreign > _MOST_FOREIGN or _FIRST_LINE.search(line) is not None
        return own or (bool(_RULER.fullmatch(line)) and not self.ended)

    def _read(self, line: str, evidence: JobEvidence) -> bool:
        snapshot = self.snapshot
        if match := _COMMUNICATOR.match(line):
            self._communicator, self._processes = match["hash"], None
        elif match := _FUNCTION.match(line):
            self._function = match["function"]
        elif match := _MANY.match(line):
            self._count = int(match["count"])
            snapshot.counts[self._communicator, self._function][self._count] = int(match["ranks"])
        elif match := _ONE.match(line):
            if match["count"]:
                self._count = int(match["count"])
                ranks = snapshot.counts[self._communicator, self._function]
                ranks[self._count] = ranks.get(self._count, 0) + 1
            listed = Listed(int(match["rank"]), int(match["gpu"]), int(match["pid"]), match["node"], evidence)
            if len(snapshot.listed) < _MOST:
                snapshot.listed[self._communicator, self._function, self._count].append(listed)
        elif _DEAD.match(line):
            self._processes = snapshot.dead
        elif _MISSING.match(line):
            self._processes = snapshot.unanswered
        elif self._processes is not None and (match := _PROCESS.match(line)):
            if len(self._processes) < _MOST:
                self._processes.append(RasProcess(int(match["pid"]), match["node"], evidence))
        else:
            return _RANKS.match(line) is not None
        return True


class JsonSnapshotReader:
    """Reads a snapshot as JSON that is written into a log, line by line, from its first key on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.snapshot: Snapshot | None = None
        self.ended = False
        self._parts: list[str] = []
        self._line: int | None = None
        self._size, self._depth, self._foreign = 0, 0, 0

    def read_line(self, line: str, number: int) -> bool:
        """Whether it is a line of the snapshot."""
        text = line.strip()
        if not self._parts:
            self._line = number
            text = text[text.find("{") :] if "{" in text.partition('"')[0] else "{" + text  # a line of its own
        elif text and not _JSON_LINE.fullmatch(text):
            self._foreign += 1
            self.ended = self._foreign > _MOST_FOREIGN
            return False
        self._foreign = 0
        self._parts.append(text)
        self._size += len(text)
        bare = _STRING.sub("", text)
        self._depth += bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")
        self.ended = self._depth <= 0 or self._size > _MOST_CHARACTERS
        if self._depth <= 0:
            with contextlib.suppress(ValueError, RecursionError):
                self.snapshot = read_json(self.name, "".join(self._parts).encode(), self._line)
        return True


# A line of JSON, however it is indented; "[0]" and "[rank0]" begin lines of logs
_JSON_LINE = lazy_pattern(r'(?:[{}\],]|\[\s*(?:[{\["\]]|-?\d{1,20}\s*,|$)|"|-?\d|true\b|false\b|null\b).*')
_STRING = lazy_pattern(r'"(?:[^"\\]|\\.?)*(?:"|\Z)', re.DOTALL)  # one without an end goes on to the end of the text
_MOST_CHARACTERS = 64 << 20


class _RasStatus(msgspec.Struct, frozen=True):
    considered_dead: bool = False


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
    communicators: list[_Communicator] = []


def read_json(name: str, data: bytes, line: int | None = None) -> Snapshot:
    """A snapshot as JSON. Raises ValueError."""
    document = msgspec.json.decode(data, type=_Document)
    snapshot = Snapshot(name)

    for communicator in document.communicators[:_MOST]:
        key = str(communicator.hash)

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
                    snapshot.listed[key, function, count] += [
                        _list_rank(JobEvidence(text="", source=name, line=line), key, function, rank) for rank in ranks
                    ]
        for rank in communicator.missing_ranks:
            text = (
                f"communicator {key}: rank {rank.rank} on {rank.host}, process {rank.pid}: "
                f"{'considered dead' if rank.status.considered_dead else 'no answer'}"
            )
            row = RasProcess(rank.pid, rank.host, JobEvidence(text=text, source=name, line=line))
            (snapshot.dead if rank.status.considered_dead else snapshot.unanswered).append(row)
    return snapshot


def _list_rank(place: JobEvidence, key: str, function: str, rank: _Rank) -> Listed:
    text = (
        f"communicator {key}: rank {rank.rank} on {rank.host} is at {function} "
        f"{rank.collective_counts.get(function, 0)}"
    )
    return Listed(rank.rank, rank.cuda_dev, rank.pid, rank.host, msgspec.structs.replace(place, text=text))
