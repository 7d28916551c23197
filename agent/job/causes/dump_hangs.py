"""Which rank did not come to a collective of a process group, or came late, by dumps of PyTorch's flight recorder.

Clocks of hosts differ: a collective ends on all its ranks at one time, which gives each rank's offset. A thread notices
the end some 100 ms later, so delays below a second are not decided.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, find_hosts, name_numbers, suspect_ranks
from agent.job.dumps.flight_recorder import Dumps
from agent.job.evidence import Evidence
from probes.text import find_median

_LEAST_JOINT = 20
_LEAST_DELAY = 1.0  # seconds
_SHARE = 0.8  # of the collectives in which it is the last


def find_dump_hangs(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks that others wait for, in whatever group."""
    dumps = evidence.dumps
    if dumps is None:
        return
    missing: dict[int, list[tuple[str, int, int]]] = defaultdict(list)  # rank: group, its number, that others wait in
    stuck: list[tuple[str, int, list[int]]] = []
    absent: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name, members in sorted(dumps.members.items()):
        ranks = list(members) or list(dumps.states)
        states = {
            rank: dumps.states[rank][name] for rank in ranks if rank in dumps.states and name in dumps.states[rank]
        }
        waits = Counter(state.waits for state in states.values() if state.is_waiting and state.waits is not None)
        if not waits:
            continue
        sequence = max(waits)
        waiting = [rank for rank, state in states.items() if state.waits == sequence and state.is_waiting]
        behind = [rank for rank, state in states.items() if -1 <= state.enqueued < sequence]
        operations = Counter(operation for rank in waiting if (operation := states[rank].operations.get(sequence)))
        if len(operations) > 1:
            yield _differ(
                evidence, dumps, name, sequence, {rank: states[rank].operations.get(sequence, "") for rank in waiting}
            )
        for rank in behind:
            missing[rank].append((name, states[rank].enqueued, sequence))
        for rank in members:
            if rank not in dumps.states:
                absent[rank].append((name, sequence))
        if not behind and set(ranks) <= set(states):
            stuck.append((name, sequence, waiting))
    waits_elsewhere = {
        rank for rank, of_rank in dumps.states.items() if any(state.is_waiting for state in of_rank.values())
    }
    roots = {rank: rows for rank, rows in missing.items() if rank not in waits_elsewhere}
    if roots:
        yield _missing(evidence, dumps, roots)
    elif missing:
        yield _in_circle(evidence, dumps, missing)
    elif absent:
        yield _absent(evidence, absent)
    elif stuck:
        yield _stuck(evidence, dumps, stuck)


def _missing(evidence: Evidence, dumps: Dumps, roots: dict[int, list[tuple[str, int, int]]]) -> PossibleCause:
    ranks = sorted(roots)
    first = sorted(roots[ranks[0]], key=lambda row: (len(dumps.members.get(row[0], {})) or 1 << 30, row[0]))
    groups = "; ".join(f"{name} at {sequence} (its last is {last})" for name, last, sequence in first[:4])
    waiting = sum(any(state.is_waiting for state in of_rank.values()) for of_rank in dumps.states.values())
    text = f"is missing in {groups}; {waiting} ranks wait for it, directly or indirectly"
    candidate = suspect_ranks(evidence, "rank-behind", "missing", ranks, text)
    for rank in ranks[:4]:
        for name, last, sequence in roots[rank][:2]:
            text = f"{name} ({dumps.titles.get(name, name)}): last enqueued {last}; others wait in {sequence}"
            candidate.show_text(text, dumps.files[rank])
    candidate.next = [
        f"what rank {ranks[0]} did after its last collective: its own log, the frames of its dump, `py-spy dump`",
        f"`fabricscope scan` on {next(iter(candidate.hosts), 'its host')}: GPU, CPU and kernel log",
    ]
    return candidate


def _in_circle(evidence: Evidence, dumps: Dumps, missing: dict[int, list[tuple[str, int, int]]]) -> PossibleCause:
    ranks = sorted(missing)
    names = sorted({row[0] for rows in missing.values() for row in rows})
    text = (
        f"ranks wait for each other in groups {', '.join(names[:4])}: they call collectives of these groups in "
        f"different order"
    )
    candidate = PossibleCause("groups-wait-for-each-other", "missing", "software", text, "medium")
    candidate.blame(ranks, find_hosts(evidence, ranks))
    for rank in ranks[:3]:
        waits = (f"{name}: last {last}, others wait in {sequence}" for name, last, sequence in missing[rank][:3])
        candidate.show_text("; ".join(waits), dumps.files[rank])
    candidate.next = ["the order in which the program uses these groups, on one rank of each"]
    return candidate


def _absent(evidence: Evidence, absent: dict[int, list[tuple[str, int]]]) -> PossibleCause:
    ranks = sorted(absent)
    name, sequence = absent[ranks[0]][0]
    text = f"left no dump; others wait in {name} at {sequence}"
    candidate = suspect_ranks(evidence, "rank-silent", "missing", ranks, text, "low")
    candidate.next = [f"the dump or log of rank {name_numbers(ranks[:8])}: it ended first, or its dump was not saved"]
    return candidate


def _stuck(evidence: Evidence, dumps: Dumps, stuck: list[tuple[str, int, list[int]]]) -> PossibleCause:
    name, sequence, waiting = min(stuck, key=lambda row: (len(row[2]), row[0]))
    text = (
        f"all ranks of {name} entered collective {sequence}, and none completed it: the network or a GPU of the group"
    )
    candidate = PossibleCause("collective-stuck", "hang", "fabric", text, "medium")
    candidate.waits_for_all = True
    candidate.blame(sorted(waiting), find_hosts(evidence, waiting))
    operation = dumps.states[waiting[0]][name].operations.get(sequence, "collective")
    candidate.show_text(f"{name}: {operation} {sequence} is not completed", dumps.files[waiting[0]])
    candidate.next = ["warnings of NCCL on these ranks, and kernel logs of their hosts: links and Xids"]
    return candidate


def _differ(evidence: Evidence, dumps: Dumps, name: str, sequence: int, operations: dict[int, str]) -> PossibleCause:
    groups: dict[str, list[int]] = defaultdict(list)
    for rank, operation in operations.items():
        groups[operation].append(rank)
    texts = [
        f"{operation} by ranks {name_numbers(ranks)}"
        for operation, ranks in sorted(groups.items(), key=lambda item: len(item[1]))
    ]
    few = min(groups.values(), key=len)
    text = f"ranks call different collectives as number {sequence} of {name}: {'; '.join(texts[:3])}"
    candidate = PossibleCause("collectives-differ", "hard", "software", text)
    candidate.blame(sorted(few), find_hosts(evidence, few))
    for operation, ranks in list(groups.items())[:3]:
        candidate.show_text(f"{name} {sequence}: {operation}", dumps.files[ranks[0]])
    candidate.next = ["the frames of this entry in both dumps: a branch or shape that differs between ranks"]
    return candidate


def find_dump_delays(evidence: Evidence) -> Iterator[PossibleCause]:
    """The rank for which most collectives of a group wait; of several groups the one that shows it best."""
    dumps = evidence.dumps
    if dumps is None:
        return
    late: dict[int, tuple[float, str]] = {}
    for name in sorted({group for states in dumps.states.values() for group in states}):
        for rank, delay in _measure(dumps, name).items():
            late[rank] = max(late.get(rank, (0.0, "")), (delay, name))
    for rank, (delay, name) in sorted(late.items()):
        title = dumps.titles.get(name, name)
        text = f"enqueues its collectives late: {delay:.2g} s after the other ranks of {title}, clocks corrected"
        candidate = suspect_ranks(evidence, "rank-late", "slow", [rank], text, "medium")
        text = f"{name} ({title}): enqueued {delay:.3g} s after the others in the middle"
        candidate.show_text(text, dumps.files[rank])
        candidate.next = [
            f"the data loader and CPU of {candidate.name(evidence)}, its GPU's clocks and Xids: `fabricscope scan` on "
            f"{next(iter(candidate.hosts), 'its host')}"
        ]
        yield candidate


def _measure(dumps: Dumps, name: str) -> dict[int, float]:
    """Ranks that are the last in most collectives, and by how many seconds in the middle."""
    states = {rank: of_rank[name] for rank, of_rank in dumps.states.items() if name in of_rank}
    if len(states) < 3:
        return {}
    joint = set.intersection(*(state.created.keys() & state.done.keys() for state in states.values()))
    if len(joint) < _LEAST_JOINT:
        return {}
    ends = {number: find_median(state.done[number] for state in states.values()) for number in joint}
    offsets = {rank: find_median(state.done[n] - ends[n] for n in joint) for rank, state in states.items()}
    starts = {rank: {n: state.created[n] - offsets[rank] for n in joint} for rank, state in states.items()}
    usual = {n: find_median(times[n] for times in starts.values()) for n in joint}
    last = {n: max(starts, key=lambda rank: starts[rank][n]) for n in joint}
    late = {}
    for rank, times in starts.items():
        delay = find_median(times[n] - usual[n] for n in joint) / 1e9
        if delay >= _LEAST_DELAY and sum(last[n] == rank for n in joint) >= _SHARE * len(joint):
            late[rank] = delay
    return late
