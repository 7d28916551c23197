"""Which device of NetBox a node is: by serial number, else by name. A doubt is a line for a person, never a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent.netbox.current import Device
from agent.outputs.inventory.objects import DesiredNode


class Given(NamedTuple):
    """A node, and which report it is from."""

    node: DesiredNode
    report: str


class Match(NamedTuple):
    """What was found for a node; `problem`: why there is no device for it. `new`: it is to be made."""

    given: Given
    device: Device | None = None
    by: str = ""  # "serial" | "name"
    problem: str | None = None
    older: str | None = None  # the report that is taken instead of this one
    new: bool = False

    @property
    def key(self) -> str:
        """What its changes are called by: one device, one key."""
        return f"#{self.device.id}" if self.device else self.by_name

    @property
    def by_name(self) -> str:
        """The same of a device that is to be made."""
        return (self.given.node.name or self.given.report).lower()

    @property
    def label(self) -> str:
        """What people call it."""
        return (self.device.name if self.device else None) or self.given.node.name or self.given.report


def matched(given: Sequence[Given], devices: Sequence[Device], create: bool) -> list[Match]:
    """One match a node, in the order given; two reports of one host are one node: the later one."""
    found = [_match(each, devices, create) for each in given]
    _settle(found, lambda match: match.given.node.serial and match.given.node.serial.lower())
    _settle(found, lambda match: match.key)
    return found


def names_of(node: DesiredNode) -> list[str]:
    """What a node may be called: its name, and the first word of a whole domain name."""
    name = node.name or ""
    return [each for each in dict.fromkeys((name, name.partition(".")[0])) if each]


def _match(given: Given, devices: Sequence[Device], create: bool) -> Match:
    node = given.node
    if not node.serial and not node.name:
        return Match(given, problem="the report has neither a serial number nor a host name")
    same = [device for device in devices if node.serial and device.serial.lower() == node.serial.lower()]
    if len(same) > 1:
        return Match(
            given, problem=f"{len(same)} devices in NetBox have the serial number {node.serial}: {_list(same)}"
        )
    if same:
        return Match(given, same[0], "serial")
    for name in names_of(node):
        called = [device for device in devices if (device.name or "").lower() == name.lower()]
        if len(called) > 1:
            return Match(given, problem=f"{len(called)} devices in NetBox are called {name}: {_list(called)}; --site")
        if not called:
            continue
        if called[0].serial and node.serial:
            theirs = f"{name} has the serial number {called[0].serial} in NetBox, and {node.serial} in the report"
            return Match(given, problem=f"{theirs}: is it another machine?")
        return Match(given, called[0], "name")
    if create and node.name:
        return Match(given, new=True)
    who = " or ".join([f"the serial number {node.serial}"] * bool(node.serial) + names_of(node)[:1])
    hint = "--create makes it" if node.name else "the report has no host name to make it by"
    return Match(given, problem=f"no device in NetBox has {who}: {hint}")


def _list(devices: Sequence[Device]) -> str:
    shown = [f"{device.name or 'no name'} ({device.site.name if device.site else 'no site'})" for device in devices[:4]]
    return ", ".join(shown) + (", .." if len(devices) > 4 else "")


def _settle(found: list[Match], identity: Callable[[Match], str | None]) -> None:
    """Several reports for one device: of one host, the latest; of several hosts, none."""
    alike: dict[str, list[int]] = {}
    for at, match in enumerate(found):
        own = None if match.problem or match.older else identity(match)
        if own:
            alike.setdefault(own, []).append(at)
    for places in alike.values():
        same = [found[at] for at in places]
        hosts = {match.given.node.machine_id or match.given.report for match in same}
        latest = max(same, key=lambda match: match.given.node.observed_at or "")
        for at, match in zip(places, same, strict=True):
            if len(hosts) > 1:
                others = ", ".join(each.given.report for each in same if each is not match)
                problem = (
                    f"the same device as {others}, of another host (serial {match.given.node.serial}): neither is taken"
                )
                found[at] = Match(match.given, problem=problem)
            elif match is not latest:
                found[at] = Match(match.given, older=latest.given.report)
