"""Rings on machines whose GPUs are joined unevenly: NCCL's search with a budget, in its order of branches.

Source: NVIDIA/nccl `src/graph/search.cc` (v2.30.7-1), `ncclTopoSearchRec` and `ncclTopoSearchNextGpuSort`: at each
speed, from the fastest down, channels are added one after the other; the next GPU is the one with the most bandwidth
left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from agent.recommend.constants import Version, max_channels, search_speeds
from agent.recommend.graph import NO_PLAN, ChannelPlan, double_channels

BUDGET = 1 << 14  # steps of one speed, as NCCL's
Mesh = tuple[tuple[int, int, float], ...]  # two GPUs and GB/s of their links together, one direction
# Links of the hybrid cube mesh of DGX-1 with V100, as `nvidia-smi topo -m` prints it
_CUBE = "01:1 02:1 03:2 04:2 12:2 13:1 15:2 23:2 26:1 37:1 45:1 46:1 47:2 56:2 57:1 67:2"


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
