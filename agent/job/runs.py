"""Several jobs in the files: a restart in one log, or the log of another job in the folder.

A process that takes a GPU which another process of the files had is of a later job, where the earlier one had ended:
by lines that end a job, or by times that do not overlap. Attempts of torchrun are jobs by the name of their folder, or
by the line in which its agent announces the next one.
Logs of different hosts that have the same rank of a whole job, or numbers of two jobs of Slurm in their names, are of
jobs that may have run at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, pairwise
from typing import NamedTuple

from agent.job.evidence import Evidence
from agent.job.lines import WHOLE, Part
from agent.job.ranks import Process
from probes.text import lazy_pattern

MOST_RUNS = 8
_MOST_CONCURRENT = 64
_APART = 60.0  # seconds between the time-outs of two jobs
_SLURM = lazy_pattern(r"(?:^|[/_.-])slurm[-_](\d{1,12}(?:_\d{1,9})?)(?!\d)")
_ATTEMPT = lazy_pattern(r"(?:^|/)attempt_(\d{1,6})/")


class Run(NamedTuple):
    """One job of the files."""

    parts: dict[str, Part | None]  # by log; None: nothing in it is of this job
    is_attempt: bool = False  # of one job, which its launcher starts again


class _Group:
    """Processes that share communicators."""

    def __init__(self, processes: list[Process]) -> None:
        self.devices = {(process.host, device) for process in processes if (device := _device(process)) is not None}
        self.first: dict[int, int] = {}  # by file
        self.last: dict[int, int] = {}
        for process in processes:
            for file, line in process.first_lines.items():
                self.first[file] = min(line, self.first.get(file, line))
                self.last[file] = max(line, self.last.get(file, line))

    @property
    def place(self) -> tuple[int, int]:
        """Where it begins."""
        return min(self.first.items())


def find_runs(evidence: Evidence) -> list[Run]:
    """The jobs, in order; one where nothing separates them."""
    names = evidence.names
    attempts = sorted({int(match[1]) for name in names if (match := _ATTEMPT.search(name)) is not None})
    if len(attempts) > 1:
        return [Run({name: WHOLE if _is_of(name, attempt) else None for name in names}) for attempt in attempts]
    groups = _find_groups(evidence)
    concurrent = _find_concurrent(evidence, groups)
    if len(concurrent) > 1:
        return concurrent
    runs: list[list[_Group]] = []
    for group in groups:
        own = next((run for run in runs if not any(_is_later(evidence, group, one) for one in run)), None)
        if own is None:
            runs.append([group])
        else:
            own.append(group)
    if len(runs) < 2:
        return _find_by_restarts(evidence) or _find_by_timeouts(evidence)
    return _make_runs(evidence, runs)


def _find_concurrent(evidence: Evidence, groups: list[_Group]) -> list[Run]:
    """Jobs of other hosts in files of their own; files that no line gives to one of them are read for each."""
    names = evidence.names
    numbers = {file: match[1] for file, name in enumerate(names) if (match := _SLURM.search(name)) is not None}
    ties = [sorted(group.first) for group in groups]
    ties += [[file for file in numbers if numbers[file] == number] for number in dict.fromkeys(numbers.values())]
    of_file = _join_files(len(names), ties)
    apart = [(one, other) for one in numbers for other in numbers if numbers[one] < numbers[other]]
    for files in evidence.ranks.rank_files.values():
        hosts = {file: evidence.ranks.file_hosts[file].keys() for file in files if evidence.ranks.file_hosts.get(file)}
        if len(hosts) > _MOST_CONCURRENT:
            return []
        apart += [(one, other) for one, other in combinations(hosts, 2) if hosts[one].isdisjoint(hosts[other])]
    jobs = sorted({of_file[file] for pair in apart for file in pair})
    if any(of_file[one] == of_file[other] for one, other in apart) or len(jobs) > _MOST_CONCURRENT:
        return []
    different = {frozenset((of_file[one], of_file[other])) for one, other in apart}
    if len(different) < len(jobs) * (len(jobs) - 1) // 2:
        return []  # it is not known which are the same
    return [
        Run({name: WHOLE if of_file[file] == job or of_file[file] not in jobs else None
             for file, name in enumerate(names)})
        for job in jobs
    ]  # fmt: skip


def _join_files(count: int, ties: list[list[int]]) -> list[int]:
    """The first file that each file is tied to."""
    firsts = list(range(count))
    for files in ties:
        joined = {firsts[file] for file in files}
        firsts = [min(joined) if first in joined else first for first in firsts]
    return firsts


def _find_by_restarts(evidence: Evidence) -> list[Run]:
    """An agent of torchrun writes that it starts its processes again, and how many attempts are left."""
    begins: dict[int, dict[int, int]] = defaultdict(dict)  # by file and attempts that are left
    for event in evidence.events.values():
        if event.row.id == "workers-restarted":
            own, left = begins[event.line.file], int(event.groups["number"])
            own[left] = min(event.line.number, own.get(left, event.line.number))
    cuts = [[lines[left] for left in sorted(lines, reverse=True)] for lines in begins.values()]
    if len({frozenset(lines) for lines in begins.values()}) != 1 or any(lines != sorted(lines) for lines in cuts):
        return []  # there is none, or it is not known which attempts are the same
    runs: list[dict[str, Part | None]] = [dict.fromkeys(evidence.names, WHOLE) for _ in (0, *cuts[0])]
    for file, lines in zip(begins, cuts, strict=True):
        for parts, (first, last) in zip(runs, pairwise([0, *lines, WHOLE.last]), strict=True):
            parts[evidence.names[file]] = Part(first + 1, last)
    return [Run(parts, True) for parts in runs]


def _find_by_timeouts(evidence: Evidence) -> list[Run]:
    """A time-out ends its process: a rank that has a second one, of another collective and much later, ran again."""
    begins: dict[int, list[int]] = defaultdict(list)  # by file: first lines of further jobs
    seen: dict[tuple[int, int], tuple[int, float, int]] = {}  # file and rank: sequence, time, job
    for state in sorted(evidence.watchdog, key=lambda state: (state.line.file, state.line.number)):
        file, at = state.line.file, state.line.at
        if state.waits is None or at is None:
            continue
        sequence, seconds, job = seen.get((file, state.rank), (state.waits, at.seconds, len(begins[file])))
        again = state.waits != sequence and at.seconds - seconds > _APART
        if again and job == len(begins[file]):
            begins[file].append(state.line.number)
        seen[file, state.rank] = state.waits, at.seconds, len(begins[file])
    several = [file for file, lines in begins.items() if lines]
    if len(several) != 1:  # in several files it is not known which jobs are the same
        return [Run(dict.fromkeys(evidence.names, WHOLE))]
    lines = [1, *begins[several[0]], WHOLE.last + 1]
    name = evidence.names[several[0]]
    return [Run({**dict.fromkeys(evidence.names, WHOLE), name: Part(first, last - 1)})
            for first, last in pairwise(lines)]  # fmt: skip


def _is_of(name: str, attempt: int) -> bool:
    match = _ATTEMPT.search(name)
    return match is None or int(match[1]) == attempt


def _find_groups(evidence: Evidence) -> list[_Group]:
    """Processes that are tied by communicators, in the order in which they begin."""
    parents: dict[object, object] = {}

    def find(key: object) -> object:
        while parents.setdefault(key, key) != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    ranked = {key: process for key, process in evidence.ranks.processes.items() if process.rank is not None}
    for name, members in evidence.ranks.communicators.items():
        for key in members:
            parents[find(key)] = find(name)
    grouped: dict[object, list[Process]] = defaultdict(list)
    taken: dict[object, int] = defaultdict(int)  # without commId: the nth process of a rank and size in a file
    for key, process in sorted(ranked.items(), key=lambda item: min(item[1].first_lines.items(), default=(0, 0))):
        root = find(key)
        if root == key and process.first_lines:
            claim = min(process.first_lines), process.rank, process.world
            root = "unnamed", process.world, taken[claim]
            taken[claim] += 1
        if process.first_lines:
            grouped[root].append(process)
    return sorted((_Group(processes) for processes in grouped.values()), key=lambda group: group.place)


def _device(process: Process) -> object:
    return process.bus or (process.nvml if process.nvml is not None else process.cuda)


def _is_later(evidence: Evidence, group: _Group, earlier: _Group) -> bool:
    """Whether a group is of another job than one that begins before it."""
    if group.devices.isdisjoint(earlier.devices):
        return False
    shared = group.first.keys() & earlier.first.keys()
    if shared:
        return all(
            earlier.last[file] < group.first[file]
            and any(number == file and earlier.first[file] <= line < group.first[file]
                    for number, line in evidence.end_lines)
            for file in shared
        )  # fmt: skip
    times = [evidence.file_times.get(file) for file in earlier.first]
    own = [evidence.file_times.get(file) for file in group.first]
    if any(time is None for time in (*times, *own)):
        return True
    ends = max(time[1] for time in times if time is not None), max(time[1] for time in own if time is not None)
    begins = min(time[0] for time in times if time is not None), min(time[0] for time in own if time is not None)
    return ends[0] <= begins[1] or ends[1] <= begins[0]


def _make_runs(evidence: Evidence, runs: list[list[_Group]]) -> list[Run]:
    """Each job's part of each file: a file is cut where the next job's first process writes."""
    parts: list[dict[str, Part | None]] = [dict.fromkeys(evidence.names) for _ in runs]
    of_runs: dict[int, dict[int, int]] = defaultdict(dict)  # file: run: first line
    for number, groups in enumerate(runs):
        for group in groups:
            for file, line in group.first.items():
                of_runs[file][number] = min(line, of_runs[file].get(number, line))
    for file, name in enumerate(evidence.names):
        begins = sorted((line, number) for number, line in of_runs.get(file, {}).items())
        if not begins:  # of no process that has a rank: it may be of each
            for part in parts:
                part[name] = WHOLE
        for place, (line, number) in enumerate(begins):
            first = 1 if place == 0 else line
            last = begins[place + 1][0] - 1 if place + 1 < len(begins) else WHOLE.last
            parts[number][name] = Part(first, last)
    return [Run(part) for part in parts]


def name_parts(run: Run) -> list[str]:
    """Where a job is in the files: "run.log, lines 120 to 340"."""
    texts = []
    for name, part in run.parts.items():
        if part is None:
            continue
        cut = part.first > 1 or part.last < WHOLE.last
        end = f"to {part.last}" if part.last < WHOLE.last else "to the end"
        texts.append(f"{name}, lines {part.first} {end}" if cut else name)
    return texts
