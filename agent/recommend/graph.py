"""The channels that NCCL's search finds on a node, in closed form: rings, trees and NVLS over an NVSwitch or full mesh.

Source: NVIDIA/nccl `src/graph/search.cc`, `ncclTopoCompute` and `ncclTopoDupChannels` (v2.30.7-1), which search with a
budget; on a machine whose GPUs all reach each other alike the best solution depends on sums only, and these are here.
Irregular NVLink wiring goes through `search.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from agent.recommend.constants import RING, Version, max_channels, max_nvls_heads, search_speeds


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
