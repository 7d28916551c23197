"""Ports of Gaudi cards: links inside the box by the board's wiring, and ports that leave it, compared among cards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent.model.finding import Evidence
from agent.model.gpu import Gpu, GpuLink
from agent.model.nic import Netdev, Port
from agent.model.reasons import Reason, quote_source
from agent.rules.context import RuleContext
from agent.rules.devices import find_function, kernel_log_evidence, unreachable_reason
from agent.rules.gaudi.cards import gaudi_cards, is_on_module_board
from agent.rules.node_wide import merge_failures
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import find_majority, join_labels

_STATES = "/sys/class/infiniband/hbl_*/ports/*/phys_state"
_FEW = 4  # pairs, or cards, that are reported one by one


class _Wire(msgspec.Struct, frozen=True):
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
    for group in _groups(_wires(judged)):
        yield from _judge_group(case, cards, group)


def _judge_group(case: RuleContext, cards: dict[str, Gpu], wires: list[_Wire]) -> Iterator[Result]:
    """Cards that the board joins with each other, by the links between them."""
    judged = sorted({card for wire in wires for card in _pair_of(wire)})
    down = [wire for wire in wires if wire.down]
    if len(down) == len(wires) and not all(is_on_module_board(cards[card]) for card in judged):
        labels = join_labels([cards[card].label for card in judged])
        yield Unknown(
            "node",
            Reason(
                "undecided", detail=f"all {len(wires)} links between {labels} are down: PCIe cards may have no bridge"
            ),
        )
        return
    if what := _describe_common(judged, cards, wires, down):
        yield _fail_all(case, judged, down, what)
        return
    dead: set[str] = set()
    hurt = sorted({_pair_of(wire) for wire in down}, key=sorted)
    for pair in sorted({_pair_of(wire) for wire in wires}, key=sorted):
        known = all(wire.known for wire in wires if _pair_of(wire) == pair)
        if pair not in hurt:
            a, b = sorted(pair)
            yield (
                Pass(f"pair:{a}+{b}")
                if known
                else Unknown(f"pair:{a}+{b}", Reason("not-read", fact="the state of a port"))
            )
    for card in judged:
        own = sorted({_pair_of(wire) for wire in wires if card in _pair_of(wire)}, key=sorted)
        if all(wire.down for wire in wires if card in _pair_of(wire)):
            yield _fail_card(case, cards[card], [wire for wire in down if card in _pair_of(wire)], own)
            dead.add(card)
    hurt = [pair for pair in hurt if dead.isdisjoint(pair)]
    common = frozenset.intersection(*hurt) if len(hurt) > 1 else frozenset[str]()
    if common:
        yield _fail_card(case, cards[min(common)], [wire for wire in down if _pair_of(wire) in hurt], hurt)
        return
    faults = [_fail_pair(case, [wire for wire in down if _pair_of(wire) == pair], wires) for pair in hurt]
    if len(faults) > _FEW:
        yield merge_failures(faults, f"links of {len(faults)} pairs of cards are down")
    else:
        yield from faults


def _pair_of(wire: _Wire) -> frozenset[str]:
    return frozenset((wire.a.id, wire.b.id))


def _groups(wires: Iterable[_Wire]) -> list[list[_Wire]]:
    """Links by the cards that they join, directly or through others: a board of PCIe cards has two groups of four."""
    groups: list[list[_Wire]] = []
    for wire in wires:
        ends = _pair_of(wire)
        joined = [group for group in groups if any(ends & _pair_of(other) for other in group)]
        groups = [group for group in groups if group not in joined] + [[*(w for g in joined for w in g), wire]]
    return groups


def _describe_common(judged: list[str], cards: dict[str, Gpu], wires: list[_Wire], down: list[_Wire]) -> str | None:
    """What the links that are down have in common, where that is neither a pair nor a card."""
    if len(judged) < 3 or not down:
        return None
    if len(down) == len(wires):
        return f"all {len(wires)} links inside the box are down"
    off = {frozenset(link.link for link in cards[card].links if link.state == "inactive") for card in judged}
    count = f"{len(down)} of {len(wires)} links inside the box are down"
    return f"{count}, by the same ports of every card" if len(off) == 1 else None


def _not_judged(case: RuleContext, gpu: Gpu) -> Result | None:
    subject, absent = f"gpu:{gpu.id}", unreachable_reason(find_function(case, gpu))
    if absent or gpu.driver_state in ("vfio", "no_driver", "not_open"):
        return NotApplicable(subject, absent or Reason("not-measured", detail="the driver does not offer it"))
    if gpu.driver_state == "error":
        return Unknown(
            subject,
            Reason("undecided", detail=f"the card is in the state {gpu.driver_error}: its ports follow from it"),
        )
    if not gpu.links:
        return Unknown(subject, quote_source(gpu.links_reason) or Reason("not-shown", detail="its ports are not known"))
    if not any(link.remote and link.remote.kind == "gpu" for link in gpu.links):
        return Unknown(subject, Reason("not-known", fact="how the board joins its ports"))
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


def _fail_all(case: RuleContext, judged: list[str], down: list[_Wire], what: str) -> Fail:
    whole = what.startswith("all ")
    return Fail(
        subject="node",
        label="node",
        summary=what,
        impact="Jobs of more than one card do not start."
        if whole
        else "Collectives run at the speed of the links that are left, or do not start.",
        evidence=(*_states(down), *(row for card in judged for row in kernel_log_evidence(case, card))),
        severity=None if whole else "error",
        cause="every-link" if whole else "same-ports",
        places=frozenset(judged),
    )


def _fail_pair(case: RuleContext, down: list[_Wire], wires: list[_Wire]) -> Fail:
    a, b = down[0].a, down[0].b
    of_pair = sum({wire.a.id, wire.b.id} == {a.id, b.id} for wire in wires)
    left = of_pair - len(down)
    return Fail(
        subject=f"pair:{a.id}+{b.id}",
        label=f"{a.label} - {b.label}",
        summary=f"{len(down)} of {of_pair} links between {a.label} and {b.label} down: "
        + ", ".join(f"port {wire.port} to port {wire.far_port}" for wire in down),
        impact=f"{left} of {of_pair} links {'is' if left == 1 else 'are'} left: collectives run at this speed, "
        "or do not start.",
        evidence=(*_states(down), *kernel_log_evidence(case, a.id)),
        places=frozenset({a.id, b.id}),
    )


def _fail_card(case: RuleContext, gpu: Gpu, down: list[_Wire], hurt: list[frozenset[str]]) -> Fail:
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"{len(down)} links inside the box down, all of {gpu.label}: to {len(hurt)} other cards",
        impact="Collectives run at the speed of the slowest pair, or do not start.",
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


def _scale_out(case: RuleContext) -> tuple[list[_ScaleOut], list[Result]]:
    """Cards whose scale-out ports are known, and the answers for the others."""
    rows = {nic.accelerator: nic.ports for nic in case.accelerator_nics}
    known: list[_ScaleOut] = []
    answers: list[Result] = []
    for gpu in gaudi_cards(case):
        ports = rows.get(gpu.id, [])
        absent = unreachable_reason(find_function(case, gpu))
        if absent or gpu.driver_state != "open":
            why = absent or Reason("not-in-use", detail="the driver does not offer it, or it is not ready")
            answers.append(NotApplicable(f"gpu:{gpu.id}", why))
        elif not ports or any(port.state is None for port in ports):
            why = quote_source(gpu.links_reason) or Reason(
                "not-shown", detail="which ports leave the box, or their states, are not known"
            )
            answers.append(Unknown(f"gpu:{gpu.id}", why))
        else:
            known.append(_ScaleOut(gpu, ports))
    return known, answers


@rule("gaudi-external-port-down")
def gaudi_external_port_down(case: RuleContext) -> Iterator[Result]:
    known, answers = _scale_out(case)
    yield from answers
    most = max((len(card.up) for card in known), default=0)
    if known and not most:
        yield _fail_unconnected(case, known)
        return
    faults: list[Fail] = []
    for card in known:
        if len(card.up) < most or any(_has_address(case, port) for port in card.down):
            faults.append(_fail_external(card, most))
        else:
            yield Pass(f"gpu:{card.gpu.id}")
    if len(faults) > _FEW:
        yield merge_failures(faults, f"scale-out ports of {len(faults)} of {len(known)} cards are down")
    else:
        yield from faults


def _has_address(case: RuleContext, port: Port) -> bool:
    """Whether somebody set its interface up; an address of its link alone it gives to itself."""
    netdev = _interface(case, port)
    return netdev is not None and any(not address.startswith("fe80:") for address in netdev.addresses)


def _fail_unconnected(case: RuleContext, known: list[_ScaleOut]) -> Fail:
    """No port of any card is up: not cabled, unless addresses show that ports were set up for it."""
    ports = [(card.gpu, port) for card in known for port in card.ports]
    set_up = [(gpu, port) for gpu, port in ports if _has_address(case, port)]
    return Fail(
        subject="node",
        label="node",
        summary=f"all {len(ports)} scale-out ports are down"
        + (f", and {len(set_up)} of them have an address" if set_up else ": not connected"),
        impact="Jobs over several nodes do not start, or go over the host's NICs."
        if set_up
        else "None where jobs stay on this node, or go over the host's NICs.",
        remedy="Check the switches that the ports lead to and `ip link` of their interfaces, then cables and modules."
        if set_up
        else "No action if this is intended; otherwise connect the ports.",
        evidence=tuple(
            Evidence(what=f"{gpu.label} port {port.port}", value=port.state or "", source=_STATES)
            for gpu, port in (set_up or ports)[:8]
        ),
        severity=None if set_up else "info",
        cause="all",
        places=frozenset(card.gpu.id for card in known),
    )


def _fail_external(card: _ScaleOut, most: int) -> Fail:
    gpu, down = card.gpu, card.down
    return Fail(
        subject=f"gpu:{gpu.id}",
        label=gpu.label,
        summary=f"{len(card.up)} of {len(card.ports)} scale-out ports up"
        + (f", other cards have {most}" if len(card.up) < most else "")
        + f"; down: {join_labels([str(port.port) for port in down])}",
        impact="Traffic between nodes runs at the speed of the card with the fewest ports.",
        remedy="Check the cable and switch port of the ports that are down, then the module in the cage.",
        evidence=tuple(
            Evidence(what=f"{gpu.label} port {port.port}", value=port.state or "", source=_STATES) for port in down[:8]
        ),
        places=frozenset({gpu.id}),
    )


@rule("gaudi-external-uneven")
def gaudi_external_uneven(case: RuleContext) -> Iterator[Result]:
    known, answers = _scale_out(case)
    yield from answers
    ports = [(card.gpu, port) for card in known for port in card.up]
    mtus = [(gpu, port, netdev.mtu) for gpu, port in ports if (netdev := _interface(case, port)) and netdev.mtu]
    if not known:
        return
    if not ports:
        yield NotApplicable("node", Reason("not-in-use", detail="no port that leaves the box is up"))
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
        yield Unknown("node", Reason("no-peers", detail="speed or MTU of a port is not known, or one port alone is up"))
    else:
        yield Pass("node")


def _interface(case: RuleContext, port: Port) -> Netdev | None:
    return next((case.netdevs[name] for name in port.netdevs if name in case.netdevs), None)


def _fail_uneven(what: str, odd: list[tuple[Gpu, Port, str]], usual: str, attribute: str) -> Fail:
    gpus = {gpu.id: gpu for gpu, *_ in odd}
    first = odd[0][0]
    named = [f"{gpu.label} port {port.port}" for gpu, port, _ in odd]
    mtu = attribute == "mtu" and len(odd) == 1
    return Fail(
        subject=f"gpu:{first.id}" if len(gpus) == 1 else "node",
        label=first.label if len(gpus) == 1 else "node",
        summary=f"{what} of scale-out ports differs: {usual}, but "
        + join_labels([f"{name} {value}" for name, (*_, value) in zip(named, odd, strict=True)]),
        impact="Collectives between nodes run at the speed of the slowest port."
        if attribute == "speed"
        else "Packets of one size do not fit all ports: connections fail, or move less than they could.",
        evidence=tuple(
            Evidence(what=f"{what} of {name}", value=value, source=f"/sys/class/net/{_name(port)}/{attribute}")
            for name, (_, port, value) in zip(named[:8], odd, strict=False)
        ),
        values=(("INTERFACE", _name(odd[0][1])), ("RAIL_MTU", usual)) if mtu else (),
        cause=attribute,
        places=frozenset(gpus),
    )


def _name(port: Port) -> str:
    return port.netdevs[0] if port.netdevs else "*"
