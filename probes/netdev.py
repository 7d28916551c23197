"""Network interfaces: rtnetlink (links, addresses) and the lock-free attributes of /sys/class/net.

Kernel pages: Documentation/ABI/testing/sysfs-class-net, networking/bonding.rst; rtnetlink(7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Netdev:
    """One network interface of the host's network namespace."""

    name: str
    address: str | None = None  # PCI address of the function below it
    dev_port: int | None = None  # which port of that function (0 for the first)
    mac: str | None = None
    addresses: tuple[str, ...] = ()  # "10.0.0.1/24"
    addresses_known: bool = False
    operstate: str | None = None  # up | down | lowerlayerdown | dormant | unknown
    admin_up: bool | None = None  # IFF_UP
    carrier: bool | None = None
    carrier_changes: int | None = None
    carrier_up_count: int | None = None
    carrier_down_count: int | None = None
    speed_mbit_s: int | None = None  # None where down
    mtu: int | None = None
    type: int | None = None  # ARPHRD: 1 Ethernet, 32 InfiniBand
    driver: str | None = None
    firmware: str | None = None
    master: str | None = None  # bond or bridge above
    bond: Mapping[str, str | tuple[str, ...]] | None = None  # {"mode": "802.3ad", "slaves": ("a", "b"), "miimon": "100"}
    vlan: Mapping[str, int | str] | None = None  # {"id": 100, "parent": "ens1"}
    virtual: bool = False  # no device below it (bridge, veth, dummy)
    counters: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class NetdevFacts:
    """Every interface, sorted by name (numbers as numbers)."""

    netdevs: tuple[Netdev, ...]
