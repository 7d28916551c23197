"""Which algorithm and protocol NCCL chooses for a size, and the time that it expects: `ncclTopoTuneModel`.

Source: NVIDIA/nccl `src/graph/tuning.cc`, v2.18.1-1 to v2.30.7-1. Bandwidth in GB/s, time in us, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.recommend.constants import (
    LL,
    LL128,
    NVLS,
    NVLS_TREE,
    PAT,
    PROTOCOLS,
    RING,
    SIMPLE,
    TREE,
    TREE_CORRECTION,
    Version,
    base_latency,
    hop_latency,
    tuning_table,
)
from agent.recommend.graph import ChannelPlan

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all_reduce", "all_gather", "reduce_scatter"
ALL_TO_ALL, SEND_RECEIVE, BROADCAST = "all_to_all", "sendrecv", "broadcast"
TUNED = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST)


class TunedJob(NamedTuple):
    """Who takes part, and what decides the tables."""

    nodes: int
    ranks: int
    sm: int  # of the oldest GPU
    version: Version
    amd_cpu: bool = False
    arm_cpu: bool = False
    nvlink: bool = True  # GPUs of a node reach each other by NVLink
    ll128: bool = True  # the paths allow it: `typeInter` at most PXB (PXN since sm 90), `typeIntra` NVLink
    network_latency_us: float = 0.0  # that the network plugin states for a NIC
    collnet: bool = False  # `NCCL_COLLNET_ENABLE=1`, with a plugin and switches that reduce (SHARP)


class Choice(NamedTuple):
    """One algorithm with one protocol: what NCCL's table of bandwidths and latencies has for it."""

    algorithm: str
    protocol: str
    algorithm_gbyte_s: float
    latency_us: float


def bus_factor(collective: str, ranks: int) -> float:
    """Bus bandwidth by algorithm bandwidth, as nccl-tests defines it (doc/PERFORMANCE.md)."""
    if collective == ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in (ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL) else 1.0


def list_choices(collective: str, job: TunedJob, plans: Mapping[str, ChannelPlan]) -> Iterator[Choice]:
    """Every algorithm and protocol that NCCL may take; `plans` by algorithm."""
    for algorithm, plan in plans.items():
        if not plan.channels or not _is_allowed(algorithm, collective, job, plan):
            continue
        for protocol in PROTOCOLS if algorithm in (RING, TREE) else (SIMPLE,):
            if protocol == LL128 and not job.ll128:
                continue
            bus = _bus_gbyte_s(algorithm, protocol, collective, job, plan)
            ratio = _ratio(algorithm, collective, job)
            yield Choice(algorithm, protocol, bus * ratio, _latency_us(algorithm, protocol, collective, job))


def time_us(choice: Choice, size: int, collective: str, job: TunedJob, channels: int) -> float:
    """us for `size` bytes (`ncclTopoGetAlgoTime`)."""
    speed, latency = choice.algorithm_gbyte_s, choice.latency_us
    step = (size >> 6).bit_length() - 1
    corrected = choice.algorithm == TREE or (
        choice.algorithm == NVLS_TREE and job.sm >= 100 and not job.arm_cpu and job.version >= (2, 29)
    )
    if corrected and collective == ALL_REDUCE and 0 <= step < len(TREE_CORRECTION[choice.protocol]):
        speed *= TREE_CORRECTION[choice.protocol][step] / 10
    ring = choice.algorithm == RING and choice.protocol == SIMPLE and collective == ALL_REDUCE
    if ring and job.nodes > 1 and size // (channels * job.ranks) >= 64:
        latency *= 1.9 if job.sm < 80 else 1.4
    return latency + size / (1000 * speed)


def choose(collective: str, size: int, job: TunedJob, plans: Mapping[str, ChannelPlan]) -> tuple[Choice, float] | None:
    """The choice of least time, and that time in us; None where no algorithm has a plan."""
    timed = [
        (time_us(choice, size, collective, job, plans[choice.algorithm].channels), index, choice)
        for index, choice in enumerate(list_choices(collective, job, plans))
        if choice.algorithm_gbyte_s > 0
    ]
    if not timed:
        return None
    time, _, choice = min(timed)
    return choice, time


def _is_allowed(algorithm: str, collective: str, job: TunedJob, plan: ChannelPlan) -> bool:
    """By `ncclTopoTuneModel` and `updateCollCostTable` (`getAlgoInfo` up to 2.21), which enqueues what is chosen."""
    if algorithm == RING:
        return True
    if algorithm == TREE:
        return collective == ALL_REDUCE
    if algorithm == PAT:  # one GPU of each node
        return job.nodes == job.ranks and collective in (ALL_GATHER, REDUCE_SCATTER) and job.version >= (2, 23)
    if algorithm == NVLS:  # all-gather and reduce-scatter came later, and beyond one node are CollNet's own
        if collective in (ALL_GATHER, REDUCE_SCATTER):
            return job.nodes == 1 and job.version >= (2, 19) and plan.channels > 1
        return collective == ALL_REDUCE and (job.nodes == 1 or job.collnet) and plan.channels > 1
    return job.nodes > 1 and collective == ALL_REDUCE and plan.channels > 1


def _bus_gbyte_s(algorithm: str, protocol: str, collective: str, job: TunedJob, plan: ChannelPlan) -> float:
    table = tuning_table(job.sm, job.version)
    column = min(job.nodes, 3) - 1
    speed = plan.intra_gbyte_s if job.nodes <= 2 else plan.inter_gbyte_s
    if algorithm in (NVLS, NVLS_TREE):
        speed = _nvls_gbyte_s(algorithm, collective, job, plan)
    bus = plan.channels * speed
    if algorithm == RING:
        if protocol == LL:
            return min(_ll_limit(job, column), bus * _ring_ll_share(collective, job))
        share = 0.7 if job.version < (2, 23) and job.nodes == job.ranks else 0.92
        return min(bus * share, plan.channels * table.ring_ll128) if protocol == LL128 else bus
    if algorithm == PAT:
        return bus * (0.85 if job.version < (2, 24) else 0.75)
    if algorithm == TREE:
        bus = min(bus * 0.92, plan.channels * table.tree[column])
        if protocol == LL:
            return min(bus / 3.8, _ll_limit(job, column))
        if protocol == LL128:
            return min(bus * (7 / 9 if job.nodes == 1 else 120 / 128), plan.channels * table.tree_ll128[column])
    return bus


def _ring_ll_share(collective: str, job: TunedJob) -> float:
    """Of the bandwidth of all channels."""
    if job.version >= (2, 21):
        return 0.5
    return 1 / 4 if job.nodes > 1 or collective == ALL_REDUCE else 1 / 3


def _ll_limit(job: TunedJob, column: int) -> float:
    """Of one node by its GPU; between nodes by the CPU's maker."""
    if job.nodes == 1:
        return tuning_table(job.sm, job.version).ll[column]
    return tuning_table(80 if job.amd_cpu else 70, job.version).ll[column]


def _nvls_gbyte_s(algorithm: str, collective: str, job: TunedJob, plan: ChannelPlan) -> float:
    per_node = job.ranks / job.nodes
    if job.version <= (2, 18):
        return plan.intra_gbyte_s if job.nodes <= 2 else plan.inter_gbyte_s
    if job.version < (2, 28):
        two = algorithm == NVLS or job.nodes <= 2
        intra = plan.intra_gbyte_s
        if job.version >= (2, 27) and collective != ALL_REDUCE:
            intra *= (per_node - 1) / per_node
        return min(intra, plan.inter_gbyte_s if two else plan.inter_gbyte_s / 2)
    table = tuning_table(job.sm, job.version)
    intra = plan.intra_gbyte_s * table.nvls_efficiency * (plan.channels - 1) / plan.channels
    intra *= 2 if collective == ALL_REDUCE else (per_node - 1) / per_node
    if algorithm == NVLS:
        return min(intra, plan.inter_gbyte_s) if job.nodes > 1 else intra
    limit = table.nvls_tree[min(job.nodes, 3) - 1]
    return min(intra, plan.inter_gbyte_s * (2 if job.nodes <= 2 else 1), limit)


def _ratio(algorithm: str, collective: str, job: TunedJob) -> float:
    """From bus to algorithm bandwidth, as NCCL counts steps."""
    if algorithm == TREE:
        return 0.5
    if algorithm != RING and collective in (ALL_GATHER, REDUCE_SCATTER):
        return 1.0 if algorithm == PAT or job.version >= (2, 23) else 5 / 6
    if algorithm == NVLS_TREE and job.version <= (2, 18):
        return 0.7 * job.nodes / (2 * (job.nodes - 1))
    if algorithm in (NVLS, NVLS_TREE) and job.version < (2, 28):
        return 5 / 6
    return job.ranks / _steps(collective, job.ranks)


def _steps(collective: str, ranks: int) -> int:
    if collective == ALL_REDUCE:
        return 2 * (ranks - 1)
    return ranks - 1 if collective in (ALL_GATHER, REDUCE_SCATTER) else ranks


def _latency_us(algorithm: str, protocol: str, collective: str, job: TunedJob) -> float:
    inside = "nvlink" if job.nvlink else "pci"
    base = base_latency(algorithm, job.version).of(protocol)
    intra = hop_latency(algorithm, inside, job.version).of(protocol)
    per_node = job.ranks // job.nodes
    inter = hop_latency(TREE if per_node == 1 else algorithm, "net", job.version).of(protocol)
    inter += job.network_latency_us * (2 if protocol == SIMPLE else 1)
    logarithm = job.nodes.bit_length() - 1
    if algorithm == RING:
        return base + _ring_latency_us(protocol, collective, job, intra, inter)
    if algorithm == TREE:
        return base + 2 * ((per_node - 1) * intra + logarithm * inter)
    if algorithm == PAT:
        return base + logarithm * inter / 3.5 + job.ranks * 2.8
    if algorithm == NVLS:
        return base + intra + (inter if job.nodes > 1 else 0.0)
    return base + intra + 2 * (job.nodes - 1 if job.version <= (2, 18) else logarithm) * inter


def _ring_latency_us(protocol: str, collective: str, job: TunedJob, intra: float, inter: float) -> float:
    steps = _steps(collective, job.ranks)
    if collective == BROADCAST:
        return hop_latency(RING, "net" if job.nodes > 1 else "nvlink", job.version).of(protocol)
    if job.nodes == 1:
        return steps * intra
    overhead = (2.0 if job.amd_cpu else 1.0) * (3 if protocol == SIMPLE else 1)
    early = job.version < (2, 23) and collective == ALL_REDUCE
    between = (2 * job.nodes if early else 2 * (job.nodes - 1)) if collective == ALL_REDUCE else job.nodes - 1
    return (steps - between) * max(intra, overhead) + between * inter
