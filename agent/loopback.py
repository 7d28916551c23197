"""Whether an address is of this host alone: what is sent there needs no TLS."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Of a name or an address without brackets. No name but localhost is looked up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
