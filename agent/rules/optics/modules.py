"""The modules in RoCE ports: which are judged, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.model.nic import Netdev, TransceiverModule
from agent.rules.case import Case
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.roce.wires import cabled, unseen
from agent.rules.rule import Answer, NotApplicable, Unknown

CABLES = ("copper", "active_copper")  # they measure nothing
_DENIED = "CAP_NET_ADMIN"


class Plugged(NamedTuple):
    """One interface of a RoCE port, with what is plugged into it."""

    each: RocePort
    netdev: Netdev
    module: TransceiverModule | None

    @property
    def subject(self) -> str:
        """The port; of a bond the interface."""
        return self.each.subject if self.netdev is self.each.netdev else f"netdev:{self.netdev.id}"

    @property
    def label(self) -> str:
        """The port for people."""
        return self.each.label if self.netdev is self.each.netdev else f"{self.each.label} {self.netdev.label}"

    @property
    def places(self) -> frozenset[str]:
        """What a fault of it is about."""
        return self.each.places | {self.netdev.id}

    @property
    def name(self) -> str:
        """Maker, part and serial number of the module, for people who go and change it."""
        module = self.module
        return " ".join(filter(None, (module.vendor, module.part, module.serial))) if module else ""


def plugged(case: Case, down: bool = False) -> Iterator[Plugged | Answer]:
    """Every interface with a cable of a RoCE port of a rail or storage NIC; an answer for every other.

    Virtual functions and machines have no module. `down`: ports that are not active, too.
    """
    for each in roce_ports(case, down):
        if not isinstance(each, RocePort):
            yield each
        elif case.virtual_machine or each.nic.virtual_function:
            yield NotApplicable(each.subject, "a virtual function or machine: it sees no module")
        elif silent := unseen(each):
            yield silent
        else:
            wires = cabled(case, each)
            yield from (Plugged(each, netdev, netdev.module) for netdev in wires)
            if not wires:
                yield Unknown(each.subject, "the members of its bond are not visible here")


def unread(one: Plugged) -> Unknown:
    """Why nothing is known of the module; what this process may not read is one reason for the whole node."""
    why = one.netdev.module_reason or "its module could not be read"
    return Unknown("node" if _DENIED in why else one.subject, why)
