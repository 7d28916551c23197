"""A late rank, or a communicator that is slow as a whole, by the records of NCCL's Inspector.

In a collective that synchronizes, the late rank has the shortest time: the others wait for it. Records are samples, so
only sequence numbers that most ranks have are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from agent.job.candidate import PossibleCause, name_hosts, name_numbers
from agent.job.dumps.inspector import Inspector, Series
from agent.job.evidence import Evidence
from probes.text import find_median

_T = TypeVar("_T")
SYNCHRONIZING = frozenset(("AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "AllToAll"))
_LEAST_JOINT = 20
LEAST_JITTER = 50.0  # microseconds
_SLOW_FACTOR = 1.5  # times the siblings


class _Delays(NamedTuple):
    """What the times of one function in one communicator show."""

    times: list[float]  # the longest of each sequence number
    late: list[int]
    delay: float
    joint: int


def find_slow(evidence: Evidence) -> Iterator[PossibleCause]:
    """Late ranks first; else communicators that are slow beside their siblings."""
    inspector = evidence.inspector
    if inspector is None:
        return
    delays = {
        key: delay
        for key, series in inspector.series.items()
        if (delay := _measure(inspector, key, series)) is not None
    }
    late = list(_find_late(evidence, inspector, delays))
    yield from late
    if not late:
        yield from _find_slow_groups(inspector, delays)


def find_longer(times: Sequence[tuple[_T, float]]) -> tuple[float, list[tuple[_T, float]]]:
    """The time in the middle, and those that are far longer."""
    usual = find_median(time for _, time in times)
    return usual, [row for row in times if row[1] >= _SLOW_FACTOR * usual and row[1] - usual >= LEAST_JITTER]


def _measure(inspector: Inspector, key: tuple[str, str, int], series: Series) -> _Delays | None:
    """The delay of each rank: how much shorter its times are than the longest."""
    ranks = inspector.ranks[key[0]]
    joint = [row for row in series.rows.values() if sum(value > 0 for value in row) >= 0.8 * ranks]
    if ranks < 2 or not joint:
        return None
    longest = [max(row) for row in joint]
    late: list[int] = []
    delay = 0.0
    if key[1].split(" ")[0] in SYNCHRONIZING and len(joint) >= _LEAST_JOINT:
        delays = []
        for rank in range(ranks):
            values = [top - row[rank] for top, row in zip(longest, joint, strict=True) if row[rank] > 0]
            delays.append(find_median(values) if values else 0.0)
        usual = find_median(delays)
        for rank, value in enumerate(delays):
            if value < max(LEAST_JITTER, 5 * usual):
                continue
            short = [
                row[rank] < 0.5 * find_median(v for n, v in enumerate(row) if n != rank and v > 0)
                for row in joint
                if row[rank] > 0
            ]
            if short and sum(short) >= 0.8 * len(short):
                late.append(rank)
                delay = max(delay, value)
    return _Delays(longest, late, delay, len(joint))


def _find_late(
    evidence: Evidence, inspector: Inspector, delays: dict[tuple[str, str, int], _Delays]
) -> Iterator[PossibleCause]:
    """Processes that are late in every communicator they are in."""
    late: dict[tuple[str, int], list[tuple[str, int, float]]] = defaultdict(list)
    even: set[tuple[str, int]] = set()
    for (communicator, _, _), row in delays.items():
        if row.joint < _LEAST_JOINT:
            continue
        for rank, process in inspector.members[communicator].items():
            if rank in row.late:
                late[process].append((communicator, rank, row.delay))
            else:
                even.add(process)
    found = {process: rows for process, rows in late.items() if process not in even}
    by_host: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for process in found:
        by_host[process[0]].append(process)
    for host, processes in sorted(by_host.items()):
        rows = found[processes[0]]
        numbers = sorted(
            {number for process in processes if (number := _world_rank(evidence, inspector, process)) is not None}
        )
        who = (
            f"rank {name_numbers(numbers)}"
            if numbers
            else f"process {processes[0][1]}"
            if len(processes) == 1
            else f"{len(processes)} processes"
        )
        groups = sorted({inspector.names[row[0]] for process in processes for row in found[process]})
        text = (
            f"{who} on {host} is late in every collective: the others wait {rows[0][2] / 1000:.3g} ms for it "
            f"({', '.join(groups[:4])})"
        )
        if len(processes) > 1:
            text = f"{who} on {host} are late together: the host (CPU, clocks, storage), not one GPU"
        candidate = PossibleCause("rank-late", "slow", "rank", text, "medium")
        candidate.blame(numbers, [host])
        for communicator, rank, delay in rows[:3]:
            name = inspector.names[communicator]
            text = f"{name}: rank {rank} has the shortest times, by {delay:.0f} us in the middle"
            candidate.show_text(text, inspector.files[processes[0]])
        candidate.next = [
            f"clocks, throttling, PCIe width and Xids of the GPU on {host}: `fabricscope scan`; its CPU binding "
            f"and data loader",
        ]
        yield candidate


def _world_rank(evidence: Evidence, inspector: Inspector, process: tuple[str, int]) -> int | None:
    """The rank in the whole job: by the log, else in the largest communicator if that is all of it."""
    rank = evidence.ranks.rank_of(*process)
    if rank is not None:
        return rank
    everybody = len({member for members in inspector.members.values() for member in members.values()})
    for communicator, members in inspector.members.items():
        if inspector.ranks[communicator] >= everybody > 1:
            return next((number for number, member in members.items() if member == process), None)
    return None


def _find_slow_groups(inspector: Inspector, delays: dict[tuple[str, str, int], _Delays]) -> Iterator[PossibleCause]:
    """Communicators that take longer than their siblings of the same function, size and shape."""
    siblings: dict[tuple[str, int, int, int], list[tuple[str, float]]] = defaultdict(list)
    for (communicator, function, size), row in delays.items():
        shape = function, size, inspector.ranks[communicator], inspector.nodes[communicator]
        siblings[shape].append((communicator, find_median(row.times)))
    slow: dict[str, tuple[float, str]] = {}
    for (function, _, _, _), rows in sorted(siblings.items()):
        if len(rows) < 3:
            continue
        usual, above = find_longer(rows)
        if above and len(above) * 2 < len(rows):
            for name, time in above:
                slow.setdefault(name, (time / usual, function.split(" ")[0]))
    if not slow:
        return
    names = sorted(inspector.names[communicator] for communicator in slow)
    factor, function = max(slow.values())
    common, hosts, local = _common_part(inspector, list(slow))
    what = f"communicator {names[0]} is" if len(names) == 1 else f"communicators {', '.join(names[:4])} are"
    text = (
        f"{what} slow as a whole: {function} takes {factor:.2g} times as long as in its siblings, on all its "
        f"ranks alike; {common}"
    )
    candidate = PossibleCause("communicator-slow", "slow", "fabric" if len(hosts) > 1 else "rank", text, "medium")
    candidate.blame(hosts=hosts)
    candidate.local = local
    for communicator in list(slow)[:3]:
        member = next(iter(inspector.members[communicator].values()))
        times, of = slow[communicator]
        text = f"{inspector.names[communicator]}: {times:.2g} times the siblings' {of}"
        candidate.show_text(text, inspector.files.get(member, ""))
    candidate.next = [
        "ports, cables and switch of what they have in common: link errors, rates, drops: `fabricscope fleet "
        "topology`, `fabricscope scan`"
    ]
    yield candidate


def _common_part(inspector: Inspector, slow: list[str]) -> tuple[str, list[str], int | None]:
    """What all slow communicators have in common: the place of their processes on their hosts, or a host; the place."""
    processes: dict[str, set[int]] = defaultdict(set)
    for members in inspector.members.values():
        for host, pid in members.values():
            processes[host].add(pid)
    places = {(host, pid): number for host, pids in processes.items() for number, pid in enumerate(sorted(pids))}
    hosts = [{host for host, _ in inspector.members[name].values()} for name in slow]
    numbers = {places[member] for name in slow for member in inspector.members[name].values()}
    shared = sorted(set.intersection(*hosts))
    if len(numbers) == 1 and len(shared) > 1:
        number = numbers.pop()
        return (
            f"common to all of them: local rank {number} of every host, so GPU and rail {number} "
            f"({name_hosts(shared)})",
            shared,
            number,
        )
    if shared and len(shared) <= 2:
        return f"common to all of them: {', '.join(shared)}", shared, None
    return "no common part is known", sorted(set.union(*hosts)), None
