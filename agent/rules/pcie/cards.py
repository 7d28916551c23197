"""Cards: what the functions of one card have in common, which cards are of one kind, and what their ports need."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec

from agent.model.pci import CXL_MEMORY, PciFunction
from agent.rules.context import RuleContext
from agent.rules.pages import read_limit
from agent.rules.pcie.links import PcieLink, pcie_links

# Of the rate that InfiniBand quotes, what is data: 8b/10b, then 64b/66b for FDR; later generations quote data
_CODED = {"SDR": 0.8, "DDR": 0.8, "QDR": 0.8, "FDR": 64 / 66}
USABLE_SHARE = read_limit("pcie-nic-starved.usable_share")
# Of the bandwidth after line coding what copies get: 55.1 of 63 GB/s, 8 x H200 with nvbandwidth
USABLE = USABLE_SHARE.value


class RequiredRate(msgspec.Struct, frozen=True):
    """What the ports of a card send at most, Gb/s."""

    fastest: float  # one port alone
    together: float  # all of the card

    def missed(self, gbyte_s: float) -> float:
        """What a link that is not enough for all fails to carry: one port, where it is too little even for that."""
        return self.fastest if gbyte_s < self.fastest / 8 else self.together


def required_rate(context: RuleContext, function: PciFunction) -> RequiredRate | None:
    """The rates of the active ports of the card that a function is of; None where no port is active."""
    rates: list[float] = []
    alone: list[float] = []
    for card_function in card_functions(context, function):
        other = context.nic_by_pci.get(card_function.id)
        for port in other.ports if other and not other.virtual_function else ():
            if port.state == "ACTIVE" and port.rate_gbit_s:
                rate = port.rate_gbit_s * _CODED.get(port.speed or "", 1.0)
                rates.append(rate)
                alone += [] if other and other.bond else [rate]  # a bond has the rate of all its ports
    return RequiredRate(max(alone, default=0.0), sum(rates)) if rates else None


def card_functions(context: RuleContext, function: PciFunction) -> list[PciFunction]:
    """All functions of a card, which share its link."""
    (cards,) = context.once(_group_by_card)
    return cards.get(function.id.rpartition(".")[0], [])


def _group_by_card(context: RuleContext) -> Iterator[dict[str, list[PciFunction]]]:
    cards: dict[str, list[PciFunction]] = {}
    for function in context.topology.pci:
        if not function.physical_function:
            cards.setdefault(function.id.rpartition(".")[0], []).append(function)
    yield cards


def is_sufficient(gbyte_s: float | None, gbit_s: float) -> bool:
    """Whether a link is enough for a rate; unknown counts as enough."""
    return gbyte_s is None or USABLE * gbyte_s >= gbit_s / 8


def card_kind(context: RuleContext, pcie_link: PcieLink) -> Hashable | None:
    """What siblings have in common: vendor, device, subsystem and role; None where it is not known enough."""
    function, nic = pcie_link.child, pcie_link.nic
    if function.id not in context.gpu_by_pci and nic is None and not is_cxl_memory(function):
        return None
    ids = (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device)
    return None if None in ids[:2] else (*ids, nic.role if nic else "")


def is_cxl_memory(function: PciFunction) -> bool:
    """Whether it is a CXL memory expander."""
    return (function.class_code or "").startswith(CXL_MEMORY)


def sibling_links(context: RuleContext, pcie_link: PcieLink) -> list[PcieLink]:
    """The judged links of other cards of its kind."""
    own = card_kind(context, pcie_link)
    if own is None:
        return []
    others = (
        other
        for other in pcie_links(context)
        if other.child.id != pcie_link.child.id and card_kind(context, other) == own
    )
    return [other for other in others if other.why_not_judged is None]
