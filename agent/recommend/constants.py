"""NCCL's constants: link bandwidths, search speeds, tuning tables, by version and GPU generation.

Source: NVIDIA/nccl `src/graph/topo.h`, `topo.cc`, `search.cc`, `tuning.cc`, tags v2.18.1-1 to v2.30.7-1. Bandwidth is
in GB/s (10^9 bytes/s), one direction, as NCCL counts it, which is below the payload of the wire. Latency is in us.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NEWEST = (2, 30)  # taken where a version is not known
LL, LL128, SIMPLE = "LL", "LL128", "Simple"
PROTOCOLS = (LL, LL128, SIMPLE)
RING, TREE, NVLS, NVLS_TREE, PAT = "ring", "tree", "nvls", "nvls-tree", "pat"

Version = tuple[int, int]
ByNodes = tuple[float, float, float]  # one node, two, more


class TuningTable(NamedTuple):
    """What one GPU generation can do per channel or in all, by the number of nodes."""

    ll: ByNodes  # all channels
    ring_ll128: float  # per channel
    tree_ll128: ByNodes
    tree: ByNodes
    nvls_tree: ByNodes  # 0: no limit
    nvls_efficiency: float


class Latency(NamedTuple):
    """us for LL, LL128, Simple."""

    ll: float
    ll128: float
    simple: float

    def of(self, protocol: str) -> float:
        """That of one protocol."""
        return self[PROTOCOLS.index(protocol)]


def parse_version(text: str | None) -> Version:
    """("2.27.7") -> (2, 27); the newest known where there is none or it cannot be read.

    >>> parse_version("2.27.7-1+cuda12.8"), parse_version(None)
    ((2, 27), (2, 30))
    """
    parts = (text or "").split(".")
    if len(parts) < 2 or not parts[0].isdecimal() or not parts[1].isdecimal():
        return NEWEST
    return int(parts[0]), int(parts[1])


def nvlink_gbyte_s(sm: int, version: Version) -> float:
    """GB/s of one NVLink as NCCL counts it (`ncclTopoNVLinkBw`)."""
    if sm >= 100 and version >= (2, 25):
        return 40.0 if version < (2, 28) else 40.1
    if sm >= 90:
        return 20.6 if version >= (2, 20) else 20.0
    if sm == 86:
        return 12.0
    return 20.0 if sm >= 70 else 18.0


def nvlink_wire_gbyte_s(sm: int, counted_gbyte_s: float) -> float:
    """GB/s on the wire, one direction, of links that NCCL counts with less: 25 a link up to Hopper, then 50.

    >>> round(nvlink_wire_gbyte_s(90, 18 * 20.6)), round(nvlink_wire_gbyte_s(100, 721.8))
    (450, 900)
    """
    return counted_gbyte_s * (50.0 if sm >= 100 else 25.0) / nvlink_gbyte_s(sm, NEWEST)


def pcie_gbyte_s(speed_gt_s: float, width: int) -> float:
    """GB/s of a PCIe link as NCCL counts it: width * speed / 80 in units of 100 Mb/s per lane."""
    lane = {2.5: 15, 5.0: 30, 8.0: 60, 16.0: 120, 32.0: 240, 64.0: 480}.get(speed_gt_s, 60)
    return width * lane / 80.0


def search_speeds(sm: int, between_nodes: bool, version: Version) -> tuple[float, ...]:
    """GB/s per channel that the search tries, fastest first (`search.cc`)."""
    speeds: tuple[float, ...]
    if sm >= 100 and version >= (2, 25):
        if not between_nodes:
            speeds = (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18)
            return _without(speeds, [45] if version < (2, 29) else [], [18] if version < (2, 27) else [])
        speeds = (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12)
        return _without(speeds, [96] if version < (2, 28) else [], [86, 80] if version < (2, 30) else [])
    if sm >= 90:
        if not between_nodes:
            speeds = (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3)
            return _without(speeds, [50] if version < (2, 19) else [], [11] if version < (2, 21) else [])
        speeds = (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12)
        return _without(speeds, [22, 20, 17.5] if version < (2, 19) else [])
    if not between_nodes:
        return (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3)
    return (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12)


def max_channels(version: Version) -> int:
    """Ring and tree channels that the search may use."""
    return 32 if version >= (2, 25) else 16


def max_nvls_heads(version: Version) -> int:
    """GPUs that may be heads of an NVLS graph."""
    return 32 if version >= (2, 21) else 8


def tuning_table(sm: int, version: Version) -> TuningTable:
    """The table of the oldest GPU of a job (`tuning.cc`)."""
    if sm < 80:
        return TuningTable((39, 39, 20.4), 20, (20, 20, 20), (26.5, 18.5, 10), (26.5, 18.5, 10), 0.0)
    if sm < 90:
        return TuningTable((87.7, 22.5, 19), 20, (20, 20, 20), (24, 23.6, 17.8), (24, 23.6, 17.8), 0.0)
    early = version < (2, 21)
    hopper_ll: ByNodes = (87.7, 22.5, 19) if early else (141, 45, 35)
    low, two, more = hopper_tree = (38.7, 41.4, 36.0)
    if sm < 100:
        return TuningTable(hopper_ll, 36.7, (36.7, 36.7, 29), hopper_tree, (0, 57.7, 45.5), 0.85)
    late = version >= (2, 28)
    return TuningTable(
        (282, 90, 70),
        40 if version >= (2, 29) else 73.4,
        (55.6, 31.67, 20) if late else (36.7, 36.7, 29),
        (70, 42.8, 24) if late else (2 * low, 2 * two, 2 * more),
        (0, 96, 43.8 if version < (2, 30) else 80),
        0.74,
    )


def base_latency(algorithm: str, version: Version) -> Latency:
    """us before anything moves."""
    if algorithm == TREE:
        return Latency(6.8, 14, 8.4 if version >= (2, 23) else 0.0)
    if algorithm == RING:
        return Latency(6.6, 14, 8.4)
    return Latency(8, 8, 8) if algorithm == PAT else Latency(0, 0, 23.0 if version <= (2, 18) else 0.0)


def hop_latency(algorithm: str, hop: str, version: Version) -> Latency:
    """us for one step over `hop`: nvlink, pci or net."""
    early = (2, 18) < version < (2, 23)
    slow = 28.0 if early else 4.0
    nvls = 25.0 if version >= (2, 21) else 23.0 if version >= (2, 19) else 0.0
    nvls_tree_net = 19.0 if version <= (2, 18) else 14.0 if version < (2, 28) else 20.9
    table = {
        (TREE, "nvlink"): Latency(0.6, 1.25, slow),
        (TREE, "pci"): Latency(1, 1.9, 6.0 if version <= (2, 18) else slow),
        (TREE, "net"): Latency(5, 8.5, 28.0 if early else 14.0),
        (RING, "nvlink"): Latency(0.6, 1.9, 3.4),
        (RING, "pci"): Latency(1, 2.5, 5.7),
        (RING, "net"): Latency(2.7, 4, 14),
        (NVLS, "nvlink"): Latency(0, 0, nvls),
        (NVLS, "net"): Latency(0, 0, 18),
        (NVLS_TREE, "nvlink"): Latency(0, 0, nvls),
        (NVLS_TREE, "net"): Latency(0, 0, nvls_tree_net),
        (PAT, "net"): Latency(0, 0, 14),
    }
    return table.get((algorithm, hop), Latency(0, 0, 0))


# AllReduce over trees: factor by log2(bytes / 64), from 64 B on (`treeCorrectionFactor` of tuning.cc), in tenths
TREE_CORRECTION: dict[str, tuple[float, ...]] = {
    LL: (10, 10, 10, 10, 9, 8, 7, 7, 7, 7, 6, 5, 4, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10),
    LL128: (10, 10, 10, 10, 10, 9, 8, 8, 8, 7, 6, 6, 6, 6, 6, 6, 8, 9, 9, 9, 9, 10, 10),
    SIMPLE: (9, 9, 9, 9, 9, 9, 9, 8, 7, 6, 6, 5, 5, 5, 5, 6, 7, 8, 7, 7, 8, 9, 9),
}


def _without(speeds: Sequence[float], *removed: Sequence[float]) -> tuple[float, ...]:
    gone = {speed for speeds_gone in removed for speed in speeds_gone}
    return tuple(speed for speed in speeds if speed not in gone)
