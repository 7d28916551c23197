"""What the role of a NIC hangs on: how near it is to GPUs, what model it is, how fast, whether a signal comes in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.assemble.identity import slot_of
from agent.assemble.paths import PCIE_KINDS, Matrix
from agent.model.gpu import Gpu
from agent.model.link_rate import bandwidth_gbyte_s
from agent.model.nic import Nic
from agent.model.node import Node
from agent.model.pci import PciFunction
from agent.model.topology import Path
from agent.platforms.devices import is_coherent_port
from probes.netdev.probe import NetdevFacts

NEAR = ("PIX", "PXB")
SLOW_GBIT_S = 25.0
SLOW_HOST_GBYTE_S = 4.0  # a host link that cannot carry more than about 25 Gb/s
_NO_SIGNAL = ("Polling", "Disabled", "Sleep")

Model = tuple[str | int | None, ...]


class Surroundings(NamedTuple):
    """What roles are decided from, beside the NICs."""

    rows: Mapping[str, PciFunction]
    gpus: Sequence[Gpu]
    distances: Mapping[str, Mapping[str, int]]  # place in PCIE_KINDS by NIC and GPU
    speeds: Mapping[str, float]  # Gb/s of the interfaces on a PCI function
    neighbours: Mapping[str, int]  # how many NICs are on the same switch, where a topology matrix tells
    virtual: bool
    coherent: bool  # GPUs hang on their CPUs by C2C


class Candidate(NamedTuple):
    """One NIC and what its role hangs on."""

    nic: Nic
    model: Model
    board: Model
    ports_on_card: int
    distance: Mapping[str, int]  # place in PCIE_KINDS by GPU
    gbit_s: float | None
    host_gbyte_s: float | None  # what its host link can carry at most

    @property
    def near(self) -> frozenset[str]:
        """GPUs that share a PCIe switch with it."""
        return frozenset(gpu for gpu, rank in self.distance.items() if PCIE_KINDS[rank] in NEAR)

    @property
    def dark(self) -> bool:
        """Every port is down, and no signal comes in."""
        ports = self.nic.ports
        return bool(ports) and all(p.state == "DOWN" and p.phys_state in _NO_SIGNAL for p in ports)

    @property
    def slow(self) -> bool:
        """It cannot carry more than a management network needs."""
        if self.gbit_s is not None:
            return self.gbit_s <= SLOW_GBIT_S
        return self.host_gbyte_s is not None and self.host_gbyte_s <= SLOW_HOST_GBYTE_S


def surroundings(
    node: Node,
    rows: Sequence[PciFunction],
    gpus: Sequence[Gpu],
    nics: Sequence[Nic],
    paths: Sequence[Path],
    matrix: Matrix,
    netdevs: NetdevFacts | None,
) -> Surroundings:
    """Gathers what the roles of this node are decided from."""
    speeds: dict[str, float] = {}
    for netdev in netdevs.netdevs if netdevs else ():
        if netdev.address and netdev.speed_mbit_s:
            speeds[netdev.address] = max(netdev.speed_mbit_s / 1000, speeds.get(netdev.address, 0.0))
    distances: dict[str, dict[str, int]] = {}
    for path in paths:
        if path.pcie_kind:
            distances.setdefault(path.b, {})[path.a] = PCIE_KINDS.index(path.pcie_kind)
    return Surroundings(
        rows={row.id: row for row in rows},
        gpus=gpus,
        distances=distances,
        speeds=speeds,
        neighbours=_neighbours(frozenset(nic.id for nic in nics), matrix),
        virtual=node.virtualization is not None,
        coherent=any(gpu.memory_numa_node is not None or (gpu.c2c and gpu.c2c.enabled) for gpu in gpus)
        or any(is_coherent_port(row.vendor, row.device) for row in rows),
    )


def _neighbours(nics: frozenset[str], matrix: Matrix) -> dict[str, int]:
    found: dict[str, int] = {}
    for pair, said in matrix.pairs.items():
        if pair <= nics:
            for one in pair:
                found[one] = found.get(one, 0) + any(kind == "PIX" for _, kind in said)
    return found


def candidates_of(nics: Sequence[Nic], around: Surroundings) -> list[Candidate]:
    """The NICs with their evidence; `nics`: those that are free to have any role."""
    functions_on_card = Counter(slot_of(nic.pci) for nic in nics if nic.pci)
    return [_candidate(nic, functions_on_card[slot_of(nic.pci)] if nic.pci else 1, around) for nic in nics]


def _candidate(nic: Nic, functions_on_card: int, around: Surroundings) -> Candidate:
    row = around.rows.get(nic.pci or "")
    link = row.link if row else None
    # SDR is what a kernel prints that has no name for a port's speed: no evidence of a slow NIC
    rates = [p.rate_gbit_s for p in nic.ports if p.state == "ACTIVE" and p.rate_gbit_s and p.speed != "SDR"]
    model: Model = (row.vendor, row.device, functions_on_card) if row else (nic.model, around.neighbours.get(nic.id))
    if nic.virtual_function:  # alike by id, whatever they are for
        model = (*model, *sorted({port.link_layer or "" for port in nic.ports}))
    board = (row.subsystem_vendor, row.subsystem_device) if row else (nic.board_id,)
    return Candidate(
        nic=nic,
        model=model,
        board=(*model, *board),
        ports_on_card=max(functions_on_card, len(nic.ports)),
        distance=around.distances.get(nic.id, {}),
        gbit_s=max(rates, default=around.speeds.get(nic.pci or "")),
        host_gbyte_s=bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width) if link else None,
    )
