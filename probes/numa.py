"""NUMA nodes: /sys/devices/system/node. A node without CPUs is GPU or CXL memory, not a socket."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node. Without CPUs it is GPU or CXL memory, not a socket."""

    id: int
    cpus: str | None  # cpulist; "" : none
    memory_mib: int | None = None
    distances: tuple[int, ...] = ()  # to every node, in id order


@dataclass(frozen=True, slots=True)
class NumaFacts:
    """Every NUMA node, by id."""

    nodes: tuple[NumaNode, ...]
