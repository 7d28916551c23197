"""Cards compared with their slots and with cards of the same kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

import msgspec

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.pci import Link
from agent.model.reasons import Reason
from agent.rules.context import RuleContext
from agent.rules.devices import AMD, MELLANOX, is_consumer, pci_source, reaches_gpus_by_itself, severity_by_role
from agent.rules.node_wide import merge_if_on_all
from agent.rules.pcie.cards import card_functions, card_kind, is_cxl_memory, is_sufficient, required_rate, sibling_links
from agent.rules.pcie.links import (
    LANES,
    OFTEN_HALF,
    PcieLink,
    bandwidth,
    expected_speed,
    expected_width,
    format_loss,
    link_label,
    not_judged_reason,
    pcie_links,
    possible_bandwidth,
    retrained_evidence,
)
from agent.rules.rule import Fail, NotApplicable, Pass, Result, Unknown, rule
from agent.rules.wording import find_majority, format_share_lost, join_labels

_MANY = 4  # cards in slots alike, from which on it is the board, and one finding


class _Limit(msgspec.Struct, frozen=True):
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


@rule("pcie-slot-limits-card")
def pcie_slot_limits_card(case: RuleContext) -> Iterator[Result]:
    built_so: dict[str, list[Fail]] = {}  # by what is said of them
    for wire in pcie_links(case):
        answer = _judge_slot_limits_card(case, wire)
        if isinstance(answer, Fail) and answer.severity == "info":
            built_so.setdefault(answer.summary, []).append(answer)
        else:
            yield answer
    for summary, faults in built_so.items():
        yield from merge_if_on_all(faults, len(faults), summary) if len(faults) >= _MANY else faults


def _judge_slot_limits_card(case: RuleContext, wire: PcieLink) -> Result:
    silent = not_judged_reason(case, wire)
    if silent:
        return silent
    child, card = wire.child, wire.child.link
    slot = wire.parent.link if wire.parent else None
    is_card = child.id in case.gpu_by_pci or child.id in case.nic_by_pci or is_cxl_memory(child)
    if not is_card and (child.vendor not in (AMD, MELLANOX) or not (child.class_code or "").startswith("0x0604")):
        return NotApplicable(
            wire.subject,
            Reason("no-such-device", detail="no GPU, NIC or CXL memory: a drive, or a switch of the board"),
        )
    if card is None or slot is None or card.max_width not in LANES or card.max_speed_gt_s is None:
        return Unknown(wire.subject, Reason("not-known", fact="what the card and the slot can do"))
    if slot.max_width not in LANES or slot.max_speed_gt_s is None:
        return Unknown(wire.subject, Reason("not-known", fact="what the port above it can do"))
    limit = _Limit(slot, card)
    return _fail_slot_limits_card(case, wire, limit) if limit.narrow or limit.slow else Pass(wire.subject)


def _fail_slot_limits_card(case: RuleContext, wire: PcieLink, limit: _Limit) -> Fail:
    slot, card = limit.slot, limit.card
    now, full = bandwidth(slot.max_speed_gt_s, slot.max_width), bandwidth(card.max_speed_gt_s, card.max_width)
    here = possible_bandwidth(case, wire)
    severity, why = _severity(case, wire, limit)
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"card is {_format_link(card)}, slot is {_format_link(slot)}: {why}",
        impact=f"{here:.1f} instead of {full:.1f} GB/s in each direction: {format_share_lost(here, full)} less."
        if here and full and here < full
        else f"{now or 0:.1f} GB/s in each direction.",
        evidence=tuple(
            Evidence(
                what=f"most that {which} can do",
                value=_format_link(link),
                source=pci_source(case, place, "max_link_width"),
            )
            for which, link, place in (
                (f"the card {wire.child.id}", card, wire.child.id),
                (f"the port above, {wire.child.parent},", slot, wire.child.parent or ""),
            )
        ),
        severity=severity,
        cause="width" if limit.narrow else "speed",
        places=wire.places | {function.id for function in card_functions(case, wire.child)},
    )


def _severity(case: RuleContext, wire: PcieLink, limit: _Limit) -> tuple[str, str]:
    """How grave it is, and in words why."""
    nic = case.nic_by_pci.get(wire.child.id)
    if nic:
        return _severity_for_nic(case, wire, limit, nic)
    gpu = case.gpu_by_pci.get(wire.child.id)
    if gpu is None and not is_cxl_memory(wire.child):
        return "info", "a switch that belongs to the card"
    kind = "GPUs" if gpu else "expanders"
    if gpu and is_consumer(case, gpu):
        return "info", "a card for desktops"
    if limit.narrow and wire.child.device in OFTEN_HALF and (limit.slot.max_width or 0) >= 8:
        return "info", "normal for this GPU in many servers"
    others = [other for link in sibling_links(case, wire) if (other := possible_bandwidth(case, link)) is not None]
    here = possible_bandwidth(case, wire)
    if here is not None and any(other > here for other in others):
        return "warning", f"other {kind} of its kind have better ones here"
    if others:
        return "info", f"all {kind} of its kind are in such slots: the board is built this way"
    return ("warning", "it has fewer lanes than it could") if limit.narrow else ("info", "an older generation")


def _severity_for_nic(case: RuleContext, wire: PcieLink, limit: _Limit, nic: Nic) -> tuple[str, str]:
    if reaches_gpus_by_itself(case, nic):
        return "info", "GPUs reach the NIC by another path"
    need, slot = required_rate(case, wire.child), possible_bandwidth(case, wire)
    if need is None:
        return "info", "no port of it is active"
    if not is_sufficient(slot, need.fastest):
        return severity_by_role("error", nic) or "info", "too little for its port"
    card = bandwidth(limit.card.max_speed_gt_s, limit.card.max_width)
    if not is_sufficient(slot, need.together) and is_sufficient(card, need.together):
        return severity_by_role("warning", nic) or "info", "too little for all its ports together"
    return "info", "enough for its ports"


def _format_link(link: Link) -> str:
    return f"x{link.max_width} at {link.max_speed_gt_s:g} GT/s"


@rule("pcie-slower-than-siblings")
def pcie_slower_than_siblings(case: RuleContext) -> Iterator[Result]:
    families: dict[Hashable, list[PcieLink]] = defaultdict(list)
    for wire in sorted(pcie_links(case), key=lambda link: link.child.id):
        own = card_kind(case, wire)
        if own is None:
            continue
        silent = not_judged_reason(case, wire)
        if silent:
            yield silent
        elif possible_bandwidth(case, wire) is None:
            yield Unknown(wire.subject, Reason("not-known", fact="what both its ends can do"))
        else:
            families[own].append(wire)
    for family in families.values():
        yield from _compare_kind(case, family)


def _compare_kind(case: RuleContext, family: list[PcieLink]) -> Iterator[Result]:
    usual = find_majority((expected_speed(case, wire), expected_width(case, wire)) for wire in family)
    like = [wire for wire in family if (expected_speed(case, wire), expected_width(case, wire)) == usual]
    most = (possible_bandwidth(case, like[0]) or 0.0) if like else 0.0
    best = max(_card_bandwidth(wire) for wire in family)
    for wire in family:
        if (possible_bandwidth(case, wire) or 0.0) < most:
            yield _fail_siblings(case, wire, like)
        elif _limits_itself(wire, best):
            yield _fail_siblings(case, wire, [other for other in family if _card_bandwidth(other) == best])
        elif usual is None:
            why = "no other card of its kind" if len(family) == 1 else "no majority of its kind is alike"
            yield NotApplicable(wire.subject, Reason("nothing-to-compare", detail=why))
        else:
            yield Pass(wire.subject)


def _card_bandwidth(wire: PcieLink) -> float:
    """GB/s that the card itself can carry, in whatever slot."""
    link = wire.child.link
    return (bandwidth(link.max_speed_gt_s, link.max_width) if link else None) or 0.0


def _limits_itself(wire: PcieLink, best: float) -> bool:
    """Whether a card can do less than another of its kind, and less than its slot: no majority makes that right."""
    slot = wire.parent.link if wire.parent else None
    able = bandwidth(slot.max_speed_gt_s, slot.max_width) if slot else None
    return able is not None and _card_bandwidth(wire) < min(able, best)


def _fail_siblings(case: RuleContext, wire: PcieLink, like: list[PcieLink]) -> Fail:
    nic = case.nic_by_pci.get(wire.child.id)
    now, full = possible_bandwidth(case, wire), possible_bandwidth(case, like[0])
    return Fail(
        subject=wire.subject,
        label=link_label(case, wire),
        summary=f"its link can do {_describe_link(case, wire)}; "
        f"those of {join_labels([link_label(case, link) for link in like])} can do {_describe_link(case, like[0])}",
        impact=format_loss(now, full) or "What it costs is not known: the speed of the link is missing.",
        evidence=(
            *(
                Evidence(
                    what=f"most that the link of {link.child.id} can do",
                    value=_describe_link(case, link),
                    source=pci_source(case, link.child.id, "max_link_width"),
                )
                for link in (wire, like[0])
            ),
            *retrained_evidence(wire),
        ),
        severity=(severity_by_role("warning", nic) or "info") if nic else None,
        places=wire.places,
    )


def _describe_link(case: RuleContext, wire: PcieLink) -> str:
    return f"x{expected_width(case, wire)} at {expected_speed(case, wire):g} GT/s"
