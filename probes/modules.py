"""Kernel modules: which are loaded, the NVIDIA driver, and whose RDMA stack this is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Module:
    """One loaded kernel module."""

    name: str
    version: str | None = None
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """Loaded modules of interest, and what they say of the RDMA stack and the NVIDIA driver."""

    modules: tuple[Module, ...]
    nvidia_version: str | None = None  # /proc/driver/nvidia/version
    nvidia_open: bool | None = None
    nvidia_params: Mapping[str, str] | None = None  # /proc/driver/nvidia/params
    nvidia_gpus: tuple[str, ...] = ()  # PCI addresses under /proc/driver/nvidia/gpus
    peer_memory_clients: tuple[str, ...] = ()  # /sys/kernel/mm/memory_peers
    ofed: str | None = None  # OFED version; None: inbox or not known
    rdma_stack: str = "unknown"  # inbox | ofed | unknown
