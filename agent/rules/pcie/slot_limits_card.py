"""pcie-slot-limits-card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.pci import Link
from agent.rules.case import Case
from agent.rules.counting import share_lost
from agent.rules.devices import AMD, MELLANOX, by_role, is_consumer, pci_source
from agent.rules.pcie.needs import card_functions, carries, needed
from agent.rules.pcie.siblings import siblings
from agent.rules.pcie.wires import LANES, OFTEN_HALF, Wire, bandwidth, reach, unjudged, wire_label, wires
from agent.rules.rule import Answer, Fail, NotApplicable, Pass, Unknown, rule


class _Limit(NamedTuple):
    """What a slot can do, beside what its card could."""

    slot: Link
    card: Link

    @property
    def narrow(self) -> bool:
        """Fewer lanes than the card has."""
        return (self.slot.max_width or 0) < (self.card.max_width or 0)

    @property
    def slow(self) -> bool:
        """An older generation than the card's."""
        return bool(self.slot.max_speed_gt_s and self.slot.max_speed_gt_s < (self.card.max_speed_gt_s or 0))


@rule(
    "pcie-slot-limits-card",
    "warning",
    needs=("pci|lspci",),
    references=("PCIE-006",),
    absorbs=("pcie-slower-than-siblings", "pcie-nic-starved"),
)
def pcie_slot_limits_card(case: Case) -> Iterator[Answer]:
    """A card sits in a slot that can do less than the card.

    ## What it checks
    GPUs and NICs that can do RDMA: what the card can (`max_link_speed`, `max_link_width`) beside what the port above
    it can.

    ## Why it matters
    Nothing is broken, and it costs the same: an x16 card in an x8 slot has half its bandwidth, 31.5 instead of 63 GB/s
    in each direction at Gen 5. One such GPU slows the collective of all.

    ## How it is decided
    A NIC that cannot carry the rate of one port because of it: error on rails, one step less on others. One that cannot
    carry those of all its ports together, and could in a better slot: warning. A NIC that can all the same: info.
    A GPU with fewer lanes or a slower slot than other GPUs of its kind on this node have, and a lone GPU with fewer
    lanes than it could have: warning. Where every GPU of its kind sits in a slot like that, the board was built so:
    info.

    ## What keeps it silent
    - A host of an older generation than the card, and nothing to compare with: info.
    - GPUs that many servers wire with x8 on purpose (T4, A10G, L40S, A800), and cards for games: info.
    - Switches of the board; drives; virtual machines, emulated and synthetic ports, links inside a card; superchips.
    - What the slot or the card can do could not be read: unknown.

    ## How to confirm
    `lspci -vv -s ADDRESS | grep LnkCap:` on the card and on the port above it.

    ## How to fix
    Move the card to a slot with all lanes of its generation, or undo the bifurcation of this one in the BIOS.

    ## Source
    Linux `drivers/pci/pci-sysfs.c`; DCGM `diag-skus.yaml` (x8 accepted for T4, A10G, L40S, A800).
    """
    for wire in wires(case):
        yield _judge(case, wire)


def _judge(case: Case, wire: Wire) -> Answer:
    silent = unjudged(case, wire)
    if silent:
        return silent
    child, card = wire.child, wire.child.link
    slot = wire.parent.link if wire.parent else None
    is_card = child.id in case.gpu_by_pci or child.id in case.nic_by_pci
    if not is_card and (child.vendor not in (AMD, MELLANOX) or not (child.class_code or "").startswith("0x0604")):
        return NotApplicable(wire.subject, "neither a GPU nor a NIC: a drive, or a switch of the board")
    if card is None or slot is None or card.max_width not in LANES or card.max_speed_gt_s is None:
        return Unknown(wire.subject, "what the card and the slot can do is not known")
    if slot.max_width not in LANES or slot.max_speed_gt_s is None:
        return Unknown(wire.subject, "what the port above it can do is not known")
    limit = _Limit(slot, card)
    return _fault(case, wire, limit) if limit.narrow or limit.slow else Pass(wire.subject)


def _fault(case: Case, wire: Wire, limit: _Limit) -> Fail:
    slot, card = limit.slot, limit.card
    now, full = bandwidth(slot.max_speed_gt_s, slot.max_width), bandwidth(card.max_speed_gt_s, card.max_width)
    here = reach(case, wire)
    severity, why = _severity(case, wire, limit)
    return Fail(
        subject=wire.subject,
        label=wire_label(case, wire),
        summary=f"a card of {_said(card)} sits in a slot of {_said(slot)}: {why}",
        impact=f"{here:.1f} instead of {full:.1f} GB/s in each direction: {share_lost(here, full)} less."
        if here and full and here < full
        else f"{now or 0:.1f} GB/s in each direction.",
        remedy="Move the card to a slot with all its lanes, or undo the slot's bifurcation in the BIOS.",
        evidence=tuple(
            Evidence(
                what=f"most that {which} can do",
                value=_said(link),
                source=pci_source(case, place, "max_link_width"),
            )
            for which, link, place in (
                (f"the card {wire.child.id}", card, wire.child.id),
                (f"the port above, {wire.child.parent},", slot, wire.child.parent or ""),
            )
        ),
        severity=severity,
        cause="width" if limit.narrow else "speed",
        places=wire.places | {each.id for each in card_functions(case, wire.child)},
    )


def _severity(case: Case, wire: Wire, limit: _Limit) -> tuple[str, str]:
    """How grave it is, and in words why."""
    nic = case.nic_by_pci.get(wire.child.id)
    if nic:
        return _of_a_nic(case, wire, limit, nic)
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu is None:
        return "info", "a switch that belongs to the card"
    if is_consumer(case, gpu):
        return "info", "a card for desktops"
    if limit.narrow and wire.child.device in OFTEN_HALF and (limit.slot.max_width or 0) >= 8:
        return "info", "many servers wire this GPU so"
    others = [other for each in siblings(case, wire) if (other := reach(case, each)) is not None]
    here = reach(case, wire)
    if here is not None and any(other > here for other in others):
        return "warning", "other GPUs of its kind have better ones here"
    if others:
        return "info", "all GPUs of its kind sit so: the board was built like that"
    return ("warning", "it has fewer lanes than it could") if limit.narrow else ("info", "an older generation")


def _of_a_nic(case: Case, wire: Wire, limit: _Limit, nic: Nic) -> tuple[str, str]:
    need, slot = needed(case, wire.child), reach(case, wire)
    if need is None:
        return "info", "no port of it is active"
    if not carries(slot, need.fastest):
        return by_role("error", nic) or "info", "too little for its port"
    card = bandwidth(limit.card.max_speed_gt_s, limit.card.max_width)
    if not carries(slot, need.together) and carries(card, need.together):
        return by_role("warning", nic) or "info", "too little for all its ports together"
    return "info", "enough for its ports"


def _said(link: Link) -> str:
    return f"x{link.max_width} at {link.max_speed_gt_s:g} GT/s"
