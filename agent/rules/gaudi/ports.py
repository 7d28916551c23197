"""Ports of Gaudi cards: links inside the box by the board's wiring, and ports that leave it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, kernel_log_evidence, unreachable_reason
from agent.rules.gaudi.cards import gaudi_cards
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import join_labels

_STATES = "/sys/class/infiniband/hbl_*/ports/*/phys_state"
_REMEDY = "Drain the node and power cycle it completely; then have the board, or the card that is common, exchanged."


class _Wire(NamedTuple):
    """One link inside the box, seen from its end with the smaller address."""

    a: Gpu
    port: int
    b: Gpu
    far_port: int
    states: tuple[str, str]

    @property
    def down(self) -> bool:
        return "inactive" in self.states

    @property
    def known(self) -> bool:
        return "unknown" not in self.states


@rule("gaudi-internal-port-down")
def gaudi_internal_port_down(case: RuleContext) -> Iterator[Result]:
    cards = {gpu.id: gpu for gpu in gaudi_cards(case)}
    judged: dict[str, Gpu] = {}
    for gpu in cards.values():
        why = _not_judged(case, gpu)
        if why is None:
            judged[gpu.id] = gpu
        else:
            yield why
    wires = list(_wires(judged))
    down = [wire for wire in wires if wire.down]
    if off := _switched_off_reason(judged, wires, down):
        yield Unknown("node", off)
        return
    dead: set[str] = set()
    hurt = sorted({_pair_of(wire) for wire in down}, key=sorted)
    for pair in sorted({_pair_of(wire) for wire in wires}, key=sorted):
        known = all(wire.known for wire in wires if _pair_of(wire) == pair)
        if pair not in hurt:
            a, b = sorted(pair)
            yield Pass(f"pair:{a}+{b}") if known else Unknown(f"pair:{a}+{b}", "the state of a port could not be read")
    for card in judged:
        own = sorted({_pair_of(wire) for wire in wires if card in _pair_of(wire)}, key=sorted)
        if len(own) > 1 and all(wire.down for wire in wires if card in _pair_of(wire)):
            yield _fail_card(case, cards[card], [wire for wire in down if card in _pair_of(wire)], own)
            dead.add(card)
    hurt = [pair for pair in hurt if dead.isdisjoint(pair)]
    common = frozenset.intersection(*hurt) if len(hurt) > 1 else frozenset[str]()
    if common:
        yield _fail_card(case, cards[min(common)], [wire for wire in down if _pair_of(wire) in hurt], hurt)
    else:
        yield from (_fail_pair(case, [wire for wire in down if _pair_of(wire) == pair], wires) for pair in hurt)


def _pair_of(wire: _Wire) -> frozenset[str]:
    return frozenset((wire.a.id, wire.b.id))


def _switched_off_reason(cards: dict[str, Gpu], wires: list[_Wire], down: list[_Wire]) -> str | None:
    """Why links that are down may be off on purpose: the driver's mask of ports counts for every card alike."""
    count = f"{len(down)} of {len(wires)} links inside the box are down"
    off = {frozenset(link.link for link in card.links if link.state == "inactive") for card in cards.values()}
    if down and len(down) == len(wires):
        return f"{count}: they may be switched off"
    if down and len(cards) > 1 and len(off) == 1:
        return f"{count}, by the same ports of every card: they may be switched off"
    return None


def _not_judged(case: RuleContext, gpu: Gpu) -> Result | None:
    subject, absent = f"gpu:{gpu.id}", unreachable_reason(find_function(case, gpu))
    if absent or gpu.driver_state in ("vfio", "no_driver", "not_open"):
        return NotApplicable(subject, absent or "the driver does not offer it")
    if gpu.driver_state == "error":
        return Unknown(subject, f"the card is in the state {gpu.driver_error}: its ports follow from it")
    if not gpu.links:
        return Unknown(subject, gpu.links_reason or "its ports are not known")
    if not any(link.remote and link.remote.kind == "gpu" for link in gpu.links):
        return Unknown(subject, "how the board joins its ports is not known")
    return None


def _wires(cards: dict[str, Gpu]) -> Iterator[_Wire]:
    links: dict[tuple[str, int], GpuLink] = {(gpu.id, link.link): link for gpu in cards.values() for link in gpu.links}
    for (card, port), link in links.items():
        if link.remote is None or link.remote.id is None or link.remote.link is None:
            continue
        far = links.get((link.remote.id, link.remote.link))
        if far is not None and (card, port) < (link.remote.id, link.remote.link):
            ends = cards[card], cards[link.remote.id]
            yield _Wire(ends[0], port, ends[1], link.remote.link, (link.state, far.state))


def _fail_pair(case: RuleContext, down: list[_Wire], wires: list[_Wire]) -> Fail:
    a, b = down[0].a, down[0].b
    of_pair = sum({wire.a.id, wire.b.id} == {a.id, b.id} for wire in wires)
    return Fail(
        subject=f"pair:{a.id}+{b.id}",
        label=f"{a.label} - {b.label}",
        summary=f"{len(down)} of {of_pair} links between {a.label} and {b.label} down: "
        + ", ".join(f"port {wire.port} to port {wire.far_port}" for wire in down),
        impact=f"{of_pair - len(down)} of {of_pair} links are left: collectives run at this speed, or do not start.",
        remedy=_REMEDY,
        evidence=(*_states(down), *kernel_log_evidence(case, a.id)),
        places=frozenset({a.id, b.id}),
    )


def _fail_card(case: RuleContext, gpu: Gpu, down: list[_Wire], hurt: list[frozenset[str]]) -> Fail:
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"{len(down)} links inside the box down, all of {gpu.label}: to {len(hurt)} other cards",
        impact="Collectives run at the speed of the slowest pair, or do not start.",
        remedy=_REMEDY,
        evidence=(*_states(down), *kernel_log_evidence(case, gpu.id)),
        places=frozenset({gpu.id}),
    )


def _states(down: list[_Wire]) -> Iterator[Evidence]:
    for wire in down[:8]:
        yield Evidence(
            what=f"{wire.a.label} port {wire.port} - {wire.b.label} port {wire.far_port}",
            value=" - ".join(wire.states),
            source=_STATES,
        )


@rule("gaudi-external-port-down")
def gaudi_external_port_down(case: RuleContext) -> Iterator[Result]:
    ports: dict[str, list[GpuLink]] = {}
    cards = {gpu.id: gpu for gpu in gaudi_cards(case)}
    for gpu in cards.values():
        outside = [link for link in gpu.links if link.remote and link.remote.kind == "network"]
        absent = unreachable_reason(find_function(case, gpu))
        if absent or gpu.driver_state != "open":
            yield NotApplicable(f"gpu:{gpu.id}", absent or "the driver does not offer it, or it is not ready")
        elif not outside or any(link.state == "unknown" for link in outside):
            yield Unknown(
                f"gpu:{gpu.id}", gpu.links_reason or "which ports leave the box, or their states, are not known"
            )
        else:
            ports[gpu.id] = outside
    most = max((sum(link.state == "active" for link in outside) for outside in ports.values()), default=0)
    for card, outside in ports.items():
        down = [link for link in outside if link.state != "active"]
        if most == 0:
            yield NotApplicable(f"gpu:{card}", "no port that leaves the box is connected: traffic goes over host NICs")
        elif len(outside) - len(down) >= most:
            yield Pass(f"gpu:{card}")
        else:
            yield _fail_external(cards[card], outside, down, most)


def _fail_external(gpu: Gpu, outside: list[GpuLink], down: list[GpuLink], most: int) -> Fail:
    up = len(outside) - len(down)
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"{up} of {len(outside)} scale-out ports up, other cards have {most}; down: "
        + join_labels([str(link.link) for link in down]),
        impact="Traffic between nodes runs at the speed of the card with the fewest ports.",
        remedy="Check the cable and switch port of the ports that are down, then the module in the cage.",
        evidence=tuple(
            Evidence(what=f"{gpu.label} port {link.link}", value=link.state, source=_STATES) for link in down[:8]
        ),
        places=frozenset({gpu.id}),
    )
