"""Which rank the others waited for, by the watchdog of PyTorch.

The rank that a time-out line names waited; the one that did not come is the one whose last enqueued work is smaller
(pytorch `ProcessGroupNCCL.cpp`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from agent.job.candidate import PossibleCause, find_hosts, name_numbers, name_ranks, suspect_ranks
from agent.job.causes.generic import find_generic
from agent.job.causes.stacks import find_busy
from agent.job.evidence import Evidence, LineEvent, WatchdogState
from agent.model.job_answer import RankLast

_UNKNOWN = -2


# Collectives to which all ranks of a group give the same number of elements
_ONE_SIZE = frozenset(("ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"))
_MOST_CALLS = 4
_SHORT_MILLISECONDS = 1000
_BY_SILENCE = frozenset(("collective-stuck", "rank-silent"))  # of which no line shows what the missing rank did
_CLOCKS = 5.0  # seconds by which lines of several ranks may be apart
_FIRST_NEXT = (
    "GPUs of one host: NCCL_P2P_DISABLE=1 for one run; where that works, peer-to-peer between them is blocked (ACS, "
    "IOMMU): `fabricscope scan` there; several hosts: NCCL_SOCKET_IFNAME and addresses of the rails"
)
_UNNAMED = ", unless these lines are of different groups (this version of PyTorch does not name them)"


class GroupState:
    """What the watchdogs of one process group show."""

    def __init__(self) -> None:
        self.waits: dict[int, WatchdogState] = {}  # by rank: the collective that it waited for
        self.enqueued: dict[int, WatchdogState] = {}


def read_groups(evidence: Evidence) -> dict[str, GroupState]:
    """By the name of the group; lines without one belong to the one group that is named, or to ""."""
    names = Counter(state.group for state in evidence.watchdog if state.group)
    only = next(iter(names)) if len(names) == 1 else ""
    groups: dict[str, GroupState] = defaultdict(GroupState)
    named: dict[tuple[int, int], str] = {
        (state.rank, state.waits): state.group for state in evidence.watchdog if state.group and state.waits is not None
    }
    for state in evidence.watchdog:
        name = state.group or named.get((state.rank, state.waits or 0)) or only
        group = groups[name]
        if state.waits is not None:
            known = group.waits.get(state.rank)
            if known is None or state.waits < (known.waits or 0) or (state.operation and not known.operation):
                group.waits[state.rank] = state  # the first of several that it waits for
        if state.enqueued != _UNKNOWN:
            known = group.enqueued.get(state.rank)
            if known is None or state.enqueued > known.enqueued:
                group.enqueued[state.rank] = state
    return groups


def find_watchdog_hangs(evidence: Evidence) -> Iterator[PossibleCause]:
    """A candidate for each group in which ranks waited."""
    groups = read_groups(evidence)
    waited = any(group.waits for group in groups.values())
    for name, group in groups.items():
        if group.waits:
            candidate = _judge_group(evidence, name, group)
            yield find_busy(evidence, candidate) if candidate.id in _BY_SILENCE else candidate
        else:
            dumps = list(_judge_dumps(evidence, group))
            yield from dumps
            waited = waited or bool(dumps)
    if not waited:
        yield from _judge_own_dumps(evidence)


def find_blocked_watchdogs(evidence: Evidence, events: list[LineEvent]) -> Iterator[PossibleCause]:
    """A watchdog that does not run: it is reported long after it stopped."""
    for candidate in find_generic(evidence, events):
        seconds = max((int(event.groups["seconds"]) for event in events if event.groups.get("seconds")), default=None)
        reported = [state.line.at.seconds for state in evidence.watchdog if state.waits is not None and state.line.at]
        if candidate.at is not None and seconds and reported:
            since = candidate.at.seconds - seconds
            if min(reported) - _CLOCKS <= since:  # what stopped it is that time-out: it hangs where it ends the group
                candidate.role, candidate.confidence = "consequence", "low"
        if candidate.at is not None:
            candidate.at = candidate.at._replace(seconds=candidate.at.seconds - seconds) if seconds else None
        yield candidate


def _judge_dumps(evidence: Evidence, group: GroupState) -> Iterator[PossibleCause]:
    """Ranks that were not waiting when another one's time-out started the dumps, whose own lines are not here."""
    idle = {rank: state for rank, state in group.enqueued.items() if state.enqueued == state.completed >= 0}
    named = {event.groups["whose"] for event in evidence.find_events("watchdog-dump")}
    others = sorted(name for name in named if name.startswith("rank "))
    if not idle or not others:
        return
    last = next(iter(idle.values()))
    text = (
        f"waited for nothing (its last work {last.enqueued} is completed) when {others[0]} timed out: it did not come "
        f"to the next collective, unless that is of another group"
    )
    candidate = suspect_ranks(evidence, "rank-behind", "missing", list(idle), text, "low")
    candidate.next = [
        f"the time-out line of {others[0]}: its group and sequence number",
        "`py-spy dump` of this rank while it hangs, its data loader and CPU; the kernel log of its host (Xids)",
    ]
    candidate.show(evidence, *(state.line for state in list(idle.values())[:2]))
    candidate.at = last.line.at
    yield candidate


def _judge_own_dumps(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks that dump because of a time-out of their own, whose line is not here."""
    events = [event for event in evidence.find_events("watchdog-dump") if event.groups["whose"] == "this local rank"]
    if not events:
        return
    candidate = PossibleCause("time-out-not-shown", "hang", "unknown", "", "low")
    candidate.add_events(evidence, events)
    who = candidate.name(evidence)
    candidate.summary = (
        f"{who} waited in a collective until the time-out; the line that names the collective is not here"
    )
    candidate.next = ["the lines before it: the first 'Watchdog caught collective operation timeout' of each rank"]
    candidate.ranks.clear()
    candidate.hosts.clear()
    yield candidate


def _different(evidence: Evidence, name: str, waiting: dict[int, WatchdogState], number: str) -> PossibleCause | None:
    """Ranks that call another collective, or give it another size, as the same work of one group."""
    calls: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    for rank, state in sorted(waiting.items()):
        if state.operation:
            calls[state.operation, state.size if state.operation in _ONE_SIZE else None].append(rank)
    if len(calls) < 2:
        return None
    several = len({operation for operation, _ in calls}) > 1
    listed = [
        f"{operation}{f' of {size} elements' if size is not None and not several else ''} on "
        f"{name_ranks(evidence, ranks, [])}"
        for (operation, size), ranks in list(calls.items())[:_MOST_CALLS]
    ]
    text = (
        f"ranks call different collectives as {number}: {', '.join(listed)}: the program's own error"
        f"{'' if name else _UNNAMED}"
    )
    candidate = PossibleCause("collectives-differ", "hard", "software", text, "high" if name else "medium")
    candidate.next = [
        "the branch of the program that only some ranks take, or batches whose shapes differ between ranks",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL for one run: it stops at the first call that differs, with its shapes",
    ]
    return _with_lines(evidence, candidate, [waiting[ranks[0]] for ranks in calls.values()])


def _apart(evidence: Evidence, name: str, group: GroupState) -> PossibleCause | None:
    """Ranks of one group that wait in different collectives: those with the smaller number are behind."""
    last = max(state.waits or 0 for state in group.waits.values())
    behind = {rank: state for rank, state in group.waits.items() if state.waits is not None and state.waits < last}
    ahead = {rank: state for rank, state in group.waits.items() if state.waits == last}
    if not behind or not ahead:
        return None
    if len(behind) > len(ahead):
        return _went_ahead(evidence, name, behind, ahead)
    first = next(iter(behind.values()))
    others = name_ranks(evidence, list(ahead), find_hosts(evidence, ahead))
    unsure = "" if name else _UNNAMED
    text = (
        f"waited in collective {first.waits}{f' ({first.operation})' if first.operation else ''}, and {others} in "
        f"{last}: behind, or not calling the same collectives{unsure}"
    )
    confidence = "medium" if name else "low"
    candidate = suspect_ranks(evidence, "rank-behind", "missing", list(behind), text, confidence)
    candidate.next = [
        "whether the ranks call equally many collectives: uneven batches, a branch that only some ranks take",
        "`py-spy dump` of that rank while it hangs; the kernel log of its host (Xids)",
    ]
    candidate.waiting = frozenset(group.waits)
    return _with_lines(evidence, candidate, [first, next(iter(ahead.values()))], ranks=False)


def _went_ahead(
    evidence: Evidence, name: str, behind: dict[int, WatchdogState], ahead: dict[int, WatchdogState]
) -> PossibleCause | None:
    """Few ranks that wait in a later collective of another kind than most: the order of calls differs."""
    first, last = next(iter(behind.values())), next(iter(ahead.values()))
    if not first.operation or not last.operation or first.operation == last.operation:
        return None
    most, few = (name_ranks(evidence, list(ranks), find_hosts(evidence, ranks)) for ranks in (behind, ahead))
    text = (
        f"{most} waited in collective {first.waits} ({first.operation}), and {few} in {last.waits} "
        f"({last.operation}): the ranks do not call the same collectives in one order, or {first.waits} ended on "
        f"{few} alone{'' if name else _UNNAMED}"
    )
    candidate = PossibleCause("collectives-apart", "hang", "software", text, "low")
    candidate.next = [
        f"what {few} does more than the others, or before them: a branch for rank 0, metrics, checkpoints, uneven "
        "batches",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL for one run: it stops at the first call that differs",
    ]
    candidate.waiting = frozenset((*behind, *ahead))
    return _with_lines(evidence, candidate, [first, last], ranks=False)


def last_of_ranks(evidence: Evidence) -> dict[int, RankLast]:
    """The last collective of each rank that a watchdog names."""
    last: dict[int, RankLast] = {}
    for name, group in read_groups(evidence).items():
        for rank, state in group.enqueued.items():
            waits = group.waits.get(rank)
            sequence = waits.waits if waits is not None else state.enqueued
            last[rank] = RankLast(
                group=_plain(name) or None, sequence=sequence, collective=waits.operation if waits else None
            )
    return last


def _plain(name: str) -> str:
    """ "default_pg" of "0(default_pg)"."""
    inner = name.partition("(")[2].rstrip(")")
    return inner or name


def _judge_group(evidence: Evidence, name: str, group: GroupState) -> PossibleCause:
    sequences = Counter(state.waits for state in group.waits.values())
    sequence = max(sequences, key=lambda number: (sequences[number], number or 0))
    waiting = {rank: state for rank, state in group.waits.items() if state.waits == sequence}
    operation = next((state.operation for state in waiting.values() if state.operation), None)
    of_group = f" of {'group ' if _plain(name).isdecimal() else ''}{_plain(name)}" if name else ""
    what = f"collective {sequence}{of_group}" if sequence is not None else f"a collective{of_group}"
    what += f" ({operation})" if operation else ""
    limit = min((state.limit_milliseconds for state in waiting.values() if state.limit_milliseconds), default=None)
    if limit is not None and limit < _SHORT_MILLISECONDS:
        return _too_short(evidence, what, waiting, limit)
    behind = {
        rank: state
        for rank, state in group.enqueued.items()
        if sequence is not None and state.enqueued < sequence and rank not in group.waits
    }
    if behind:
        return _late(evidence, what, waiting, behind)
    different = _different(evidence, name, waiting, f"number {sequence}{of_group}")
    if different is not None:
        return different
    apart = _apart(evidence, name, group)
    if apart is not None:
        return apart
    silent = _find_silent(evidence, name, group)
    if silent:
        return _silent(evidence, what, waiting, silent)
    return _all_wait(evidence, what, waiting, group, sequence)


def _too_short(evidence: Evidence, what: str, waiting: dict[int, WatchdogState], limit: int) -> PossibleCause:
    """A healthy collective takes longer: the first one alone connects all ranks."""
    text = f"the time-out of {what} is set to {limit} ms, which healthy collectives exceed, too"
    candidate = PossibleCause("time-out-short", "hang", "setting", text, "high")
    candidate.next = ["raise `timeout` of init_process_group: with NCCL it is 10 min by default, before PyTorch 2.2 30"]
    return _with_lines(evidence, candidate, list(waiting.values()))


def _late(
    evidence: Evidence, what: str, waiting: dict[int, WatchdogState], behind: dict[int, WatchdogState]
) -> PossibleCause:
    state = next(iter(behind.values()))
    waited = f"{len(waiting)} rank{'s' if len(waiting) > 1 else ''} waited until the time-out"
    text = f"did not come to {what}: its last work is {state.enqueued}; {waited}"
    candidate = suspect_ranks(evidence, "rank-behind", "missing", list(behind), text)
    host, who = next(iter(candidate.hosts), "its host"), candidate.name(evidence)
    candidate.next = [
        f"the cause is on {who}, before the network: `py-spy dump` of its process while it hangs, its data loader "
        f"and CPU",
        f"`fabricscope scan` on {host}, and its kernel log at that time (Xids)",
    ]
    first = min(waiting.values(), key=_seconds_of)
    candidate.show(evidence, *(late.line for late in behind.values()), first.line)
    candidate.at = first.line.at
    candidate.waiting = frozenset(waiting)
    if all(late.enqueued != late.completed for late in behind.values()):
        candidate.confidence = "medium"  # its own last work is not done: another group may hold it up
    return candidate


def _find_silent(evidence: Evidence, name: str, group: GroupState) -> list[int]:
    """Ranks without a line of the watchdog, where most others of the whole job have one."""
    ranks = evidence.ranks
    world = ranks.world or (max(ranks.host_of) + 1 if ranks.host_of else 0)
    if not world and (below := max(group.waits, default=-1) + 1) - len(group.waits) <= len(group.waits) // 3:
        world = below  # ranks below the highest exist: few that are missing among many that are there
    is_default = "default" in name or name in ("", "0")
    if not is_default or not world or len(group.waits) < max(2, world // 2):
        return []
    return [rank for rank in range(world) if rank not in group.waits and rank not in group.enqueued]


def _silent(evidence: Evidence, what: str, waiting: dict[int, WatchdogState], silent: list[int]) -> PossibleCause:
    ranks = evidence.ranks
    writers = {number for writer in evidence.forms.lines for number in (writer.rank, writer.task)}
    there = [rank for rank in silent if ranks.find(rank) is not None or rank in ranks.torch_files or rank in writers]
    how = "ended, or is blocked, without a line of its watchdog" if there else "has no line in these files"
    text = f"{how}; {len(waiting)} ranks waited for {what}"
    candidate = suspect_ranks(evidence, "rank-silent", "missing", silent, text, "medium" if there else "low")
    candidate.next = [
        "the launcher's table of exit codes, and the kernel log of that host: out of memory, Xids",
        f"the log of rank {name_numbers(silent[:8])}: it decides",
    ]
    candidate.waiting = frozenset(waiting)
    return _with_lines(evidence, candidate, list(waiting.values())[:2], ranks=False)


def _all_wait(
    evidence: Evidence, what: str, waiting: dict[int, WatchdogState], group: GroupState, sequence: int | None
) -> PossibleCause:
    """Everybody that is known entered: the network or a GPU of the group, or ranks whose lines are not here."""
    world = evidence.ranks.world
    everybody = bool(world) and len(group.waits) >= world
    first = "; the first collective: no collective ever worked" if sequence in (0, 1) else ""
    who = f"all {world} ranks" if everybody else f"{len(waiting)} ranks" if len(waiting) > 1 else f"rank {min(waiting)}"
    candidate = PossibleCause(
        "collective-stuck",
        "hang",
        "fabric" if everybody else "unknown",
        f"{who} waited in {what} until the time-out{first}; which rank is missing is unknown",
        "medium" if everybody else "low",
    )
    candidate.waits_for_all = True
    candidate.waiting = frozenset(group.waits)
    candidate.next = [
        *([_FIRST_NEXT] if first else ()),
        "warnings of NCCL before the time-out (NCCL_DEBUG=WARN on all ranks)",
        "kernel logs of all hosts: Xids, links that went down",
    ]
    if not everybody:
        candidate.next.insert(0, "the logs of all ranks: the one that did not come has another number")
    return _with_lines(evidence, candidate, list(waiting.values()), ranks=everybody)


def _seconds_of(state: WatchdogState) -> float:
    return state.line.at.seconds if state.line.at else 0.0


def _with_lines(
    evidence: Evidence, candidate: PossibleCause, states: list[WatchdogState], ranks: bool = True
) -> PossibleCause:
    ordered = sorted(states, key=_seconds_of)
    candidate.show(evidence, *(state.line for state in ordered[:2]))
    for state in ordered:
        place = state.line.file, state.line.number
        candidate.first_line = min(candidate.first_line or place, place)
        if ranks:
            candidate.ranks.setdefault(state.rank)
            if (host := evidence.ranks.host(state.rank)) is not None:
                candidate.hosts.setdefault(host)
        if state.line.at is not None and candidate.at is None:
            candidate.at = state.line.at
    return candidate
