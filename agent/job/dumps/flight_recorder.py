"""Dumps of PyTorch's flight recorder, one file per rank.

Groups are joined by name and ranks: their numbers differ between ranks. Entries are a ring: what is older than the
oldest entry of a rank is unknown, never missing.
"""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from agent.job.dumps.plain_pickle import LIMIT_BYTES, NotPlain, read_plain_pickle
from agent.model.job_answer import RankLast

_MOST_ENTRIES = 100_000
_LAST_SEQUENCES = 64  # of a group, whose operations are kept to compare
_LAST_TIMES = 512
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

    input_sizes: Any = None
    time_created_ns: int | None = None
    time_discovered_completed_ns: int | None = None


class _GroupConfig(msgspec.Struct, frozen=True):
    name: str = ""
    desc: str = ""
    ranks: str | list[int] = ""


class _Status(msgspec.Struct, frozen=True):
    last_enqueued_collective: int | str = -1
    last_completed_collective: int | str = -1


class _Dump(msgspec.Struct, frozen=True):
    comm_lib_version: str | None = None
    nccl_version: str | None = None
    pg_config: dict[str, _GroupConfig] = {}
    pg_status: dict[str, _Status] = {}
    entries: list[_RecorderEntry] = []


class _GroupOfRank:
    """What one rank's dump shows of one group."""

    __slots__ = ("completed", "created", "done", "enqueued", "operations", "waits")

    def __init__(self) -> None:
        self.enqueued = self.completed = -1

        self.waits: int | None = None  # the first that is not done
        self.operations: dict[int, str] = {}
        self.created: dict[int, int] = {}  # when each was enqueued, and seen completed, by the rank's own clock, ns
        self.done: dict[int, int] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether it entered a collective that is not completed."""
        return self.waits is not None and self.waits > self.completed


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
            for times in (state.created, state.done):
                for sequence in sorted(times)[:-_LAST_TIMES]:
                    del times[sequence]

    def _read_entry(self, states: dict[str, _GroupOfRank], entry: _RecorderEntry) -> None:
        sequence = entry.collective_seq_id if entry.collective_seq_id is not None else entry.seq_id
        if sequence is None:
            return
        name = entry.process_group[0] if entry.process_group else "0"
        if entry.process_group and len(entry.process_group) > 1:
            self.titles.setdefault(name, entry.process_group[1])
        state = states.setdefault(name, _GroupOfRank())
        state.enqueued = max(state.enqueued, sequence)

        if entry.state == "completed":
            state.completed = max(state.completed, sequence)
        elif state.waits is None or sequence < state.waits:
            state.waits = sequence
        if entry.time_created_ns:
            state.created[sequence] = entry.time_created_ns
        if entry.time_discovered_completed_ns:
            state.done[sequence] = entry.time_discovered_completed_ns
        operation = entry.profiling_name.rpartition(":")[2]
        sizes = "" if any(word in operation for word in _UNEVEN) else str(entry.input_sizes)[:80]
        state.operations[sequence] = f"{operation} {sizes}".strip()

    def last_of_ranks(self) -> dict[int, RankLast]:
        """The collective that each rank waits in, else its last."""
        last = {}
        for rank, states in self.states.items():
            waiting = [(name, state) for name, state in states.items() if state.is_waiting]
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
