"""One node's topology: PCI tree, GPUs, NVSwitches, NICs, interfaces, and the path of every pair."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent.model.gpu import Ascend, Gpu, NpuPort, NvSwitch
from agent.model.nic import Netdev, Nic, Port
from agent.model.pci import Cxl, PciFunction


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """What another source states of the same pair."""

    source: str  # nvml | nvidia-smi | nccl-topo | hwloc-xml
    kind: str


NEAREST_FIRST = ("PIX", "PXB", "PHB", "NODE", "SYS")  # ways over PCIe


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """How two devices reach each other. Bandwidth: one direction; null where no hop's link is known."""

    a: str
    b: str
    kind: str | None = None  # NV<n> XGMI HCCS SIO UB GAUDI NEURON C2C PIX PXB PHB NODE SYS; null: not known
    pcie_kind: str | None = None  # PIX PXB PHB NODE SYS
    hops: list[str] = []  # PCI ids between a and b, a's side first
    bandwidth_gbyte_s: float | None = None
    limiting: str | None = None  # id of the function whose link (to its port above) is the slowest
    source: str | None = None  # nvml | nvidia-smi | pci-tree | nccl-topo | hwloc-xml
    disagrees: Disagreement | None = None


class UnequalLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A label of a saved output that no field has, and that is not the same on all devices."""

    source: str  # the command
    label: str  # with the headings above it: "Max Clocks/Video"
    values: dict[str, list[str]]  # the devices by what each states, as the output names them


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is wired. Lists are sorted by identity."""

    pci: list[PciFunction] = []
    gpus: list[Gpu] = []
    nvswitches: list[NvSwitch] = []
    nics: list[Nic] = []
    netdevs: list[Netdev] = []
    paths: list[Path] = []
    cxl: Cxl | None = None  # null: no CXL memory device
    ascend: Ascend | None = None  # null: no Ascend NPU
    bandwidth_mode: str | None = None  # NVLink bandwidth mode of the system
    unequal_labels: list[UnequalLabel] | msgspec.UnsetType = msgspec.UNSET  # only where there are any

    @property
    def host_nics(self) -> list[Nic]:
        """NICs that the host has by itself: without the network ports inside accelerators."""
        return [nic for nic in self.nics if nic.accelerator is None]

    def find_named(self, name: str) -> set[str]:
        """Ids of the device that a person calls so: by its label, PCI address, serial number, UUID or GUID; of an
        interface also its NIC, of a NIC also its interfaces."""
        ids = {function.id for function in self.pci if name in (function.id, function.id.removeprefix("0000:"))}
        for gpu in self.gpus:
            if gpu.pci in ids or name in (gpu.id, gpu.label, gpu.uuid, gpu.serial):
                ids.update(filter(None, (gpu.id, gpu.pci)))
        for nic in self.nics:
            if nic.pci in ids or name in (nic.id, nic.label, nic.rdma_device, nic.node_guid):
                ids.update(filter(None, (nic.id, nic.pci)))
        for netdev in self.netdevs:
            if name in (netdev.id, netdev.label, netdev.mac):
                ids.update(filter(None, (netdev.id, netdev.nic, netdev.pci)))
            elif netdev.nic in ids:
                ids.add(netdev.id)
        return ids


def find_npu_link(nics: Iterable[Nic], port: NpuPort) -> Port:
    """State and rate of the RoCE port of an NPU; one of which nothing is known where no row has it."""
    return next((nic.ports[0] for nic in nics if nic.id == port.nic and nic.ports), Port(port=1))
