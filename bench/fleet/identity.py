"""Who a node is: every name, number and address of it as a function of the seed and its place in the fleet.

Numbers are spread by multiplication with an odd or coprime constant, so two nodes never have the same one, and
nothing has to be remembered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

NODES = 1 << 18  # at most: 64 numbers of 24 bits each
_PER_NODE = 64
_SPREAD = 0x9E3779  # odd: one to one in 24 bits
_DECIMAL = 7_919  # prime, and no factor of a power of ten


class Far(NamedTuple):
    """The switch port at the far end of a rail."""

    switch: str
    port: str
    chassis: str  # its MAC address


class Place(NamedTuple):
    """Where a node stands in its fleet."""

    number: int  # among all nodes, from 0
    hostname: str
    subnet: str = "fe80:0000:0000:0000"  # InfiniBand's prefix
    lids: tuple[int, ...] = ()  # of its rails
    far: tuple[Far, ...] = ()  # of its rails, by LLDP
    rack: int = 0  # of all racks: nodes of one rack share chassis and NVLink domain
    tray: int = 0


class Identity:
    """One node's texts, by form and key. `over` replaces some: (form, key) -> text."""

    def __init__(self, seed: int, place: Place, over: Mapping[tuple[str, int], str] | None = None) -> None:
        self.place = place
        self.seed = seed
        self.over = over or {}
        self.random = hashlib.shake_128(f"{seed}/{place.number}".encode()).hexdigest(16 * 20)

    def hexes(self, keys: Sequence[int]) -> list[str]:
        """24 bits that no other device of the fleet has, as six digits: what GUIDs, MACs and serials end with."""
        first = self.place.number * _PER_NODE
        result = [f"{((first + key) * _SPREAD + self.seed) & 0xFFFFFF:06x}" for key in keys]
        if self.over:
            result = [self.over.get(("number", key), text) for key, text in zip(keys, result, strict=True)]
        return result

    def bits(self, key: int) -> str:
        """32 hex digits made up for this node."""
        return self.random[key * 32 : key * 32 + 32]

    def decimal(self, key: int, digits: int) -> str:
        """So many decimal digits that no other device has for this kind of thing."""
        return f"{((self.place.number * _PER_NODE + key) * _DECIMAL + self.seed) % 10**digits:0{digits}d}"

    def address(self, key: int) -> tuple[int, int, int]:
        """The last three bytes of an IPv4 address in 10.0.0.0/8, an odd one: the switch has the even one beside it."""
        n = (self.place.number * _PER_NODE // 2 + key) * 2 + 1
        return n >> 16 & 0xFF, n >> 8 & 0xFF, n & 0xFF


def uuid(digits: str) -> str:
    """A UUID of 32 hex digits."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def domain(seed: int, rack: int) -> str:
    """The NVLink domain of a rack."""
    return uuid(hashlib.sha256(f"{seed}/domain/{rack}".encode()).hexdigest()[:32])


def switch_guid(seed: int, number: int) -> str:
    """A switch's GUID, 16 digits, of another range than those of nodes."""
    return f"b0cf0e0300{(number * _SPREAD + seed) & 0xFFFFFF:06x}"


def switch_mac(seed: int, number: int) -> str:
    """A switch's base MAC."""
    digits = f"{(number * _SPREAD + seed) & 0xFFFFFF:06x}"
    return f"44:38:39:{digits[:2]}:{digits[2:4]}:{digits[4:]}"
