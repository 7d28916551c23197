"""What stays the same of a subject when it is moved or renamed: UUID, GUID, serial number, MAC.

An identity begins with its kind ("guid b83f:d203:.."): two of different kinds cannot be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from agent.model.nic import Netdev, Nic
from agent.model.pci import PciFunction
from agent.model.topology import Topology

_NO_GUIDS = ("", "0000:0000:0000:0000")
_BRIDGE = "0x0604"


def identities(topology: Topology) -> dict[str, str]:
    """Subject -> lasting identity, of subjects that have one which no other of their kind has."""
    functions = {function.id: function for function in topology.pci}
    identity_of: dict[str, str | None] = {f"pci:{f.id}": function_identity(f) for f in topology.pci}
    for gpu in topology.gpus:
        own = f"uuid {gpu.uuid}" if gpu.uuid else f"serial {gpu.serial}" if gpu.serial else None
        identity_of[f"gpu:{gpu.id}"] = own
        identity_of |= {f"link:{gpu.id}/{link.link}": own and f"{own}/{link.link}" for link in gpu.links}
    for switch in topology.nvswitches:
        identity_of[f"nvswitch:{switch.id}"] = function_identity(functions.get(switch.pci))
    guids: dict[str, str | None] = {}
    for nic in topology.nics:
        own = guids[nic.id] = nic_identity(nic, functions.get(nic.pci or ""))
        identity_of[f"nic:{nic.id}"] = own
        identity_of |= {f"port:{nic.id}/{port.port}": own and f"{own}/{port.port}" for port in nic.ports}
    for netdev in topology.netdevs:
        identity_of[f"netdev:{netdev.id}"] = _netdev(netdev, guids)
    times = Counter((subject.partition(":")[0], own) for subject, own in identity_of.items())
    return {subject: own for subject, own in identity_of.items() if own and times[subject.partition(":")[0], own] == 1}


class Earlier:
    """Finds the subjects of a topology among those of an earlier run."""

    def __init__(self, identity: Mapping[str, str], there: Container[str], topology: Topology) -> None:
        self._then = identity  # subject then -> what lasts of it
        self._there = there  # subjects then
        self._now = identities(topology)
        self._by_identity = {(subject.partition(":")[0], own): subject for subject, own in identity.items()}

    def subject(self, now: str) -> str | None:
        """What it was called then; None where it was not there, or another stood in its place."""
        own, other = self._now.get(now), self._then.get(now)
        moved = self._by_identity.get((now.partition(":")[0], own)) if own else None
        if moved in self._there:
            return moved
        return now if now in self._there and not differ(own, other) else None


def differ(one: str | None, other: str | None) -> bool:
    """Whether two identities are certainly those of two devices.

    >>> differ("guid 1", "guid 2"), differ("guid 1", "serial 2"), differ("guid 1", None)
    (True, False, False)
    """
    return bool(one and other and one != other and one.split(" ")[0] == other.split(" ")[0])


def function_identity(function: PciFunction | None) -> str | None:
    """Serial and function number; all ports of a switch have one serial, and a virtual function its parent's."""
    if function is None or not function.serial or function.physical_function:
        return None
    if (function.class_code or "").startswith(_BRIDGE):
        return None
    return f"serial {function.serial}.{function.id.rpartition('.')[2]}"


def nic_identity(nic: Nic, function: PciFunction | None) -> str | None:
    """The node GUID, else the card's serial; virtual and software functions make theirs up."""
    if nic.virtual_function or nic.software:
        return None
    return f"guid {nic.node_guid}" if (nic.node_guid or "") not in _NO_GUIDS else function_identity(function)


def _netdev(netdev: Netdev, guids: dict[str, str | None]) -> str | None:
    """That of its NIC with the port number; else its MAC, which members of a bond borrow from each other."""
    own = guids.get(netdev.nic or "")
    if own and netdev.id.startswith(netdev.nic or " "):
        return f"{own}/{netdev.id.partition('/')[2]}"
    if netdev.nic or netdev.master or not netdev.mac:
        return None
    return f"mac {netdev.mac}" if netdev.pci else f"mac {netdev.mac} {netdev.label}"
