"""What transfers between nodes take beyond NCCL's own figures, fitted on public tables, and what the fit leaves open.

`python -m bench.prediction TABLE... --fit` prints `FITTED`; a test fits it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from agent.recommend.constants import NEWEST, NVLS, NVLS_TREE, RING, TREE
from agent.recommend.graph import ChannelPlan
from agent.recommend.tuning import ALL_REDUCE, Choice, TunedJob, bus_factor, list_choices, time_us

ANY, TWO, MORE = "any", "two", "more"
RDMA = "RDMA"  # InfiniBand and RoCE: their tables do not differ
EFA, TCPXO = PLUGINS = ("EFA", "TCPXO")  # networks whose own plugin adds to every message
LARGE = 1_000_000_000  # bytes, from which on a range wider than a quarter would say nothing
_CONTRADICTION = 0.78  # of the usual bandwidth: what the slowest of several tables then has is another one
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


OverheadKey = tuple[str, str, str]  # network, algorithm, nodes
Overheads = Mapping[OverheadKey, Overhead]
WIDER: tuple[Callable[[OverheadKey], OverheadKey], ...] = (  # where there is no table, that of the next class
    lambda key: key,
    lambda key: (key[0], key[1], ANY),
    lambda key: (ANY, key[1], ANY),
    lambda _: (ANY, ANY, ANY),
)


class Reached(NamedTuple):
    """Bus bandwidth in GB/s, its range, and whether the tables behind it contradict each other."""

    busbw: float
    low: float
    high: float
    contradicted: bool


FITTED: Overheads = {
    (EFA, NVLS_TREE, ANY): Overhead(Fit(173, 331, 1831), Fit(0.838, 1.005, 1.1), 2),
    (EFA, RING, ANY): Overhead(Fit(-65, 0, 65), Fit(0.936, 0.981, 1.023), 2),
    (EFA, TREE, ANY): Overhead(Fit(134, 718, 1405), Fit(0.913, 0.959, 1.007), 1),
    (RDMA, NVLS, ANY): Overhead(Fit(96, 204, 312), Fit(0.961, 1.011, 1.062), 1),
    (RDMA, NVLS_TREE, ANY): Overhead(Fit(78, 161, 791), Fit(0.937, 0.988, 1.17), 10),
    (RDMA, RING, ANY): Overhead(Fit(-422, 0, 226), Fit(0.871, 0.979, 1.067), 13),
    (RDMA, TREE, ANY): Overhead(Fit(43, 96, 149), Fit(0.954, 1.01, 1.068), 2),
    (TCPXO, RING, ANY): Overhead(Fit(47, 120, 489), Fit(0.949, 0.987, 1.032), 3),
    (TCPXO, TREE, ANY): Overhead(Fit(359, 780, 1566), Fit(1.05, 1.103, 1.159), 1),
    (ANY, NVLS, ANY): Overhead(Fit(96, 204, 312), Fit(0.961, 1.011, 1.062), 1),
    (ANY, NVLS_TREE, ANY): Overhead(Fit(86, 162, 1350), Fit(0.893, 0.988, 1.166), 12),
    (ANY, RING, ANY): Overhead(Fit(-375, 35, 397), Fit(0.885, 0.984, 1.053), 18),
    (ANY, TREE, ANY): Overhead(Fit(-190, 718, 1494), Fit(0.934, 1.01, 1.14), 4),
    (ANY, ANY, ANY): Overhead(Fit(-258, 153, 1224), Fit(0.891, 0.987, 1.122), 35),
    (RDMA, NVLS_TREE, TWO): Overhead(Fit(90, 161, 227), Fit(0.934, 0.988, 1.034), 8),
    (RDMA, RING, TWO): Overhead(Fit(-84, 35, 269), Fit(0.858, 0.979, 1.038), 8),
}  # fmt: skip


def classify_job(network: str, algorithm: str, nodes: int) -> OverheadKey:
    """The class of a job."""
    return network if network in PLUGINS else RDMA, algorithm, TWO if nodes <= 2 else MORE


def find_overhead(key: OverheadKey, fitted: Overheads) -> Overhead:
    """That of the class, else of the algorithm on this network, else on any, else of all tables."""
    return next(fitted[wider] for widen in WIDER if (wider := widen(key)) in fitted)


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
    """What healthy wires reach: NCCL's time with the overhead of the network. `choice` has the counted bandwidth."""
    ordered = [
        _busbw(choice, size, collective, job, channels, share, latency)
        for share, latency in zip(overhead.share, reversed(overhead.latency_us), strict=True)
    ]
    low, usual, high = ordered
    contradicted = overhead.tables > 1 and low < usual * _CONTRADICTION
    if size >= LARGE:
        low, high = max(low, usual * 0.76), min(high, usual * 1.24)
    return Reached(usual, low, high, contradicted)


def _busbw(
    choice: Choice, size: int, collective: str, job: TunedJob, channels: int, share: float, latency_us: float
) -> float:
    shared = choice._replace(algorithm_gbyte_s=choice.algorithm_gbyte_s * share)
    if choice.algorithm == NVLS_TREE:  # what corrects the choice on Blackwell is not what it reaches
        job = job._replace(sm=min(job.sm, 90))
    time = time_us(shared, size, collective, job, channels)
    time = max(time / 2, time + latency_us * grow_latency(size))
    return size * bus_factor(collective, job.ranks) / time / 1000
