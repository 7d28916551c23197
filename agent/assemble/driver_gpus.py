"""What the driver says of its GPUs: NVML and nvidia-smi joined, each GPU with its place on the bus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.assemble.facts import Facts
from agent.platforms.devices import is_accelerator
from probes.gpu.facts import Gpu, GpuFacts, PairCell
from probes.kernel.modules import ModuleFacts, NvidiaGpu
from probes.pci.sysfs import PciFunction

_GPU = re.compile(r"GPU[0-9]+")
_FILLED = tuple(n for n, default in Gpu._field_defaults.items() if default is None and n != "error")


@dataclass(frozen=True)
class DriverGpus:
    """The driver's list. `gap`: why one that it leaves out may yet be there; None: it names the place of all it has.

    `told_by`: the list is none of the driver's, but of a file about GPUs; nothing in it says that they can be used.
    """

    gpus: tuple[Gpu, ...] = ()
    answered: bool = False
    gap: str | None = None
    cells: tuple[tuple[str, PairCell], ...] = ()  # (source, cell), NVML first
    nic_names: Mapping[str, str] = field(default_factory=dict)  # RDMA device by the name that the matrix uses
    p2p: Mapping[tuple[int, int], Mapping[str, str]] | None = None
    bandwidth_mode: str | None = None
    told_by: str | None = None
    held: Mapping[str, NvidiaGpu] = field(default_factory=dict)  # by function, whether it works or not (/proc)


def driver_gpus(facts: Facts, functions: Sequence[PciFunction]) -> DriverGpus:
    """NVML wins, nvidia-smi fills what NVML does not say."""
    nvml = facts.of("nvml", GpuFacts)
    tool = facts.of("nvidia_smi", GpuFacts)
    loaded = facts.of("modules", ModuleFacts)
    sources = [(said.told_by or name, said) for name, said in (("nvml", nvml), ("nvidia-smi", tool)) if said]
    told_by = next((said.told_by for _, said in sources), None)
    gpus = _placed(_joined(nvml.gpus if nvml else (), tool.gpus if tool else ()), functions)
    attached = max((said.attached for _, said in sources if said.attached is not None), default=None)
    return DriverGpus(
        gpus=gpus,
        answered=bool(sources),
        gap=_gap(gpus, attached, told_by),
        told_by=told_by,
        cells=tuple((name, cell) for name, said in sources for cell in said.pairs),
        nic_names=_nic_names(said for _, said in sources),
        p2p=next((said.p2p for _, said in sources if said.p2p), None),
        held=_held(loaded),
        bandwidth_mode=next((said.bandwidth_mode for _, said in sources if said.bandwidth_mode), None),
    )


def _gap(gpus: Sequence[Gpu], attached: int | None, told_by: str | None) -> str | None:
    """nvidia-smi ends at the first GPU that it cannot open: where nothing counts the GPUs, there may be more."""
    if told_by or not all(gpu.address for gpu in gpus) or (attached is not None and attached > len(gpus)):
        return "the driver's list does not say where its GPUs are"
    lost = next((gpu for gpu in gpus if gpu.error), None)
    if attached is None and lost:
        return f"nvidia-smi counts no GPUs, and may have ended at {lost.address}, which it could not open"
    return None


def _held(loaded: ModuleFacts | None) -> dict[str, NvidiaGpu]:
    told = (loaded.nvidia_held if loaded else None) or {}
    return {address: told.get(address, NvidiaGpu()) for address in (loaded.nvidia_gpus if loaded else ())}


def _nic_names(sources: Iterable[GpuFacts]) -> dict[str, str]:
    """What a matrix calls its NICs: by a legend, or by the device's own name; "NIC3" where a legend is missing."""
    names: dict[str, str] = {}
    for said in sources:
        used = {name for cell in said.pairs for name in (cell.a, cell.b) if not _GPU.fullmatch(name)}
        names |= {name: name for name in used if name not in names} | dict(said.nic_names or {})
    return names


def _joined(nvml: Sequence[Gpu], tool: Sequence[Gpu]) -> list[Gpu]:
    left = list(tool)
    found: list[Gpu] = []
    for gpu in nvml:
        other = next((each for each in left if _same(gpu, each)), None)
        if other:
            left.remove(other)
        found.append(_filled(gpu, other) if other else gpu)
    return found + left


def _same(one: Gpu, other: Gpu) -> bool:
    for name in ("address", "uuid", "index"):
        a, b = getattr(one, name), getattr(other, name)
        if a is not None and b is not None:
            return bool(a == b)
    return False


def _filled(gpu: Gpu, other: Gpu) -> Gpu:
    changes = {name: getattr(other, name) for name in _FILLED if getattr(gpu, name) is None}
    if not gpu.nvlinks and gpu.nvlink_supported is None:
        changes["nvlinks"] = other.nvlinks
    for name in ("mig_instances", "c2c_links"):
        changes[name] = getattr(gpu, name) or getattr(other, name)
    return gpu._replace(**changes)


def _placed(gpus: Sequence[Gpu], functions: Sequence[PciFunction]) -> tuple[Gpu, ...]:
    """Give a place to GPUs that the driver names by index only, where the bus has exactly as many left.

    The driver counts in bus order, so the order decides which is which.
    """
    named = {g.address for g in gpus if g.address}
    free = [f.address for f in functions if _could_be_listed(f) and f.address not in named]
    nameless = sorted((g for g in gpus if not g.address and g.index is not None), key=lambda g: g.index or 0)
    if not nameless or len(nameless) != len(free):
        return tuple(gpus)
    places = {g.index: address for g, address in zip(nameless, free, strict=True)}
    return tuple(g if g.address else g._replace(address=places.get(g.index)) for g in gpus)


def _could_be_listed(function: PciFunction) -> bool:
    """An NVIDIA GPU that no other driver holds."""
    nvidia = function.vendor == "0x10de" and is_accelerator(function.vendor, function.device, function.class_code)
    return nvidia and not function.physical_function and function.driver in (None, "nvidia")
