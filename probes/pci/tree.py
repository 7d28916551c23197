"""PCI addresses, and where a function hangs: by its path under /sys/devices, or by the bus numbers of the bridges."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache

from probes.text import PCI_ADDRESS_PARTS, is_pci_address, require

Place = tuple[
    str | None, str | None
]  # (address of the bridge above, root bus "0000:15"); None: none above, or not known

UNPLACED: Place = (None, None)


@lru_cache(maxsize=1024)
def address_key(address: str) -> tuple[int, int, int, int]:
    """Domain, bus, device, function as numbers: what addresses are sorted by. Raises ParseError.

    >>> address_key("10000:e1:00.0")
    (65536, 225, 0, 0)
    """
    match = require(re.fullmatch(PCI_ADDRESS_PARTS, address), f"not a PCI address: {address[:40]!r}")
    domain, bus, device, function = match.groups()
    return int(domain, 16), int(bus, 16), int(device, 16), int(function)


def bus_of(address: str) -> str:
    """The bus that a function sits on.

    >>> bus_of("0000:19:00.0")
    '0000:19'
    """
    return address.rsplit(":", 1)[0]


def neighbour(address: str, distance: int) -> str | None:
    """The function whose routing id is `distance` further; None past the end of the domain.

    >>> neighbour("0000:3b:00.0", 10)
    '0000:3b:01.2'
    """
    domain, bus, device, function = address_key(address)
    routing_id = (bus << 8 | device << 3 | function) + distance
    if not 0 <= routing_id < 1 << 16:
        return None
    return f"{domain:04x}:{routing_id >> 8:02x}:{routing_id >> 3 & 0x1F:02x}.{routing_id & 7}"


def place_in_path(path: str, listed: Container[str]) -> Place:
    """The place that the resolved path of a function states (UNPLACED where the path holds no root bus).

    The bridge above is the nearest one that is `listed`: a pruned tree may name bridges that it does not hold. A
    domain behind a VMD controller starts a tree of its own: its root bus is the last one in the path.

    >>> place_in_path("/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0", {"0000:15:01.0"})
    ('0000:15:01.0', '0000:15')
    >>> place_in_path("/sys/devices/pci0000:80/0000:80:05.5/pci10000:e0/10000:e0:06.0", {"0000:80:05.5"})
    (None, '10000:e0')
    """
    above = None
    for part in reversed(path.rstrip("/").split("/")[:-1]):
        if part.startswith("pci") and is_pci_address(f"{part[3:]}:00.0"):
            return above, part[3:]
        if above is None and part in listed:
            above = part
    return UNPLACED


def places_from_buses(
    addresses: Iterable[str], secondary: Mapping[str, int], at_root: Iterable[str]
) -> dict[str, Place]:
    """Every function's place from the bridges' secondary bus numbers, for sources that keep no paths.

    `secondary`: bridge address -> number. `at_root`: functions that by their kind sit on a root bus (root ports,
    integrated endpoints, host bridges). A bus that no listed bridge leads to is a root bus only where one of these
    sits on it, or where it is bus 0: an excerpt of a listing reports nothing about what is above.

    >>> places_from_buses(["0000:00:01.0", "0000:01:00.0"], {"0000:00:01.0": 1}, ["0000:00:01.0"])
    {'0000:00:01.0': (None, '0000:00'), '0000:01:00.0': ('0000:00:01.0', '0000:00')}
    """
    above = _bridges_by_bus(secondary)
    roots = {bus_of(address) for address in at_root}

    def place(address: str) -> Place:
        bus, parent = bus_of(address), above.get(bus_of(address))
        while bus in above:
            bridge = above[bus]
            if bridge is None:
                return parent, None
            bus = bus_of(bridge)
        return parent, bus if bus in roots or bus.endswith(":00") else None

    return {address: place(address) for address in addresses}


def _bridges_by_bus(secondary: Mapping[str, int]) -> dict[str, str | None]:
    """Bus -> the bridge that leads to it; None where two claim it. A number not above the bridge's own bus is not
    configured (or not true): leaving it out keeps the tree free of loops."""
    above: dict[str, str | None] = {}
    for bridge, number in secondary.items():
        domain, own, _, _ = address_key(bridge)
        if number > own:
            bus = f"{domain:04x}:{number:02x}"
            above[bus] = None if bus in above else bridge
    return above
