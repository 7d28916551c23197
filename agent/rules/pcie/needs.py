"""What a NIC's ports need of the PCIe link below them."""

from __future__ import annotations

from typing import NamedTuple

from agent.model.pci import PciFunction
from agent.rules.case import Case

# Of the rate that InfiniBand quotes, what is data: 8b/10b, then 64b/66b for FDR; later generations quote data
_CODED = {"SDR": 0.8, "DDR": 0.8, "QDR": 0.8, "FDR": 64 / 66}
USABLE = 0.87  # of the bandwidth after line coding that copies get: 55.1 of 63 GB/s, 8 x H200 with nvbandwidth


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
