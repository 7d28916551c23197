"""Cards: what the functions of one card have in common, which cards are of one kind, and what their ports need."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from agent.model.pci import PciFunction
from agent.rules.case import Case
from agent.rules.pages import read_limit
from agent.rules.pcie.links import Wire, unjudged, wires

# Of the rate that InfiniBand quotes, what is data: 8b/10b, then 64b/66b for FDR; later generations quote data
_CODED = {"SDR": 0.8, "DDR": 0.8, "QDR": 0.8, "FDR": 64 / 66}
USABLE_SHARE = read_limit("pcie-nic-starved.usable_share")
# Of the bandwidth after line coding what copies get: 55.1 of 63 GB/s, 8 x H200 with nvbandwidth
USABLE = USABLE_SHARE.value


class Need(NamedTuple):
    """What the ports of a card send at most, Gb/s."""

    fastest: float  # one port alone
    together: float  # all of the card

    def missed(self, gbyte_s: float) -> float:
        """What a link that is not enough for all fails to carry: one port, where it is too little even for that."""
        return self.fastest if gbyte_s < self.fastest / 8 else self.together


def needed(case: Case, function: PciFunction) -> Need | None:
    """The rates of the active ports of the card that a function is of; None where no port is active."""
    rates: list[float] = []
    alone: list[float] = []
    for each in card_functions(case, function):
        other = case.nic_by_pci.get(each.id)
        for port in other.ports if other and not other.virtual_function else ():
            if port.state == "ACTIVE" and port.rate_gbit_s:
                rate = port.rate_gbit_s * _CODED.get(port.speed or "", 1.0)
                rates.append(rate)
                alone += [] if other and other.bond else [rate]  # a bond has the rate of all its ports
    return Need(max(alone, default=0.0), sum(rates)) if rates else None


def card_functions(case: Case, function: PciFunction) -> list[PciFunction]:
    """All functions of a card, which share its link."""
    slot = function.id.rpartition(".")[0]
    return [f for f in case.topology.pci if f.id.rpartition(".")[0] == slot and not f.physical_function]


def carries(gbyte_s: float | None, gbit_s: float) -> bool:
    """Whether a link is enough for a rate; unknown counts as enough."""
    return gbyte_s is None or USABLE * gbyte_s >= gbit_s / 8


def kind(case: Case, wire: Wire) -> Hashable | None:
    """What siblings have in common: vendor, device, subsystem and role; None where it is not known enough."""
    function, nic = wire.child, case.nic_by_pci.get(wire.child.id)
    if function.id not in case.gpu_by_pci and nic is None:
        return None
    ids = (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device)
    return None if None in ids[:2] else (*ids, nic.role if nic else "gpu")


def siblings(case: Case, wire: Wire) -> list[Wire]:
    """The judged links of other cards of its kind."""
    own = kind(case, wire)
    if own is None:
        return []
    others = (other for other in wires(case) if other.child.id != wire.child.id and kind(case, other) == own)
    return [other for other in others if unjudged(case, other) is None]
