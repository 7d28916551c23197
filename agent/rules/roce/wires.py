"""What rules about RoCE ports ask of the interfaces below them, and how each port is judged alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent.model.nic import Netdev
from agent.rules.case import Case
from agent.rules.folding import folded
from agent.rules.roce.ports import RocePort, roce_ports
from agent.rules.rule import Answer, NotApplicable, Unknown

ELSEWHERE = "its interface is in another network namespace"
NOT_SHOWN = "no interface of it is visible here (another network namespace?)"


def by_port(case: Case, judge: Callable[[RocePort], Answer], alike: str, down: bool = False) -> Iterator[Answer]:
    """What a rule says of every RoCE port; one finding, "`alike` on every RoCE port", where all have the fault."""
    answers = (judge(each) if isinstance(each, RocePort) else each for each in roce_ports(case, down))
    yield from folded(answers, f"{alike} on every RoCE port")


def is_virtual(case: Case, each: RocePort) -> Answer | None:
    """The answer where a hypervisor or provider decides, and not who runs this system."""
    if case.virtual_machine or each.nic.virtual_function:
        return NotApplicable(each.subject, "a virtual function or machine: the provider sets it")
    return None


def shown(each: RocePort) -> Netdev | Unknown:
    """The port's interface; unknown, where it is not in sight."""
    if each.nic.state == "other_namespace":
        return Unknown(each.subject, ELSEWHERE)
    return each.netdev or Unknown(each.subject, NOT_SHOWN)


def unseen(each: RocePort) -> Answer | None:
    """Unknown, where the port's interface is not in sight."""
    netdev = shown(each)
    return None if isinstance(netdev, Netdev) else netdev


def cabled(case: Case, each: RocePort) -> list[Netdev]:
    """The interfaces that have the cables of a port: the members of a bond, else its own; empty: not in sight."""
    if each.netdev is None:
        return []
    if each.netdev.bond is None:
        return [each.netdev]
    return [netdev for netdev in case.topology.netdevs if netdev.master == each.netdev.label]
