"""Records of NCCL's Inspector: how long each rank's collectives took.

They are read as a stream: of each communicator a fixed number of sequence numbers is kept, the same ones for all ranks.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

_CELLS = 262_144  # kept of a communicator and function: ranks x sequence numbers
_MOST_KEYS = 20_000
_MIX = 2654435761


class _Header(msgspec.Struct, frozen=True):
    id: str = ""
    comm_name: str | None = None
    rank: int = -1
    n_ranks: int = 0
    nnodes: int = 0


class _Metadata(msgspec.Struct, frozen=True):
    hostname: str = ""
    pid: int = 0


class _Collective(msgspec.Struct, frozen=True):
    coll: str = ""
    coll_sn: int = -1
    coll_msg_size_bytes: int = 0
    coll_exec_time_us: float = 0.0
    coll_timing_source: str = ""


class _PointToPoint(msgspec.Struct, frozen=True):
    p2p: str = ""
    p2p_peer: int = -1
    p2p_msg_size_bytes: int = 0
    p2p_exec_time_us: float = 0.0
    p2p_timing_source: str = ""


class _Record(msgspec.Struct, frozen=True):
    header: _Header
    metadata: _Metadata = _Metadata()
    coll_perf: _Collective | None = None
    p2p_perf: _PointToPoint | None = None


class Pair(NamedTuple):
    """Sends, or receives, of one rank with one peer, of about one size."""

    communicator: str
    function: str
    size: int
    rank: int
    peer: int


class PairTimes:
    """Times of a pair, counted in steps of 9%."""

    __slots__ = ("buckets", "count")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.count = 0

    def add(self, microseconds: float) -> None:
        """One time."""
        bucket = int(8 * math.log2(max(1.0, microseconds)))
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.count += 1

    @property
    def fast(self) -> float:
        """The time that a tenth of them do not exceed: what the path can do, whichever rank came late."""
        seen = 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen * 10 >= self.count:
                return float(2 ** (bucket / 8))
        return 0.0


class Series:
    """Times of one function in one communicator: by sequence number, of every rank."""

    __slots__ = ("hashes", "limit", "most", "rows")

    def __init__(self, ranks: int) -> None:
        self.rows: dict[int, array[float]] = {}
        self.most = max(32, min(1024, _CELLS // max(1, ranks)))
        self.limit = 1 << 32  # hashes of kept numbers are below it
        self.hashes: dict[int, int] = {}

    def add(self, ranks: int, rank: int, sequence: int, microseconds: float) -> None:
        """One time; numbers are kept by their hash, so that all ranks keep the same."""
        row = self.rows.get(sequence)
        if row is None:
            mixed = sequence * _MIX & 0xFFFFFFFF
            if mixed >= self.limit:
                return
            row = self.rows[sequence] = array("f", bytes(4 * ranks))
            self.hashes[sequence] = mixed
            if len(self.rows) > 2 * self.most:
                kept = sorted(self.hashes, key=lambda number: self.hashes[number])
                self.limit = self.hashes[kept[self.most]]
                for number in kept[self.most :]:
                    del self.rows[number], self.hashes[number]
                if sequence not in self.rows:
                    return
        row[rank] = microseconds


class Inspector:
    """All records of a job."""

    def __init__(self) -> None:
        self.series: dict[tuple[str, str, int], Series] = {}  # communicator, function, size class
        self.ranks: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.nodes: dict[str, int] = {}
        self.members: dict[str, dict[int, tuple[str, int]]] = defaultdict(dict)  # communicator: rank: host, pid
        self.files: dict[tuple[str, int], str] = {}
        self.pairs: dict[Pair, PairTimes] = {}

    def read(self, name: str, lines: Iterable[bytes]) -> tuple[int, int]:
        """One file: its lines, and how many of them were no record."""
        decode = msgspec.json.Decoder(_Record).decode
        count = damaged = 0
        for line in lines:
            count += 1
            if not line.strip():
                continue
            try:
                record = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                damaged += 1
                continue
            self._add(name, record)
        return count, damaged

    def _add(self, name: str, record: _Record) -> None:
        header, collective, single = record.header, record.coll_perf, record.p2p_perf
        if not 0 <= header.rank < header.n_ranks <= 1 << 20:
            return
        ranks = self.ranks.setdefault(header.id, header.n_ranks)
        if header.rank >= ranks:
            return
        if single is not None and 0 <= single.p2p_peer < ranks and 0 < single.p2p_exec_time_us < 1e12:
            self._add_member(name, record)
            size = single.p2p_msg_size_bytes.bit_length()
            pair = Pair(header.id, f"{single.p2p} {single.p2p_timing_source}", size, header.rank, single.p2p_peer)
            times = self.pairs.get(pair)
            if times is None and len(self.pairs) < _MOST_KEYS:
                times = self.pairs[pair] = PairTimes()
            if times is not None:
                times.add(single.p2p_exec_time_us)
        if collective is None or collective.coll_sn < 0 or not 0 < collective.coll_exec_time_us < 1e12:
            return

        self._add_member(name, record)
        key = (
            header.id,
            f"{collective.coll} {collective.coll_timing_source}",
            collective.coll_msg_size_bytes.bit_length(),
        )
        series = self.series.get(key)
        if series is None:
            if len(self.series) >= _MOST_KEYS:
                return
            series = self.series[key] = Series(ranks)
        series.add(ranks, header.rank, collective.coll_sn, collective.coll_exec_time_us)

    def _add_member(self, name: str, record: _Record) -> None:
        header = record.header
        members = self.members[header.id]
        if header.rank not in members:
            place = record.metadata.hostname.partition(".")[0], record.metadata.pid
            members[header.rank] = place
            self.files.setdefault(place, name)
            self.names.setdefault(header.id, header.comm_name or header.id)
            self.nodes.setdefault(header.id, header.nnodes)
