"""Pairs of a GPU and a rail, and the ways between them."""

from __future__ import annotations

from collections.abc import Iterator

from agent.model.gpu import Gpu
from agent.model.nic import Nic
from agent.model.pci import PciFunction
from agent.model.reasons import Reason
from agent.model.topology import NEAREST_FIRST, Path
from agent.rules.context import RuleContext
from agent.rules.devices import (
    DATA_DIRECT,
    MELLANOX,
    NVIDIA,
    find_function,
    is_below_nic_switch,
    is_nvidia,
    is_on_c2c,
    why_unreachable,
)
from agent.rules.rule import NamedSubject, Subject

NEAR = ("PIX", "PXB")
TRANSLATED = ("DMA", "DMA-FQ")  # types of IOMMU groups
_GRACE_PORTS = frozenset({"0x22b1", "0x22b2", "0x22b8"})
CLOUD_DRIVERS = ("efa", "gve", "mana", "erdma")  # their providers bring a GPUDirect of their own, or none


class Pair(Subject, frozen=True):
    """A GPU and one of its rails: those that are nearest to it."""

    gpu: Gpu
    nic: Nic
    path: Path

    @property
    def about(self) -> Subject:
        """The pair and its way."""
        gpu, nic = self.gpu, self.nic
        ids = frozenset({gpu.id, gpu.pci or gpu.id, nic.id, nic.pci or nic.id, *self.path.hops})
        return NamedSubject(f"pair:{gpu.id}+{nic.id}", f"{gpu.label} and {nic.label}", ids)

    @property
    def near(self) -> bool:
        """Whether both are behind one PCIe switch, or several without a host bridge between."""
        return self.path.pcie_kind in NEAR


def pairs(context: RuleContext) -> tuple[Pair, ...]:
    """Every GPU of NVIDIA and AMD with each of its rails, in the order of GPUs and rails."""
    return context.once(_pairs)


def _pairs(context: RuleContext) -> Iterator[Pair]:
    rails = {nic.id: nic for nic in context.rails if not (nic.software or nic.limited)}
    for gpu in sorted(context.topology.gpus, key=lambda gpu: gpu.id):
        if not (is_nvidia(context, gpu) or gpu.vendor == "AMD") or why_unreachable(find_function(context, gpu)):
            continue
        ways = [
            p for p in context.paths_of.get(gpu.id, ()) if p.pcie_kind in NEAREST_FIRST and rails.keys() & {p.a, p.b}
        ]
        best = min((NEAREST_FIRST.index(p.pcie_kind or "") for p in ways), default=None)
        for path in sorted(ways, key=lambda p: (p.a, p.b)):
            if NEAREST_FIRST.index(path.pcie_kind or "") == best:
                yield Pair(gpu, rails[path.b if path.b in rails else path.a], path)


def data_direct(context: RuleContext) -> tuple[PciFunction, ...]:
    """The data-direct DMA functions of ConnectX-8 on boards where the NIC has a second way to the GPU."""
    return context.once(_data_direct)


def _data_direct(context: RuleContext) -> Iterator[PciFunction]:
    return (f for f in context.topology.pci if f.vendor == MELLANOX and f.device == DATA_DIRECT)


def platform_kind(context: RuleContext) -> str:
    """Which of these the node is; it decides what ACS, IOMMU and ATS should be.

    guest: a virtual machine; cloud: rails with a GPUDirect of their provider; direct-nic: Grace with data-direct
    functions; grace: Grace without; inline: GPUs below a NIC's own switch; x86: all other.
    """
    return context.once(_possible_kinds)[0]


def _possible_kinds(context: RuleContext) -> list[str]:
    return [_platform_kind(context)]


def _platform_kind(context: RuleContext) -> str:
    if context.virtual_machine:
        return "guest"
    if context.rails and all((nic.driver or "").startswith(CLOUD_DRIVERS) for nic in context.rails):
        return "cloud"
    if data_direct(context):
        return "direct-nic"
    grace = any(f.vendor == NVIDIA and f.device in _GRACE_PORTS for f in context.topology.pci)
    if grace or any(is_on_c2c(context, gpu) for gpu in context.topology.gpus):
        return "grace"
    return "inline" if any(is_below_nic_switch(context, gpu) for gpu in context.topology.gpus) else "x86"


def passes_through(context: RuleContext) -> Reason | None:
    """Why ACS and IOMMU serve guests on this host; None where nothing is handed to any."""
    passed_through = sorted(f.id for f in context.topology.pci if f.driver == "vfio-pci")
    if not passed_through:
        return None
    return Reason("guest", detail=f"{passed_through[0]} is handed to a virtual machine (vfio-pci)")


def peer_memory(context: RuleContext) -> list[str]:
    """Loaded or registered clients of the kernel's peer-memory interface."""
    loaded = {m.name for m in context.software.modules} & {"nvidia_peermem", "nv_peer_mem"}
    return sorted(loaded | set(context.software.peer_memory_clients))
