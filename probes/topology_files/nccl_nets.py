"""The interfaces of a NCCL topology: which function of a card each <net> is of.

Source: NCCL src/transport/net_ib/init.cc (ncclIbGetPciPath): the last digit of a card's address is cut, and the ports
of its functions are numbered through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from probes.pci.facts import PciFunction
from probes.topology_files.xml_tree import Element

_FUNCTIONS = 8  # of one card


class Net(NamedTuple):
    """One <net>, below the <pci> of this address, with its port's number."""

    address: str | None
    number: int | None
    element: Element


def of_functions(given: Sequence[Net], functions: dict[str, PciFunction]) -> list[Net]:
    """The same, where a second device of a card has the function that NCCL folded into the first: it is made here."""
    nets: list[Net] = []
    seen: dict[str, set[str | None]] = {}
    for net in given:
        first, number, name = functions.get(net.address or ""), net.number or 0, net.element.said("name")
        names = seen.setdefault(net.address or "", set())
        address = f"{(net.address or '')[:-1]}{number - 1}"
        if first and names - {name} and 1 < number <= _FUNCTIONS and address not in functions:
            functions[address] = first._replace(address=address)
            net = Net(address, 1, net.element)
        if number > 0:
            names.add(name)
        nets.append(net)
    return nets
