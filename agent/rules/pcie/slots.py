"""Cards compared with their slots and with cards of the same kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

import msgspec

from agent.model.finding import Evidence
from agent.model.nic import Nic
from agent.model.pci import Link, bandwidth_gbyte_s
from agent.rules.context import RuleContext
from agent.rules.devices import AMD, MELLANOX, is_consumer, pci_source, reaches_gpus_by_itself, severity_by_role
from agent.rules.node_wide import merge_if_on_all
from agent.rules.pcie.cards import card_functions, card_kind, is_cxl_memory, is_sufficient, required_rate, sibling_links
from agent.rules.pcie.links import LANES, OFTEN_HALF, PcieLink, format_loss, pcie_links
from agent.rules.rule import Fail, Result, rule
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
def pcie_slot_limits_card(context: RuleContext) -> Iterator[Result]:
    built_so: dict[str, list[Fail]] = {}  # by what is reported of them
    for pcie_link in pcie_links(context):
        answer = _judge_slot_limits_card(context, pcie_link)
        if isinstance(answer, Fail) and answer.severity == "info":
            built_so.setdefault(answer.summary, []).append(answer)
        else:
            yield answer
    for summary, faults in built_so.items():
        yield from merge_if_on_all(faults, len(faults), summary) if len(faults) >= _MANY else faults


def _judge_slot_limits_card(context: RuleContext, pcie_link: PcieLink) -> Result:
    silent = pcie_link.why_not_judged
    if silent:
        return silent
    child, card = pcie_link.child, pcie_link.child.link
    slot = pcie_link.parent.link if pcie_link.parent else None
    is_card = child.id in context.gpu_by_pci or child.id in context.nic_by_pci or is_cxl_memory(child)
    if not is_card and (child.vendor not in (AMD, MELLANOX) or not (child.class_code or "").startswith("0x0604")):
        return pcie_link.not_applicable(
            "no-such-device", detail="no GPU, NIC or CXL memory: a drive, or a switch of the board"
        )
    if card is None or slot is None or card.max_width not in LANES or card.max_speed_gt_s is None:
        return pcie_link.unknown("not-known", fact="what the card and the slot can do")
    if slot.max_width not in LANES or slot.max_speed_gt_s is None:
        return pcie_link.unknown("not-known", fact="what the port above it can do")
    limit = _Limit(slot, card)
    return _fail_slot_limits_card(context, pcie_link, limit) if limit.narrow or limit.slow else pcie_link.passes()


def _fail_slot_limits_card(context: RuleContext, pcie_link: PcieLink, limit: _Limit) -> Fail:
    slot, card = limit.slot, limit.card
    now = bandwidth_gbyte_s(slot.max_speed_gt_s, slot.max_width)
    full = bandwidth_gbyte_s(card.max_speed_gt_s, card.max_width)
    here = pcie_link.possible_bandwidth
    severity, why = _severity(context, pcie_link, limit)
    return pcie_link.fail(
        summary=f"card is {_format_link(card)}, slot is {_format_link(slot)}: {why}",
        impact=f"{here:.1f} instead of {full:.1f} GB/s in each direction: {format_share_lost(here, full)} less."
        if here and full and here < full
        else f"{now or 0:.1f} GB/s in each direction.",
        evidence=tuple(
            Evidence(f"most that {which} can do", _format_link(link), pci_source(context, place, "max_link_width"))
            for which, link, place in (
                (f"the card {pcie_link.child.id}", card, pcie_link.child.id),
                (f"the port above, {pcie_link.child.parent},", slot, pcie_link.child.parent or ""),
            )
        ),
        severity=severity,
        cause="width" if limit.narrow else "speed",
        ids=pcie_link.ids | {function.id for function in card_functions(context, pcie_link.child)},
    )


def _severity(context: RuleContext, pcie_link: PcieLink, limit: _Limit) -> tuple[str, str]:
    """How severe it is, and in words why."""
    nic = pcie_link.nic
    if nic:
        return _severity_for_nic(context, pcie_link, limit, nic)
    gpu = pcie_link.gpu
    if gpu is None and not is_cxl_memory(pcie_link.child):
        return "info", "a switch that belongs to the card"
    kind = "GPUs" if gpu else "expanders"
    if gpu and is_consumer(context, gpu):
        return "info", "a card for desktops"
    if limit.narrow and pcie_link.child.device in OFTEN_HALF and (limit.slot.max_width or 0) >= 8:
        return "info", "normal for this GPU in many servers"
    others = [other for link in sibling_links(context, pcie_link) if (other := link.possible_bandwidth) is not None]
    here = pcie_link.possible_bandwidth
    if here is not None and any(other > here for other in others):
        return "warning", f"other {kind} of its kind have better ones here"
    if others:
        return "info", f"all {kind} of its kind are in such slots: the board is built this way"
    return ("warning", "it has fewer lanes than it could") if limit.narrow else ("info", "an older generation")


def _severity_for_nic(context: RuleContext, pcie_link: PcieLink, limit: _Limit, nic: Nic) -> tuple[str, str]:
    if reaches_gpus_by_itself(context, nic):
        return "info", "GPUs reach the NIC by another path"
    need, slot = required_rate(context, pcie_link.child), pcie_link.possible_bandwidth
    if need is None:
        return "info", "no port of it is active"
    if not is_sufficient(slot, need.fastest):
        return severity_by_role("error", nic) or "info", "too little for its port"
    card = bandwidth_gbyte_s(limit.card.max_speed_gt_s, limit.card.max_width)
    if not is_sufficient(slot, need.together) and is_sufficient(card, need.together):
        return severity_by_role("warning", nic) or "info", "too little for all its ports together"
    return "info", "enough for its ports"


def _format_link(link: Link) -> str:
    return f"x{link.max_width} at {link.max_speed_gt_s:g} GT/s"


@rule("pcie-slower-than-siblings")
def pcie_slower_than_siblings(context: RuleContext) -> Iterator[Result]:
    families: dict[Hashable, list[PcieLink]] = defaultdict(list)
    for pcie_link in sorted(pcie_links(context), key=lambda link: link.child.id):
        own = card_kind(context, pcie_link)
        if own is None:
            continue
        silent = pcie_link.why_not_judged
        if silent:
            yield silent
        elif pcie_link.possible_bandwidth is None:
            yield pcie_link.unknown("not-known", fact="what both its ends can do")
        else:
            families[own].append(pcie_link)
    for family in families.values():
        yield from _compare_kind(context, family)


def _compare_kind(context: RuleContext, family: list[PcieLink]) -> Iterator[Result]:
    usual = find_majority((pcie_link.expected_speed, pcie_link.expected_width) for pcie_link in family)
    like = [pcie_link for pcie_link in family if (pcie_link.expected_speed, pcie_link.expected_width) == usual]
    most = (like[0].possible_bandwidth or 0.0) if like else 0.0
    best = max(_card_bandwidth(pcie_link) for pcie_link in family)
    for pcie_link in family:
        if (pcie_link.possible_bandwidth or 0.0) < most:
            yield _fail_siblings(context, pcie_link, like)
        elif _limits_itself(pcie_link, best):
            yield _fail_siblings(context, pcie_link, [other for other in family if _card_bandwidth(other) == best])
        elif usual is None:
            why = "no other card of its kind" if len(family) == 1 else "no majority of its kind is alike"
            yield pcie_link.not_applicable("nothing-to-compare", detail=why)
        else:
            yield pcie_link.passes()


def _card_bandwidth(pcie_link: PcieLink) -> float:
    """GB/s that the card itself can carry, in whatever slot."""
    link = pcie_link.child.link
    return (bandwidth_gbyte_s(link.max_speed_gt_s, link.max_width) if link else None) or 0.0


def _limits_itself(pcie_link: PcieLink, best: float) -> bool:
    """Whether a card can do less than another of its kind, and less than its slot: no majority makes that right."""
    slot = pcie_link.parent.link if pcie_link.parent else None
    able = bandwidth_gbyte_s(slot.max_speed_gt_s, slot.max_width) if slot else None
    return able is not None and _card_bandwidth(pcie_link) < min(able, best)


def _fail_siblings(context: RuleContext, pcie_link: PcieLink, like: list[PcieLink]) -> Fail:
    nic = pcie_link.nic
    now, full = pcie_link.possible_bandwidth, like[0].possible_bandwidth
    return pcie_link.fail(
        summary=f"its link can do {_describe_link(context, pcie_link)}; "
        f"those of {join_labels([link.label for link in like])} can do "
        f"{_describe_link(context, like[0])}",
        impact=format_loss(now, full) or "What it costs is not known: the speed of the link is missing.",
        evidence=(
            *(
                Evidence(
                    f"most that the link of {link.child.id} can do",
                    _describe_link(context, link),
                    pci_source(context, link.child.id, "max_link_width"),
                )
                for link in (pcie_link, like[0])
            ),
            *pcie_link.retrained_evidence,
        ),
        severity=(severity_by_role("warning", nic) or "info") if nic else None,
    )


def _describe_link(context: RuleContext, pcie_link: PcieLink) -> str:
    return f"x{pcie_link.expected_width} at {pcie_link.expected_speed:g} GT/s"
