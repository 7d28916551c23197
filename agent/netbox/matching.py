"""Which device of NetBox a node is: by serial number, else by name. A doubt is a line for a person, never a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent.netbox.state import NetBoxDevice, node_names
from agent.outputs.inventory.objects import DesiredNode


class ReportedNode(NamedTuple):
    """A node, and which report it is from."""

    node: DesiredNode
    report: str


class NodeMatch(NamedTuple):
    """What was found for a node; `problem`: why there is no device for it. `new`: it is to be made."""

    reported: ReportedNode
    device: NetBoxDevice | None = None
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
        return (self.reported.node.name or self.reported.report).lower()

    @property
    def label(self) -> str:
        """What people call it."""
        return (self.device.name if self.device else None) or self.reported.node.name or self.reported.report


def match_nodes(reported: Sequence[ReportedNode], devices: Sequence[NetBoxDevice], create: bool) -> list[NodeMatch]:
    """One match a node, in the order given; two reports of one host are one node: the later one."""
    matches = [_match_node(node, devices, create) for node in reported]
    _reject_duplicates(matches, lambda match: match.reported.node.serial and match.reported.node.serial.lower())
    _reject_duplicates(matches, lambda match: match.key)
    return matches


def _match_node(reported: ReportedNode, devices: Sequence[NetBoxDevice], create: bool) -> NodeMatch:
    node = reported.node
    if not node.serial and not node.name:
        return NodeMatch(reported, problem="the report has neither a serial number nor a host name")
    same = [device for device in devices if node.serial and device.serial.lower() == node.serial.lower()]
    if len(same) > 1:
        return NodeMatch(
            reported,
            problem=f"{len(same)} devices in NetBox have the serial number {node.serial}: {_list_devices(same)}",
        )
    if same:
        return NodeMatch(reported, same[0], "serial")
    for name in node_names(node):
        called = [device for device in devices if (device.name or "").lower() == name.lower()]
        if len(called) > 1:
            return NodeMatch(
                reported, problem=f"{len(called)} devices in NetBox are called {name}: {_list_devices(called)}; --site"
            )
        if not called:
            continue
        if called[0].serial and node.serial:
            theirs = f"{name} has the serial number {called[0].serial} in NetBox, and {node.serial} in the report"
            return NodeMatch(reported, problem=f"{theirs}: is it another machine?")
        return NodeMatch(reported, called[0], "name")
    if create and node.name:
        return NodeMatch(reported, new=True)
    who = " or ".join([f"the serial number {node.serial}"] * bool(node.serial) + node_names(node)[:1])
    hint = "--create makes it" if node.name else "the report has no host name to make it by"
    return NodeMatch(reported, problem=f"no device in NetBox has {who}: {hint}")


def _list_devices(devices: Sequence[NetBoxDevice]) -> str:
    names = [f"{device.name or 'no name'} ({device.site.name if device.site else 'no site'})" for device in devices[:4]]
    return ", ".join(names) + (", .." if len(devices) > 4 else "")


def _reject_duplicates(matches: list[NodeMatch], identity: Callable[[NodeMatch], str | None]) -> None:
    """Several reports for one device: of one host, the latest; of several hosts, none."""
    alike: dict[str, list[int]] = {}
    for index, match in enumerate(matches):
        key = None if match.problem or match.older else identity(match)
        if key:
            alike.setdefault(key, []).append(index)
    for places in alike.values():
        same = [matches[index] for index in places]
        hosts = {match.reported.node.machine_id or match.reported.report for match in same}
        latest = max(same, key=lambda match: match.reported.node.observed_at or "")
        for index, match in zip(places, same, strict=True):
            if len(hosts) > 1:
                others = ", ".join(other.reported.report for other in same if other is not match)
                serial = match.reported.node.serial
                problem = f"the same device as {others}, of another host (serial {serial}): neither is taken"
                matches[index] = NodeMatch(match.reported, problem=problem)
            elif match is not latest:
                matches[index] = NodeMatch(match.reported, older=latest.reported.report)
