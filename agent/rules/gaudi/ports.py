"""Ports of Gaudi cards: links inside the box by the board's wiring, and ports that leave it, compared among cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.nic import Netdev, Port
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import about_gpu, about_pair, find_function, kernel_log_evidence, why_unreachable
from agent.rules.gaudi.cards import TO_OTHERS, gaudi_cards, is_on_module_board
from agent.rules.node_wide import merge_failures, merge_if_on_all
from agent.rules.rule import NODE, Fail, Pass, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_STATES = "/sys/class/infiniband/hbl_*/ports/*/phys_state"
_FEW = 4  # pairs, or cards, that are reported one by one


class _CardLink(msgspec.Struct, frozen=True):
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
def gaudi_internal_port_down(context: RuleContext) -> Iterator[Result]:
    cards = {gpu.id: gpu for gpu in gaudi_cards(context)}
    judged: dict[str, Gpu] = {}
    for gpu in cards.values():
        why = _not_judged(context, gpu)
        if why is None:
            judged[gpu.id] = gpu
        elif not _is_cut_off(gpu):
            yield why
    yield from _judge_cut_off(context, cards)
    for group in _groups(_wires(judged)):
        yield from _judge_group(context, cards, group)


def _is_cut_off(gpu: Gpu) -> bool:
    """Whether all ports of a module are down that its board joins, whichever module they lead to."""
    states = [link.state for link in gpu.links]
    joined = any(link.remote and link.remote.kind == "gpu" for link in gpu.links)
    return not joined and len(states) == TO_OTHERS and set(states) == {"inactive"} and gpu.driver_state == "open"


def _judge_cut_off(context: RuleContext, cards: dict[str, Gpu]) -> Iterator[Fail]:
    """Modules whose links are all down, where it is not known which of them the links join."""
    cut_off = [gpu for gpu in cards.values() if _is_cut_off(gpu)]
    faults = [
        about_gpu(gpu).fail(
            summary=f"all {TO_OTHERS} ports to the other cards are down",
            impact="Jobs of more than one card do not start with it.",
            evidence=(
                *(Evidence(f"port {link.link}", link.state, _STATES) for link in gpu.links[:_FEW]),
                *kernel_log_evidence(context, gpu.id),
            ),
            cause="every-link" if len(cut_off) == len(cards) > 1 else "",
        )
        for gpu in cut_off
    ]
    yield from merge_if_on_all(faults, len(cards), f"all {TO_OTHERS} ports to the other cards are down on every card")


def _judge_group(context: RuleContext, cards: dict[str, Gpu], card_links: list[_CardLink]) -> Iterator[Result]:
    """Cards that the board joins with each other, by the links between them."""
    judged = sorted({card for card_link in card_links for card in _pair_of(card_link)})
    down = [card_link for card_link in card_links if card_link.down]
    if len(down) == len(card_links) and not all(is_on_module_board(cards[card]) for card in judged):
        labels = join_labels([cards[card].label for card in judged])
        yield NODE.unknown(
            "undecided", detail=f"all {len(card_links)} links between {labels} are down: PCIe cards may have no bridge"
        )
        return
    if what := _describe_common(judged, cards, card_links, down):
        yield _fail_all(context, judged, down, what)
        return
    dead: set[str] = set()
    hurt = sorted({_pair_of(card_link) for card_link in down}, key=sorted)
    for pair in sorted({_pair_of(card_link) for card_link in card_links}, key=sorted):
        known = all(card_link.known for card_link in card_links if _pair_of(card_link) == pair)
        if pair not in hurt:
            a, b = sorted(pair)
            yield (
                Pass(f"pair:{a}+{b}")
                if known
                else Unknown(f"pair:{a}+{b}", Reason("not-read", fact="the state of a port"))
            )
    for card in judged:
        own = sorted({_pair_of(card_link) for card_link in card_links if card in _pair_of(card_link)}, key=sorted)
        if all(card_link.down for card_link in card_links if card in _pair_of(card_link)):
            yield _fail_card(
                context, cards[card], [card_link for card_link in down if card in _pair_of(card_link)], own
            )
            dead.add(card)
    hurt = [pair for pair in hurt if dead.isdisjoint(pair)]
    common = frozenset.intersection(*hurt) if len(hurt) > 1 else frozenset[str]()
    if common:
        yield _fail_card(
            context, cards[min(common)], [card_link for card_link in down if _pair_of(card_link) in hurt], hurt
        )
        return
    faults = [
        _fail_pair(context, [card_link for card_link in down if _pair_of(card_link) == pair], card_links)
        for pair in hurt
    ]
    if len(faults) > _FEW:
        yield merge_failures(faults, f"links of {len(faults)} pairs of cards are down")
    else:
        yield from faults


def _pair_of(card_link: _CardLink) -> frozenset[str]:
    return frozenset((card_link.a.id, card_link.b.id))


def _groups(card_links: Iterable[_CardLink]) -> list[list[_CardLink]]:
    """Links by the cards that they join, directly or through others: a board of PCIe cards has two groups of four."""
    groups: list[list[_CardLink]] = []
    for card_link in card_links:
        ends = _pair_of(card_link)
        joined = [group for group in groups if any(ends & _pair_of(other) for other in group)]
        groups = [group for group in groups if group not in joined] + [[*(w for g in joined for w in g), card_link]]
    return groups


def _describe_common(
    judged: list[str], cards: dict[str, Gpu], card_links: list[_CardLink], down: list[_CardLink]
) -> str | None:
    """What the links that are down have in common, where that is neither a pair nor a card."""
    if len(judged) < 3 or not down:
        return None
    if len(down) == len(card_links):
        return f"all {len(card_links)} links inside the box are down"
    off = {frozenset(link.link for link in cards[card].links if link.state == "inactive") for card in judged}
    count = f"{len(down)} of {len(card_links)} links inside the box are down"
    return f"{count}, by the same ports of every card" if len(off) == 1 else None


def _not_judged(context: RuleContext, gpu: Gpu) -> Result | None:
    about, absent = about_gpu(gpu), why_unreachable(find_function(context, gpu))
    if absent or gpu.driver_state in ("vfio", "no_driver", "not_open"):
        return about.not_applicable(absent or Reason("not-measured", detail="the driver does not offer it"))
    if gpu.driver_state == "error":
        return about.unknown(
            "undecided", detail=f"the card is in the state {gpu.driver_error}: its ports follow from it"
        )
    if not gpu.links:
        return about.unknown(quote_source(gpu.links_reason) or Reason("not-shown", detail="its ports are not known"))
    if not any(link.remote and link.remote.kind == "gpu" for link in gpu.links):
        return about.unknown("not-known", fact="how the board joins its ports")
    return None


def _wires(cards: dict[str, Gpu]) -> Iterator[_CardLink]:
    links: dict[tuple[str, int], GpuLink] = {(gpu.id, link.link): link for gpu in cards.values() for link in gpu.links}
    for (card, port), link in links.items():
        if link.remote is None or link.remote.id is None or link.remote.link is None:
            continue
        far = links.get((link.remote.id, link.remote.link))
        if far is not None and (card, port) < (link.remote.id, link.remote.link):
            ends = cards[card], cards[link.remote.id]
            yield _CardLink(ends[0], port, ends[1], link.remote.link, (link.state, far.state))


def _fail_all(context: RuleContext, judged: list[str], down: list[_CardLink], what: str) -> Fail:
    whole = what.startswith("all ")
    return NODE.fail(
        summary=what,
        impact="Jobs of more than one card do not start."
        if whole
        else "Collectives run at the speed of the links that are left, or do not start.",
        evidence=(*_states(down), *(row for card in judged for row in kernel_log_evidence(context, card))),
        severity=None if whole else "error",
        cause="every-link" if whole else "same-ports",
        ids=frozenset(judged),
    )


def _fail_pair(context: RuleContext, down: list[_CardLink], card_links: list[_CardLink]) -> Fail:
    a, b = down[0].a, down[0].b
    of_pair = sum({card_link.a.id, card_link.b.id} == {a.id, b.id} for card_link in card_links)
    left = of_pair - len(down)
    return about_pair(a, b).fail(
        summary=f"{len(down)} of {of_pair} links between {a.label} and {b.label} down: "
        + ", ".join(f"port {card_link.port} to port {card_link.far_port}" for card_link in down),
        impact=f"{left} of {of_pair} links {'is' if left == 1 else 'are'} left: collectives run at this speed, "
        "or do not start.",
        evidence=(*_states(down), *kernel_log_evidence(context, a.id)),
    )


def _fail_card(context: RuleContext, gpu: Gpu, down: list[_CardLink], hurt: list[frozenset[str]]) -> Fail:
    return about_gpu(gpu).fail(
        summary=f"{len(down)} links inside the box down, all of {gpu.label}: to {len(hurt)} other cards",
        impact="Collectives run at the speed of the slowest pair, or do not start.",
        evidence=(*_states(down), *kernel_log_evidence(context, gpu.id)),
    )


def _states(down: list[_CardLink]) -> Iterator[Evidence]:
    for card_link in down[:8]:
        yield Evidence(
            f"{card_link.a.label} port {card_link.port} - {card_link.b.label} port {card_link.far_port}",
            " - ".join(card_link.states),
            _STATES,
        )


class _ScaleOut(msgspec.Struct, frozen=True):
    """A card and its ports that leave the box."""

    gpu: Gpu
    ports: list[Port]

    @property
    def up(self) -> list[Port]:
        return [port for port in self.ports if port.state == "ACTIVE"]

    @property
    def down(self) -> list[Port]:
        return [port for port in self.ports if port.state != "ACTIVE"]


def _scale_out(context: RuleContext) -> tuple[list[_ScaleOut], list[Result]]:
    """Cards whose scale-out ports are known, and the answers for the others."""
    rows = {nic.accelerator: nic.ports for nic in context.accelerator_nics}
    known: list[_ScaleOut] = []
    answers: list[Result] = []
    for gpu in gaudi_cards(context):
        ports = rows.get(gpu.id, [])
        absent = why_unreachable(find_function(context, gpu))
        if absent or gpu.driver_state != "open":
            why = absent or Reason("not-in-use", detail="the driver does not offer it, or it is not ready")
            answers.append(about_gpu(gpu).not_applicable(why))
        elif not ports or any(port.state is None for port in ports):
            why = quote_source(gpu.links_reason) or Reason(
                "not-shown", detail="which ports leave the box, or their states, are not known"
            )
            answers.append(about_gpu(gpu).unknown(why))
        else:
            known.append(_ScaleOut(gpu, ports))
    return known, answers


@rule("gaudi-external-port-down")
def gaudi_external_port_down(context: RuleContext) -> Iterator[Result]:
    known, answers = _scale_out(context)
    yield from answers
    most = max((len(card.up) for card in known), default=0)
    if known and not most:
        yield _fail_unconnected(context, known)
        return
    faults: list[Fail] = []
    for card in known:
        if len(card.up) < most or any(_has_address(context, port) for port in card.down):
            faults.append(_fail_external(card, most))
        else:
            yield about_gpu(card.gpu).passes()
    if len(faults) > _FEW:
        yield merge_failures(faults, f"scale-out ports of {len(faults)} of {len(known)} cards are down")
    else:
        yield from faults


def _has_address(context: RuleContext, port: Port) -> bool:
    """Whether someone set its interface up; an address of its link alone it gives to itself."""
    netdev = _interface(context, port)
    return netdev is not None and any(not address.startswith("fe80:") for address in netdev.addresses)


def _fail_unconnected(context: RuleContext, known: list[_ScaleOut]) -> Fail:
    """No port of any card is up: not cabled, unless addresses show that ports were set up for it."""
    ports = [(card.gpu, port) for card in known for port in card.ports]
    set_up = [(gpu, port) for gpu, port in ports if _has_address(context, port)]
    return NODE.fail(
        summary=f"all {len(ports)} scale-out ports are down"
        + (f", and an address is set on {len(set_up)} of them" if set_up else ": not connected"),
        impact="Jobs over several nodes do not start, or go over the host's NICs."
        if set_up
        else "None where jobs stay on this node, or go over the host's NICs.",
        evidence=tuple(
            Evidence(f"{gpu.label} port {port.port}", port.state or "", _STATES) for gpu, port in (set_up or ports)[:8]
        ),
        severity=None if set_up else "info",
        cause="all",
        situation="" if set_up else "not-needed",
        ids=frozenset(card.gpu.id for card in known),
    )


def _fail_external(card: _ScaleOut, most: int) -> Fail:
    gpu, down = card.gpu, card.down
    return about_gpu(gpu).fail(
        summary=f"{len(card.up)} of {len(card.ports)} scale-out ports up"
        + (f", other cards have {most}" if len(card.up) < most else "")
        + f"; down: {join_labels([str(port.port) for port in down])}",
        impact="Traffic between nodes runs at the speed of the card with the fewest ports.",
        evidence=tuple(Evidence(f"{gpu.label} port {port.port}", port.state or "", _STATES) for port in down[:8]),
    )


@rule("gaudi-external-uneven")
def gaudi_external_uneven(context: RuleContext) -> Iterator[Result]:
    known, answers = _scale_out(context)
    yield from answers
    ports = [(card.gpu, port) for card in known for port in card.up]
    mtus = [(gpu, port, netdev.mtu) for gpu, port in ports if (netdev := _interface(context, port)) and netdev.mtu]
    if not known:
        return
    if not ports:
        yield NODE.not_applicable("not-in-use", detail="no port that leaves the box is up")
        return
    fastest = max((port.rate_gbit_s for _, port in ports if port.rate_gbit_s), default=None)
    values = [mtu for *_, mtu in mtus]
    usual = find_majority(values) or (max(values) if len(values) > 1 else None)
    slow = [
        (gpu, port, f"{port.rate_gbit_s:g} Gb/s") for gpu, port in ports if (port.rate_gbit_s or fastest) != fastest
    ]
    odd = [(gpu, port, str(mtu)) for gpu, port, mtu in mtus if usual and mtu != usual]
    if slow:
        yield _fail_uneven("speed", slow, f"{fastest:g} Gb/s", "speed")
    if odd:
        yield _fail_uneven("MTU", odd, str(usual), "mtu")
    if slow or odd:
        return
    if usual is None or len(mtus) < len(ports) or any(port.rate_gbit_s is None for _, port in ports):
        yield NODE.unknown("no-peers", detail="speed or MTU of a port is not known, or one port alone is up")
    else:
        yield NODE.passes()


def _interface(context: RuleContext, port: Port) -> Netdev | None:
    return next((context.netdevs[name] for name in port.netdevs if name in context.netdevs), None)


def _fail_uneven(what: str, odd: list[tuple[Gpu, Port, str]], usual: str, attribute: str) -> Fail:
    gpus = {gpu.id: gpu for gpu, *_ in odd}
    first = odd[0][0]
    named = [f"{gpu.label} port {port.port}" for gpu, port, _ in odd]
    mtu = attribute == "mtu" and len(odd) == 1
    return (about_gpu(first) if len(gpus) == 1 else NODE).fail(
        summary=f"{what} of scale-out ports differs: {usual}, but "
        + join_labels([f"{name} {value}" for name, (*_, value) in zip(named, odd, strict=True)]),
        impact="Collectives between nodes run at the speed of the slowest port."
        if attribute == "speed"
        else "Packets of one size do not fit all ports: connections fail, or move less than they could.",
        evidence=tuple(
            Evidence(f"{what} of {name}", value, f"/sys/class/net/{_name(port)}/{attribute}")
            for name, (_, port, value) in zip(named[:8], odd, strict=False)
        ),
        values=(("INTERFACE", _name(odd[0][1])), ("RAIL_MTU", usual)) if mtu else (),
        cause=attribute,
        ids=frozenset(gpus),
    )


def _name(port: Port) -> str:
    return port.netdevs[0] if port.netdevs else "*"
