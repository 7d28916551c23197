"""The drivers' GPU lists: those of one vendor merged, each GPU with its PCI address where known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.facts import ProbeFacts
from agent.platforms.devices import is_accelerator
from probes.gpu.facts import Gpu, GpuFacts, GpuHealth, PairCell
from probes.pci.facts import PciFunction
from probes.text import lazy_pattern

if TYPE_CHECKING:
    from probes.kernel.modules import ModuleFacts, NvidiaGpu

_NVIDIA = "0x10de"
_OF_GPU = lazy_pattern(r"GPU[0-9]+|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")  # by number, or by PCI address
_FILLABLE = tuple(n for n, default in Gpu._field_defaults.items() if default is None and n != "error")


class DriverGpus(msgspec.Struct, frozen=True):
    """The drivers' lists. `answered`: the PCI vendors whose driver gave one. `gaps`, by vendor: why a GPU that is
    missing from it may still exist.

    `list_source`: the file the list comes from, where it is not the driver's; such GPUs are not known to be usable.
    """

    gpus: tuple[Gpu, ...] = ()
    answered: frozenset[str] = frozenset()
    gaps: Mapping[str, str] = MappingProxyType({})
    cells: tuple[tuple[str, PairCell], ...] = ()  # (source, cell), NVML first
    nic_names: Mapping[str, str] = MappingProxyType({})  # RDMA device by the name that the matrix uses
    p2p: Mapping[tuple[int, int], Mapping[str, str]] | None = None
    bandwidth_mode: str | None = None
    list_source: str | None = None
    bound: Mapping[str, NvidiaGpu] = MappingProxyType({})  # by function, whether it works or not (/proc)


def merge_driver_gpus(facts: ProbeFacts, functions: Sequence[PciFunction]) -> DriverGpus:
    """Merge the GPU lists of all probes: an earlier probe wins, later ones fill its missing fields."""
    loaded: ModuleFacts | None = facts.get("modules")
    sources = [
        (gpu_facts.told_by or name.replace("_", "-"), gpu_facts) for name, gpu_facts in facts.all_of("gpu", GpuFacts)
    ]
    list_source = next((gpu_facts.told_by for _, gpu_facts in sources), None)
    gpus: tuple[Gpu, ...] = ()
    gaps: dict[str, str] = {}
    for vendor in dict.fromkeys(gpu_facts.vendor for _, gpu_facts in sources):
        lists = [gpu_facts for _, gpu_facts in sources if gpu_facts.vendor == vendor]
        merged: Sequence[Gpu] = ()
        for gpu_facts in lists:
            merged = _merge_lists(merged, gpu_facts.gpus)
        own = _locate(merged, functions) if vendor == _NVIDIA else _drop_placeless(merged, functions, vendor)
        attached = max((gpu_facts.attached for gpu_facts in lists if gpu_facts.attached is not None), default=None)
        gap = _gap(own, attached, list_source)
        gaps |= {vendor: gap} if gap else {}
        gpus += own
    return DriverGpus(
        gpus=gpus,
        answered=frozenset(gpu_facts.vendor for _, gpu_facts in sources),
        gaps=gaps,
        list_source=list_source,
        cells=tuple(
            (name, cell)
            for name, gpu_facts in sources
            for cell in gpu_facts.pairs
            if gpu_facts.vendor == _NVIDIA
            or all(gpu.address for gpu in gpu_facts.gpus)
            or not any(gpu.address for gpu in gpus)
        ),
        nic_names=_nic_names(gpu_facts for _, gpu_facts in sources),
        p2p=next((gpu_facts.p2p for _, gpu_facts in sources if gpu_facts.p2p), None),
        bound=_bound_gpus(loaded),
        bandwidth_mode=next((gpu_facts.bandwidth_mode for _, gpu_facts in sources if gpu_facts.bandwidth_mode), None),
    )


def _gap(gpus: Sequence[Gpu], attached: int | None, list_source: str | None) -> str | None:
    """nvidia-smi stops at the first GPU it cannot open: without a GPU count there may be more."""
    if list_source or not all(gpu.address for gpu in gpus) or (attached is not None and attached > len(gpus)):
        return "the driver's list has no addresses of its GPUs"
    lost = next((gpu for gpu in gpus if gpu.error), None)
    if attached is None and lost:
        return f"nvidia-smi counts no GPUs, and may have ended at {lost.address}, which it could not open"
    return None


def _bound_gpus(loaded: ModuleFacts | None) -> dict[str, NvidiaGpu]:
    if loaded is None or not loaded.nvidia_gpus:
        return {}
    from probes.kernel.modules import NvidiaGpu  # lazy: the facts are of it, so that it is imported

    held = loaded.nvidia_held or {}
    return {address: held.get(address, NvidiaGpu()) for address in loaded.nvidia_gpus}


def _nic_names(sources: Iterable[GpuFacts]) -> dict[str, str]:
    """NIC names of a matrix, by its legend or by device name; "NIC3" where the legend is missing."""
    names: dict[str, str] = {}
    for source in sources:
        used = {name for cell in source.pairs for name in (cell.a, cell.b) if not _OF_GPU.fullmatch(name)}
        names |= {name: name for name in used if name not in names} | dict(source.nic_names or {})
    return names


def _merge_lists(first: Sequence[Gpu], second: Sequence[Gpu]) -> Sequence[Gpu]:
    left = list(second)
    joined: list[Gpu] = []
    for gpu in first:
        other = next((candidate for candidate in left if _is_same(gpu, candidate)), None)
        if other:
            left.remove(other)
        joined.append(_fill_gpu(gpu, other) if other else gpu)
    return joined + left


def _is_same(one: Gpu, other: Gpu) -> bool:
    for name in ("address", "uuid", "index"):
        a, b = getattr(one, name), getattr(other, name)
        if a is not None and b is not None:
            return bool(a == b)
    return False


def _fill_gpu(gpu: Gpu, other: Gpu) -> Gpu:
    changes = {name: getattr(other, name) for name in _FILLABLE if getattr(gpu, name) is None}
    if not gpu.nvlinks and gpu.nvlink_supported is None:
        changes["nvlinks"] = other.nvlinks
    for name in ("mig_instances", "c2c_links"):
        changes[name] = getattr(gpu, name) or getattr(other, name)
    if gpu.health and other.health:
        pairs = zip(gpu.health, other.health, strict=True)
        changes["health"] = GpuHealth._make(own if own is not None else more for own, more in pairs)
    return gpu._replace(**changes)


def _locate(gpus: Sequence[Gpu], functions: Sequence[PciFunction]) -> tuple[Gpu, ...]:
    """Assign addresses to GPUs that the driver lists by index only, where as many GPUs on the bus are left.

    The driver counts in bus order, so the order decides which is which: between two GPUs with an index and an address,
    too, where more GPUs than these are missing from its list.
    """
    named = {g.address for g in gpus if g.address}
    free = [f.address for f in functions if _could_be_listed(f) and f.address not in named]
    nameless = sorted(g.index for g in gpus if not g.address and g.index is not None)
    places: dict[int | None, str] = {}
    if len(nameless) == len(free):
        places |= zip(nameless, free, strict=True)
    elif nameless:
        order = [f.address for f in functions]
        known = sorted((g.index, order.index(g.address)) for g in gpus if g.index is not None and g.address in order)
        if known == sorted(known, key=lambda pair: pair[1]):
            places = _locate_between(nameless, [order.index(address) for address in free], known, order)
    return tuple(g if g.address else g._replace(address=places.get(g.index)) for g in gpus)


def _locate_between(
    nameless: Sequence[int], free: Sequence[int], known: Sequence[tuple[int, int]], order: Sequence[str]
) -> dict[int | None, str]:
    """The addresses of GPUs by their index. `free`, `known`: places in `order`, the addresses of the bus."""
    ends = [(-1, -1), *known, (max(nameless) + 1, len(order))]
    places: dict[int | None, str] = {}
    for (first, begin), (last, end) in pairwise(ends):
        here, left = [n for n in nameless if first < n < last], [place for place in free if begin < place < end]
        if len(here) == len(left):
            places |= {index: order[place] for index, place in zip(here, left, strict=True)}
    return places


def _drop_placeless(gpus: Sequence[Gpu], functions: Sequence[PciFunction], vendor: str) -> tuple[Gpu, ...]:
    """Without GPUs that have a number only, where others have addresses: which is which is not known."""
    on_bus = any(f.vendor == vendor and is_accelerator(f.vendor, f.device, f.class_code) for f in functions)
    return tuple(gpu for gpu in gpus if gpu.address or not (on_bus or any(gpu.address for gpu in gpus)))


def _could_be_listed(function: PciFunction) -> bool:
    """Whether it is an NVIDIA GPU that is bound to no other driver."""
    nvidia = function.vendor == _NVIDIA and is_accelerator(function.vendor, function.device, function.class_code)
    return nvidia and not function.physical_function and function.driver in (None, "nvidia")
