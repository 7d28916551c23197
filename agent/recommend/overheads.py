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
EFA, TCPXO = PLUGINS = ("EFA", "TCPXO")  # networks whose own plugin, in user space, adds to every message
PLUGIN = "plugin"  # any of them: they are more like each other than like RDMA
LARGE = 1_000_000_000  # bytes, from which on a range wider than a quarter would show nothing
_CONTRADICTION = 0.78  # of the usual bandwidth: what the slowest of several tables then has is another one
_FULL = {TREE: 16 << 20}  # bytes, from which on a transfer has its whole latency; below it grows with the square root
_FULL_OF_OTHERS = 64 << 20


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
    lambda key: (PLUGIN if key[0] in PLUGINS else RDMA, key[1], ANY),
    lambda key: (PLUGIN if key[0] in PLUGINS else RDMA, ANY, ANY),
    lambda _: (ANY, ANY, ANY),
)


class Reached(NamedTuple):
    """Bus bandwidth in GB/s, its range, and whether the tables behind it contradict each other."""

    busbw: float
    low: float
    high: float
    contradicted: bool


FITTED: Overheads = {
    (EFA, NVLS_TREE, ANY): Overhead(Fit(196, 331, 1828), Fit(0.838, 1, 1.1), 2),
    (EFA, RING, ANY): Overhead(Fit(-54, 0, 54), Fit(0.936, 0.981, 1.023), 2),
    (EFA, TREE, ANY): Overhead(Fit(166, 653, 949), Fit(0.921, 0.979, 1.028), 1),
    (RDMA, NVLS, ANY): Overhead(Fit(114, 204, 294), Fit(0.957, 1.005, 1.057), 1),
    (RDMA, NVLS_TREE, ANY): Overhead(Fit(83, 161, 791), Fit(0.937, 0.989, 1.17), 10),
    (RDMA, RING, ANY): Overhead(Fit(-422, 0, 225), Fit(0.87, 0.982, 1.065), 13),
    (RDMA, TREE, ANY): Overhead(Fit(4, 48, 92), Fit(0.952, 1.005, 1.066), 2),
    (TCPXO, RING, ANY): Overhead(Fit(53, 120, 488), Fit(0.952, 0.991, 1.035), 3),
    (TCPXO, TREE, ANY): Overhead(Fit(411, 763, 1101), Fit(1.001, 1.051, 1.154), 1),
    (PLUGIN, NVLS_TREE, ANY): Overhead(Fit(196, 331, 1828), Fit(0.893, 0.989, 1.166), 2),
    (PLUGIN, RING, ANY): Overhead(Fit(53, 120, 488), Fit(0.885, 0.984, 1.053), 5),
    (PLUGIN, TREE, ANY): Overhead(Fit(231, 653, 950), Fit(0.933, 1.005, 1.141), 2),
    (RDMA, ANY, ANY): Overhead(Fit(-332, 146, 618), Fit(0.891, 0.987, 1.122), 26),
    (PLUGIN, ANY, ANY): Overhead(Fit(11, 331, 1445), Fit(0.891, 0.987, 1.122), 9),
    (ANY, ANY, ANY): Overhead(Fit(-261, 153, 1082), Fit(0.891, 0.987, 1.122), 35),
    (RDMA, NVLS_TREE, TWO): Overhead(Fit(97, 161, 220), Fit(0.934, 0.988, 1.034), 8),
    (RDMA, RING, TWO): Overhead(Fit(-81, 35, 268), Fit(0.858, 0.979, 1.038), 8),
}  # fmt: skip


def classify_job(network: str, algorithm: str, nodes: int) -> OverheadKey:
    """The class of a job."""
    return network if network in PLUGINS else RDMA, algorithm, TWO if nodes <= 2 else MORE


def find_overhead(key: OverheadKey, fitted: Overheads) -> Overhead:
    """That of the class, else of the algorithm on this network, else on networks like it, else of all of those."""
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


def grow_latency(algorithm: str, size: float) -> float:
    """The share of its whole overhead that a message has."""
    return min(1.0, float((size / _FULL.get(algorithm, _FULL_OF_OTHERS)) ** 0.5))


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
    time = max(time / 2, time + latency_us * grow_latency(choice.algorithm, size))
    return size * bus_factor(collective, job.ranks) / time / 1000
