"""What every NIC is for, with the evidence, decided before any counter is looked at.

A rail is a NIC that GPUs use. What is ambiguous is `unknown`, never a rail. The first line that holds decides:

 1  owned by a fabric manager; a software device; a virtual function beside physical
    ones; carried by the RDMA device of another port's bond                               auxiliary
 2  handed to a guest (vfio)                                                              unknown
 3  no NIC of its model carries more than 25 Gb/s                                         management
 4  no GPU here, or nothing says how near any NIC is to any GPU                           unknown
 5  some NICs are near (PIX, PXB): the rail model is the one that is near to most GPUs,
    of those the fastest. Near, and of that model                                         rail
 6  none is near, and GPUs hang on their CPUs by C2C, or this is a virtual machine: the
    rail model is that of most cards (C2C) or functions, of those the fastest             rail
 7  none is near otherwise: the rail model is the only one, or the only nearest           rail
 8  the rail model is not clear, or it is far, of the rail model and of the same board    unknown
 9  slower than the rails                                                                 management
10  far, as fast as the rails, another board, with two or more ports                      storage
11  else                                                                                  unknown

Then: what is dark together with all its siblings (same role, model and position on the card: all second ports) was
never cabled and is `unused`. Dark: every port is down and no signal comes in (Polling, Disabled, Sleep). Rails of
several cards that are all dark stay rails where they are near GPUs, on a superchip and in a guest: that is a fault, not
a choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from agent.assemble.identity import slot_of
from agent.assemble.paths import PCIE_KINDS, with_paths
from agent.assemble.role_evidence import Candidate, Model, Surroundings, candidates_of
from agent.model.nic import Nic

Decision = tuple[str, list[str]]
_NOTHING_KNOWN: Model = (None, None)


def with_roles(nics: Sequence[Nic], around: Surroundings) -> list[Nic]:
    """The same NICs, each with its role and the evidence."""
    owned = _owned(nics)
    free = [nic for nic in nics if nic.id not in owned]
    candidates = candidates_of(free, around)
    fast = {c.model for c in candidates if not c.slow}
    decided = owned | {c.nic.id: _too_slow(c) for c in candidates if c.model not in fast}
    decided |= _by_place([c for c in candidates if c.model in fast], around)
    decided |= _unused(candidates, decided, placeless=around.coherent or around.virtual)
    return [msgspec.structs.replace(nic, role=decided[nic.id][0], role_evidence=decided[nic.id][1]) for nic in nics]


def _owned(nics: Sequence[Nic]) -> dict[str, Decision]:
    """Lines 1 and 2."""
    counted = {nic.id for nic in with_paths(nics)}
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
    told = f"{candidate.gbit_s:g} Gb/s" if candidate.gbit_s is not None else "its host link carries little"
    return "management", [f"{told}: too slow for a rail"]


def _by_place(candidates: Sequence[Candidate], around: Surroundings) -> dict[str, Decision]:
    """Lines 4 to 11."""
    if not around.gpus:
        return {c.nic.id: ("unknown", ["no GPU is seen here that could use it"]) for c in candidates}
    if not any(c.distance for c in candidates):
        return {c.nic.id: ("unknown", ["nothing says how near it is to any GPU"]) for c in candidates}
    near = [c for c in candidates if c.near]
    if near:
        rail, why = _near_to_most(near, len(around.gpus))
        rails = [c for c in near if c.model == rail]
    else:
        rail, why = _without_switch(candidates, around)
        rails = [c for c in candidates if c.model == rail]
    if rail is None:
        return {c.nic.id: ("unknown", [_told(c, around), why]) for c in candidates}
    return {
        c.nic.id: ("rail", [_told(c, around), why]) if c in rails else _beside(c, rails, around) for c in candidates
    }


def _near_to_most(near: Sequence[Candidate], gpus: int) -> tuple[Model | None, str]:
    reached: dict[Model, set[str]] = {}
    for candidate in near:
        reached.setdefault(candidate.model, set()).update(candidate.near)
    model = _first(near, lambda c: len(reached[c.model]))
    if model is None:
        return None, "several models are near to equally many GPUs"
    name = next((c.nic.model for c in near if c.model == model and c.nic.model), "this kind")
    return model, f"{name} is near to {len(reached[model])} of {gpus} GPUs"


def _without_switch(candidates: Sequence[Candidate], around: Surroundings) -> tuple[Model | None, str]:
    cards = Counter(c.model for c in {_card(c.nic): c for c in candidates}.values())
    if cards.total() > 1 and _NOTHING_KNOWN in cards:
        return None, "no switch is shared with a GPU, and nothing says what models they are"
    if around.coherent:
        return _most(candidates, cards, "GPUs hang on their CPUs by C2C", "cards")
    if around.virtual:
        return _most(candidates, Counter(c.model for c in candidates), "a virtual machine", "functions")
    if len(cards) == 1:
        return candidates[0].model, "no switch is shared with a GPU, and there is no other model"
    least = min(min(c.distance.values()) for c in candidates if c.distance)
    nearest = {c.model for c in candidates if c.distance and min(c.distance.values()) == least}
    if len(nearest) == 1:
        return nearest.pop(), "no switch is shared with a GPU, and this model is the nearest"
    return None, "no switch is shared with a GPU, and several models are as near"


def _most(candidates: Sequence[Candidate], counts: Counter[Model], where: str, what: str) -> tuple[Model | None, str]:
    model = _first(candidates, lambda c: counts[c.model])
    if model is None:
        return None, f"{where}, and several models have as many {what}"
    return model, f"{where}: {counts[model]} of {counts.total()} {what} are of this model"


def _first(candidates: Iterable[Candidate], weight: Callable[[Candidate], int]) -> Model | None:
    """The model of the greatest weight, of those the fastest; None where that leaves several."""
    ranked: dict[Model, tuple[int, float]] = {}
    for candidate in candidates:
        speed = max(candidate.gbit_s or 0.0, ranked.get(candidate.model, (0, 0.0))[1])
        ranked[candidate.model] = (weight(candidate), speed)
    best = max(ranked.values())
    first = [model for model, rank in ranked.items() if rank == best]
    return first[0] if len(first) == 1 else None


def _card(nic: Nic) -> str:
    return slot_of(nic.pci) if nic.pci else nic.id


def _beside(candidate: Candidate, rails: Sequence[Candidate], around: Surroundings) -> Decision:
    """Lines 8 to 11."""
    told = _told(candidate, around)
    if candidate.board in {rail.board for rail in rails}:
        return "unknown", [told, "of the same model and board as the rails"]
    slower = _slower(candidate, rails)
    if slower:
        return "management", [told, slower]
    if slower is not None and not candidate.near and candidate.ports_on_card > 1:
        return "storage", [told, f"another board than the rails, with {candidate.ports_on_card} ports, as fast"]
    return "unknown", [told, "another model or board than the rails"]


def _slower(candidate: Candidate, rails: Sequence[Candidate]) -> str | None:
    """Why it is slower than the rails; "" where it is not; None where nothing tells."""
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


def _told(candidate: Candidate, around: Surroundings) -> str:
    """How near it is, in words."""
    if not candidate.distance:
        return "its distance to the GPUs is not known"
    least = min(candidate.distance.values())
    labels = [gpu.label for gpu in around.gpus if candidate.distance.get(gpu.id) == least]
    at = "every GPU" if len(labels) == len(around.gpus) > 1 else ", ".join(labels)
    return f"{PCIE_KINDS[least]} to {at}"


def _unused(candidates: Sequence[Candidate], decided: Mapping[str, Decision], placeless: bool) -> dict[str, Decision]:
    """Dark ports that nobody cabled, told from those that lost their cable by what their siblings do.

    `placeless`: a superchip or a guest, where rails are told by their number and not by their place.
    """

    def kind(candidate: Candidate) -> tuple[object, ...]:
        position = candidate.nic.pci[-1] if candidate.nic.pci else ""
        return decided[candidate.nic.id][0], candidate.model, position

    rails = [c for c in candidates if decided[c.nic.id][0] == "rail"]
    fault = all(c.dark for c in rails) and len({_card(c.nic) for c in rails}) > 1
    lit = {kind(c) for c in candidates if not c.dark}
    found: dict[str, Decision] = {}
    for candidate in candidates:
        role, evidence = decided[candidate.nic.id]
        stays = role == "rail" and (candidate.near or placeless) and fault
        if kind(candidate) not in lit and not stays:
            found[candidate.nic.id] = "unused", [*evidence, "no signal, nor on any port like it"]
    return found
