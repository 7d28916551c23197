"""What every NIC is used for, with the evidence; decided before any counter is read.

A rail is a NIC that GPUs use. An ambiguous NIC is `unknown`, never a rail. The first line that holds decides:

 1  owned by a fabric manager; a software device; a virtual function beside physical
    ones; carried by the RDMA device of another port's bond                               auxiliary
 2  passed to a guest (vfio)                                                              unknown
 3  no NIC of its model carries more than 25 Gb/s                                         management
 4  no GPU here, or the distance to every GPU is unknown                                  unknown
 5  some NICs are near (PIX, PXB): the rail model is the one that is near to most GPUs,
    of those the fastest. Near, and of that model                                         rail
 6  none is near, and GPUs are attached by C2C, or this is a virtual machine: the
    rail model is that of most cards (C2C) or functions, of those the fastest             rail
 7  none is near otherwise: the rail model is the only one, or the only nearest, unless
    all GPUs are passed to guests                                                         rail
 8  the rail model is not clear, or it is far, of the rail model and of the same board    unknown
    the latter, and its switch has nothing where others of its shape have a GPU           rail
 9  slower than the rails                                                                 management
10  far, as fast as the rails, another board, with two or more ports                      storage
11  else                                                                                  unknown

Then: a NIC that is dark together with all its siblings (same role, model and position on the card: all second ports)
was never cabled and is `unused`, unless its interface is set up and has an address or a module in its cage. Dark: every
port is down and no signal arrives (Polling, Disabled, Sleep). Rails of
several cards that are all dark stay rails where they are near GPUs, on a superchip and in a guest: that is a fault, not
a choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from agent.assemble.facts import ProbeFacts, card_address
from agent.assemble.paths import DriverMatrix, select_path_nics
from agent.assemble.pcie_tree import find_beside_lost_gpu
from agent.model.gpu import Gpu
from agent.model.nic import Nic, is_link_local
from agent.model.node import Node
from agent.model.pci import PciFunction, bandwidth_gbyte_s
from agent.model.topology import NEAREST_FIRST, Path
from agent.platforms.devices import is_coherent_port

if TYPE_CHECKING:
    from probes.netdev.probe import Netdev, NetdevFacts
    from probes.optics.probe import OpticsFacts

NEAR = ("PIX", "PXB")
SLOW_GBIT_S = 25.0
SLOW_HOST_GBYTE_S = 4.0  # a host link that cannot carry more than about 25 Gb/s
_NO_LID = 0xFFFF  # of a port that never had one
_NO_SIGNAL = ("Polling", "Disabled", "Sleep")

Model = tuple[str | int | None, ...]


class RoleContext(msgspec.Struct, frozen=True):
    """What roles are decided from, besides the NICs."""

    rows: Mapping[str, PciFunction]
    gpus: Sequence[Gpu]
    distances: Mapping[str, Mapping[str, int]]  # place in NEAREST_FIRST by NIC and GPU
    speeds: Mapping[str, float]  # Gb/s of the interfaces on a PCI function
    neighbours: Mapping[str, int]  # how many NICs are on the same switch, where a topology matrix shows it
    virtual: bool
    coherent: bool  # GPUs are connected to their CPUs by C2C
    set_up: frozenset[str]  # PCI functions whose interface is up by settings, with an address or a module
    lost_gpu: frozenset[str]  # PCI functions whose switch has no GPU where others of its shape have one


class Candidate(msgspec.Struct, frozen=True):
    """One NIC and the evidence for its role."""

    nic: Nic
    model: Model
    board: Model
    ports_on_card: int
    distance: Mapping[str, int]  # place in NEAREST_FIRST by GPU
    gbit_s: float | None
    host_gbyte_s: float | None  # what its host link can carry at most

    @property
    def near(self) -> frozenset[str]:
        """GPUs that share a PCIe switch with it."""
        return frozenset(gpu for gpu, rank in self.distance.items() if NEAREST_FIRST[rank] in NEAR)

    @property
    def is_dark(self) -> bool:
        """Whether every port is down without an incoming signal."""
        ports = self.nic.ports
        return bool(ports) and all(p.state == "DOWN" and p.phys_state in _NO_SIGNAL for p in ports)

    @property
    def was_up(self) -> bool:
        """Whether a subnet manager gave a port a LID: it was cabled since the driver was loaded."""
        return any(port.lid not in (None, 0, _NO_LID) for port in self.nic.ports)

    @property
    def is_slow(self) -> bool:
        """Whether it carries no more than a management network needs."""
        if self.gbit_s is not None:
            return self.gbit_s <= SLOW_GBIT_S
        return self.host_gbyte_s is not None and self.host_gbyte_s <= SLOW_HOST_GBYTE_S


def gather_role_context(
    node: Node,
    rows: Sequence[PciFunction],
    gpus: Sequence[Gpu],
    nics: Sequence[Nic],
    paths: Sequence[Path],
    matrix: DriverMatrix,
    facts: ProbeFacts,
) -> RoleContext:
    """Gather the evidence for the roles of this node."""
    speeds: dict[str, float] = {}
    interfaces: NetdevFacts | None = facts.get("netdev")
    netdevs = interfaces.netdevs if interfaces else ()
    for netdev in netdevs:
        if netdev.address and netdev.speed_mbit_s:
            speeds[netdev.address] = max(netdev.speed_mbit_s / 1000, speeds.get(netdev.address, 0.0))
    distances: dict[str, dict[str, int]] = {}
    for path in paths:
        if path.pcie_kind:
            distances.setdefault(path.b, {})[path.a] = NEAREST_FIRST.index(path.pcie_kind)
    return RoleContext(
        rows={row.id: row for row in rows},
        gpus=gpus,
        distances=distances,
        speeds=speeds,
        neighbours=_count_neighbours(frozenset(nic.id for nic in nics), matrix),
        virtual=node.virtualization is not None,
        coherent=any(gpu.memory_numa_node is not None or (gpu.c2c and gpu.c2c.enabled) for gpu in gpus)
        or any(is_coherent_port(row.vendor, row.device) for row in rows),
        set_up=_find_set_up(netdevs, facts),
        lost_gpu=find_beside_lost_gpu(
            {row.id: row for row in rows}, [nic.pci for nic in nics if nic.pci], [gpu.pci for gpu in gpus if gpu.pci]
        ),
    )


def _find_set_up(netdevs: Sequence[Netdev], facts: ProbeFacts) -> frozenset[str]:
    optics: OpticsFacts | None = facts.get("optics")
    modules = {socket.name for socket in optics.sockets if socket.module} if optics else set()
    return frozenset(
        netdev.address
        for netdev in netdevs
        if netdev.address and netdev.admin_up is not False
        if netdev.name in modules or not all(is_link_local(address) for address in netdev.addresses)
    )


def _count_neighbours(nics: frozenset[str], matrix: DriverMatrix) -> dict[str, int]:
    counts: dict[str, int] = {}
    for pair, kinds in matrix.pairs.items():
        if pair <= nics:
            for one in pair:
                counts[one] = counts.get(one, 0) + any(kind == "PIX" for _, kind in kinds)
    return counts


def build_candidates(nics: Sequence[Nic], around: RoleContext) -> list[Candidate]:
    """The NICs with their evidence; `nics`: those that are free to have any role."""
    functions_on_card = Counter(card_address(nic.pci) for nic in nics if nic.pci)
    return [_candidate(nic, functions_on_card[card_address(nic.pci)] if nic.pci else 1, around) for nic in nics]


def _candidate(nic: Nic, functions_on_card: int, around: RoleContext) -> Candidate:
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


Decision = tuple[str, list[str]]
_NOTHING_KNOWN: Model = (None, None)


def assign_roles(nics: Sequence[Nic], around: RoleContext) -> list[Nic]:
    """Assign each NIC its role and the evidence."""
    owned = _decide_excluded(nics)
    free = [nic for nic in nics if nic.id not in owned]
    candidates = build_candidates(free, around)
    fast = {c.model for c in candidates if not c.is_slow}
    decided = owned | {c.nic.id: _too_slow(c) for c in candidates if c.model not in fast}
    decided |= _decide_by_distance([c for c in candidates if c.model in fast], around)
    decided |= _decide_unused(candidates, decided, around)
    return [msgspec.structs.replace(nic, role=decided[nic.id][0], role_evidence=decided[nic.id][1]) for nic in nics]


def _decide_excluded(nics: Sequence[Nic]) -> dict[str, Decision]:
    """Lines 1 and 2."""
    counted = {nic.id for nic in select_path_nics(nics)}
    owned: dict[str, Decision] = {}
    for nic in nics:
        if nic.limited:
            owned[nic.id] = "auxiliary", [f"not for jobs: {nic.limited}"]
        elif nic.software:
            owned[nic.id] = "auxiliary", ["a software device"]
        elif nic.id not in counted:
            owned[nic.id] = "auxiliary", ["a virtual function beside physical ones"]
        elif nic.bond and nic.rdma_device is None:
            owned[nic.id] = "auxiliary", [f"its traffic belongs to the RDMA device of {nic.bond}"]
        elif nic.state == "vfio":
            owned[nic.id] = "unknown", ["bound to vfio: handed to a guest"]
    return owned


def _too_slow(candidate: Candidate) -> Decision:
    """Line 3."""
    rate = f"{candidate.gbit_s:g} Gb/s" if candidate.gbit_s is not None else "its host link is slow"
    return "management", [f"{rate}: too slow for a rail"]


def _decide_by_distance(candidates: Sequence[Candidate], around: RoleContext) -> dict[str, Decision]:
    """Lines 4 to 11."""
    if not around.gpus:
        return {c.nic.id: ("unknown", ["no GPU is seen here that could use it"]) for c in candidates}
    if not any(c.distance for c in candidates):
        return {c.nic.id: ("unknown", ["its distance to any GPU is unknown"]) for c in candidates}
    near = [c for c in candidates if c.near]
    if near:
        rail, why = _rail_model_by_distance(near, len(around.gpus))
        rails = [c for c in near if c.model == rail]
    else:
        rail, why = _rail_model_without_switch(candidates, around)
        rails = [c for c in candidates if c.model == rail]
    if rail is None:
        return {c.nic.id: ("unknown", [_describe_distance(c, around), why]) for c in candidates}
    return {
        c.nic.id: ("rail", [_describe_distance(c, around), why])
        if c in rails
        else _decide_beside_rails(c, rails, around)
        for c in candidates
    }


def _rail_model_by_distance(near: Sequence[Candidate], gpus: int) -> tuple[Model | None, str]:
    reached: dict[Model, set[str]] = {}
    for candidate in near:
        reached.setdefault(candidate.model, set()).update(candidate.near)
    model = _heaviest_model(near, lambda c: len(reached[c.model]))
    if model is None:
        return None, "several models are near to equally many GPUs"
    name = next((c.nic.model for c in near if c.model == model and c.nic.model), "this kind")
    return model, f"{name} is near to {len(reached[model])} of {gpus} GPUs"


def _rail_model_without_switch(candidates: Sequence[Candidate], around: RoleContext) -> tuple[Model | None, str]:
    cards = Counter(c.model for c in {_card(c.nic): c for c in candidates}.values())
    if cards.total() > 1 and _NOTHING_KNOWN in cards:
        return None, "no switch is shared with a GPU, and their models are unknown"
    if around.coherent:
        return _most_common_model(candidates, cards, "GPUs are connected to their CPUs by C2C", "cards")
    if around.virtual:
        return _most_common_model(candidates, Counter(c.model for c in candidates), "a virtual machine", "functions")
    if all(gpu.driver_state == "vfio" for gpu in around.gpus):
        return None, "no switch is shared with a GPU, and all GPUs are handed to guests"
    if len(cards) == 1:
        return candidates[0].model, "no switch is shared with a GPU, and there is no other model"
    least = min(min(c.distance.values()) for c in candidates if c.distance)
    nearest = {c.model for c in candidates if c.distance and min(c.distance.values()) == least}
    if len(nearest) == 1:
        return nearest.pop(), "no switch is shared with a GPU, and this model is the nearest"
    return None, "no switch is shared with a GPU, and several models are as near"


def _most_common_model(
    candidates: Sequence[Candidate], counts: Counter[Model], where: str, what: str
) -> tuple[Model | None, str]:
    model = _heaviest_model(candidates, lambda c: counts[c.model])
    if model is None:
        return None, f"{where}, and several models have as many {what}"
    return model, f"{where}: {counts[model]} of {counts.total()} {what} are of this model"


def _heaviest_model(candidates: Iterable[Candidate], weight: Callable[[Candidate], int]) -> Model | None:
    """The model with the greatest weight, of those the fastest; None where several are left."""
    ranked: dict[Model, tuple[int, float]] = {}
    for candidate in candidates:
        speed = max(candidate.gbit_s or 0.0, ranked.get(candidate.model, (0, 0.0))[1])
        ranked[candidate.model] = (weight(candidate), speed)
    best = max(ranked.values())
    first = [model for model, rank in ranked.items() if rank == best]
    return first[0] if len(first) == 1 else None


def _card(nic: Nic) -> str:
    return card_address(nic.pci) if nic.pci else nic.id


def _decide_beside_rails(candidate: Candidate, rails: Sequence[Candidate], around: RoleContext) -> Decision:
    """Lines 8 to 11."""
    distance = _describe_distance(candidate, around)
    if candidate.board in {rail.board for rail in rails}:
        if candidate.nic.pci in around.lost_gpu:
            return "rail", [distance, "a rail's board, and the GPU that other switches have is missing from its switch"]
        return "unknown", [distance, "of the same model and board as the rails"]
    slower = _why_slower(candidate, rails)
    if slower:
        return "management", [distance, slower]
    if slower is not None and not candidate.near and candidate.ports_on_card > 1:
        return "storage", [distance, f"another board than the rails, with {candidate.ports_on_card} ports, as fast"]
    return "unknown", [distance, "another model or board than the rails"]


def _why_slower(candidate: Candidate, rails: Sequence[Candidate]) -> str | None:
    """Why it is slower than the rails; "" where it is not; None where that is unknown."""
    rail_rates = [rail.gbit_s for rail in rails if rail.gbit_s is not None]
    if candidate.gbit_s is not None and rail_rates:
        rate = max(rail_rates)
        return f"slower than the rails: {candidate.gbit_s:g} of {rate:g} Gb/s" if candidate.gbit_s < rate else ""
    if candidate.nic.pci and candidate.model[:2] in {rail.model[:2] for rail in rails}:
        return ""  # the same chip
    hosts = [rail.host_gbyte_s for rail in rails if rail.host_gbyte_s is not None]
    if candidate.host_gbyte_s is None or not hosts:
        return None
    host = max(hosts)
    if candidate.host_gbyte_s < host:
        return f"its host link is slower than that of the rails: {candidate.host_gbyte_s:g} of {host:g} GB/s"
    return ""


def _describe_distance(candidate: Candidate, around: RoleContext) -> str:
    """Describe its distance to the GPUs."""
    if not candidate.distance:
        return "its distance to the GPUs is not known"
    least = min(candidate.distance.values())
    labels = [gpu.label for gpu in around.gpus if candidate.distance.get(gpu.id) == least]
    gpus = "every GPU" if len(labels) == len(around.gpus) > 1 else ", ".join(labels)
    return f"{NEAREST_FIRST[least]} to {gpus}"


def _decide_unused(
    candidates: Sequence[Candidate], decided: Mapping[str, Decision], around: RoleContext
) -> dict[str, Decision]:
    """Dark ports that were never cabled; their siblings distinguish them from ports that lost their cable."""
    placeless = around.coherent or around.virtual  # rails are found by their number and not by their position

    def kind(candidate: Candidate) -> tuple[object, ...]:
        position = candidate.nic.pci[-1] if candidate.nic.pci else ""
        return decided[candidate.nic.id][0], candidate.model, position

    rails = [c for c in candidates if decided[c.nic.id][0] == "rail"]
    fault = all(c.is_dark for c in rails) and len({_card(c.nic) for c in rails}) > 1
    lit = {kind(c) for c in candidates if not c.is_dark}
    unused: dict[str, Decision] = {}
    for candidate in candidates:
        role, evidence = decided[candidate.nic.id]
        stays = role == "rail" and (candidate.near or placeless or candidate.nic.pci in around.lost_gpu) and fault
        is_configured = candidate.was_up or candidate.nic.pci in around.set_up
        is_comparable = bool(lit) or candidate.nic.pci is not None  # a fragment may show the dark ones alone
        if kind(candidate) not in lit and not stays and not is_configured and is_comparable:
            unused[candidate.nic.id] = "unused", [*evidence, "no signal, nor on any port like it"]
    return unused
