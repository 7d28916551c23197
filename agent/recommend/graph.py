"""The channels that NCCL's search finds on a node: rings, trees and NVLS over an NVSwitch or full mesh in closed form,
and rings on machines whose GPUs are joined unevenly by NCCL's search with a budget, in its order of branches.

Source: NVIDIA/nccl `src/graph/search.cc` (v2.30.7-1), `ncclTopoCompute` and `ncclTopoDupChannels`: on a machine whose
GPUs all reach each other alike the best solution depends on sums only, and these are here; `ncclTopoSearchRec` and
`ncclTopoSearchNextGpuSort`: at each speed, from the fastest down, channels are added one after the other; the next GPU
is the one with the most bandwidth left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from agent.recommend.constants import RING, Version, max_channels, max_nvls_heads, search_speeds

BUDGET = 1 << 14  # steps of one speed, as NCCL's
Mesh = tuple[tuple[int, int, float], ...]  # two GPUs and GB/s of their links together, one direction
# Links of the hybrid cube mesh of DGX-1 with V100, as `nvidia-smi topo -m` prints it
_CUBE = "01:1 02:1 03:2 04:2 12:2 13:1 15:2 23:2 26:1 37:1 45:1 46:1 47:2 56:2 57:1 67:2"


class ChannelPlan(NamedTuple):
    """A graph as NCCL's log prints it: channels and GB/s per channel, inside a node and between nodes."""

    channels: int
    intra_gbyte_s: float
    inter_gbyte_s: float

    @property
    def total_gbyte_s(self) -> float:
        """What all channels carry between nodes (of one node: inside it)."""
        return self.channels * self.inter_gbyte_s


class SearchInput(NamedTuple):
    """What the search looks at: GPUs, the NVLinks of the least of them, and the NICs by their path."""

    gpus: int
    sm: int  # 80, 90, 100: of the oldest GPU
    nvlink_gbyte_s: float  # of one GPU to all others together, in NCCL's units
    rails_gbyte_s: tuple[
        float, ...
    ]  # of each NIC: the least of its network rate and its path to a GPU; empty: one node
    version: Version
    has_nvswitch: bool = True


NO_PLAN = ChannelPlan(0, 0.0, 0.0)


def plan_ring(node: SearchInput) -> ChannelPlan:
    """Rings: every GPU is left and entered once per channel; between nodes one NIC carries each channel in and out."""
    return _plan(node, RING)


def plan_tree(node: SearchInput) -> ChannelPlan:
    """Trees: as rings, and for two nodes the search raises what a channel carries inside, up to twice."""
    plan = _plan(node, "tree")
    if not plan.channels or not node.rails_gbyte_s:
        return plan
    speeds = search_speeds(node.sm, True, node.version)
    faster = [speed for speed in reversed(speeds) if speed > plan.inter_gbyte_s]
    total = _total(node, "tree")
    intra = plan.inter_gbyte_s
    for speed in faster:
        if intra >= 2 * plan.inter_gbyte_s or plan.channels * speed > total:
            break
        intra = speed
    return plan._replace(intra_gbyte_s=max(intra, plan.intra_gbyte_s))


def plan_nvls(node: SearchInput) -> ChannelPlan:
    """NVLS: heads that gather and multicast; a head carries twice a channel, every other GPU once."""
    if not node.has_nvswitch or node.sm < 90 or node.gpus < 2:
        return NO_PLAN
    heads = min(node.gpus, max_nvls_heads(node.version))
    fastest = node.nvlink_gbyte_s
    if node.rails_gbyte_s:
        heads = min(heads, len(node.rails_gbyte_s))
        fastest = min(node.rails_gbyte_s)
    speeds = search_speeds(node.sm, bool(node.rails_gbyte_s), node.version)
    for speed in speeds:
        if speed <= fastest and (heads + 1) * speed <= node.nvlink_gbyte_s:
            break
    else:
        return NO_PLAN
    inter = speed
    for faster in reversed([candidate for candidate in speeds if candidate > speed] if node.rails_gbyte_s else []):
        if inter >= 2 * speed or faster > fastest:
            break
        inter = faster
    return ChannelPlan(heads, speed, inter)


def plan_of_job(plans: Sequence[ChannelPlan]) -> ChannelPlan:
    """What a job gets: the least of every figure over its nodes (`init.cc`, after `allGather3Data`)."""
    return ChannelPlan(
        min(plan.channels for plan in plans),
        min(plan.intra_gbyte_s for plan in plans),
        min(plan.inter_gbyte_s for plan in plans),
    )


def _plan(node: SearchInput, pattern: str) -> ChannelPlan:
    between = bool(node.rails_gbyte_s)
    limit = max_channels(node.version)
    total = _total(node, pattern)
    fastest = max(node.rails_gbyte_s) if between else node.nvlink_gbyte_s
    best = NO_PLAN
    for speed in search_speeds(node.sm, between, node.version):
        if speed > fastest or speed > total:
            continue
        if best.channels and speed / best.inter_gbyte_s <= 0.49:
            break
        channels = limit if total == math.inf else _floor(total / speed)
        if between:
            channels = min(channels, sum(_floor(rail / speed) for rail in node.rails_gbyte_s))
        channels = min(channels, limit)
        if channels * speed > best.total_gbyte_s:
            best = ChannelPlan(channels, speed, speed)
        if best.total_gbyte_s >= node.nvlink_gbyte_s:
            break
    return double_channels(best, node.sm, limit)


def _total(node: SearchInput, pattern: str) -> float:
    """What channels may take of the NVLinks: a ring between nodes leaves one GPU of the node by its NIC."""
    if node.gpus < 2:
        return math.inf
    spared = pattern != RING or bool(node.rails_gbyte_s)
    return node.nvlink_gbyte_s * (node.gpus / (node.gpus - 1) if spared else 1.0)


def double_channels(plan: ChannelPlan, sm: int, limit: int) -> ChannelPlan:
    """`ncclTopoDupChannels`: few fast channels become twice as many."""
    if not plan.channels or plan.intra_gbyte_s < 25 or (sm > 80 and plan.intra_gbyte_s < 50 and plan.channels > 4):
        return plan
    channels = min(plan.channels * 2, limit)
    parts = -(-channels // plan.channels)
    return ChannelPlan(channels, plan.intra_gbyte_s / parts, plan.inter_gbyte_s / parts)


def _floor(value: float) -> int:
    return int(value + 1e-9)


def cube_mesh(one: float) -> Mesh:
    """The mesh of eight V100 with links of `one` GB/s."""
    return tuple((int(word[0]), int(word[1]), one * int(word[3])) for word in _CUBE.split())


@lru_cache(64)
def search_rings(gpus: int, mesh: Mesh, sm: int, version: Version, budget: int = BUDGET) -> ChannelPlan:
    """The rings of one node over its direct links; none where they do not join all GPUs in a circle."""
    total = max((sum(speed for a, b, speed in mesh if gpu in (a, b)) for gpu in range(gpus)), default=0.0)
    fastest = max((speed for _, _, speed in mesh), default=0.0)
    limit, best = max_channels(version), NO_PLAN
    for speed in search_speeds(sm, False, version):
        if speed > fastest:
            continue
        if best.channels and speed / best.inter_gbyte_s <= 0.49:
            break
        channels = _Search(gpus, mesh, speed, min(limit, int(total / speed + 1e-9)), budget).run()
        if channels * speed > best.total_gbyte_s:
            best = ChannelPlan(channels, speed, speed)
        if best.total_gbyte_s >= total:
            break
    return double_channels(best, sm, limit)


class _Search:
    """How many rings of one speed fit beside each other."""

    def __init__(self, gpus: int, mesh: Mesh, speed: float, most: int, budget: int) -> None:
        self._gpus, self._speed, self._most, self._steps = gpus, speed, most, budget
        self._left = {pair: speed for a, b, speed in mesh for pair in ((a, b), (b, a))}
        self._best = 0

    def run(self) -> int:
        """The most rings that were found within the budget."""
        self._extend([0], 0)
        return self._best

    def _extend(self, ring: list[int], channels: int) -> bool:
        """Whether the search is over: as many as can be, or no steps left."""
        self._steps -= 1
        if self._steps < 0:
            return True
        if len(ring) == self._gpus:
            return self._close(ring, channels)
        for gpu in list(self._next(ring)):
            self._left[ring[-1], gpu] -= self._speed
            over = self._extend([*ring, gpu], channels)
            self._left[ring[-1], gpu] += self._speed
            if over:
                return True
        return False

    def _close(self, ring: list[int], channels: int) -> bool:
        back = (ring[-1], ring[0])
        if self._left.get(back, 0.0) < self._speed:
            return False
        self._best = max(self._best, channels + 1)
        if self._best >= self._most:
            return True
        self._left[back] -= self._speed
        over = self._extend([0], channels + 1)
        self._left[back] += self._speed
        return over

    def _next(self, ring: list[int]) -> Iterator[int]:
        """GPUs that the last one reaches with enough bandwidth left: the most first, then by number."""
        last = ring[-1]
        candidates = [
            gpu for gpu in range(self._gpus) if gpu not in ring and self._left.get((last, gpu), 0.0) >= self._speed
        ]
        yield from sorted(candidates, key=lambda gpu: (-self._left[last, gpu], gpu))
