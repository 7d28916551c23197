"""What a source states about CXL memory, in bytes."""

from __future__ import annotations

from collections.abc import Mapping

from probes.named_tuple import NamedTuple

MOST = 256  # memory devices, and regions, of one host


class CxlMemdev(NamedTuple):
    """One memory device. Its number is the kernel's, and not the order of addresses."""

    name: str  # mem0
    address: str | None  # of its PCI function
    ram_bytes: int | None = None  # ram/size
    pmem_bytes: int | None = None  # pmem/size
    decoded_bytes: int | None = None  # dpa_size of all decoders of its endpoint
    firmware: str | None = None  # firmware_version
    numa_node: int | None = None  # numa_node; None: the firmware gave none
    endpoint: str | None = None  # the port whose uport it is; without one it cannot be used
    ports: tuple[str, ...] = ()  # above the endpoint, from the root on
    health: tuple[str, ...] | None = None  # what is wrong by its own account; None: not asked
    media_errors: Mapping[str, int] | None = None  # poisoned ranges by source ("Internal", "Injected"); None: not asked
    qos_class: int | None = None  # ram/qos_class; None: the platform or its kernel (before 6.8) names none


class CxlRegion(NamedTuple):
    """One region: a range of memory over one or several devices."""

    name: str  # region0
    size_bytes: int | None = None  # size
    ways: int | None = None  # interleave_ways
    granularity_bytes: int | None = None  # interleave_granularity
    committed: bool | None = None  # commit
    memdevs: tuple[str, ...] = ()  # names, by position; those that are not there are left out
    numa_node: int | None = None  # target_node of its dax device
    mode: str | None = None  # of its dax device: system-ram | devdax
    online_blocks: int | None = None  # of its memory, and of how many
    total_blocks: int | None = None
    qos_class: int | None = None  # of the root decoder that it is in


class CxlFacts(NamedTuple):
    """All of one host, by number."""

    memdevs: tuple[CxlMemdev, ...]
    regions: tuple[CxlRegion, ...] = ()
    cut: bool = False  # the output has no end: what is missing from its last objects is not known
