"""A hang that stacks of the processes show: those that wait in a collective, and those that are elsewhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from os.path import basename
from typing import NamedTuple

from agent.job.candidate import PossibleCause, name_numbers, suspect_ranks
from agent.job.dumps.stacks import Stack
from agent.job.evidence import Evidence
from agent.job.line_forms import SLOT, FormLine, LineForm, LineWriter
from probes.text import lazy_pattern

_INNER = 8  # frames that show what a thread is in
_COLLECTIVE = lazy_pattern(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|barrier|_?coalesc\w{1,12}|(?:batch_)?i?(?:send|recv)"
    r"(?:_\w{1,40})?|scatter|gather|wait_for_everyone|synchronize|wait_and_clear|_wait_for_dist\w{0,20}",
    re.IGNORECASE,
)
_OF_COLLECTIVES = lazy_pattern(
    r"distributed|c10d|nccl|rccl|hccl|horovod|mpi|gloo|accelerate|deepspeed/(?:comm|runtime/pipe)|megatron/core/"
    r"(?:pipeline|tensor)_parallel|torch/(?:cuda|npu|hip)/__init__|multihost_utils",
    re.IGNORECASE,
)
# What a process is in, by its innermost frames; the first kind that fits
_KINDS = (
    (lazy_pattern(r"baton|file_?lock|portalocker|fcntl"), "it waits for a lock file", (
        "the lock file in the folder that this library caches in (`ls -l`, `fuser -v LOCK`): one that no process has "
        "open was left by a job that was killed; delete it and start again",
    )),
    (lazy_pattern(r"urllib3|requests/|http/|aiohttp|botocore|huggingface_hub|ssl\.py|socket\.py"),
     "it loads something over the network, or waits for a service", (
        "what it loads: a copy on local or shared storage, the offline mode of the library; proxy and DNS of its host",
    )),
    (lazy_pattern(r"dataloader|data_?loader|webdataset|queues?\.py|datasets/"), "it waits for its data", (
        "its data loader: `py-spy dump` of the workers, the storage that they read (`nfsiostat 5`, `iostat -x 5`)",
    )),
    (lazy_pattern(r"compil|inductor|triton/|nvrtc|ninja|cpp_extension"), "it compiles", (
        "what is compiled for so long: its input; compiled before the job, or with a time limit of its own",
    )),
    (lazy_pattern(r"shutil|rmtree|unlink|fsync|serialization\.py|zipfile|checkpoint|glob\.py|listdir|scandir|pathlib"),
     "it uses files", (
        "the storage of that folder: `findmnt -T FOLDER`, `strace -f -p PID`, the kernel log (nfs, lustre, gpfs); "
        "many small files are slow to write and to delete on network storage",
    )),
)  # fmt: skip


def find_elsewhere(evidence: Evidence) -> Iterator[PossibleCause]:
    """Processes that are not in the collective in which the others wait; or all of them in one and the same wait."""
    stacks = {(stack.line.file, stack.pid or stack.line.number): stack for stack in evidence.stacks if stack.frames}
    last = max((stack.line for stack in stacks.values()), key=lambda line: (line.file, line.number), default=None)
    if last is None or any(number > last.number for number in evidence.last_steps.get(last.file, ())):
        return
    waiting = [stack for stack in stacks.values() if _find_collective(stack)]
    others = [stack for stack in stacks.values() if not _find_collective(stack)]
    if not others or (waiting and len(others) > len(waiting)):
        return
    kind = _read_kind(others[0])
    if not waiting and (kind is None or any(_read_kind(stack) != kind for stack in others)):
        return  # what is slow there, if anything, these stacks do not show
    file, call = others[0].frames[0]
    where = f"{call} ({basename(file)})"
    means = f": {_KINDS[kind][1]}" if kind is not None else ""
    candidate = PossibleCause("stack-elsewhere", "missing", "rank", "", "low" if kind is None else "medium")
    candidate.blame(rank for stack in others if (rank := _find_rank(evidence, stack)) is not None)
    for stack in others[:3]:
        candidate.add(evidence, stack.line)
    frames = [f"{call} ({file})" for file, call in others[0].frames[:4]]
    candidate.show_text(" < ".join(frames), evidence.names[others[0].line.file], others[0].line.number + 1)
    if waiting:
        text = f"is in {where}{means}, while {len(waiting)} others wait for it in {_find_collective(waiting[0])}"
    else:
        text = f"{'waits' if len(others) == 1 else 'wait'} in {where}{means}; none of these stacks is in a collective"
    candidate.summary = f"{_name(evidence, candidate, others)} {text}"
    if kind is not None:
        candidate.summary += ": not the GPUs, and not their network"
    candidate.next = list(_KINDS[kind][2]) if kind is not None else [f"the program at {where}, and what called it"]
    candidate.next.append("`py-spy dump` once more after a minute: a stack that changes is slow, and does not hang")
    if waiting:
        candidate.waiting = frozenset(rank for row in waiting if (rank := _find_rank(evidence, row)) is not None)
    else:
        candidate.fault = "software"
    yield candidate


# Work that one rank does for all, or before it comes to them; steps of the training are none
_WORK = lazy_pattern(
    r"(?i)\b(?:index\w*|token\w*|map(?:ping)?|download\w*|convert\w*|build\w*|compil\w*|load\w*|copy\w*|cop(?:y|ied)|"
    r"pre-?process\w*|extract\w*|shuffl\w*|prepar\w*|pack\w*|sort\w*|merg\w*|stag(?:e|ing)|sync\w*|writ\w*|warm\w*)\b"
)
_OF_STEPS = lazy_pattern(r"(?i)\b(?:loss|lr|grad\w*|train\w*|epoch)\b")
_COUNTED = lazy_pattern(rf"{SLOT} ?%|{SLOT} ?(?:/|of) ?{SLOT}|\({SLOT}/{SLOT}\)")
_OWN = lazy_pattern(rf"\b[Rr]ank[ :=#]{{1,2}}{SLOT}")
_LEAST_ROWS = 3


class _WorkLine(NamedTuple):
    """A line that counts work, and the first one of its form."""

    place: FormLine
    form: LineForm
    row: tuple[str, ...]

    def read_share(self) -> float:
        """How much of the work is done, by the line's first count: 12%, 3/16."""
        text = self.form.text
        match = _COUNTED.search(text)
        at = text.count(SLOT, 0, match.start()) if match is not None else 0
        numbers = self.row[at : at + (match[0].count(SLOT) if match is not None else 0)]
        if not numbers or not all(value.replace(".", "", 1).isdecimal() for value in numbers):
            return 0.0
        of = float(numbers[1]) if len(numbers) > 1 else 100.0
        return float(numbers[0]) / of if of else 0.0


def find_busy(evidence: Evidence, hang: PossibleCause) -> PossibleCause:
    """The one rank that, while the others waited, went on with work of its own that it counts; else the hang itself."""
    work: dict[tuple[LineWriter, str], list[_WorkLine]] = defaultdict(list)
    for text, form in evidence.forms.forms.items():
        count = _COUNTED.search(text)
        if count is not None and _WORK.search(text) is not None and not _OF_STEPS.search(text):
            for writer, rows in form.rows.items():  # what is behind the number may be another file each time
                work[writer, text[: count.end()]] += [_WorkLine(form.first[writer], form, row) for row in rows]
    busy: dict[int, _WorkLine] = {}
    for (writer, begin), lines in work.items():
        lines.sort(key=lambda line: line.place.number)
        first, rank = lines[0].place, _find_worker(begin, writer, [line.row for line in lines])
        went_on = any(number > first.number for number in evidence.last_steps.get(first.file, ()))
        shares = [line.read_share() for line in lines]
        grows = len(shares) >= _LEAST_ROWS and shares == sorted(shares) and shares[0] < shares[-1] < 1
        if rank is not None and rank not in hang.waiting and not went_on and grows:
            busy[rank] = lines[-1]
    if len(busy) != 1:
        return hang
    rank, last = next(iter(busy.items()))
    text = last.form.write(last.row)[:160]
    found = f"was at other work in its last lines, and {len(hang.waiting)} ranks waited for it: {text}"
    candidate = suspect_ranks(evidence, "rank-busy", "missing", [rank], found, "medium")
    candidate.fault = "software"
    candidate.show_text(text, evidence.names[last.place.file])
    candidate.evidence += hang.evidence[:1]
    candidate.at, candidate.first_line, candidate.waiting = hang.at, hang.first_line, hang.waiting
    candidate.next = [
        "do that work before the job, and save its result where all ranks read it",
        "or a longer time-out of the group: `init_process_group(timeout=..)`; why it takes so long: CPUs, storage",
    ]
    return candidate


def _find_worker(text: str, writer: LineWriter, rows: Sequence[tuple[str, ...]]) -> int | None:
    """Who does the work: the writer of the lines, else the rank that they name."""
    rank = writer.rank if writer.rank is not None else writer.task
    match = _OWN.search(text)
    if rank is not None or match is None:
        return rank
    named = {row[text.count(SLOT, 0, match.end()) - 1] for row in rows}
    only = next(iter(named)) if len(named) == 1 else ""
    return int(only) if only.isdecimal() else None


def _find_rank(evidence: Evidence, stack: Stack) -> int | None:
    return stack.rank if stack.rank is not None else evidence.rank_of(stack.line)


def _find_collective(stack: Stack) -> str | None:
    """The function of a collective in which a thread waits; the outermost of the innermost frames names it best."""
    calls = [
        call
        for file, call in stack.frames[:_INNER]
        if _COLLECTIVE.fullmatch(call.rpartition(".")[2]) and _OF_COLLECTIVES.search(file)
    ]
    return calls[-1] if calls else None


def _read_kind(stack: Stack) -> int | None:
    """What the innermost frames show that a thread is in."""
    for file, call in stack.frames[:_INNER]:
        for number, (pattern, _, _) in enumerate(_KINDS):
            if pattern.search(f"{file} {call}"):
                return number
    return None


def _name(evidence: Evidence, candidate: PossibleCause, stacks: Sequence[Stack]) -> str:
    if candidate.ranks:
        return candidate.name(evidence)
    pids = [stack.pid for stack in stacks if stack.pid is not None]
    return f"{'process' if len(pids) == 1 else 'processes'} {name_numbers(pids)}" if pids else "a process"
