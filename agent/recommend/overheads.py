"""What transfers between nodes take beyond NCCL's own figures, fitted on public tables, and what the fit leaves open.

`python -m bench.prediction TABLE... --fit` prints `FITTED`; a test fits it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.recommend.constants import NEWEST, NVLS, NVLS_TREE
from agent.recommend.graph import ChannelPlan
from agent.recommend.tuning import ALL_REDUCE, Choice, TunedJob, bus_factor, list_choices, time_us

ANY = "any"
RDMA = "RDMA"  # InfiniBand and RoCE: their tables do not differ
EFA, TCPXO = PLUGINS = ("EFA", "TCPXO")  # networks whose own plugin adds to every message
_LARGE = 1_000_000_000  # bytes, from which on a range wider than a quarter would say nothing
_FULL = 64 << 20  # bytes, from which on a transfer has its whole latency; below it grows with the square root


class Fit(NamedTuple):
    """A fitted value: the least, the usual and the most that tables have."""

    low: float
    usual: float
    high: float


class Overhead(NamedTuple):
    """Of one network and algorithm."""

    latency_us: Fit  # beyond NCCL's
    share: Fit  # of the bandwidth that NCCL counts
    tables: int

    @property
    def contradicted(self) -> bool:
        """Whether tables of alike machines differ by more than a factor of two in what messages cost."""
        return self.tables > 1 and self.latency_us.high > 2.5 * max(self.latency_us.usual, 100.0)


Overheads = Mapping[tuple[str, str], Overhead]


class Reached(NamedTuple):
    """Bus bandwidth in GB/s, its range, and whether the tables behind it contradict each other."""

    busbw: float
    low: float
    high: float
    contradicted: bool


FITTED: Overheads = {}


def find_overhead(network: str, algorithm: str, fitted: Overheads) -> Overhead:
    """That of the network and algorithm, else of the algorithm on any network, else of all tables."""
    kind = network if network in PLUGINS else RDMA
    keys = ((kind, algorithm), (ANY, algorithm), (ANY, ANY))
    return next(fitted[key] for key in keys if key in fitted)


def count_gbyte_s(choice: Choice, collective: str, job: TunedJob, plan: ChannelPlan, inside: ChannelPlan) -> float:
    """Algorithm bandwidth by NCCL's figures. Up to 2.27 those of a tree over NVLS on two nodes are not what it reaches:
    the NVLS of one node (`inside`) as newer tables have it, and the NICs, which carry every byte once."""
    if choice.algorithm != NVLS_TREE or job.nodes > 2 or not inside.channels:
        return choice.algorithm_gbyte_s
    one = job._replace(nodes=1, ranks=job.ranks // job.nodes, version=NEWEST)
    switch = next(list_choices(ALL_REDUCE, one, {NVLS: inside}), None)
    if switch is None:
        return choice.algorithm_gbyte_s
    bus = switch.algorithm_gbyte_s * bus_factor(ALL_REDUCE, one.ranks)
    return min(bus / bus_factor(collective, job.ranks), plan.total_gbyte_s)


def grow_latency(size: float) -> float:
    """The share of its whole overhead that a message has."""
    return min(1.0, float((size / _FULL) ** 0.5))


def reach(choice: Choice, size: int, collective: str, job: TunedJob, channels: int, overhead: Overhead) -> Reached:
    """What a healthy wire reaches: NCCL's time, with the overhead of its network. `choice` has the counted bandwidth."""
    ordered = [
        _busbw(choice, size, collective, job, channels, share, latency)
        for share, latency in zip(overhead.share, reversed(overhead.latency_us), strict=True)
    ]
    low, usual, high = ordered
    if size >= _LARGE:
        low, high = max(low, usual * 0.76), min(high, usual * 1.24)
    return Reached(usual, low, high, overhead.contradicted)


def _busbw(
    choice: Choice, size: int, collective: str, job: TunedJob, channels: int, share: float, latency_us: float
) -> float:
    shared = choice._replace(algorithm_gbyte_s=choice.algorithm_gbyte_s * share)
    if choice.algorithm == NVLS_TREE:  # what corrects the choice on Blackwell is not what it reaches
        job = job._replace(sm=min(job.sm, 90))
    time = time_us(shared, size, collective, job, channels)
    time = max(time / 2, time + latency_us * grow_latency(size))
    return size * bus_factor(collective, job.ranks) / time / 1000

