"""A rank that enqueues its collectives late, by the times in dumps of PyTorch's flight recorder.

Clocks of hosts differ: a collective ends on all its ranks at one time, which gives each rank's offset. A thread notices
the end some 100 ms later, so delays below a second are not decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from agent.job.candidate import PossibleCause, find_hosts, name_ranks
from agent.job.dumps.flight_recorder import Dumps
from agent.job.evidence import Evidence
from agent.model.job_answer import JobEvidence

_LEAST_JOINT = 20
_LEAST_DELAY = 1.0  # seconds
_SHARE = 0.8  # of the collectives in which it is the last


def find_dump_delays(evidence: Evidence) -> Iterator[PossibleCause]:
    """The rank for which most collectives of a group wait; of several groups the one that shows it best."""
    dumps: Dumps | None = evidence.dumps
    if dumps is None:
        return
    late: dict[int, tuple[float, str]] = {}
    for name in sorted({group for states in dumps.states.values() for group in states}):
        for rank, delay in _measure(dumps, name).items():
            late[rank] = max(late.get(rank, (0.0, "")), (delay, name))
    for rank, (delay, name) in sorted(late.items()):
        hosts = find_hosts(evidence, [rank])
        who = name_ranks(evidence, [rank], hosts)
        title = dumps.titles.get(name, name)
        candidate = PossibleCause(
            "rank-late",
            "slow",
            "rank",
            f"{who} enqueues its collectives late: {delay:.2g} s after the other ranks of {title}, clocks corrected",
            "medium",
        )
        candidate.blame([rank], hosts)
        text = f"{name} ({title}): enqueued {delay:.3g} s after the others in the middle"
        candidate.evidence.append(JobEvidence(text=text, source=dumps.files[rank]))
        candidate.next = [
            f"the data loader and CPU of {who}, its GPU's clocks and Xids: `fabricscope scan` on "
            f"{hosts[0] if hosts else 'its host'}"
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
    ends = {number: median(state.done[number] for state in states.values()) for number in joint}
    offsets = {rank: median(state.done[n] - ends[n] for n in joint) for rank, state in states.items()}
    starts = {rank: {n: state.created[n] - offsets[rank] for n in joint} for rank, state in states.items()}
    usual = {n: median(times[n] for times in starts.values()) for n in joint}
    last = {n: max(starts, key=lambda rank: starts[rank][n]) for n in joint}
    late = {}
    for rank, times in starts.items():
        delay = median(times[n] - usual[n] for n in joint) / 1e9
        if delay >= _LEAST_DELAY and sum(last[n] == rank for n in joint) >= _SHARE * len(joint):
            late[rank] = delay
    return late
