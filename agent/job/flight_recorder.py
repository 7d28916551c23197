"""Dumps of PyTorch's flight recorder: which rank did not come to a collective of a process group.

Groups are joined by name and ranks: their numbers differ between ranks. Entries are a ring: what is older than the
oldest entry of a rank is unknown, never missing. Clocks are not used.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from agent.job.candidate import PossibleCause, name_numbers, name_ranks
from agent.job.evidence import Evidence
from agent.job.plain_pickle import LIMIT_BYTES, NotPlain, read_plain_pickle
from agent.model.job_answer import JobEvidence, RankLast

_MOST_ENTRIES = 100_000
_LAST_SEQUENCES = 64  # of a group, whose operations are kept to compare
_UNEVEN = ("all_to_all", "alltoall", "scatter", "gather", "send", "recv", "coalesced")  # sizes may differ between ranks


class DumpError(Exception):
    """No dump, or a damaged one."""


class _RecorderEntry(msgspec.Struct, frozen=True):
    """One operation; fields that are not needed are left out."""

    pg_id: int | None = None
    process_group: list[str] | None = None
    collective_seq_id: int | None = None
    seq_id: int | None = None  # of older versions
    profiling_name: str = ""
    state: str = ""
    is_p2p: bool = False
    retired: bool = False
    input_sizes: Any = None


class _GroupConfig(msgspec.Struct, frozen=True):
    name: str = ""
    desc: str = ""
    ranks: str | list[int] = ""


class _Status(msgspec.Struct, frozen=True):
    last_enqueued_collective: int | str = -1
    last_completed_collective: int | str = -1


class _Dump(msgspec.Struct, frozen=True):
    version: str = ""
    comm_lib_version: str | None = None
    nccl_version: str | None = None
    pg_config: dict[str, _GroupConfig] = {}
    pg_status: dict[str, _Status] = {}
    entries: list[_RecorderEntry] = []


class _GroupOfRank:
    """What one rank's dump shows of one group."""

    __slots__ = ("completed", "enqueued", "oldest", "operations", "waits")

    def __init__(self) -> None:
        self.enqueued = self.completed = -1
        self.oldest: int | None = None
        self.waits: int | None = None  # the first that is not done
        self.operations: dict[int, str] = {}


class Dumps:
    """All dumps of a job."""

    def __init__(self) -> None:
        self.members: dict[str, dict[int, None]] = {}  # of groups
        self.titles: dict[str, str] = {}
        self.states: dict[int, dict[str, _GroupOfRank]] = {}
        self.files: dict[int, str] = {}
        self.versions: dict[str, None] = {}

    def read(self, name: str, data: bytes) -> None:
        """One file. Raises DumpError."""
        rank = read_rank(name)
        dump = _decode(data)
        if rank is None:
            raise DumpError("the rank is not in the file's name (nccl_trace_rank_7)")
        if rank in self.states:
            raise DumpError(f"rank {rank} has another dump: {self.files[rank]}")
        for version in (dump.comm_lib_version, dump.nccl_version):
            if version:
                self.versions.setdefault(version[:20])
        self.files[rank] = name
        states = self.states[rank] = {}
        numbers = {
            str(entry.pg_id): entry.process_group[0]
            for entry in dump.entries
            if entry.process_group and entry.pg_id is not None
        }
        for place, key in enumerate(dump.pg_config):
            numbers.setdefault(str(place), key)
        for key, group in list(dump.pg_config.items())[:4096]:
            members = read_members(group.ranks)
            self.members.setdefault(key, {}).update(dict.fromkeys(members))
            self.titles.setdefault(key, group.desc or key)
        for number, status in list(dump.pg_status.items())[:4096]:
            state = states.setdefault(numbers.get(number, number), _GroupOfRank())
            state.enqueued = _to_int(status.last_enqueued_collective)
            state.completed = _to_int(status.last_completed_collective)
        for entry in dump.entries[-_MOST_ENTRIES:]:
            if not entry.is_p2p:
                self._read_entry(states, entry)
        for state in states.values():
            for sequence in sorted(state.operations)[:-_LAST_SEQUENCES]:
                del state.operations[sequence]

    def _read_entry(self, states: dict[str, _GroupOfRank], entry: _RecorderEntry) -> None:
        sequence = entry.collective_seq_id if entry.collective_seq_id is not None else entry.seq_id
        if sequence is None:
            return
        name = entry.process_group[0] if entry.process_group else "0"
        if entry.process_group and len(entry.process_group) > 1:
            self.titles.setdefault(name, entry.process_group[1])
        state = states.setdefault(name, _GroupOfRank())
        state.enqueued = max(state.enqueued, sequence)
        state.oldest = sequence if state.oldest is None else min(state.oldest, sequence)
        if entry.state == "completed":
            state.completed = max(state.completed, sequence)
        elif state.waits is None or sequence < state.waits:
            state.waits = sequence
        operation = entry.profiling_name.rpartition(":")[2]
        sizes = "" if any(word in operation for word in _UNEVEN) else str(entry.input_sizes)[:80]
        state.operations[sequence] = f"{operation} {sizes}".strip()

    def last_of_ranks(self) -> dict[int, RankLast]:
        """The collective that each rank waits in, else its last."""
        last = {}
        for rank, states in self.states.items():
            waiting = [
                (name, state)
                for name, state in states.items()
                if state.waits is not None and state.waits > state.completed
            ]
            if waiting:
                name, state = min(waiting, key=lambda pair: pair[0])
                last[rank] = RankLast(group=name, sequence=state.waits, collective=_operation(state, state.waits))
            elif states:
                name, state = max(states.items(), key=lambda pair: (pair[1].enqueued, pair[0]))
                last[rank] = RankLast(group=name, sequence=state.enqueued, collective=_operation(state, state.enqueued))
        return last


def _operation(state: _GroupOfRank, sequence: int | None) -> str | None:
    return state.operations.get(sequence or -1, "").partition(" ")[0] or None


def read_rank(name: str) -> int | None:
    """The rank in a file's name.

    >>> read_rank("fr/nccl_trace_rank_43"), read_rank("rank_5.json"), read_rank("dump_host_12.pkl"), read_rank("dump")
    (43, 5, 12, None)
    """
    match = re.search(r"(\d{1,7})(?:\.(?:json|pkl|pickle|bin|txt))?$", os.path.basename(name))
    return int(match[1]) if match else None


def read_members(ranks: str | list[int]) -> list[int]:
    """The ranks of a group, written as "[0, 1, 2]"; none: all.

    >>> read_members("[3, 11]"), read_members("")
    ([3, 11], [])
    """
    if isinstance(ranks, list):
        return ranks[:100_000]
    return [int(number) for number in re.findall(r"\d{1,7}", ranks)[:100_000]]


def _to_int(value: int | str) -> int:
    try:
        return int(value)
    except ValueError:
        return -1


def _decode(data: bytes) -> _Dump:
    if len(data) > LIMIT_BYTES:
        raise DumpError(f"larger than {LIMIT_BYTES >> 20} MiB")
    try:
        if data.lstrip()[:1] in (b"{", b"["):
            bare = data.lstrip()[:1] == b"["
            return (
                _Dump(entries=msgspec.json.decode(data, type=list[_RecorderEntry]))
                if bare
                else msgspec.json.decode(data, type=_Dump)
            )
        content = read_plain_pickle(data)
        if isinstance(content, list):
            return _Dump(entries=msgspec.convert(content, list[_RecorderEntry], strict=False))
        return msgspec.convert(content, _Dump, strict=False)
    except NotPlain as error:
        raise DumpError(f"the pickle is not read: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DumpError(f"damaged or cut: {str(error)[:120]}") from error


def find_dump_hangs(evidence: Evidence) -> Iterator[PossibleCause]:
    """Ranks that others wait for, in whatever group."""
    dumps: Dumps | None = evidence.dumps
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
        waits = Counter(
            state.waits for state in states.values() if state.waits is not None and state.waits > state.completed
        )
        if not waits:
            continue
        sequence = max(waits)
        waiting = [rank for rank, state in states.items() if state.waits == sequence and state.waits > state.completed]
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
        rank
        for rank, states_of in dumps.states.items()
        for state in states_of.values()
        if state.waits is not None and state.waits > state.completed
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


def _show(candidate: PossibleCause, dumps: Dumps, rank: int, text: str) -> None:
    candidate.evidence.append(JobEvidence(text=text, source=dumps.files[rank]))


def _hosts(evidence: Evidence, ranks: list[int]) -> list[str]:
    return list(dict.fromkeys(host for rank in ranks if (host := evidence.ranks.host(rank)) is not None))


def _missing(evidence: Evidence, dumps: Dumps, roots: dict[int, list[tuple[str, int, int]]]) -> PossibleCause:
    ranks = sorted(roots)
    hosts = _hosts(evidence, ranks)
    who = name_ranks(evidence, ranks, hosts)
    first = sorted(roots[ranks[0]], key=lambda row: (len(dumps.members.get(row[0], {})) or 1 << 30, row[0]))
    groups = "; ".join(f"{name} at {sequence} (its last is {last})" for name, last, sequence in first[:4])
    waiting = sum(
        any(state.waits is not None and state.waits > state.completed for state in states.values())
        for states in dumps.states.values()
    )
    candidate = PossibleCause(
        "rank-behind",
        "missing",
        "rank",
        f"{who} is missing in {groups}; {waiting} ranks wait, directly or for ranks that wait",
    )
    candidate.ranks |= dict.fromkeys(ranks)
    candidate.hosts |= dict.fromkeys(hosts)
    for rank in ranks[:4]:
        for name, last, sequence in roots[rank][:2]:
            _show(
                candidate,
                dumps,
                rank,
                f"{name} ({dumps.titles.get(name, name)}): last enqueued {last}; others wait in {sequence}",
            )
    candidate.next = [
        f"what rank {ranks[0]} did after its last collective: its own log, the frames of its dump, `py-spy dump`",
        f"`fabricscope scan` on {hosts[0] if hosts else 'its host'}: GPU, CPU and kernel log",
    ]
    return candidate


def _in_circle(evidence: Evidence, dumps: Dumps, missing: dict[int, list[tuple[str, int, int]]]) -> PossibleCause:
    ranks = sorted(missing)
    names = sorted({row[0] for rows in missing.values() for row in rows})
    candidate = PossibleCause(
        "groups-wait-for-each-other",
        "missing",
        "software",
        f"ranks wait for each other in groups {', '.join(names[:4])}: they call collectives of these groups in "
        f"different order",
        "medium",
    )
    candidate.ranks |= dict.fromkeys(ranks)
    candidate.hosts |= dict.fromkeys(_hosts(evidence, ranks))
    for rank in ranks[:3]:
        _show(
            candidate,
            dumps,
            rank,
            "; ".join(f"{name}: last {last}, others wait in {sequence}" for name, last, sequence in missing[rank][:3]),
        )
    candidate.next = ["the order in which the program uses these groups, on one rank of each"]
    return candidate


def _absent(evidence: Evidence, absent: dict[int, list[tuple[str, int]]]) -> PossibleCause:
    ranks = sorted(absent)
    hosts = _hosts(evidence, ranks)
    name, sequence = absent[ranks[0]][0]
    who = name_ranks(evidence, ranks, hosts)
    candidate = PossibleCause(
        "rank-silent", "missing", "rank", f"{who} left no dump; others wait in {name} at {sequence}", "low"
    )
    candidate.ranks |= dict.fromkeys(ranks)
    candidate.hosts |= dict.fromkeys(hosts)
    candidate.next = [f"the dump or log of rank {name_numbers(ranks[:8])}: it ended first, or its dump was not saved"]
    return candidate


def _stuck(evidence: Evidence, dumps: Dumps, stuck: list[tuple[str, int, list[int]]]) -> PossibleCause:
    name, sequence, waiting = min(stuck, key=lambda row: (len(row[2]), row[0]))
    candidate = PossibleCause(
        "collective-stuck",
        "hang",
        "fabric",
        f"all ranks of {name} entered collective {sequence}, and none completed it: the network or a GPU of the group",
        "medium",
    )
    candidate.waits_for_all = True
    candidate.ranks |= dict.fromkeys(sorted(waiting))
    candidate.hosts |= dict.fromkeys(_hosts(evidence, waiting))
    _show(
        candidate,
        dumps,
        waiting[0],
        f"{name}: {dumps.states[waiting[0]][name].operations.get(sequence, 'collective')} {sequence} is not completed",
    )
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
    candidate = PossibleCause(
        "collectives-differ",
        "hard",
        "software",
        f"ranks call different collectives as number {sequence} of {name}: {'; '.join(texts[:3])}",
    )
    candidate.ranks |= dict.fromkeys(sorted(few))
    candidate.hosts |= dict.fromkeys(_hosts(evidence, few))
    for operation, ranks in list(groups.items())[:3]:
        _show(candidate, dumps, ranks[0], f"{name} {sequence}: {operation}")
    candidate.next = ["the frames of this entry in both dumps: a branch or shape that differs between ranks"]
    return candidate
